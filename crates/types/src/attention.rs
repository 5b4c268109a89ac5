//! Long work that lets its caller look up. One request may cause any amount of work, such as the
//! collection of hundreds of blocks, and a simulation must still end within half a second of the
//! user's wish.
//!
//! Work calls [`beat`] as it goes on. The caller is told of it and may end the work
//! ([`attentive`]). The clock that decides how often the caller looks is the caller's own.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;

/// The payload with which ended work unwinds.
#[derive(Debug)]
pub struct Interrupted;

/// The number of steps between two looks.
const STEPS: u32 = 64;

/// The number of steps of a block that is erased: of its collection, its merge or its rewrite. The
/// caller looks for each block.
pub const BLOCK_STEPS: u32 = STEPS;

type Look = Box<dyn FnMut() -> bool>;

thread_local! {
    static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(STEPS) };
}

/// A guard that puts the previous look back, even if the work unwinds.
struct Before(Option<Look>);

impl Drop for Before {
    fn drop(&mut self) {
        LOOK.set(self.0.take());
    }
}

/// Runs `work` on this thread and calls `look` at least once in every 64 of its steps. The work
/// unwinds with [`Interrupted`] as soon as `look` returns `false`.
pub fn attentive<T>(look: impl FnMut() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    let _before = Before(LOOK.replace(Some(Box::new(look))));
    work()
}

/// Notes that `steps` steps of work are done, each of at most some ten microseconds.
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
        assert!((2 * STEPS - 1..3 * STEPS).contains(&steps), "{steps}: every 64 somebody looks");
        // nobody listens any more
        (0..1_000).for_each(|_| beat(STEPS));
        assert_eq!(looks.get(), 3);
    }
}
