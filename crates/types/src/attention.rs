//! Interruption of long work by its caller.
//!
//! One request may cause any amount of work, such as the collection of hundreds of blocks. A
//! simulation must still end within half a second after the user stops it.
//!
//! Long work calls [`beat`] after each step. The caller gave a function `look` to [`attentive`].
//! Every 64 steps, [`beat`] calls `look`, which may end the work. If `look` must act at fixed
//! times, it reads a clock itself.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;

/// The payload of the panic that ends interrupted work.
#[derive(Debug)]
pub struct Interrupted;

/// The number of steps between two calls of `look`.
const STEPS: u32 = 64;

/// The number of steps that one block counts for when it is collected, merged or rewritten, and
/// then erased. The number equals the interval of `look`, so `look` is called at least once for
/// each block.
pub const BLOCK_STEPS: u32 = STEPS;

type Look = Box<dyn FnMut() -> bool>;

thread_local! {
    static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(STEPS) };
}

/// A guard that restores the previous `look`, even if the work unwinds.
struct Before(Option<Look>);

impl Drop for Before {
    fn drop(&mut self) {
        LOOK.set(self.0.take());
    }
}

/// Runs `work` on this thread and calls `look` at least once in every 64 steps of the work. The
/// work unwinds with [`Interrupted`] as soon as `look` returns `false`.
pub fn attentive<T>(look: impl FnMut() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    let _before = Before(LOOK.replace(Some(Box::new(look))));
    work()
}

/// Counts `steps` steps of work as done. A step takes at most about ten microseconds.
///
/// # Panics
/// Panics with [`Interrupted`] if the work is to end.
#[inline]
pub fn beat(steps: u32) {
    let left = LEFT.get();
    if left > steps {
        LEFT.set(left - steps);
    } else {
        look();
    }
}

#[cold]
fn look() {
    LEFT.set(STEPS);
    let goes_on = LOOK.with_borrow_mut(|look| look.as_mut().is_none_or(|look| look()));
    if !goes_on {
        resume_unwind(Box::new(Interrupted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[test]
    fn work_ends_when_somebody_looks_and_says_so() {
        let looks = Rc::new(Cell::new(0));
        let seen = looks.clone();
        let look = move || {
            seen.set(seen.get() + 1);
            seen.get() < 3
        };
        let steps = Cell::new(0);
        let endless = AssertUnwindSafe(|| {
            attentive(look, || {
                loop {
                    beat(1);
                    steps.set(steps.get() + 1);
                }
            })
        });
        let ended = catch_unwind(endless).unwrap_err();
        assert!(ended.downcast_ref::<Interrupted>().is_some());
        assert_eq!(looks.get(), 3);
        let steps = steps.get();
        assert!((2 * STEPS - 1..3 * STEPS).contains(&steps), "{steps}: a look every 64 steps");
        // the work is over, so `look` is not called any more
        (0..1_000).for_each(|_| beat(STEPS));
        assert_eq!(looks.get(), 3);
    }
}
