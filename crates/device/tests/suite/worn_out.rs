//! A drive that is worn out: it stops, or it continues as a read-only drive.

use flashatlas_device::{Cmd, DriveConfig, Registry, Reply, Stack, SubmitError};
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};

fn config(more: &[&str]) -> DriveConfig {
    let worn = ["nand.endurance=4", "drive.blocks=24", "ftl.victim=fifo"];
    let settings: Vec<String> = worn.iter().chain(more).map(|&s| s.into()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

/// Writes random units until a write fails. Returns the drive, the stamps after the acknowledged
/// writes, the stamps at the last FLUSH, and the error.
fn worn(config: &DriveConfig) -> (Stack, Vec<Stamp>, Vec<Stamp>, SubmitError) {
    let mut drive = config.build_stack(Seed(1)).unwrap();
    drive.set_instant(true);
    let units = drive.shape().units();
    let mut held = vec![Stamp::ZERO; units as usize];
    let (mut durable, mut rng) = (held.clone(), Rng::stream(Seed(1), "test"));
    let mut reply = Reply::default();
    for content in 1.. {
        let unit = rng.below(units.into());
        let write = Cmd::Write { lba: Lba(4 * unit), sectors: 4, fua: false, content, data: None };
        if let Err(error) = drive.submit(Ps::ZERO, Tag(0), write, &mut reply) {
            return (drive, held, durable, error);
        }
        held[unit as usize] = Stamp::whole(content, 0);
        if content % 97 == 0 {
            match drive.submit(Ps::ZERO, Tag(0), Cmd::Flush, &mut reply) {
                Ok(()) => durable.clone_from(&held),
                Err(error) => return (drive, held, durable, error),
            }
        }
    }
    unreachable!("the drive wears out")
}

#[test]
fn a_read_only_drive_refuses_changes_and_reads_every_acknowledged_write() {
    for more in [
        &["ftl.worn_out=read-only"][..],
        &["ftl.worn_out=read-only", "cache.mode=write-through"],
        &["ftl.worn_out=read-only", "map.store=dftl", "map.page_bytes=64"],
    ] {
        let config = config(more);
        let (mut drive, held, durable, error) = worn(&config);
        assert!(matches!(error, SubmitError::Ftl(_)), "{error}");
        assert!(drive.ssd().is_read_only(), "{more:?}");
        assert_eq!(drive.top().failure(), None);
        let mut reply = Reply::default();
        let mut submit = |drive: &mut Stack, cmd| drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply);
        let write = Cmd::Write { lba: Lba(0), sectors: 4, fua: false, content: 1, data: None };
        assert_eq!(submit(&mut drive, write), Err(SubmitError::ReadOnly));
        let trim = Cmd::Trim { lba: Lba(0), sectors: 4 };
        assert_eq!(submit(&mut drive, trim), Err(SubmitError::ReadOnly));
        let dirty = drive.ssd().dirty_units() > 0;
        assert_eq!(
            submit(&mut drive, Cmd::Flush).is_err(),
            dirty,
            "a FLUSH fails if data is only in the cache"
        );
        let mut wrong = 0;
        for (unit, &stamp) in (0..).zip(&held) {
            let mut reply = Reply::default();
            let read = Cmd::Read { lba: Lba(4 * unit), sectors: 4 };
            drive.submit(Ps::ZERO, Tag(0), read, &mut reply).unwrap();
            wrong += u32::from(reply.stamps != [stamp]);
        }
        // the write that failed may have left its unit old or new
        assert!(wrong <= 1, "{more:?}: {wrong} units read wrong");
        drive.top().check().unwrap();
        // after a power failure, the data of the last FLUSH or newer data is there
        drive.power_cycle(&config, Seed(1)).unwrap();
        for (unit, &stamp) in (0..).zip(&durable) {
            let found = drive.top().peek_stamp(Lpn(unit)).unwrap();
            assert!(found == stamp || found != Stamp::ZERO, "unit {unit}");
        }
        assert!(!drive.ssd().is_read_only(), "after a power cycle the drive tries again");
    }
}

#[test]
fn by_default_a_worn_drive_stops() {
    let (mut drive, _, _, error) = worn(&config(&[]));
    let mut reply = Reply::default();
    let read = Cmd::Read { lba: Lba(0), sectors: 4 };
    assert_eq!(drive.submit(Ps::ZERO, Tag(0), read, &mut reply), Err(error));
    assert!(!drive.ssd().is_read_only());
    let refused = Registry::DRIVES.load(
        "tiny",
        None,
        &["ftl.scheme=bast", "ftl.worn_out=read-only"].map(String::from),
    );
    assert!(refused.unwrap_err().to_string().contains("belongs to ftl.scheme = page"));
}
