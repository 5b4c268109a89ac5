//! The places of pages when a blank drive is filled in ascending order. They are known in advance:
//! a frame goes to each lane in turn, into its one host frontier.

use super::PageMapped;
use super::settings::{GcMode, GcPace};
use flashatlas_nand::Medium;
use flashatlas_types::BlockId;

impl PageMapped {
    /// Returns the blocks that a fill takes of each lane, in order. Returns `None` if the fill
    /// depends on more: on a classifier, on several streams, on map pages, or on collection.
    pub(super) fn order_of_fill(&mut self, medium: &Medium) -> Option<Vec<Vec<BlockId>>> {
        let settings = &self.settings;
        let simple = settings.streams.host == 1 && !settings.classified;
        if !simple || !medium.is_untouched() || self.map.table().is_none() {
            return None;
        }
        // with this many free blocks, or fewer, a lane may collect before it opens one
        let collects_at = match (settings.mode, settings.pace) {
            (GcMode::Single, _) => 1,
            (GcMode::Dual, GcPace::Burst) => settings.low_water,
            (GcMode::Dual, GcPace::Even) => settings.low_water + 2,
            (GcMode::Dual, GcPace::Paced) => settings.blocks_of_room() + 1,
        };
        let frames = self.layout.logical_units.div_ceil(self.layout.slots_per_frame);
        let rows = frames.div_ceil(self.layout.lanes);
        let blocks = rows.div_ceil(self.layout.frames_per_block);
        if self.layout.lane_ids().any(|lane| self.pool.free(lane) < blocks + collects_at) {
            return None;
        }
        let mut take = |lane| (0..blocks).map(|_| self.pool.take(lane)).collect();
        self.layout.lane_ids().map(&mut take).collect()
    }
}
