//! Tests of a served drive as the media of an NVMe controller, and of the home of its state.

use crate::{Still, begin, plan};
use flashatlas_device::DriveConfig;
use flashatlas_host::STANDARD;
use flashatlas_nvme::{Durable, Media, MediaError};
use flashatlas_serve::{NvmeSpec, ServeSpec, Server, durable, media_shape};
use std::fs;
use std::path::Path;

/// Bytes of the two slots, which end an image.
const SLOTS: usize = 2 * 4096;

fn config(more: &[&str]) -> DriveConfig {
    let base = ["drive.blocks=24", "drive.logical_pages=600", "map.unit=2KiB"];
    let settings: Vec<String> = base.iter().chain(more).map(|&s| s.into()).collect();
    STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the drive as media alone.
fn media_of(server: &Server<Still>) -> impl Media + '_ {
    server
}

fn kept(plan: &ServeSpec) -> Option<Vec<u8>> {
    begin(plan).kept().unwrap()
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_torn_write_of_a_record_leaves_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let plan = plan(&config(&[]), &path);
    let server = begin(&plan);
    assert_eq!(server.kept().unwrap(), None);
    for record in [&b"one"[..], b"two", b"three"] {
        server.keep(record).unwrap();
        assert_eq!(server.kept().unwrap().as_deref(), Some(record));
    }
    drop(server); // without an orderly end, as after `kill -9`
    assert_eq!(kept(&plan).as_deref(), Some(&b"three"[..]));
    // the third record is in the second slot again
    let whole = fs::read(&path).unwrap();
    let slot = whole.len() - SLOTS / 2;
    for torn in slot..slot + 16 + 5 {
        change(&path, |bytes| bytes[torn] ^= 0x40);
        assert_eq!(kept(&plan).as_deref(), Some(&b"two"[..]), "byte {torn}");
        fs::write(&path, &whole).unwrap();
    }
    let other = slot - SLOTS / 2;
    change(&path, |bytes| bytes[other..other + 8].fill(0xFF));
    assert_eq!(kept(&plan).as_deref(), Some(&b"three"[..]));
    change(&path, |bytes| bytes[slot..slot + 8].fill(0xFF));
    assert_eq!(kept(&plan), None);
}

#[test]
fn an_image_of_the_version_before_gets_a_home_when_a_record_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let plan = plan(&config(&[]), &path);
    let server = begin(&plan);
    server.write(&[7; 2048], 4096, true).unwrap();
    assert!(server.end().complaint.is_none());
    drop(server);
    let newer = fs::read(&path).unwrap();
    // the frames end at a multiple of 4096 bytes here
    let older = [&newer[..8], &[2], &newer[9..newer.len() - SLOTS]].concat();
    let holds = |plan: &ServeSpec| {
        let server = begin(plan);
        let mut out = [0; 2048];
        server.read(&mut out, 4096).unwrap();
        assert_eq!(out, [7; 2048]);
        server
    };
    for length in [older.len(), newer.len()] {
        // the longer file is in the state after a crash that interrupted the growth
        let mut bytes = older.clone();
        bytes.resize(length, 0);
        fs::write(&path, &bytes).unwrap();
        let server = holds(&plan);
        assert_eq!(server.kept().unwrap(), None);
        drop(server);
        assert_eq!(fs::read(&path).unwrap()[8], 2, "the version does not change");
        let server = holds(&plan);
        server.keep(b"one").unwrap();
        drop(server);
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes[8], bytes.len()), (3, newer.len()));
        assert_eq!(holds(&plan).kept().unwrap().as_deref(), Some(&b"one"[..]));
    }
}

fn spec(fresh: u8) -> NvmeSpec {
    NvmeSpec {
        address: ([127, 0, 0, 1], 0).into(),
        network: false,
        nqn: None,
        allow: Vec::new(),
        poll_ns: 0,
        threads: 1,
        fresh: [fresh; 16],
    }
}

#[test]
fn a_drive_keeps_its_names_and_a_damaged_record_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let plan = plan(&config(&[]), &path);
    let server = begin(&plan);
    let first =
        durable(&server, "tiny, and more than a model number has room for", &spec(1)).unwrap();
    assert_eq!(first.identity.model.len(), 40);
    assert_eq!(first.identity.namespace.eui64[0] & 3, 2, "a local name");
    server.keep(&first.to_bytes()).unwrap();
    assert_eq!(durable(&server, "tiny", &spec(2)).unwrap(), first);
    let named = NvmeSpec { nqn: Some("nqn.2026-11.example:x".into()), ..spec(2) };
    let named: Durable = durable(&server, "tiny", &named).unwrap();
    assert_eq!(named.identity.nqn.as_str(), "nqn.2026-11.example:x");
    assert_eq!(named.identity.serial, first.identity.serial);
    let wrong = NvmeSpec { nqn: Some("drive".into()), ..spec(2) };
    let said = durable(&server, "tiny", &wrong).unwrap_err().to_string();
    assert!(said.contains("nqn: the name must begin with `nqn.`"), "{said}");
    let mut bytes = first.to_bytes();
    bytes[100] ^= 1;
    server.keep(&bytes).unwrap();
    let said = durable(&server, "tiny", &spec(2)).unwrap_err().to_string();
    assert!(said.contains("the checksum is wrong"), "{said}");
}

#[test]
fn a_page_that_cannot_be_read_is_told_apart_from_a_drive_that_cannot_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let plan = plan(&config(&[]), &path);
    let server = begin(&plan);
    assert_eq!(media_shape(&server).blocks, 2400);
    for unit in 0..600 {
        media_of(&server).write(unit * 2048, &[unit as u8 | 1; 2048], false).unwrap();
    }
    assert!(server.end().complaint.is_none());
    let mut media = media_of(&server);
    assert_eq!(media.flush(), Err(MediaError::Other), "the server has ended");
    assert!(media.health().read_only);
    drop(media);
    drop(server);
    // the mark covers the contents, so they are not checked when the image is opened
    let end = fs::read(&path).unwrap().len() - SLOTS;
    change(&path, |bytes| {
        bytes[end / 2..end].iter_mut().for_each(|byte| *byte ^= 0x10);
    });
    let server: Server<Still> = begin(&plan);
    let mut media = media_of(&server);
    let mut out = [0; 2048];
    let failed = (0..600).find_map(|unit| media.read(unit * 2048, &mut out).err());
    assert_eq!(failed, Some(MediaError::Unreadable));
    assert_eq!(media.write(0, &out, false), Err(MediaError::Other), "the drive has stopped");
}

/// The record of a served drive counts the commands that its clients were refused.
#[test]
fn reads_that_fail_are_media_errors_of_the_record() {
    let mut plan = plan(&config(&["errors.unreadable=20000"]), Path::new(""));
    plan.image = None;
    let server = begin(&plan);
    let mut media = media_of(&server);
    for unit in 0..600 {
        media.write(unit * 2048, &[unit as u8 | 1; 2048], true).unwrap();
    }
    let mut out = [0; 2048];
    let found: Vec<Result<(), MediaError>> =
        (0..600).map(|unit| media.read(unit * 2048, &mut out)).collect();
    let failed = found.iter().filter(|read| **read == Err(MediaError::Unreadable)).count();
    assert_eq!(found.iter().filter(|read| read.is_ok()).count(), 600 - failed);
    assert!((1..100).contains(&failed), "about one in 50: {failed}");
    drop(media);
    let record = server.end().record.expect("the drive goes on").clone();
    let smart = &record["record"]["smart"];
    assert_eq!(smart["media_errors"], failed);
    assert_eq!(
        (&smart["host_read_commands"], &smart["host_write_commands"]),
        (&(600 - failed).into(), &600.into())
    );
}

#[test]
fn a_drive_without_power_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&config(&[]), &folder.path().join("drive.img"));
    let server = begin(&plan);
    server.keep(b"one").unwrap();
    server.cut();
    let mut media = media_of(&server);
    let cut = (0..100).find_map(|unit| media.write(unit * 2048, &[1; 2048], true).err());
    assert_eq!(cut, Some(MediaError::PowerLost));
    assert_eq!(media.read(0, &mut [0; 512]), Err(MediaError::PowerLost));
    assert!(server.keep(b"two").is_err(), "nothing is kept without power");
    drop(media);
    drop(server);
    assert_eq!(kept(&plan).as_deref(), Some(&b"one"[..]));
}
