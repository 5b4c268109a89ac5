//! Watch over the calls of plug-ins. If a call never returns or crashes the process, a message
//! names the call.

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

/// Time between two checks of the watch.
const LOOK: Duration = Duration::from_millis(100);

/// Time in milliseconds after which a call counts as a call that never returns.
static PATIENCE: AtomicU64 = AtomicU64::new(0);

/// The exit code of a process that the watch ends.
pub const EXIT: i32 = 70;

/// The current call of a thread. A name is the address of a static string and its length.
#[derive(Default)]
struct Slot {
    part: (AtomicPtr<u8>, AtomicUsize),
    callback: (AtomicPtr<u8>, AtomicUsize),
    now: AtomicU64,
    /// Number of entries and exits so far; it is odd during a call.
    calls: AtomicU64,
}

/// Slots of all threads that ever called a plug-in.
static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    /// Slot of this thread. It is never freed, since a signal handler may read it at any time.
    static MINE: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}

fn slot() -> &'static Slot {
    MINE.get().unwrap_or_else(|| {
        let slot = Arc::new(Slot::default());
        SLOTS.lock().expect("no thread panics while it holds the lock").push(Arc::clone(&slot));
        // SAFETY: one reference is never dropped, so the slot lives as long as the process
        let mine: &'static Slot = unsafe { &*Arc::into_raw(slot) };
        MINE.set(Some(mine));
        mine
    })
}

/// A call of a plug-in. The call ends when this value is dropped.
pub struct Call(&'static Slot);

/// Notes that `callback` of `part` is called at simulated time `now`, in picoseconds.
#[inline]
pub fn enter(part: &'static str, callback: &'static str, now: u64) -> Call {
    let slot = slot();
    slot.part.0.store(part.as_ptr().cast_mut(), Relaxed);
    slot.part.1.store(part.len(), Relaxed);
    slot.callback.0.store(callback.as_ptr().cast_mut(), Relaxed);
    slot.callback.1.store(callback.len(), Relaxed);
    slot.now.store(now, Relaxed);
    slot.step();
    Call(slot)
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        self.0.step();
    }
}

impl Slot {
    /// Counts one more entry or exit. Only the thread of the slot calls this.
    #[inline]
    fn step(&self) {
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
    }

    fn text(name: &(AtomicPtr<u8>, AtomicUsize)) -> &'static str {
        let (at, len) = (name.0.load(Relaxed), name.1.load(Relaxed));
        if at.is_null() {
            return "";
        }
        // SAFETY: `enter` stores address and length of a static string; at worst a message mixes
        // two names
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(at, len)) }
    }

    /// Writes part, callback and time (`page-c: callback write, …`) without allocating memory.
    fn describe(&self, out: &mut impl Write) -> std::io::Result<()> {
        let (part, callback) = (Slot::text(&self.part), Slot::text(&self.callback));
        write!(
            out,
            "{part}: callback `{callback}`, called at simulated time {}",
            self.now.load(Relaxed)
        )?;
        out.write_all(b" ps")
    }
}

/// Watches this process. A call that takes `patience` or longer ends the process with [`EXIT`].
///
/// A signal during a call ends the process as it would without the watch, after a message that
/// names the call.
pub fn begin(patience: Duration) {
    static BEGUN: Once = Once::new();
    PATIENCE.store(patience.as_millis() as u64, Relaxed);
    BEGUN.call_once(|| {
        std::thread::Builder::new()
            .name("plugin watchdog".into())
            .spawn(look)
            .expect("one more thread can start");
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT] {
            // SAFETY: the handler calls only functions that are allowed in a signal handler. It
            // runs once, and on the signal stack if the thread has one
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
                action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    });
}

fn look() {
    let mut seen: Vec<(u64, u32)> = Vec::new();
    loop {
        std::thread::sleep(LOOK);
        let slots = SLOTS.lock().expect("no thread panics while it holds the lock");
        seen.resize(slots.len(), (0, 0));
        for (slot, (before, same)) in slots.iter().zip(&mut seen) {
            let calls = slot.calls.load(Relaxed);
            *same = if calls == *before && calls % 2 == 1 { *same + 1 } else { 0 };
            *before = calls;
            let patience = Duration::from_millis(PATIENCE.load(Relaxed));
            if LOOK * *same >= patience {
                let mut line = Line::default();
                let _ = write!(line, "error: ");
                let _ = slot.describe(&mut line);
                let _ = writeln!(line, ", has not returned for {patience:?}");
                line.print();
                // SAFETY: the process ends here, and no buffer must be written before
                unsafe { libc::_exit(EXIT) };
            }
        }
    }
}

/// A text of fixed size that needs no allocation, because signal handlers must not allocate.
struct Line {
    text: [u8; 400],
    len: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line { text: [0; 400], len: 0 }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.text.len() - self.len);
        self.text[self.len..self.len + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
        Ok(taken.max(usize::from(bytes.is_empty())))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Line {
    fn print(&self) {
        // SAFETY: the line has this length; if standard error is closed, the line is lost
        unsafe { libc::write(2, self.text.as_ptr().cast(), self.len) };
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    let name = match signal {
        libc::SIGSEGV => "an invalid memory access",
        libc::SIGBUS => "a bus error",
        libc::SIGFPE => "an arithmetic fault",
        libc::SIGILL => "an illegal instruction",
        _ => "abort, or an exception that nobody caught",
    };
    if let Ok(Some(slot)) = MINE.try_with(Cell::get)
        && slot.calls.load(Relaxed) % 2 == 1
    {
        let mut line = Line::default();
        let _ = write!(line, "error: ");
        let _ = slot.describe(&mut line);
        let _ = writeln!(line, ": {name} ended the process");
        line.print();
    }
    // SAFETY: the default action is in place again (SA_RESETHAND)
    unsafe { libc::raise(signal) };
}
