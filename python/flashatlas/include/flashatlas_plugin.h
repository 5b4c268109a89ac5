/*
 * A part of FlashAtlas from a shared library: victim policies, classifiers, and whole FTLs.
 *
 * A library exports one function, `flashatlas_plugin`, which says what is in it:
 *
 *     const fa_plugin *flashatlas_plugin(void) { return &plugin; }
 *
 * and is used with `flashatlas run --plugin ./mine.so --set ftl.victim=mine`. Callbacks of one thing
 * that was made are called by one thread at a time; things may be made by several threads at once, so
 * keep nothing in static variables. Nothing may be thrown across this interface: C++ goes through
 * flashatlas_plugin.hpp, which turns exceptions into errors.
 *
 * Made of crates/plugin/src/abi.rs by `make header`. SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef FLASHATLAS_PLUGIN_H
#define FLASHATLAS_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

// The version of this interface: a plug-in of another one is refused.
#define FA_ABI_VERSION 1

// No page: the answer to a lookup of a page that nobody wrote, or that was trimmed.
#define FA_NOWHERE 4294967295

// No block: the answer of a victim policy that has none to offer.
#define FA_NO_BLOCK 4294967295

// From a policy or a classifier: it cannot answer, and its callback `fault` says why.
#define FA_FAULT 4294967294

// No stream: a page that nobody wrote, or one written before the drive was switched on.
#define FA_NO_STREAM -1

// No age: as `FA_NO_STREAM`.
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
  // Bytes from `low` to `high`: `4096`, `16KiB`.
  FA_BYTES = 2,
  // A number from `low` to `high`.
  FA_REAL = 3,
  // `true` or `false`.
  FA_FLAG = 4,
  // A time, given in picoseconds: `25us`.
  FA_TIME = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_type fa_type;
#else
typedef uint32_t fa_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a page of flash is, as its spare area says.
enum fa_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Ready to be programmed.
  FA_ERASED = 0,
  // Holds a logical page.
  FA_DATA = 1,
  // Holds bytes of the plug-in's own.
  FA_OWN = 2,
  // Was being programmed when the power failed, or could be read and cannot any more: a drive
  // cannot tell the two apart.
  FA_TORN = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_state fa_state;
#else
typedef uint32_t fa_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Where a table is.
enum fa_memory
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // On-chip static memory.
  FA_SRAM = 0,
  // Dynamic memory beside the controller.
  FA_DRAM = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_memory fa_memory;
#else
typedef uint32_t fa_memory;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a call came to. What is not `FA_OK` goes up to FlashAtlas as it is, unless the plug-in
// knows an answer to it.
enum fa_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  FA_OK = 0,
  // From the plug-in: no block can be freed.
  FA_NO_SPACE = 1,
  // The page cannot be read: it is torn, or it is erased.
  FA_UNREADABLE = 2,
  // The program failed, and no spare block took its place: this block takes no more programs.
  FA_PROGRAM_FAILED = 3,
  // The erase failed: the block is bad from now on.
  FA_ERASE_FAILED = 4,
  // There is no power any more: answer with this at once.
  FA_POWER_LOST = 5,
  // The call breaks a rule of flash, or of this interface: the run ends with an error that says
  // which.
  FA_REFUSED = 6,
  // From the plug-in: `fail` of the host was told why.
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
  // Its name in drive files and settings, such as `ftl.my_window`.
  const char *key;
  // Its type.
  uint32_t kind;
  // The smallest value; of `FA_FLAG` and `FA_TIME` of no meaning.
  double low;
  // The largest.
  double high;
  // The default as it would be written.
  const char *fallback;
  // What it means, with its unit: one line.
  const char *doc;
} fa_param;

// The value of a parameter, in the order in which they were declared.
typedef struct fa_value {
  // Whole numbers, bytes, picoseconds, and 0 or 1.
  uint64_t whole;
  // Numbers.
  double real;
} fa_value;

// A part of a plug-in.
typedef struct fa_part {
  // What it is: a `fa_kind`.
  uint32_t kind;
  // The name by which it is chosen.
  const char *name;
  // One line.
  const char *summary;
  // Where it is described.
  const char *paper;
  // Its parameters.
  const struct fa_param *params;
  // How many.
  uint32_t param_count;
  // Its callbacks, by its kind.
  const void *ops;
} fa_part;

// What a plug-in is: `const fa_plugin *flashatlas_plugin(void)` answers with it.
typedef struct fa_plugin {
  // `FA_ABI_VERSION`.
  uint32_t abi_version;
  // Its name.
  const char *name;
  // Its version.
  const char *version;
  // Its parts.
  const struct fa_part *parts;
  // How many.
  uint32_t part_count;
} fa_plugin;

// When something happened.
typedef struct fa_moment {
  // Slots programmed on the drive so far.
  uint64_t clock;
  // Simulated time of the command, in picoseconds.
  uint64_t now_ps;
} fa_moment;

// What a victim policy may know when it picks: one lane, its blocks numbered from 0.
typedef struct fa_candidates {
  // Valid slots by block; of meaning for closed ones.
  const uint32_t *valid;
  // Erases by block.
  const uint32_t *erases;
  // Blocks of the lane.
  uint32_t blocks;
  // Slots of a block.
  uint32_t slots;
  // When.
  struct fa_moment at;
} fa_candidates;

// A victim policy: which closed block of a lane is collected next. One is made for each lane.
typedef struct fa_victim {
  // Make one for a lane of so many blocks of so many slots. `seed` is its own.
  void *(*create)(const struct fa_value *values, uint32_t blocks, uint32_t slots, uint64_t seed);
  // It is not needed any more.
  void (*destroy)(void *policy);
  // A block was filled, or closed early, with so many valid slots.
  void (*closed)(void *policy, uint32_t block, uint32_t valid, struct fa_moment at);
  // A closed block lost a valid slot; so many are left. May be absent.
  void (*invalidated)(void *policy, uint32_t block, uint32_t valid, struct fa_moment at);
  // A closed block is no candidate any more.
  void (*removed)(void *policy, uint32_t block);
  // The closed block to collect next, or `FA_NO_BLOCK` where none has an invalid slot.
  uint32_t (*pick)(void *policy, const struct fa_candidates *lane);
  // Why the answer is `FA_FAULT`. May be absent.
  const char *(*fault)(void *policy);
} fa_victim;

// A page that a classifier sorts.
typedef struct fa_sorted {
  // The logical page.
  uint32_t lpn;
  // Pages that the host wrote before.
  uint64_t clock;
  // Pages that the host wrote since it last wrote this one, this one included; `FA_NO_AGE`.
  uint64_t age;
  // The stream of the block that holds this version; `FA_NO_STREAM`.
  int32_t stream;
  // Whether that is a stream of collection.
  bool collected;
} fa_sorted;

// A block that was collected.
typedef struct fa_collected {
  // The stream that wrote it; `FA_NO_STREAM`.
  int32_t stream;
  // Whether that is a stream of collection.
  bool collected;
  // Pages that the host wrote since the block was opened.
  uint64_t age;
  // Slots that were valid when it was picked.
  uint32_t valid;
  // Slots of a block.
  uint32_t slots;
} fa_collected;

// A classifier: into which stream a page is written.
typedef struct fa_classifier {
  // Streams of host writes; 0 in both: as many as `ftl.streams` says.
  uint32_t host_streams;
  // Streams of collection.
  uint32_t collection_streams;
  // Whether ages and streams are wanted, which takes tables of the drive.
  bool history;
  // Make one for so many logical pages and streams.
  void *(*create)(const struct fa_value *values, uint32_t pages, uint32_t streams);
  // It is not needed any more.
  void (*destroy)(void *classifier);
  // The stream of a page that the host writes.
  uint32_t (*written)(void *classifier, const struct fa_sorted *page);
  // The stream of a page that collection moves.
  uint32_t (*moved)(void *classifier, const struct fa_sorted *page);
  // A block was collected and is erased. May be absent; needs `history`.
  void (*erased)(void *classifier, const struct fa_collected *block);
  // Bytes of its tables in the drive. May be absent.
  uint64_t (*memory)(void *classifier);
  // Why an answer is `FA_FAULT`. May be absent.
  const char *(*fault)(void *classifier);
} fa_classifier;

// The spare area of a page.
typedef struct fa_spare {
  // A `fa_state`.
  uint32_t state;
  // Of `FA_DATA`: the logical page.
  uint32_t lpn;
  // Of `FA_DATA` and `FA_OWN`: the number of its program. A larger one is newer.
  uint64_t sequence;
} fa_spare;

// The drive of a plug-in's FTL. Pages of flash are numbered from 0, block by block.
typedef struct fa_shape {
  // Blocks of flash.
  uint32_t blocks;
  // Pages of a block.
  uint32_t pages;
  // Bytes of a page.
  uint32_t page_bytes;
  // Logical pages that the drive exports.
  uint32_t logical_pages;
  // Blocks that share a die: `block / blocks_per_lane` is its lane.
  uint32_t blocks_per_lane;
} fa_shape;

// A table of an FTL in the drive's memory.
typedef struct fa_table {
  // What it is.
  const char *name;
  // A `fa_memory`.
  uint32_t memory;
  // Its bytes in the drive.
  uint64_t bytes;
} fa_table;

// What an FTL works with: the same for as long as the drive is on. Every call acts at once, and is
// an operation that takes time in the simulation: by itself it waits for the one before it, as
// firmware does that does one thing after the other; `after` says otherwise.
typedef struct fa_host {
  // Of FlashAtlas.
  void *context;
  // Read bytes of a page: one operation of the flash, which transfers the whole page, however
  // few are wanted. Of a page of data the first 32 bytes say whose it is, for `program`, and the
  // others are 0. A page that is erased or torn is `FA_UNREADABLE`; `spare` tells which.
  fa_status (*read)(const struct fa_host *host,
                    uint32_t page,
                    uint32_t offset,
                    uint32_t bytes,
                    void *buffer);
  // Program a page, once after each erase and in ascending order in its block (pages may be left
  // out), with a page of bytes. A block in which a program failed takes no more programs and no
  // erase; `is_bad` says so once an erase has been refused.
  // Where they begin as `data` of `write` does, they stand for that data, which is then the
  // newest version of its logical page; where they were read from a page of data, they are a
  // copy of it; all others are bytes of the plug-in's own.
  fa_status (*program)(const struct fa_host *host, uint32_t page, const void *data);
  // Read a page and program it, whatever it holds, into another. A copy of the newest version is
  // the newest version from then on.
  fa_status (*copy)(const struct fa_host *host, uint32_t from, uint32_t to);
  // Erase a block.
  fa_status (*erase)(const struct fa_host *host, uint32_t block);
  // Read the spare area of a page. While mounting it takes the time of a read; later a drive
  // would know what it asks, and it is free.
  fa_status (*spare)(const struct fa_host *host, uint32_t page, struct fa_spare *spare);
  // Whether a block is bad.
  bool (*is_bad)(const struct fa_host *host, uint32_t block);
  // Erases of a block.
  uint32_t (*erases)(const struct fa_host *host, uint32_t block);
  // Accesses to a table in memory (a `fa_memory`), of so many bytes each.
  void (*access)(const struct fa_host *host,
                 uint32_t memory,
                 uint32_t accesses,
                 uint32_t bytes,
                 bool write);
  // The number of the last operation.
  uint64_t (*last)(const struct fa_host *host);
  // What the next operation waits for, instead of the one before it: numbers of operations, 0
  // for none. Data waits for its arrival besides, and an erase for the programs and copies that
  // superseded pages of its block.
  void (*after)(const struct fa_host *host, const uint64_t *operations, uint32_t count);
  // Simulated time, in picoseconds.
  uint64_t (*now)(const struct fa_host *host);
  // Why the plug-in answers `FA_FAILED`.
  void (*fail)(const struct fa_host *host, const char *why);
  // Zeroed memory that is accounted for: what is not released when `destroy` returns is named as
  // leaked. Of no other use: `malloc` does as well. Null: there is none.
  void *(*allocate)(const struct fa_host *host, uint64_t bytes);
  // Give back what `allocate` gave.
  void (*release)(const struct fa_host *host, void *memory);
} fa_host;

// An FTL whole. Its calls get the host of the drive, which may be used during a call and not
// between two, and answer with a `fa_status`. FlashAtlas keeps a map of its own beside: an answer
// of `locate` that is not the newest version, an erase that loses one, a page programmed twice or
// out of order end the run with an error that names the callback, the page and the block.
typedef struct fa_ftl {
  // Whether trims do not outlive a power failure.
  bool forgets_trims;
  // Whether the spare areas of data say all that a mount needs: a FUA write then needs no
  // `flush`.
  bool recovers_from_spare_areas;
  // Whether a drive of this shape can work: 0, or why not in `why`, which has room for so many
  // bytes. May be absent.
  int32_t (*fits)(const struct fa_shape *shape,
                  const struct fa_value *values,
                  char *why,
                  uint32_t room);
  // Switch the drive on: make the tables of what is on flash, which may be erased, or what a
  // power failure left. Null: `fail` says why, or the power is lost again. Afterwards FlashAtlas
  // asks `locate` for every page once, at no cost; a place that cannot be read counts as lost.
  void *(*mount)(const struct fa_host *host,
                 const struct fa_shape *shape,
                 const struct fa_value *values);
  // The drive is gone. The host may be used for `release` alone.
  void (*destroy)(void *ftl, const struct fa_host *host);
  // Where the newest version of a logical page is, or `FA_NOWHERE`.
  uint32_t (*locate)(void *ftl, const struct fa_host *host, uint32_t lpn, uint32_t *page);
  // Write a logical page: `data` must be programmed when this returns; the last program of it
  // counts. What cannot be answered is handed up as it came (`FA_UNREADABLE` of a copy, say).
  uint32_t (*write)(void *ftl, const struct fa_host *host, uint32_t lpn, const void *data);
  // Forget a logical page.
  uint32_t (*trim)(void *ftl, const struct fa_host *host, uint32_t lpn);
  // Make everything that was written and trimmed outlive a power failure. May be absent.
  uint32_t (*flush)(void *ftl, const struct fa_host *host);
  // Do a small piece of work while the host is idle; `worked` says whether there was any. May be
  // absent.
  uint32_t (*idle)(void *ftl, const struct fa_host *host, bool *worked);
  // Tables in the drive's memory: fill in at most so many, and answer how many there are. May be
  // absent.
  uint32_t (*tables)(void *ftl, struct fa_table *tables, uint32_t room);
} fa_ftl;

// What a map store works with during a call.
typedef struct fa_map {
  // Of FlashAtlas.
  void *context;
  // Accesses to a table in memory (a `fa_memory`), of so many bytes each, after those before:
  // what the call costs. Those that `set` makes during a mount cost nothing.
  void (*access)(const struct fa_map *map,
                 uint32_t memory,
                 uint32_t accesses,
                 uint32_t bytes,
                 bool write);
} fa_map;

// A map store: where the logical-to-physical map of page mapping is, in memory, and what a lookup
// costs. FlashAtlas keeps the truth beside it, and an answer that differs ends the run with an
// error that names the page. Nothing of the map is on flash: a mount finds where pages are by
// their spare areas and tells them by `set`, in ascending order. A map with pages on flash is a
// whole FTL here, or a store in Rust.
typedef struct fa_store {
  // Make an empty one, for so many logical pages, on a drive with so many pages of flash.
  void *(*create)(const struct fa_value *values, uint32_t pages, uint32_t slots);
  // It is not needed any more.
  void (*destroy)(void *store);
  // Where a logical page is, or `FA_NOWHERE`.
  uint32_t (*get)(void *store, const struct fa_map *map, uint32_t lpn);
  // A logical page is somewhere else now, or `FA_NOWHERE` after a trim. Answers where it was.
  uint32_t (*set)(void *store, const struct fa_map *map, uint32_t lpn, uint32_t page);
  // As `set`, because collection moved the page. May be absent: then it is `set`.
  uint32_t (*moved)(void *store, const struct fa_map *map, uint32_t lpn, uint32_t page);
  // Tables in the drive's memory, as of a `fa_ftl`. May be absent.
  uint32_t (*tables)(void *store, struct fa_table *tables, uint32_t room);
} fa_store;

#endif  /* FLASHATLAS_PLUGIN_H */

#ifdef __cplusplus
extern "C" {
#endif

/* What a plug-in exports. */
#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
const fa_plugin *flashatlas_plugin(void);

#ifdef __cplusplus
}
#endif

/* Digest of abi.rs, cbindgen.toml and the lines above: e91f83d104d16b330151447e37a2531617fa177b3313f692eb7c8165185876eb */
