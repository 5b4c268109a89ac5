//! The health of a drive's flash, by hand.

use flashatlas_device::smart::{FlashHealth, critical_warning, power_on_hours};
use flashatlas_device::{Cmd, DriveConfig, Registry, Reply, Stack};
use flashatlas_types::{BlockId, Lba, Ps, Rng, Seed, Tag};

fn config(drive: &str, settings: &[&str]) -> DriveConfig {
    let settings: Vec<String> = settings.iter().map(|&s| s.into()).collect();
    Registry::DRIVES.load(drive, None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

const SECOND: u64 = 1_000_000_000_000;

/// Returns a drive after random writes of units of four sectors, with idle time now and then.
fn written(config: &DriveConfig, writes: u64) -> Stack {
    let mut drive = config.build_stack(Seed(1)).unwrap();
    drive.set_instant(true);
    let units = drive.shape().units();
    let (mut rng, mut reply) = (Rng::stream(Seed(1), "test"), Reply::default());
    for content in 1..=writes {
        let lba = Lba(4 * rng.below(units.into()));
        let write = Cmd::Write { lba, sectors: 4, fua: false, content, data: None };
        drive.submit(Ps::ZERO, Tag(0), write, &mut reply).unwrap_or_else(|e| panic!("{e}"));
        if content % 200 == 0 {
            drive.idle(Ps(content * SECOND), Ps((content + 1) * SECOND)).unwrap();
        }
    }
    drive
}

#[test]
fn a_cycle_in_slc_mode_uses_its_share_of_the_endurance() {
    for (share, name) in [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] {
        let wear = format!("nand.slc_wear={name}");
        let set = ["drive.cell=tlc", "ftl.slc=static", "ftl.slc_static=4", "drive.blocks=40"];
        let times = ["timing.t_read_slc=20us", "timing.t_program_slc=75us"];
        let set = [&set[..], &times, &["nand.endurance=200", &wear]].concat();
        let drive = written(&config("tiny", &set), 20_000);
        let medium = drive.ssd().medium();
        let blocks: Vec<BlockId> = medium.layout().block_ids().collect();
        let in_slc: u32 = blocks.iter().map(|&block| medium.slc_erases(block)).sum();
        assert!(in_slc > 100, "{in_slc}");
        let cycles = |&block: &BlockId| {
            let slc = medium.slc_erases(block);
            f64::from(medium.erases(block) - slc) + (f64::from(slc) * share).ceil()
        };
        let sum: f64 = blocks.iter().map(cycles).sum();
        let used = (100.0 * sum / (200.0 * blocks.len() as f64)) as u32;
        assert!(used > 0);
        assert_eq!(FlashHealth::of(drive.ssd()).percentage_used, used, "{wear}");
    }
}

#[test]
fn spare_blocks_that_replaced_others_are_no_longer_available() {
    let config = config("tiny", &["nand.spare_blocks=3", "nand.endurance=1000"]);
    let mut drive = written(&config, 100);
    let spares = 3 * drive.ssd().layout().lanes;
    assert_eq!(spares, 12, "four lanes");
    assert_eq!(FlashHealth::of(drive.ssd()).available_spare, 100);
    let mut reply = Reply::default();
    for (content, left) in (200..).zip([91, 83]) {
        // 11 of 12, and 10 of 12
        drive.ssd_mut().faults().fail_program_after(0);
        for n in 0..40 {
            let content = content * 100 + n;
            let lba = Lba(4 * n);
            let write = Cmd::Write { lba, sectors: 4, fua: true, content, data: None };
            drive.submit(Ps::ZERO, Tag(0), write, &mut reply).unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(FlashHealth::of(drive.ssd()).available_spare, left);
    }
    assert!(!FlashHealth::of(drive.ssd()).read_only);
}

#[test]
fn warnings_have_the_bits_of_the_specification() {
    assert_eq!(critical_warning(10, false), 0);
    assert_eq!(critical_warning(9, false), 1, "bit 0: spare blocks below the threshold");
    assert_eq!(critical_warning(100, true), 8, "bit 3: the media take no writes");
    assert_eq!(critical_warning(0, true), 9);
    assert_eq!(power_on_hours(3_599_999), 0);
    assert_eq!(power_on_hours(7_200_000), 2);
}
