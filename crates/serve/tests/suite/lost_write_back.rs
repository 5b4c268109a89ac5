//! Tests in which the host itself fails, and loses any part of the unsynced writes to the image.
//!
//! The drive is then mounted from the remaining image, and every unit holds a version that the
//! model allows.

use crate::sectors::Sectors;
use crate::{drives, drives_on, plan, powered_on};
use flashatlas_crash::model::{Model, Step};
use flashatlas_crash::recording::{SEED, apply, held};
use flashatlas_crash::subject::over_tiny;
use flashatlas_device::{Cmd, DriveConfig, Reply, Stack, SubmitError};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_host::STANDARD;
use flashatlas_serve::{Disk, Image, Refused, Verify};
use flashatlas_types::{Lba, Lpn, Ps, Rng, SECTOR_BYTES, Seed, Stamp, Tag};
use serde_json::Map;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk of a host that sometimes fails. The disk stores durable bytes and unsynced writes
/// separately.
///
/// All clones share one content.
#[derive(Clone, Default)]
struct Remembering(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    durable: Vec<u8>,
    /// All written bytes, durable or not, which a running host reads.
    cached: Vec<u8>,
    pending: Vec<(u64, Vec<u8>)>,
    /// Random numbers that determine the failures of the host, or `None` if it never fails.
    failures: Option<Rng>,
    /// Copies of the disk after each failure of the host.
    left: Vec<Remembering>,
}

impl Disk for Remembering {
    fn length(&self) -> io::Result<u64> {
        Ok(self.now().cached.len() as u64)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut now = self.now();
        now.cached.resize(length as usize, 0);
        now.durable.resize(length as usize, 0);
        Ok(())
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        let at = at as usize;
        let now = self.now();
        let there = now.cached.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(there);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut now = self.now();
        now.cached[at as usize..][..bytes.len()].copy_from_slice(bytes);
        now.pending.push((at, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut now = self.now();
        now.fail(5);
        let Remembered { durable, pending, .. } = &mut *now;
        for (at, bytes) in pending.drain(..) {
            durable[at as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

impl Remembering {
    /// Returns a disk of a host that sometimes fails.
    fn failing(rng: Rng) -> Remembering {
        Remembering::of(Remembered { failures: Some(rng), ..Remembered::default() })
    }

    fn of(remembered: Remembered) -> Remembering {
        Remembering(Arc::new(Mutex::new(remembered)))
    }

    fn now(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap()
    }

    /// Returns the copies of the disk after the failures since the last call.
    ///
    /// The host may fail once more during this call.
    fn left(&self) -> Vec<Remembering> {
        let mut now = self.now();
        now.fail(3);
        std::mem::take(&mut now.left)
    }
}

impl Remembered {
    /// Makes the host fail, with a probability of 1 in `one_in`.
    ///
    /// Each unsynced write is on the copy, is lost, or is on the copy up to a random sector.
    fn fail(&mut self, one_in: u64) {
        let Some(rng) = &mut self.failures else { return };
        if rng.below(one_in) > 0 {
            return;
        }
        let mut durable = self.durable.clone();
        for (at, bytes) in &self.pending {
            let kept = match rng.below(3) {
                0 => 0,
                1 => bytes.len(),
                _ => (rng.below(bytes.len() as u64) / 512 * 512) as usize,
            };
            durable[*at as usize..][..kept].copy_from_slice(&bytes[..kept]);
        }
        let left = Remembered { cached: durable.clone(), durable, ..Remembered::default() };
        self.left.push(Remembering::of(left));
    }
}

fn step(rng: &mut Rng, units: u32, sectors: u32) -> Step {
    let unit = rng.below(units.into()) as u32;
    let count = (1 + rng.below(4) as u32).min(units - unit);
    match rng.below(12) {
        0 => Step::Flush,
        1 => Step::Trim { lba: unit * sectors, sectors: count * sectors },
        2 => Step::Write { lba: unit * sectors, sectors: count * sectors, fua: true },
        _ => Step::Write { lba: unit * sectors, sectors: count * sectors, fua: false },
    }
}

/// The byte value that fills a unit, for each stamp. All bytes of a unit are equal.
type Written = HashMap<Stamp, u8>;

/// Carries out a step. A write is filled with the low byte of `content`.
fn carry_out(
    drive: &mut Stack,
    step: Step,
    content: u64,
    written: &mut Written,
) -> Result<(), SubmitError> {
    let Some(Cmd::Write { lba, sectors, fua, content, .. }) = step.command(content) else {
        return apply(drive, step, content).map(drop);
    };
    let data = vec![content as u8; sectors as usize * SECTOR_BYTES as usize];
    let command = Cmd::Write { lba, sectors, fua, content, data: Some(&data) };
    drive.submit(Ps::ZERO, Tag(0), command, &mut Reply::default())?;
    let unit_sectors = drive.unit_sectors();
    for unit in 0..sectors / unit_sectors {
        let stamp = drive.top().peek_stamp(Lpn(lba.0 as u32 / unit_sectors + unit))?;
        written.insert(stamp, content as u8);
    }
    Ok(())
}

/// Mounts the copy of the disk after a failure, and reads every unit.
fn examine(
    config: &DriveConfig,
    disk: Remembering,
    model: &Model,
    written: &Written,
) -> Result<(), String> {
    let mut medium = config.build(SEED).map_err(|e| e.to_string())?.into_medium();
    let opened = Image::open(disk, "tiny", &Map::new(), &mut medium, Verify::New, None);
    opened.map_err(|e| format!("the image: {e}"))?;
    let mut drive = config.build_stack(SEED).map_err(|e| e.to_string())?;
    drive.remount([medium], config, SEED).map_err(|e| format!("the mount: {e}"))?;
    drive.top().check().map_err(|e| e.to_string())?;
    drive.set_instant(true);
    for unit in 0..model.len() {
        let found = held(&drive, unit).map_err(|e| format!("{e:?}"))?;
        if !model.allows(unit, found) {
            return Err(format!("unit {unit}: {found:?}, allowed {:?}", model.versions(unit)));
        }
        let (sectors, mut reply) = (drive.unit_sectors(), Reply::default());
        let read = Cmd::Read { lba: Lba((unit * sectors).into()), sectors };
        drive
            .submit(Ps::ZERO, Tag(0), read, &mut reply)
            .map_err(|e| format!("unit {unit}: {e}"))?;
        let expected = written.get(&found).copied().unwrap_or(0);
        if reply.bytes.iter().any(|&byte| byte != expected) {
            return Err(format!("unit {unit}: {found:?} with bytes of something else"));
        }
    }
    Ok(())
}

/// Returns the configuration of the drive with real bytes.
fn with_bytes(config: &DriveConfig, more: &[&str]) -> DriveConfig {
    let mut settings = over_tiny(config);
    settings.extend(["nand.data=ram"].iter().chain(more).map(|&s| s.into()));
    STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn play(config: &DriveConfig, rng: &mut Rng, steps: u32, faults: bool) -> Result<u32, String> {
    let mut drive = config.build_stack(SEED).map_err(|e| e.to_string())?;
    let (units, sectors) = (drive.shape().units(), drive.unit_sectors());
    let mut model = Model::holding((0..units).map(|u| held(&drive, u).expect("blank")), sectors, 1);
    if drive.top().forgets_trims() {
        model = model.forgetting_trims();
    }
    let mut blank = config.build(SEED).map_err(|e| e.to_string())?.into_medium();
    let disk = Remembering::failing(rng.clone());
    let opened = Image::open(disk, "tiny", &Map::new(), &mut blank, Verify::New, None);
    let (mut image, _) = opened.map_err(|e| e.to_string())?;
    drop(image.disk().left()); // failures during creation: a half-created file is not an image
    drive.remount([blank], config, SEED).map_err(|e| e.to_string())?;
    drive.ssd_mut().faults().keep_journal();
    drive.set_instant(true);
    let (mut examined, mut written) = (0, Written::default());
    for number in 0..steps {
        let step = step(rng, units, sectors);
        let content = model.begin(step);
        if faults && rng.below(25) == 0 {
            drive.ssd_mut().faults().fail_program_after(rng.below(4));
        }
        if faults && rng.below(25) == 0 {
            drive.ssd_mut().faults().fail_erase_after(0);
        }
        carry_out(&mut drive, step, content, &mut written)
            .map_err(|e| format!("step {number}, {step}: {e}"))?;
        let changes = drive.ssd_mut().faults().take_journal();
        // changes are written to the file long before a FLUSH or as part of it
        image.write(&changes).map_err(|e| e.to_string())?;
        drive.ssd_mut().faults().let_go(&changes);
        let mut left = image.disk().left();
        if matches!(step, Step::Flush | Step::Write { fua: true, .. }) {
            image.sync().map_err(|e| e.to_string())?;
            left.append(&mut image.disk().left());
        }
        for disk in left {
            examined += 1;
            examine(config, disk, &model, &written)
                .map_err(|e| format!("in step {number}, {step}: {e}"))?;
        }
        model.end(step);
    }
    Ok(examined)
}

#[test]
fn a_host_that_loses_any_part_of_its_cache_loses_nothing_that_was_flushed() {
    let mut examined = 0;
    // only drives without layers, because an image does not hold the state of a layer
    for (name, config) in drives().into_iter().filter(|(name, _)| name.starts_with('-')) {
        let config = with_bytes(&config, &[]);
        for seed in 0..20 / one_in().min(20) as u64 {
            let mut rng = Rng::stream(Seed(seed), &name);
            examined += play(&config, &mut rng, 200, false)
                .unwrap_or_else(|e| panic!("{name} seed {seed}: {e}"));
        }
    }
    assert!(examined > 1000, "{examined}");
}

/// Data that a layer wrote in order must survive on the host's disk in that order.
///
/// For one command of a client, a layer may send several commands to the drive, and wait for the
/// drive's promise after each of them.
#[test]
fn a_host_that_loses_any_part_of_its_cache_loses_nothing_of_layers_either() {
    let mut examined = 0;
    for (name, config) in drives_on("lanes").into_iter().filter(|(name, _)| !name.starts_with('-'))
    {
        let serves = config.drives() == 1
            && config.shape().unit_sectors * SECTOR_BYTES >= config.layout().unwrap().unit_bytes;
        if !serves {
            continue; // tested in `nothing_that_was_flushed_is_lost_on_any_drive`: it is refused
        }
        let plan = plan(&config, Path::new("in memory"));
        for seed in 0..10 / one_in().min(10) as u64 {
            let mut rng = Rng::stream(Seed(seed), &name);
            let disk = Remembering::failing(rng.clone());
            let server = powered_on(&plan, disk.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
            disk.left(); // ignore failures during creation: a half-created file is not an image
            let mut sectors = Sectors::blank(&server);
            for number in 0..150 {
                let done = sectors.command(&server, &mut rng, |sectors| {
                    for left in disk.left() {
                        examined += 1;
                        let failed = |e| Refused::Failed(format!("{e}"));
                        sectors.found(&powered_on(&plan, left).map_err(failed)?)?;
                    }
                    Ok(())
                });
                done.unwrap_or_else(|e| panic!("{name} seed {seed}, command {number}: {e}"));
            }
        }
    }
    assert!(examined > 100, "{examined}");
}

/// Programs and erases fail, and spare blocks replace the failed blocks. The image stores all of
/// this.
#[test]
fn blocks_that_fail_and_are_replaced_are_in_the_image() {
    let mut replaced = 0;
    for (name, config) in drives().into_iter().filter(|(name, _)| name.starts_with('-')) {
        let config = with_bytes(&config, &["nand.spare_blocks=40"]);
        let mut rng = Rng::stream(Seed(5), &name);
        replaced += play(&config, &mut rng, 150, true).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    assert!(replaced > 300, "{replaced}");
}
