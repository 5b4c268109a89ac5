//! Tests in which the host's disk fails. No lost write is acknowledged, and data that was
//! acknowledged as durable is there when the disk works again.

use crate::{drives, plan, powered_on};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_serve::{Disk, Memory, ServeSpec};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Disk that accepts a number of writes and a number of syncs, and then fails.
#[derive(Clone)]
struct Failing {
    disk: Memory,
    writes: Arc<AtomicI64>,
    syncs: Arc<AtomicI64>,
}

impl Failing {
    fn over(disk: &Memory) -> Failing {
        let never = || Arc::new(AtomicI64::new(i64::MAX));
        Failing { disk: disk.clone(), writes: never(), syncs: never() }
    }

    fn fail_after(&self, (writes, syncs): (i64, i64)) {
        self.writes.store(writes, Ordering::SeqCst);
        self.syncs.store(syncs, Ordering::SeqCst);
    }

    fn broke(&self) -> bool {
        self.writes.load(Ordering::SeqCst) < 0 || self.syncs.load(Ordering::SeqCst) < 0
    }

    fn take(left: &AtomicI64) -> io::Result<()> {
        let is_full = left.fetch_sub(1, Ordering::SeqCst) <= 0;
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Disk for Failing {
    fn length(&self) -> io::Result<u64> {
        self.disk.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.disk.set_length(length)
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.disk.read_at(out, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        Failing::take(&self.writes)?;
        self.disk.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        Failing::take(&self.syncs)?;
        self.disk.sync()
    }
}

/// A disk fills up while an image is created on it. Any drive can start on the file that is left.
#[test]
fn an_image_that_cannot_be_made_leaves_nothing() {
    let mut all = drives().into_iter().filter(|(_, config)| config.layers().is_empty());
    let (_, config) = all.next().expect("a drive");
    let (_, other) = all.next_back().expect("another drive");
    let mut failures = 0;
    for after in 0.. {
        let disk = Memory::default();
        let broken = Failing::over(&disk);
        broken.fail_after((after, i64::MAX));
        if powered_on(&plan(&config, Path::new("in memory")), broken.clone()).is_ok() {
            break;
        }
        if disk.length().unwrap() > 0 {
            // the image is complete, and the disk failed later, when the mount wrote to it
            continue;
        }
        failures += 1;
        let again = powered_on(&plan(&other, Path::new("in memory")), disk);
        assert!(again.is_ok(), "after {after} writes: {:?}", again.err());
    }
    // the disk failed at least at the `FAMAKING` bytes, at a lane, and at the header
    assert!(failures >= 3, "{failures}");
}

/// Writes units over and over, with a FLUSH after every fifth write, until the disk fails. Returns
/// `true` if the disk failed.
///
/// After that the disk works again, and must hold everything that was durable.
fn play(plan: &ServeSpec, blank: &Memory, failing: (i64, i64)) -> bool {
    let disk = blank.copied();
    let broken = Failing::over(&disk);
    let server = powered_on(plan, broken.clone()).unwrap_or_else(|e| panic!("{e}"));
    broken.fail_after(failing);
    let unit = u64::from(server.unit_bytes());
    let units = (server.bytes() / unit).min(40);
    let (mut written, mut durable) = (vec![0u8; units as usize], vec![0u8; units as usize]);
    for number in 0..150u64 {
        let (at, version) = (number * 7 % units, (number / units + 1) as u8);
        if let Err(why) = server.write(&vec![version; unit as usize], at * unit, false) {
            assert!(why.to_string().contains("the image cannot be read or written: "), "{why}");
            break;
        }
        written[at as usize] = version;
        if number % 5 == 0 {
            let Err(why) = server.flush() else {
                durable.clone_from(&written);
                continue;
            };
            assert!(why.to_string().contains("the image cannot be read or written: "), "{why}");
            break;
        }
    }
    let failed = server.gone().is_some();
    assert_eq!(failed, broken.broke(), "a failure of the disk ends serving, and nothing else does");
    if failed {
        assert!(server.write(&[0; 512], 0, true).is_err() && server.flush().is_err());
    }
    drop(server);
    let again = powered_on(plan, disk).unwrap_or_else(|e| panic!("{e}"));
    for (at, &least) in durable.iter().enumerate() {
        let mut bytes = vec![0; unit as usize];
        again.read(&mut bytes, at as u64 * unit).unwrap_or_else(|e| panic!("{failing:?}: {e}"));
        let version = bytes[0];
        assert!(
            bytes.iter().all(|&b| b == version) && version >= least,
            "{failing:?}, unit {at}: version {version}, durable was {least}"
        );
    }
    failed
}

#[test]
fn a_disk_that_fails_ends_serving_and_loses_nothing_that_was_durable() {
    let mut failed = 0;
    // layers do not use the disk, so drives without layers are enough
    for (_, config) in drives().into_iter().filter(|(name, _)| name.starts_with('-')) {
        let plan = plan(&config, Path::new("in memory"));
        let blank = Memory::default();
        drop(powered_on(&plan, blank.clone()).unwrap_or_else(|e| panic!("{e}")));
        for point in (0..).step_by(1 + 6 * one_in().min(10)) {
            let broke = [play(&plan, &blank, (point, 9999)), play(&plan, &blank, (9999, point))];
            failed += broke.iter().filter(|&&broke| broke).count();
            if broke == [false; 2] {
                break;
            }
        }
    }
    assert!(failed > 100, "the disk failed {failed} times");
}
