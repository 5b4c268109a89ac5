//! The registries as JSON, from which help texts and the parameter reference are made.

use flashatlas_device::params::SUMMARY;
use flashatlas_dram::PRESETS as DRAM;
use flashatlas_dram::paper_table::{CLASSES, latency};
use flashatlas_host::STANDARD;
use flashatlas_lookup::hashes::HASHES;
use flashatlas_lookup::probe::POLICIES;
use flashatlas_sim::OptionKind;
use flashatlas_types::{ConfigError, ParamDef};
use serde_json::{Value, json};

fn params<'a>(defs: impl IntoIterator<Item = &'a ParamDef>) -> Value {
    defs.into_iter()
        .map(|d| json!({ "key": d.key, "range": d.range(), "default": d.default, "doc": d.doc }))
        .collect()
}

fn says(says: flashatlas_workload::Presence) -> String {
    format!("{says:?}").to_lowercase()
}

/// Song et al. (2019), Fig. 6: the classes of reads, and their clocks.
fn paper_table() -> Vec<Value> {
    let clocks = |class| latency(&DRAM[0].timings, class);
    CLASSES
        .iter()
        .enumerate()
        .map(|(i, name)| json!({ "class": name, "clocks": clocks(i) }))
        .collect()
}

/// The options of a run, as keyword arguments and the command line take them.
pub fn run_options() -> Value {
    flashatlas_sim::OPTIONS
        .iter()
        .map(|o| {
            let default: Value = serde_json::from_str(o.default).expect("declared as JSON");
            let mut option = json!({
                "name": o.name, "letter": o.letter, "group": format!("{:?}", o.group).to_lowercase(),
                "title": o.group.title(), "kind": o.kind.name(), "default": default,
                "metavar": o.metavar, "doc": o.doc,
            });
            match o.kind {
                OptionKind::Count(least) => option["least"] = least.into(),
                OptionKind::Choice(words) => option["choices"] = json!(words),
                _ => {}
            }
            option
        })
        .collect()
}

pub fn all() -> Result<Value, ConfigError> {
    let drives: Result<Vec<Value>, ConfigError> = STANDARD
        .presets
        .iter()
        .map(|p| {
            let config = STANDARD.load(p.name, None, &[])?;
            let layout = config.layout()?;
            Ok(json!({
                "name": p.name, "summary": config.params.get(SUMMARY),
                "capacity_bytes": layout.sectors() * 512, "unit_bytes": layout.unit_bytes,
                "page_bytes": layout.geometry.page_bytes, "dies": layout.geometry.die_count(),
                "over_provisioning":
                    f64::from(layout.slots()) / f64::from(layout.logical_units) - 1.0,
                "toml": p.toml,
            }))
        })
        .collect();
    let entry = |name, summary, paper, own: &[ParamDef]| {
        json!({ "name": name, "summary": summary, "paper": paper,
        "params": params(own) })
    };
    let schemes: Result<Vec<Value>, ConfigError> = STANDARD
        .ftl
        .schemes
        .iter()
        .map(|s| {
            let own = (s.params)(&STANDARD.ftl, &|_| None)?;
            Ok(json!({ "name": s.name, "summary": s.summary, "paper": s.paper,
                "params": params(own) }))
        })
        .collect();
    let flashatlas_ftl::Registry { victims, classifiers, stores, .. } = STANDARD.ftl;
    Ok(json!({
        "drives": drives?,
        "layers": STANDARD.layers.iter().map(|l| entry(l.name, l.summary, l.paper,
            l.params)).collect::<Vec<_>>(),
        "options": run_options(),
        "params": params(flashatlas_device::params::common_params()),
        "schemes": schemes?,
        "victims": victims.iter().map(|v| entry(v.name, v.summary, v.paper,
            v.params)).collect::<Vec<_>>(),
        "classifiers": classifiers.iter().map(|c| entry(c.name, c.summary, c.paper,
            c.params)).collect::<Vec<_>>(),
        "maps": stores.iter().map(|m| entry(m.name, m.summary, m.paper,
            m.params)).collect::<Vec<_>>(),
        "formats": flashatlas_workload::FORMATS.iter().map(|f| json!({
            "name": f.name, "summary": f.summary, "quirks": f.quirks, "source": f.source,
            "licence": f.licence,
            "times": says(f.times), "operations": says(f.operations),
            "writable": f.writer.is_some(),
            "params": params(f.params), "writing": params(f.writer.map_or(&[][..], |w| w.params)),
        })).collect::<Vec<_>>(),
        "generators": flashatlas_workload::GENERATORS.iter().map(|g| json!({
            "name": g.name, "summary": g.summary, "params": params(g.params),
        })).collect::<Vec<_>>(),
        "papers": crate::papers::PAPERS.iter().map(|(name,
            toml)| json!({ "name": name, "toml": toml })).collect::<Vec<_>>(),
        "hashes": HASHES.iter().map(|h| entry(h.name, h.summary, h.paper,
            h.params)).collect::<Vec<_>>(),
        "policies": POLICIES.iter().map(|p| entry(p.name, p.summary, p.paper,
            &[])).collect::<Vec<_>>(),
        "dram": DRAM.iter().map(|d| json!({ "name": d.name,
            "summary": d.summary })).collect::<Vec<_>>(),
        "paper_table": paper_table(),
        "lookup_params": params(flashatlas_lookup::study::params()),
        "crash": crate::crash::names(),
        "metrics": flashatlas_sim::metrics::METRICS.iter().map(|m| json!({ "name": m.name,
            "summary": m.summary })).collect::<Vec<_>>(),
    }))
}
