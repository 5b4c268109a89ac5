//! The task that looks for events again and again while one is likely to come.

use super::target::Work;
use crate::clock::now;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::Instant;

/// State of the polling.
#[derive(Default)]
struct State {
    /// Time until which the thread does not sleep; `None` if it may sleep.
    until: Option<Instant>,
    /// Work that waits for the media.
    waiting: Vec<Work>,
}

/// Keeps the door's thread awake for a while after each command and each answer.
///
/// A thread that sleeps takes tens of microseconds to wake up, and so does each change of threads.
/// While the poller is awake, one thread looks at the sockets and at the waiting work again and
/// again. After that, the threads of the pool wait for what is left.
pub(super) struct Poller {
    length: Duration,
    state: Mutex<State>,
    stirred: Notify,
}

impl Poller {
    /// Returns a poller that stays awake for `length` after each stir; zero for never.
    pub fn new(length: Duration) -> Poller {
        Poller { length, state: Mutex::default(), stirred: Notify::new() }
    }

    /// Keeps the thread awake from now on.
    pub fn stir(&self) {
        if self.length.is_zero() {
            return;
        }
        let until = now() + self.length;
        if self.lock().until.replace(until).is_none() {
            self.stirred.notify_one();
        }
    }

    /// Does the work when it is ready, if that can be seen and the poller is awake. Otherwise the
    /// pool of threads does it.
    pub fn take(&self, work: Work) {
        let mut state = self.lock();
        if state.until.is_some() && work.can_tell() {
            state.waiting.push(work);
        } else {
            drop(state);
            spawn(work);
        }
    }

    /// Polls after each stir, for ever.
    pub async fn run(&self) {
        loop {
            self.stirred.notified().await;
            while !self.is_over() {
                self.look();
                // the thread does what has become ready, looks at the sockets, and comes back
                yield_now().await;
            }
        }
    }

    /// Does the work that is ready.
    fn look(&self) {
        let mut waiting = std::mem::take(&mut self.lock().waiting);
        for ready in waiting.extract_if(.., |work| work.is_ready()) {
            run(ready).into_iter().for_each(|next| self.take(next));
        }
        self.lock().waiting.append(&mut waiting);
    }

    /// Returns `true` if the time is over. The pool of threads then waits for what is left.
    fn is_over(&self) -> bool {
        let mut state = self.lock();
        if state.until.is_some_and(|until| until > now()) {
            return false;
        }
        state.until = None;
        let left = std::mem::take(&mut state.waiting);
        drop(state);
        left.into_iter().for_each(spawn);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does work, and returns what is to be done next. As in a thread of the pool, a panic of the media
/// ends their command alone.
pub(super) fn run(work: Work) -> Vec<Work> {
    catch_unwind(AssertUnwindSafe(|| work.run())).unwrap_or_default()
}

/// Does work on the pool of threads, and then what is to be done next.
fn spawn(work: Work) {
    tokio::task::spawn_blocking(move || {
        // What is next goes to threads of its own, which the runtime of this one has.
        work.run().into_iter().for_each(spawn);
    });
}
