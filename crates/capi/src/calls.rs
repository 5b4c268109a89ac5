//! The functions of the C ABI. `flashatlas.h` is generated from this file and `abi.rs`.
//!
//! The same safety rules hold for all functions: a pointer is null or points to its type, strings
//! end with a zero, a buffer has the room that the argument beside it names, a drive was made by
//! `fa_drive_create` and was not freed, and one thread at a time uses it.

#![allow(clippy::missing_safety_doc, reason = "said above, once for all of them")]

use crate::abi::{FA_DRIVE_ABI, FaCode, FaCommand, FaDone, FaGeometry, FaReply};
use crate::command::{Refusal, refuse};
use crate::drive::Drive;
use crate::guard::{given, put_error, said, string, text, unpanicked};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A drive. One thread at a time may use it; two drives have nothing in common.
pub struct FaDrive {
    drive: Drive,
    /// Text of the last call that failed.
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

/// Carries out a call on a drive: anything that goes wrong in it leaves this function as a code.
///
/// # Safety
/// `drive` is null, or came of `fa_drive_create`, was not freed, and is used by this thread alone.
unsafe fn on(drive: *mut FaDrive, work: impl FnOnce(&mut Drive) -> Result<(), Refusal>) -> c_int {
    // SAFETY: as the caller promises
    let Some(of) = (unsafe { drive.as_mut() }) else { return FaCode::FA_ERR_ARGUMENT as c_int };
    if of.poisoned {
        return FaCode::FA_ERR_PANIC as c_int;
    }
    // no call uses the drive after a panic, so nobody sees the state that the panic left
    match catch_unwind(AssertUnwindSafe(|| work(&mut of.drive))) {
        Ok(Ok(())) => FaCode::FA_SUCCESS as c_int,
        Ok(Err(refusal)) => of.say(refusal),
        Err(panic) => {
            of.poisoned = true;
            of.say(Refusal { code: FaCode::FA_ERR_PANIC, text: said(&*panic) })
        }
    }
}

/// Returns the version of this interface that the library has: its `FA_DRIVE_ABI`.
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

/// Makes a drive: blank, switched on, at time zero.
///
/// `preset` names a drive that comes with the project (`tiny`). If `toml` is not null, it is the
/// text of a drive file, and `preset` is only the name of the drive in messages. The file may build
/// on a preset with `base`. `settings` are `count` texts of the form `key=value`. Returns null if
/// the drive cannot be made, and writes the reason to `error`: at most `room` bytes with the zero.
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

/// Frees a drive; does nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_drive_free(drive: *mut FaDrive) {
    if !drive.is_null() {
        // SAFETY: `drive` was made by `Box::into_raw`, and this is the last use of it
        let of = unsafe { Box::from_raw(drive) };
        // no drive is left whose error could tell of a panic
        let _ = catch_unwind(AssertUnwindSafe(|| drop(of)));
    }
}

/// Returns the text of the last call on this drive that failed. The text lasts until the next call.
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
/// The effect of the command is decided at once; `fa_advance` reports its completion. `tag` names
/// the command until `fa_advance` fetches it: no other command in flight may have the same tag, and
/// the highest bit of a tag is 0. `now_ps` is at or after the last submission, and at or after the
/// times that `fa_advance` has handled.
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

/// Writes the time of the drive's next event to `at_ps`: `FA_NEVER`, or a time for `fa_advance`.
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

/// Lets everything happen up to and including `until_ps`, and fetches the commands that are
/// complete by then.
///
/// The call writes at most `room` commands to `done`, in the order of time, and their number to
/// `count`. The next call begins with the other ones. `FA_NEVER` is for a host that waits: the
/// drive runs until every command is complete, and no further. Its own work goes on in later calls.
/// The result can be `FA_ERR_POWER_LOST` if a layer writes meanwhile: the commands in `done` are
/// complete all the same.
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

/// Passes idle time: the host asks for nothing from `now_ps` until `until_ps`.
///
/// Collection in idle time may use this time. The call does nothing while commands are in flight.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_idle(drive: *mut FaDrive, now_ps: u64, until_ps: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.idle(now_ps, until_ps)) }
}

/// Writes every mapping unit once, in ascending order, in no simulated time, and makes it durable.
///
/// All bytes are zeros. No command may be in flight. Counters go on: see `fa_reset_counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_fill(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, Drive::fill) }
}

/// Cuts the power at `now_ps`.
///
/// Commands that are complete by then can still be fetched. The others never complete, and
/// everything in the memory of the drive and its layers is lost. Of the writes in flight, real
/// media may hold all, some or none. This medium holds those that the drive had sent to flash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_cut(drive: *mut FaDrive, now_ps: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.power_cut(now_ps)) }
}

/// Cuts the power in the operation that follows `operations` more programs, erases and NVM stores.
///
/// If that operation is a program, it leaves a torn page; an erase has not begun. The call that
/// needs the operation gets `FA_ERR_POWER_LOST`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_power_cut_after(drive: *mut FaDrive, operations: u64) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.power_cut_after(operations)) }
}

/// Switches the power on at `now_ps`: the drive mounts what is on the medium.
///
/// The drive takes commands from `ready_ps` on. This time is an estimate. `ready_ps` may be null.
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

/// Returns 1 if the power is on, else 0; also 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_is_on(drive: *const FaDrive) -> c_int {
    // SAFETY: as the caller promises
    let on = unsafe { drive.as_ref() }.is_some_and(|of| !of.poisoned && of.drive.is_on());
    c_int::from(on)
}

/// Checks every rule of the drive's tables and of the medium. This takes time in proportion to the
/// size of the drive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_check(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.check()) }
}

/// Sets counters and latencies to zero; the content of the drive stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_reset_counters(drive: *mut FaDrive) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, Drive::reset_counters) }
}

/// Writes the record of the drive to `json`: a JSON text that `fa_string_free` frees.
///
/// The record has the counts since the drive was made or its counters were reset: commands with
/// their latencies, flash operations by cause, write amplification, wear. The power must be on.
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
/// `fa_checkpoint_load`, here or in another process, and `flashatlas run --precondition
/// checkpoint:FILE` read it. No command may be in flight. The call makes everything durable and
/// switches the drive off and on, in no simulated time. From then on the drive does the same as a
/// drive that loaded the file. Counters start at zero, and a cut that `fa_power_cut_after` asked
/// for is cancelled. The call writes `path`.new, and renames it to `path` once the file is whole.
/// The result is `FA_ERR_UNSUPPORTED` for drives with layers or with bytes (`nand.data=ram`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fa_checkpoint_save(drive: *mut FaDrive, path: *const c_char) -> c_int {
    // SAFETY: as the caller promises
    unsafe { on(drive, |drive| drive.save(given(string(path, "path")?, "path")?)) }
}

/// Loads the content of a checkpoint into the drive; clock and settings stay.
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
/// Every drive that is made in this process afterwards can use them by name. The reason for a
/// failure goes to `error`, as for `fa_drive_create`. A callback that has not returned for 30 s
/// ends the process. From the first call on, the library handles SIGSEGV, SIGBUS, SIGFPE, SIGILL
/// and SIGABRT, to name the callback that raised the signal. A host that needs its own handlers
/// must not use plug-ins.
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

/// Frees a string of this library; does nothing for null.
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

    /// No call of a host is known to panic, so the test panics in the drive's place.
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
