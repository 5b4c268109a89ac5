//! Functions that compile and load plug-ins, and run their parts.

use flashatlas_device::Registry;
use flashatlas_host::STANDARD;
use flashatlas_plugin::{Library, load};
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{Build, Environment, RunError, RunSpec, run};
use flashatlas_types::Entries;
use flashatlas_workload::Registry as Workloads;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Longest time that a call of a plug-in may take in these tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the folder of the headers.
pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/flashatlas/include")
}

/// Returns the text of an example from the templates for parts in C.
pub fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/flashatlas/templates/c");
    let path = folder.join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Compiles a text into a library whose name is new, so that no library is opened twice.
pub fn with(compiler: &str, name: &str, text: &str, more: &[&str]) -> Result<PathBuf, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let n = NUMBER.fetch_add(1, Relaxed);
    let folder = std::env::temp_dir().join(format!("flashatlas-plugin-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, out) = (folder.join(name), folder.join("plugin.so"));
    std::fs::write(&source, text).unwrap();
    let done = Command::new(compiler)
        .args(["-O2", "-fPIC", "-I"])
        .arg(include())
        .args(more)
        .arg("-o")
        .args([&out, &source])
        .output()
        .map_err(|e| format!("{compiler}: {e}"))?;
    if done.status.success() {
        Ok(out)
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

/// Compiles and loads the library of a C source.
pub fn loaded(text: &str) -> Library {
    let at = with("cc", "plugin.c", text, &["-shared", "-std=c11"]).unwrap();
    load(at.to_str().unwrap(), &std::fs::read(&at).unwrap(), PATIENCE)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Returns a registry with the built-in parts and the parts of a library.
pub fn registry(library: &Library) -> Registry {
    library.parts.iter().fold(STANDARD, |r, &part| r.with(part).unwrap_or_else(|e| panic!("{e}")))
}

/// Returns the record of a run.
pub fn played(registry: &Registry, spec: Value) -> Result<Value, RunError> {
    let env = Environment {
        registry,
        workloads: Workloads::STANDARD,
        metrics: Entries::of(METRICS),
        opener: &|_: &str| Err(std::io::Error::other("no file is read here")),
        build: Build { version: "test", sources: "sha256:test", commit: None },
        added: &[],
    };
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    run(&spec, &env, &mut |_| true).map(|outcome| outcome.record)
}
