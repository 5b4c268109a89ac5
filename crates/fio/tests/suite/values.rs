//! Spellings of sizes, counts and times, compared with real fio.
//!
//! `fio --debug=parse` shows the value that fio reads. Without an installed `fio`, the tests are
//! skipped with a message.

use flashatlas_fio::{Amount, JobFile, Options, parse};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Function that returns a value from the options of a job.
type Getter = fn(&Options) -> u64;

fn bytes(amount: Amount) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => u64::MAX - u64::from(percent), // as fio stores a percentage
    }
}

/// Options that take a size or a count, each with a function that returns it.
const SIZES: &[(&str, Getter)] = &[
    ("size", |o| bytes(o.size.unwrap())),
    ("io_size", |o| bytes(o.io_size.unwrap())),
    ("io_limit", |o| bytes(o.io_size.unwrap())),
    ("filesize", |o| o.file_size.unwrap()),
    ("offset", |o| bytes(o.offset)),
    ("fileoffset", |o| bytes(o.offset)),
    ("offset_increment", |o| bytes(o.offset_increment)),
    ("offset_align", |o| o.offset_align.unwrap()),
    ("bs", |o| o.sizes[2].1),
    ("blocksize", |o| o.sizes[0].0),
    ("ba", |o| o.align[1].unwrap()),
    ("number_ios", |o| o.number_ios.unwrap()),
    ("nrfiles", |o| u64::from(o.files)),
    ("numjobs", |o| u64::from(o.clones)),
    ("iodepth", |o| u64::from(o.depth)),
    ("fsync", |o| o.fsync),
    ("fdatasync", |o| o.fdatasync),
    ("thinktime_blocks", |o| o.think_blocks.unwrap()),
    ("rate", |o| o.rate[2]),
    ("rate_iops", |o| o.rate_iops[2]),
    ("loops", |o| o.loops),
    ("randseed", |o| o.seed.unwrap()),
];

/// Options that take a time, each with a function that returns it in microseconds.
const TIMES: &[(&str, Getter)] = &[
    ("runtime", |o| o.runtime.ns() / 1000),
    ("timeout", |o| o.runtime.ns() / 1000),
    ("ramp_time", |o| o.ramp.ns() / 1000),
    ("startdelay", |o| o.start_delay.0.ns() / 1000),
    ("thinktime", |o| o.think.ns() / 1000),
    ("thinktime_iotime", |o| o.think_after.ns() / 1000),
    ("steadystate_duration", |o| o.settling.window.ns() / 1000),
    ("ss_dur", |o| o.settling.window.ns() / 1000),
    ("steadystate_ramp_time", |o| o.settling.ramp.ns() / 1000),
    ("ss_ramp", |o| o.settling.ramp.ns() / 1000),
];

fn fio_is_missing() -> bool {
    let missing = Command::new("fio").arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: fio is not installed");
    }
    missing
}

/// Returns the text that fio prints while it parses `text`.
fn parsing(text: &str) -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("values-{}-{run}.fio", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let output =
        Command::new("fio").args(["--parse-only", "--debug=parse"]).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "fio refuses {text}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the value that fio stores for each `option=value`, each in a section of its own.
fn theirs(base: u64, given: &[(String, String)]) -> Vec<u64> {
    let said = parsing(&text(base, given));
    let mut values = Vec::new();
    let mut lines = said.lines();
    for (option, value) in given {
        let whole = format!("handle_option={option}, ptr={value}");
        let name = whole.replace(option, named(option));
        lines.find(|line| line.ends_with(&name) && !line.contains("__")).expect(&whole);
        let line = lines.find(|line| line.contains("out=")).expect(&whole);
        values.push(line.rsplit("out=").next().unwrap().parse().unwrap());
    }
    values
}

/// Returns the name that fio prints for an option, which is the name in fio's list.
fn named(option: &str) -> &str {
    match option {
        "io_limit" => "io_size",
        "fileoffset" => "offset",
        "blocksize" => "bs",
        "timeout" => "runtime",
        "ss_dur" => "steadystate_duration",
        "ss_ramp" => "steadystate_ramp_time",
        other => other,
    }
}

fn text(base: u64, given: &[(String, String)]) -> String {
    let sections = given.iter().enumerate();
    let sections = sections.map(|(i, (o, v))| format!("[j{i}]\nkb_base={base}\n{o}={v}\n"));
    sections.collect()
}

fn read(text: &str) -> Result<JobFile, String> {
    let none = |_: &str| Err(std::io::Error::other("no files here"));
    parse(text, "job.fio", &|_| None, &none).map_err(|e| e.to_string())
}

/// Checks that this crate and fio read the same values, and returns the values that fio read.
fn same(base: u64, getter_of: &[(&str, Getter)], given: Vec<(String, String)>) -> Vec<u64> {
    let file = read(&text(base, &given)).unwrap();
    let theirs = theirs(base, &given);
    for ((section, (option, value)), theirs) in file.sections.iter().zip(&given).zip(&theirs) {
        let getter = getter_of.iter().find(|(name, _)| name == option).unwrap().1;
        let ours = getter(&section.options);
        assert_eq!(ours, *theirs, "{option}={value}, kb_base={base}: here, and in fio");
    }
    theirs
}

/// Returns `word` in every mixture of lower and upper case.
fn cases(word: &str) -> Vec<String> {
    (0..1u32 << word.len())
        .map(|bits| {
            let letters = word.chars().enumerate();
            letters
                .map(|(i, c)| if bits >> i & 1 == 1 { c.to_ascii_uppercase() } else { c })
                .collect()
        })
        .collect()
}

#[test]
fn every_spelling_of_a_size_is_read_as_fio_reads_it() {
    if fio_is_missing() {
        return;
    }
    let mut suffixes = vec![String::new(), "b".into(), "B".into()];
    for prefix in ["k", "m", "g", "t", "p"] {
        for rest in ["", "b", "i", "ib"] {
            suffixes.extend(cases(&format!("{prefix}{rest}")));
        }
    }
    for base in [1000, 1024] {
        let spellings = suffixes.iter().map(|suffix| format!("6{suffix}"));
        let others = ["0x1000", "0X1f", "010", "+4k", "50%", "9223372036854775807"];
        let given = spellings.chain(others.map(str::to_owned));
        let given = given.map(|value| ("io_size".to_owned(), value)).collect();
        same(base, SIZES, given);
    }
    let by_hand = ["6ki", "6kib", "6kb", "6b"];
    let given = by_hand.map(|value| ("size".to_owned(), value.to_owned())).to_vec();
    assert_eq!(same(1024, SIZES, given.clone()), [6 * 1024, 6 * 1000, 6 * 1024, 6]);
    assert_eq!(same(1000, SIZES, given), [6 * 1000, 6 * 1024, 6 * 1000, 6]);
}

#[test]
fn every_option_with_a_size_takes_the_same_spellings() {
    if fio_is_missing() {
        return;
    }
    for base in [1000, 1024] {
        let spellings = ["7", "3k", "3K", "3kb", "3ki", "3Ki", "3kib", "3KiB", "0x30"];
        let given = SIZES.iter().flat_map(|(option, _)| {
            spellings.map(|value| ((*option).to_owned(), value.to_owned()))
        });
        same(base, SIZES, given.collect());
    }
}

#[test]
fn every_spelling_of_a_time_is_read_as_fio_reads_it() {
    if fio_is_missing() {
        return;
    }
    let mut spellings = vec!["0".to_owned(), "12".into(), "+12".into(), "012".into()];
    // the times are long enough for two measurements of `steadystate_duration` and short enough for
    // `thinktime`
    let units =
        [("us", 2_000_000), ("usec", 2_000_000), ("ms", 2000), ("msec", 2000), ("s", 2), ("m", 1)];
    for (unit, number) in units.into_iter().chain([("h", 1)]) {
        spellings.extend(cases(unit).into_iter().map(|unit| format!("{number}{unit}")));
    }
    let given = TIMES.iter().flat_map(|(option, _)| {
        spellings.iter().map(|value| ((*option).to_owned(), value.clone()))
    });
    same(1024, TIMES, given.collect());
    // two days exceed the 32 bits of `thinktime` and `thinktime_iotime`, and the number of
    // measurements of `steadystate_duration`
    let short = ["thinktime", "thinktime_iotime", "steadystate_duration", "ss_dur"];
    let long = TIMES.iter().filter(|(option, _)| !short.contains(option));
    let given = long
        .clone()
        .flat_map(|(option, _)| ["2d", "2D"].map(|value| ((*option).to_owned(), value.to_owned())));
    let days = same(1024, TIMES, given.collect());
    assert!(days.iter().all(|&us| us == 2 * 86_400 * 1_000_000), "{days:?}");
    for option in ["thinktime", "thinktime_iotime"] {
        assert!(read(&format!("[a]\n{option}=2h\n")).unwrap_err().contains("4294967295 us"));
    }
}

#[test]
fn two_times_are_read_as_fio_reads_them() {
    if fio_is_missing() {
        return;
    }
    for value in ["5-10", "10-5", "5:10", "5,10", "5-10ms", "5:10ms", "5ms-10ms", "5s,10s"] {
        let given = vec![("startdelay".to_owned(), value.to_owned())];
        let o = read(&text(1024, &given)).unwrap().sections[0].options.clone();
        let ours = [o.start_delay.0, o.start_delay.1].map(|time| time.ns() / 1000);
        // fio prints the first time, and then the second
        let said = parsing(&text(1024, &given));
        let start = said.find("handle_option=startdelay").unwrap();
        let mut theirs: Vec<u64> = said[start..]
            .lines()
            .filter_map(|line| line.rsplit_once("out=").map(|(_, out)| out.parse().unwrap()))
            .collect();
        theirs.sort_unstable();
        assert_eq!(ours.to_vec(), theirs, "startdelay={value}");
    }
}

/// Checks that values are refused if fio accepts them but reads another value than they suggest.
///
/// In the list, the value that fio reads follows each of these values.
#[test]
fn what_fio_reads_otherwise_is_refused() {
    let odd = [
        ("size", "1.5k", "1"),
        ("size", "4 k", "4"),
        ("size", "4s", "4"),
        ("size", "4i", "4"),
        ("size", "4kilo", "4096"),
        ("size", "0x10k", "16"),
        ("size", "20000p", "4071254063142928384"),
        ("bs", "4k:8k", "8192"), // fio applies the second size to writes
        ("bs", "4k-8k", "8192"),
        ("runtime", "10sec", "10"),
        ("runtime", "10min", "10"),
        ("runtime", "1h30m", "1"),
        ("runtime", "1.5s", "1000000"),
        ("runtime", "0x10", "16"),
        ("thinktime", "10 s", "10"),
        ("startdelay", "5s-10s", "10000000"), // fio reads the first time as 5 us
        ("startdelay", "5m:10m", "600000000"),
    ];
    let missing = fio_is_missing();
    for (option, value, theirs_by_hand) in odd {
        let given = vec![(option.to_owned(), value.to_owned())];
        assert!(read(&text(1024, &given)).is_err(), "{option}={value}");
        if !missing {
            let said = parsing(&text(1024, &given));
            let last = said.lines().filter_map(|line| line.rsplit_once("out=")).next_back();
            assert_eq!(last.unwrap().1, theirs_by_hand, "{option}={value} in fio");
        }
    }
    for (option, value) in [("direct", "true"), ("end_fsync", ""), ("size", "9223372036854775808")]
    {
        let given = vec![(option.to_owned(), value.to_owned())];
        assert!(read(&text(1024, &given)).is_err(), "{option}={value}: fio refuses it, too");
    }
}
