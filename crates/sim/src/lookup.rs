//! The lookup engine alone: where its addresses come from, and the record of a study. See `docs/FORMATS.md`.

use crate::record::param;
use crate::run::Progress;
use crate::{Inputs, Opener, Reading, RunError};
use flashatlas_lookup::dram::paper_table::CLASSES;
use flashatlas_lookup::study::{Ask, PERCENTILES, Study, Summary, settings};
use flashatlas_types::{HostOp, Params, Rng, Seed};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Name and version of the record's layout.
const SCHEMA: &str = "flashatlas.lookup/1";

/// Requests that are handed to the engine together.
const BATCH: usize = 4096;

/// How a host address becomes a logical address of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// The lowest bits of the address in units: two addresses may be taken for one.
    #[default]
    LowBits,
    /// Addresses are numbered as they come.
    Dense,
    /// The address in units; one that is too wide stops the study.
    Exact,
}

/// Where requests come from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A trace.
    Trace(String),
    /// A generator's text, as of a run.
    Workload(String),
    /// Random sets, scanned to their ends: `repeat` of them the set before once more; of the others `skew` in the first banks,
    /// the rest anywhere else. Without `skew` anywhere.
    Sets {
        /// How many.
        lookups: u64,
        /// Share of lookups in the set before.
        #[serde(default)]
        repeat: f64,
        /// Share of the others in sets whose number is a multiple of four.
        skew: Option<f64>,
    },
    /// Files at random distinct addresses, looked up and then inserted one by one; before each new one, files that are there are
    /// looked up with the given probability, again and again.
    Files {
        /// How many.
        files: u64,
        /// Addresses are multiples of this.
        #[serde(default = "one")]
        stride: u32,
        /// Share of requests that go to files that are there: the file before (`again`).
        #[serde(default)]
        again: f64,
        /// Share of requests that go to any file that is there.
        #[serde(default)]
        known: f64,
        /// Lookups of known files at the end.
        #[serde(default)]
        lookups: u64,
    },
}

const fn one() -> u32 {
    1
}

/// A study of the engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupSpec {
    /// Settings `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Where requests come from.
    pub source: Source,
    /// How a trace is read.
    #[serde(default)]
    pub reading: Reading,
    /// How addresses become logical addresses.
    #[serde(default)]
    pub address: Address,
    /// Sectors of an address unit.
    #[serde(default = "one")]
    pub unit_sectors: u32,
    /// Bytes of a page of the flash: pages of a request, where they are asked for.
    #[serde(default = "page")]
    pub page_bytes: u32,
    /// End after so many requests.
    pub limit: Option<u64>,
    /// Seed of random addresses.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

const fn page() -> u32 {
    4096
}

const fn first_seed() -> u64 {
    1
}

/// Carry out a study; returns its record.
///
/// # Errors
/// Bad settings, sources that cannot be read, tables that are too small.
pub fn lookup(
    spec: &LookupSpec,
    opener: &dyn Opener,
    version: &str,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, RunError> {
    let params = settings(&spec.set)?;
    let (asks, mut approximations) = asks(spec, &params, opener, progress)?;
    if asks.is_empty() {
        return Err(RunError::Fit("the source holds no request that looks an address up".into()));
    }
    let mut study = Study::new(&params, asks.len() as u64)?;
    for (i, batch) in asks.chunks(BATCH).enumerate() {
        study.ask_all(batch).map_err(|error| {
            RunError::Fit(format!("{error}: see lookup.sets, lookup.secondary_sets, lookup.block_tables_count"))
        })?;
        let done = ((i + 1) * BATCH).min(asks.len());
        let share = Some(done as f64 / asks.len() as f64);
        if !progress(Progress { phase: "look up", requests: done as u64, share }) {
            return Err(RunError::Interrupted);
        }
    }
    study.tables().check().map_err(RunError::Broken)?;
    if params.text("lookup.changes") == "free" {
        approximations.push("insertions and deletions take no time".into());
    }
    if params.int("lookup.look_ahead") == 0 {
        approximations
            .push("all lookups are known beforehand: they follow each other as fast as the DRAM allows".into());
    }
    approximations.push("the DRAM serves lookups alone; comparing entries takes no time".into());
    Ok(record(spec, &params, &study.finish(), version, approximations))
}

fn asks(
    spec: &LookupSpec,
    params: &Params,
    opener: &dyn Opener,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Vec<Ask>, Vec<String>), RunError> {
    let bits = params.u32("lookup.la_bits");
    let limit = spec.limit.unwrap_or(u64::MAX);
    let mut rng = Rng::stream(Seed(spec.seed), "lookup");
    let share = |key: &str, value: f64| match (0.0..=1.0).contains(&value) {
        true => Ok((value * 1e6) as u32),
        false => Err(RunError::Fit(format!("{key} = {value}: a share lies between 0 and 1"))),
    };
    let mut asks = Vec::new();
    match &spec.source {
        Source::Trace(_) | Source::Workload(_) => return requests(spec, bits, limit, opener, progress),
        Source::Sets { lookups, repeat, skew } => {
            let (repeat, skew) = (share("repeat", *repeat)?, skew.map(|s| share("skew", s)).transpose()?);
            let sets = match params.int("lookup.sets") {
                0 => (1u64 << bits).div_ceil(params.int("lookup.ways")).next_power_of_two(),
                sets => sets,
            };
            let mut set = 0;
            for _ in 0..(*lookups).min(limit) {
                if !rng.chance(repeat) {
                    let any = rng.below(sets);
                    set = match skew {
                        None => any,
                        Some(skew) if rng.chance(skew) => any / 4 * 4,
                        Some(_) => any / 4 * 4 + 1 + rng.below(3),
                    };
                }
                asks.push(Ask::Set(set as u32));
            }
        }
        Source::Files { files, stride, again, known, lookups } => {
            let (again, known) = (share("again", *again)?, share("known", *known)?);
            let stride = u64::from((*stride).max(1));
            let room = (1u64 << bits) / stride;
            if *files == 0 || *files > room {
                let bits = bits.to_string();
                return Err(RunError::Fit(format!(
                    "{files} files: there are {room} multiples of {stride} among addresses of {bits} bits (lookup.la_bits)"
                )));
            }
            let mut addresses: Vec<u32> = (0..room).map(|i| (i * stride) as u32).collect();
            let mut there = 0;
            let total = (*files + lookups).min(limit);
            while there < *files && (asks.len() as u64) < limit {
                if there > 0 && rng.chance(again) {
                    asks.push(Ask::Pages(addresses[there as usize - 1], 1));
                } else if there > 0 && rng.chance(known) {
                    asks.push(Ask::Pages(addresses[rng.below(there) as usize], 1));
                } else {
                    addresses.swap(there as usize, (there + rng.below(room - there)) as usize);
                    asks.push(Ask::Pages(addresses[there as usize], 1));
                    there += 1;
                }
            }
            while (asks.len() as u64) < total && there > 0 {
                asks.push(Ask::Pages(addresses[rng.below(there) as usize], 1));
            }
        }
    }
    Ok((asks, vec!["addresses were generated".into()]))
}

/// The requests of a trace or a generator.
fn requests(
    spec: &LookupSpec,
    bits: u32,
    limit: u64,
    opener: &dyn Opener,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Vec<Ask>, Vec<String>), RunError> {
    let mut notes = Vec::new();
    let unit = u64::from(spec.unit_sectors.max(1));
    let mut asks = Vec::new();
    let mut numbers: FxHashMap<(u32, u64), u32> = FxHashMap::default();
    let mut merged: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
    let mut aliases = 0u64;
    let inputs = Inputs { opener, options: spec.reading.options()? };
    let mut input = match &spec.source {
        Source::Trace(path) => inputs.trace(path, spec.reading.format.as_deref(), false)?,
        Source::Workload(text) => inputs.generated(text, (1 << bits) * unit * 512, Seed(spec.seed))?,
        _ => unreachable!("only these are read"),
    };
    input.must_say(&spec.reading)?;
    while let Some(record) = input.next_record()? {
        let request = record.request;
        let address = request.lba.0 / unit;
        if matches!(request.op, HostOp::Flush) {
            continue;
        }
        let key = (record.device, address);
        let la = match spec.address {
            Address::Exact if address >> bits != 0 => {
                return Err(RunError::Fit(format!(
                    "{}, request {}: address {address} (in units of {unit} sectors) is wider than lookup.la_bits = {bits}; use a larger \
                     unit, more bits, or --address low-bits or dense",
                    input.name,
                    asks.len() + 1
                )));
            }
            Address::Exact => address as u32,
            Address::LowBits => {
                let la = (address & ((1 << bits) - 1)) as u32;
                aliases += u64::from(*merged.entry(la).or_insert(key) != key);
                la
            }
            Address::Dense => {
                let next = numbers.len() as u64;
                if next >> bits != 0 && !numbers.contains_key(&key) {
                    return Err(RunError::Fit(format!(
                        "{}, request {}: more than {next} distinct addresses do not fit lookup.la_bits = {bits}",
                        input.name,
                        asks.len() + 1
                    )));
                }
                *numbers.entry(key).or_insert(next as u32)
            }
        };
        let bytes = u64::from(request.sectors) * 512;
        asks.push(match request.op {
            HostOp::Trim => Ask::Delete(la),
            _ => Ask::Pages(la, bytes.div_ceil(spec.page_bytes.max(512).into()).max(1) as u32),
        });
        if asks.len() as u64 == limit {
            break;
        }
        if asks.len() % 65_536 == 0
            && !progress(Progress { phase: "read", requests: asks.len() as u64, share: input.share_read() })
        {
            return Err(RunError::Interrupted);
        }
    }
    notes.push(format!("a file is what begins at one address of a request, in units of {unit} sectors"));
    if spec.address == Address::LowBits {
        notes.push(format!(
            "of each address the lowest {bits} bits count: {aliases} of {} requests went to an address that another one has, too",
            asks.len()
        ));
    }
    Ok((asks, notes))
}

fn record(spec: &LookupSpec, params: &Params, s: &Summary, version: &str, approximations: Vec<String>) -> Value {
    let ns = |clocks: f64| clocks * f64::from(s.tck_ps) / 1000.0;
    let per = |clocks: u64, lookups: u64| clocks as f64 / lookups.max(1) as f64;
    let percentiles = |values: &[u64]| -> Value {
        let name = |p: f64| if p == 100.0 { "max".to_owned() } else { format!("p{p}") };
        PERCENTILES.iter().zip(values).map(|(&p, &v)| (name(p), json!(v))).collect::<Map<_, _>>().into()
    };
    let tenths: Vec<Value> = s
        .tenths
        .iter()
        .map(|t| {
            json!({
                "lookups": t.lookups,
                "reads_per_lookup": per(t.reads, t.lookups),
                "clocks_per_lookup": per(t.clocks, t.lookups),
                "ns_per_lookup": ns(per(t.clocks, t.lookups)),
                "paper_table_ns_per_lookup": ns(per(t.paper_clocks, t.lookups)),
            })
        })
        .collect();
    let classes: Map<String, Value> =
        CLASSES.iter().zip(s.classes).map(|(&name, n)| (name.to_owned(), json!(per(n, s.reads)))).collect();
    let config: Map<String, Value> = params.iter().map(|(key, value)| (key.to_owned(), param(value))).collect();
    let mut record = json!({
        "schema": SCHEMA,
        "version": version,
        "config": config,
        "source": spec.source,
        "address": spec.address,
        "unit_sectors": spec.unit_sectors,
        "seed": spec.seed,
        "tck_ps": s.tck_ps,
        "lookups": s.lookups,
        "hits": s.hits,
        "reads_per_lookup": per(s.reads, s.lookups),
        "clocks_per_lookup": s.clocks_per_lookup(),
        "ns_per_lookup": ns(s.clocks_per_lookup()),
        "paper_table_clocks_per_lookup": per(s.paper_clocks, s.lookups),
        "paper_table_ns_per_lookup": ns(per(s.paper_clocks, s.lookups)),
        "service_clocks": percentiles(&s.service),
        "classes": classes,
        "tenths": tenths,
        "bank_skew": s.bank_skew(),
        "activations": s.activations,
        "refreshes": s.refreshes,
        "entries": s.entries,
        "primary_share": s.primary_share,
        "secondary_sets_used": s.secondary_used,
        "chains": s.chains,
        "sets_scanned": s.sets_scanned,
        "bytes": {
            "lpmt": s.lpmt_bytes, "block_tables": s.block_table_bytes,
            "lpmt_packed": s.lpmt_packed_bytes, "block_tables_packed": s.block_table_packed_bytes,
        },
        "approximations": approximations,
    });
    if let (true, Value::Object(record)) = (params.int("lookup.look_ahead") > 0, &mut record) {
        record.insert("latency_clocks".into(), percentiles(&s.latency));
        record.insert("latency_clocks_mean".into(), s.latency_mean.into());
        record.insert("latency_ns_mean".into(), ns(s.latency_mean).into());
    }
    record
}
