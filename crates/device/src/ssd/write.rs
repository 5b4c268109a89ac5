//! The write path: into the cache and out of it, or directly to flash. Partial units are merged on
//! the way.

use super::{Begun, Ssd};
use crate::Reply;
use crate::cache::{CacheEntry, Limits, WriteCache};
use crate::pieces::{
    Content, Piece, all_sectors, bytes_of, merge_under, missing, pieces, placed, slice_of,
};
use flashatlas_ftl::Place;
use flashatlas_ftl::units::unit_at;
use flashatlas_nand::Unit;
use flashatlas_types::{
    Cause, Class, FtlError, Lba, Lpn, OpId, OpKind, Plan, SeededBug, Stamp, Tag,
};
use smallvec::{SmallVec, smallvec};

/// Number of units whose tables are prefetched before the units leave the cache.
const EXPECTED: u32 = 8;

/// Purposes of a prefetch before units leave ([`crate::cache::WriteCache::upcoming`]).
const PLACE: usize = 0;
const ENTRY: usize = 1;

/// A write of the host.
pub(super) struct HostWrite<'a> {
    /// First sector, and number of sectors.
    pub range: (Lba, u32),
    /// `true` if the write must be durable before it is complete.
    pub fua: bool,
    pub content: Content<'a>,
    /// Bytes, if the drive stores them.
    pub data: Option<&'a [u8]>,
}

/// Units on their way from the cache to the FTL. An eviction fills the lists, and [`Ssd::send_run`]
/// empties them. Units remain here only if the drive fails in between.
#[derive(Default)]
pub(super) struct Leaving {
    /// Consecutive units that are sent to the FTL together.
    run: Vec<Unit>,
    /// Operations that these units wait for.
    ready: Vec<OpId>,
    /// The same units, each with the operations that transfer its sectors. The list stays empty
    /// while commands are instant.
    arrived: Vec<(Lpn, [OpId; 2])>,
}

impl Ssd {
    pub(super) fn write(
        &mut self,
        begun: &Begun,
        tag: Tag,
        write: HostWrite<'_>,
        reply: &mut Reply,
    ) -> Result<(), FtlError> {
        let HostWrite { range, fua, content, data } = write;
        let unit_sectors = self.layout.unit_sectors();
        let pieces: SmallVec<[Piece; 4]> = pieces(range.0, range.1, unit_sectors).collect();
        if self.cache.is_none() {
            let mut after = self.write_through(begun, &pieces, content, data)?;
            if fua {
                after.push(self.with_ftl(&begun.command, |ftl, cx| ftl.persist(cx, true))?);
            }
            self.complete(tag, Class::HostWrite, &after, reply);
            return Ok(());
        }
        let mut arrived: SmallVec<[OpId; 4]> = SmallVec::new();
        let mut rest = &pieces[..];
        while !rest.is_empty() {
            let chunk = self.writable_chunk(begun, rest)?;
            arrived.push(self.write_cached(begun, &rest[..chunk], content, data)?);
            rest = &rest[chunk..];
            self.relieve(begun)?;
        }
        if fua && !SeededBug::FuaIgnored.is_active() {
            for piece in &pieces {
                self.evict_page(begun, piece.lpn)?;
            }
            self.with_ftl(&begun.command, |ftl, cx| ftl.flush(cx))?;
            self.settle();
            arrived.push(self.with_ftl(&begun.command, |ftl, cx| ftl.persist(cx, true))?);
            arrived.extend(self.pending_programs());
        }
        self.complete(tag, Class::HostWrite, &arrived, reply);
        Ok(())
    }

    /// Returns the number of `pieces` that can enter the cache together. If there is no room, makes
    /// room for one piece first.
    fn writable_chunk(&mut self, begun: &Begun, pieces: &[Piece]) -> Result<usize, FtlError> {
        let cache = self.cache.as_ref().expect("write-back");
        if cache.free_slots() == 0 && cache.get(pieces[0].lpn).is_none() {
            let is_full = |ssd: &Ssd| ssd.cache.as_ref().is_some_and(|c| c.free_slots() == 0);
            // evicted units may wait in page buffers until a frame of their stream is full
            while is_full(self) && self.dirty_units() > 0 {
                self.evict(begun, self.layout.slots_per_frame)?;
            }
            if is_full(self) {
                self.with_ftl(&begun.command, |ftl, cx| ftl.flush(cx))?;
                self.settle();
            }
        }
        let cache = self.cache.as_ref().expect("write-back");
        let mut slots = cache.free_slots();
        let fits = pieces.iter().take_while(|p| {
            let hit = cache.get(p.lpn).is_some();
            let fits = hit || slots > 0;
            slots -= u32::from(!hit && fits);
            fits
        });
        let count = fits.count();
        assert!(count > 0, "the write cache has no slot after eviction and flush");
        Ok(count)
    }

    /// Sends the least recently written units to flash if the cache is too full. If the drive has
    /// room for less than a frame, no unit is sent. Otherwise, the units that fit are sent.
    fn relieve(&mut self, begun: &Begun) -> Result<(), FtlError> {
        let cache = self.cache.as_mut().expect("write-back");
        let Limits { high, low, ahead } = cache.limits;
        cache.too_full |= cache.len() > high;
        if !cache.too_full {
            return Ok(());
        }
        let room = if self.instant {
            u32::MAX
        } else {
            ahead.saturating_sub(cache.leaving(self.engine.freed_slots()))
        };
        let surplus = cache.len().saturating_sub(low);
        if room >= self.layout.slots_per_frame {
            self.evict(begun, surplus.min(room))?;
        }
        let cache = self.cache.as_mut().expect("write-back");
        cache.too_full = cache.len() > low;
        Ok(())
    }

    /// Puts pieces into the cache with one transfer from the host. The transfer waits for the
    /// slots.
    fn write_cached(
        &mut self,
        begun: &Begun,
        pieces: &[Piece],
        content: Content<'_>,
        data: Option<&[u8]>,
    ) -> Result<OpId, FtlError> {
        let unit_sectors = self.layout.unit_sectors();
        let cache = self.cache.as_mut().expect("write-back");
        let mut after: SmallVec<[OpId; 8]> = smallvec![begun.accepts];
        // a slot in use may still wait for older data, which this write does not overwrite
        // completely
        after.extend(pieces.iter().filter_map(|p| cache.get(p.lpn)).map(|entry| entry.ready));
        let need = cache.take_slots((pieces.len() + 1 - after.len()) as u32);
        if need > self.engine.freed_slots() {
            after.push(self.plan.push(
                OpKind::AwaitSlots(need),
                Class::HostWrite,
                &[begun.command.first],
            ));
        }
        let link = OpKind::Link { inbound: true, bytes: bytes_of(pieces) };
        let arrived = self.plan.push(link, Class::HostWrite, &after);
        for piece in pieces {
            let hit = self.cache.as_mut().expect("write-back").touch(piece.lpn).map(|e| e.stamp);
            let (old, base) = match hit {
                Some(stamp) => (stamp, None),
                None if piece.is_whole(unit_sectors) => (Stamp::ZERO, Some(Stamp::ZERO)),
                None => {
                    // only the stamp is looked up here; when the unit leaves, the missing sectors
                    // are fetched, and the fetch is charged
                    let old = self.peek(piece.lpn)?.map_or(Stamp::ZERO, |u| u.stamp);
                    (old, Some(old))
                }
            };
            let stamp = content.stamp(piece, old, unit_sectors);
            let bytes = data.map(|d| slice_of(d, piece));
            let unit_bytes = self.layout.unit_bytes as usize;
            let cache = self.cache.as_mut().expect("write-back");
            if let Some(base) = base {
                let bytes = bytes.map(|b| placed(b, piece, None, unit_bytes));
                cache.insert(piece.lpn, stamp, base, piece.mask(), bytes, arrived);
            } else {
                self.counters.cache_write_hits += 1;
                let entry = cache.get_mut(piece.lpn).expect("hit");
                (entry.stamp, entry.ready) = (stamp, arrived);
                entry.present |= piece.mask();
                if let (Some(new), Some(held)) = (bytes, entry.bytes.take()) {
                    entry.bytes = Some(placed(new, piece, Some(held), unit_bytes));
                }
            }
        }
        Ok(arrived)
    }

    /// Writes without a cache: fetches the missing sectors of partial units, programs the units,
    /// and pads the last frame. Returns the operations that the write waits for.
    fn write_through(
        &mut self,
        begun: &Begun,
        pieces: &[Piece],
        content: Content<'_>,
        data: Option<&[u8]>,
    ) -> Result<Vec<OpId>, FtlError> {
        let unit_sectors = self.layout.unit_sectors();
        let link = OpKind::Link { inbound: true, bytes: bytes_of(pieces) };
        let mut after = vec![self.plan.push(link, Class::HostWrite, &[begun.accepts])];
        let mut run = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (mut old, mut base) = (Stamp::ZERO, None);
            if !piece.is_whole(unit_sectors)
                && let Some((unit, fetched)) = self.fetch_missing(begun, piece.lpn, piece.mask())?
            {
                after.push(fetched);
                (old, base) = (unit.stamp, unit.bytes);
            }
            let unit_bytes = self.layout.unit_bytes as usize;
            let bytes = data.map(|d| placed(slice_of(d, piece), piece, base, unit_bytes));
            run.push(Unit {
                lpn: piece.lpn,
                stamp: content.stamp(piece, old, unit_sectors),
                bytes,
            });
        }
        self.with_ftl(&begun.command, |ftl, cx| {
            ftl.write(cx, &run, Cause::Host, &after)?;
            ftl.flush(cx)
        })?;
        after.truncate(1);
        after.extend(self.outcome.programmed().iter().map(|p| p.op));
        self.settle();
        Ok(after)
    }

    /// Reads the sectors of a page that are missing in `present`. Returns the whole unit, or
    /// `Ok(None)` if the page was never written.
    fn fetch_missing(
        &mut self,
        begun: &Begun,
        lpn: Lpn,
        present: u128,
    ) -> Result<Option<(Unit, OpId)>, FtlError> {
        let located = self.with_ftl(&begun.command, |ftl, cx| ftl.locate(cx, lpn, 0))?;
        let unit = match located.place {
            Place::Nowhere => return Ok(None),
            Place::Buffer(unit) => return Ok(Some((unit, located.ready))),
            Place::Flash(ppn) => {
                self.counters.rmw_units += 1;
                let layout = self.layout.clone();
                let part = missing(present, layout.unit_sectors());
                let after = [located.ready];
                let (at, seen) = self.readable(begun, ppn, &[located.ready, begun.command.first]);
                let (frame, slot) = (layout.frame_of(at), 1 << (at.0 % layout.slots_per_frame));
                let op = self.with_ftl(&begun.command, |_, cx| {
                    Ok(cx.flash.read_as_it_was(frame, slot, part, Cause::Rmw, &after, seen)?)
                })?;
                (unit_at(&self.medium, ppn, lpn)?, op)
            }
        };
        Ok(Some(unit))
    }

    /// Sends the `count` least recently written units to the FTL.
    ///
    /// Consecutive pages are sent together. After `count` units, pages that directly follow the
    /// last page are sent too, as long as the cache has more than `limits.low` units.
    pub(super) fn evict(&mut self, begun: &Begun, count: u32) -> Result<(), FtlError> {
        self.leaving_together(|ssd, leaving| ssd.evict_runs(begun, count, leaving))?;
        self.prefetch_evictions();
        Ok(())
    }

    /// Calls `work` with the lists of the units that leave together. If `work` fails, [`Ssd::fail`]
    /// finds the units that were on their way in these lists.
    fn leaving_together(
        &mut self,
        work: impl FnOnce(&mut Ssd, &mut Leaving) -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        let mut leaving = std::mem::take(&mut self.leaving);
        let done = work(self, &mut leaving);
        self.leaving = leaving;
        done
    }

    /// Returns units to the write cache if they were on their way to flash when the drive failed.
    /// Acknowledged data can then still be inspected.
    pub(super) fn take_back(&mut self) {
        let all = all_sectors(self.layout.unit_sectors());
        for unit in self.leaving.run.drain(..) {
            if let Some(cache) = &mut self.cache
                && cache.get(unit.lpn).is_none()
            {
                cache.insert(unit.lpn, unit.stamp, unit.stamp, all, unit.bytes, OpId::NONE);
            }
        }
    }

    fn evict_runs(
        &mut self,
        begun: &Begun,
        count: u32,
        leaving: &mut Leaving,
    ) -> Result<(), FtlError> {
        let mut left = count;
        while let Some((lpn, surplus)) =
            self.cache.as_ref().and_then(|c| Some((c.oldest()?, c.len() > c.limits.low)))
        {
            let follows = leaving.run.last().is_some_and(|last| last.lpn.0 + 1 == lpn.0);
            if left == 0 && !(follows && surplus) {
                break;
            }
            if !follows {
                self.send_run(begun, leaving)?;
            }
            self.take_out(begun, lpn, leaving)?;
            left = left.saturating_sub(1);
        }
        self.send_run(begun, leaving)
    }

    /// Prefetches the tables that the FTL will change for the units that leave the cache next. For
    /// the units behind them, only the map entries are prefetched, because they point to these
    /// tables.
    fn prefetch_evictions(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        while let Some(lpn) = cache.upcoming(PLACE, EXPECTED) {
            self.ftl.prefetch_write(lpn);
        }
        while let Some(lpn) = cache.upcoming(ENTRY, 2 * EXPECTED) {
            self.ftl.prefetch(&[lpn]);
        }
    }

    fn evict_page(&mut self, begun: &Begun, lpn: Lpn) -> Result<(), FtlError> {
        self.leaving_together(|ssd, leaving| {
            if ssd.cache.as_ref().is_some_and(|c| c.get(lpn).is_some()) {
                ssd.take_out(begun, lpn, leaving)?;
            }
            ssd.send_run(begun, leaving)
        })
    }

    /// Removes a unit from the cache, and fetches its missing sectors.
    fn take_out(&mut self, begun: &Begun, lpn: Lpn, leaving: &mut Leaving) -> Result<(), FtlError> {
        let Some(mut entry) = self.cache.as_mut().and_then(|c| c.remove(lpn)) else {
            return Ok(());
        };
        self.counters.cache_evictions += 1;
        let mut arrived = [entry.ready, OpId::NONE];
        if entry.present != all_sectors(self.layout.unit_sectors())
            && let Some((unit, fetched)) = self.fetch_missing(begun, lpn, entry.present)?
        {
            self.assert_base(&entry, unit.stamp);
            merge_under(&mut entry, unit.bytes.as_deref());
            leaving.ready.push(fetched);
            arrived[1] = fetched;
        }
        leaving.ready.push(entry.ready);
        if !self.instant {
            leaving.arrived.push((lpn, arrived));
        }
        leaving.run.push(Unit { lpn, stamp: entry.stamp, bytes: entry.bytes });
        Ok(())
    }

    /// Asserts that a fetch returned the stamp on which the stamp of the cached unit is based.
    pub(super) fn assert_base(&self, entry: &CacheEntry, found: Stamp) {
        assert!(
            entry.base == found,
            "logical page {}: the fetched sectors have stamp {:?}, but the cached unit was built \
             on stamp {:?}",
            entry.lpn,
            found,
            entry.base
        );
    }

    /// Sends the collected units to the FTL.
    fn send_run(&mut self, begun: &Begun, leaving: &mut Leaving) -> Result<(), FtlError> {
        let Leaving { run, ready, arrived } = leaving;
        if !run.is_empty() {
            ready.dedup();
            self.with_ftl(&begun.command, |ftl, cx| ftl.write(cx, run, Cause::CacheEvict, ready))?;
            self.settle();
            let (before, oldest) = (self.plan.next_id(), self.engine.oldest_unfinished());
            let cache = self.cache.as_mut().expect("units leave a cache");
            for (lpn, arrived) in arrived.drain(..) {
                cache.leave(lpn, arrived, before, oldest);
            }
            run.clear();
            ready.clear();
        }
        Ok(())
    }

    /// Connects programs of host data to the cache slots that they free, and adds the programs to
    /// the list that the next FLUSH waits for.
    pub(super) fn settle(&mut self) {
        let Ssd { outcome, cache, plan, in_flight, .. } = self;
        for same in outcome.programmed().chunk_by(|a, b| a.op == b.op) {
            free_slots(cache, plan, same[0].op, same.iter().map(|p| p.units).sum());
            if same[0].op != OpId::NONE {
                in_flight.unflushed.push(same[0].op);
            }
        }
        outcome.clear_programmed();
    }

    /// Returns the unfinished programs of host data that a FLUSH waits for, in earlier plans and in
    /// this plan.
    pub(super) fn pending_programs(&mut self) -> Vec<OpId> {
        if self.settings.scheme_waits {
            return Vec::new();
        }
        let first = self.plan.first_id();
        self.in_flight.unflushed.retain(|&op| op >= first || !self.engine.is_complete(op));
        self.in_flight.unflushed.clone()
    }

    /// Removes complete programs from the list, so that its length stays proportional to the number
    /// of programs in flight.
    pub(super) fn prune_unflushed(&mut self) {
        if self.in_flight.unflushed.len() > self.in_flight.unflushed_limit {
            self.in_flight.unflushed.retain(|&op| !self.engine.is_complete(op));
            self.in_flight.unflushed_limit = (2 * self.in_flight.unflushed.len()).max(1024);
        }
    }
}

/// Frees `count` slots of the cache once `op` is complete, if there is a cache.
pub(super) fn free_slots(cache: &mut Option<WriteCache>, plan: &mut Plan, op: OpId, count: u32) {
    if let Some(cache) = cache {
        let freed = match op {
            OpId::NONE => OpId::NONE,
            op => plan.push(OpKind::FreeSlots(count), Class::HostWrite, &[op]),
        };
        cache.release(freed, count);
    }
}
