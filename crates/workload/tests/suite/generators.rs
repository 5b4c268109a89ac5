//! Generators do what their parameters say.

use crate::common::*;
use flashatlas_types::{HostOp, Seed};
use flashatlas_workload::{
    GENERATORS, GeneratorDef, Record, RecordSource, generate, generator_by_name,
};
use std::collections::{BTreeMap, BTreeSet};

const CAPACITY: u64 = 1 << 21; // 1 GiB

fn make(spec: &str) -> Vec<Record> {
    let mut source = generate(spec, CAPACITY, Seed(42)).unwrap_or_else(|e| panic!("{spec}: {e}"));
    let expected = source.expected().unwrap();
    let (records, error) = drain(&mut *source);
    assert_eq!((records.len() as u64, error), (expected, None), "{spec}");
    assert_eq!((source.bytes_read(), source.account().skipped_bad), (0, 0));
    records
}

fn refuse(spec: &str) -> String {
    generate(spec, CAPACITY, Seed(1))
        .err()
        .unwrap_or_else(|| panic!("{spec} is accepted"))
        .to_string()
}

/// Returns `true` if `count` of `total` is within five standard deviations of a share of `p`.
fn near(count: usize, total: usize, p: f64) -> bool {
    let sigma = (total as f64 * p * (1.0 - p)).sqrt();
    (count as f64 - total as f64 * p).abs() <= 5.0 * sigma
}

fn share_of(records: &[Record], what: impl Fn(&Record) -> bool, p: f64) {
    let count = records.iter().filter(|r| what(r)).count();
    assert!(near(count, records.len(), p), "{count} of {}, a share of {p} expected", records.len());
}

/// Returns the generators that share parameters: all but the file systems.
fn patterns() -> impl Iterator<Item = &'static GeneratorDef> {
    GENERATORS.iter().filter(|g| !g.serial)
}

#[test]
fn every_generator_keeps_to_its_mix_its_range_and_its_alignment() {
    for generator in patterns() {
        for (size, sectors) in [("4KiB", 8), ("512", 1), ("3KiB", 6), ("1MiB", 2048)] {
            let name = generator.name;
            let sized = match name {
                "mixed" => format!("sizes={size}"),
                "desktop" => format!("size={size},file_size={size}"),
                _ => format!("size={size}"),
            };
            let spec =
                format!("{name}:requests=20000,{sized},read=0.3,trim=0.2,range=0.37,interval=3us");
            let records = make(&spec);
            share_of(&records, |r| r.request.op == HostOp::Read, 0.3);
            share_of(&records, |r| r.request.op == HostOp::Trim, 0.2);
            share_of(&records, |r| r.request.op == HostOp::Write, 0.5);
            let end = (CAPACITY as f64 * 0.37) as u64;
            for (i, record) in records.iter().enumerate() {
                let request = record.request;
                assert_eq!(
                    (request.at.0, record.device, request.fua),
                    (i as u64 * 3 * US, 0, false)
                );
                assert_eq!(
                    (request.sectors, request.lba.0 % u64::from(sectors)),
                    (sectors, 0),
                    "{spec}"
                );
                assert!(request.end().unwrap() <= end, "{spec}: {record:?}");
            }
            let highest = records.iter().map(|r| r.request.end().unwrap()).max().unwrap();
            if !["hotcold", "zipf"].contains(&name) && sectors == 2048 {
                assert!(
                    highest + 2 * 2048 > end,
                    "{spec}: the end of the range is reached, {highest} of {end}"
                );
            }
        }
    }
}

#[test]
fn seeds_decide_and_nothing_else() {
    for generator in patterns() {
        let spec = format!("{}:requests=1000,read=0.5", generator.name);
        let run = |seed| drain(&mut *generate(&spec, CAPACITY, Seed(seed)).unwrap()).0;
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2), "{spec}");
        // the operation and the address of a request are drawn from separate random numbers
        let places = |spec: &str| make(spec).iter().map(|r| r.request.lba).collect::<Vec<_>>();
        assert_eq!(places(&spec), places(&spec.replace("0.5", "0.1")));
    }
}

#[test]
fn the_first_requests_never_change() {
    let first =
        |spec: &str| make(spec).iter().take(6).map(|r| r.request.lba.0 / 8).collect::<Vec<_>>();
    assert_eq!(first("uniform"), PINNED_UNIFORM);
    assert_eq!(first("zipf"), PINNED_ZIPF);
    assert_eq!(first("zipf:scatter=false"), PINNED_RANKS);
}

const PINNED_UNIFORM: [u64; 6] = [232701, 202485, 147845, 158008, 64725, 16756];
const PINNED_ZIPF: [u64; 6] = [235252, 179970, 84152, 105, 252239, 259599];
const PINNED_RANKS: [u64; 6] = [2, 12, 202, 121, 12140, 119406];

#[test]
fn flushes_come_after_so_many_others() {
    let records = make("uniform:requests=1000,flush_every=3");
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.request.op == HostOp::Flush, i % 4 == 3, "request {i}");
        assert_eq!(record.request.sectors == 0, i % 4 == 3);
    }
    assert!(
        make("uniform:requests=1000")
            .iter()
            .all(|r| r.request.op == HostOp::Write && r.request.at.0 == 0)
    );
}

#[test]
fn uniform_is_uniform() {
    let records = make("uniform:requests=200000,size=64MiB");
    let mixed: Vec<Record> = make("uniform:requests=100000,read=0.5");
    let low: Vec<Record> = mixed.into_iter().filter(|r| r.request.lba.0 < CAPACITY / 2).collect();
    // the operation of a request does not depend on its address
    share_of(&low, |r| r.request.op == HostOp::Read, 0.5);
    for slot in 0..16 {
        share_of(&records, |r| r.request.lba.0 == slot << 17, 1.0 / 16.0);
    }
}

#[test]
fn sequential_goes_round() {
    let records = make("sequential:requests=40,size=64MiB,range=0.99");
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.request.lba.0, (i as u64 % 15) << 17, "0.99 of 16 slots: 15 whole slots");
    }
}

#[test]
fn hotcold_shares_hold_and_each_part_is_uniform() {
    let records = make("hotcold:requests=200000,size=1MiB,hot_space=0.25,hot_share=0.8");
    share_of(&records, |r| r.request.lba.0 < CAPACITY / 4, 0.8);
    for slot in [0, 1, 128, 255] {
        share_of(&records, |r| r.request.lba.0 == slot << 11, 0.8 / 256.0);
    }
    for slot in [256, 700, 1023] {
        share_of(&records, |r| r.request.lba.0 == slot << 11, 0.2 / 768.0);
    }
    assert!(
        make("hotcold:requests=100,size=512MiB,hot_space=0").iter().any(|r| r.request.lba.0 > 0)
    );
    assert!(make("hotcold:requests=100,hot_share=1,hot_space=1").len() == 100);
}

#[test]
fn zipf_follows_its_law_scattered_or_not() {
    let slots = 1024u32;
    let total: f64 = (1..=slots).map(|k| f64::from(k).powf(-0.9)).sum();
    let spec = "zipf:requests=200000,size=1MiB,theta=0.9";
    let plain = make(&format!("{spec},scatter=false"));
    for rank in [1u32, 2, 3, 10, 100, 1024] {
        let place = (u64::from(rank) - 1) << 11;
        share_of(&plain, |r| r.request.lba.0 == place, f64::from(rank).powf(-0.9) / total);
    }
    let scattered = make(spec);
    let mut places = BTreeMap::new();
    for (a, b) in plain.iter().zip(&scattered) {
        let place = *places.entry(a.request.lba.0).or_insert(b.request.lba.0);
        assert_eq!(place, b.request.lba.0, "a rank has one place");
    }
    assert_eq!(
        places.values().collect::<BTreeSet<_>>().len(),
        places.len(),
        "a place has one rank"
    );
    let in_order = places.iter().filter(|(rank, place)| rank == place).count();
    assert!(in_order < 10, "{in_order} ranks stay where they are");
}

#[test]
fn mixed_streams_are_sequential_and_sizes_have_weights() {
    let spec = "mixed:requests=100000,sizes=4KiB*3/64KiB,sequential=0.6,streams=2,range=0.5";
    let records = make(spec);
    // stream 0 takes the first size in the first half of the range, stream 1 the second size in the
    // second half
    let half = CAPACITY / 4;
    let mut next = [(0, 8), (half, 128)];
    let mut continued = 0;
    let mut random = Vec::new();
    for record in &records {
        let at = (record.request.lba.0, record.request.sectors);
        assert_eq!(at.0 % u64::from(at.1), 0, "aligned to its own size");
        match next.iter_mut().find(|stream| **stream == at) {
            Some(stream) => {
                stream.0 += u64::from(stream.1);
                stream.0 = if stream.0 == 2 * half { half } else { stream.0 };
                stream.0 = if stream.0 == half && stream.1 == 8 { 0 } else { stream.0 };
                continued += 1;
            }
            None => random.push(*record),
        }
    }
    assert!(near(continued, records.len(), 0.6), "{continued}");
    share_of(&random, |r| r.request.sectors == 8, 0.75);
    share_of(&random, |r| r.request.lba.0 < half, 0.5);
    let one = make("mixed:requests=100,sequential=1,sizes=96KiB,streams=3");
    assert!(one.iter().all(|r| r.request.lba.0 % 192 == 0), "a request is not aligned");
}

#[test]
fn mistakes_are_named() {
    assert_eq!(
        refuse("unifrom"),
        "workload.generator: generator `unifrom` is not known; did you mean `uniform`? (allowed: \
         desktop, ext4-sync, hotcold, mixed, sequential, uniform, zipf)"
    );
    assert_eq!(
        refuse("uniform:requets=5"),
        "uniform: requets: parameter `requets` is not known; did you mean `requests`? (allowed: \
         size, requests, read, trim, flush_every, range, interval)"
    );
    assert_eq!(refuse("uniform:size"), "uniform: size: has no value: write key=value");
    assert_eq!(refuse("uniform:size=4KiB,size=8KiB"), "uniform: size: is given twice");
    assert_eq!(refuse("uniform:read=1.5"), "uniform: read: 1.5 is out of range (allowed: 0 to 1)");
    assert_eq!(refuse("uniform:read=NaN"), "uniform: read: NaN is out of range (allowed: 0 to 1)");
    assert_eq!(
        refuse("uniform:size=1000"),
        "uniform: size: a request cannot have 1000 bytes (allowed: multiples of 512 up \
         to 1073741824 bytes)"
    );
    assert_eq!(
        refuse("zipf:size=512MiB,range=0.25"),
        "zipf: size: a request of 536870912 bytes does not fit the range of 268435456 bytes"
    );
    assert_eq!(
        refuse("uniform:read=0.6,trim=0.6"),
        "uniform: trim: the shares of reads (0.6) and trims (0.6) are more than 1 in sum"
    );
    assert_eq!(
        refuse("uniform:requests=18446744073709551615,interval=1us"),
        "uniform: interval: 18446744073709551615 requests at this interval take longer than the \
         213 days of simulated time"
    );
    assert_eq!(
        refuse("hotcold:hot_space=1"),
        "hotcold: hot_space: hot_share is below 1, but the range has no room beside the hot part"
    );
    assert_eq!(
        refuse("mixed:sizes=4KiB*0"),
        "mixed: sizes: `0` is not a weight: write a whole number from 1 to 1000000"
    );
    assert_eq!(
        refuse("mixed:sizes=4KiB/x"),
        "mixed: sizes: `x` is not a unit of size (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)"
    );
    assert_eq!(
        refuse(&format!("mixed:sizes=512{}", "/512".repeat(64))),
        "mixed: sizes: the list has more than 64 sizes"
    );
    assert_eq!(
        refuse("mixed:sizes=1MiB,streams=2000"),
        "mixed: streams: a request of 1048576 bytes does not fit the range of 536576 bytes"
    );
    assert_eq!(generate("uniform", 7, Seed(1)).err().unwrap().key, "size");
    assert_eq!(generator_by_name("zipf").unwrap().name, "zipf");
}

#[test]
fn extreme_capacities_stay_in_range() {
    for generator in patterns() {
        for capacity in [8, 9, u64::MAX] {
            let spec = format!(
                "{}:requests=1000{}",
                generator.name,
                match generator.name {
                    "hotcold" => ",hot_share=1",
                    "desktop" => ",hot_bytes=512,size=512,file_size=512",
                    _ => "",
                }
            );
            let mut source: Box<dyn RecordSource> = generate(&spec, capacity, Seed(5)).unwrap();
            for record in drain(&mut *source).0 {
                assert!(record.request.end().unwrap() <= capacity.min(1 << 55), "{spec}");
            }
        }
    }
}

#[test]
fn every_generator_file_is_in_the_list() {
    let mut files: Vec<String> = std::fs::read_dir(root().join("crates/workload/src/generators"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()))
        .filter(|name| !["mod", "common", "math"].contains(&name.as_str()))
        .collect();
    files.sort();
    assert_eq!(
        files,
        GENERATORS.iter().map(|g| g.name.replace('-', "_")).collect::<Vec<_>>(),
        "a file for each generator, the list in order"
    );
    for generator in GENERATORS {
        for param in generator.params {
            assert!(
                !param.key.contains('.') && !param.doc.is_empty() && param.default.is_some(),
                "{}",
                param.key
            );
            param.parse(param.default.unwrap()).unwrap();
        }
    }
}

fn file_system(spec: &str) -> Vec<Record> {
    drain(&mut *generate(spec, CAPACITY, Seed(1)).unwrap()).0
}

/// Returns the requests of a file system as letters: data, journal (the last 1 MiB), FLUSH.
fn letters(spec: &str) -> String {
    let journal = CAPACITY - 2048;
    let letter = |r: &Record| match r.request.op {
        HostOp::Flush => 'F',
        _ if r.request.lba.0 >= journal => 'J',
        _ => 'D',
    };
    file_system(spec).iter().map(letter).collect()
}

#[test]
fn a_synced_file_sends_data_then_what_the_call_needs() {
    let spec = |rest: &str| format!("ext4-sync:journal_size=1MiB,operations=3,{rest}");
    let commit = "DJFJF";
    for sync in ["fsync", "fdatasync"] {
        assert_eq!(
            letters(&spec(&format!("write=append,sync={sync}"))),
            commit.repeat(3),
            "the size has changed"
        );
    }
    assert_eq!(letters(&spec("write=overwrite,sync=fdatasync")), "DF".repeat(3));
    assert_eq!(
        letters(&spec("write=overwrite,sync=fsync")),
        commit.repeat(3),
        "the time has changed"
    );
    assert_eq!(
        letters(&spec("write=random,sync=fsync,syncs_per_tick=2")),
        format!("{commit}DF{commit}")
    );
    assert_eq!(letters(&spec("write=append,fua=true,writes_per_sync=2")), "DDJFJ".repeat(3));
    let appended = file_system(&spec("write=append,size=8KiB"));
    let data: Vec<u64> =
        appended.iter().filter(|r| r.request.sectors == 16).map(|r| r.request.lba.0).collect();
    assert_eq!(data, [0, 16, 32]);
}
