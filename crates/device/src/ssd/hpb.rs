//! Commands and reads of a drive that hands its map out.

use super::Ssd;
use super::read::FrameReads;
use crate::hpb::entry::SLOTS_MAX;
use crate::hpb::{Manager, Refusal, Terms};
use crate::pieces::Piece;
use crate::{Cmd, HpbCounters, LayerError, Reply, SubmitError};
use flashatlas_ftl::blocks::unit_at;
use flashatlas_ftl::{Ftl, Place};
use flashatlas_nand::{OobRole, ReadPart, Unit};
use flashatlas_types::{
    Cause, Class, Dur, FtlError, Lpn, MediumError, OpId, OpKind, Ppn, Ps, Seed, Tag,
};

/// Where an entry says that a page is: its place on flash, if it has one. What waits in a page
/// buffer has none yet.
fn place(ftl: &dyn Ftl) -> impl Fn(Lpn) -> Option<Ppn> + '_ {
    |lpn| match ftl.peek(lpn) {
        Place::Flash(ppn) => Some(ppn),
        Place::Nowhere | Place::Buffer(_) => None,
    }
}

impl Ssd {
    /// Hand the map out from now on.
    ///
    /// # Errors
    /// When places of this drive do not fit into entries.
    pub fn export_map(&mut self, terms: Terms, seed: Seed) -> Result<(), SubmitError> {
        if self.layout.slots() >= SLOTS_MAX {
            let what = format!(
                "the drive has {} slots, an entry has room for {SLOTS_MAX}",
                self.layout.slots()
            );
            return Err(LayerError::Unfit { layer: "hpb-host", what }.into());
        }
        self.hpb = Some(Box::new(Manager::new(terms, seed)));
        Ok(())
    }

    /// What the drive's side of HPB counted, and the bytes of its tables; `None` where the map is
    /// not handed out.
    pub fn hpb(&self) -> Option<(HpbCounters, u64)> {
        self.hpb.as_ref().map(|hpb| (hpb.counters, hpb.bytes()))
    }

    /// `Ok` unless a command asks for a part of the map that there is not.
    pub(super) fn exports_entries(&self, cmd: &Cmd<'_>) -> Result<(), SubmitError> {
        match &self.hpb {
            None => cmd.asks_within(0, 0),
            Some(hpb) => cmd.asks_within(hpb.terms.subregion_count(), hpb.terms.region_count()),
        }
    }

    /// READ BUFFER: the map pages are read, entries are made of them, and all go over the link.
    pub(super) fn read_buffer(
        &mut self,
        now: Ps,
        tag: Tag,
        subregion: u32,
        reply: &mut Reply,
    ) -> Result<(), FtlError> {
        self.begin();
        let hpb = self.hpb.as_ref().expect("checked before");
        let pages = hpb.terms.pages(subregion);
        let (count, entry_bytes) =
            (u64::from(pages.end - pages.start), hpb.terms.protect.entry_bytes());
        let hashing = hpb.hashing(count);
        let mut ready = self.with_ftl(now, |ftl, cx| ftl.export_entries(cx, pages)).map_err(
            |error| match error {
                // the drive can do without what it cannot read, as long as nobody needs it
                FtlError::Medium(MediumError::Unreadable(_) | MediumError::Damaged(_)) => error,
                other => self.fail(other),
            },
        )?;
        let hpb = self.hpb.as_mut().expect("checked before");
        hpb.export_entries(subregion, place(self.ftl.as_ref()), &mut reply.entries);
        if hashing > Dur::ZERO {
            ready = self.plan.push(OpKind::Delay(hashing), Class::Map, &[ready]);
        }
        let link = OpKind::Link { inbound: false, bytes: count * u64::from(entry_bytes) };
        let sent = self.plan.push(link, Class::Map, &[ready]);
        self.complete(tag, Class::Map, &[sent]);
        Ok(())
    }

    /// WRITE BUFFER: the host gives a region back, or all.
    pub(super) fn write_buffer(&mut self, tag: Tag, region: Option<u32>) {
        let command = self.begin();
        self.hpb.as_mut().expect("checked before").give_back(region);
        self.complete(tag, Class::HostRead, &[command]);
    }

    /// Read a unit where the entry that came with the read says, if it is believed; `None`: look it
    /// up. `short`: the read could have brought entries along.
    pub(super) fn read_by_entry(
        &mut self,
        now: Ps,
        piece: &Piece,
        (entry, short): (Option<u64>, bool),
        groups: &mut FrameReads,
    ) -> Result<Option<Unit>, FtlError> {
        let Some(hpb) = &mut self.hpb else { return Ok(None) };
        hpb.read(piece.lpn);
        let stands = self.ftl.peek(piece.lpn);
        // what waits to be programmed is found in the drive's memory, as ever
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
            // whether it is believed or not: nothing is read before that is known
            self.command.first =
                self.plan.push(OpKind::Delay(hashing), Class::HostRead, &[self.command.first]);
        }
        if let Ok(ppn) = opened {
            if let Some(unit) = self.confirmed(ppn, piece.lpn) {
                self.join_group(groups, ppn, piece, [OpId::NONE, self.command.first]);
                self.hpb.as_mut().expect("just asked").counters.valid_entries += 1;
                return Ok(Some(
                    self.under_cached(piece.lpn, Some(unit)).expect("a unit was given"),
                ));
            }
            self.read_in_vain(now, ppn)?;
        }
        let hpb = self.hpb.as_mut().expect("just asked");
        hpb.counters.refused[Refusal::Elsewhere as usize] += u64::from(opened.is_ok());
        if missed {
            hpb.missed(piece.lpn);
        }
        Ok(None)
    }

    /// What is in a slot, if its spare area names this page, in a block of data. A page of
    /// which the write cache has a part must be the version that this part was written over.
    fn confirmed(&self, ppn: Ppn, lpn: Lpn) -> Option<Unit> {
        let data = self.medium.oob_role(self.layout.block_of(ppn)) != OobRole::MAP;
        let unit = unit_at(&self.medium, ppn, lpn).ok().filter(|_| data)?;
        let cached = self.cached(lpn);
        cached.is_none_or(|entry| entry.base == unit.stamp).then_some(unit)
    }

    /// A page was read only to find that it is another one; what is looked up then waits for that.
    fn read_in_vain(&mut self, now: Ps, ppn: Ppn) -> Result<(), FtlError> {
        let (frame, slot) = (self.layout.frame_of(ppn), 1 << (ppn.0 % self.layout.slots_per_frame));
        let after = [self.command.first];
        // an erased or torn page has no spare area to read: the model has no operation for that
        let read = self.with_ftl(now, |_, cx| {
            Ok(cx.flash.read(frame, slot, ReadPart::Whole, Cause::Host, &after))
        })?;
        if let Ok(op) = read {
            self.command.first = op;
        }
        Ok(())
    }

    /// What the response tells the host; entries that come along go over the link before the
    /// command is complete.
    pub(super) fn say_what_changed(&mut self, tag: Tag, class: Class, after: &[OpId]) -> OpId {
        let Some(hpb) = &mut self.hpb else { return OpId::NONE };
        self.command.notice = hpb.notice(tag, place(self.ftl.as_ref()));
        if self.instant {
            hpb.reached(tag);
        }
        match self.command.notice.as_ref().map_or(0, |notice| notice.pairs.len() as u64) {
            0 => OpId::NONE,
            // an address and an entry of 4 bytes each
            pairs => {
                self.plan.push(OpKind::Link { inbound: false, bytes: 8 * pairs }, class, after)
            }
        }
    }
}
