//! Build script that finds the origin of this module for run records.
//!
//! The origin is a digest of the sources, and the commit.
#![allow(clippy::disallowed_methods)]

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of the module, relative to the root of the project.
const SOURCES: &[&str] = &["Cargo.lock", "Cargo.toml", "crates", "devices", "papers"];

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("../..");
    // a crate from a registry is built without the rest of the project, so its own folder is the
    // root
    let alone = SOURCES.iter().any(|name| !root.join(name).exists());
    let (root, sources) = if alone { (here.to_owned(), &["src"][..]) } else { (root, SOURCES) };
    let mut files = Vec::new();
    for name in sources {
        println!("cargo::rerun-if-changed={}", root.join(name).display());
        gather(&root.join(name), &mut files);
    }
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|file| {
            let path = file.strip_prefix(&root).expect("below the root");
            (path.to_string_lossy().replace('\\', "/"), file)
        })
        .collect();
    named.sort();
    let mut digest = Sha256::new();
    for (name, file) in named {
        let content = fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        digest.update(format!("{name} {}\n", content.len()));
        digest.update(content);
    }
    let hex: String = digest.finalize().iter().map(|b| format!("{b:02x}")).collect();
    println!("cargo::rustc-env=FLASHATLAS_SOURCES=sha256:{hex}");
    if let Some(commit) = commit(&root) {
        println!("cargo::rustc-env=FLASHATLAS_COMMIT={commit}");
    }
    for name in ["TARGET", "PROFILE"] {
        let value = std::env::var(name).expect("cargo sets it");
        println!("cargo::rustc-env=FLASHATLAS_{name}={value}");
    }
}

/// Collects the files below `path` from which the module is compiled, without tests.
fn gather(path: &Path, files: &mut Vec<PathBuf>) {
    let compiled = ["rs", "toml", "lock"];
    if path.is_dir() {
        if path.file_name().is_some_and(|name| name == "tests") {
            return;
        }
        for entry in fs::read_dir(path).expect("a folder of sources").flatten() {
            gather(&entry.path(), files);
        }
    } else if path.extension().is_some_and(|e| compiled.iter().any(|&c| e == c)) {
        files.push(path.to_owned());
    }
}

/// Returns the commit of the repository at `root`, with `+` if the sources differ from this commit.
///
/// Without a repository, as in a source distribution, returns the variable `FLASHATLAS_COMMIT`.
fn commit(root: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=FLASHATLAS_COMMIT");
    if !root.join(".git").exists() {
        return std::env::var("FLASHATLAS_COMMIT").ok().filter(|commit| !commit.is_empty());
    }
    let git = |arguments: &[&str]| {
        let out = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--"], SOURCES].concat())?;
    Some(if changed.is_empty() { head } else { format!("{head}+") })
}
