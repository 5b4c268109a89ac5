//! Trials of the parts of a drive, such as schemes, map stores, victim policies and layers.

use crate::{Trial, Tried};
use flashatlas_crash::subject::GEOMETRIES;
use flashatlas_crash::{CrashError, CrashSpec};
use flashatlas_device::Part;
use flashatlas_lookup::hashes::HashDef;
use flashatlas_sim::Stream;
use flashatlas_sim::{Build, Environment, Parts, RunError, RunSpec, run};
use flashatlas_types::{Rng, Seed};
use serde_json::{Value, json};
use std::io;

/// Settings of a drive that uses a part.
type Settings = Vec<String>;

/// Settings for 640 logical pages with extra flash, which some parts need as a reserve.
const MORE: &[&str] = &["drive.blocks=64", "drive.logical_pages=640"];

/// Refuses to open a file, because no run of this suite reads a file.
fn no_files(_: &str) -> io::Result<Stream> {
    Err(io::Error::other("no file is read here"))
}

/// Returns the command line for a run.
fn command(spec: &Value) -> String {
    let set = spec["set"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let set: String = set.map(|s| format!(" --set {s}")).collect();
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    format!(
        "flashatlas run -d {} --precondition {} --mode {} --seed {} -w {}{set}",
        text("drive"),
        text("precondition"),
        text("mode"),
        spec["seed"],
        text("workload"),
    )
}

/// Returns the variants of settings with which a part is tried.
///
/// Each variant selects the part.
pub(crate) fn ways(parts: &Parts, part: Part) -> Vec<Settings> {
    let (_, name) = part.named();
    let own = |key: &str, small: &[&[&str]]| -> Vec<Settings> {
        let small = if small.is_empty() { &[&[][..]] } else { small };
        let with = |more: &&[&str]| -> Settings {
            let more = more.iter().map(|&s| s.to_owned());
            [format!("{key}={name}")].into_iter().chain(more).collect()
        };
        small.iter().map(with).collect()
    };
    let roomy = |ways: Vec<Settings>, more: &[&str]| -> Vec<Settings> {
        let more = more.iter().map(|&s| s.to_owned());
        ways.into_iter().map(|way| way.into_iter().chain(more.clone()).collect()).collect()
    };
    match part {
        Part::Scheme(def) => roomy(own("ftl.scheme", def.small), MORE),
        Part::Store(def) => roomy(own("map.store", def.small), MORE),
        Part::Victim(_) => own("ftl.victim", &[]),
        Part::Classifier(def) => {
            let streams: &[&str] = match (def.streams, def.name) {
                (Some(_), _) | (None, "none") => &[],
                _ => &["ftl.streams=2"],
            };
            roomy(own("ftl.classifier", &[streams]), MORE)
        }
        Part::Caching(_) => {
            let small = ["map.store=demand", "map.page_bytes=64", "map.cache_bytes=256"];
            roomy(own("map.policy", &[]), &[MORE, &small].concat())
        }
        Part::Hash(_) => roomy(own("lookup.hash", &[]), &[MORE, &["map.store=lpmt"]].concat()),
        Part::Layer(def) => {
            // a layer may not work with the default store
            let fits = |more: &[&str]| -> Vec<Settings> {
                let ways = roomy(roomy(own("layers", def.small), MORE), more);
                let loads = |way: &Settings| parts.drives.load("tiny", None, way).is_ok();
                ways.into_iter().filter(loads).collect()
            };
            let found = [fits(&[]), fits(&["map.store=demand"])].concat();
            if found.is_empty() { roomy(own("layers", def.small), MORE) } else { found }
        }
        _ => vec![vec![]],
    }
}

/// Returns the specification of a run.
fn spec(trial: &Trial<'_>, part: Part, set: &[String], workload: &str, timed: bool) -> Value {
    let drive = if let Part::Preset(def) = part { def.name } else { "tiny" };
    json!({
        "drive": drive, "set": set, "precondition": "none", "seed": trial.effort.seed,
        "mode": if timed { "asap" } else { "untimed" }, "workload": workload,
    })
}

/// Returns the record of a run, or the error that ended it.
fn played(trial: &Trial<'_>, spec: &Value) -> Result<Value, RunError> {
    let parts = trial.parts;
    let env = Environment {
        registry: &parts.drives,
        workloads: parts.workloads,
        metrics: parts.metrics,
        opener: &no_files,
        build: Build { version: "check", sources: "none", commit: None },
        added: parts.added,
    };
    let spec: RunSpec = serde_json::from_value(spec.clone()).expect("made here");
    run(&spec, &env, &mut |_| true).map(|outcome| outcome.record)
}

/// Returns the record of a run, or an error if a unit had wrong data or the run failed.
fn right(spec: &Value, record: Result<Value, RunError>) -> Result<Value, (String, String)> {
    let record = record.map_err(|e| (e.to_string(), command(spec)))?;
    if record["oracle"]["violations"] != 0 {
        let found = format!("the data is wrong: {}", record["oracle"]["examples"]);
        return Err((found, command(spec)));
    }
    Ok(record)
}

/// Tries a part of a drive.
pub fn check(trial: &mut Trial<'_>, part: Part) {
    let ways = ways(trial.parts, part);
    let fits = |trial: &Trial<'_>, way: &Settings| {
        let drive = if let Part::Preset(def) = part { def.name } else { "tiny" };
        trial.parts.drives.load(drive, None, way)
    };
    trial.promise("a drive takes it", "", |trial| {
        for way in &ways {
            if let Err(error) = fits(trial, way) {
                let set: String = way.iter().map(|s| format!(" --set {s}")).collect();
                return Err((error.to_string(), format!("flashatlas drives tiny{set}")));
            }
        }
        Ok(format!("{} variants", ways.len()))
    });
    let ways: Vec<Settings> = ways.into_iter().filter(|way| fits(trial, way).is_ok()).collect();
    if ways.is_empty() {
        return;
    }
    if matches!(part, Part::Preset(_)) {
        trial.not_tried("model", "a preset is a file, whose parts are tried separately");
        return;
    }
    if let Part::Hash(def) = part {
        trial.promise("sets that exist", "", |trial| keys(trial, def));
    }
    let requests = trial.effort.requests;
    let each = |trial: &Trial<'_>, workload: &str, timed: bool| -> Result<u64, (String, String)> {
        let mut checked = 0;
        for way in &ways {
            let spec = spec(trial, part, way, workload, timed);
            let record = right(&spec, played(trial, &spec))?;
            checked += record["oracle"]["units_checked"].as_u64().unwrap_or(0);
            checked += record["oracle"]["units_swept"].as_u64().unwrap_or(0);
        }
        Ok(checked)
    };
    let mixed = format!("uniform:requests={requests},size=2KiB,read=0.4,trim=0.05,flush_every=40");
    trial.promise("an array of pages", "", |trial| {
        each(trial, &mixed, true).map(|n| format!("{n} units compared, with trims and FLUSHes"))
    });
    trial.promise("parts of pages", "", |trial| {
        let parts = format!("uniform:requests={requests},size=512,read=0.4,flush_every=200");
        each(trial, &parts, false).map(|n| format!("{n} units compared, written sector by sector"))
    });
    trial.promise("a full drive, written over", "", |trial| {
        let full = format!("uniform:requests={},size=2KiB", 2 * requests);
        let mut waf = 0f64;
        for way in &ways {
            let mut spec = spec(trial, part, way, &full, false);
            spec["precondition"] = "fill".into();
            let record = right(&spec, played(trial, &spec))?;
            waf = waf.max(record["waf"].as_f64().unwrap_or(0.0));
        }
        Ok(format!("{} requests a variant, WAF {waf:.2} at most", 2 * requests))
    });
    trial.promise("the same answers twice", "", |trial| twice(trial, part, &ways[0], &mixed));
    trial.promise("a drive that wears out", "", |trial| {
        let worn = format!("uniform:requests={},size=2KiB,read=0.2", 20 * requests);
        for way in &ways {
            let way: Settings = way.iter().cloned().chain(["nand.endurance=12".into()]).collect();
            let spec = spec(trial, part, &way, &worn, false);
            match played(trial, &spec) {
                // the drive ran out of blocks and reported this
                Err(error) if error.kind() == "drive" => {}
                other => drop(right(&spec, other)?),
            }
        }
        Ok("every read was correct until no block was left".into())
    });
    if trial.is_broken() {
        let why = "another promise is broken: power failures would show the same fault";
        trial.not_tried("power failures", why);
        return;
    }
    trial.promise("power failures", "", |trial| cuts(trial, part, &ways[0], 1));
    trial.promise("power failures of mounts", "", |trial| cuts(trial, part, &ways[0], 2));
}

/// Checks that a hash function maps each address to one set, and that this set exists.
///
/// The check covers every table size that the function accepts, up to 2^31 addresses and 2^24 sets.
fn keys(trial: &Trial<'_>, def: &HashDef) -> Tried {
    let rerun = format!("flashatlas lookup --set lookup.hash={}", def.name);
    let wrong = |found: String| Err((found, rerun.clone()));
    let hashes = trial.parts.drives.hashes();
    let params = match flashatlas_lookup::study::settings(hashes, &[]) {
        Ok(params) => params,
        Err(error) => return wrong(error.to_string()),
    };
    let mut rng = Rng::stream(Seed(trial.effort.seed), "conformance.hash");
    let (mut asked, mut sizes) = (0, 0);
    for la_bits in 1..=31u32 {
        for set_bits in 0..=la_bits.min(24) {
            // a function may refuse some sizes
            let Ok(hash) = (def.build)(&params, la_bits, set_bits) else { continue };
            sizes += 1;
            let last = (1u64 << la_bits) - 1;
            let some = (0..60).map(|_| rng.below(last + 1));
            for la in [0, 1.min(last), last / 2, last].into_iter().chain(some) {
                let key = hash.key(la as u32);
                if u64::from(key) >= 1 << set_bits {
                    let sets = 1u64 << set_bits;
                    return wrong(format!(
                        "address {la} of {la_bits} bits goes to set {key}, but there are {sets} \
                         sets"
                    ));
                }
                if hash.key(la as u32) != key {
                    return wrong(format!("address {la} goes to two sets"));
                }
                asked += 1;
            }
        }
    }
    match sizes {
        0 => wrong("the function accepts no table size".into()),
        _ => Ok(format!("{asked} addresses in tables of {sizes} sizes")),
    }
}

/// Runs the same specification twice, and checks that the two records are equal.
fn twice(trial: &Trial<'_>, part: Part, way: &Settings, workload: &str) -> Tried {
    let spec = spec(trial, part, way, workload, true);
    let (one, two) = (played(trial, &spec), played(trial, &spec));
    let (one, two) = (right(&spec, one)?, right(&spec, two)?);
    if one == two {
        return Ok("two equal records".into());
    }
    let differs = one.as_object().and_then(|record| {
        record.iter().find(|&(key, value)| two[key] != *value).map(|(key, _)| key.clone())
    });
    let key = differs.unwrap_or_default();
    let found = format!("two runs of one seed differ in `{key}`: {} and {}", one[&key], two[&key]);
    Err((found, command(&spec)))
}

/// Tries a sample of the power failures in short workloads.
fn cuts(trial: &Trial<'_>, part: Part, way: &Settings, depth: u32) -> Tried {
    let (_, name) = part.named();
    let mut plan = CrashSpec {
        depth,
        one_in: trial.effort.one_in * depth,
        seed: trial.effort.seed,
        steps: if depth == 1 { 160 } else { 60 },
        ..CrashSpec::default()
    };
    let only = vec![name.to_owned()];
    let mut args = String::new();
    match part {
        Part::Scheme(_) => {
            plan.schemes = only;
            args = format!(" --scheme {name}");
        }
        Part::Store(_) => {
            plan.stores = only;
            args = format!(" --store {name}");
        }
        Part::Layer(_) => {
            plan.layers = only;
            args = format!(" --layers {name}");
        }
        _ => {
            plan.schemes = vec!["page.1".into()];
            plan.layers = vec!["-".into()];
            let stores: &[&str] = match part {
                Part::Hash(_) => &["lpmt"],
                Part::Caching(_) => &["demand.2"],
                _ => &["dram", "demand"],
            };
            plan.stores = stores.iter().map(|&store| store.to_owned()).collect();
            let chosen = |s: &&String| !s.starts_with("drive.") && !s.starts_with("map.store=");
            plan.set = way.iter().filter(chosen).cloned().collect();
            plan.set.iter().for_each(|s| args += &format!(" --set {s}"));
        }
    }
    let rerun = format!("flashatlas crash --depth {depth}{args}");
    let (mut cuts, mut unfit) = (0, Vec::new());
    for geometry in GEOMETRIES {
        // at depth 2 or more, only `square` is tried, as in `make crash`: geometries whose pages
        // share cells have open findings (docs/RELIABILITY.md)
        if depth > 1 && geometry.name != "square" {
            continue;
        }
        plan.geometries = vec![geometry.name.into()];
        let report = match flashatlas_crash::run(&trial.parts.drives, &plan, &mut |_, _| true) {
            Ok(report) => report,
            // a part may refuse some geometries
            Err(why @ CrashError::NoDrive { .. }) => {
                unfit.push(why.to_string());
                continue;
            }
            Err(why) => return Err((why.to_string(), rerun)),
        };
        if let Some(found) = report.found.first() {
            let set: String = plan.set.iter().map(|s| format!(" --set {s}")).collect();
            let minimal = found.minimal.iter().map(|line| format!("\n    {line}"));
            return Err((
                format!("{}{}", found.failure, minimal.collect::<String>()),
                format!("flashatlas crash --rerun {}{set}", found.id),
            ));
        }
        cuts += report.rows.iter().map(|row| row.cuts).sum::<u64>();
    }
    if cuts == 0 {
        let why = unfit
            .pop()
            .unwrap_or_else(|| "there was no operation at which the power could fail".into());
        return Err((why, rerun));
    }
    let without = if unfit.is_empty() { String::new() } else { format!("; {}", unfit.join("; ")) };
    Ok(format!("{cuts} cuts at depth {depth}, one in {}{without}", plan.one_in))
}
