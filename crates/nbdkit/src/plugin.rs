//! The calls of nbdkit, and their effects on the server.

use crate::abi::{
    FUA, FUA_NATIVE, HOLE_AND_ZERO, Handle, MAY_TRIM, PARALLEL, Plugin, nbdkit_add_extent,
    nbdkit_error, nbdkit_set_error, nbdkit_shutdown,
};
use flashatlas_serve::{
    Refused, ServeError, ServeSpec, Server, Wall, environment, on_file, with_plugins,
};
use flashatlas_sim::Parts;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

/// Writes a line to standard error. Errors are ignored, because a panic must not reach C.
macro_rules! say {
    ($($text:tt)*) => {
        _ = writeln!(std::io::stderr(), $($text)*)
    };
}

/// The exit status of a server whose drive lost power ([`ServeSpec::cut_after`],
/// [`ServeSpec::cut_at`]).
const POWER_LOST: c_int = 9;

/// `true` after SIGUSR1, which makes the power fail.
static CUT: AtomicBool = AtomicBool::new(false);
/// `true` after SIGUSR2, which ends serving immediately. nbdkit itself would wait for its clients.
static END: AtomicBool = AtomicBool::new(false);
/// Ensures that the end of serving runs only once.
static ENDED: Once = Once::new();

static PLAN: Mutex<Option<PathBuf>> = Mutex::new(None);
static SERVED: OnceLock<Served> = OnceLock::new();

struct Served {
    server: Server<Wall>,
    plan: ServeSpec,
    parts: Parts,
}

/// Time between two writes of the drive's state to the file of the plan.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time between two checks of [`END`] and of the parent.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

pub static PLUGIN: Plugin = Plugin {
    struct_size: size_of::<Plugin>() as u64,
    api_version: 2,
    thread_model: PARALLEL,
    name: c"flashatlas".as_ptr(),
    longname: c"FlashAtlas, a simulated flash drive".as_ptr(),
    version: concat_version(),
    description: c"a flash drive with its maps, served with real bytes".as_ptr(),
    load: None,
    unload: None,
    config: Some(config),
    config_complete: Some(config_complete),
    config_help: c"plan=FILE   the drive to serve (`flashatlas serve` writes this file)".as_ptr(),
    open: Some(open),
    close: None,
    get_size: Some(get_size),
    can_write: Some(yes),
    can_flush: Some(yes),
    is_rotational: Some(no),
    can_trim: Some(yes),
    version_1: [None; 5],
    errno_is_preserved: 0,
    dump_plugin: None,
    can_zero: Some(yes),
    can_fua: Some(fua_is_native),
    pread: Some(pread),
    pwrite: Some(pwrite),
    flush: Some(flush),
    trim: Some(trim),
    zero: Some(zero),
    magic_config_key: c"plan".as_ptr(),
    // all connections use one drive, and a FLUSH of one connection makes the writes of all
    // connections durable
    can_multi_conn: Some(yes),
    can_extents: Some(yes),
    extents: Some(extents),
    can_cache: None,
    cache: None,
    thread_model_now: None,
    can_fast_zero: None,
    preconnect: None,
    get_ready: Some(get_ready),
    after_fork: Some(after_fork),
    list_exports: None,
    default_export: None,
    export_description: None,
    cleanup: Some(cleanup),
    block_size: Some(block_size),
};

const fn concat_version() -> *const c_char {
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text.as_ptr(),
        Err(_) => c"".as_ptr(),
    }
}

/// Reports an error to nbdkit and the client. Returns -1.
fn complain(number: c_int, why: &str) -> c_int {
    let text = CString::new(why.replace('\0', " ")).expect("the text has no zero byte");
    // SAFETY: the format takes one text
    unsafe {
        nbdkit_set_error(number);
        nbdkit_error(c"%s".as_ptr(), text.as_ptr());
    }
    -1
}

/// Carries out a call, and catches the panic that a broken rule of the drive causes.
fn call(work: impl FnOnce(&Server<Wall>) -> Result<(), Refused>) -> c_int {
    let Some(Served { server, .. }) = SERVED.get() else {
        return complain(libc::EIO, "nothing is served");
    };
    if CUT.load(Ordering::Relaxed) {
        server.cut();
    }
    match catch_unwind(AssertUnwindSafe(|| work(server))) {
        Ok(Ok(())) => 0,
        Ok(Err(refused)) => {
            if server.gone() == Some(Refused::PowerLost) {
                power_lost();
            }
            if server.gone().is_some() {
                // SAFETY: nothing can be served any more
                unsafe { nbdkit_shutdown() };
            }
            let number = match refused {
                Refused::Range(_) => libc::EINVAL,
                Refused::NoSpace(_) => libc::ENOSPC,
                Refused::ReadOnly(_) => libc::EROFS,
                Refused::PowerLost | Refused::Unreadable(_) | Refused::Failed(_) => libc::EIO,
            };
            complain(number, &refused.to_string())
        }
        Err(_) => {
            // SAFETY: nothing can be served any more
            unsafe { nbdkit_shutdown() };
            complain(libc::EIO, "a rule of the drive was broken: see the message above")
        }
    }
}

/// Ends the process immediately, as a power failure would. Clients get no more replies.
fn power_lost() -> ! {
    say!("flashatlas: the power has failed");
    // SAFETY: this ends the process; the image was written, and nothing else must be saved
    unsafe { libc::_exit(POWER_LOST) }
}

unsafe extern "C" fn yes(_: Handle) -> c_int {
    1
}

unsafe extern "C" fn no(_: Handle) -> c_int {
    0
}

unsafe extern "C" fn fua_is_native(_: Handle) -> c_int {
    FUA_NATIVE
}

unsafe extern "C" fn config(key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: nbdkit gives texts
    let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
    let (key, value) = (key.to_string_lossy(), value.to_string_lossy());
    if key != "plan" {
        return complain(
            libc::EINVAL,
            &format!("{key}: there is no such parameter (allowed: plan)"),
        );
    }
    *PLAN.lock().unwrap_or_else(PoisonError::into_inner) = Some(PathBuf::from(value.as_ref()));
    0
}

unsafe extern "C" fn config_complete() -> c_int {
    if PLAN.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
        0
    } else {
        complain(libc::EINVAL, "plan=FILE is missing: give the file that describes the drive")
    }
}

extern "C" fn cut(_: c_int) {
    CUT.store(true, Ordering::Relaxed);
}

extern "C" fn end_now(_: c_int) {
    END.store(true, Ordering::Relaxed);
}

/// Powers the drive on before the socket exists, so that errors are reported before clients
/// connect.
unsafe extern "C" fn get_ready() -> c_int {
    let path = PLAN.lock().unwrap_or_else(PoisonError::into_inner).clone().expect("checked");
    let begun = catch_unwind(|| begin(&path)).unwrap_or_else(|_| Err("a rule was broken".into()));
    match begun {
        Ok(served) => {
            let found = served.server.found();
            for frame in &found.damaged {
                say!("flashatlas: the image holds no readable page in frame {frame}");
            }
            for block in &found.damaged_blocks {
                say!("flashatlas: the image's record of block {block} is damaged");
            }
            // threads that are started from here on wake up at the requested time, not 50 us later
            // SAFETY: changes the slack of this thread's timers
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            let (cut, end_now) = (cut as extern "C" fn(c_int), end_now as extern "C" fn(c_int));
            // SAFETY: each handler stores one atomic, and nothing else
            unsafe {
                libc::signal(libc::SIGUSR1, cut as libc::sighandler_t);
                libc::signal(libc::SIGUSR2, end_now as libc::sighandler_t);
            }
            let first = SERVED.set(served).is_ok();
            if first { 0 } else { complain(libc::EIO, "a drive is served already") }
        }
        Err(why) => complain(libc::EINVAL, &why),
    }
}

fn begin(path: &std::path::Path) -> Result<Served, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| told(&e))?;
    let plan: ServeSpec = serde_json::from_str(&text).map_err(|e| told(&e))?;
    let parts = with_plugins(&plan.plugins)?;
    let env = environment(&parts, &plan);
    match Server::begin_on(&plan, &env, on_file(&plan), crate::clock()) {
        Ok(server) => Ok(Served { server, plan, parts }),
        Err(ServeError::PowerLost) => power_lost(),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the number of the parent process: the process that started this process, or a process
/// that took its place.
fn parent() -> libc::pid_t {
    // SAFETY: always succeeds
    unsafe { libc::getppid() }
}

/// Starts two threads. One thread waits for [`END`], and for the end of the parent process. The
/// other thread writes the state of the drive to a file.
unsafe extern "C" fn after_fork() -> c_int {
    let begun_by = parent();
    // nbdkit may have asked for a signal at the end of its parent. The kernel sends this signal
    // when the thread ends that started this process, even if other threads of the parent go on
    // SAFETY: changes the signal, here to none
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
    std::thread::spawn(move || {
        while !END.load(Ordering::Relaxed) && parent() == begun_by {
            std::thread::sleep(LISTEN_EVERY);
        }
        end();
        // SAFETY: this ends the process; everything is closed, and clients lose their connections
        unsafe { libc::_exit(0) }
    });
    if let Some(Served { server, plan: ServeSpec { live: Some(path), .. }, .. }) = SERVED.get() {
        std::thread::spawn(move || {
            while let Ok(seen) = server.look() {
                let part = path.with_extension("part");
                let put = std::fs::write(&part, seen.to_string());
                if let Err(error) = put.and_then(|()| std::fs::rename(&part, path)) {
                    say!("flashatlas: {}: {error}", path.display());
                    return;
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
    }
    0
}

unsafe extern "C" fn open(_readonly: c_int) -> Handle {
    // all connections use one drive, so a handle can be any pointer that is not null
    std::ptr::without_provenance_mut(1)
}

unsafe extern "C" fn get_size(_: Handle) -> i64 {
    match SERVED.get() {
        Some(Served { server, .. }) => server.bytes() as i64,
        None => i64::from(complain(libc::EIO, "nothing is served")),
    }
}

unsafe extern "C" fn block_size(
    _: Handle,
    least: *mut u32,
    good: *mut u32,
    most: *mut u32,
) -> c_int {
    let Some(Served { server, .. }) = SERVED.get() else {
        return complain(libc::EIO, "nothing is served");
    };
    // SAFETY: nbdkit gives three places
    unsafe {
        *least = 512;
        *good = server.unit_bytes().clamp(512, 1 << 25).next_power_of_two();
        *most = 1 << 25;
    }
    0
}

unsafe extern "C" fn pread(
    _: Handle,
    buffer: *mut c_void,
    count: u32,
    offset: u64,
    _: u32,
) -> c_int {
    // SAFETY: nbdkit gives a buffer of that length
    let out = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count as usize) };
    call(|server| server.read(out, offset))
}

unsafe extern "C" fn pwrite(
    _: Handle,
    buffer: *const c_void,
    count: u32,
    offset: u64,
    flags: u32,
) -> c_int {
    // SAFETY: nbdkit gives a buffer of that length
    let data = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count as usize) };
    call(|server| server.write(data, offset, flags & FUA != 0))
}

unsafe extern "C" fn flush(_: Handle, _: u32) -> c_int {
    call(Server::flush)
}

unsafe extern "C" fn trim(_: Handle, count: u32, offset: u64, flags: u32) -> c_int {
    call(|server| server.trim(offset, count.into(), flags & FUA != 0))
}

unsafe extern "C" fn zero(_: Handle, count: u32, offset: u64, flags: u32) -> c_int {
    let (may_trim, fua) = (flags & MAY_TRIM != 0, flags & FUA != 0);
    call(|server| server.zero(offset, count.into(), may_trim, fua))
}

unsafe extern "C" fn extents(
    _: Handle,
    count: u32,
    offset: u64,
    _: u32,
    extents: *mut c_void,
) -> c_int {
    call(|server| {
        let mut at = offset;
        for (length, hole) in server.extents(offset, count.into())? {
            let kind = if hole { HOLE_AND_ZERO } else { 0 };
            // SAFETY: the list comes from nbdkit, and the ranges are added in order
            if unsafe { nbdkit_add_extent(extents, at, length, kind) } != 0 {
                return Err(Refused::Failed("the list of extents takes no more".into()));
            }
            at += length;
        }
        Ok(())
    })
}

/// Ends serving, after every connection was closed.
unsafe extern "C" fn cleanup() {
    end();
}

/// Ends serving once. A later caller waits until serving has ended.
fn end() {
    ENDED.call_once(finish);
}

fn finish() {
    let Some(Served { server, plan, parts }) = SERVED.get() else { return };
    let ended = catch_unwind(AssertUnwindSafe(|| server.end_in(&environment(parts, plan))));
    let said = match ended {
        Ok(ended) => ended,
        Err(_) => {
            say!("flashatlas: a rule of the drive was broken: there is no record");
            return;
        }
    };
    if let Some(why) = said.complaint {
        say!("flashatlas: {why}");
        if server.gone() == Some(Refused::PowerLost) {
            power_lost(); // the power failed in the last FLUSH
        }
    }
    if let (Some(path), Some(found)) = (&plan.record, said.record)
        && let Err(error) = std::fs::write(path, found.to_string())
    {
        say!("flashatlas: {}: {error}", path.display());
    }
}
