//! `make header`: generates the C headers from the sources of their C ABIs.
//!
//! The last line of a header is a digest of its sources and of the header itself. With this digest,
//! tests detect a change of the sources or the header without a new generation.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// For each header, the crate, the sources in it, and the path of the header.
const HEADERS: [(&str, &[&str], &str); 2] = [
    ("crates/plugin", &["abi.rs"], "python/flashatlas/include/flashatlas_plugin.h"),
    ("crates/capi", &["abi.rs", "calls.rs"], "crates/capi/include/flashatlas.h"),
];

/// Returns the text of the header of a crate.
fn header(of: &Path, sources: &[&str]) -> Result<String, String> {
    let settings = of.join("cbindgen.toml");
    let config = cbindgen::Config::from_file(&settings)?;
    let files: Vec<PathBuf> = sources.iter().map(|name| of.join("src").join(name)).collect();
    let made = files.iter().fold(cbindgen::Builder::new(), |made, file| made.with_src(file));
    let made = made.with_config(config);
    let mut text = Vec::new();
    made.generate().map_err(|e| e.to_string())?.write(&mut text);
    let mut digest = Sha256::new();
    for file in files.into_iter().chain([settings]) {
        digest.update(std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    digest.update(&text);
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let text = String::from_utf8(text).map_err(|e| e.to_string())?;
    let names = sources.join(", ");
    Ok(format!("{text}\n/* Digest of {names}, cbindgen.toml and the lines above: {digest} */\n"))
}

fn written(root: &Path) -> Result<(), String> {
    for (of, sources, kept) in HEADERS {
        let kept = root.join(kept);
        std::fs::write(&kept, header(&root.join(of), sources)?)
            .map_err(|e| format!("{}: {e}", kept.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    match written(&root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
