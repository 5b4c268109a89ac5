//! Parameters. Each parameter is declared where it is used; checks and documentation use the
//! declaration.
//!
//! A part declares its parameters as [`ParamDef`]s. A [`RawConfig`] collects the values of files
//! and of `--set`. [`RawConfig::resolve`] turns these values into typed [`Params`]. Unknown keys
//! are errors.

mod param;
mod raw_config;

pub use param::{Param, ParamType, Text};
pub use raw_config::RawConfig;

use crate::{
    ConfigError, Dur,
    quantity::{count, quantity, rate, ratio},
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The type and range of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A whole number from the first number to the second.
    Int(u64, u64),
    /// A number of bytes from the first number to the second, such as `4096`, `16KiB` or `2GB`.
    Bytes(u64, u64),
    /// A rate in bytes a second, at most 2^50, such as `200MB`, `200MB/s` or 0.
    Rate,
    /// A duration, such as `25us` or `1.5ms`.
    Time,
    /// A number from the first number to the second.
    Ratio(f64, f64),
    /// `true` or `false`.
    Bool,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// One of the names in a closed list. The function returns the list at run time.
    Name(fn() -> Vec<&'static str>),
    /// The name of a part of this kind, which a registry checks.
    Part(&'static str),
    /// Any text.
    Text,
}

/// One parameter: name, type, range, default and meaning.
#[derive(Clone, Copy, Debug)]
pub struct ParamDef {
    /// Full name, `section.key`.
    pub key: &'static str,
    /// Type and range.
    pub kind: ParamKind,
    /// Default, spelt as in a file; `None` if every drive must set the value.
    pub default: Option<&'static str>,
    /// Meaning, with units and source.
    pub doc: &'static str,
}

/// Joins the declarations of several slices into one array of `N`. A part that contains other parts
/// lists all their parameters with this function.
///
/// # Panics
/// Panics while the program is compiled if the number of declarations is not `N`.
pub const fn concat<const N: usize>(slices: &[&[ParamDef]]) -> [ParamDef; N] {
    let mut all = [ParamDef { key: "", kind: ParamKind::Bool, default: None, doc: "" }; N];
    let (mut count, mut slice) = (0, 0);
    while slice < slices.len() {
        let mut i = 0;
        while i < slices[slice].len() {
            all[count] = slices[slice][i];
            count += 1;
            i += 1;
        }
        slice += 1;
    }
    assert!(count == N, "N is the number of declarations");
    all
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Whole number or bytes.
    Int(u64),
    /// Duration.
    Time(Dur),
    /// Ratio.
    Ratio(f64),
    /// Switch.
    Bool(bool),
    /// Name or text.
    Text(String),
}

impl std::fmt::Display for Value {
    /// Writes the value as a file or `--set` spells it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Time(time) => write!(f, "{}ns", time.0 as f64 / 1000.0),
            Value::Ratio(r) => write!(f, "{r}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Text(text) => write!(f, "{text}"),
        }
    }
}

/// Checked parameters of one drive. It is a bug to read a key that no part declared.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Keys and values, in the order of the keys.
    values: Vec<(&'static str, Value)>,
    /// The index of each key in `values`, because a mount looks up dozens of keys.
    places: FxHashMap<&'static str, usize>,
}

/// The longest time that a parameter accepts: an hour. Simulated time ends after 213 days.
const LONGEST_PS: u64 = 3_600_000_000_000_000;

impl ParamDef {
    /// Parses and checks a value.
    ///
    /// # Errors
    /// Returns an error that names the key, the fault and the allowed values.
    pub fn parse(&self, text: &str) -> Result<Value, ConfigError> {
        let bad = |why: String| ConfigError::allowing(self.key, why, self.range());
        let within = |n: u64, low: u64, high: u64| {
            if (low..=high).contains(&n) {
                Ok(Value::Int(n))
            } else {
                Err(bad(format!("{n} is out of range")))
            }
        };
        match self.kind {
            ParamKind::Int(low, high) => within(count(text).map_err(bad)?, low, high),
            ParamKind::Bytes(low, high) => within(quantity(text, false).map_err(bad)?, low, high),
            ParamKind::Rate => rate(text).map_err(bad).and_then(|n| within(n, 0, 1 << 50)),
            ParamKind::Time => match quantity(text, true).map_err(bad)? {
                ps if ps <= LONGEST_PS => Ok(Value::Time(Dur(ps))),
                _ => Err(bad(format!("`{text}` is out of range"))),
            },
            ParamKind::Ratio(low, high) => {
                let x = ratio(text).map_err(bad)?;
                if x >= low && x <= high {
                    Ok(Value::Ratio(x))
                } else {
                    Err(bad(format!("{x} is out of range")))
                }
            }
            ParamKind::Bool => text
                .parse()
                .map(Value::Bool)
                .map_err(|_| bad(format!("`{text}` is not true or false"))),
            ParamKind::Choice(names) => self.name(text, names),
            ParamKind::Name(names) => self.name(text, &names()),
            ParamKind::Part(_) | ParamKind::Text => Ok(Value::Text(text.to_owned())),
        }
    }

    fn name(&self, text: &str, names: &[&str]) -> Result<Value, ConfigError> {
        let what = self.key.rsplit('.').next().unwrap_or(self.key);
        if names.contains(&text) {
            Ok(Value::Text(text.to_owned()))
        } else {
            Err(ConfigError::unknown(self.key, what, text, names))
        }
    }

    /// Returns the allowed values in words.
    pub fn range(&self) -> String {
        let bound = |n: u64| if n == u64::MAX { "no limit".to_owned() } else { n.to_string() };
        match self.kind {
            ParamKind::Int(low, high) => format!("{low} to {}", bound(high)),
            ParamKind::Bytes(low, high) => format!("{low} to {} bytes", bound(high)),
            ParamKind::Rate => "0, or bytes a second such as 200MB".into(),
            ParamKind::Time => "a time such as 25us or 1.5ms, at most an hour".into(),
            ParamKind::Ratio(low, high) => format!("{low} to {high}"),
            ParamKind::Bool => "true, false".into(),
            ParamKind::Choice(names) => names.join(", "),
            ParamKind::Name(names) => names().join(", "),
            ParamKind::Part(kind) => format!("the name of a {kind}"),
            ParamKind::Text => "text".into(),
        }
    }
}

impl Params {
    pub(crate) fn of(values: BTreeMap<&'static str, Value>) -> Params {
        let values: Vec<(&'static str, Value)> = values.into_iter().collect();
        let places = values.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        Params { values, places }
    }

    /// Returns `true` if the parameter was declared.
    pub fn has<T>(&self, param: Param<T>) -> bool {
        self.places.contains_key(param.key())
    }

    /// Returns the value of a parameter that the drive's parts declared.
    ///
    /// # Panics
    /// Panics if no part declared the parameter, or if two parts declared it with different types.
    pub fn get<T: ParamType>(&self, param: Param<T>) -> T::Read<'_> {
        let key = param.key();
        let value = self
            .value(key)
            .unwrap_or_else(|| panic!("a part reads `{key}`, but no part declares this key"));
        T::read(value).unwrap_or_else(|| panic!("`{key}` was declared twice, with two types"))
    }

    /// Returns the value of the parameter called `key`, or `None` if none is declared.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.places.get(key).map(|&at| &self.values[at].1)
    }

    /// Returns all values in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(key, value)| (*key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Param<u64> = Param::bytes("a.size", 1, 1 << 40, "a size").or("4KiB");
    const WAIT: Param<Dur> = Param::time("a.wait", "a time").or("0");
    const COUNT: Param<u32> = Param::int("a.count", 1, 8, "a count");
    const MODE: Param<crate::Text> =
        Param::choice("a.mode", &["fast", "slow"], "a mode").or("fast");
    static DEFS: [ParamDef; 4] = [SIZE.def, WAIT.def, COUNT.def, MODE.def];

    fn resolve(text: &str) -> Result<Params, ConfigError> {
        RawConfig::from_toml(text, "x.toml")?.resolve(&DEFS.each_ref(), |_| None)
    }

    #[test]
    fn units_and_defaults() {
        let p = resolve("[a]\ncount = 3\nwait = { us = 1.5, source = \"a book\" }\n").unwrap();
        assert_eq!((p.get(SIZE), p.get(WAIT), p.get(COUNT)), (4096, Dur(1_500_000), 3));
        assert_eq!(p.get(MODE), "fast");
        assert_eq!(quantity("2GB", false), Ok(2_000_000_000));
        assert_eq!(quantity("1.5KiB", false), Ok(1536));
        assert_eq!(quantity("0.0001us", true), Ok(100));
    }

    #[test]
    fn errors_name_place_key_and_choices() {
        let text = |t| resolve(t).unwrap_err().to_string();
        assert_eq!(
            text("[a]\ncount = 3\nwiat = \"1us\"\n"),
            "x.toml:3:1: a.wiat: no such key; did you mean `a.wait`? (allowed: a.size, a.wait, \
             a.count, a.mode)"
        );
        assert_eq!(
            text("[a]\ncount = 9\n"),
            "x.toml:2:1: a.count: 9 is out of range (allowed: 1 to 8)"
        );
        assert_eq!(text("[a]\n"), "a.count: is not given: a count");
        assert_eq!(
            text("[a]\ncount=1\nmode=\"fats\"\n"),
            "x.toml:3:1: a.mode: mode `fats` is not known; did you mean `fast`? (allowed: fast, \
             slow)"
        );
        assert!(text("[a]\ncount = \n").starts_with("x.toml:2:"));
        // a word without quotes, whatever its first letter is
        for word in ["fast", "tiny", "slow", "x-1"] {
            let line = format!("[a]\nmode = {word} # a word\n");
            let said = resolve(&line).unwrap_err().to_string();
            assert_eq!(said, format!("x.toml:2:8: syntax: text needs quotes: mode = \"{word}\""));
        }
        assert_eq!(
            text("[a]\nwait = { us = 5, ms = 1 }\n"),
            "x.toml:2:1: a.wait: `us` and `ms` are both given: give one of the two"
        );
        assert!(text("[a]\ncount=1\nwait = \"25\"\n").contains("has no unit"));
        assert!(quantity("99999999999999TiB", false).is_err());
        assert!(quantity("99999999999999.000000000000001TiB", false).is_err());
        assert!(text("[a]\ncount=1\nwait = \"2000000s\"\n").contains("at most an hour"));
        assert!(quantity("0.00000001us", true).is_err());
        assert!(quantity("-5us", true).is_err());
    }
}
