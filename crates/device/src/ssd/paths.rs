//! Critical paths of commands, recorded on request.

use super::Ssd;
use flashatlas_timing::Step;
use flashatlas_types::{Ps, Tag};

impl Ssd {
    /// Starts to record the steps of critical paths. No operation may be unfinished.
    pub fn keep_paths(&mut self) {
        self.engine.keep_paths();
    }

    /// Returns the critical path to a command that completed at `at`, as
    /// [`Engine::path`](flashatlas_timing::Engine::path) finds it.
    pub fn path(&self, tag: Option<Tag>, at: Ps, since: Ps) -> Option<Vec<Step>> {
        self.engine.path(tag, at, since)
    }

    /// Drops the record of operations that ended before `before`. After this call, the caller asks
    /// for no path that begins earlier than `before`.
    pub fn forget_paths(&mut self, before: Ps) {
        self.engine.forget_paths(before);
    }
}
