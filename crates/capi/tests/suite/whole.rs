//! Tests of checkpoints of a drive, and of parts from plug-ins.

use crate::build::succeeds;
use crate::hosted::{Hosted, command, create, reply};
use flashatlas_capi::abi::*;
use flashatlas_capi::calls::*;
use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

fn save(drive: &Hosted, path: &Path) -> Result<(), String> {
    // SAFETY: the string ends with a zero
    drive.outcome(unsafe { fa_checkpoint_save(drive.0, text(path).as_ptr()) }).map_err(|e| e.1)
}

fn load(drive: &Hosted, path: &Path) -> Result<(), String> {
    // SAFETY: the string ends with a zero
    drive.outcome(unsafe { fa_checkpoint_load(drive.0, text(path).as_ptr()) }).map_err(|e| e.1)
}

/// Writes, trims, flushes and reads. Returns the time of the last completion, and the stamps that
/// were read.
fn work(drive: &Hosted, mut now: u64, from: u64, commands: u64) -> (u64, Vec<u32>) {
    let mut read = Vec::new();
    let units = drive.geometry().sectors / 4;
    for n in from..from + commands {
        let unit = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let lba = unit % units * 4;
        let op = match n % 11 {
            3 => FaOp::FA_OP_TRIM,
            5 | 6 => FaOp::FA_OP_READ,
            9 => FaOp::FA_OP_FLUSH,
            _ => FaOp::FA_OP_WRITE,
        };
        let asked = match op {
            FaOp::FA_OP_FLUSH => command(op, 0, 0),
            _ => command(op, lba, 4),
        };
        let mut stamps = [0; 4];
        let mut place = reply(&mut [], &mut stamps);
        let wanted = (op == FaOp::FA_OP_READ).then_some(&mut place);
        now = drive.carry_out(now, &asked, wanted);
        if op == FaOp::FA_OP_READ {
            read.extend(stamps);
        }
    }
    (now, read)
}

#[test]
fn a_drive_that_was_saved_and_one_that_was_loaded_go_on_alike() {
    let folder = TempDir::new().unwrap();
    let stacks: [&[&str]; 4] = [
        &[],
        &["ftl.scheme=mast", "ftl.log_blocks=8"],
        &["map.store=dftl", "map.cache_bytes=512"],
        &["ftl.scheme=block", "drive.logical_pages=512"],
    ];
    for (n, settings) in stacks.into_iter().enumerate() {
        let file = folder.path().join(format!("{n}.ckpt"));
        let drive = create("tiny", settings, 7).unwrap_or_else(|e| panic!("{e}"));
        let (end, _) = work(&drive, 0, 0, 3000);
        // by this time, collection that was still running has ended, too
        let now = end + 1_000_000_000_000;
        save(&drive, &file).unwrap();
        let other = create("tiny", settings, 7).unwrap();
        load(&other, &file).unwrap();
        let (one, two) = (work(&drive, now, 9000, 2000), work(&other, now, 9000, 2000));
        assert_eq!(one, two, "{settings:?}");
        assert!(one.1.iter().filter(|&&stamp| stamp != 0).count() > 100);
        assert_eq!(drive.record(), other.record(), "{settings:?}");
        drive.check();
        // a blank drive behaves differently from these drives
        let blank = create("tiny", settings, 7).unwrap();
        assert_ne!(work(&blank, now, 9000, 2000).1, one.1, "{settings:?}");
    }
}

#[test]
fn what_a_checkpoint_cannot_hold_or_be_is_said_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a.ckpt");
    let drive = create("tiny", &[], 1).unwrap();
    let (now, _) = work(&drive, 0, 0, 500);
    save(&drive, &file).unwrap();
    let said = |drive: &Hosted, path: &Path| load(drive, path).unwrap_err();
    let bytes = create("tiny", &["nand.data=ram"], 1).unwrap();
    assert!(save(&bytes, &file).unwrap_err().contains("content stamps, not bytes"));
    let other = create("tiny", &["ftl.scheme=mast", "ftl.log_blocks=8"], 1).unwrap();
    assert!(said(&other, &file).contains("its ftl.scheme is \"page\", but here it is \"mast\""));
    assert!(said(&drive, &folder.path().join("none")).contains("none: No such file"));
    let mut damaged = std::fs::read(&file).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let bad = folder.path().join("bad.ckpt");
    std::fs::write(&bad, damaged).unwrap();
    assert!(said(&drive, &bad).contains("the checkpoint is damaged"));
    assert!(save(&drive, &folder.path().join("no/folder")).unwrap_err().contains("No such file"));
    // a command that was not fetched is in flight
    let asked = command(FaOp::FA_OP_WRITE, 0, 4);
    drive.submit(now + 1_000_000_000_000, 1, &asked, None).unwrap();
    assert!(save(&drive, &file).unwrap_err().contains("1 commands are in flight"));
    drive.advance(FA_NEVER).unwrap();
    drive.check();
    let left = std::fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no file is left over: {left:?}");
}

fn plugin(path: &Path) -> Result<(), String> {
    let mut why: [c_char; 512] = [0; 512];
    // SAFETY: the string ends with a zero, and the buffer is as long as is said
    let code: c_int = unsafe { fa_plugin_load(text(path).as_ptr(), why.as_mut_ptr(), 512) };
    // SAFETY: it ends with a zero
    let said = unsafe { std::ffi::CStr::from_ptr(why.as_ptr()) }.to_str().unwrap().to_owned();
    if code == FaCode::FA_SUCCESS as c_int { Ok(()) } else { Err(said) }
}

#[test]
fn parts_of_a_plugin_are_known_to_drives_that_are_made_afterwards() {
    let folder = TempDir::new().unwrap();
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/flashatlas");
    let library = folder.path().join("page.so");
    succeeds(
        Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-I"])
            .arg(python.join("include"))
            .arg("-o")
            .arg(&library)
            .arg(python.join("templates/c/page.c")),
    );
    let settings = &["ftl.scheme=page-c"];
    assert!(create("tiny", settings, 1).err().unwrap().contains("`page-c` is not known"));
    plugin(&library).unwrap();
    let drive = create("tiny", settings, 1).unwrap();
    let (_, read) = work(&drive, 0, 0, 4000);
    assert!(read.iter().any(|&stamp| stamp != 0));
    drive.check();
    assert!(
        plugin(&library)
            .unwrap_err()
            .contains("two parts are called `page-c`: one is from page 1.0")
    );
    assert!(plugin(&folder.path().join("none.so")).unwrap_err().contains("none.so: No such file"));
}
