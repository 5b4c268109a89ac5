//! Associations of hosts with controllers: what the connections of one host share.

use crate::clock::now;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// News for the connections of an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct News {
    /// The association is over.
    pub is_over: bool,
    /// Commands of the admin queue that are complete.
    pub admin_commands: u64,
}

/// An association.
pub(super) struct Association {
    /// Places for I/O commands that are begun and not complete.
    pub window: Arc<Semaphore>,
    last_command: Mutex<Instant>,
    news: watch::Sender<News>,
    /// Commands that are begun and will complete soon, on all queues.
    awaited: watch::Sender<usize>,
}

impl Association {
    fn new(window: usize) -> Association {
        Association {
            window: Arc::new(Semaphore::new(window.max(1))),
            last_command: Mutex::new(now()),
            news: watch::Sender::new(News::default()),
            awaited: watch::Sender::new(0),
        }
    }

    /// Notes that the host sent a command, on any of its queues.
    pub fn note_command(&self) {
        *lock(&self.last_command) = now();
    }

    /// Notes that a command is begun that will complete soon.
    pub fn begin_command(&self) {
        self.awaited.send_modify(|awaited| *awaited += 1);
    }

    /// Notes that such commands are complete, or that their connection is gone.
    pub fn end_commands(&self, commands: usize) {
        self.awaited.send_modify(|awaited| *awaited -= commands);
    }

    /// Returns a receiver of the number of these commands.
    pub fn awaited(&self) -> watch::Receiver<usize> {
        self.awaited.subscribe()
    }

    /// Returns the time of the last command.
    pub fn last_command(&self) -> Instant {
        *lock(&self.last_command)
    }

    /// Tells the other connections that a command of the admin queue is complete.
    pub fn note_admin_command(&self) {
        self.news.send_modify(|news| news.admin_commands += 1);
    }

    /// Tells the other connections that the association is over.
    pub fn end(&self) {
        self.news.send_modify(|news| news.is_over = true);
    }

    /// Returns a receiver of news. The first news are there immediately: a connection may join when
    /// the association has just ended.
    pub fn news(&self) -> watch::Receiver<News> {
        let mut news = self.news.subscribe();
        news.mark_changed();
        news
    }
}

/// Name of an association: the address of its target, and the target's number.
type Key = (usize, u64);

/// The associations of a door.
#[derive(Default)]
pub(super) struct Associations(Mutex<HashMap<Key, Arc<Association>>>);

impl Associations {
    /// Begins an association. One of the same name is over: its controller was given anew.
    pub fn begin(&self, key: Key, window: usize) -> Arc<Association> {
        let new = Arc::new(Association::new(window));
        if let Some(old) = lock(&self.0).insert(key, Arc::clone(&new)) {
            old.end();
        }
        new
    }

    /// Returns the association that an I/O queue joins, unless it is over.
    pub fn find(&self, key: Key) -> Option<Arc<Association>> {
        lock(&self.0).get(&key).cloned()
    }

    /// Ends an association.
    pub fn end(&self, key: Key, association: &Arc<Association>) {
        association.end();
        let mut all = lock(&self.0);
        if all.get(&key).is_some_and(|one| Arc::ptr_eq(one, association)) {
            all.remove(&key);
        }
    }
}

/// Locks a mutex. No holder panics, and a broken one would be of no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_joins_an_association_that_is_over_hears_of_it() {
        let all = Associations::default();
        let association = all.begin((1, 2), 3);
        all.end((1, 2), &association);
        assert!(all.find((1, 2)).is_none());
        let mut news = association.news();
        assert!(news.has_changed().expect("it has a sender"));
        assert!(news.borrow_and_update().is_over);
        assert!(!news.has_changed().expect("it has a sender"), "it is told once");
    }
}
