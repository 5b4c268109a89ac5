//! Critical paths of commands, where somebody asks for them.

use super::Ssd;
use flashatlas_timing::Step;
use flashatlas_types::{Ps, Tag};

impl Ssd {
    /// From now on, keep what critical paths are made of; nothing may be under way.
    pub fn keep_paths(&mut self) {
        self.engine.keep_paths();
    }

    /// The critical path to a command that completed at `at`, as
    /// [`Engine::path`](flashatlas_timing::Engine::path) has it.
    pub fn path(&self, tag: Option<Tag>, at: Ps, since: Ps) -> Option<Vec<Step>> {
        self.engine.path(tag, at, since)
    }

    /// Paths will be asked for from `before` on, at the earliest.
    pub fn forget_paths(&mut self, before: Ps) {
        self.engine.forget_paths(before);
    }
}
