/*
 * libflashatlas: drives of FlashAtlas, driven by the event loop of a program or another simulator.
 *
 *     fa_drive *drive = fa_drive_create("tiny", NULL, NULL, 0, 1, why, sizeof why);
 *     fa_submit(drive, now, tag, &command, &reply);      what it does is decided at once
 *     fa_next_event(drive, &at);                         schedule yourself there
 *     fa_advance(drive, at, done, 16, &count);           what is complete, and when
 *
 * Times are picoseconds of simulated time, and the host keeps the clock. Functions that return an
 * int return a fa_code; fa_drive_error returns the sentence to the code. Drives share no state, and
 * one thread at a time may use a drive. The same calls give the same answers. For C++ there is
 * flashatlas.hpp. docs/howto/embed-a-drive.md explains the interface.
 *
 * Made of abi.rs and calls.rs in crates/capi/src by `make header`.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef FLASHATLAS_H
#define FLASHATLAS_H

#include <stddef.h>
#include <stdint.h>

// The version of this interface; `fa_drive_abi` returns the library's own.
#define FA_DRIVE_ABI 1

// A time that never comes: the time of the next event of a drive that has none.
#define FA_NEVER 18446744073709551615ull

// Bytes of a sector.
#define FA_SECTOR_BYTES 512

// The latest time that is accepted, in picoseconds: 106 days.
#define FA_LATEST 9223372036854775807

// Result of a call.
//
// `fa_drive_error` returns a text for every result but `FA_SUCCESS`. A refused call changed
// nothing, unless its code says otherwise here.
enum fa_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  FA_SUCCESS = 0,
  // A pointer is null, a value has no meaning, or a buffer is too small.
  FA_ERR_ARGUMENT = 1,
  // The range is empty or ends beyond the drive.
  FA_ERR_RANGE = 2,
  // This drive, or this version of the library, cannot carry out the call.
  FA_ERR_UNSUPPORTED = 3,
  // The queue is full: `queue_depth` commands are in flight.
  FA_ERR_QUEUE_FULL = 4,
  // The time lies before a time that the drive has reached, or after `FA_LATEST`.
  FA_ERR_TIME = 5,
  // The power is off: call `fa_power_on`.
  FA_ERR_POWER_OFF = 6,
  // The power failed in this call, as `fa_power_cut_after` asked for. The command may have been
  // carried out in part, and is not complete.
  FA_ERR_POWER_LOST = 7,
  // The data cannot be read. Other commands may follow.
  FA_ERR_UNREADABLE = 8,
  // The drive cannot go on (no space, or an erase or a program that failed): every later command
  // gets this code until the power is switched off and on.
  FA_ERR_FAILED = 9,
  // Commands are in flight, or the drive still works on something.
  FA_ERR_BUSY = 10,
  // A rule of the drive does not hold: this is a defect of the simulator.
  FA_ERR_CHECK = 11,
  // The simulator failed. Every later call on the drive gets this code: free the drive.
  FA_ERR_PANIC = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fa_code fa_code;
#else
typedef int32_t fa_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Operation of a command.
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
  // Trim the mapping units that lie whole inside the range.
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

// Shape of the drive that a host sees.
typedef struct fa_geometry {
  // Sectors of 512 bytes.
  uint64_t sectors;
  // Bytes of a mapping unit: writes of whole units need no read.
  uint32_t unit_bytes;
  // Commands that may be in flight at once.
  uint32_t queue_depth;
  // 1: the drive keeps the bytes of writes (`nand.data=ram`); 0: stamps stand for them.
  uint32_t keeps_bytes;
  // Always 0.
  uint32_t reserved;
} fa_geometry;

// A command. Set all of it to zero first: in a field that is not supported yet, every value but 0
// is an error.
typedef struct fa_command {
  // A `fa_op`.
  uint32_t op;
  // 1: the write is durable when it is complete. 0 for all other commands.
  uint32_t fua;
  // The first sector of 512 bytes.
  uint64_t lba;
  // Number of sectors.
  uint32_t sectors;
  // The namespace: 0, the only one.
  uint32_t namespace_id;
  // The stream of a write. Not supported yet: 0.
  uint32_t stream;
  // The placement handle of a write. Not supported yet: 0.
  uint32_t placement;
  // The command to a zone. Not supported yet: 0.
  uint32_t zone_command;
  // Always 0.
  uint32_t reserved;
  // Number of a write's content, from which stamps are made. 0: the drive numbers its writes.
  uint64_t content;
  // The bytes of a write if the drive keeps bytes (`nand.data=ram`), else null.
  const void *data;
  // Bytes at `data`: `sectors` times 512, or 0.
  size_t data_bytes;
  // Always 0.
  uint64_t more[4];
} fa_command;

// Buffers for the result of a read. Other commands need none.
//
// The result is there when `fa_submit` returns. A host that models time looks at it when the
// command is complete.
typedef struct fa_reply {
  // Room for the bytes of the range, if the drive keeps bytes; null: they are not wanted.
  void *data;
  // Bytes of room at `data`.
  size_t data_room;
  // Bytes that were put into `data`.
  size_t data_bytes;
  // Room for a stamp of each mapping unit that the range touches; null: they are not wanted. The
  // stamp of a unit that was never written is 0.
  uint32_t *stamps;
  // Number of stamps that `stamps` has room for.
  size_t stamp_room;
  // Number of stamps that were put into `stamps`.
  size_t stamp_count;
} fa_reply;

// A command that is complete.
typedef struct fa_done {
  // Tag of the command.
  uint64_t tag;
  // The time at which it was complete, in picoseconds.
  uint64_t at_ps;
} fa_done;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of this interface that the library has: its `FA_DRIVE_ABI`.
uint32_t fa_drive_abi(void);

// Returns the version of FlashAtlas.
const char *fa_version(void);

// Makes a drive: blank, switched on, at time zero.
//
// `preset` names a drive that comes with the project (`tiny`). If `toml` is not null, it is the
// text of a drive file, and `preset` is only the name of the drive in messages. The file may build
// on a preset with `base`. `settings` are `count` texts of the form `key=value`. Returns null if
// the drive cannot be made, and writes the reason to `error`: at most `room` bytes with the zero.
struct fa_drive *fa_drive_create(const char *preset,
                                 const char *toml,
                                 const char *const *settings,
                                 size_t count,
                                 uint64_t seed,
                                 char *error,
                                 size_t room);

// Frees a drive; does nothing for null.
void fa_drive_free(struct fa_drive *drive);

// Returns the text of the last call on this drive that failed. The text lasts until the next call.
const char *fa_drive_error(const struct fa_drive *drive);

// Writes the shape of the drive to `geometry`.
int fa_drive_geometry(struct fa_drive *drive, struct fa_geometry *geometry);

// Submits a command at `now_ps`.
//
// The effect of the command is decided at once; `fa_advance` reports its completion. `tag` names
// the command until `fa_advance` fetches it: no other command in flight may have the same tag, and
// the highest bit of a tag is 0. `now_ps` is at or after the last submission, and at or after the
// times that `fa_advance` has handled.
int fa_submit(struct fa_drive *drive,
              uint64_t now_ps,
              uint64_t tag,
              const struct fa_command *command,
              struct fa_reply *reply);

// Writes the time of the drive's next event to `at_ps`: `FA_NEVER`, or a time for `fa_advance`.
int fa_next_event(struct fa_drive *drive, uint64_t *at_ps);

// Lets everything happen up to and including `until_ps`, and fetches the commands that are
// complete by then.
//
// The call writes at most `room` commands to `done`, in the order of time, and their number to
// `count`. The next call begins with the other ones. `FA_NEVER` is for a host that waits: the
// drive runs until every command is complete, and no further. Its own work goes on in later calls.
// The result can be `FA_ERR_POWER_LOST` if a layer writes meanwhile: the commands in `done` are
// complete all the same.
int fa_advance(struct fa_drive *drive,
               uint64_t until_ps,
               struct fa_done *done,
               size_t room,
               size_t *count);

// Passes idle time: the host asks for nothing from `now_ps` until `until_ps`.
//
// Collection in idle time may use this time. The call does nothing while commands are in flight.
int fa_idle(struct fa_drive *drive, uint64_t now_ps, uint64_t until_ps);

// Writes every mapping unit once, in ascending order, in no simulated time, and makes it durable.
//
// All bytes are zeros. No command may be in flight. Counters go on: see `fa_reset_counters`.
int fa_fill(struct fa_drive *drive);

// Cuts the power at `now_ps`.
//
// Commands that are complete by then can still be fetched. The others never complete, and
// everything in the memory of the drive and its layers is lost. Of the writes in flight, real
// media may hold all, some or none. This medium holds those that the drive had sent to flash.
int fa_power_cut(struct fa_drive *drive, uint64_t now_ps);

// Cuts the power in the operation that follows `operations` more programs, erases and NVM stores.
//
// If that operation is a program, it leaves a torn page; an erase has not begun. The call that
// needs the operation gets `FA_ERR_POWER_LOST`.
int fa_power_cut_after(struct fa_drive *drive, uint64_t operations);

// Switches the power on at `now_ps`: the drive mounts what is on the medium.
//
// The drive takes commands from `ready_ps` on. This time is an estimate. `ready_ps` may be null.
int fa_power_on(struct fa_drive *drive, uint64_t now_ps, uint64_t *ready_ps);

// Returns 1 if the power is on, else 0; also 0 for null.
int fa_is_on(const struct fa_drive *drive);

// Checks every rule of the drive's tables and of the medium. This takes time in proportion to the
// size of the drive.
int fa_check(struct fa_drive *drive);

// Sets counters and latencies to zero; the content of the drive stays.
int fa_reset_counters(struct fa_drive *drive);

// Writes the record of the drive to `json`: a JSON text that `fa_string_free` frees.
//
// The record has the counts since the drive was made or its counters were reset: commands with
// their latencies, flash operations by cause, write amplification, wear. The power must be on.
int fa_record_json(struct fa_drive *drive, char **json);

// Writes the content of the drive to the file `path`.
//
// `fa_checkpoint_load`, here or in another process, and `flashatlas run --precondition
// checkpoint:FILE` read it. No command may be in flight. The call makes everything durable and
// switches the drive off and on, in no simulated time. From then on the drive does the same as a
// drive that loaded the file. Counters start at zero, and a cut that `fa_power_cut_after` asked
// for is cancelled. The call writes `path`.new, and renames it to `path` once the file is whole.
// The result is `FA_ERR_UNSUPPORTED` for drives with layers or with bytes (`nand.data=ram`).
int fa_checkpoint_save(struct fa_drive *drive, const char *path);

// Loads the content of a checkpoint into the drive; clock and settings stay.
//
// No command may be in flight. If the settings of the saved drive place pages on flash
// differently, the call refuses the file and names the setting. If the file is damaged, the call
// refuses it and names the byte. The drive is then unchanged.
int fa_checkpoint_load(struct fa_drive *drive, const char *path);

// Adds the parts of a shared library that was made with `flashatlas_plugin.h`.
//
// Every drive that is made in this process afterwards can use them by name. The reason for a
// failure goes to `error`, as for `fa_drive_create`. A callback that has not returned for 30 s
// ends the process. From the first call on, the library handles SIGSEGV, SIGBUS, SIGFPE, SIGILL
// and SIGABRT, to name the callback that raised the signal. A host that needs its own handlers
// must not use plug-ins.
int fa_plugin_load(const char *path, char *error, size_t room);

// Frees a string of this library; does nothing for null.
void fa_string_free(char *string);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FLASHATLAS_H */

/* Digest of abi.rs, calls.rs, cbindgen.toml and the lines above: 69bbc7b04af214edb27cc0cabbcaf7ead0c9eb8719e41c6107ba92a317af4262 */
