//! Checks at the interface. Pointers and strings are checked, errors become codes and texts, and
//! panics are caught.

use crate::abi::{FaCode, FaDrive};
use crate::command::{Refusal, refuse};
use crate::drive::Drive;
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl FaDrive {
    fn say(&mut self, refusal: Refusal) -> c_int {
        self.error = text(refusal.text);
        refusal.code as c_int
    }
}

/// Returns a text for C. Zeros are removed, because they would end the text early.
pub fn text(mut text: String) -> CString {
    text.retain(|c| c != '\0');
    CString::new(text).expect("no zero is left in it")
}

/// Describes a panic by its message.
fn said(panic: &(dyn Any + Send)) -> String {
    let what = (panic.downcast_ref::<String>().map(String::as_str))
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .map(str::to_owned)
        .or_else(|| panic.downcast_ref::<flashatlas_types::PartFault>().map(|f| f.to_string()));
    format!("the simulator failed: {}", what.as_deref().unwrap_or("it did not say why"))
}

/// Returns the result of a call that belongs to no drive. A panic becomes a refusal.
pub fn unpanicked<T>(done: std::thread::Result<Result<T, Refusal>>) -> Result<T, Refusal> {
    done.unwrap_or_else(|panic| Err(Refusal { code: FaCode::FA_ERR_PANIC, text: said(&*panic) }))
}

/// Carries out a call on a drive. Every error and every panic in the call is returned as a code.
///
/// # Safety
/// `drive` is null, or it was made by `fa_drive_create`, was not freed, and is used by this thread
/// alone.
pub unsafe fn on(
    drive: *mut FaDrive,
    work: impl FnOnce(&mut Drive) -> Result<(), Refusal>,
) -> c_int {
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

/// Returns the value in `place`, or an error if the pointer `name` was null.
pub fn given<T>(place: Option<T>, name: &str) -> Result<T, Refusal> {
    place.ok_or_else(|| refuse(FaCode::FA_ERR_ARGUMENT, format!("`{name}` is null")))
}

/// Returns a string of the host, or `Ok(None)` if the pointer is null.
///
/// # Safety
/// `string` is null or ends with a zero.
pub unsafe fn string<'a>(string: *const c_char, name: &str) -> Result<Option<&'a str>, Refusal> {
    if string.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises
    let string = unsafe { CStr::from_ptr(string) }.to_str();
    let refused = |_| refuse(FaCode::FA_ERR_ARGUMENT, format!("`{name}` is not UTF-8"));
    string.map(Some).map_err(refused)
}

/// Copies the text of a refusal to `error`, shortened to `room` bytes if it is longer. This is for
/// calls that have no drive.
///
/// # Safety
/// `error` is null or has room for `room` bytes.
pub unsafe fn put_error(refusal: &Refusal, error: *mut c_char, room: usize) {
    if error.is_null() || room == 0 {
        return;
    }
    let said = text(refusal.text.clone());
    let mut length = said.as_bytes().len().min(room - 1);
    while !refusal.text.is_char_boundary(length.min(refusal.text.len())) {
        length -= 1;
    }
    // SAFETY: `error` has room for `length` bytes and the zero, and a new string overlaps no buffer
    unsafe {
        error.copy_from_nonoverlapping(said.as_ptr(), length);
        *error.add(length) = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{fa_check, fa_drive_error, fa_drive_free, fa_is_on};

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

    #[test]
    fn an_error_that_has_no_room_ends_between_letters() {
        let refusal = refuse(FaCode::FA_ERR_ARGUMENT, "a…b");
        for (room, expected) in [(1, ""), (2, "a"), (4, "a"), (5, "a…"), (9, "a…b")] {
            let mut place = [1; 9];
            // SAFETY: `place` has at least `room` bytes
            unsafe { put_error(&refusal, place.as_mut_ptr(), room) };
            // SAFETY: it ends with a zero
            let got = unsafe { CStr::from_ptr(place.as_ptr()) };
            assert_eq!(got.to_str().unwrap(), expected);
        }
    }
}
