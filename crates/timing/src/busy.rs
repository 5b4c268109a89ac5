//! The busy times of the resources, with the part of work under way that has passed.

use crate::Statistics;
use crate::engine::Engine;
use crate::nodes::{NIL, NodeKind};
use crate::resources::Phase;
use crate::statistics::Resource;
use flashatlas_types::Dur;

impl Engine {
    /// Returns the busy times of the resources until now. Work under way is counted up to now.
    pub fn statistics(&mut self) -> Statistics {
        self.statistics.dies_change(self.now, 0);
        if self.nodes.live > 0 {
            self.count_time_at_work();
        }
        let mut so_far = self.statistics.clone();
        self.each_under_way(|resource, left| {
            let busy = so_far.of(resource);
            *busy = Dur(busy.0 - left.0);
        });
        so_far
    }

    /// Sets the busy times to zero.
    pub fn reset_statistics(&mut self) {
        self.statistics.reset(self.now);
        if self.nodes.live > 0 {
            self.counted = self.now;
        }
        // all of the work under way was counted when it began; its remaining part belongs to the
        // time from now on
        let mut left_over = Vec::new();
        self.each_under_way(|resource, left| left_over.push((resource, left)));
        left_over.into_iter().for_each(|(resource, left)| *self.statistics.of(resource) = left);
    }

    /// Calls `show` with every resource at work and the time that its work will still take.
    fn each_under_way(&self, mut show: impl FnMut(Resource, Dur)) {
        for (d, die) in self.dies.iter().enumerate() {
            if let Phase::Cells { until } = die.phase {
                show(Resource::Die(d), until.since(self.now));
            }
        }
        for (c, bus) in self.channels.iter().enumerate().filter(|(_, bus)| bus.current != NIL) {
            show(Resource::Channel(c), bus.until.since(self.now));
        }
        if let Some(cores) = &self.cores {
            show(Resource::Cores, cores.left(self.now));
        }
        if let Some(dram) = &self.shared_dram {
            show(Resource::SharedDram, dram.left(self.now));
        }
        for link in self.links.iter().filter(|link| link.current != NIL) {
            let out = usize::from(self.nodes.at(link.current).work == NodeKind::LinkOut);
            show(Resource::Link(out), link.until.since(self.now));
        }
    }
}
