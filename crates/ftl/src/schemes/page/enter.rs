//! The entry of a programmed frame into the tables.

use super::PageMapped;
use super::frontier::{Pending, followers};
use crate::FtlContext;
use crate::blocks::Role;
use crate::maps::{MapContext, Update};
use flashatlas_types::{BlockId, Class, FtlError, LaneId, OpId, Ppn};

impl PageMapped {
    /// Enters the units of a frame that `op` has programmed, from slot `first` on, into the map and
    /// the tables. Empties `units`. Returns the operation after which the map knows them.
    ///
    /// If the program had several steps (`STEPPED`), the slots in `stale` hold versions that are
    /// superseded already, and newer versions may be in the buffers.
    #[inline(always)]
    pub(super) fn enter<const STEPPED: bool>(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        units: &mut Vec<Pending>,
        (first, op): (Ppn, OpId),
        stale: u64,
    ) -> Result<OpId, FtlError> {
        let mut mapped = op;
        let ahead = followers(units);
        for (slot, p) in units.drain(..).enumerate() {
            if STEPPED && stale >> slot & 1 == 1 {
                continue;
            }
            let update = Update { lpn: p.unit.lpn, ppn: Ppn(first.0 + slot as u32), op };
            let lpn = update.lpn;
            if !p.is_host() {
                let old = self.map.moved(&mut MapContext::new(cx, &mut self.pool), update)?;
                assert!(
                    old == p.from,
                    "page {lpn} was copied from {}, but the map places it at {old}",
                    p.from
                );
                let from = self.invalidate(p.from);
                if let Some(slc) = &mut self.slc {
                    slc.copied(from);
                }
                self.left(lane, self.layout.block_of(p.from), Some(op));
            } else {
                let ahead = ahead[slot].into();
                let io = &mut MapContext { cx, pool: &mut self.pool, ahead };
                let (old, ready) = self.map.set(io, update)?;
                if ready != OpId::NONE {
                    mapped = cx.flash.plan.join(Class::Map, &[mapped, ready]);
                }
                if !STEPPED && !self.buffered.is_empty() {
                    self.buffered.remove(&lpn);
                }
                if let Some(old) = old.mapped() {
                    let block = self.invalidate(old);
                    self.superseded.add(block, op, cx.command.oldest_unfinished);
                }
            }
            self.pool.blocks.set_valid(update.ppn);
        }
        Ok(mapped)
    }

    /// Makes a slot invalid and returns its block.
    #[inline]
    pub(super) fn invalidate(&mut self, ppn: Ppn) -> BlockId {
        let (block, valid) = self.pool.blocks.invalidate(ppn);
        if let Some(slc) = &mut self.slc {
            slc.left(block);
        }
        if self.pool.blocks.role(block) == Role::Closed {
            let (lane, local) = self.layout.in_lane(block);
            self.lanes[lane].policy.invalidated(local, valid, self.at);
        }
        block
    }
}
