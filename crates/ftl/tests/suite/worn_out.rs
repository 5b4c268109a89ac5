//! Drives whose blocks wear out.

use crate::model::{Model, SECTORS, Step, model};
use flashatlas_device::{Cmd, Device, Reply, Storage};
use flashatlas_types::{Lba, Lpn, Seed, Stamp, Tag};

/// A scheme whose blocks wear out continues with the remaining blocks, and the log becomes smaller,
/// area by area. The drives have no spare blocks in addition to the log and the reserve.
#[test]
fn worn_out_blocks_leave_the_rest() {
    let tight = [
        "drive.channels=1",
        "drive.ways=1",
        "drive.blocks=50",
        "drive.logical_pages=240",
        "ftl.log_blocks=16",
    ];
    for scheme in ["page", "block", "bast", "sast", "fast", "faster", "superblock", "last", "mast"]
    {
        let scheme = format!("ftl.scheme={scheme}");
        let mut settings = vec![&scheme[..], "cache.mode=write-through", "nand.endurance=40"];
        if ["ftl.scheme=page", "ftl.scheme=block"].contains(&&scheme[..]) {
            settings.push("drive.blocks=24");
        } else {
            settings.extend(tight);
        }
        let mut model = model(&settings, 1);
        let mut rng = flashatlas_types::Rng::stream(Seed(3), "steps");
        let mut end = None;
        for content in 0..400_000 {
            // runs that begin at a block boundary, and single pages
            let (lba, sectors) = match rng.below(4) {
                0 => (rng.below(SECTORS / 32 - 1) * 32, 4 + 4 * rng.below(8) as u32),
                _ => (rng.below(SECTORS / 4 - 1) * 4, 4),
            };
            let data = vec![7; sectors as usize * 512];
            let cmd = Cmd::Write { lba: Lba(lba), sectors, fua: false, content, data: Some(&data) };
            if let Err(error) =
                model.drive.submit(model.now, Tag(content), cmd, &mut Reply::default())
            {
                end = Some(error.to_string());
                break;
            }
            if model.drive.ftl_report().retired_blocks > 0 {
                model.drive.check().unwrap_or_else(|v| panic!("{scheme}: {v}"));
            }
            model.now = model.now.after(flashatlas_types::Dur::from_us(3000));
            model.drive.advance(model.now, &mut model.done);
        }
        let retired = model.drive.ftl_report().retired_blocks;
        let end = end.unwrap_or_else(|| panic!("{scheme}: it did not wear out"));
        assert!(end.starts_with("no space: "), "{scheme}: {end}");
        assert!(retired > 8, "{scheme}: it went on with what was left: {retired} blocks went bad");
        // the remaining blocks can be mounted
        model.drive.check().unwrap_or_else(|v| panic!("{scheme}: {v}"));
    }
}

/// Mounts a drive that has lost blocks, even though its log was configured for more blocks.
#[test]
fn a_worn_drive_is_switched_on_again() {
    for scheme in ["bast", "sast", "fast", "faster", "superblock", "last", "mast"] {
        let scheme = format!("ftl.scheme={scheme}");
        let mut settings =
            vec![&scheme[..], "cache.mode=write-through", "nand.endurance=40", "drive.channels=1"];
        settings.extend([
            "drive.ways=1",
            "drive.blocks=50",
            "drive.logical_pages=240",
            "ftl.log_blocks=16",
        ]);
        let mut model = model(&settings, 1);
        let mut rng = flashatlas_types::Rng::stream(Seed(5), "steps");
        while model.drive.ftl_report().retired_blocks < 3 {
            model.run(Step::Write { lba: rng.below(SECTORS / 4 - 1) * 4, sectors: 4, fua: false });
            model.finish();
        }
        let Model { config, drive, stamps, .. } = model;
        let again = config
            .build_on(drive.into_medium(), Seed(1))
            .unwrap_or_else(|e| panic!("{scheme}: {e}"));
        again.check().unwrap_or_else(|v| panic!("{scheme}: {v}"));
        for (lpn, &stamp) in stamps.iter().enumerate() {
            let unit = again.peek(Lpn(lpn as u32)).unwrap();
            assert_eq!(unit.map_or(Stamp::ZERO, |u| u.stamp), stamp, "{scheme}: page {lpn}");
        }
    }
}
