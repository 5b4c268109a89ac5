//! Resync in idle time. Units that may differ are copied from the first drive to the other drives.

use super::Mirror;
use super::copies::{Failed, MOST, Sent, State, is_power_lost};
use flashatlas_device::{Cmd, Device, Reply, SubmitError};
use flashatlas_types::{Lba, Ps, Stamp};
use smallvec::SmallVec;
use std::ops::Range;

impl Mirror {
    /// Copies units until all are known to be alike or `until` is reached.
    ///
    /// Returns the time at which the last copy was complete, or `until` if a copy is still in
    /// flight.
    pub(super) fn resync(&mut self, now: Ps, until: Ps) -> Result<Ps, SubmitError> {
        let (mut at, mut from_unit, mut most) = (now, 0, self.resync_units);
        while self.resync_units > 0
            && at < until
            && let Some(units) = self.alike.next_unsure(from_unit, most)
        {
            let Some(from) = self.copies.first() else { break };
            let to = self.copies.those(|state| state != State::Out);
            let to: SmallVec<[usize; MOST]> =
                to.into_iter().filter(|&drive| drive != from).collect();
            match self.copy(at, from, &to, units.clone()) {
                Ok((_, failed)) => {
                    self.copies.drop_drives(at, failed)?;
                    self.alike.note(units.clone());
                    from_unit = units.end;
                    self.counters.resynced_units += u64::from(units.end - units.start);
                }
                Err(error) if is_power_lost(&error) => return Err(error),
                // from here on, units are copied one by one; a unit that the first drive cannot
                // read is not copied, and a read of it returns an error
                Err(_) if units.end - units.start > 1 => {
                    (from_unit, most) = (units.start, 1);
                    continue;
                }
                Err(_) => from_unit = units.end,
            }
            at = self.wait(at, until);
        }
        if self.alike.unsure() == 0 && !self.copies.alike {
            // a drive is current when its copies are durable
            self.change(at, Cmd::Flush, &[])?;
            at = self.wait(at, until);
            if self.copies.is_busy() {
                return Ok(at);
            }
            self.copies.are_alike();
            let failed = self.copies.write_superblocks(at)?;
            self.copies.drop_drives(at, failed)?;
            at = self.wait(at, until);
        }
        Ok(at)
    }

    /// Reads units from one drive and writes them to other drives.
    ///
    /// The writes do not wait for the read in simulated time.
    pub(super) fn copy(
        &mut self,
        now: Ps,
        from: usize,
        to: &[usize],
        units: Range<u32>,
    ) -> Result<(Sent, Failed), SubmitError> {
        let unit = self.shape.unit_sectors;
        let lba = |first: u32| Lba(u64::from(first) * u64::from(unit));
        let read = Cmd::Read { lba: lba(units.start), sectors: (units.end - units.start) * unit };
        let mut reply = Reply::default();
        let mut sent = Sent::from_slice(&[self.copies.send(from, now, read, &[], &mut reply)?]);
        let mut failed = Failed::new();
        let (stamps, bytes) = (reply.stamps, reply.bytes);
        for &drive in to {
            // units that were never written are trimmed, if trims survive a power failure on the
            // drive; each run of such units, and each run of other units, needs one command
            let trims = !self.copies.devices[drive].forgets_trims();
            let is_trimmed = |stamp: &Stamp| trims && *stamp == Stamp::ZERO;
            let mut from = 0;
            while from < stamps.len() {
                let trimmed = is_trimmed(&stamps[from]);
                let run = stamps[from..].iter().take_while(|s| is_trimmed(s) == trimmed).count();
                let first = lba(units.start + from as u32);
                let unit_bytes = bytes.len() / stamps.len();
                let cmd = if trimmed {
                    Cmd::Trim { lba: first, sectors: run as u32 * unit }
                } else {
                    Cmd::WriteUnits {
                        lba: first,
                        fua: false,
                        stamps: &stamps[from..from + run],
                        data: (unit_bytes > 0)
                            .then(|| &bytes[from * unit_bytes..(from + run) * unit_bytes]),
                    }
                };
                match self.copies.send(drive, now, cmd, &[], &mut self.reply) {
                    Ok(tag) => sent.push(tag),
                    Err(error) if is_power_lost(&error) => return Err(error),
                    Err(error) => {
                        failed.push((drive, error));
                        break;
                    }
                }
                from += run;
            }
        }
        Ok((sent, failed))
    }

    /// Waits until all commands are complete or `until` is reached. Returns the time that is
    /// reached.
    fn wait(&mut self, mut at: Ps, until: Ps) -> Ps {
        let mut none = Vec::new();
        while self.copies.is_busy() {
            let Some(event) = self.next_event().filter(|&event| event <= until) else {
                return until;
            };
            self.advance(event, &mut none);
            at = at.max(event);
        }
        assert!(none.is_empty(), "a command from above was in flight in idle time");
        at
    }
}
