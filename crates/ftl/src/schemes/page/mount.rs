//! Building the tables of the page-mapped FTL from what stands on the medium.

use super::frontier::Frontier;
use super::settings::Settings;
use super::{Lane, PageMapped};
use crate::blocks::{Blocks, FreeBlocks, Role};
use crate::classifiers::classifier_by_name;
use crate::maps::map_by_name;
use crate::victims::{LaneShape, victim_by_name};
use crate::{Cx, FtlReport};
use flashatlas_types::{BlockId, FtlError, OpId, Params, Ppn, Rng, Seed};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

impl PageMapped {
    /// Rebuild the tables from the spare areas: of several copies of a page the one programmed last is valid.
    /// Blocks that are neither erased nor full are closed as they are.
    pub(super) fn mount(params: &Params, cx: &mut Cx<'_>, seed: Seed) -> Result<PageMapped, FtlError> {
        let layout = cx.flash.medium.layout().clone();
        let settings = Settings::new(params, &layout);
        let streams = settings.streams;
        let victim = victim_by_name(params.text("ftl.victim")).expect("resolved");
        let shape = LaneShape { blocks: layout.blocks_per_lane, slots: layout.slots_per_block };
        let lane = |id: u32| Lane {
            free: FreeBlocks::new(params.flag("ftl.wear_dynamic")),
            policy: (victim.build)(params, shape, Rng::stream(seed, &format!("ftl.victim.{id}"))),
            frontiers: vec![Frontier::default(); settings.frontiers() as usize],
            leaving: Vec::new(),
            erases_until_wear_check: layout.blocks_per_lane,
        };
        let mut ftl = PageMapped {
            map: (map_by_name(params.text("map.store")).expect("resolved").build)(params, &layout),
            blocks: Blocks::new(&layout, cx.flash.medium),
            lanes: (0..layout.lanes).map(lane).collect(),
            classifier: (classifier_by_name(params.text("ftl.classifier")).expect("resolved").build)(
                params,
                layout.logical_units,
                streams,
            ),
            cursor: vec![0; streams as usize],
            gathering: vec![None; streams as usize],
            buffered: FxHashMap::default(),
            superseded: vec![OpId::NONE; layout.blocks() as usize],
            in_flight: VecDeque::new(),
            clock: 0,
            report: FtlReport::default(),
            settings,
            layout,
        };
        ftl.rebuild(cx)?;
        Ok(ftl)
    }

    fn rebuild(&mut self, cx: &mut Cx<'_>) -> Result<(), FtlError> {
        for id in 0..self.layout.blocks() {
            let block = BlockId(id);
            if self.blocks.role(block) == Role::Bad {
                continue;
            }
            if cx.flash.medium.write_pointer(block) == 0 {
                let erases = cx.flash.medium.erases(block);
                self.lanes[self.layout.lane_of(block).0 as usize].free.push(block, erases);
                continue;
            }
            self.blocks.set_role(block, Role::Closed);
            for frame in 0..cx.flash.medium.write_pointer(block) {
                let frame = self.layout.frame_in(block, frame);
                let Ok(sequence) = cx.flash.medium.frame_sequence(frame) else { continue };
                let first = self.layout.first_slot(frame);
                for slot in first.0..first.0 + self.layout.slots_per_frame {
                    let lpn = cx.flash.medium.lpn(Ppn(slot))?;
                    if lpn.0 >= self.layout.logical_units {
                        continue;
                    }
                    let known = self.map.peek(lpn).mapped();
                    if self.blocks.supersede(cx.flash.medium, known, Ppn(slot), sequence)? {
                        self.map.set(cx, lpn, Ppn(slot))?;
                    }
                }
            }
        }
        let mut closed: Vec<(u64, BlockId)> = (0..self.layout.blocks())
            .map(BlockId)
            .filter(|&b| self.blocks.role(b) == Role::Closed)
            .map(|b| {
                let last = self.layout.frame_in(b, cx.flash.medium.write_pointer(b) - 1);
                (cx.flash.medium.frame_sequence(last).unwrap_or(0), b)
            })
            .collect();
        closed.sort_unstable();
        for (_, block) in closed {
            self.close(block);
        }
        self.map.reset_counters();
        Ok(())
    }
}
