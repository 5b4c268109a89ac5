//! Time before the first request of a run, and after its last request: a drive is built,
//! preconditioned, switched off and on, and checked unit by unit.

use crate::{capacity, now, peak_mib};
use flashatlas_device::{DriveConfig, Ssd, Storage};
use flashatlas_host::STANDARD;
use flashatlas_types::{Lpn, Seed, Stamp, StampSum};

/// Returns the settings, over `tlc-nvme-1tb`, of a drive of `gib` GiB of 4 KiB pages on eight dies
/// of two planes, with 12.7 % over-provisioning.
pub fn settings(gib: u32) -> Vec<String> {
    vec![
        "drive.channels=8".into(),
        "drive.ways=1".into(),
        "drive.planes=2".into(),
        "drive.frame_planes=1".into(),
        "drive.page_bytes=4KiB".into(),
        "drive.pages=256".into(),
        format!("drive.blocks={}", 64 * gib),
        "drive.over_provisioning=0.1455".into(),
        "map.unit=4KiB".into(),
    ]
}

fn small(gib: u32) -> DriveConfig {
    STANDARD.load("tlc-nvme-1tb", None, &settings(gib)).unwrap_or_else(|e| panic!("{e}"))
}

/// Number of units that are checked together.
const TOGETHER: u32 = 1 << 22;

fn print_one(name: &str, config: &DriveConfig, steady: bool, goal: &str) {
    let stamp = |lpn: Lpn| Stamp::whole(u64::from(lpn.0), 0);
    let begin = now();
    let mut drive: Ssd = config.build(Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    let built = begin.elapsed().as_secs_f64();
    if steady {
        let made = drive.make_steady(config, Seed(1), &stamp, &mut |_| true);
        assert!(made.unwrap_or_else(|e| panic!("{e}")));
    } else {
        assert!(drive.fill_blank(&stamp, &mut |_| true) == Some(true));
    }
    let made = begin.elapsed().as_secs_f64();
    drive.power_cycle(config, Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    let mounted = begin.elapsed().as_secs_f64();
    let units = drive.layout().logical_units;
    let mut found = vec![Stamp::ZERO; units.min(TOGETHER) as usize];
    for first in (0..units).step_by(TOGETHER as usize) {
        let found = &mut found[..(units - first).min(TOGETHER) as usize];
        drive.peek_stamps(Lpn(first), found).unwrap_or_else(|e| panic!("{e}"));
        assert!(found.iter().zip(first..).all(|(&found, lpn)| found == stamp(Lpn(lpn))));
    }
    let one_by_one = begin.elapsed().as_secs_f64();
    drive.check().unwrap_or_else(|e| panic!("{e}"));
    let checked = begin.elapsed().as_secs_f64();
    let all = (0..units).map(Lpn).map(|lpn| (lpn, stamp(lpn))).collect::<StampSum>();
    assert!(drive.sum_of_stamps() == Some(all));
    let summed = begin.elapsed().as_secs_f64();
    println!(
        "{name:<24} {mounted:>6.2} s (goal {goal}): built {built:.2}, made {:.2}, mounted {:.2}; \
         every unit looked at {:.2} s, one by one {:.2} s, the tables' rules {:.2} s; {:.1} GiB",
        made - built,
        mounted - made,
        summed - checked,
        one_by_one - mounted,
        checked - one_by_one,
        peak_mib() / 1024.0
    );
}

/// Prints the least cost of any set-up: the time of the first write to the memory that the largest
/// drive needs.
fn print_floor() {
    let bytes = (peak_mib() * 1024.0 * 1024.0) as usize;
    let begin = now();
    std::hint::black_box(vec![1u8; bytes]);
    let written = begin.elapsed().as_secs_f64();
    println!(
        "{:.1} GiB of memory first written {written:>6.2} s",
        bytes as f64 / f64::from(1 << 30)
    );
}

pub fn print() {
    capacity::print();
    print_one("16 GiB, steady state", &small(16), true, "0.5");
    print_one("16 GiB, filled", &small(16), false, "-");
    let large = STANDARD.load("tlc-nvme-1tb", None, &[]).unwrap_or_else(|e| panic!("{e}"));
    print_one("1 TB, filled", &large, false, "3");
    print_one("1 TB, steady state", &large, true, "10");
    print_floor();
}
