//! The registries as JSON, for help texts and the parameter reference.

use crate::environment::environment;
use crate::papers::{PAPERS, PUBLISHED};
use flashatlas_device::Preset;
use flashatlas_device::params::SUMMARY;
use flashatlas_dram::PRESETS as DRAM;
use flashatlas_dram::paper_table::{CLASSES, latency};
use flashatlas_ftl::SCHEME;
use flashatlas_lookup::probe::POLICIES;
use flashatlas_sim::OptionKind;
use flashatlas_types::{ConfigError, Entries, Entry, Mechanism, ParamDef};
use flashatlas_workload::{FormatDef, Presence};
use serde_json::{Value, json};

fn params<'a>(defs: impl IntoIterator<Item = &'a ParamDef>) -> Value {
    defs.into_iter()
        .map(|d| {
            let range = environment().registry.range(d);
            json!({ "key": d.key, "range": range, "default": d.default, "doc": d.doc })
        })
        .collect()
}

fn says(says: Presence) -> String {
    format!("{says:?}").to_lowercase()
}

/// Returns the classes of reads and their clocks, from Song et al. (2019), Fig. 6.
fn paper_table() -> Vec<Value> {
    let clocks = |class| latency(&DRAM[0].timings, class);
    CLASSES
        .iter()
        .enumerate()
        .map(|(i, name)| json!({ "class": name, "clocks": clocks(i) }))
        .collect()
}

/// Returns the options of a run, for keyword arguments and the command line.
pub fn run_options() -> Value {
    flashatlas_sim::OPTIONS
        .iter()
        .map(|o| {
            let mut option = json!({
                "name": o.name,
                "letter": o.letter,
                "group": format!("{:?}", o.group).to_lowercase(),
                "title": o.group.title(),
                "kind": o.kind.name(),
                "most": o.most,
                "default": (o.default)(),
                "metavar": o.metavar,
                "doc": o.doc,
            });
            match o.kind {
                OptionKind::Count(least) => option["least"] = least.into(),
                OptionKind::Choice(words) => option["choices"] = json!(words),
                OptionKind::CountOr(words) => {
                    option["least"] = 0.into();
                    option["words"] = json!(words);
                }
                _ => {}
            }
            option
        })
        .collect()
}

/// Returns the description of a preset.
fn drive(preset: &Preset) -> Result<Value, ConfigError> {
    let config = environment().registry.load(preset.name, None, &[])?;
    let layout = config.layout()?;
    Ok(json!({
        "name": preset.name,
        "summary": config.params.get(SUMMARY),
        "capacity_bytes": layout.sectors() * 512,
        "unit_bytes": layout.unit_bytes,
        "page_bytes": layout.geometry.page_bytes,
        "dies": layout.geometry.die_count(),
        "scheme": config.params.get(SCHEME),
        "over_provisioning": f64::from(layout.slots()) / f64::from(layout.logical_units) - 1.0,
        "toml": preset.toml,
    }))
}

fn format(f: &FormatDef) -> Value {
    json!({
        "name": f.name,
        "summary": f.summary,
        "quirks": f.quirks,
        "source": f.source,
        "licence": f.licence,
        "times": says(f.times),
        "operations": says(f.operations),
        "writable": f.writer.is_some(),
        "params": params(f.params),
        "writing": params(f.writer.map_or(&[][..], |w| w.params)),
    })
}

/// Returns the description of a part with parameters of its own.
fn part(name: &str, summary: &str, paper: &str, own: &[ParamDef]) -> Value {
    json!({ "name": name, "summary": summary, "paper": paper, "params": params(own) })
}

/// Adds the mechanisms of a part's paper to its description.
fn with_mechanisms(mut part: Value, mechanisms: &[Mechanism]) -> Value {
    let one = |m: &Mechanism| json!({ "name": m.name, "counter": m.counter, "without": m.without });
    part["mechanisms"] = mechanisms.iter().map(one).collect();
    part
}

fn named(name: &str, summary: &str) -> Value {
    json!({ "name": name, "summary": summary })
}

fn list<T>(of: &[T], show: impl Fn(&T) -> Value) -> Value {
    of.iter().map(show).collect()
}

fn entries<T: Entry>(of: Entries<T>, show: impl Fn(&T) -> Value) -> Value {
    of.iter().map(show).collect()
}

/// Returns every note that a run may have: code, rank, text and advice.
pub fn notes() -> Value {
    [
        flashatlas_sim::NOTES,
        flashatlas_ftl::NOTES,
        flashatlas_lpmt::NOTES,
        flashatlas_host::NOTES,
        flashatlas_serve::NOTES,
        flashatlas_serve::PLUGIN_NOTES,
    ]
    .into_iter()
    .flatten()
    .map(|n| json!({ "code": n.code, "rank": n.rank, "text": n.text, "advice": n.advice }))
    .collect()
}

/// Returns everything that a run can name, with its parameters.
pub fn all() -> Result<Value, ConfigError> {
    let ftl = environment().registry.ftl;
    let hashes = environment().registry.hashes();
    let drives: Vec<Value> =
        environment().registry.presets.iter().map(drive).collect::<Result<_, _>>()?;
    let schemes: Result<Vec<Value>, ConfigError> = ftl
        .schemes
        .iter()
        .map(|s| {
            let own = (s.params)(&ftl, &|_| None)?;
            let part = json!({
                "name": s.name, "summary": s.summary, "paper": s.paper, "params": params(own),
            });
            Ok(with_mechanisms(part, s.mechanisms))
        })
        .collect();
    Ok(json!({
        "drives": drives,
        "layers": entries(environment().registry.layers, |l| {
            with_mechanisms(part(l.name, l.summary, l.paper, l.params), l.mechanisms)
        }),
        "options": run_options(),
        "params": params(flashatlas_device::params::common_params()),
        "schemes": schemes?,
        "victims": entries(ftl.victims, |v| part(v.name, v.summary, v.paper, v.params)),
        "classifiers": entries(ftl.classifiers, |c| part(c.name, c.summary, c.paper, c.params)),
        "maps": entries(ftl.stores, |m| {
            with_mechanisms(part(m.name, m.summary, m.paper, m.params), m.mechanisms)
        }),
        "formats": entries(environment().workloads.formats, format),
        "generators": entries(environment().workloads.generators, |g| {
            json!({ "name": g.name, "summary": g.summary, "params": params(g.params) })
        }),
        "papers": list(PAPERS, |(name, toml)| json!({ "name": name, "toml": toml })),
        "published": list(PUBLISHED, |(name, toml)| json!({ "name": name, "toml": toml })),
        "caching": entries(ftl.caching, |c| part(c.name, c.summary, c.paper, c.params)),
        "hashes": entries(hashes, |h| part(h.name, h.summary, h.paper, h.params)),
        "policies": list(POLICIES, |p| part(p.name, p.summary, p.paper, &[])),
        "dram": list(DRAM, |d| named(d.name, d.summary)),
        "paper_table": paper_table(),
        "lookup_params": params(flashatlas_lookup::study::params(hashes)),
        "crash": crate::crash::names(),
        "notes": notes(),
        "metrics": entries(environment().metrics, |m| named(m.name, m.summary)),
    }))
}
