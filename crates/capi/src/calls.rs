//! The functions of the C ABI. `flashatlas.h` is generated from this file and `abi.rs`.
//!
//! The same safety rules hold for all functions: a pointer is null or points to its type, strings
//! end with a zero, a buffer has the room that the argument beside it names, a drive was made by
//! `fa_drive_create` and was not freed, and one thread at a time uses it.

#![allow(
    clippy::missing_safety_doc,
    reason = "the safety of every function here is described above"
)]

use crate::abi::{FA_DRIVE_ABI, FaCode, FaCommand, FaDone, FaGeometry, FaReply};
use crate::command::{Refusal, refuse};
use crate::drive::Drive;
use crate::guard::{given, put_error, said, string, text, unpanicked};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A drive. One thread at a time may use it. Two drives share no state.
pub struct FaDrive {
    drive: Drive,
    /// Error text of the last call that failed.
    error: CString,
    /// `true` if a call on this drive panicked.
    poisoned: bool,
}

impl FaDrive {
    /// Keeps the text of a refusal for `fa_drive_error`, and returns its code.
    fn say(&mut self, refusal: Refusal) -> c_int {
        self.error = text(refusal.text);
        refusal.code as c_int
    }
}

/// Carries out a call on a drive. Every error and every panic in the call is returned as a code.
///
/// # Safety
/// `drive` is null, or it was made by `fa_drive_create`, was not freed, and is used by this thread
/// alone.
unsafe fn on(drive: *mut FaDrive, work: impl FnOnce(&mut Drive) -> Result<(), Refusal>) -> c_int {
    // SAFETY: as the caller promises
    let Some(of) = (unsafe { drive.as_mut() }) else { return FaCode::FA_ERR_ARGUMENT as c_int };
    if of.poisoned {
        return FaCode::FA_ERR_PANIC as c_int;
    }
    // no call uses the drive after a panic, so its state after the panic is never used
    match catch_unwind(AssertUnwindSafe(|| work(&mut of.drive))) {
        Ok(Ok(())) => FaCode::FA_SUCCESS as c_int,
        Ok(Err(refusal)) => of.say(refusal),
        Err(panic) => {
            of.poisoned = true;
            of.say(Refusal { code: FaCode::FA_ERR_PANIC, text: said(&*panic) })
        }
    }
}

/// Returns the version of the library's interface: its `FA_DRIVE_ABI`.
#[unsafe(no_mangle)]
pub extern "C" fn fa_drive_abi() -> u32 {
    FA_DRIVE_ABI
}

/// Returns the version of FlashAtlas.
#[unsafe(no_mangle)]
pub extern "C" fn fa_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Makes a blank drive, which is switched on, at time zero.
///
/// `preset` is the name of a built-in drive, for example `tiny`. If `toml` is not null, it is the
/// text of a drive file, and `preset` is only the name of the drive in messages. The key `base` in
/// the file may name a preset that the file changes. `settings` points to `count` texts of the form
/// `key=value`. If the drive cannot be made, returns null and writes the reason to `error`. The
/// reason has at most `room` bytes, the zero included.
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
            // SAFETY: `settings` has `count` strings, and each string ends with a zero
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

/// Frees a drive. A null pointer is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_free(drive: *mut FaDrive) {
    if !drive.is_null() {
        // SAFETY: `drive` was made by `Box::into_raw`, and this is the last use of it
        let of = unsafe { Box::from_raw(drive) };
        // after a panic here, there is no drive left that could report it
        let _ = catch_unwind(AssertUnwindSafe(|| drop(of)));
    }
}

/// Returns the error text of the last failed call on a drive. It is valid until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_error(drive: *const FaDrive) -> *const c_char {
    // SAFETY: as the caller promises
    unsafe { drive.as_ref() }.map_or(c"the drive is null", |of| &of.error).as_ptr()
}

/// Writes the shape of the drive to `geometry`.
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

/// Submits a command at `now_ps`.
///
/// The effect of the command is decided immediately, and `fa_advance` reports its completion. `tag`
/// identifies the command until `fa_advance` fetches it. No other command in flight may have the
/// same tag, and the highest bit of a tag must be 0. `now_ps` must not be earlier than the last
/// submission, nor than the times that `fa_advance` has handled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_submit(
    drive: *mut FaDrive,
    now_ps: u64,
    tag: u64,
    command: *const FaCommand,
    reply: *mut FaReply,
) -> c_int {
    // SAFETY: as the caller promises; `submit` checks the buffers to which they point
    unsafe {
        on(drive, |drive| {
            let command = given(command.as_ref(), "command")?;
            drive.submit(now_ps, tag, command, reply.as_mut())
        })
    }
}

/// Writes the time of the drive's next event to `at_ps`, or `FA_NEVER` if there is none.
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

/// Handles all events up to and including `until_ps`, and fetches the commands that are complete by
/// then.
///
/// The call writes at most `room` commands to `done`, in order of time, and their number to
/// `count`. If more commands are complete, the next call begins with them. With `FA_NEVER`, the
/// drive runs until every command is complete, and stops there. Its background work then continues
/// in later calls. The result can be `FA_ERR_POWER_LOST` if a layer writes during the call. The
/// commands in `done` are complete even then.
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

/// Passes idle time. The host submits no command from `now_ps` until `until_ps`.
///
/// The drive may use this time for idle collection. The call does nothing while commands are in
/// flight.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_idle(drive: *mut FaDrive, now_ps: u64, until_ps: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.idle(now_ps, until_ps)) }
}

/// Writes every mapping unit once in ascending order, and makes all of them durable.
///
/// All bytes are zeros. The fill takes no simulated time. No command may be in flight. Counters are
/// not reset: see `fa_reset_counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_fill(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, Drive::fill) }
}

/// Cuts the power at `now_ps`.
///
/// Commands that are complete at that time can still be fetched. All other commands never complete,
/// and everything in the memory of the drive and its layers is lost. After a power failure, a real
/// medium may hold all, some or none of the writes in flight. This medium holds those that the
/// drive had sent to flash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_cut(drive: *mut FaDrive, now_ps: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.power_cut(now_ps)) }
}

/// Cuts the power in the operation after the next `operations` programs, erases and NVM stores.
///
/// If that operation is a program, it leaves a torn page. If it is an erase, it has not begun. The
/// call that needs the operation gets `FA_ERR_POWER_LOST`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_cut_after(drive: *mut FaDrive, operations: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.power_cut_after(operations)) }
}

/// Switches the power on at `now_ps`. The drive then mounts the content of the medium.
///
/// The call writes to `ready_ps` the time from which on the drive accepts commands. This time is an
/// estimate. `ready_ps` may be null.
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

/// Returns 1 if the power is on, and 0 if it is off or the drive is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_is_on(drive: *const FaDrive) -> c_int {
    // SAFETY: as the caller promises
    let on = unsafe { drive.as_ref() }.is_some_and(|of| !of.poisoned && of.drive.is_on());
    c_int::from(on)
}

/// Checks every rule of the drive's tables and of the medium. The check takes time in proportion to
/// the size of the drive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_check(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.check()) }
}

/// Sets counters and latencies to zero. The content of the drive does not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_reset_counters(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, Drive::reset_counters) }
}

/// Writes the record of the drive to `json`, as a JSON text. Free it with `fa_string_free`.
///
/// The record contains the counts since the drive was made or its counters were reset: commands
/// with their latencies, flash operations by cause, write amplification and wear. The power must be
/// on.
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

/// Writes the content of the drive to the file `path`.
///
/// The file can be read by `fa_checkpoint_load`, also in another process, and by
/// `flashatlas run --precondition checkpoint:FILE`. No command may be in flight. The call makes
/// everything durable and switches the drive off and on, in no simulated time. From then on, the
/// drive behaves like a drive that loaded the file. Counters start at zero, and a cut requested by
/// `fa_power_cut_after` is cancelled. The call writes `path`.new, and renames it to `path` when the
/// file is complete. The result is `FA_ERR_UNSUPPORTED` for drives with layers or with bytes
/// (`nand.data=ram`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_checkpoint_save(drive: *mut FaDrive, path: *const c_char) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.save(given(string(path, "path")?, "path")?)) }
}

/// Loads the content of a checkpoint into the drive. The clock and the settings do not change.
///
/// No command may be in flight. If the settings of the saved drive place pages on flash
/// differently, the call refuses the file and names the setting. If the file is damaged, the call
/// refuses it and names the byte. The drive is then unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_checkpoint_load(drive: *mut FaDrive, path: *const c_char) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.load(given(string(path, "path")?, "path")?)) }
}

/// Adds the parts of a shared library that was made with `flashatlas_plugin.h`.
///
/// Every drive that this process makes afterwards can use these parts by name. The reason for a
/// failure is written to `error`, as by `fa_drive_create`. The process ends if a callback does not
/// return within 30 s. From the first call on, the library handles SIGSEGV, SIGBUS, SIGFPE, SIGILL
/// and SIGABRT, in order to report the callback that raised the signal. A host that needs its own
/// handlers must not use plug-ins.
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

/// Frees a string that this library returned. A null pointer is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: `string` was made by `CString::into_raw`
        drop(unsafe { CString::from_raw(string) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No call of a host is known to panic, so the test itself panics inside a call.
    #[test]
    fn a_panic_is_a_code_and_the_drive_takes_no_more_calls() {
        let made = Drive::new("tiny", None, &[], 1).unwrap_or_else(|e| panic!("{}", e.text));
        let of = FaDrive { drive: made, error: CString::default(), poisoned: false };
        let drive = Box::into_raw(Box::new(of));
        // SAFETY: the drive is used here alone, and freed at the end
        unsafe {
            let code = on(drive, |_| std::panic::resume_unwind(Box::new("broken".to_owned())));
            assert_eq!(code, FaCode::FA_ERR_PANIC as c_int);
            let text = CStr::from_ptr(fa_drive_error(drive)).to_str().unwrap();
            assert_eq!(text, "the simulator failed: broken");
            assert_eq!(fa_check(drive), FaCode::FA_ERR_PANIC as c_int);
            assert_eq!(fa_is_on(drive), 0);
            fa_drive_free(drive);
        }
    }
}
