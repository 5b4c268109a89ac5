//! The C ABI, as `flashatlas.h` has it: that file is made of this one.
//!
//! What is unsafe is the same everywhere, and said once: a pointer is null or what its type says,
//! strings end with a zero, buffers have the room that is said beside them, a drive came of
//! `fa_drive_create` and was not freed, and one thread at a time uses it.

#![allow(clippy::missing_safety_doc, reason = "said above, once for all of them")]

use crate::command::refuse;
use crate::drive::Drive;
use crate::guard::{given, on, put_error, string, text, unpanicked};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of this interface; `fa_drive_abi` says which one the library has.
pub const FA_DRIVE_ABI: u32 = 1;

/// No time: nothing is going to happen.
pub const FA_NEVER: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// The bytes of a sector.
pub const FA_SECTOR_BYTES: u32 = 512;

/// The latest time that is accepted, in picoseconds: 106 days.
pub const FA_LATEST: u64 = 0x7FFF_FFFF_FFFF_FFFF;

/// What a call came to. Of all but `FA_SUCCESS`, `fa_drive_error` says more. What was refused
/// changed nothing, unless said otherwise here.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaCode {
    /// Done.
    FA_SUCCESS = 0,
    /// A null pointer, a value that has no meaning, a buffer that is too small.
    FA_ERR_ARGUMENT = 1,
    /// The range is empty or ends beyond the drive.
    FA_ERR_RANGE = 2,
    /// This drive, or this version of the library, cannot do it.
    FA_ERR_UNSUPPORTED = 3,
    /// As many commands are in flight as the drive takes.
    FA_ERR_QUEUE_FULL = 4,
    /// The time lies before one that the drive has reached, or after `FA_LATEST`.
    FA_ERR_TIME = 5,
    /// The power is off: `fa_power_on`.
    FA_ERR_POWER_OFF = 6,
    /// The power failed in this call, as `fa_power_cut_after` asked for. The command may have been
    /// carried out in part, and is not complete.
    FA_ERR_POWER_LOST = 7,
    /// The data cannot be read. Other commands may follow.
    FA_ERR_UNREADABLE = 8,
    /// The drive cannot go on (no space, an erase or a program that failed): every later command
    /// gets this, until the power is switched off and on.
    FA_ERR_FAILED = 9,
    /// Commands are in flight, or the drive still works on something.
    FA_ERR_BUSY = 10,
    /// A rule of the drive does not hold: a defect of the simulator.
    FA_ERR_CHECK = 11,
    /// The simulator failed: the drive takes no call any more but `fa_drive_free`.
    FA_ERR_PANIC = 12,
}

/// What a command asks.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaOp {
    /// Read sectors.
    FA_OP_READ = 1,
    /// Write sectors.
    FA_OP_WRITE = 2,
    /// Make every completed write durable; `lba` and `sectors` are 0.
    FA_OP_FLUSH = 3,
    /// Forget the mapping units that lie whole inside the range.
    FA_OP_TRIM = 4,
}

/// A command. Set all of it to zero first: what is not supported yet must be 0, and is an error
/// otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaCommand {
    /// A `fa_op`.
    pub op: u32,
    /// 1: a write is durable when it is complete. Of other commands 0.
    pub fua: u32,
    /// The first sector of 512 bytes.
    pub lba: u64,
    /// How many.
    pub sectors: u32,
    /// The namespace: 0, the only one.
    pub namespace_id: u32,
    /// The stream of a write. Not supported yet: 0.
    pub stream: u32,
    /// The placement handle of a write. Not supported yet: 0.
    pub placement: u32,
    /// What is done to a zone. Not supported yet: 0.
    pub zone_command: u32,
    /// 0.
    pub reserved: u32,
    /// Names what a write writes: stamps are made of it. 0: the drive numbers its writes.
    pub content: u64,
    /// What a write writes, where the drive keeps bytes (`nand.data=ram`), else null.
    pub data: *const c_void,
    /// Bytes at `data`: `sectors` times 512, or 0.
    pub data_bytes: usize,
    /// 0.
    pub more: [u64; 4],
}

/// Where a read puts what it read. It is there when `fa_submit` returns; a host that models time
/// looks at it when the command is complete. Other commands need none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaReply {
    /// Room for the bytes of the range, where the drive keeps bytes; null: they are not wanted.
    pub data: *mut c_void,
    /// Bytes of room at `data`.
    pub data_room: usize,
    /// Bytes that were put there.
    pub data_bytes: usize,
    /// Room for a stamp of each mapping unit that the range touches; null: they are not wanted.
    /// 0 stands for a unit that nobody wrote.
    pub stamps: *mut u32,
    /// How many there is room for.
    pub stamp_room: usize,
    /// How many were put there.
    pub stamp_count: usize,
}

/// A command that is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaDone {
    /// Which.
    pub tag: u64,
    /// When, in picoseconds.
    pub at_ps: u64,
}

/// What a drive exports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaGeometry {
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Bytes of a mapping unit: writes of whole units need no read.
    pub unit_bytes: u32,
    /// Commands that may be in flight.
    pub queue_depth: u32,
    /// 1: bytes that are written are kept (`nand.data=ram`); 0: stamps stand for them.
    pub keeps_bytes: u32,
    /// 0.
    pub reserved: u32,
}

/// A drive. One thread at a time may use it; two drives have nothing in common.
pub struct FaDrive {
    pub(crate) drive: Drive,
    /// What the last call that failed came to.
    pub(crate) error: CString,
    /// It panicked.
    pub(crate) poisoned: bool,
}

/// The version of this interface that the library has: `FA_DRIVE_ABI`.
#[unsafe(no_mangle)]
pub extern "C" fn fa_drive_abi() -> u32 {
    FA_DRIVE_ABI
}

/// The version of FlashAtlas.
#[unsafe(no_mangle)]
pub extern "C" fn fa_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Make a drive: blank, switched on, at time zero. `preset` names one that comes with the project
/// (`tiny`); or, where `toml` is not null, the drive is what that text says (it may build on a
/// preset with `base`), and `preset` is what messages call it. Then come `count` settings of the
/// form `key=value`. Null where it cannot be made: `error` says why, in at most `room` bytes with
/// the zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_create(
    preset: *const c_char,
    toml: *const c_char,
    settings: *const *const c_char,
    count: usize,
    seed: u64,
    error: *mut c_char,
    room: usize,
) -> *mut FaDrive {
    let made = catch_unwind(|| {
        // SAFETY: as the caller promises, for each of the strings
        let (name, toml) = unsafe { (string(preset, "preset")?, string(toml, "toml")?) };
        if count > 0 && settings.is_null() {
            return Err(refuse(FaCode::FA_ERR_ARGUMENT, "`settings` is null"));
        }
        let one = |i| {
            // SAFETY: there are `count` of them, each of which ends with a zero
            let setting = unsafe { string(*settings.add(i), "settings")? };
            given(setting, "settings").map(str::to_owned)
        };
        let settings: Vec<String> = (0..count).map(one).collect::<Result<_, _>>()?;
        let name = match toml {
            Some(_) => name.unwrap_or("drive.toml"),
            None => given(name, "preset")?,
        };
        Drive::new(name, toml, &settings, seed)
    });
    match unpanicked(made) {
        Ok(drive) => {
            let of = FaDrive { drive, error: CString::default(), poisoned: false };
            Box::into_raw(Box::new(of))
        }
        Err(refusal) => {
            // SAFETY: as the caller promises
            unsafe { put_error(&refusal, error, room) };
            std::ptr::null_mut()
        }
    }
}

/// Free a drive; null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_free(drive: *mut FaDrive) {
    if !drive.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and this is the last use of it
        let of = unsafe { Box::from_raw(drive) };
        // nobody is left to tell
        let _ = catch_unwind(AssertUnwindSafe(|| drop(of)));
    }
}

/// What the last call on this drive that failed came to: a text that lasts until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_error(drive: *const FaDrive) -> *const c_char {
    // SAFETY: as the caller promises
    unsafe { drive.as_ref() }.map_or(c"the drive is null", |of| &of.error).as_ptr()
}

/// What the drive exports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_geometry(
    drive: *mut FaDrive,
    geometry: *mut FaGeometry,
) -> c_int {
    // SAFETY: as the caller promises
    let geometry = unsafe { geometry.as_mut() };
    // SAFETY: as the caller promises
    unsafe {
        on(drive, |drive| {
            *given(geometry, "geometry")? = drive.geometry();
            Ok(())
        })
    }
}

/// Submit a command at `now_ps`. What it does is decided at once; `fa_advance` says when it is
/// complete. `tag` names it until then: no other command in flight has it, and its highest bit is
/// 0. `now_ps` is not before the last submission, and not before what `fa_advance` has handled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_submit(
    drive: *mut FaDrive,
    now_ps: u64,
    tag: u64,
    command: *const FaCommand,
    reply: *mut FaReply,
) -> c_int {
    // SAFETY: as the caller promises; the buffers that they point to are looked at in `submit`
    unsafe {
        on(drive, |drive| {
            let command = given(command.as_ref(), "command")?;
            drive.submit(now_ps, tag, command, reply.as_mut())
        })
    }
}

/// When something happens next in the drive: `FA_NEVER`, or a time for `fa_advance`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_next_event(drive: *mut FaDrive, at_ps: *mut u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        on(drive, |drive| {
            *given(at_ps.as_mut(), "at_ps")? = drive.next_event();
            Ok(())
        })
    }
}

/// Let everything happen up to and including `until_ps`, and fetch what is complete by then in the
/// order of time: at most `room`; what remains comes first next time. `count` says how many are in
/// `done`. `FA_NEVER`: until every command is complete, and no further, for a host that waits; the
/// drive's own work goes on after that. `FA_ERR_POWER_LOST`, of a layer that writes meanwhile: what
/// is in `done` is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_advance(
    drive: *mut FaDrive,
    until_ps: u64,
    done: *mut FaDone,
    room: usize,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        on(drive, |drive| {
            let count = given(count.as_mut(), "count")?;
            *count = 0;
            if room > 0 && done.is_null() {
                return Err(refuse(FaCode::FA_ERR_ARGUMENT, "`done` is null"));
            }
            let ran = drive.run(until_ps);
            while *count < room
                && let Some(one) = drive.fetch(until_ps)
            {
                done.add(*count).write(one);
                *count += 1;
            }
            ran
        })
    }
}

/// The host asks for nothing from `now_ps` until `until_ps`: collection in idle time may use it.
/// While commands are in flight it does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_idle(drive: *mut FaDrive, now_ps: u64, until_ps: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.idle(now_ps, until_ps)) }
}

/// Write every mapping unit once, in ascending order, in no simulated time, and make it durable.
/// Bytes are zeros. The drive is idle. Counters go on: see `fa_reset_counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_fill(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, Drive::fill) }
}

/// The power fails at `now_ps`. Commands that are complete by then can still be fetched; the others
/// never complete, and everything in the drive's and its layers' memory is lost. Of writes in
/// flight the medium may have all, some or nothing: here it has what the drive had sent to flash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_cut(drive: *mut FaDrive, now_ps: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.power_cut(now_ps)) }
}

/// After `operations` more programs, erases and stores to NVM the power fails, in the next one: a
/// program leaves a torn page, an erase has not begun. The call that needs it gets
/// `FA_ERR_POWER_LOST`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_cut_after(drive: *mut FaDrive, operations: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.power_cut_after(operations)) }
}

/// The power is back at `now_ps`, and the drive mounts what is on the medium. From `ready_ps` on,
/// an estimate, it takes commands. `ready_ps` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_on(
    drive: *mut FaDrive,
    now_ps: u64,
    ready_ps: *mut u64,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        on(drive, |drive| {
            let ready = drive.power_on(now_ps)?;
            if let Some(place) = ready_ps.as_mut() {
                *place = ready;
            }
            Ok(())
        })
    }
}

/// Whether the power is on: 1 or 0, and 0 of null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_is_on(drive: *const FaDrive) -> c_int {
    // SAFETY: as the caller promises
    let on = unsafe { drive.as_ref() }.is_some_and(|of| !of.poisoned && of.drive.is_on());
    c_int::from(on)
}

/// Check every rule of the drive's tables and of the medium: takes time in proportion to the drive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_check(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.check()) }
}

/// Set counters and latencies to zero; what the drive holds stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_reset_counters(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, Drive::reset_counters) }
}

/// What the drive counted since it was made or its counters were reset, as JSON: commands with
/// their latencies, flash operations by cause, write amplification, wear. The power is on. `json`
/// gets a string for `fa_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_record_json(drive: *mut FaDrive, json: *mut *mut c_char) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        on(drive, |drive| {
            let place = given(json.as_mut(), "json")?;
            *place = std::ptr::null_mut();
            *place = text(drive.record()?.to_string()).into_raw();
            Ok(())
        })
    }
}

/// Write what the drive holds into a file, for `fa_checkpoint_load`, here or in another process,
/// and for `flashatlas run --precondition checkpoint:FILE`. No command is in flight. The drive is
/// switched off, with everything made durable, and on again, in no simulated time: from here on it
/// does what a drive does that loads the file. Counters begin anew, and a cut that was asked for
/// (`fa_power_cut_after`) is forgotten. The file is written beside its place, as `path`.new; one
/// that is there is replaced once the new one is whole. Drives with layers or with bytes
/// (`nand.data=ram`): `FA_ERR_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_checkpoint_save(drive: *mut FaDrive, path: *const c_char) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.save(given(string(path, "path")?, "path")?)) }
}

/// Hold what a checkpoint holds, instead of what the drive held; its clock and its settings stay.
/// No command is in flight. A file of a drive whose settings place pages on flash otherwise is
/// refused with the setting, and one that is damaged with the byte; the drive is then as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_checkpoint_load(drive: *mut FaDrive, path: *const c_char) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.load(given(string(path, "path")?, "path")?)) }
}

/// Add the parts of a shared library that was made with `flashatlas_plugin.h`: their names are
/// known to every drive that is made in this process afterwards. `error` says why not, as of
/// `fa_drive_create`. A callback that has not returned for 30 s ends the process. From the first
/// call on the library handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, to say which callback
/// they came in; a host that needs its own handlers must not use plug-ins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_plugin_load(
    path: *const c_char,
    error: *mut c_char,
    room: usize,
) -> c_int {
    let loaded = catch_unwind(|| {
        // SAFETY: as the caller promises
        crate::parts::load(given(unsafe { string(path, "path")? }, "path")?)
    });
    let Err(refusal) = unpanicked(loaded) else { return FaCode::FA_SUCCESS as c_int };
    // SAFETY: as the caller promises
    unsafe { put_error(&refusal, error, room) };
    refusal.code as c_int
}

/// Free a string of this library; null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: it was made by `CString::into_raw`
        drop(unsafe { CString::from_raw(string) });
    }
}
