//! Commands of a mirror. A read is sent to one drive, and a change to all drives.

use super::copies::{Failed, MOST, Sent, State, is_power_lost};
use super::{DEF, Mirror};
use flashatlas_device::pieces::{Piece, pieces, units};
use flashatlas_device::{Cmd, LayerError, Reply, SubmitError};
use flashatlas_types::{Lba, Ps, Tag};
use smallvec::SmallVec;
use std::ops::Range;

impl Mirror {
    /// Returns the units that a command covers completely.
    pub(super) fn whole_units(&self, (lba, sectors): (Lba, u32)) -> Range<u32> {
        let unit = u64::from(self.shape.unit_sectors);
        let (first, end) = (lba.0.div_ceil(unit), (lba.0 + u64::from(sectors)) / unit);
        first as u32..(end as u32).max(first as u32)
    }

    /// Takes drives out whose failure, by `mirror.lose`, is at `now` or earlier.
    pub(super) fn lose(&mut self, now: Ps) -> Result<(), SubmitError> {
        while let Some(&(at, drive)) = self.losses.last()
            && at <= now
            && !self.copies.instant
        {
            self.losses.pop();
            let what = format!("drive {drive} failed (mirror.lose), and no other drive is current");
            let error = LayerError::Damaged { layer: DEF.name, what };
            self.copies.drop_drives(now, SmallVec::from_iter([(drive, error.into())]))?;
        }
        Ok(())
    }

    /// Returns the drive for the next read of units that are alike: the drive with the fewest
    /// commands in flight.
    pub(super) fn choose(&mut self) -> usize {
        let usable = self.copies.those(|state| state != State::Out);
        let drives = self.copies.devices.len();
        let turn = |drive: usize| (drive + drives - self.turn - 1) % drives;
        let least =
            usable.into_iter().min_by_key(|&drive| (self.copies.in_flight[drive], turn(drive)));
        self.turn = least.expect("a drive is current");
        self.turn
    }

    /// Reads from one drive. If that drive cannot read the range, reads each unit from a drive that
    /// can.
    pub(super) fn read(
        &mut self,
        now: Ps,
        range: (Lba, u32),
        after: &[Tag],
        reply: &mut Reply,
    ) -> Result<Sent, SubmitError> {
        let (lba, sectors) = range;
        let parts: SmallVec<[Piece; 4]> = pieces(lba, sectors, self.shape.unit_sectors).collect();
        let whole = self.read_some(now, range, after, reply, parts.len() == 1);
        match whole {
            // only the unit that fails is read from another drive, because other units may be newer
            // here
            Err(error) if parts.len() > 1 && !is_power_lost(&error) => {}
            done => return done,
        }
        let (mut sent, mut all) = (Sent::new(), Reply::default());
        for part in parts {
            let range = (Lba(lba.0 + u64::from(part.offset)), part.sectors);
            sent.extend(self.read_some(now, range, after, reply, true)?);
            all.stamps.append(&mut reply.stamps);
            all.bytes.append(&mut reply.bytes);
        }
        *reply = all;
        Ok(sent)
    }

    /// Reads a range from one drive. If the drive cannot read it and `others` is set, tries the
    /// next drives.
    fn read_some(
        &mut self,
        now: Ps,
        range: (Lba, u32),
        after: &[Tag],
        reply: &mut Reply,
        others: bool,
    ) -> Result<Sent, SubmitError> {
        let (lba, sectors) = range;
        let touched = units(lba, sectors, self.shape.unit_sectors);
        let touched = touched.start as u32..touched.end as u32;
        let first = self.copies.first().expect("a drive is current");
        let chosen =
            if self.balance && self.alike.are(touched.clone()) { self.choose() } else { first };
        let mut order: SmallVec<[usize; MOST]> = SmallVec::from_slice(&[chosen]);
        let alike = self.alike.are(touched.clone());
        let believed = |drive: &usize| alike || !self.copies.damaged[*drive];
        let current = self.copies.those(|state| state == State::Current).into_iter();
        order.extend(current.filter(|drive| others && *drive != chosen && believed(drive)));
        let (mut error, mut cannot) = (None, SmallVec::<[usize; MOST]>::new());
        for drive in order {
            match self.copies.send(drive, now, Cmd::Read { lba, sectors }, after, reply) {
                Ok(tag) => {
                    self.counters.reads_of_others += u64::from(drive != first);
                    let mut sent = Sent::from_slice(&[tag]);
                    if !cannot.is_empty() {
                        sent.extend(self.repair(now, drive, &cannot, touched)?);
                    }
                    return Ok(sent);
                }
                Err(refused) if is_power_lost(&refused) => return Err(refused),
                Err(refused) => {
                    self.counters.read_errors += 1;
                    error.get_or_insert(refused);
                    cannot.push(drive);
                }
            }
        }
        Err(error.expect("a read that no drive answered has an error"))
    }

    /// Repairs units by copying them from a drive that could read them to drives that could not.
    pub(super) fn repair(
        &mut self,
        now: Ps,
        from: usize,
        to: &[usize],
        range: Range<u32>,
    ) -> Result<Sent, SubmitError> {
        let (sent, failed) = self.copy(now, from, to, range.clone())?;
        self.counters.repaired_units += u64::from(range.end - range.start);
        self.copies.drop_drives(now, failed)?;
        Ok(sent)
    }

    /// Sends a command that changes data to every drive that is in use.
    pub(super) fn change(
        &mut self,
        now: Ps,
        cmd: Cmd<'_>,
        after: &[Tag],
    ) -> Result<Sent, SubmitError> {
        let (mut sent, mut failed) = (Sent::new(), Failed::new());
        for drive in self.copies.those(|state| state != State::Out) {
            match self.copies.send(drive, now, cmd, after, &mut self.reply) {
                Ok(tag) => sent.push(tag),
                Err(error) if is_power_lost(&error) => return Err(error),
                Err(error) => failed.push((drive, error)),
            }
        }
        self.copies.drop_drives(now, failed)?;
        if let Some(range) = cmd.range(self.shape.unit_sectors) {
            let whole = self.whole_units(range);
            self.alike.note(whole);
            self.counters.copies_written +=
                sent.len() as u64 * u64::from(!matches!(cmd, Cmd::Trim { .. }));
        }
        sent.extend_from_slice(self.copies.barrier());
        Ok(sent)
    }
}
