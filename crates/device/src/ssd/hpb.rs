//! Commands and reads of a drive that exports its map.

use super::read::FrameReads;
use super::{Begun, Ssd};
use crate::hpb::entry::SLOTS_MAX;
use crate::hpb::{Manager, Refusal, Terms};
use crate::pieces::Piece;
use crate::{Cmd, HpbCounters, LayerError, Reply, SubmitError};
use flashatlas_ftl::units::unit_at;
use flashatlas_ftl::{Ftl, Place};
use flashatlas_nand::{OobRole, ReadPart, Unit};
use flashatlas_types::{
    Cause, Class, Dur, FtlError, Lpn, MediumError, OpId, OpKind, Ppn, Seed, Tag,
};

/// Returns a function that finds the place of a page on flash for its map entry. A page in a page
/// buffer has no place yet.
fn place(ftl: &dyn Ftl) -> impl Fn(Lpn) -> Option<Ppn> + '_ {
    |lpn| match ftl.peek(lpn) {
        Place::Flash(ppn) => Some(ppn),
        Place::Nowhere | Place::Buffer(_) => None,
    }
}

impl Ssd {
    /// Starts to export the map.
    ///
    /// # Errors
    /// Returns an error if entries have too few bits for the places of this drive.
    pub fn export_map(&mut self, terms: Terms, seed: Seed) -> Result<(), SubmitError> {
        if self.layout.slots() >= SLOTS_MAX {
            let what = format!(
                "the drive has {} slots, but map entries support fewer than {SLOTS_MAX}",
                self.layout.slots()
            );
            return Err(LayerError::Unfit { layer: "hpb-host", what }.into());
        }
        self.hpb = Some(Box::new(Manager::new(terms, seed)));
        self.outcome.keep_remapped();
        Ok(())
    }

    /// Returns the counters of the drive's side of HPB and the bytes of its tables, or `None` if
    /// the drive exports no map.
    pub fn hpb(&self) -> Option<(HpbCounters, u64)> {
        self.hpb.as_ref().map(|hpb| (hpb.counters, hpb.bytes()))
    }

    /// Checks that the drive exports the part of the map that a command asks for.
    pub(super) fn exports_entries(&self, cmd: &Cmd<'_>) -> Result<(), SubmitError> {
        match &self.hpb {
            None => cmd.asks_within(0, 0),
            Some(hpb) => cmd.asks_within(hpb.terms.subregion_count(), hpb.terms.region_count()),
        }
    }

    /// Carries out READ BUFFER: reads the map pages, makes the entries, and sends them over the
    /// link.
    pub(super) fn read_buffer(
        &mut self,
        begun: &Begun,
        tag: Tag,
        subregion: u32,
        reply: &mut Reply,
    ) -> Result<(), FtlError> {
        let hpb = self.hpb.as_ref().expect("the drive was found to have HPB");
        let pages = hpb.terms.pages(subregion);
        let (count, entry_bytes) =
            (u64::from(pages.end - pages.start), hpb.terms.protect.entry_bytes());
        let hashing = hpb.hashing(count);
        let mut ready = self
            .with_ftl(&begun.command, |ftl, cx| ftl.export_entries(cx, pages))
            .map_err(|error| match error {
                // the drive can continue with a map page that it cannot read, as long as no command
                // needs that page
                FtlError::Medium(MediumError::Unreadable(_) | MediumError::Damaged(_)) => error,
                other => self.fail(other),
            })?;
        let hpb = self.hpb.as_mut().expect("the drive was found to have HPB");
        hpb.export_entries(subregion, place(self.ftl.as_ref()), &mut reply.entries);
        if hashing > Dur::ZERO {
            ready = self.plan.push(OpKind::Delay(hashing), Class::Map, &[ready]);
        }
        let link = OpKind::Link { inbound: false, bytes: count * u64::from(entry_bytes) };
        let sent = self.plan.push(link, Class::Map, &[ready]);
        self.complete(tag, Class::Map, &[sent], reply);
        Ok(())
    }

    /// Carries out WRITE BUFFER: the host returns a region, or all regions.
    pub(super) fn write_buffer(
        &mut self,
        begun: &Begun,
        tag: Tag,
        region: Option<u32>,
        reply: &mut Reply,
    ) {
        self.hpb.as_mut().expect("the drive was found to have HPB").give_back(region);
        self.complete(tag, Class::HostRead, &[begun.command.first], reply);
    }

    /// Reads a unit at the place in the entry that came with the read, if the entry is accepted.
    /// Returns `Ok(None)` if the map must be looked up instead.
    ///
    /// `short` is `true` if the read is short enough to carry entries.
    pub(super) fn read_by_entry(
        &mut self,
        begun: &mut Begun,
        piece: &Piece,
        (entry, short): (Option<u64>, bool),
        groups: &mut FrameReads,
    ) -> Result<Option<Unit>, FtlError> {
        let Some(hpb) = &mut self.hpb else { return Ok(None) };
        hpb.read(piece.lpn);
        let stands = self.ftl.peek(piece.lpn);
        // a unit that waits to be programmed is read from the drive's memory, whether HPB is used
        // or not
        if let Place::Buffer(_) = stands {
            return Ok(None);
        }
        let missed = short && matches!(stands, Place::Flash(_));
        let Some(entry) = entry else {
            if missed {
                hpb.missed(piece.lpn);
            }
            return Ok(None);
        };
        let opened = hpb.open(piece.lpn, entry, self.layout.slots());
        let looked_at = !matches!(opened, Err(Refusal::Inactive | Refusal::Dirty));
        let hashing = if looked_at { hpb.hashing(1) } else { Dur::ZERO };
        if hashing > Dur::ZERO {
            // the check takes this time even if the entry is refused, and every read waits for the
            // check
            let first = &mut begun.command.first;
            *first = self.plan.push(OpKind::Delay(hashing), Class::HostRead, &[*first]);
        }
        if let Ok(ppn) = opened {
            if let Some(unit) = self.confirmed(ppn, piece.lpn) {
                self.join_group(begun, groups, ppn, piece, [OpId::NONE, begun.command.first]);
                self.hpb
                    .as_mut()
                    .expect("the drive was found to have HPB")
                    .counters
                    .valid_entries += 1;
                return Ok(Some(
                    self.under_cached(piece.lpn, Some(unit)).expect("a unit was given"),
                ));
            }
            self.read_in_vain(begun, ppn)?;
        }
        let hpb = self.hpb.as_mut().expect("the drive was found to have HPB");
        hpb.counters.refused[Refusal::Elsewhere as usize] += u64::from(opened.is_ok());
        if missed {
            hpb.missed(piece.lpn);
        }
        Ok(None)
    }

    /// Returns the unit in a slot of a data block, if its spare area names this page.
    ///
    /// If the write cache has a part of the page, the unit must be the version that this part was
    /// written over.
    fn confirmed(&self, ppn: Ppn, lpn: Lpn) -> Option<Unit> {
        let data = self.medium.oob_role(self.layout.block_of(ppn)) != OobRole::MAP;
        let unit = unit_at(&self.medium, ppn, lpn).ok().filter(|_| data)?;
        let cached = self.cached(lpn);
        cached.is_none_or(|entry| entry.base == unit.stamp).then_some(unit)
    }

    /// Reads a slot that contains another page than the entry claims. The map lookup of the page
    /// waits for this read.
    fn read_in_vain(&mut self, begun: &mut Begun, ppn: Ppn) -> Result<(), FtlError> {
        let (frame, slot) = (self.layout.frame_of(ppn), 1 << (ppn.0 % self.layout.slots_per_frame));
        let after = [begun.command.first];
        // an erased or torn page has no spare area to read, and the model has no operation for such
        // a read
        let read = self.with_ftl(&begun.command, |_, cx| {
            Ok(cx.flash.read(frame, slot, ReadPart::Whole, Cause::Host, &after))
        })?;
        if let Ok(op) = read {
            begun.command.first = op;
        }
        Ok(())
    }

    /// Puts the notice of the response into `reply`. Returns the operation that sends the entries
    /// of the notice over the link before the command is complete, or [`OpId::NONE`] if there are
    /// no entries.
    pub(super) fn say_what_changed(
        &mut self,
        tag: Tag,
        class: Class,
        after: &[OpId],
        reply: &mut Reply,
    ) -> OpId {
        let Some(hpb) = &mut self.hpb else { return OpId::NONE };
        reply.notice = hpb.notice(tag, place(self.ftl.as_ref()));
        if self.instant {
            hpb.reached(tag);
        }
        match reply.notice.as_ref().map_or(0, |notice| notice.pairs.len() as u64) {
            0 => OpId::NONE,
            // each pair has an address of 4 bytes and an entry of 4 bytes
            pairs => {
                self.plan.push(OpKind::Link { inbound: false, bytes: 8 * pairs }, class, after)
            }
        }
    }
}
