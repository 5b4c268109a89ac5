//! The read path: finds each unit, reads every frame once, and sends the data to the host as it
//! arrives.

use super::{Begun, Ssd};
use crate::Reply;
use crate::cache::CacheEntry;
use crate::pieces::{Piece, merge_under, pieces};
use flashatlas_ftl::Place;
use flashatlas_ftl::units::unit_at;
use flashatlas_nand::{ReadPart, Unit};
use flashatlas_types::{
    Cause, Class, FrameId, FtlError, Lba, Lpn, MediumError, OpId, OpKind, Ppn, SECTOR_BYTES, Stamp,
    Tag,
};

use smallvec::SmallVec;

/// Operations that one group or one command waits for. Few requests wait for more than six
/// operations.
type Waits = SmallVec<[OpId; 6]>;

/// Slots of one frame that the command reads together.
pub(super) struct FrameRead {
    frame: FrameId,
    /// Operation that found the units in this frame, if the FTL has copied the units to another
    /// place since then.
    seen: Option<OpId>,
    slots: u64,
    part: ReadPart,
    sectors: u32,
    after: Waits,
}

pub(super) type FrameReads = SmallVec<[FrameRead; 2]>;

/// Number of the command's newest frame reads that are searched for the frame of the next unit.
const GROUPS_BACK: usize = 8;

impl Ssd {
    pub(super) fn read(
        &mut self,
        begun: &mut Begun,
        tag: Tag,
        (lba, sectors): (Lba, u32),
        entries: &[u64],
        reply: &mut Reply,
    ) -> Result<(), FtlError> {
        let first = begun.command.first;
        let mut entries = entries.iter();
        let short = self.hpb.as_ref().is_some_and(|hpb| sectors <= hpb.terms.max_sectors);
        let mut groups = FrameReads::new();
        let mut waits = Waits::from_slice(&[first]);
        let mut sectors_at_hand = 0;
        let mut rest = pieces(lba, sectors, self.layout.unit_sectors());
        while let Some(piece) = rest.next() {
            let entry = entries.next().copied();
            // the cache may have the whole piece or a part of it, and the host may still be sending
            // the data
            if let Some(held) = self.cached(piece.lpn) {
                waits.push(held.ready);
                if answer_from(held, &piece, reply) {
                    self.counters.cache_read_hits += 1;
                    sectors_at_hand += piece.sectors;
                    continue;
                }
            }
            let unit = match self.read_by_entry(begun, &piece, (entry, short), &mut groups)? {
                Some(unit) => UnitSource::Flash(unit),
                None => {
                    let ahead = rest.size_hint().0 as u32;
                    self.read_flash(begun, &piece, (first, ahead), &mut groups)?
                }
            };
            match unit {
                UnitSource::Nowhere(ready) => {
                    self.counters.unmapped_units += 1;
                    waits.push(ready);
                    sectors_at_hand += piece.sectors;
                    self.answer(reply, &piece, None);
                }
                UnitSource::Buffered(unit, ready) => {
                    waits.extend(ready);
                    sectors_at_hand += piece.sectors;
                    self.answer(reply, &piece, Some(&unit));
                }
                UnitSource::Flash(unit) => self.answer(reply, &piece, Some(&unit)),
            }
        }
        let mut sent = Waits::new();
        for group in &groups {
            let (frame, slots, part) = (group.frame, group.slots, group.part);
            let (after, seen) = (&group.after, group.seen);
            let sensed = self.with_ftl(&begun.command, |_, cx| {
                Ok(cx.flash.read_as_it_was(frame, slots, part, Cause::Host, after, seen)?)
            })?;
            sent.push(self.send(group.sectors, &[sensed]));
        }
        if sectors_at_hand > 0 {
            sent.push(self.send(sectors_at_hand, &waits));
        } else {
            // the frame reads already wait for the command's first operation
            for &op in waits.iter().filter(|&&op| op != first || groups.is_empty()) {
                sent.push(op);
            }
        }
        self.complete(tag, Class::HostRead, &sent, reply);
        Ok(())
    }

    fn send(&mut self, sectors: u32, after: &[OpId]) -> OpId {
        let link =
            OpKind::Link { inbound: false, bytes: u64::from(sectors) * u64::from(SECTOR_BYTES) };
        self.plan.push(link, Class::HostRead, after)
    }

    /// Returns the cache entry of a unit, or `None`.
    #[inline]
    pub(super) fn cached(&self, lpn: Lpn) -> Option<&CacheEntry> {
        self.cache.as_ref()?.get(lpn)
    }

    /// Finds a unit on flash or in the FTL's page buffer, and puts the sectors in the cache over
    /// it. `first` is the first operation of the read. After this unit, `ahead` more units follow.
    fn read_flash(
        &mut self,
        begun: &Begun,
        piece: &Piece,
        (first, ahead): (OpId, u32),
        groups: &mut FrameReads,
    ) -> Result<UnitSource, FtlError> {
        let located = self
            .with_ftl(&begun.command, |ftl, cx| ftl.locate(cx, piece.lpn, ahead))
            .map_err(|error| self.fail(error))?;
        let unit = match located.place {
            Place::Nowhere => None,
            Place::Buffer(unit) => Some(unit),
            Place::Flash(ppn) => {
                let arrived = self.on_its_way(piece.lpn, ppn);
                if arrived.is_none() {
                    // most lookups of the map already wait for the command's first operation
                    let waits = self.plan.waits_for(located.ready, first);
                    let first = if waits { OpId::NONE } else { first };
                    self.join_group(begun, groups, ppn, piece, [first, located.ready]);
                }
                let unit = self.unit_on_flash(ppn, piece.lpn)?;
                let unit = self.under_cached(piece.lpn, Some(unit)).expect("a unit was given");
                let Some([host, fetched]) = arrived else { return Ok(UnitSource::Flash(unit)) };
                self.counters.cache_read_hits += 1;
                let ready = Waits::from_slice(&[host, fetched, located.ready]);
                return Ok(UnitSource::Buffered(unit, ready));
            }
        };
        Ok(match self.under_cached(piece.lpn, unit) {
            None => UnitSource::Nowhere(located.ready),
            Some(unit) => UnitSource::Buffered(unit, Waits::from_slice(&[located.ready])),
        })
    }

    /// Returns a unit on flash. If its bytes are damaged, the drive stops. The next mount searches
    /// for other versions of the unit.
    fn unit_on_flash(&mut self, ppn: Ppn, lpn: Lpn) -> Result<Unit, FtlError> {
        unit_at(&self.medium, ppn, lpn).map_err(|error| match error {
            FtlError::Medium(MediumError::Damaged(_)) => self.fail(error),
            error => error,
        })
    }

    /// Returns the operations that transferred the sectors of a unit, if its program is not
    /// complete. Until then the unit's slot in the cache keeps the sectors, so a read need not wait
    /// for flash.
    fn on_its_way(&self, lpn: Lpn, ppn: Ppn) -> Option<[OpId; 2]> {
        let arrived = match self.cache.as_ref()?.left(lpn) {
            Some(arrived) => arrived,
            // its list forgets a unit whose sectors have arrived, and not the steps of its program
            None if self.settings.stepped => [OpId::NONE; 2],
            None => return None,
        };
        let program = self.unfinished_program(ppn, OpId(u64::MAX))?;
        self.source(ppn, program).is_none().then_some(arrived)
    }

    /// Returns the newest program of a slot's frame before operation `before`, or `None` if that
    /// program is complete.
    fn unfinished_program(&self, ppn: Ppn, before: OpId) -> Option<OpId> {
        let frame = self.layout.frame_of(ppn);
        let block = self.layout.block_of_frame(frame);
        let page = self.layout.index_in(block, frame);
        let mut parts = self.layout.on_dies(block);
        parts.find_map(|part| self.engine.program_of(part, page, before))
    }

    /// Returns the slot from which `program` copied the unit in a slot, and the operation that read
    /// the unit from that slot.
    fn source(&self, ppn: Ppn, program: OpId) -> Option<(Ppn, OpId)> {
        self.copies.source(ppn.0 % self.layout.slots_per_frame, program)
    }

    /// Returns the place where a unit is read, and the operation that found it there.
    ///
    /// A unit is normally read at its current place. While the program that copies the unit to this
    /// place is unfinished, the unit is read at its old place instead. This is not possible if the
    /// read also waits for an operation on flash (in `after`). An erase of the old place waits for
    /// the read, and that operation could wait for the erase.
    pub(super) fn readable(&self, begun: &Begun, ppn: Ppn, after: &[OpId]) -> (Ppn, Option<OpId>) {
        // a program of this plan is not issued yet; if the engine has a program of this page, it is
        // an older program
        let frame = self.layout.frame_of(ppn);
        let issued = |number| number <= begun.programs_before;
        if !self.medium.frame_sequence(frame).is_ok_and(issued) {
            return (ppn, None);
        }
        let (mut at, mut seen) = (ppn, None);
        while let Some(program) = self.unfinished_program(at, seen.unwrap_or(OpId(u64::MAX))) {
            let Some((from, read)) = self.source(at, program) else { break };
            (at, seen) = (from, Some(read));
        }
        let in_time = |op| self.engine.is_complete(op);
        match seen {
            Some(_) if self.plan.waits_for_time_alone(after, &in_time) => (at, seen),
            _ => (ppn, None),
        }
    }

    /// Returns the unit that was found below the cache, with the sectors in the cache put over it.
    ///
    /// The cache entry does not change, because only the pages of this read were sensed.
    pub(super) fn under_cached(&self, lpn: Lpn, found: Option<Unit>) -> Option<Unit> {
        let Some(entry) = self.cached(lpn) else { return found };
        self.assert_base(entry, found.as_ref().map_or(Stamp::ZERO, |u| u.stamp));
        let mut entry = entry.clone();
        merge_under(&mut entry, found.as_ref().and_then(|u| u.bytes.as_deref()));
        Some(Unit { lpn, stamp: entry.stamp, bytes: entry.bytes })
    }

    pub(super) fn join_group(
        &self,
        begun: &Begun,
        groups: &mut FrameReads,
        ppn: Ppn,
        piece: &Piece,
        after: [OpId; 2],
    ) {
        let (ppn, seen) = self.readable(begun, ppn, &after);
        let frame = self.layout.frame_of(ppn);
        let slot = 1 << (ppn.0 % self.layout.slots_per_frame);
        let together = |g: &&mut FrameRead| g.frame == frame && g.seen == seen;
        if let Some(group) = groups.iter_mut().rev().take(GROUPS_BACK).find(together) {
            group.slots |= slot;
            group.part = ReadPart::Whole;
            group.sectors += piece.sectors;
            group.after.push(after[1]);
        } else {
            let part = ReadPart::Sectors { first: piece.first, count: piece.sectors };
            groups.push(FrameRead {
                frame,
                seen,
                slots: slot,
                part,
                sectors: piece.sectors,
                after: Waits::from_slice(&after),
            });
        }
    }

    fn answer(&self, reply: &mut Reply, piece: &Piece, unit: Option<&Unit>) {
        reply.stamps.push(unit.map_or(Stamp::ZERO, |u| u.stamp));
        if self.settings.keep_bytes {
            match unit.and_then(|u| u.bytes.as_deref()) {
                Some(bytes) => reply.bytes.extend_from_slice(&bytes[byte_range(piece)]),
                None => reply
                    .bytes
                    .extend(std::iter::repeat_n(0, (piece.sectors * SECTOR_BYTES) as usize)),
            }
        }
    }
}

/// Answers a piece from the write cache. Returns `false` if some of its sectors are missing there.
fn answer_from(entry: &CacheEntry, piece: &Piece, reply: &mut Reply) -> bool {
    if piece.mask() & !entry.present != 0 {
        return false;
    }
    reply.stamps.push(entry.stamp);
    if let Some(bytes) = &entry.bytes {
        reply.bytes.extend_from_slice(&bytes[byte_range(piece)]);
    }
    true
}

enum UnitSource {
    Nowhere(OpId),
    /// Unit in memory, which is available once these operations are complete.
    Buffered(Unit, Waits),
    Flash(Unit),
}

fn byte_range(piece: &Piece) -> std::ops::Range<usize> {
    let start = (piece.first * SECTOR_BYTES) as usize;
    start..start + (piece.sectors * SECTOR_BYTES) as usize
}
