//! The host itself fails: of what was written to the image and not synced, any part is lost. The
//! drive is mounted from what is left, and every unit holds a version that the model allows.

use crate::drives;
use flashatlas_crash::model::{Model, Step};
use flashatlas_crash::recording::{SEED, apply, held};
use flashatlas_crash::subject::over_tiny;
use flashatlas_device::DriveConfig;
use flashatlas_host::STANDARD;
use flashatlas_serve::{Disk, Image};
use flashatlas_testing::proofs::one_in;
use flashatlas_types::{Rng, Seed};
use serde_json::Map;
use std::io;

/// A disk that remembers what was not synced.
#[derive(Clone, Default)]
struct Remembering {
    durable: Vec<u8>,
    /// Everything written, durable or not: what a running host reads.
    cached: Vec<u8>,
    pending: Vec<(u64, Vec<u8>)>,
}

impl Disk for Remembering {
    fn length(&self) -> io::Result<u64> {
        Ok(self.cached.len() as u64)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.cached.resize(length as usize, 0);
        self.durable.resize(length as usize, 0);
        Ok(())
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        let at = at as usize;
        let there = self.cached.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(there);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.cached[at as usize..][..bytes.len()].copy_from_slice(bytes);
        self.pending.push((at, bytes.to_vec()));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        for (at, bytes) in self.pending.drain(..) {
            self.durable[at as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

impl Remembering {
    /// The host fails: each write that was not synced is there, is not, or is there up to a sector
    /// of its own.
    fn lose(&self, rng: &mut Rng) -> Remembering {
        let mut durable = self.durable.clone();
        for (at, bytes) in &self.pending {
            let kept = match rng.below(3) {
                0 => 0,
                1 => bytes.len(),
                _ => (rng.below(bytes.len() as u64) / 512 * 512) as usize,
            };
            durable[*at as usize..][..kept].copy_from_slice(&bytes[..kept]);
        }
        Remembering { cached: durable.clone(), durable, pending: Vec::new() }
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

/// Mount what is left on `disk`.
fn examine(config: &DriveConfig, disk: Remembering, model: &Model) -> Result<(), String> {
    let mut medium = config.build(SEED).map_err(|e| e.to_string())?.into_medium();
    let opened = Image::open(disk, "tiny", &Map::new(), &mut medium);
    opened.map_err(|e| format!("the image: {e}"))?;
    let mut drive = config.build_stack(SEED).map_err(|e| e.to_string())?;
    drive.remount([medium], config, SEED).map_err(|e| format!("the mount: {e}"))?;
    drive.check().map_err(|e| e.to_string())?;
    for unit in 0..model.len() {
        let found = held(&drive, unit).map_err(|e| format!("{e:?}"))?;
        if !model.allows(unit, found) {
            return Err(format!("unit {unit}: {found:?}, allowed {:?}", model.versions(unit)));
        }
    }
    Ok(())
}

fn play(config: &DriveConfig, rng: &mut Rng, steps: u32, faults: bool) -> Result<u32, String> {
    let mut drive = config.build_stack(SEED).map_err(|e| e.to_string())?;
    let (units, sectors) = (drive.shape().units(), drive.unit_sectors());
    let mut model = Model::holding((0..units).map(|u| held(&drive, u).expect("blank")), sectors, 1);
    if drive.forgets_trims() {
        model = model.forgetting_trims();
    }
    let mut blank = config.build(SEED).map_err(|e| e.to_string())?.into_medium();
    let opened = Image::open(Remembering::default(), "tiny", &Map::new(), &mut blank);
    let (mut image, _) = opened.map_err(|e| e.to_string())?;
    drive.ssd_mut().faults().keep_journal();
    drive.set_instant(true);
    let mut examined = 0;
    for number in 0..steps {
        let step = step(rng, units, sectors);
        let content = model.begin(step);
        if faults && rng.below(25) == 0 {
            drive.ssd_mut().faults().fail_program_after(rng.below(4));
        }
        if faults && rng.below(25) == 0 {
            drive.ssd_mut().faults().fail_erase_after(0);
        }
        apply(&mut drive, step, content).map_err(|e| format!("step {number}, {step}: {e}"))?;
        let changes = drive.ssd_mut().faults().take_journal();
        // changes may reach the file long before a FLUSH, or with it
        image.write(&changes).map_err(|e| e.to_string())?;
        if rng.below(3) == 0 {
            examined += 1;
            examine(config, image.disk().lose(rng), &model)
                .map_err(|e| format!("in step {number}, {step}: {e}"))?;
        }
        if matches!(step, Step::Flush | Step::Write { fua: true, .. }) {
            image.sync().map_err(|e| e.to_string())?;
        }
        model.end(step);
    }
    Ok(examined)
}

#[test]
fn a_host_that_loses_any_part_of_its_cache_loses_nothing_that_was_flushed() {
    let mut examined = 0;
    // a layer keeps what it composes elsewhere: bare drives are what an image holds
    for (name, config) in drives().into_iter().filter(|(name, _)| name.starts_with('-')) {
        for seed in 0..20 / one_in().min(20) as u64 {
            let mut rng = Rng::stream(Seed(seed), &name);
            examined += play(&config, &mut rng, 200, false)
                .unwrap_or_else(|e| panic!("{name} seed {seed}: {e}"));
        }
    }
    assert!(examined > 1000, "{examined}");
}

/// Programs and erases fail, and spare blocks take the places of theirs: the image has it all.
#[test]
fn blocks_that_fail_and_are_replaced_are_in_the_image() {
    let mut replaced = 0;
    for (name, config) in drives().into_iter().filter(|(name, _)| name.starts_with('-')) {
        let mut settings = over_tiny(&config);
        settings.push("nand.spare_blocks=40".into());
        let config =
            STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut rng = Rng::stream(Seed(5), &name);
        replaced += play(&config, &mut rng, 150, true).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    assert!(replaced > 300, "{replaced}");
}
