//! The functions of `fa_host`, which the firmware calls. Each function finds the current session,
//! and catches panics.

use super::host::{HostCell, Session, Wrong};
use crate::abi::{FaHost, FaSpare, FaStatus};
use FaStatus::{FA_OK, FA_REFUSED};
use flashatlas_types::OpId;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Bytes before each allocation, which hold its length. With 16 bytes, allocations stay aligned.
const HEADER: usize = 16;

/// Returns the functions for a firmware whose cell is at `context`.
pub(super) fn table(context: *mut c_void) -> FaHost {
    FaHost {
        context,
        read,
        program,
        copy,
        erase,
        spare,
        is_bad,
        erases,
        access,
        last,
        after,
        now,
        fail,
        allocate,
        release,
    }
}

/// Carries out a function of the host. `serve` gets the session of the current call.
///
/// A panic does not leave this function, because it must not pass through C code.
///
/// # Safety
/// `host` is the host that was passed to the firmware.
unsafe fn serve<T>(
    host: *const FaHost,
    function: &'static str,
    otherwise: T,
    serve: impl FnOnce(&mut Session<'_, '_>) -> T,
) -> T {
    // SAFETY: the context is the cell, which lives as long as the firmware
    let cell = unsafe { &*(*host).context.cast::<HostCell>() };
    // SAFETY: the pointer is set only while the session lives, and nothing else uses it meanwhile
    let Some(session) = (unsafe { cell.session.get().cast::<Session<'_, '_>>().as_mut() }) else {
        cell.stray.set(Some(function));
        return otherwise;
    };
    match catch_unwind(AssertUnwindSafe(|| serve(session))) {
        Ok(answer) => answer,
        Err(panic) => {
            session.wrong.get_or_insert(Wrong::Panic(panic));
            otherwise
        }
    }
}

fn status(done: Result<(), FaStatus>) -> FaStatus {
    done.map_or_else(|status| status, |()| FA_OK)
}

unsafe extern "C" fn read(
    host: *const FaHost,
    page: u32,
    offset: u32,
    bytes: u32,
    buffer: *mut c_void,
) -> FaStatus {
    // SAFETY: as the header says, the buffer has room for this number of bytes
    unsafe {
        serve(host, "read", FA_REFUSED, |session| {
            if buffer.is_null() {
                return session.refuse("a read has a null buffer".into());
            }
            let buffer = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes as usize);
            status(session.read(page, offset, buffer))
        })
    }
}

unsafe extern "C" fn program(host: *const FaHost, page: u32, data: *const c_void) -> FaStatus {
    // SAFETY: as the header says, `data` has a page of bytes
    unsafe {
        serve(host, "program", FA_REFUSED, |session| {
            if data.is_null() {
                return session.refuse("a program has a null buffer".into());
            }
            let frame = match session.frame("program", page) {
                Ok(frame) => frame,
                Err(status) => return status,
            };
            let bytes = session.state.shadow.layout.unit_bytes as usize;
            let data = std::slice::from_raw_parts(data.cast::<u8>(), bytes);
            match session.content(data) {
                Ok((unit, from, arrived)) => session.program_unit(frame, &unit, from, arrived),
                Err(status) => status,
            }
        })
    }
}

unsafe extern "C" fn copy(host: *const FaHost, from: u32, to: u32) -> FaStatus {
    // SAFETY: as of `serve`
    unsafe {
        serve(host, "copy", FA_REFUSED, |session| session.copy(from, to).unwrap_or_else(|s| s))
    }
}

unsafe extern "C" fn erase(host: *const FaHost, block: u32) -> FaStatus {
    // SAFETY: as of `serve`
    unsafe { serve(host, "erase", FA_REFUSED, |session| status(session.erase(block))) }
}

unsafe extern "C" fn spare(host: *const FaHost, page: u32, spare: *mut FaSpare) -> FaStatus {
    // SAFETY: `spare` is null or has room for one
    unsafe {
        serve(host, "spare", FA_REFUSED, |session| match (session.spare(page), spare.as_mut()) {
            (Ok(found), Some(spare)) => {
                *spare = found;
                FA_OK
            }
            (Ok(_), None) => session.refuse("a read of a spare area has a null pointer".into()),
            (Err(status), _) => status,
        })
    }
}

unsafe extern "C" fn is_bad(host: *const FaHost, block: u32) -> bool {
    // SAFETY: as of `serve`
    unsafe {
        serve(host, "is_bad", true, |session| {
            session.block("is_bad", block).is_ok_and(|b| session.cx.flash.medium.is_bad(b))
        })
    }
}

unsafe extern "C" fn erases(host: *const FaHost, block: u32) -> u32 {
    // SAFETY: as of `serve`
    unsafe {
        serve(host, "erases", 0, |session| {
            session.block("erases", block).map_or(0, |b| session.cx.flash.medium.erases(b))
        })
    }
}

unsafe extern "C" fn access(
    host: *const FaHost,
    memory: u32,
    accesses: u32,
    bytes: u32,
    write: bool,
) {
    // SAFETY: as of `serve`
    unsafe { serve(host, "access", (), |session| session.access(memory, accesses, bytes, write)) }
}

unsafe extern "C" fn last(host: *const FaHost) -> u64 {
    // SAFETY: as of `serve`
    unsafe { serve(host, "last", 0, |session| session.state.chain.0) }
}

unsafe extern "C" fn after(host: *const FaHost, operations: *const u64, count: u32) {
    // SAFETY: `operations` is null or has `count` numbers
    unsafe {
        serve(host, "after", (), |session| {
            let named = if operations.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts(operations, count as usize)
            };
            let next = session.cx.flash.plan.next_id().0;
            match named.iter().find(|&&op| op >= next) {
                Some(op) => drop(
                    session
                        .refuse(format!("`after` names operation {op}, which does not exist yet")),
                ),
                None => session.after = Some(named.iter().map(|&op| OpId(op)).collect()),
            }
        });
    }
}

unsafe extern "C" fn now(host: *const FaHost) -> u64 {
    // SAFETY: as of `serve`
    unsafe { serve(host, "now", 0, |session| session.cx.command.now.0) }
}

unsafe extern "C" fn fail(host: *const FaHost, why: *const c_char) {
    // SAFETY: `why` is null or a text
    unsafe {
        serve(host, "fail", (), |session| {
            if !why.is_null() {
                session.why = Some(CStr::from_ptr(why).to_string_lossy().into_owned());
            }
        });
    }
}

unsafe extern "C" fn allocate(host: *const FaHost, bytes: u64) -> *mut c_void {
    // SAFETY: the context is the cell; the memory from `calloc` has room for the header and the
    // bytes
    unsafe {
        let cell = &*(*host).context.cast::<HostCell>();
        let Some(whole) = usize::try_from(bytes).ok().and_then(|b| b.checked_add(HEADER)) else {
            return ptr::null_mut();
        };
        let at = libc::calloc(1, whole).cast::<u8>();
        if at.is_null() {
            return ptr::null_mut();
        }
        at.cast::<u64>().write(bytes);
        cell.allocated.set(cell.allocated.get() + bytes);
        cell.allocations.set(cell.allocations.get() + 1);
        at.add(HEADER).cast()
    }
}

unsafe extern "C" fn release(host: *const FaHost, at: *mut c_void) {
    if at.is_null() {
        return;
    }
    // SAFETY: the context is the cell; `at` came from `allocate`
    unsafe {
        let cell = &*(*host).context.cast::<HostCell>();
        let at = at.cast::<u8>().sub(HEADER);
        cell.allocated.set(cell.allocated.get() - at.cast::<u64>().read());
        cell.allocations.set(cell.allocations.get() - 1);
        libc::free(at.cast());
    }
}
