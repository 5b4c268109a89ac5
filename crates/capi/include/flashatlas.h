/*
 * libflashatlas: drives of FlashAtlas for the event loop of a program or of another simulator.
 *
 *     fa_drive *drive = fa_drive_create("tiny", NULL, NULL, 0, 1, why, sizeof why);
 *     fa_submit(drive, now, tag, &command, &reply);      its effect is decided immediately
 *     fa_next_event(drive, &at);                         call fa_advance at this time
 *     fa_advance(drive, at, done, 16, &count);           complete commands and times
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

// The version of this interface. `fa_drive_abi` returns the version of the library.
#define FA_DRIVE_ABI 1

// A time that never comes. It is the time of the next event if there is none.
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
  // The call succeeded.
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
  // The power failed during this call, as requested by `fa_power_cut_after`. The command may
  // have been carried out in part, and is not complete.
  FA_ERR_POWER_LOST = 7,
  // The data cannot be read. Other commands may follow.
  FA_ERR_UNREADABLE = 8,
  // The drive stopped, because it has no space or because an erase or a program failed. Every
  // later command gets this code until the power is switched off and on.
  FA_ERR_FAILED = 9,
  // Commands are in flight, or the drive still works on something.
  FA_ERR_BUSY = 10,
  // A rule of the drive does not hold. This is a defect of the simulator.
  FA_ERR_CHECK = 11,
  // The simulator failed. Every later call on the drive gets this code; only `fa_drive_free` is
  // of use.
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

// A drive. One thread at a time may use it. Two drives share no state.
typedef struct fa_drive fa_drive;

// Shape of the drive as its host sees it.
typedef struct fa_geometry {
  // Number of sectors of 512 bytes.
  uint64_t sectors;
  // Bytes of a mapping unit. A write of whole units needs no read.
  uint32_t unit_bytes;
  // Largest number of commands that may be in flight at the same time.
  uint32_t queue_depth;
  // 1 if the drive stores the bytes of writes (`nand.data=ram`); 0 if it stores stamps instead.
  uint32_t keeps_bytes;
  // Always 0.
  uint32_t reserved;
} fa_geometry;

// A command. Set the whole structure to zero first. A value other than 0 in a field that is not
// supported yet is an error.
typedef struct fa_command {
  // A `fa_op`.
  uint32_t op;
  // 1 if a write must be durable when it is complete; 0 for all other commands.
  uint32_t fua;
  // The first sector of 512 bytes.
  uint64_t lba;
  // Number of sectors.
  uint32_t sectors;
  // The namespace. It is 0, because a drive has only one.
  uint32_t namespace_id;
  // The stream of a write. Not supported yet, so it is 0.
  uint32_t stream;
  // The placement handle of a write. Not supported yet, so it is 0.
  uint32_t placement;
  // The command to a zone. Not supported yet, so it is 0.
  uint32_t zone_command;
  // Always 0.
  uint32_t reserved;
  // Number of a write's content. The stamps of the write are made from it. If it is 0, the drive
  // numbers the write.
  uint64_t content;
  // The bytes of a write if the drive stores bytes (`nand.data=ram`), otherwise null.
  const void *data;
  // Number of bytes at `data`: `sectors` times 512, or 0 if `data` is null.
  size_t data_bytes;
  // Always 0.
  uint64_t more[4];
} fa_command;

// Buffers for the result of a read. Other commands need no buffers.
//
// The result is in the buffers when `fa_submit` returns. A host that models time must not use it
// before the command is complete.
typedef struct fa_reply {
  // Buffer for the bytes of the range, if the drive stores bytes. Null if the host does not need
  // them.
  void *data;
  // Size of the buffer `data` in bytes.
  size_t data_room;
  // Number of bytes that were written to `data`.
  size_t data_bytes;
  // Buffer for the stamp of each mapping unit that the range touches. Null if the host does not
  // need them. The stamp of a unit that was never written is 0.
  uint32_t *stamps;
  // Size of the buffer `stamps`, in stamps.
  size_t stamp_room;
  // Number of stamps that were written to `stamps`.
  size_t stamp_count;
} fa_reply;

// A command that is complete.
typedef struct fa_done {
  // Tag of the command.
  uint64_t tag;
  // The time at which the command was complete, in picoseconds.
  uint64_t at_ps;
} fa_done;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library's interface: its `FA_DRIVE_ABI`.
uint32_t fa_drive_abi(void);

// Returns the version of FlashAtlas.
const char *fa_version(void);

// Makes a blank drive, which is switched on, at time zero.
//
// `preset` is the name of a built-in drive, for example `tiny`. If `toml` is not null, it is the
// text of a drive file, and `preset` is only the name of the drive in messages. The key `base` in
// the file may name a preset that the file changes. `settings` points to `count` texts of the form
// `key=value`. If the drive cannot be made, returns null and writes the reason to `error`. The
// reason has at most `room` bytes, the zero included.
struct fa_drive *fa_drive_create(const char *preset,
                                 const char *toml,
                                 const char *const *settings,
                                 size_t count,
                                 uint64_t seed,
                                 char *error,
                                 size_t room);

// Frees a drive. A null pointer is ignored.
void fa_drive_free(struct fa_drive *drive);

// Returns the error text of the last failed call on a drive. It is valid until the next call.
const char *fa_drive_error(const struct fa_drive *drive);

// Writes the shape of the drive to `geometry`.
int fa_drive_geometry(struct fa_drive *drive, struct fa_geometry *geometry);

// Submits a command at `now_ps`.
//
// The effect of the command is decided immediately, and `fa_advance` reports its completion. `tag`
// identifies the command until `fa_advance` fetches it. No other command in flight may have the
// same tag, and the highest bit of a tag must be 0. `now_ps` must not be earlier than the last
// submission, nor than the times that `fa_advance` has handled.
int fa_submit(struct fa_drive *drive,
              uint64_t now_ps,
              uint64_t tag,
              const struct fa_command *command,
              struct fa_reply *reply);

// Writes the time of the drive's next event to `at_ps`, or `FA_NEVER` if there is none.
int fa_next_event(struct fa_drive *drive, uint64_t *at_ps);

// Handles all events up to and including `until_ps`, and fetches the commands that are complete by
// then.
//
// The call writes at most `room` commands to `done`, in order of time, and their number to
// `count`. If more commands are complete, the next call begins with them. With `FA_NEVER`, the
// drive runs until every command is complete, and stops there. Its background work then continues
// in later calls. The result can be `FA_ERR_POWER_LOST` if a layer writes during the call. The
// commands in `done` are complete even then.
int fa_advance(struct fa_drive *drive,
               uint64_t until_ps,
               struct fa_done *done,
               size_t room,
               size_t *count);

// Passes idle time. The host submits no command from `now_ps` until `until_ps`.
//
// The drive may use this time for idle collection. The call does nothing while commands are in
// flight.
int fa_idle(struct fa_drive *drive, uint64_t now_ps, uint64_t until_ps);

// Writes every mapping unit once in ascending order, and makes all of them durable.
//
// All bytes are zeros. The fill takes no simulated time. No command may be in flight. Counters are
// not reset: see `fa_reset_counters`.
int fa_fill(struct fa_drive *drive);

// Cuts the power at `now_ps`.
//
// Commands that are complete at that time can still be fetched. All other commands never complete,
// and everything in the memory of the drive and its layers is lost. After a power failure, a real
// medium may hold all, some or none of the writes in flight. This medium holds those that the
// drive had sent to flash.
int fa_power_cut(struct fa_drive *drive, uint64_t now_ps);

// Cuts the power in the operation after the next `operations` programs, erases and NVM stores.
//
// If that operation is a program, it leaves a torn page. If it is an erase, it has not begun. The
// call that needs the operation gets `FA_ERR_POWER_LOST`.
int fa_power_cut_after(struct fa_drive *drive, uint64_t operations);

// Switches the power on at `now_ps`. The drive then mounts the content of the medium.
//
// The call writes to `ready_ps` the time from which on the drive accepts commands. This time is an
// estimate. `ready_ps` may be null.
int fa_power_on(struct fa_drive *drive, uint64_t now_ps, uint64_t *ready_ps);

// Returns 1 if the power is on, and 0 if it is off or the drive is null.
int fa_is_on(const struct fa_drive *drive);

// Checks every rule of the drive's tables and of the medium. The check takes time in proportion to
// the size of the drive.
int fa_check(struct fa_drive *drive);

// Sets counters and latencies to zero. The content of the drive does not change.
int fa_reset_counters(struct fa_drive *drive);

// Writes the record of the drive to `json`, as a JSON text. Free it with `fa_string_free`.
//
// The record contains the counts since the drive was made or its counters were reset: commands
// with their latencies, flash operations by cause, write amplification and wear. The power must be
// on.
int fa_record_json(struct fa_drive *drive, char **json);

// Writes the content of the drive to the file `path`.
//
// The file can be read by `fa_checkpoint_load`, also in another process, and by
// `flashatlas run --precondition checkpoint:FILE`. No command may be in flight. The call makes
// everything durable and switches the drive off and on, in no simulated time. From then on, the
// drive behaves like a drive that loaded the file. Counters start at zero, and a cut requested by
// `fa_power_cut_after` is cancelled. The call writes `path`.new, and renames it to `path` when the
// file is complete. The result is `FA_ERR_UNSUPPORTED` for drives with layers or with bytes
// (`nand.data=ram`).
int fa_checkpoint_save(struct fa_drive *drive, const char *path);

// Loads the content of a checkpoint into the drive. The clock and the settings do not change.
//
// No command may be in flight. If the settings of the saved drive place pages on flash
// differently, the call refuses the file and names the setting. If the file is damaged, the call
// refuses it and names the byte. The drive is then unchanged.
int fa_checkpoint_load(struct fa_drive *drive, const char *path);

// Adds the parts of a shared library that was made with `flashatlas_plugin.h`.
//
// Every drive that this process makes afterwards can use these parts by name. The reason for a
// failure is written to `error`, as by `fa_drive_create`. The process ends if a callback does not
// return within 30 s. From the first call on, the library handles SIGSEGV, SIGBUS, SIGFPE, SIGILL
// and SIGABRT, in order to report the callback that raised the signal. A host that needs its own
// handlers must not use plug-ins.
int fa_plugin_load(const char *path, char *error, size_t room);

// Frees a string that this library returned. A null pointer is ignored.
void fa_string_free(char *string);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FLASHATLAS_H */

/* Digest of abi.rs, calls.rs, cbindgen.toml and the lines above: 2b12bcc6826d77823bb1f8c5e6bbf3523c69b160c669fda40e75e2ac63fa9da6 */
