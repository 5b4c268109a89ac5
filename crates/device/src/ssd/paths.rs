//! Critical paths of commands, kept on request.

use super::Ssd;
use flashatlas_timing::Step;
use flashatlas_types::{Ps, Tag};

impl Ssd {
    /// Keeps what critical paths are made of from now on; nothing may be under way.
    pub fn keep_paths(&mut self) {
        self.engine.keep_paths();
    }

    /// Returns the critical path to a command that completed at `at`, as
    /// [`Engine::path`](flashatlas_timing::Engine::path) finds it.
    pub fn path(&self, tag: Option<Tag>, at: Ps, since: Ps) -> Option<Vec<Step>> {
        self.engine.path(tag, at, since)
    }

    /// Forgets what ended before `before`: no path that begins earlier will be asked for.
    pub fn forget_paths(&mut self, before: Ps) {
        self.engine.forget_paths(before);
    }
}
