//! Checks of a drive behind its controller after a cut, through commands of a host.

use super::host::Host;
use super::model::{Model, TOTALS, Totals, never_back, totals};
use super::step::Blocks;
use super::units::{BLOCK, Tag, extend, tag, tags};
use crate::examine::{Examine, Mounted, Remains, drop_learnt};
use crate::media::{Media, take_journals};
use crate::recording::SEED;
use crate::{Failure, guarded};
use flashatlas_device::{Contents, DriveConfig, Stack};
use flashatlas_nand::Change;
use flashatlas_nvme::drive::Drive;
use flashatlas_nvme::{Status, feature, io};

/// Content number of the first write after a cut.
const CONTENT: u64 = 1 << 32;
/// Number of the first write after a cut, for the contents of its blocks.
const WRITES: u32 = 1 << 20;
/// Force Unit Access, in command dword 12.
const FUA: u32 = 1 << 30;

/// Index of the power cycles and of the unsafe shutdowns in [`TOTALS`].
const CYCLES: usize = 4;
const UNSAFE: usize = 5;

/// Verifier that mounts the media after cuts, and sends commands through a controller.
pub struct Verifier<'c> {
    config: &'c DriveConfig,
    blocks: u32,
    unit_blocks: u32,
    /// Contents for the digests that layers store.
    contents: Vec<Contents>,
    /// The drive; `None` while a cut is examined, and after an examination that kept no drive.
    drive: Option<Stack>,
    mounts: u64,
    longest_mount: u64,
}

/// Ignores the events of the media.
fn quiet(_: &mut Drive, _: super::host::Noted) {}

impl<'c> Verifier<'c> {
    /// Returns a verifier for drives of `config`. These drives keep bytes.
    pub fn new(config: &'c DriveConfig) -> Verifier<'c> {
        let shape = config.shape();
        Verifier {
            config,
            blocks: shape.sectors as u32,
            unit_blocks: shape.unit_sectors,
            contents: Vec::new(),
            drive: None,
            mounts: 0,
            longest_mount: 0,
        }
    }

    /// Sets the contents for the digests on the drives that are examined next.
    pub fn knows(&mut self, contents: Vec<Contents>) {
        (self.contents, self.drive) = (contents, None);
    }

    fn try_examine(
        &mut self,
        drive: Option<Stack>,
        mut media: Media,
        model: &Model,
        (number, keep): (u64, bool),
    ) -> Result<(Stack, Mounted), Failure> {
        let before = keep.then(|| media.clone());
        media.keep_journals();
        let mut stack = drive.unwrap_or_else(|| {
            let stack = self.config.build_stack(SEED);
            let mut stack = stack.expect("the workload ran on such a drive");
            stack.learn(&self.contents);
            stack
        });
        stack.set_instant(false);
        self.mounts += 1;
        stack
            .remount(media, self.config, SEED)
            .map_err(|error| Failure::new("R4", format!("the mount fails: {error}")))?;
        stack.drives_mut().into_iter().for_each(|drive| drive.faults().fade());
        let mut changes = Vec::new();
        take_journals(&mut stack, false, &mut changes);
        stack.drives_mut().into_iter().for_each(|drive| drop(drive.faults().end_journal()));
        let flash = changes.iter().filter(|c| {
            matches!(c.change, Change::Program { .. } | Change::Erase(_) | Change::EraseFailed(_))
        });
        self.longest_mount = self.longest_mount.max(flash.count() as u64);
        let contents = if keep { stack.contents() } else { Vec::new() };

        let host = Host::power_on(Drive::new(stack, CONTENT), model.home.clone(), &mut quiet)?;
        // a power failure before the drive is in use again is no second unsafe shutdown
        let mut host = Host::power_on(host.drive, host.home, &mut quiet)?;
        host.enable(&mut quiet)?;
        let shown = check_kept(&mut host, model)?;
        let mut expected = tags(&host.read_all(self.blocks)?);
        for (unit, held) in (0..).zip(expected.chunks(self.unit_blocks as usize)) {
            if let Some(promise) = model.units.broken(unit, held) {
                let allowed = model.units.describe(unit);
                let what = format!("unit {unit} holds {held:x?}, but only {allowed} are allowed");
                return Err(Failure::new(promise, what));
            }
        }
        check_compare(&mut host, &expected, number)?;
        let check = host.drive.stack.top().check();
        check.map_err(|v| Failure::new("R5", format!("after the mount: {v}")))?;

        self.write_on(&mut host, &mut expected, number)?;
        let mut host = self.power_cycle(host)?;
        host.enable(&mut quiet)?;
        let now = self.compare(&mut host, &expected)?;
        let [cycles, failed] = [CYCLES, UNSAFE].map(|at| (now[at], shown[at] + 1));
        Failure::unless(cycles.0 == cycles.1 && failed.0 == failed.1, "N7", || {
            format!(
                "after one more power failure in use: {} power cycles, not {}; {} unsafe \
                 shutdowns, not {}",
                cycles.0, cycles.1, failed.0, failed.1
            )
        })?;
        never_back(&shown, &now)?;

        host.shut_down(&mut quiet);
        host.carry_out(0, &mut quiet);
        let Host { drive, home, .. } = host;
        let mut host = Host::power_on(drive, home, &mut quiet)?;
        host.enable(&mut quiet)?;
        let last = smart(&mut host)?;
        Failure::unless(last[UNSAFE] == now[UNSAFE], "N7", || {
            format!("{} unsafe shutdowns after a shutdown, not {}", last[UNSAFE], now[UNSAFE])
        })?;
        Ok((host.drive.stack, Mounted { before, changes, contents }))
    }

    /// Lets the power fail and come back.
    fn power_cycle(&mut self, host: Host) -> Result<Host, Failure> {
        let Host { drive, home, .. } = host;
        let mut stack = drive.stack;
        stack.set_instant(false);
        self.mounts += 1;
        stack
            .power_cycle(self.config, SEED)
            .map_err(|error| Failure::new("R4", format!("a second mount fails: {error}")))?;
        Host::power_on(Drive::new(stack, CONTENT << 1), home, &mut quiet)
    }

    /// Writes a unit with FUA, and another unit that a FLUSH makes durable.
    fn write_on(&self, host: &mut Host, expected: &mut [Tag], number: u64) -> Result<(), Failure> {
        let units = u64::from(self.blocks / self.unit_blocks);
        for (write, unit) in [(0, number % units), (1, number / units % units)] {
            let blocks = Blocks { first: unit as u32 * self.unit_blocks, count: self.unit_blocks };
            let mut data = Vec::new();
            for (block, lba) in (0..blocks.count).zip(blocks.first..) {
                let content = tag(WRITES + write, block);
                extend(&mut data, content);
                expected[lba as usize] = content;
            }
            let mut entry = host.io(io::WRITE, blocks.first, blocks.count, data.len());
            if write == 0 {
                entry = entry.dword(12, entry.at(12) | FUA);
            }
            host.must(&entry, &data, "R5", &mut quiet)?;
        }
        let flush = host.io(io::FLUSH, 0, 0, 0);
        host.must(&flush, &[], "R5", &mut quiet).map(drop)
    }

    /// Compares everything after further writes, and returns the totals of the SMART log.
    fn compare(&self, host: &mut Host, expected: &[Tag]) -> Result<Totals, Failure> {
        let held = tags(&host.read_all(self.blocks)?);
        let unit = self.unit_blocks as usize;
        let pairs = held.chunks(unit).zip(expected.chunks(unit));
        for (number, (held, expected)) in pairs.enumerate() {
            Failure::unless(held == expected, "N2", || {
                format!("unit {number} holds {held:x?} after further writes, not {expected:x?}")
            })?;
        }
        smart(host)
    }
}

/// Returns the totals of the SMART log.
fn smart(host: &mut Host) -> Result<Totals, Failure> {
    let entry = host.smart();
    Ok(totals(&host.must(&entry, &[], "N7", &mut quiet)?.1))
}

/// Checks the values that outlive power in the controller: saved features and totals. Returns the
/// totals.
fn check_kept(host: &mut Host, model: &Model) -> Result<Totals, Failure> {
    const CURRENT: u32 = 0;
    const SAVED: u32 = 2;
    for select in [SAVED, CURRENT] {
        let cache = host.feature(feature::WRITE_CACHE, select)? != 0;
        let allowed = model.saved_cache.allowed();
        Failure::unless(allowed.contains(&cache), "N6", || {
            format!("the write cache is {cache} after power on, but only {allowed:?} are allowed")
        })?;
        let threshold = host.feature(feature::TEMPERATURE, select)?;
        let allowed = model.saved_threshold.allowed();
        Failure::unless(allowed.iter().any(|&one| u64::from(one) == threshold), "N6", || {
            format!("the threshold is {threshold} after power on, but only {allowed:?} are allowed")
        })?;
    }
    let totals = smart(host)?;
    never_back(&model.seen, &totals)?;
    // the power came on twice since the cut
    let cycles = model.cycles.allowed().iter().map(|&cycles| u128::from(cycles) + 2);
    let failed = model.in_use.allowed().iter().map(|&in_use| u128::from(in_use));
    let mut expected =
        [(CYCLES, cycles.collect::<Vec<_>>()), (UNSAFE, failed.collect())].into_iter();
    expected.try_for_each(|(at, expected)| {
        Failure::unless(expected.contains(&totals[at]), "N7", || {
            format!(
                "{}: {} after the cut, but only {expected:?} are allowed",
                TOTALS[at].0, totals[at]
            )
        })
    })?;
    Ok(totals)
}

/// Checks that a compare succeeds with the content of a unit, and fails with other data.
fn check_compare(host: &mut Host, held: &[Tag], number: u64) -> Result<(), Failure> {
    let first = number % (held.len() as u64);
    let held = &held[first as usize..][..(held.len() - first as usize).min(8)];
    let mut data = Vec::new();
    held.iter().for_each(|&tag| extend(&mut data, tag));
    let entry =
        |host: &mut Host| host.io(io::COMPARE, first as u32, held.len() as u32, held.len() * BLOCK);
    let same = entry(host);
    host.must(&same, &data, "N8", &mut quiet)?;
    if let Some(last) = data.last_mut() {
        *last ^= 1;
    }
    let other = entry(host);
    let status = host.run(&other, &data, &mut quiet).0.status;
    Failure::unless(status == Status::COMPARE_FAILURE.with_more(), "N8", || {
        format!("a compare with other data after the cut: {status:?}")
    })
}

impl Examine for Verifier<'_> {
    type Model = Model;

    fn begin_again(&mut self) {
        if let Some(drive) = &mut self.drive {
            drop_learnt(drive, &self.contents);
        }
    }

    fn examine(
        &mut self,
        media: Media,
        model: &Model,
        number: u64,
        keep: bool,
        _: &Remains,
    ) -> Result<Option<Mounted>, Failure> {
        let taken = self.drive.take();
        let (drive, mounted) = guarded(|| self.try_examine(taken, media, model, (number, keep)))?;
        self.drive = Some(drive);
        Ok(Some(mounted))
    }

    fn knows_more(&mut self, contents: Vec<Contents>) -> Vec<Contents> {
        std::mem::replace(&mut self.contents, contents)
    }

    fn is_dirty(model: &Model) -> bool {
        model.is_dirty()
    }

    fn mounts(&self) -> (u64, u64) {
        (self.mounts, self.longest_mount)
    }
}
