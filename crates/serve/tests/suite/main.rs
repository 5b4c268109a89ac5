//! Tests of served drives with real bytes, whose servers are killed and whose power or host fails.

mod aged;
mod aged_bytes;
mod bad_images;
mod controllers;
mod failing_disks;
mod lost_servers;
mod lost_write_back;
mod promises;
mod rest;
mod sectors;
mod time;

use flashatlas_crash::subject::{GEOMETRIES, Subject, drive, over_tiny, subjects};
use flashatlas_device::DriveConfig;
use flashatlas_host::STANDARD;
use flashatlas_serve::{
    Clock, Disk, Open, STANDARD_PARTS, ServeError, ServeSpec, Server, environment,
};
use flashatlas_types::Ps;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the drives of every scheme, store and layer on one die, with their names.
fn drives() -> Vec<(String, DriveConfig)> {
    drives_on("square")
}

/// Returns the drives of every scheme, store and layer on the named geometry, with their names.
fn drives_on(geometry: &str) -> Vec<(String, DriveConfig)> {
    let geometry = GEOMETRIES.iter().find(|g| g.name == geometry).expect("it is there");
    let name = |s: &Subject| format!("{}/{}:{}", s.layers_name(), s.scheme_name(), s.store_name());
    let all = subjects(&STANDARD);
    all.iter()
        .map(|s| (name(s), drive(s, geometry, false).unwrap_or_else(|e| panic!("{e}"))))
        .collect()
}

fn plan(config: &DriveConfig, image: &Path) -> ServeSpec {
    let plan = serde_json::json!({ "drive": "tiny", "set": over_tiny(config), "image": image });
    serde_json::from_value(plan).expect("a plan")
}

/// A clock that advances only when a thread sleeps.
#[derive(Default)]
struct Still(AtomicU64);

impl Clock for Still {
    fn now(&self) -> Ps {
        Ps(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, at: Ps) {
        self.0.fetch_max(at.0, Ordering::SeqCst);
    }
}

fn begin(plan: &ServeSpec) -> Server<Still> {
    Server::begin(plan, Still::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Powers on the drive of `plan`, with its image on `disk`.
fn powered_on<D: Disk + 'static>(plan: &ServeSpec, disk: D) -> Result<Server<Still>, ServeError> {
    let open: Open<'_> = Box::new(move || Ok(Box::new(disk) as Box<dyn Disk>));
    Server::begin_on(plan, &environment(&STANDARD_PARTS, plan), Some(open), Still::default())
}
