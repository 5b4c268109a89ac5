//! Tests of files that are not an image, belong to another drive or are damaged. They give a clear
//! error, and never wrong bytes.

use crate::{Still, begin, plan};
use flashatlas_device::DriveConfig;
use flashatlas_host::STANDARD;
use flashatlas_serve::{ServeSpec, Server};
use flashatlas_types::{Rng, Seed};
use std::fs;

fn config(more: &[&str]) -> DriveConfig {
    let base = ["drive.blocks=24", "drive.logical_pages=600", "map.unit=2KiB"];
    let settings: Vec<String> = base.iter().chain(more).map(|&s| s.into()).collect();
    STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(plan: &ServeSpec) -> String {
    match Server::begin(plan, Still::default()) {
        Ok(_) => panic!("it was served"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_no_image_of_this_drive_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let plan = plan(&config(&[]), &path);
    fs::write(&path, "a letter to my sister, which is longer than a header").unwrap();
    assert!(refused(&plan).contains("byte 0: the file is not an image"), "{}", refused(&plan));
    fs::write(&path, "short").unwrap();
    assert!(refused(&plan).contains("byte 0: the file is not an image"));
    fs::remove_file(&path).unwrap();

    let server = begin(&plan);
    assert!(refused(&plan).ends_with("drive.img: another process has the image open"));
    assert!(server.end().complaint.is_none());
    drop(server);
    let whole = fs::read(&path).unwrap();

    let other = crate::plan(&config(&["drive.pages=32", "drive.blocks=12"]), &path);
    let said = refused(&other);
    assert!(
        said.contains("image is of another drive: drive.blocks is 24 there, but 12 here"),
        "{said}"
    );
    assert!(fs::read(&path).unwrap() == whole, "nothing was changed");

    let smaller = crate::plan(&config(&["drive.logical_pages=500"]), &path);
    assert!(
        refused(&smaller)
            .contains("another drive: capacity in sectors is 2400 there, but 2000 here")
    );
    let hpb = ["drive.logical_pages=400", "map.store=demand", "map.cache_bytes=4KiB"];
    let under = crate::plan(&config(&[&hpb[..], &["layers=hpb-host"]].concat()), &path);
    assert!(refused(&under).contains("image is of another drive"), "{}", refused(&under));
    assert!(fs::read(&path).unwrap() == whole, "nothing was changed");

    fs::write(&path, &whole[..whole.len() - 512]).unwrap();
    assert!(refused(&plan).contains("its end is missing"), "{}", refused(&plan));
    let mut newer = whole.clone();
    newer[8] = 9;
    fs::write(&path, &newer).unwrap();
    assert!(refused(&plan).contains("version 9, but this program reads versions 2 and 3"));
    let mut damaged = whole;
    damaged[40] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!(refused(&plan).contains("byte 16: the header does not match its checksum"));
}

/// Bytes of the image change while no drive uses it.
///
/// A read then returns the written data, or an older version if the mount reported damage.
/// Otherwise the read fails and the drive stops, and the next mount checks everything and reports
/// the damage.
#[test]
fn a_damaged_image_is_reported_and_never_answered_with_bytes_of_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let plan = plan(&config(&[]), &path);
    let server = begin(&plan);
    let sector = |at: u64, version: u8| [[version; 504].as_slice(), &at.to_le_bytes()].concat();
    for version in 1..=3 {
        for at in 0..server.bytes() / 512 {
            server.write(&sector(at, version), at * 512, false).unwrap();
        }
    }
    assert!(server.end().complaint.is_none());
    drop(server);
    let whole = fs::read(&path).unwrap();
    let mut rng = Rng::stream(Seed(1), "damage");
    let (mut reported, mut lazily) = (0, 0);
    for _ in 0..40 {
        let mut bytes = whole.clone();
        // the header is left out; it has its own checksum, which is tested above
        let at = 4096 + rng.below(bytes.len() as u64 - 4096) as usize;
        let end = (at + 1 + rng.below(2000) as usize).min(bytes.len());
        bytes[at..end].iter_mut().for_each(|b| *b ^= 0x55);
        fs::write(&path, &bytes).unwrap();
        let mut server = match Server::begin(&plan, Still::default()) {
            Ok(server) => server,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let clean = |server: &Server<Still>| {
            (0..server.bytes() / 512).all(|at| server.read(&mut [0; 512], at * 512).is_ok())
        };
        if !clean(&server) {
            let gone = server.gone().expect("damaged content ends serving").to_string();
            assert!(gone.contains("does not match its checksum"), "{gone}");
            drop(server);
            server = begin(&plan);
            assert!(
                !server.found().damaged.is_empty() && clean(&server),
                "the next mount reports the damage"
            );
            lazily += 1;
        }
        let found = server.found().clone();
        reported += u32::from(!found.damaged.is_empty() || !found.damaged_blocks.is_empty());
        for at in 0..server.bytes() / 512 {
            let mut out = [0; 512];
            if server.read(&mut out, at * 512).is_ok() {
                let right = (1..=3).any(|version| out[..] == sector(at, version)[..]);
                let newest = out[..] == sector(at, 3)[..];
                let lost = out == [0; 512];
                assert!(right || lost, "sector {at} holds bytes of something else");
                assert!(
                    newest || !found.damaged.is_empty(),
                    "sector {at} is older, but no damage is reported"
                );
            }
        }
    }
    assert!(reported > 20 && lazily > 10, "{reported} of 40 were reported, {lazily} when read");
}

#[test]
fn requests_outside_of_the_drive_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = begin(&plan(&config(&[]), &folder.path().join("drive.img")));
    let bytes = server.bytes();
    let (end, parts) = ("reach beyond the end of the drive", "are not whole sectors (512 bytes)");
    for (offset, length, why) in
        [(bytes, 512, end), (bytes - 512, 1024, end), (7, 512, parts), (0, 100, parts)]
    {
        let error = server.write(&vec![1; length], offset, false).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(server.extents(0, bytes).unwrap(), [(bytes, true)]);
    server.write(&[1; 2048], 4096, false).unwrap();
    assert_eq!(server.extents(0, 8192).unwrap(), [(4096, true), (2048, false), (2048, true)]);
}
