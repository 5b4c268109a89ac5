/*
 * Parts of FlashAtlas in C++: classes whose exceptions become errors of FlashAtlas.
 *
 *     struct Mine {
 *         Mine(const fa_host *host, const fa_shape &shape, const fa_value *values);
 *         uint32_t locate(const fa_host *host, uint32_t lpn);                      // a page, or FA_NOWHERE
 *         fa_status write(const fa_host *host, uint32_t lpn, const void *data);
 *         fa_status trim(const fa_host *host, uint32_t lpn);
 *         fa_status flush(const fa_host *host);
 *     };
 *     static const fa_ftl mine = flashatlas::ftl<Mine>();
 *
 * In the same way, `flashatlas::victim<T>()` makes a victim policy from a class with these members:
 *
 *     T(const fa_value *values, uint32_t blocks, uint32_t slots, uint64_t seed);
 *     void closed(uint32_t block, uint32_t valid, fa_moment at);
 *     void invalidated(uint32_t block, uint32_t valid, fa_moment at);
 *     void removed(uint32_t block);
 *     uint32_t pick(const fa_candidates &lane);                                    // or FA_NO_BLOCK
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef FLASHATLAS_PLUGIN_HPP
#define FLASHATLAS_PLUGIN_HPP

#include "flashatlas_plugin.h"

#include <exception>
#include <string>

namespace flashatlas {

/* Returns the message of an exception. */
inline std::string what_of(std::exception_ptr thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception &error) {
        return error.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

/* Returns the answer of `work`, or FA_FAILED after an exception, whose text goes to the host. */
template <class Work> uint32_t guarded(const fa_host *host, Work &&work) noexcept {
    try {
        return work();
    } catch (...) {
        host->fail(host, what_of(std::current_exception()).c_str());
        return FA_FAILED;
    }
}

/* The callbacks of a whole FTL. */
template <class T> constexpr fa_ftl ftl() {
    fa_ftl ops{};
    ops.mount = [](const fa_host *host, const fa_shape *shape, const fa_value *values) -> void * {
        T *made = nullptr;
        guarded(host, [&]() -> uint32_t { return made = new T(host, *shape, values), FA_OK; });
        return made;
    };
    ops.destroy = [](void *of, const fa_host *) { delete static_cast<T *>(of); };
    ops.locate = [](void *of, const fa_host *host, uint32_t lpn, uint32_t *page) {
        return guarded(host, [&]() -> uint32_t {
            return *page = static_cast<T *>(of)->locate(host, lpn), FA_OK;
        });
    };
    ops.write = [](void *of, const fa_host *host, uint32_t lpn, const void *data) {
        return guarded(host, [&] { return static_cast<T *>(of)->write(host, lpn, data); });
    };
    ops.trim = [](void *of, const fa_host *host, uint32_t lpn) {
        return guarded(host, [&] { return static_cast<T *>(of)->trim(host, lpn); });
    };
    ops.flush = [](void *of, const fa_host *host) {
        return guarded(host, [&] { return static_cast<T *>(of)->flush(host); });
    };
    return ops;
}

/* A policy, and the message of the last exception that it threw. */
template <class T> struct guarded_victim {
    T policy;
    std::string thrown;

    template <class Work> void tell(Work &&work) noexcept {
        try {
            if (thrown.empty()) work(policy);
        } catch (...) {
            thrown = what_of(std::current_exception());
        }
    }
};

/* The callbacks of a victim policy. */
template <class T> constexpr fa_victim victim() {
    using Guarded = guarded_victim<T>;
    fa_victim ops{};
    ops.create = [](const fa_value *values, uint32_t blocks, uint32_t slots,
                    uint64_t seed) -> void * {
        try {
            return new Guarded{T(values, blocks, slots, seed), {}};
        } catch (...) {
            return nullptr;
        }
    };
    ops.destroy = [](void *of) { delete static_cast<Guarded *>(of); };
    ops.closed = [](void *of, uint32_t block, uint32_t valid, fa_moment at) {
        static_cast<Guarded *>(of)->tell([&](T &policy) { policy.closed(block, valid, at); });
    };
    ops.invalidated = [](void *of, uint32_t block, uint32_t valid, fa_moment at) {
        static_cast<Guarded *>(of)->tell([&](T &policy) { policy.invalidated(block, valid, at); });
    };
    ops.removed = [](void *of, uint32_t block) {
        static_cast<Guarded *>(of)->tell([&](T &policy) { policy.removed(block); });
    };
    ops.pick = [](void *of, const fa_candidates *lane) -> uint32_t {
        auto *guarded = static_cast<Guarded *>(of);
        uint32_t block = FA_FAULT;
        guarded->tell([&](T &policy) { block = policy.pick(*lane); });
        return block;
    };
    ops.fault = [](void *of) { return static_cast<Guarded *>(of)->thrown.c_str(); };
    return ops;
}

} // namespace flashatlas

#endif
