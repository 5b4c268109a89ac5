//! Tests that the examples compile without a warning and do what their comments say.

use crate::build::{example, prefix, run, succeeds};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Returns the value of the output line that begins with `key`.
fn value<'o>(output: &'o str, key: &str) -> &'o str {
    let found = output.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no line `{key}`:\n{output}"))
}

#[test]
fn the_event_loop_reads_what_it_wrote_and_deeper_queues_are_faster() {
    let source = example("event_loop.c");
    let at = |depth: &str| run("cc", &source, &["-std=c99"], &[depth, "6000", "5"]);
    let iops = |output: &str| value(output, "iops").parse::<f64>().unwrap();
    let (one, eight) = (at("1"), at("8"));
    for output in [&one, &eight] {
        assert_eq!((value(output, "commands"), value(output, "wrong")), ("6000", "0"));
        let record: Value = serde_json::from_str(value(output, "record")).unwrap();
        let commands = |op: &str| record["commands"][op]["completed"].as_u64().unwrap();
        assert_eq!(commands("read") + commands("write"), 6000);
        assert!(commands("read") > 2500 && commands("write") > 2500, "{record}");
        assert!(record["waf"].as_f64() > Some(1.0), "{record}");
    }
    assert!(iops(&eight) > iops(&one), "{} and {}", iops(&eight), iops(&one));
    assert_eq!(at("8"), eight, "the same calls give the same answers");
}

#[test]
fn the_static_library_does_without_the_shared_one() {
    let archive = prefix().join("lib/libflashatlas.a");
    let folder = tempfile::TempDir::new().unwrap();
    let program = folder.path().join("program");
    succeeds(
        Command::new("cc")
            .arg("-I")
            .arg(prefix().join("include"))
            .arg(example("event_loop.c"))
            .arg(archive)
            .args(["-lpthread", "-ldl", "-lm", "-o"])
            .arg(&program),
    );
    assert_eq!(value(&succeeds(Command::new(program).args(["4", "500"])), "wrong"), "0");
}

#[test]
fn the_example_in_cpp_keeps_what_was_flushed() {
    let output = run("c++", &example("raii.cc"), &["-std=c++11"], &[]);
    assert!(output.contains("refused 6: the power is off; call fa_power_on"), "{output}");
    assert!(output.contains("flushed kept, in the cache lost"), "{output}");
    assert!(output.contains("ftl.victim"), "{output}");
}

#[test]
fn the_example_in_python_reads_what_it_wrote() {
    let library = prefix().join("lib/libflashatlas.so");
    let output = succeeds(Command::new("python3").arg(example("ctypes_drive.py")).arg(library));
    let (first, second) = output.split_once('\n').unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["wrong"], 0);
    assert_eq!(first["record"]["commands"]["write"]["completed"], 100);
    assert_eq!(first["record"]["nand"]["programs"]["host"], 100);
    assert!(second.contains("`tinny` is not known"), "{second}");
}

#[test]
fn pkg_config_says_where_the_library_is() {
    let text = prefix().join("lib/pkgconfig/flashatlas.pc");
    let text = std::fs::read_to_string(text).unwrap();
    assert!(!text.contains('@'), "{text}");
    assert!(text.contains(&format!("Version: {}\n", env!("CARGO_PKG_VERSION"))), "{text}");
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", "flashatlas"])
        .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"))
        .output();
    let Ok(asked) = asked else {
        eprintln!("skipped: there is no pkg-config here");
        return;
    };
    let flags = String::from_utf8(asked.stdout).unwrap();
    let expected = format!("-I{}", prefix().join("include").display());
    assert!(flags.contains(&expected) && flags.contains("-lflashatlas"), "{flags}");
}

/// Compiles and runs a SystemC target socket over a drive. This needs Debian's libsystemc-dev.
#[test]
fn the_tlm_target_carries_transactions_of_an_initiator() {
    if !Path::new("/usr/include/systemc").exists() && !Path::new("/usr/include/systemc.h").exists()
    {
        eprintln!("skipped: SystemC is not installed (apt-get install libsystemc-dev)");
        return;
    }
    let more = ["-std=c++17", "-Wno-unused-parameter", "-lsystemc", "-lpthread"];
    let output = run("c++", &example("tlm_target.cc"), &more, &[]);
    assert_eq!(value(&output, "wrong"), "0");
    assert_eq!(value(&output, "refused"), "TLM_ADDRESS_ERROR_RESPONSE");
}
