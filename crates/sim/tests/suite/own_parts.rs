//! Parts that do not come with the project.
//!
//! Each part is added to a registry, and is then used like the project's own parts.

use flashatlas_device::{LayerDef, Part, Preset, Registry};
use flashatlas_ftl::MemoryUse;
use flashatlas_ftl::classifiers::{
    Classifier, ClassifierDef, Collected, Page, Stream as Of, Streams,
};
use flashatlas_ftl::victims::{Candidates, LaneShape, Moment, VICTIMS, VictimDef, VictimPolicy};
use flashatlas_host::STANDARD;
use flashatlas_lookup::hashes::{Hash, HashDef};
use flashatlas_sim::Stream;
use flashatlas_sim::lookup::{LookupSpec, lookup};
use flashatlas_sim::metrics::{Findings, METRICS, Metric, MetricDef, Snapshot};
use flashatlas_sim::{Build, Environment, RunSpec, run};
use flashatlas_types::{
    Entries, HostOp, Lba, LocalBlock, Param, ParamDef, Params, Ps, Request, Rng, StreamId,
};
use flashatlas_workload::{
    Account, FormatDef, GeneratorDef, Presence, Reader, Record, RecordSource,
    Registry as Workloads, Sniff, TraceError,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const PATIENCE: Param<u32> =
    Param::int("ftl.patience", 1, 9, "closed blocks that the policy skips").or("1");

/// Policy that collects the newest block, which is the worst choice that still frees a slot.
struct Newest {
    closed: Vec<LocalBlock>,
    patience: usize,
}

const NEWEST: VictimDef = VictimDef {
    name: "newest",
    summary: "the block that was closed last and has an invalid slot",
    paper: "none",
    params: &[PATIENCE.def],
    build: &|params: &Params, _: LaneShape, _: Rng| {
        Box::new(Newest { closed: Vec::new(), patience: params.get(PATIENCE) as usize })
    },
    steady: None,
};

impl VictimPolicy for Newest {
    fn closed(&mut self, block: LocalBlock, _: u32, _: Moment) {
        self.closed.push(block);
    }

    fn invalidated(&mut self, _: LocalBlock, _: u32, _: Moment) {}

    fn removed(&mut self, block: LocalBlock) {
        self.closed.retain(|&closed| closed != block);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        let frees = |block: &LocalBlock| lane.valid[*block] < lane.slots;
        let mut freeing = self.closed.iter().rev().copied().filter(frees);
        let newest = freeing.clone().next();
        freeing.nth(self.patience - 1).or(newest)
    }
}

/// Classifier that compares the given ages and streams with its own record of them.
#[derive(Default)]
struct Witness {
    /// For each page, the clock of its last host write, its last stream, and the stream before. A
    /// moved page stays in the previous stream until its copy is programmed.
    seen: HashMap<u32, (u64, Of, Of)>,
    clock: u64,
}

const WITNESS: ClassifierDef = ClassifierDef {
    name: "witness",
    summary: "asserts that the ages and streams of pages equal its own record of them",
    paper: "none",
    params: &[],
    streams: Some(Streams { host: 2, collection: 3 }),
    history: true,
    build: &|_, _, _| Box::new(Witness::default()),
};

/// Numbers of moves with a known stream and of erased blocks, over all tests of the process.
static WITNESSED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

impl Witness {
    fn compare(&self, page: &Page) {
        let seen = self.seen.get(&page.lpn.0);
        assert_eq!(page.age, seen.map(|(written, ..)| page.clock - written), "{page:?}");
        if let Some(from) = page.from {
            let (_, last, before) = seen.expect("it was written");
            assert!([*last, *before].contains(&from), "{page:?}: {last:?} {before:?}");
        }
    }
}

impl Classifier for Witness {
    fn written(&mut self, page: &Page) -> StreamId {
        assert_eq!(page.clock, self.clock);
        self.compare(page);
        let stream = StreamId::new(page.lpn.0 % 2);
        let stream_now = Of::Host(stream);
        self.seen.insert(page.lpn.0, (self.clock, stream_now, stream_now));
        self.clock += 1;
        stream
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        self.compare(page);
        assert!(page.from.is_some(), "a moved page is on flash: {page:?}");
        WITNESSED[0].fetch_add(1, Relaxed);
        let stream = StreamId::new(page.lpn.0 % 3);
        let (_, last, before) = self.seen.get_mut(&page.lpn.0).expect("it was written");
        (*before, *last) = (*last, Of::Collection(stream));
        stream
    }

    fn erased(&mut self, block: &Collected) {
        assert!(block.stream.is_some() && block.valid <= block.slots, "{block:?}");
        assert!(block.age <= self.clock, "{block:?}");
        WITNESSED[1].fetch_add(1, Relaxed);
    }

    fn memory(&self) -> Vec<MemoryUse> {
        Vec::new()
    }
}

/// Source that writes two pages in turn.
struct Hammer(u64, u64);

impl RecordSource for Hammer {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.0 += 1;
        let lba = Lba(self.0 % 2 * 4);
        let request = Request { at: Ps::ZERO, op: HostOp::Write, lba, sectors: 4, fua: false };
        Ok((self.0 <= self.1).then_some(Record { request, device: 0 }))
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn bytes_read(&self) -> u64 {
        0
    }

    fn expected(&self) -> Option<u64> {
        Some(self.1)
    }
}

const TIMES: Param<u64> = Param::int("times", 1, 1000, "writes in all").or("10");

const HAMMER: GeneratorDef = GeneratorDef {
    name: "hammer",
    summary: "two pages in turn",
    params: &[TIMES.def],
    serial: false,
    build: |params, _, _| Ok(Box::new(Hammer(0, params.get(TIMES)))),
};

/// Format of a file with the text `hammer N`.
const HAMMERED: FormatDef = FormatDef {
    name: "hammered",
    summary: "a word and a number",
    quirks: "",
    source: "none",
    licence: "none",
    times: Presence::Never,
    operations: Presence::Always,
    params: &[],
    sniff: |head| if head.starts_with(b"hammer ") { Sniff::Yes } else { Sniff::No },
    open: |mut input: Box<dyn BufRead + Send>, _| {
        let mut line = String::new();
        input.read_line(&mut line).expect("in memory");
        let count = line["hammer ".len()..].trim().parse().expect("a number");
        let source = Box::new(Hammer(0, count));
        Ok(Reader { source, times: false, operations: true })
    },
    writer: None,
};

/// Metric that reports the number of blocks.
struct Untouched;

const UNTOUCHED: MetricDef = MetricDef {
    name: "untouched",
    summary: "blocks that were never erased",
    build: |_| Box::new(Untouched),
};

impl Metric for Untouched {
    fn finish(&mut self, end: &Snapshot<'_>, found: &mut Findings) {
        let blocks = end.medium.layout().blocks();
        found.record.insert("untouched".into(), blocks.into());
    }
}

const SMALL: Preset =
    Preset { name: "half", toml: "[drive]\nbase = { value = \"tiny\", source = \"here\" }\n" };

fn files(path: &str) -> std::io::Result<Stream> {
    match path {
        "ten" => Ok((Box::new(std::io::Cursor::new(b"hammer 10\n".to_vec())), None)),
        _ => Err(std::io::Error::other("no such file")),
    }
}

fn environment(registry: &Registry) -> Environment<'_> {
    Environment {
        registry,
        workloads: Workloads::STANDARD
            .with_generator(&HAMMER)
            .and_then(|w| w.with_format(&HAMMERED))
            .unwrap(),
        metrics: Entries::of(METRICS).with(&UNTOUCHED).unwrap(),
        opener: &files,
        build: Build { version: "test", sources: "sha256:test", commit: None },
        added: &[],
    }
}

fn played(registry: &Registry, spec: Value) -> Result<Value, String> {
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let outcome = run(&spec, &environment(registry), &mut |_| true).map_err(|e| e.to_string())?;
    assert_eq!(outcome.record["oracle"]["violations"], 0);
    Ok(outcome.record)
}

fn writes(victim: &str) -> Value {
    json!({ "drive": "tiny", "precondition": "fill", "mode": "untimed",
        "workload": "uniform:requests=8000,size=2KiB", "set": [format!("ftl.victim={victim}")] })
}

#[test]
fn a_victim_policy_is_run_checked_and_recorded() {
    let mine = STANDARD.with(&NEWEST).unwrap();
    let waf = |registry: &Registry, victim: &str| {
        played(registry, writes(victim)).unwrap()["waf"].as_f64().unwrap()
    };
    assert!(
        waf(&mine, "newest") > 1.1 * waf(&mine, "fifo"),
        "the newest block has the most valid slots"
    );
    let mut spec = writes("newest");
    spec["set"] = json!(["ftl.victim=newest", "ftl.patience=3"]);
    let record = played(&mine, spec.clone()).unwrap();
    assert_eq!(record["config"]["params"]["ftl.patience"], 3);
    // errors in its parameter and name are reported as for other policies
    spec["set"] = json!(["ftl.victim=newest", "ftl.patience=10"]);
    let said = played(&mine, spec).unwrap_err();
    assert_eq!(said, "set: ftl.patience: 10 is out of range (allowed: 1 to 9)");
    let said = played(&mine, writes("newst")).unwrap_err();
    assert!(said.contains("did you mean `newest`? (allowed: greedy, "), "{said}");
    let victims = VICTIMS.iter().map(|def| def.name).collect::<Vec<_>>().join(", ");
    let of_victim = STANDARD.ftl.scheme("page").unwrap();
    let params = (of_victim.params)(&mine.ftl, &|_| None).unwrap();
    let def = params.into_iter().find(|p| p.key == "ftl.victim").unwrap();
    assert_eq!(mine.range(def), format!("{victims}, newest"));
    // other registries do not contain the policy, because a registry is a value
    assert!(played(&STANDARD, writes("newest")).unwrap_err().contains("is not known"));
    assert_eq!(mine.kind_of("newest"), Some(("victim policy", "ftl.victim")));
}

#[test]
fn a_classifier_is_told_ages_and_streams() {
    let mine = STANDARD.with(&WITNESS).unwrap();
    let set = ["ftl.classifier=witness", "drive.blocks=64", "drive.over_provisioning=0.5"];
    // units of a whole page, and units of a quarter page, which may be overwritten before the page
    // is full
    for unit in ["map.unit=2KiB", "map.unit=512"] {
        let set: Vec<&str> = set.into_iter().chain([unit]).collect();
        let spec = json!({ "drive": "tiny", "mode": "untimed", "set": set,
            "workload": "hotcold:requests=20000,size=2KiB" });
        let before = WITNESSED.each_ref().map(|count| count.load(Relaxed));
        played(&mine, spec).unwrap();
        let after = WITNESSED.each_ref().map(|count| count.load(Relaxed));
        assert!(after[0] > before[0] + 1000 && after[1] > before[1] + 100, "{after:?}");
    }
    let said = played(
        &mine,
        json!({ "drive": "tiny", "workload": "uniform", "mode": "untimed",
        "set": ["ftl.classifier=witness", "ftl.streams=2"] }),
    );
    assert!(said.unwrap_err().contains(
        "ftl.streams: the classifier witness has its own number of streams (2 for host writes, 3 \
         for collection): leave this key out"
    ));
}

#[test]
fn generators_formats_metrics_and_drives_are_added_alike() {
    let mine = STANDARD.with(&NEWEST).and_then(|r| r.with(&SMALL)).unwrap();
    let base = json!({ "drive": "tiny", "mode": "untimed" });
    let with = |key: &str, value: &str| {
        let mut spec = base.clone();
        spec[key] = value.into();
        played(&mine, spec)
    };
    let record = with("workload", "hammer:times=7").unwrap();
    assert_eq!((&record["host"]["writes"], &record["untouched"]), (&json!(7), &json!(128)));
    let said = with("workload", "hammer:tmes=7").unwrap_err();
    assert!(said.contains("did you mean `times`?"), "{said}");
    let record = with("trace", "ten").unwrap();
    assert_eq!(
        (&record["host"]["writes"], &record["trace"]["format"]),
        (&json!(10), &json!("hammered"))
    );
    assert_eq!(mine.preset("half").unwrap().name, "half");
}

const CLASHING: Param<u32> = Param::int("ftl.streams", 1, 3, "something else").or("1");
const CLASH: VictimDef = VictimDef { name: "clash", params: &[CLASHING.def], ..NEWEST };
/// Returns a layer that fits any drive.
fn layer(key: &'static [ParamDef]) -> &'static LayerDef {
    let hard = STANDARD.layers.named("hard").unwrap();
    Box::leak(Box::new(LayerDef {
        name: "mine",
        summary: hard.summary,
        paper: hard.paper,
        params: key,
        fits: hard.fits,
        build: hard.build,
        mount_limit: hard.mount_limit,
        small: hard.small,
        mechanisms: hard.mechanisms,
    }))
}
const OTHER: Param<u32> = Param::int("ftl.patience", 1, 9, "another patience").or("1");
const SAME_KEY: VictimDef = VictimDef { name: "newer", ..NEWEST };

#[test]
fn names_and_keys_that_clash_are_named() {
    let mine = STANDARD.with(&NEWEST).unwrap();
    let said = |part: Part| mine.with(part).unwrap_err().to_string();
    assert_eq!(
        said(Part::Victim(&NEWEST)),
        "victim policy: two entries of the registry are called `newest`: give one of them another \
         name"
    );
    assert_eq!(
        said(Part::Victim(&CLASH)),
        "ftl.streams: victim policy `clash` and scheme `page` declare this key with different \
         meanings: use another key in one of the two"
    );
    assert_eq!(
        said(Part::Layer(layer(&[OTHER.def]))),
        "ftl.patience: layer `mine` and victim policy `newest` declare this key with different \
         meanings: use another key in one of the two"
    );
    assert!(mine.with(layer(&[PATIENCE.def])).is_ok(), "the same parameter may be shared");
    assert!(
        mine.with(&SAME_KEY).is_ok(),
        "only one of two policies is in use, so they may share a key"
    );
}

const SHIFT: Param<u32> = Param::int("lookup.one_shift", 0, 31, "bits that are left out").or("31");

/// Hash function that maps every address to the same set if the shift is large enough.
struct One(u32, u32);

impl Hash for One {
    fn key(&self, la: u32) -> u32 {
        (la >> self.0) & self.1
    }
}

const ONE: HashDef = HashDef {
    name: "one",
    summary: "the highest bits of the address",
    paper: "none",
    params: &[SHIFT.def],
    build: &|params, _, set_bits| {
        Ok(Box::new(One(params.get(SHIFT), ((1u64 << set_bits) - 1) as u32)))
    },
};

#[test]
fn a_hash_function_is_chosen_by_drives_and_by_studies() {
    let mine = STANDARD.with(&ONE).unwrap();
    let longest = |registry: &Registry, set: &[&str]| {
        let set: Vec<&str> =
            ["lookup.sets=256", "lookup.ways=4"].iter().chain(set).copied().collect();
        let spec = json!({ "set": set, "source": { "files": { "files": 40 } } });
        let record = lookup(
            &serde_json::from_value::<LookupSpec>(spec).unwrap(),
            &environment(registry),
            &mut |_| true,
        );
        record.map(|r| r.record["chains"].as_array().unwrap().len()).map_err(|e| e.to_string())
    };
    // 40 entries with 4 entries a set make one chain of 10 sets
    assert_eq!(longest(&mine, &["lookup.hash=one"]), Ok(10));
    assert!(longest(&mine, &["lookup.hash=folding"]).unwrap() < 5);
    let said = longest(&STANDARD, &["lookup.hash=one"]).unwrap_err();
    assert!(said.contains("hash function `one` is not known"), "{said}");
    let spec = |hash: &str| {
        json!({ "drive": "tiny", "mode": "untimed", "precondition": "none",
        "workload": "uniform:requests=3000,size=2KiB,read=0.5",
        "set": ["map.store=lpmt", format!("lookup.hash={hash}"), "lookup.one_shift=9"] })
    };
    let record = played(&mine, spec("one")).unwrap();
    assert_eq!(record["oracle"]["violations"], 0);
    assert_eq!(record["config"]["params"]["lookup.one_shift"], 9);
    let said = played(&mine, spec("on")).unwrap_err();
    assert!(said.contains("did you mean `one`? (allowed: shifting, "), "{said}");
    let mut without = spec("one");
    without["set"] = json!(["lookup.one_shift=9"]);
    let said = played(&mine, without).unwrap_err();
    assert!(said.contains("belongs to lookup.hash = one"), "{said}");
    const TWICE: HashDef = HashDef { name: "two", params: &[OTHER_SHIFT.def], ..ONE };
    const OTHER_SHIFT: Param<u32> = Param::int("lookup.one_shift", 0, 31, "another").or("0");
    let said = mine.with(&TWICE).unwrap_err().to_string();
    assert!(
        said.contains("hash function `two` and hash function `one` declare this key"),
        "{said}"
    );
}
