/*
 * libflashatlas: drives of FlashAtlas, driven by the event loop of a program or another simulator.
 *
 *     fa_drive *drive = fa_drive_create("tiny", NULL, NULL, 0, 1, why, sizeof why);
 *     fa_submit(drive, now, tag, &command, &reply);      what it does is decided at once
 *     fa_next_event(drive, &at);                         schedule yourself there
 *     fa_advance(drive, at, done, 16, &count);           what is complete, and when
 *
 * Times are picoseconds of simulated time, and the host keeps the clock. Functions that return an
 * int return a fa_code; fa_drive_error has the sentence to it. There are no globals: drives have
 * nothing in common, and each is to be used by one thread at a time. The same calls give the same
 * answers. C++ has flashatlas.hpp over this. docs/howto/embed-a-drive.md explains it.
 *
 * Made of crates/capi/src/abi.rs by `make header`. SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef FLASHATLAS_H
#define FLASHATLAS_H

#include <stddef.h>
#include <stdint.h>

// The version of this interface; `fa_drive_abi` says which one the library has.
#define FA_DRIVE_ABI 1

// No time: nothing is going to happen.
#define FA_NEVER 18446744073709551615ull

// The bytes of a sector.
#define FA_SECTOR_BYTES 512

// The latest time that is accepted, in picoseconds: 106 days.
#define FA_LATEST 9223372036854775807

// What a call came to. Of all but `FA_SUCCESS`, `fa_drive_error` says more. What was refused
// changed nothing, unless said otherwise here.
enum fa_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  FA_SUCCESS = 0,
  // A null pointer, a value that has no meaning, a buffer that is too small.
  FA_ERR_ARGUMENT = 1,
  // The range is empty or ends beyond the drive.
  FA_ERR_RANGE = 2,
  // This drive, or this version of the library, cannot do it.
  FA_ERR_UNSUPPORTED = 3,
  // As many commands are in flight as the drive takes.
  FA_ERR_QUEUE_FULL = 4,
  // The time lies before one that the drive has reached, or after `FA_LATEST`.
  FA_ERR_TIME = 5,
  // The power is off: `fa_power_on`.
  FA_ERR_POWER_OFF = 6,
  // The power failed in this call, as `fa_power_cut_after` asked for. The command may have been
  // carried out in part, and is not complete.
  FA_ERR_POWER_LOST = 7,
  // The data cannot be read. Other commands may follow.
  FA_ERR_UNREADABLE = 8,
  // The drive cannot go on (no space, an erase or a program that failed): every later command
  // gets this, until the power is switched off and on.
  FA_ERR_FAILED = 9,
  // Commands are in flight, or the drive still works on something.
  FA_ERR_BUSY = 10,
  // A rule of the drive does not hold: a defect of the simulator.
  FA_ERR_CHECK = 11,
  // The simulator failed: the drive takes no call any more but `fa_drive_free`.
  FA_ERR_PANIC = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_code fa_code;
#else
typedef int32_t fa_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a command asks.
enum fa_op
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Read sectors.
  FA_OP_READ = 1,
  // Write sectors.
  FA_OP_WRITE = 2,
  // Make every completed write durable; `lba` and `sectors` are 0.
  FA_OP_FLUSH = 3,
  // Forget the mapping units that lie whole inside the range.
  FA_OP_TRIM = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_op fa_op;
#else
typedef uint32_t fa_op;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A drive. One thread at a time may use it; two drives have nothing in common.
typedef struct fa_drive fa_drive;

// What a drive exports.
typedef struct fa_geometry {
  // Sectors of 512 bytes.
  uint64_t sectors;
  // Bytes of a mapping unit: writes of whole units need no read.
  uint32_t unit_bytes;
  // Commands that may be in flight.
  uint32_t queue_depth;
  // 1: bytes that are written are kept (`nand.data=ram`); 0: stamps stand for them.
  uint32_t keeps_bytes;
  // 0.
  uint32_t reserved;
} fa_geometry;

// A command. Set all of it to zero first: what is not supported yet must be 0, and is an error
// otherwise.
typedef struct fa_command {
  // A `fa_op`.
  uint32_t op;
  // 1: a write is durable when it is complete. Of other commands 0.
  uint32_t fua;
  // The first sector of 512 bytes.
  uint64_t lba;
  // How many.
  uint32_t sectors;
  // The namespace: 0, the only one.
  uint32_t namespace_id;
  // The stream of a write. Not supported yet: 0.
  uint32_t stream;
  // The placement handle of a write. Not supported yet: 0.
  uint32_t placement;
  // What is done to a zone. Not supported yet: 0.
  uint32_t zone_command;
  // 0.
  uint32_t reserved;
  // Names what a write writes: stamps are made of it. 0: the drive numbers its writes.
  uint64_t content;
  // What a write writes, where the drive keeps bytes (`nand.data=ram`), else null.
  const void *data;
  // Bytes at `data`: `sectors` times 512, or 0.
  size_t data_bytes;
  // 0.
  uint64_t more[4];
} fa_command;

// Where a read puts what it read. It is there when `fa_submit` returns; a host that models time
// looks at it when the command is complete. Other commands need none.
typedef struct fa_reply {
  // Room for the bytes of the range, where the drive keeps bytes; null: they are not wanted.
  void *data;
  // Bytes of room at `data`.
  size_t data_room;
  // Bytes that were put there.
  size_t data_bytes;
  // Room for a stamp of each mapping unit that the range touches; null: they are not wanted.
  // 0 stands for a unit that nobody wrote.
  uint32_t *stamps;
  // How many there is room for.
  size_t stamp_room;
  // How many were put there.
  size_t stamp_count;
} fa_reply;

// A command that is complete.
typedef struct fa_done {
  // Which.
  uint64_t tag;
  // When, in picoseconds.
  uint64_t at_ps;
} fa_done;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this interface that the library has: `FA_DRIVE_ABI`.
uint32_t fa_drive_abi(void);

// The version of FlashAtlas.
const char *fa_version(void);

// Make a drive: blank, switched on, at time zero. `preset` names one that comes with the project
// (`tiny`); or, where `toml` is not null, the drive is what that text says (it may build on a
// preset with `base`), and `preset` is what messages call it. Then come `count` settings of the
// form `key=value`. Null where it cannot be made: `error` says why, in at most `room` bytes with
// the zero.
struct fa_drive *fa_drive_create(const char *preset,
                                 const char *toml,
                                 const char *const *settings,
                                 size_t count,
                                 uint64_t seed,
                                 char *error,
                                 size_t room);

// Free a drive; null is nothing.
void fa_drive_free(struct fa_drive *drive);

// What the last call on this drive that failed came to: a text that lasts until the next call.
const char *fa_drive_error(const struct fa_drive *drive);

// What the drive exports.
int fa_drive_geometry(struct fa_drive *drive, struct fa_geometry *geometry);

// Submit a command at `now_ps`. What it does is decided at once; `fa_advance` says when it is
// complete. `tag` names it until then: no other command in flight has it, and its highest bit is
// 0. `now_ps` is not before the last submission, and not before what `fa_advance` has handled.
int fa_submit(struct fa_drive *drive,
              uint64_t now_ps,
              uint64_t tag,
              const struct fa_command *command,
              struct fa_reply *reply);

// When something happens next in the drive: `FA_NEVER`, or a time for `fa_advance`.
int fa_next_event(struct fa_drive *drive, uint64_t *at_ps);

// Let everything happen up to and including `until_ps`, and fetch what is complete by then in the
// order of time: at most `room`; what remains comes first next time. `count` says how many are in
// `done`. `FA_NEVER`: until every command is complete, and no further, for a host that waits; the
// drive's own work goes on after that. `FA_ERR_POWER_LOST`, of a layer that writes meanwhile: what
// is in `done` is complete.
int fa_advance(struct fa_drive *drive,
               uint64_t until_ps,
               struct fa_done *done,
               size_t room,
               size_t *count);

// The host asks for nothing from `now_ps` until `until_ps`: collection in idle time may use it.
// While commands are in flight it does nothing.
int fa_idle(struct fa_drive *drive, uint64_t now_ps, uint64_t until_ps);

// Write every mapping unit once, in ascending order, in no simulated time, and make it durable.
// Bytes are zeros. The drive is idle. Counters go on: see `fa_reset_counters`.
int fa_fill(struct fa_drive *drive);

// The power fails at `now_ps`. Commands that are complete by then can still be fetched; the others
// never complete, and everything in the drive's and its layers' memory is lost. Of writes in
// flight the medium may have all, some or nothing: here it has what the drive had sent to flash.
int fa_power_cut(struct fa_drive *drive, uint64_t now_ps);

// After `operations` more programs, erases and stores to NVM the power fails, in the next one: a
// program leaves a torn page, an erase has not begun. The call that needs it gets
// `FA_ERR_POWER_LOST`.
int fa_power_cut_after(struct fa_drive *drive, uint64_t operations);

// The power is back at `now_ps`, and the drive mounts what is on the medium. From `ready_ps` on,
// an estimate, it takes commands. `ready_ps` may be null.
int fa_power_on(struct fa_drive *drive, uint64_t now_ps, uint64_t *ready_ps);

// Whether the power is on: 1 or 0, and 0 of null.
int fa_is_on(const struct fa_drive *drive);

// Check every rule of the drive's tables and of the medium: takes time in proportion to the drive.
int fa_check(struct fa_drive *drive);

// Set counters and latencies to zero; what the drive holds stays.
int fa_reset_counters(struct fa_drive *drive);

// What the drive counted since it was made or its counters were reset, as JSON: commands with
// their latencies, flash operations by cause, write amplification, wear. The power is on. `json`
// gets a string for `fa_string_free`.
int fa_record_json(struct fa_drive *drive, char **json);

// Write what the drive holds into a file, for `fa_checkpoint_load`, here or in another process,
// and for `flashatlas run --precondition checkpoint:FILE`. No command is in flight. The drive is
// switched off, with everything made durable, and on again, in no simulated time: from here on it
// does what a drive does that loads the file. Counters begin anew, and a cut that was asked for
// (`fa_power_cut_after`) is forgotten. The file is written beside its place, as `path`.new; one
// that is there is replaced once the new one is whole. Drives with layers or with bytes
// (`nand.data=ram`): `FA_ERR_UNSUPPORTED`.
int fa_checkpoint_save(struct fa_drive *drive, const char *path);

// Hold what a checkpoint holds, instead of what the drive held; its clock and its settings stay.
// No command is in flight. A file of a drive whose settings place pages on flash otherwise is
// refused with the setting, and one that is damaged with the byte; the drive is then as it was.
int fa_checkpoint_load(struct fa_drive *drive, const char *path);

// Add the parts of a shared library that was made with `flashatlas_plugin.h`: their names are
// known to every drive that is made in this process afterwards. `error` says why not, as of
// `fa_drive_create`. A callback that has not returned for 30 s ends the process. From the first
// call on the library handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, to say which callback
// they came in; a host that needs its own handlers must not use plug-ins.
int fa_plugin_load(const char *path, char *error, size_t room);

// Free a string of this library; null is nothing.
void fa_string_free(char *string);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FLASHATLAS_H */

/* Digest of abi.rs, cbindgen.toml and the lines above: 4ecf0a9b95fd975f86b14b61ba1137d50f29310d7b57db3cd2242e269ebcf6aa */
