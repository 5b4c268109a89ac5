//! Configuration files: any text is either read or refused with a place.
#![no_main]

use flashatlas_types::params::RawConfig;
use flashatlas_types::{ParamDef, ParamKind};

static DEFS: [ParamDef; 6] = [
    ParamDef {
        key: "map.unit",
        kind: ParamKind::Bytes(1, 1 << 20),
        default: Some("4KiB"),
        doc: "bytes",
    },
    ParamDef {
        key: "map.ratio",
        kind: ParamKind::Ratio(0.0, 1.0),
        default: Some("0.5"),
        doc: "a ratio",
    },
    ParamDef {
        key: "map.kind",
        kind: ParamKind::Choice(&["page", "block"]),
        default: Some("page"),
        doc: "a name",
    },
    ParamDef { key: "time.read", kind: ParamKind::Time, default: Some("25us"), doc: "a time" },
    ParamDef { key: "time.on", kind: ParamKind::Bool, default: Some("true"), doc: "a switch" },
    ParamDef {
        key: "time.count",
        kind: ParamKind::Int(0, u64::MAX),
        default: Some("0"),
        doc: "a number",
    },
];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match RawConfig::from_toml(text, "fuzz.toml") {
        Err(error) => assert!(error.place.starts_with("fuzz.toml:"), "{error}"),
        Ok(raw) => {
            let defs: Vec<&'static ParamDef> = DEFS.iter().collect();
            if let Ok(params) = raw.resolve(&defs, |_| None) {
                assert!(params.int("map.unit") >= 1);
                assert!((0.0..=1.0).contains(&params.ratio("map.ratio")));
            }
        }
    }
});
