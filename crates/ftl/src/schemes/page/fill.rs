//! The places of pages when a blank drive is filled in ascending order. They can be computed in
//! advance, because each lane in turn gets a frame in its only host frontier.

use super::PageMapped;
use super::settings::{GcMode, GcPace};
use flashatlas_nand::Medium;
use flashatlas_types::BlockId;

impl PageMapped {
    /// Returns the blocks of each lane that a fill uses, in order. Returns `None` if the fill also
    /// depends on a classifier, on several streams, on an unknown map store, or on collection.
    ///
    /// Map pages that are written during the fill leave the places of data as they are: they have a
    /// quota of blocks. So they need not be written before the fill ends.
    pub(super) fn blocks_of_fill(&mut self, medium: &Medium) -> Option<Vec<Vec<BlockId>>> {
        let settings = &self.settings;
        let simple = settings.streams.host == 1
            && !settings.classified
            && settings.slc.is_none()
            && settings.steps.is_none();
        if !simple || !medium.is_untouched() || self.map.whole_table().is_none() {
            return None;
        }
        // with at most this number of free blocks, a lane may collect before it opens a block
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
