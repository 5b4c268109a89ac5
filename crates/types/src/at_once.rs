//! Work that is divided into shares. The shares run on several cores at the same time.

use std::panic::resume_unwind;

/// Returns the number of cores that this process may use, or 1 if it is not known.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of items that each core processes. A thread processes at least
/// `worth_a_thread` items. The caller could finish any smaller number before the thread had
/// started.
pub fn share(items: usize, worth_a_thread: usize) -> usize {
    if items <= worth_a_thread {
        worth_a_thread
    } else {
        items.div_ceil(cores()).max(worth_a_thread)
    }
}

/// Does `work` on every share at the same time and returns the results in the order of the shares.
///
/// This thread does the first share. Every other share runs on a thread of its own. If the work on
/// a share panics, this function panics too, after the other shares are done.
pub fn at_once<S: Send, R: Send>(
    shares: impl IntoIterator<Item = S>,
    work: impl Fn(S) -> R + Sync,
) -> Vec<R> {
    let mut shares = shares.into_iter();
    let Some(first) = shares.next() else { return Vec::new() };
    let work = &work;
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || work(share))).collect();
        let mut results = Vec::with_capacity(others.len() + 1);
        results.push(work(first));
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::at_once;
    use std::sync::Barrier;

    #[test]
    fn shares_are_worked_on_together_and_results_stand_in_their_order() {
        let all_here = Barrier::new(3);
        let work = |n: u32| {
            all_here.wait();
            n * n
        };
        assert_eq!(at_once([3, 1, 2], work), [9, 1, 4]);
        assert_eq!(at_once([0; 0], |n: u32| n), [0u32; 0]);
        let here = std::thread::current().id();
        assert_eq!(at_once([()], |()| std::thread::current().id()), [here]);
    }

    #[test]
    fn a_panic_goes_on_where_the_work_was_asked_for() {
        for bad in 0..2 {
            let panics = || at_once([0, 1], |n| assert!(n != bad, "share {n}"));
            let panic = std::panic::catch_unwind(panics).unwrap_err();
            assert_eq!(*panic.downcast_ref::<String>().unwrap(), format!("share {bad}"));
        }
    }
}
