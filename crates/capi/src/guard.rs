//! Checks at the interface. Pointers and strings are checked, errors become codes and texts, and
//! panics are caught.

use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use std::any::Any;
use std::ffi::{CStr, CString, c_char};

/// Returns a text for C. Zeros are removed, because they would end the text early.
pub fn text(mut text: String) -> CString {
    text.retain(|c| c != '\0');
    CString::new(text).expect("the text has no zero byte in it")
}

/// Describes a panic by its message.
pub fn said(panic: &(dyn Any + Send)) -> String {
    let what = (panic.downcast_ref::<String>().map(String::as_str))
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .map(str::to_owned)
        .or_else(|| panic.downcast_ref::<flashatlas_types::PartFault>().map(|f| f.to_string()));
    format!("the simulator failed: {}", what.as_deref().unwrap_or("the panic has no text"))
}

/// Returns the result of a call that belongs to no drive. A panic becomes a refusal.
pub fn unpanicked<T>(done: std::thread::Result<Result<T, Refusal>>) -> Result<T, Refusal> {
    done.unwrap_or_else(|panic| Err(Refusal { code: FaCode::FA_ERR_PANIC, text: said(&*panic) }))
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
