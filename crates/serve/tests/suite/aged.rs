//! Tests of drives that start from the checkpoint of a filled drive. All their data reads as zeros.

use crate::{Still, begin, drives, plan};
use flashatlas_crash::subject::over_tiny;
use flashatlas_device::DriveConfig;
use flashatlas_serve::{STANDARD_PARTS, ServeSpec, Server, check, environment};
use flashatlas_sim::{RunError, RunSpec, save_checkpoint};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Saves a full drive in `folder`, and returns the plan of a new image that starts from it.
fn filled(config: &DriveConfig, folder: &Path) -> ServeSpec {
    preconditioned(config, folder, "fill").unwrap_or_else(|e| panic!("{e}"))
}

/// Runs the precondition `how` and saves its checkpoint in `folder`. Returns the specification of a
/// new image that starts from this checkpoint.
///
/// # Errors
/// Returns an error if the drive cannot be saved in this state.
pub fn preconditioned(
    config: &DriveConfig,
    folder: &Path,
    how: &str,
) -> Result<ServeSpec, RunError> {
    let own = plan(config, &folder.join("drive.img"));
    let set: Vec<String> =
        over_tiny(config).into_iter().filter(|s| !s.starts_with("nand.data")).collect();
    let spec = json!({ "drive": "tiny", "set": set, "precondition": how });
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let path = folder.join("full.ckpt");
    let mut out = fs::File::create(&path).unwrap();
    let env = environment(&STANDARD_PARTS, &own);
    save_checkpoint(&spec, &env, ("full.ckpt", &mut out), &mut |_| true)?;
    Ok(ServeSpec { checkpoint: Some(path), precondition: spec.precondition, set, ..own })
}

fn reads_as(server: &Server<Still>, from: u64, byte: u8) -> bool {
    let unit = u64::from(server.unit_bytes());
    (from..server.bytes() / unit).all(|at| {
        let mut out = vec![!byte; unit as usize];
        server.read(&mut out, at * unit).unwrap();
        out.iter().all(|&b| b == byte)
    })
}

/// A drive that starts from the checkpoint of a filled drive has all units allocated, and reads as
/// zeros.
///
/// This is true in memory and in an image. The image is sound, and its next mount needs no
/// checkpoint.
#[test]
fn every_scheme_and_store_begins_full() {
    let (mut tried, mut unequal) = (0, Vec::new());
    for (name, config) in drives().iter().filter(|(_, config)| config.layers().is_empty()) {
        tried += 1;
        let folder = tempfile::tempdir().unwrap();
        let aged = filled(config, folder.path());
        let begun = Server::begin(&ServeSpec { image: None, ..aged.clone() }, Still::default());
        if let Err(why) = begun {
            // a checkpoint can only hold map pages of equal length; the error says so, and nothing
            // is served
            assert!(why.to_string().contains("pages in ascending slots"), "{name}: {why}");
            unequal.push(name.clone());
            continue;
        }
        for image in [None, aged.image.clone()] {
            let server = begin(&ServeSpec { image, ..aged.clone() });
            let (bytes, unit) = (server.bytes(), u64::from(server.unit_bytes()));
            assert_eq!(server.extents(0, bytes).unwrap(), [(bytes, false)], "{name}");
            assert!(reads_as(&server, 0, 0), "{name}");
            server.write(&vec![7; unit as usize], 0, true).unwrap();
            server.write(&[9; 512], unit, true).unwrap();
            let ended = server.end();
            assert_eq!(ended.complaint, None, "{name}");
            let record = &ended.record.unwrap()["record"];
            assert_eq!(record["oracle"]["violations"], 0, "{name}");
            assert_eq!(record["host"]["unmapped_reads"], 0, "{name}");
            assert_eq!(record["config"]["precondition"], "fill", "{name}");
            assert!(record.get("checkpoint").is_none(), "the record of {name} names a checkpoint");
        }
        let said = check(&ServeSpec {
            set: aged.set.clone(),
            ..plan(config, &folder.path().join("drive.img"))
        });
        let said = said.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(said["sound"], true, "{name}: {said}");
        assert_eq!(said["units"]["written"], said["units"]["all"], "{name}: {said}");
        let server = begin(&plan(config, &folder.path().join("drive.img")));
        let unit = server.unit_bytes() as usize;
        let mut out = vec![0; 2 * unit];
        server.read(&mut out, 0).unwrap();
        assert!(out[..unit].iter().all(|&b| b == 7), "{name}");
        // one sector of an aged unit was written, so the other sectors of the unit are still zeros
        assert!(out[unit..unit + 512].iter().all(|&b| b == 9), "{name}");
        assert!(out[unit + 512..].iter().all(|&b| b == 0), "{name}");
        assert!(reads_as(&server, 2, 0), "{name}");
        assert_eq!(server.end().complaint, None, "{name}");
    }
    assert!(tried > 5 && unequal.len() <= 2, "{tried}, {unequal:?}");
}

fn first_drive() -> DriveConfig {
    let mut all = drives().into_iter().map(|(_, config)| config);
    all.find(|config| config.layers().is_empty()).expect("one without layers")
}

fn refused(plan: &ServeSpec) -> String {
    Server::begin(plan, Still::default()).map(drop).expect_err("it was served").to_string()
}

#[test]
fn an_image_that_holds_a_drive_is_no_place_for_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let aged = filled(&first_drive(), folder.path());
    let path = aged.image.clone().unwrap();
    assert_eq!(begin(&aged).end().complaint, None);
    let before = fs::read(&path).unwrap();
    assert!(
        refused(&aged).contains("give a precondition only for a new image; nothing was changed")
    );
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn what_is_no_checkpoint_or_of_another_drive_leaves_no_image() {
    let folder = tempfile::tempdir().unwrap();
    let aged = filled(&first_drive(), folder.path());
    let mut all = drives().into_iter().map(|(_, config)| config);
    let other = all.rfind(|config| config.layers().is_empty()).expect("another drive");
    let other = ServeSpec { set: over_tiny(&other), ..aged.clone() };
    let said = refused(&other);
    assert!(said.contains("the checkpoint is of another drive"), "{said}");
    fs::write(aged.checkpoint.as_ref().unwrap(), "a letter").unwrap();
    assert!(refused(&aged).contains("full.ckpt: "), "{}", refused(&aged));
    assert!(!aged.image.unwrap().exists(), "nothing is left of the attempt");
}

/// A process that is killed while it creates an image leaves a file that begins with `FAMAKING`.
///
/// A file of zeros is not such a file, and may belong to the user.
#[test]
fn an_image_whose_making_was_cut_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let aged = filled(&first_drive(), folder.path());
    let path = aged.image.clone().unwrap();
    let mut cut = vec![0xa5; 100_000];
    cut[..8].copy_from_slice(b"FAMAKING");
    fs::write(&path, &cut).unwrap();
    let server = begin(&aged);
    assert!(reads_as(&server, 0, 0));
    assert_eq!(server.end().complaint, None);
    drop(server);
    fs::write(&path, vec![0; 100_000]).unwrap();
    assert!(refused(&aged).contains("byte 0: the file is not an image"));
    assert_eq!(fs::read(&path).unwrap(), vec![0; 100_000]);
}
