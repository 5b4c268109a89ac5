/*
 * Parts of FlashAtlas from a shared library: victim policies, classifiers, map stores, whole FTLs.
 *
 * A library exports one function, `flashatlas_plugin`, which returns a description of its parts:
 *
 *     const fa_plugin *flashatlas_plugin(void) { return &plugin; }
 *
 * Use it with `flashatlas run --plugin ./mine.so --set ftl.victim=mine`. One thread at a time calls
 * the callbacks of an object that `create` or `mount` returned. Several threads may make objects at
 * the same time, so use no static variables. No exception may cross this interface. In C++, use
 * flashatlas_plugin.hpp, which turns exceptions into errors.
 *
 * Made of crates/plugin/src/abi.rs by `make header`. SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef FLASHATLAS_PLUGIN_H
#define FLASHATLAS_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

// The version of this interface. Plug-ins of another version are refused.
#define FA_ABI_VERSION 1

// No page: the answer to a lookup of a page that was never written or was trimmed.
#define FA_NOWHERE 4294967295

// No block: the answer of a victim policy if no block can be collected.
#define FA_NO_BLOCK 4294967295

// The answer of a policy or a classifier that has failed. Its callback `fault` returns the reason.
#define FA_FAULT 4294967294

// No stream: the page was never written, or was written before the drive was switched on.
#define FA_NO_STREAM -1

// No age, in the same cases as `FA_NO_STREAM`.
#define FA_NO_AGE 18446744073709551615ull

// The kinds of parts.
enum fa_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // `ops` is a `fa_victim`.
  FA_VICTIM = 1,
  // `ops` is a `fa_classifier`.
  FA_CLASSIFIER = 2,
  // `ops` is a `fa_ftl`.
  FA_FTL = 3,
  // `ops` is a `fa_store`.
  FA_STORE = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_kind fa_kind;
#else
typedef uint32_t fa_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The type of a parameter.
enum fa_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // A whole number from `low` to `high`.
  FA_WHOLE = 1,
  // A number of bytes from `low` to `high`, such as `4096` or `16KiB`.
  FA_BYTES = 2,
  // A number from `low` to `high`.
  FA_REAL = 3,
  // `true` or `false`.
  FA_FLAG = 4,
  // A time, such as `25us`. Its value is in picoseconds.
  FA_TIME = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_type fa_type;
#else
typedef uint32_t fa_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// State of a page of flash, as its spare area shows it.
enum fa_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The page is ready to be programmed.
  FA_ERASED = 0,
  // The page holds a logical page.
  FA_DATA = 1,
  // The page holds the plug-in's own bytes.
  FA_OWN = 2,
  // The page cannot be read, because the power failed during its program or because it was
  // damaged later. A drive cannot distinguish these cases.
  FA_TORN = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_state fa_state;
#else
typedef uint32_t fa_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Kind of memory for a table.
enum fa_memory
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // On-chip static memory.
  FA_SRAM = 0,
  // Dynamic memory outside the controller.
  FA_DRAM = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_memory fa_memory;
#else
typedef uint32_t fa_memory;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Result of a call. If a call of a plug-in returns another result than `FA_OK` and the plug-in
// cannot handle it, the plug-in must return this result unchanged to FlashAtlas.
enum fa_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The call succeeded.
  FA_OK = 0,
  // The plug-in cannot free any block.
  FA_NO_SPACE = 1,
  // The page cannot be read, because it is torn or erased.
  FA_UNREADABLE = 2,
  // The program failed, and no spare block is left. The block cannot be programmed any more.
  FA_PROGRAM_FAILED = 3,
  // The erase failed. The block is bad from now on.
  FA_ERASE_FAILED = 4,
  // The power has failed. The callback must return this result immediately.
  FA_POWER_LOST = 5,
  // The call breaks a rule of flash or of this interface. The run ends with an error that names
  // the rule.
  FA_REFUSED = 6,
  // The plug-in failed. It has passed the reason to `fail` of the host.
  FA_FAILED = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_status fa_status;
#else
typedef uint32_t fa_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A parameter that a part declares.
typedef struct fa_param {
  // Name of the parameter in drive files and settings, such as `ftl.my_window`.
  const char *key;
  // Type of the parameter.
  uint32_t kind;
  // The smallest value; ignored for `FA_FLAG` and `FA_TIME`.
  double low;
  // The largest value; ignored for `FA_FLAG` and `FA_TIME`.
  double high;
  // The default, written as in a setting.
  const char *fallback;
  // Meaning of the parameter, with its unit, in one line.
  const char *doc;
} fa_param;

// Value of a parameter. Arrays of values have the order in which the parameters were declared.
typedef struct fa_value {
  // The value of a whole number, of a number of bytes, of a time (in picoseconds) or of a flag
  // (0 or 1).
  uint64_t whole;
  // The value as a number.
  double real;
} fa_value;

// A part of a plug-in.
typedef struct fa_part {
  // Kind of the part: a `fa_kind`.
  uint32_t kind;
  // The name with which drive files select the part.
  const char *name;
  // A summary of one line.
  const char *summary;
  // The paper that describes the part, or `none`.
  const char *paper;
  // Parameters of the part.
  const struct fa_param *params;
  // Number of parameters.
  uint32_t param_count;
  // Callbacks of the part. Their type depends on the kind of the part.
  const void *ops;
} fa_part;

// A plug-in. The library's function `const fa_plugin *flashatlas_plugin(void)` returns a pointer
// to this.
typedef struct fa_plugin {
  // `FA_ABI_VERSION`.
  uint32_t abi_version;
  // Name of the plug-in.
  const char *name;
  // Version of the plug-in.
  const char *version;
  // Parts of the plug-in.
  const struct fa_part *parts;
  // Number of parts.
  uint32_t part_count;
} fa_plugin;

// Time of an event.
typedef struct fa_moment {
  // Number of slots that were programmed on the drive so far.
  uint64_t clock;
  // Simulated time of the command, in picoseconds.
  uint64_t now_ps;
} fa_moment;

// Lane from which a victim policy picks a block. The blocks of a lane are numbered from 0.
typedef struct fa_candidates {
  // Number of valid slots of each block. Only the numbers of closed blocks are meaningful.
  const uint32_t *valid;
  // Number of erases of each block.
  const uint32_t *erases;
  // Number of blocks of the lane.
  uint32_t blocks;
  // Slots of a block.
  uint32_t slots;
  // The present time.
  struct fa_moment at;
} fa_candidates;

// A victim policy. It picks the closed block of a lane that is collected next. Each lane has its
// own policy.
typedef struct fa_victim {
  // Makes a policy for a lane of `blocks` blocks of `slots` slots each. Each policy gets a
  // different `seed`.
  void *(*create)(const struct fa_value *values, uint32_t blocks, uint32_t slots, uint64_t seed);
  // Frees a policy that is not needed any more.
  void (*destroy)(void *policy);
  // Reports that a block was filled or closed early. It has `valid` valid slots.
  void (*closed)(void *policy, uint32_t block, uint32_t valid, struct fa_moment at);
  // Reports that a closed block lost a valid slot and has `valid` left. May be null.
  void (*invalidated)(void *policy, uint32_t block, uint32_t valid, struct fa_moment at);
  // Reports that a closed block is not a candidate any more.
  void (*removed)(void *policy, uint32_t block);
  // Returns the closed block to collect next, or `FA_NO_BLOCK` if no closed block has an invalid
  // slot.
  uint32_t (*pick)(void *policy, const struct fa_candidates *lane);
  // Returns the reason for the answer `FA_FAULT`. May be null.
  const char *(*fault)(void *policy);
} fa_victim;

// A page for which a classifier chooses the stream.
typedef struct fa_sorted {
  // The logical page.
  uint32_t lpn;
  // Number of pages that the host wrote before this one.
  uint64_t clock;
  // Number of pages that the host wrote since it last wrote this page, this page included; or
  // `FA_NO_AGE`.
  uint64_t age;
  // The stream of the block that holds the page's present version, or `FA_NO_STREAM`.
  int32_t stream;
  // True if `stream` is a stream of collection.
  bool collected;
} fa_sorted;

// A block that was collected.
typedef struct fa_collected {
  // The stream that wrote the block, or `FA_NO_STREAM`.
  int32_t stream;
  // True if `stream` is a stream of collection.
  bool collected;
  // Number of pages that the host wrote since the block was opened.
  uint64_t age;
  // Number of slots that were valid when the block was picked.
  uint32_t valid;
  // Slots of a block.
  uint32_t slots;
} fa_collected;

// A classifier. It chooses the stream into which a page is written.
typedef struct fa_classifier {
  // Number of streams of host writes. If both numbers are 0, the parameter `ftl.streams` is used
  // for both.
  uint32_t host_streams;
  // Number of streams of collection.
  uint32_t collection_streams;
  // True if the classifier needs the ages and streams of pages. The drive then has tables for
  // them.
  bool history;
  // Makes a classifier for `pages` logical pages and `streams` streams.
  void *(*create)(const struct fa_value *values, uint32_t pages, uint32_t streams);
  // Frees a classifier that is not needed any more.
  void (*destroy)(void *classifier);
  // Returns the stream of a page that the host writes.
  uint32_t (*written)(void *classifier, const struct fa_sorted *page);
  // Returns the stream of a page that collection moves.
  uint32_t (*moved)(void *classifier, const struct fa_sorted *page);
  // Reports that a block was collected and is erased. May be null. Needs `history`.
  void (*erased)(void *classifier, const struct fa_collected *block);
  // Returns the bytes of the classifier's tables in the drive. May be null.
  uint64_t (*memory)(void *classifier);
  // Returns the reason for the answer `FA_FAULT`. May be null.
  const char *(*fault)(void *classifier);
} fa_classifier;

// The spare area of a page.
typedef struct fa_spare {
  // A `fa_state`.
  uint32_t state;
  // The logical page, for `FA_DATA`.
  uint32_t lpn;
  // The number of the page's program, for `FA_DATA` and `FA_OWN`. A newer program has a larger
  // number.
  uint64_t sequence;
} fa_spare;

// The drive on which a plug-in's FTL runs. Pages of flash are numbered from 0, block by block.
typedef struct fa_shape {
  // Number of blocks of flash.
  uint32_t blocks;
  // Pages of a block.
  uint32_t pages;
  // Bytes of a page.
  uint32_t page_bytes;
  // Number of logical pages that the drive exports.
  uint32_t logical_pages;
  // Number of blocks in a lane. The blocks of a lane share a die. The lane of a block is `block
  // / blocks_per_lane`.
  uint32_t blocks_per_lane;
} fa_shape;

// A table of an FTL in the drive's memory.
typedef struct fa_table {
  // Name of the table.
  const char *name;
  // A `fa_memory`.
  uint32_t memory;
  // Bytes of the table in the drive.
  uint64_t bytes;
} fa_table;

// Functions for an FTL. The pointers do not change while the drive is on.
//
// Every call takes effect immediately, and adds an operation that takes time in the simulation. An
// operation waits for the previous one, as in firmware with a single thread, unless `after` was
// called.
typedef struct fa_host {
  // Pointer of FlashAtlas' own.
  void *context;
  // Reads bytes of a page.
  //
  // This is one flash operation. It transfers the whole page, even if the call needs few bytes.
  // The first 32 bytes of a data page are a token for `program`, and the other bytes are 0. The
  // result for an erased or a torn page is `FA_UNREADABLE`. The function `spare` distinguishes
  // the two.
  fa_status (*read)(const struct fa_host *host,
                    uint32_t page,
                    uint32_t offset,
                    uint32_t bytes,
                    void *buffer);
  // Programs a page with a page of bytes.
  //
  // A page is programmed at most once after each erase. The pages of a block are programmed in
  // ascending order, and pages may be skipped. If the bytes begin like `data` of `write`, they
  // stand for this data, which is then the newest version of its logical page. If they were read
  // from a data page, they are a copy of that page. All other bytes are the plug-in's own bytes.
  // If a program fails, every later program and erase of the block fails, too. `is_bad` returns
  // true for the block after an erase has failed.
  fa_status (*program)(const struct fa_host *host, uint32_t page, const void *data);
  // Reads a page of any kind and programs its content into another page.
  //
  // A copy of the newest version is the newest version from then on.
  fa_status (*copy)(const struct fa_host *host, uint32_t from, uint32_t to);
  // Erases a block.
  fa_status (*erase)(const struct fa_host *host, uint32_t block);
  // Reads the spare area of a page.
  //
  // During a mount, this takes the time of a read. Later it takes no time, because a drive would
  // have the answer in memory.
  fa_status (*spare)(const struct fa_host *host, uint32_t page, struct fa_spare *spare);
  // Returns true if a block is bad.
  bool (*is_bad)(const struct fa_host *host, uint32_t block);
  // Returns the number of erases of a block.
  uint32_t (*erases)(const struct fa_host *host, uint32_t block);
  // Adds `accesses` accesses of `bytes` bytes each to a table. `memory` is the table's
  // `fa_memory`.
  void (*access)(const struct fa_host *host,
                 uint32_t memory,
                 uint32_t accesses,
                 uint32_t bytes,
                 bool write);
  // Returns the number of the last operation.
  uint64_t (*last)(const struct fa_host *host);
  // Sets the operations for which the next operation waits, instead of the operation before it.
  //
  // 0 stands for no operation. A program of data also waits until the data has arrived. An erase
  // also waits for the programs and copies that superseded pages of its block.
  void (*after)(const struct fa_host *host, const uint64_t *operations, uint32_t count);
  // Returns the simulated time, in picoseconds.
  uint64_t (*now)(const struct fa_host *host);
  // Sets the reason for which the plug-in returns `FA_FAILED`.
  void (*fail)(const struct fa_host *host, const char *why);
  // Returns zeroed memory, or null if there is not enough.
  //
  // FlashAtlas reports memory that was not released when `destroy` returns as leaked. Apart from
  // this report and the zeros, the function is like `malloc`, which may be used as well.
  void *(*allocate)(const struct fa_host *host, uint64_t bytes);
  // Releases memory that `allocate` returned.
  void (*release)(const struct fa_host *host, void *memory);
} fa_host;

// A whole FTL.
//
// Its callbacks get the host of the drive and return a `fa_status`. The host may be used during a
// call, but not between two calls. FlashAtlas also keeps its own map. The run ends with an error
// if `locate` does not find the place of the newest version, if an erase destroys a newest
// version, or if a page is programmed twice or out of order. The error names the callback, the
// page and the block.
typedef struct fa_ftl {
  // True if trims are lost in a power failure.
  bool forgets_trims;
  // True if the spare areas of data contain everything that a mount needs. A FUA write then
  // needs no `flush`.
  bool recovers_from_spare_areas;
  // Returns 0 if the FTL can run on a drive of this shape. May be null.
  //
  // For any other answer, it writes the reason to `why`, which has room for `room` bytes.
  int32_t (*fits)(const struct fa_shape *shape,
                  const struct fa_value *values,
                  char *why,
                  uint32_t room);
  // Switches the drive on: builds the tables from the flash. The flash may be erased, or in the
  // state after a power failure.
  //
  // Returns null if the mount failed. In that case it has called `fail` with the reason, or the
  // power has failed again. After a mount, FlashAtlas calls `locate` once for every page, which
  // takes no simulated time. A page whose place cannot be read counts as lost.
  void *(*mount)(const struct fa_host *host,
                 const struct fa_shape *shape,
                 const struct fa_value *values);
  // Frees the tables of a drive that is not used any more. Of the host, only `release` may be
  // called.
  void (*destroy)(void *ftl, const struct fa_host *host);
  // Finds the newest version of a logical page. Sets `page` to its place, or to `FA_NOWHERE`.
  uint32_t (*locate)(void *ftl, const struct fa_host *host, uint32_t lpn, uint32_t *page);
  // Writes a logical page. When this returns, `data` must be programmed; its last program
  // counts.
  //
  // The FTL returns a result that it cannot handle unchanged, such as `FA_UNREADABLE` of a copy.
  uint32_t (*write)(void *ftl, const struct fa_host *host, uint32_t lpn, const void *data);
  // Trims a logical page.
  uint32_t (*trim)(void *ftl, const struct fa_host *host, uint32_t lpn);
  // Makes all writes and trims durable. May be null.
  uint32_t (*flush)(void *ftl, const struct fa_host *host);
  // Does a small piece of work while the host is idle. Sets `worked` to true if there was work.
  // May be null.
  uint32_t (*idle)(void *ftl, const struct fa_host *host, bool *worked);
  // Fills in the tables in the drive's memory, at most `room` of them. Returns their number. May
  // be null.
  uint32_t (*tables)(void *ftl, struct fa_table *tables, uint32_t room);
} fa_ftl;

// Functions for a map store during a call.
typedef struct fa_map {
  // Pointer of FlashAtlas' own.
  void *context;
  // Adds `accesses` accesses of `bytes` bytes each to a table. `memory` is the table's
  // `fa_memory`. The accesses come after earlier ones.
  //
  // Only the accesses of a callback take time. During a mount, the accesses of `set` take no
  // time.
  void (*access)(const struct fa_map *map,
                 uint32_t memory,
                 uint32_t accesses,
                 uint32_t bytes,
                 bool write);
} fa_map;

// A map store: the logical-to-physical map of page mapping in memory, and the time of its lookups.
//
// FlashAtlas also keeps its own map. An answer of the store that differs from this map ends the
// run with an error that names the page. The store has no data on flash. A mount finds pages by
// their spare areas, and calls `set` for each page in ascending order. For a map with pages on
// flash, write a whole FTL (`fa_ftl`), or a store in Rust.
typedef struct fa_store {
  // Makes an empty map for `pages` logical pages, on a drive with `slots` pages of flash.
  void *(*create)(const struct fa_value *values, uint32_t pages, uint32_t slots);
  // Frees a map that is not needed any more.
  void (*destroy)(void *store);
  // Returns the place of a logical page, or `FA_NOWHERE`.
  uint32_t (*get)(void *store, const struct fa_map *map, uint32_t lpn);
  // Sets the place of a logical page, or `FA_NOWHERE` after a trim. Returns the place before.
  uint32_t (*set)(void *store, const struct fa_map *map, uint32_t lpn, uint32_t page);
  // Sets the place of a page that collection moved, like `set`. If this is null, `set` is
  // called.
  uint32_t (*moved)(void *store, const struct fa_map *map, uint32_t lpn, uint32_t page);
  // Fills in the tables in the drive's memory, like `tables` of a `fa_ftl`. May be null.
  uint32_t (*tables)(void *store, struct fa_table *tables, uint32_t room);
} fa_store;

#endif  /* FLASHATLAS_PLUGIN_H */

#ifdef __cplusplus
extern "C" {
#endif

/* The function that a plug-in exports. */
#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
const fa_plugin *flashatlas_plugin(void);

#ifdef __cplusplus
}
#endif

/* Digest of abi.rs, cbindgen.toml and the lines above: c44b706847794de0b8e2c76368159c24da8e2388d51cb03ff20a69f071675064 */
