//! Configuration files: any text is either read or refused with a place.
#![no_main]

use flashatlas_types::{Dur, Param, ParamDef, RawConfig, Text};

const UNIT: Param<u64> = Param::bytes("map.unit", 1, 1 << 20, "bytes").or("4KiB");

const RATIO: Param<f64> = Param::ratio("map.ratio", 0.0, 1.0, "a ratio").or("0.5");

const KIND: Param<Text> = Param::choice("map.kind", &["page", "block"], "a name").or("page");

const READ: Param<Dur> = Param::time("time.read", "a time").or("25us");

const ON: Param<bool> = Param::flag("time.on", "a switch").or("true");

const COUNT: Param<u64> = Param::int("time.count", 0, u64::MAX, "a number").or("0");

static DEFS: [ParamDef; 6] = [UNIT.def, RATIO.def, KIND.def, READ.def, ON.def, COUNT.def];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match RawConfig::from_toml(text, "fuzz.toml") {
        Err(error) => assert!(error.place.starts_with("fuzz.toml:"), "{error}"),
        Ok(raw) => {
            let defs: Vec<&'static ParamDef> = DEFS.iter().collect();
            if let Ok(params) = raw.resolve(&defs, |_| None) {
                assert!(params.get(UNIT) >= 1);
                assert!((0.0..=1.0).contains(&params.get(RATIO)));
            }
        }
    }
});
