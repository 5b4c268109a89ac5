//! A mirror over several drives of the same configuration (RAID 1: Patterson, Gibson and Katz, *A
//! Case for Redundant Arrays of Inexpensive Disks*, SIGMOD 1988).
//!
//! Every write is sent to all drives. A read is sent to one drive, and to another drive if the read
//! fails. Each copy is on one drive, or on layers over one drive.
//!
//! Three rules make the mirror survive power failures:
//!
//! - A drive on which a write fails is taken *out*. The superblocks of the other drives record this
//!   ([`superblock`]) before the next write, trim or FLUSH is complete. A mount uses the last such
//!   record, and a drive that is not named there is *behind*.
//! - After a power failure, drives may differ in data that was not flushed. Until a unit is known
//!   to be equal on all drives ([`alike`]), it is read only from one drive, the *first*. This is
//!   the current drive that the superblocks name as the first.
//! - In idle time ([`resync`]), such units are copied from the first drive to the other drives.
//!   After that, a drive that was behind is current again.
//!
//! There is no order between drives. If a command must wait for another, its part on each drive
//! waits only for the other command's part on the same drive.

mod alike;
mod commands;
mod copies;
mod mount;
mod resync;
mod settings;
mod superblock;

use crate::notes::{MIRROR_FREE, MIRROR_UNSURE};
use alike::Alike;
use copies::{Copies, Sent, State, is_power_lost};
use flashatlas_device::{
    Build, Cmd, Contents, Device, DeviceShape, Done, DriveConfig, LayerDef, LayerLimit,
    LayerReport, LayersBelow, Reply, Ssd, Storage, Submission, SubmitError,
};
use flashatlas_nand::params::DATA;
use flashatlas_types::{Lpn, Mechanism, Ps, SECTOR_BYTES, Seed, Stamp, Violation};
use settings::{DRIVES, PARAMS, READ, RESYNC, fits, losses};
use smallvec::SmallVec;

pub const DEF: LayerDef = LayerDef {
    name: "mirror",
    summary: "keeps all data on several drives of the same configuration, and continues without a \
              drive that fails (RAID 1)",
    paper: "Patterson, Gibson and Katz, A Case for Redundant Arrays of Inexpensive Disks (SIGMOD \
            1988), level 1",
    params: PARAMS,
    fits,
    build: Build::OverSeveral {
        count: |params| params.get(DRIVES),
        build: |config, devices| Ok(Box::new(Mirror::mount(config, devices)?)),
    },
    mount_limit: |params, lower| {
        let drives = u64::from(params.get(DRIVES));
        // a mount of a blank drive reads the whole drive
        LayerLimit { reads: drives * (u64::from(lower.shape.units()) + 1), writes: drives * drives }
    },
    small: &[
        &["mirror.reserve=32KiB", "mirror.resync=4KiB"],
        &["mirror.reserve=32KiB", "mirror.drives=3", "mirror.read=first", "mirror.resync=8KiB"],
    ],
    mechanisms: &[
        Mechanism::new("write to every drive", "layers.mirror.copies_written"),
        Mechanism::new("read from another drive than the first", "layers.mirror.reads_of_others")
            .without(&["mirror.read=first"]),
        Mechanism::new("drive taken out", "layers.mirror.dropped").without(&["mirror.lose="]),
    ],
};

#[derive(Clone, Copy, Default)]
struct Counters {
    reads: u64,
    reads_of_others: u64,
    writes: u64,
    copies_written: u64,
    trims: u64,
    flushes: u64,
    read_errors: u64,
    repaired_units: u64,
    resynced_units: u64,
}

struct Mirror {
    copies: Copies,
    alike: Alike,
    shape: DeviceShape,
    /// Drive of the last read, if drives take turns.
    turn: usize,
    balance: bool,
    /// Number of units that are copied at a time.
    resync_units: u32,
    /// Planned failures of drives, the next failure last.
    losses: Vec<(Ps, usize)>,
    counters: Counters,
    failed: Option<SubmitError>,
    /// Latest time of a call of the mirror.
    latest: Ps,
    done: Vec<Done>,
    reply: Reply,
}

impl Mirror {
    fn mount(
        config: &DriveConfig,
        mut devices: Vec<Box<dyn Storage>>,
    ) -> Result<Mirror, SubmitError> {
        let params = &config.params;
        for device in &mut devices {
            device.drives_mut().into_iter().for_each(|drive| drive.keep_awaited());
        }
        let below =
            LayersBelow { shape: devices[0].shape(), layers: &[], registry: &config.registry };
        let shape = fits(params, &below).expect("the configuration is checked");
        let mut losses = losses(params).expect("the configuration is checked");
        losses.reverse();
        let mut mirror = Mirror {
            copies: Copies::new(devices, shape.sectors, params.get(DATA) == "ram"),
            alike: Alike::new(shape.units(), false),
            shape,
            turn: 0,
            balance: params.get(READ) == "least-busy",
            resync_units: params.get(RESYNC).div_ceil(shape.unit_sectors * SECTOR_BYTES),
            losses,
            counters: Counters::default(),
            failed: None,
            latest: Ps::ZERO,
            done: Vec::new(),
            reply: Reply::default(),
        };
        mirror.load()?;
        Ok(mirror)
    }

    /// Takes drives out that failed between commands.
    fn look_around(&mut self, now: Ps) {
        for drive in self.copies.those(|state| state != State::Out) {
            if let Some(error) = self.copies.devices[drive].failure() {
                if is_power_lost(&error) {
                    self.failed = Some(error); // all drives share one power supply
                    return;
                }
                let failed = SmallVec::from_iter([(drive, error)]);
                if let Err(error) = self.copies.drop_drives(now, failed) {
                    self.failed = Some(error);
                    return;
                }
            }
        }
        for drive in self.copies.those(|state| state == State::Out) {
            if self.copies.in_flight[drive] > 0 {
                self.copies.abandon(drive, now);
            }
        }
    }
}

impl Device for Mirror {
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        let Submission { now, tag, cmd, after } = submission;
        reply.clear();
        self.shape.accepts(&cmd)?;
        self.latest = self.latest.max(now);
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut waits = Sent::new();
        for &tag in after {
            waits.extend(self.copies.completions.behind(tag));
        }
        let carried_out = self.lose(now).and_then(|()| match cmd {
            Cmd::Read { lba, sectors } | Cmd::HpbRead { lba, sectors, .. } => {
                self.counters.reads += 1;
                self.read(now, (lba, sectors), &waits, reply)
            }
            // the mirror has no map entries for a host
            Cmd::ReadBuffer { .. } | Cmd::WriteBuffer { .. } => {
                cmd.asks_within(0, 0).map(|()| Sent::new())
            }
            Cmd::Write { .. } | Cmd::WriteUnits { .. } => {
                self.counters.writes += 1;
                self.change(now, cmd, &waits)
            }
            Cmd::Trim { .. } => {
                self.counters.trims += 1;
                self.change(now, cmd, &waits)
            }
            Cmd::Flush => {
                self.counters.flushes += 1;
                self.change(now, cmd, &waits)
            }
        });
        match carried_out {
            Ok(sent) => {
                if !self.copies.instant {
                    let waits = [sent.as_slice(), &waits].concat();
                    self.copies.completions.wait(tag, &waits, now);
                }
                Ok(())
            }
            Err(error) => {
                if cmd.changes() || self.copies.first().is_none() {
                    self.failed = Some(error.clone());
                }
                Err(error)
            }
        }
    }

    fn next_event(&self) -> Option<Ps> {
        let devices = self.copies.devices.iter().filter_map(|device| device.next_event());
        devices.chain(self.copies.completions.next_due()).min()
    }

    fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        self.latest = self.latest.max(until);
        let mut done = std::mem::take(&mut self.done);
        self.copies.devices.iter_mut().for_each(|device| device.advance(until, &mut done));
        done.sort_by_key(|done| (done.at, done.tag.0));
        let first = out.len();
        for done in done.drain(..) {
            let drive = self.copies.drive_of(done.tag);
            self.copies.in_flight[drive] = self.copies.in_flight[drive].saturating_sub(1);
            self.copies.completions.done(done, out);
        }
        self.done = done;
        self.look_around(until);
        if self.copies.completions.complete_due(until, out) {
            out[first..].sort_by_key(|done| done.at);
        }
    }

    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // the drives may have been advanced beyond `now`, for example by a sample
        let now = now.max(self.latest);
        if now >= until {
            return Ok(());
        }
        self.latest = until;
        let worked = self.work(now, until);
        if let Err(error) = &worked {
            self.failed = Some(error.clone());
        }
        worked
    }

    fn shape(&self) -> DeviceShape {
        self.shape
    }
}

impl Mirror {
    /// Does the work of idle time.
    fn work(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        self.lose(now)?;
        let at = self.resync(now, until)?;
        if self.copies.is_busy() {
            return Ok(()); // copies are still in flight at `until`
        }
        let mut failed = SmallVec::new();
        for drive in self.copies.those(|state| state != State::Out) {
            match self.copies.devices[drive].idle(at, until) {
                Err(error) if is_power_lost(&error) => return Err(error),
                Err(error) => failed.push((drive, error)),
                Ok(()) => {}
            }
        }
        self.copies.drop_drives(until, failed)
    }
}

impl Storage for Mirror {
    fn lower(&self) -> &[Box<dyn Storage>] {
        &self.copies.devices
    }

    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>] {
        &mut self.copies.devices
    }

    fn into_drives(self: Box<Self>) -> Vec<Ssd> {
        self.copies.devices.into_iter().flat_map(|device| device.into_drives()).collect()
    }

    fn failure(&self) -> Option<SubmitError> {
        self.failed.clone() // the mirror continues without a drive that failed
    }

    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.copies.forget_flights();
        self.failed = None;
        let mut error = None;
        for (drive, device) in (0..).zip(&mut self.copies.devices) {
            let mounted = device.power_on(config, seed.of_drive(drive));
            device.set_instant(mounted.is_ok());
            let damaged = device.drives().iter().any(|d| d.ftl_report().mount.found_damage());
            self.copies.states[drive as usize] = match mounted {
                Ok(()) if damaged => State::Behind,
                Ok(()) => State::Current,
                Err(_) => State::Out,
            };
            error = error.or(mounted.err());
        }
        self.copies.instant = true;
        let usable = !self.copies.those(|state| state != State::Out).is_empty();
        let mounted = match error {
            Some(error) if !usable => Err(error),
            _ => self.load(),
        };
        self.copies.instant = false;
        self.copies.devices.iter_mut().for_each(|device| device.set_instant(false));
        self.failed = mounted.as_ref().err().cloned();
        mounted
    }

    fn set_instant(&mut self, on: bool) {
        if self.failed.is_some() {
            self.copies.forget_flights(); // these commands never complete
        }
        assert!(self.copies.completions.is_idle(), "commands are in flight");
        self.copies.instant = on;
        self.copies.devices.iter_mut().for_each(|device| device.set_instant(on));
    }

    fn check_own(&self) -> Result<(), Violation> {
        let used = self.copies.those(|state| state != State::Out);
        for unit in (0..self.shape.units()).filter(|&unit| self.alike.is(unit)) {
            let mut held =
                used.iter().map(|&drive| self.copies.devices[drive].peek_stamp(Lpn(unit)));
            let Some(first) = held.next() else { return Ok(()) };
            // a unit that a drive cannot read is not counted as a difference
            let same = held.all(|other| first.is_err() || other.is_err() || first == other);
            Violation::unless(
                same,
                "drives hold the same content in the units that are known to be alike",
                || format!("unit {unit} differs between drives {used:?}"),
            )?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Violation> {
        self.check_own()?;
        let used = self.copies.those(|state| state != State::Out);
        used.into_iter().try_for_each(|drive| self.copies.devices[drive].check())
    }

    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        let first = self.copies.first();
        let others = self.copies.those(|state| state == State::Current).into_iter();
        let order = first.into_iter().chain(others.filter(|&drive| Some(drive) != first));
        let mut held = order.map(|drive| self.copies.devices[drive].peek_stamp(unit));
        let gone = || match &self.failed {
            Some(error) => Err(error.clone()),
            None => unreachable!("a drive is current, or the mirror has failed"),
        };
        let first = held.next().unwrap_or_else(gone);
        first.or_else(|error| held.find_map(Result::ok).ok_or(error))
    }

    fn own_contents(&mut self) -> Option<&mut Contents> {
        Some(&mut self.copies.contents)
    }

    fn report(&self) -> Option<LayerReport> {
        let c = &self.counters;
        let current = self.copies.those(|state| state == State::Current).len();
        let mut approximations = vec![MIRROR_FREE.note()];
        if self.alike.unsure() > 0 {
            approximations.push(MIRROR_UNSURE.with([("units", self.alike.unsure().into())]));
        }
        Some(LayerReport {
            layer: DEF.name,
            unmapped_units: 0,
            counters: vec![
                ("drives", self.copies.devices.len() as u64),
                ("current_drives", current as u64),
                ("first_drive", self.copies.first().unwrap_or(self.copies.devices.len()) as u64),
                ("reads", c.reads),
                ("reads_of_others", c.reads_of_others),
                ("writes", c.writes),
                ("copies_written", c.copies_written),
                ("trims", c.trims),
                ("flushes", c.flushes),
                ("read_errors", c.read_errors),
                ("repaired_units", c.repaired_units),
                ("resynced_units", c.resynced_units),
                ("dropped", self.copies.dropped),
                ("superblocks", self.copies.superblocks),
                ("unsure_units", self.alike.unsure().into()),
            ],
            memory: vec![("bits of units that the drives hold alike", self.alike.bytes())],
            approximations,
        })
    }

    fn reset_own_counters(&mut self) {
        self.counters = Counters::default();
        (self.copies.superblocks, self.copies.dropped) = (0, 0);
    }
}
