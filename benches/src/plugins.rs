//! Costs of a shared library, in requests a second. Page mapping in C is compared with our own page
//! mapping, and a victim policy in C with the same policy in Rust, in alternating runs.

use super::environment;
use flashatlas_device::Registry;
use flashatlas_host::STANDARD;
use flashatlas_plugin::{Library, load};
use flashatlas_sim::{RunSpec, run};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const REQUESTS: u64 = 1_000_000;
const ROUNDS: usize = 3;

/// Compiles and loads a C source of the templates, with names for its placeholders. Returns `None`
/// if this fails, for example without a compiler.
fn library(name: &str) -> Option<Library> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = root.join("python/flashatlas/templates/c").join(name);
    let folder = std::env::temp_dir().join(format!("flashatlas-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    let text = std::fs::read_to_string(source).ok()?;
    let text = text.replace("{{NAME}}", "window-c").replace("{{IDENT}}", "window_c");
    let (file, out) = (folder.join("part.c"), folder.join(format!("{name}.so")));
    std::fs::write(&file, text).ok()?;
    let include = root.join("python/flashatlas/include");
    let arguments = ["-O2", "-shared", "-fPIC", "-o"];
    let cc =
        Command::new("cc").args(arguments).arg(&out).arg("-I").arg(include).arg(&file).status();
    cc.ok().filter(std::process::ExitStatus::success)?;
    let at = out.to_str()?;
    load(at, &std::fs::read(&out).ok()?, Duration::from_secs(60)).ok()
}

/// Returns the requests a second of one run.
fn rate(registry: &Registry, set: &str, timed: bool) -> f64 {
    let opener = |_: &str| Err(std::io::Error::other("no file is read here"));
    let found = flashatlas_sim::Environment { registry, ..environment(&opener) };
    let spec = json!({
        "drive": "tlc-small", "precondition": "fill",
        "set": [set, "drive.planes=1", "drive.frame_planes=1", "drive.page_bytes=4KiB",
            "drive.spare_bytes=128", "drive.blocks=416", "drive.logical_pages=360000",
            "map.unit=4KiB"],
        "mode": if timed { "asap" } else { "untimed" },
        "workload": format!("uniform:requests={REQUESTS},size=4KiB"),
    });
    let spec: RunSpec = serde_json::from_value(spec).expect("made here");
    let begin = super::now();
    run(&spec, &found, &mut |_| true).unwrap_or_else(|e| panic!("{set}: {e}"));
    REQUESTS as f64 / begin.elapsed().as_secs_f64()
}

fn beside(registry: &Registry, (what, goal): (&str, &str), own: &str, other: &str, timed: bool) {
    let mut best = [0f64; 2];
    for _ in 0..ROUNDS {
        best[0] = best[0].max(rate(registry, own, timed));
        best[1] = best[1].max(rate(registry, other, timed));
    }
    println!(
        "{what:<28} {:>8.0} k requests/s   {:.2} of {own} ({goal})",
        best[1] / 1e3,
        best[1] / best[0]
    );
}

pub fn print() {
    let (Some(page), Some(window)) = (library("page.c"), library("victim.c.in")) else {
        println!("no C compiler: plug-ins were not measured");
        return;
    };
    let parts = page.parts.iter().chain(&window.parts);
    let registry = parts.fold(STANDARD, |r, &part| r.with(part).expect("names of their own"));
    for (timed, how) in [(false, "untimed"), (true, "timed")] {
        let what = format!("page mapping in C, {how}");
        let scheme = "ftl.scheme=page-c";
        beside(&registry, (&what, "goal 0.7"), "ftl.scheme=page", scheme, timed);
        let what = format!("windowed policy in C, {how}");
        let victim = "ftl.victim=window-c";
        beside(&registry, (&what, "goal 0.83"), "ftl.victim=windowed", victim, timed);
    }
}
