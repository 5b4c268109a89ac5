//! Independent pieces of work on all cores.

use flashatlas_types::cores;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Time between two reports of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Calls `work` for each number below `count`, on `threads` threads (0 means one per core).
///
/// `work` may check the flag that asks it to stop. `progress` is called on the calling thread with
/// the number of results so far, and returns `false` to stop the work. Returns the results with
/// their numbers, and `true` if the work was stopped. A panic in one call of `work` stops the other
/// calls, and then continues on the calling thread.
pub fn each<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
    progress: &mut dyn FnMut(usize) -> bool,
) -> (Vec<(usize, T)>, bool) {
    let threads = if threads == 0 { cores() } else { threads }.min(count);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (mut results, mut panicked) = (Vec::new(), None);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            let (work, next, stop) = (&work, &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let done = catch_unwind(AssertUnwindSafe(|| work(at, stop)));
                    let failed = done.is_err();
                    if failed {
                        stop.store(true, Ordering::Relaxed);
                    }
                    if sender.send((at, done)).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(PROGRESS_EVERY) {
                Ok((at, Ok(result))) => results.push((at, result)),
                Ok((_, Err(panic))) => panicked = Some(panic),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if !stop.load(Ordering::Relaxed) && !progress(results.len()) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    if let Some(panic) = panicked {
        resume_unwind(panic);
    }
    results.sort_by_key(|(at, _)| *at);
    (results, stop.into_inner())
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn each_number_is_worked_on_once_until_somebody_says_stop() {
        let (done, stopped) = each(100, 4, |n, _| n * n, &mut |_| true);
        assert!(!stopped && done == (0..100).map(|n| (n, n * n)).collect::<Vec<_>>());
        let (done, stopped) = each(1 << 40, 2, |n, _| n, &mut |done| done < 50);
        let panics = || each(100, 2, |n, _| assert!(n != 7, "seven"), &mut |_| true);
        let panic = std::panic::catch_unwind(panics).unwrap_err();
        assert_eq!(*panic.downcast_ref::<&str>().unwrap(), "seven");
        assert!(stopped && (50..1 << 20).contains(&done.len()), "{}", done.len());
    }
}
