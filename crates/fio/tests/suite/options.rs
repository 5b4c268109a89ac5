//! The class of every option of fio, and the option's message.

use flashatlas_fio::{OptionClass, known_options, options_table, parse};
use std::collections::HashSet;
use std::process::Command;

/// Document that contains the table of options.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/howto/run-a-fio-job.md");
const BEGIN: &str = "<!-- options: begin -->\n";
const END: &str = "<!-- options: end -->\n";

/// Returns the error of a job of 64 KiB with the option `line`, or `None` if the job is accepted.
fn error(line: &str) -> Option<String> {
    let none = |_: &str| Err(std::io::Error::other("no files here"));
    let text = format!("[first]\nsize=64k\n[a]\nsize=64k\n{line}\n");
    parse(&text, "t.fio", &|_| None, &none).err().map(|error| error.to_string())
}

#[test]
fn every_option_has_one_class() {
    let mut seen = HashSet::new();
    for option in known_options() {
        assert!(seen.insert(option.name), "{} has two classes", option.name);
    }
}

/// Checks the names that `fio --cmdhelp=all` and `--enghelp` list.
#[test]
fn every_option_that_fio_lists_has_a_class() {
    let said = |args: &[&str]| {
        let output = Command::new("fio").args(args).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let Some(mut text) = said(&["--cmdhelp=all"]) else {
        return eprintln!("skipped: fio is not installed");
    };
    for engine in ["io_uring", "io_uring_cmd", "libaio", "sg", "pvsync2"] {
        text += &said(&[&format!("--enghelp={engine}")]).unwrap();
    }
    let known: HashSet<&str> = known_options().map(|option| option.name).collect();
    let names: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(": "))
        .filter_map(|line| line.trim_start().split([' ', ':']).next())
        .collect();
    assert!(names.len() > 220, "{}", names.len());
    for name in names {
        assert!(known.contains(name), "`{name}` has no class");
    }
}

#[test]
fn what_is_refused_says_what_to_do_instead() {
    for option in known_options() {
        let OptionClass::Refused { instead, harmless } = option.class else { continue };
        let said = error(&format!("{}=77", option.name)).unwrap_or_default();
        assert_eq!(
            said,
            format!("t.fio:5:{}: {}: {instead}", option.name.len() + 2, option.name),
            "{}",
            option.name
        );
        for value in harmless {
            assert_eq!(error(&format!("{}={value}", option.name)), None, "{}={value}", option.name);
        }
    }
    assert!(error("merge_blktrace_file=x").unwrap().contains("--trace FILE"));
    assert!(error("fdp=1").is_some() && error("zonemode=strided").is_some());
    assert_eq!(error("zonemode=none"), None);
}

#[test]
fn what_is_left_out_is_no_error() {
    for option in known_options() {
        if let OptionClass::LeftOut { .. } = option.class {
            assert_eq!(error(&format!("{}=1", option.name)), None, "{}", option.name);
        }
    }
}

#[test]
fn reading_back_and_waiting_have_their_limits() {
    assert_eq!(
        error("wait_for=x").unwrap(),
        "t.fio:5:10: wait_for: no earlier job is called `x` (earlier jobs: first)"
    );
    assert!(error("directory=a:b").unwrap().contains("several directories"));
    assert_eq!(error("wait_for=first"), None);
    let counted = error("rw=write\nverify=md5\nnumber_ios=3").unwrap();
    assert!(counted.starts_with("t.fio:7:12: number_ios: reading back"), "{counted}");
    assert_eq!(error("rw=write\nverify=md5\nnumber_ios=3\ndo_verify=0"), None);
    assert_eq!(error("rw=randrw\nverify=md5"), None);
    assert_eq!(
        error("zonemode=strided").unwrap(),
        "t.fio:5:10: zonemode: the zones have no size; give a zonesize"
    );
    assert_eq!(
        error("zonesize=4k").unwrap(),
        "t.fio:5:10: zonesize: there are no zones; set zonemode=strided"
    );
    assert!(error("zonemode=zbd").unwrap().contains("zoned drives are not simulated"));
    assert!(error("exitall=0").unwrap().contains("ignores the value and ends all jobs"));
    assert!(error("exit_what=groop").unwrap().contains("did you mean `group`?"));
    assert!(error("flow=1001").unwrap().starts_with("t.fio:5:6: flow: 1001"));
    assert_eq!(
        error("rate_process=poisson\nrate=1k").unwrap(),
        "t.fio:5:14: rate_process: the rate is less than one request a second, and fio 3.33 \
         crashes at such a rate"
    );
    assert!(error("verify=md6").unwrap().contains("did you mean `md5`?"));
}

/// Compares the table in the document, or writes it with FLASHATLAS_WRITE=1.
#[test]
fn the_documentation_prints_the_table() {
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (printed, after) = rest.split_once(END).expect("the table ends");
    let table = options_table();
    if flashatlas_fixtures::written::is_asked_for() {
        std::fs::write(DOCUMENT, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert!(printed == table, "the table has changed; FLASHATLAS_WRITE=1 writes it");
    }
}
