//! Configurations that files and `--set` give, before they are checked.

use crate::quantity::{is_unit, units};
use crate::{ConfigError, ParamDef, ParamKind, Params, error::nearest};
use std::collections::{BTreeMap, BTreeSet};
use toml_edit::{Document, Item, Value as Toml};

/// Unchecked entries of a configuration: for each key a text, its place and its source.
#[derive(Clone, Debug, Default)]
pub struct RawConfig {
    entries: BTreeMap<String, RawEntry>,
    /// Parts of files that are not entries. Their errors depend on the keys that exist.
    misshapen: Vec<Misshapen>,
}

#[derive(Clone, Debug)]
struct RawEntry {
    text: String,
    place: String,
    source: Option<String>,
    in_file: bool,
}

/// A part of a file that does not have the shape of `[section]` tables of values.
#[derive(Clone, Debug)]
struct Misshapen {
    key: String,
    place: String,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// A section without keys.
    Empty,
    /// A table where this key has no value.
    Table,
    /// A list of tables: `[[section]]`.
    Tables,
    /// A value that cannot be read, for this reason.
    NoValue(String),
    /// An inline table with this key, which is not a unit.
    NoUnit(String),
}

impl RawConfig {
    /// Reads TOML: `[section]` tables of `key = value` or `key = { value = …, source = "…" }`,
    /// where the name of a unit (`us`, `ms`, `kib`, `mib` …) may replace the word `value`.
    ///
    /// # Errors
    /// Returns an error, with file, line and column, for a fault of the syntax. A value of an
    /// unknown shape is reported later, by [`RawConfig::resolve`].
    pub fn from_toml(text: &str, file: &str) -> Result<RawConfig, ConfigError> {
        let place = |span: Option<std::ops::Range<usize>>| {
            let before = &text[..span.map_or(0, |s| s.start).min(text.len())];
            let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
            format!("{file}:{}:{column}", before.matches('\n').count() + 1)
        };
        let document = Document::parse(text.to_owned()).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start).min(text.len());
            let why = bare_word(text, at).unwrap_or_else(|| e.message().to_owned());
            ConfigError::new("syntax", why).at(place(e.span()))
        })?;
        let mut raw = RawConfig::default();
        for (section, item) in document.iter() {
            let at = place(item.span());
            match item {
                Item::Table(table) if table.is_empty() => {
                    raw.misshapen(section, at, Shape::Empty);
                }
                Item::Table(table) => {
                    for (key, item) in table.iter() {
                        let full = format!("{section}.{key}");
                        let at =
                            place(table.key(key).and_then(|k| k.span()).or_else(|| item.span()));
                        match item {
                            Item::Table(_) => raw.misshapen(&full, at, Shape::Table),
                            Item::ArrayOfTables(_) => raw.misshapen(&full, at, Shape::Tables),
                            _ => {
                                raw.enter(&full, entry(item), at);
                            }
                        }
                    }
                }
                Item::ArrayOfTables(_) => raw.misshapen(section, at, Shape::Tables),
                _ => raw.enter(section, entry(item), at),
            }
        }
        Ok(raw)
    }

    fn enter(&mut self, key: &str, item: Result<(String, Option<String>), Shape>, place: String) {
        match item {
            Ok((text, source)) => {
                self.entries
                    .insert(key.to_owned(), RawEntry { text, place, source, in_file: true });
            }
            Err(shape) => self.misshapen(key, place, shape),
        }
    }

    fn misshapen(&mut self, key: &str, place: String, shape: Shape) {
        self.misshapen.push(Misshapen { key: key.to_owned(), place, shape });
    }

    /// Sets one key from text, as `--set key=text` does. An earlier value is replaced.
    pub fn set(&mut self, key: &str, text: &str, place: &str) {
        let entry = RawEntry {
            text: text.to_owned(),
            place: place.to_owned(),
            source: None,
            in_file: false,
        };
        self.entries.insert(key.to_owned(), entry);
    }

    /// Adds every entry of `over`. Each replaces the present entry with the same key.
    pub fn overlay(&mut self, over: RawConfig) {
        self.entries.extend(over.entries);
        self.misshapen.extend(over.misshapen);
    }

    /// Returns a configuration for each entry and for each misshapen part.
    pub fn apart(self) -> Vec<RawConfig> {
        let entry = |entry| RawConfig { entries: BTreeMap::from([entry]), misshapen: Vec::new() };
        let misshapen = |one| RawConfig { entries: BTreeMap::new(), misshapen: vec![one] };
        let entries = self.entries.into_iter().map(entry);
        entries.chain(self.misshapen.into_iter().map(misshapen)).collect()
    }

    /// Removes the entry of a key.
    pub fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    /// Returns the text that was written for `key`, or `None` if no text was written.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|e| e.text.as_str())
    }

    /// Checks that `key` is not written as a table.
    ///
    /// # Errors
    /// Returns an error with the place of the table, and with the shape that was expected there.
    pub fn must_be_value(&self, key: &str) -> Result<(), ConfigError> {
        match self.misshapen.iter().find(|misshapen| misshapen.key == key) {
            Some(misshapen) => Err(not_a_value(key, true).at(misshapen.place.as_str())),
            None => Ok(()),
        }
    }

    /// Returns the place where `key` was written, or an empty text.
    pub fn place(&self, key: &str) -> &str {
        self.entries.get(key).map_or("", |e| e.place.as_str())
    }

    /// Returns the source of the value of `key`, or `None` if the file names no source.
    pub fn source(&self, key: &str) -> Option<&str> {
        self.entries.get(key)?.source.as_deref()
    }

    /// Returns the keys in sorted order, with their texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(k, e)| (k.as_str(), e.text.as_str()))
    }

    /// Returns the key and the place of the first entry without a source. Keys in `except` are
    /// skipped. The entry may be a number, a word or a flag. Returns `None` if every entry has a
    /// source.
    pub fn without_source(&self, except: &[&str]) -> Option<(&str, &str)> {
        self.entries
            .iter()
            .find(|(key, e)| e.source.is_none() && !except.contains(&key.as_str()))
            .map(|(key, e)| (key.as_str(), e.place.as_str()))
    }

    /// Checks every entry against `defs` and fills in defaults. If a key is not in `defs`,
    /// `elsewhere` returns a message that names the owner of the key.
    ///
    /// # Errors
    /// Returns an error for an unknown key, a section that is written as a value, a value that is
    /// written as a section, a value of the wrong type or out of range, or a missing value.
    pub fn resolve(
        &self,
        defs: &[&'static ParamDef],
        elsewhere: impl Fn(&str) -> Option<String>,
    ) -> Result<Params, ConfigError> {
        let mut faults = Vec::new();
        for misshapen in &self.misshapen {
            let error = misshapen.error(defs, &elsewhere);
            faults.extend(error.map(|e| e.at(misshapen.place.as_str())));
        }
        for (key, entry) in &self.entries {
            if !defs.iter().any(|d| d.key == key) {
                let error = misplaced(key, entry.in_file, defs)
                    .unwrap_or_else(|| unknown(key, defs, &elsewhere));
                faults.push(error.at(entry.place.as_str()));
            }
        }
        let mut values = BTreeMap::new();
        let mut missing = None;
        for def in defs {
            let (text, place) = match (self.entries.get(def.key), def.default) {
                (Some(entry), _) => (entry.text.as_str(), entry.place.as_str()),
                (None, Some(text)) => (text, ""),
                (None, None) => {
                    missing.get_or_insert(def);
                    continue;
                }
            };
            match def.parse(text) {
                Ok(value) => drop(values.insert(def.key, value)),
                Err(error) => faults.push(error.at(place)),
            }
        }
        // a misspelling may be the reason for a missing key, so the other faults come first
        match (ConfigError::in_order(faults), missing) {
            (Some(fault), _) => Err(fault),
            (None, Some(def)) => {
                Err(ConfigError::new(def.key, format!("is not given: {}", def.doc)))
            }
            (None, None) => Ok(Params::of(values)),
        }
    }
}

impl Misshapen {
    /// Returns the fault of this part, or `None` if the part is an empty section that exists.
    fn error(
        &self,
        defs: &[&'static ParamDef],
        elsewhere: impl Fn(&str) -> Option<String>,
    ) -> Option<ConfigError> {
        let key = self.key.as_str();
        let error = misplaced(key, true, defs);
        let is_section = error.is_some() && !keys_in(key, defs).is_empty();
        match &self.shape {
            Shape::Empty if is_section => None,
            Shape::Empty => Some(error.unwrap_or_else(|| {
                let sections = sections(defs);
                ConfigError {
                    nearest: nearest(key, &sections).map(str::to_owned),
                    allowed: sections.iter().map(|&name| name.to_owned()).collect(),
                    ..ConfigError::new(key, "no part of this drive has such a section")
                }
            })),
            Shape::Tables if is_section => error.map(|mut error| {
                error.why += &format!("; [[{key}]] makes a list of sections");
                error
            }),
            Shape::NoValue(why) if !is_section => Some(ConfigError::new(key, why.as_str())),
            Shape::NoUnit(unit) if let Some(def) = defs.iter().find(|def| def.key == key) => {
                Some(no_unit(def, unit))
            }
            _ => Some(error.unwrap_or_else(|| unknown(key, defs, elsewhere))),
        }
    }
}

/// Returns the error about an inline table for `def`, whose key `unit` is not a unit.
fn no_unit(def: &ParamDef, unit: &str) -> ConfigError {
    let (kind, units) = match def.kind {
        ParamKind::Time => (", `source` or a unit of time", units(true)),
        ParamKind::Bytes(..) | ParamKind::Rate => (", `source` or a unit of size", units(false)),
        _ => (" or `source`", Vec::new()),
    };
    ConfigError {
        nearest: nearest(unit, &units).map(str::to_owned),
        allowed: units.iter().map(|&unit| unit.to_owned()).collect(),
        ..ConfigError::new(def.key, format!("`{unit}` is not `value`{kind}"))
    }
}

/// Returns the sections of `defs`, sorted.
fn sections(defs: &[&'static ParamDef]) -> Vec<&'static str> {
    let sections: BTreeSet<&str> =
        defs.iter().filter_map(|def| Some(def.key.split_once('.')?.0)).collect();
    sections.into_iter().collect()
}

/// Returns the full names of the keys in `section`.
fn keys_in(section: &str, defs: &[&'static ParamDef]) -> Vec<String> {
    let within = |key: &str| key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
    defs.iter().filter(|def| within(def.key)).map(|def| def.key.to_owned()).collect()
}

/// Returns the error about `key` if it is a section that is written as a value, or a key below a
/// value.
fn misplaced(key: &str, in_file: bool, defs: &[&'static ParamDef]) -> Option<ConfigError> {
    let allowed = keys_in(key, defs);
    if !allowed.is_empty() {
        let why = if in_file {
            format!("is a section: write [{key}] and its keys below")
        } else {
            format!("is a section: write {key}.KEY=VALUE")
        };
        return Some(ConfigError { allowed, ..ConfigError::new(key, why) });
    }
    let holds = |name: &str| {
        key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let def = defs.iter().find(|def| holds(def.key))?;
    Some(not_a_value(def.key, in_file))
}

/// Returns the error about `key`, which is a value but is written as a section.
fn not_a_value(key: &str, in_file: bool) -> ConfigError {
    let expected = match (in_file, key.split_once('.')) {
        (false, _) => format!("{key}=VALUE"),
        (true, Some((section, key))) => format!("`{key} = VALUE` under [{section}]"),
        (true, None) => format!("`{key} = VALUE` above all sections"),
    };
    ConfigError::new(key, format!("is a value, not a section: write {expected}"))
}

/// Returns the error about a key that is not in `defs`.
fn unknown(
    key: &str,
    defs: &[&'static ParamDef],
    elsewhere: impl Fn(&str) -> Option<String>,
) -> ConfigError {
    let names: Vec<&str> = defs.iter().map(|def| def.key).collect();
    // a correct name in the wrong section is more likely than a wrong name in the right section
    let moved = |name: &&&str| {
        key.split_once('.')
            .is_some_and(|(_, own)| name.split_once('.').is_some_and(|(_, theirs)| own == theirs))
    };
    let meant = names.iter().find(moved).copied().or_else(|| nearest(key, &names));
    let mut error = match elsewhere(key) {
        Some(owner) => ConfigError::new(key, owner),
        None => ConfigError {
            nearest: meant.map(str::to_owned),
            ..ConfigError::new(key, "no such key")
        },
    };
    let section = key.split('.').next().unwrap_or_default();
    error.allowed = names
        .iter()
        .filter(|name| name.split('.').next() == Some(section))
        .map(|&name| name.to_owned())
        .collect();
    if error.allowed.is_empty() {
        let all: BTreeSet<String> = names
            .iter()
            .map(|name| match name.split_once('.') {
                Some((section, _)) => format!("{section}.*"),
                None => (*name).to_owned(),
            })
            .collect();
        error.allowed = all.into_iter().collect();
    }
    error
}

/// Returns the advice for a line `key = word` at byte `at`, where the word needs quotes.
fn bare_word(text: &str, at: usize) -> Option<String> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let (key, word) = text[start..].lines().next()?.split_once('=')?;
    let (key, word) = (key.trim(), word.split('#').next()?.trim());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(plain);
    let known = ["true", "false", "inf", "nan"].contains(&word);
    (is_word && !known).then(|| format!("text needs quotes: {key} = \"{word}\""))
}

/// Returns the text and the source of a TOML item.
fn entry(item: &Item) -> Result<(String, Option<String>), Shape> {
    let no_value = |why: &str| Shape::NoValue(why.to_owned());
    let value = item.as_value().ok_or_else(|| no_value("this key has no value"))?;
    let Toml::InlineTable(table) = value else {
        return Ok((scalar(value)?, None));
    };
    let mut source = None;
    let mut text = None;
    for (key, value) in table.iter() {
        match key {
            "source" => {
                let text = value.as_str().ok_or_else(|| no_value("`source` must be text"))?;
                source = Some(text.to_owned());
            }
            unit if unit == "value" || is_unit(unit) => {
                if let Some((_, before)) = text {
                    let why =
                        format!("`{before}` and `{unit}` are both given: give one of the two");
                    return Err(Shape::NoValue(why));
                }
                let suffix = if unit == "value" { "" } else { unit };
                text = Some((format!("{}{suffix}", scalar(value)?), unit));
            }
            other => return Err(Shape::NoUnit(other.to_owned())),
        }
    }
    Ok((text.ok_or_else(|| no_value("the table holds no value"))?.0, source))
}

fn scalar(value: &Toml) -> Result<String, Shape> {
    Ok(match value {
        Toml::String(s) => s.value().clone(),
        Toml::Integer(i) => i.value().to_string(),
        Toml::Float(f) => f.value().to_string(),
        Toml::Boolean(b) => b.value().to_string(),
        Toml::Array(names) if names.iter().all(Toml::is_str) => {
            names.iter().filter_map(Toml::as_str).collect::<Vec<_>>().join(",")
        }
        _ => {
            let why = "the value must be a number, a text, true, false or a list of texts";
            return Err(Shape::NoValue(why.to_owned()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Param, Text};

    const UNIT: Param<u64> = Param::bytes("map.unit", 1, 1 << 20, "bytes").or("4KiB");
    const STORE: Param<Text> = Param::text("map.store", "a name").or("");
    const BLOCKS: Param<u32> = Param::int("drive.blocks", 1, 8, "blocks").or("1");
    const LAYERS: Param<Text> = Param::text("layers", "names").or("");
    static DEFS: [ParamDef; 4] = [UNIT.def, STORE.def, BLOCKS.def, LAYERS.def];

    fn of_file(text: &str) -> String {
        let raw = RawConfig::from_toml(text, "x.toml");
        raw.and_then(|raw| raw.resolve(&DEFS.each_ref(), |_| None)).unwrap_err().to_string()
    }

    fn of_set(key: &str) -> String {
        let mut raw = RawConfig::default();
        raw.set(key, "3", "set");
        raw.resolve(&DEFS.each_ref(), |_| None).unwrap_err().to_string()
    }

    #[test]
    fn a_section_takes_no_value() {
        let map = "is a section: write [map] and its keys below";
        let keys = "(allowed: map.unit, map.store)";
        for value in ["3", "[1, 2]", "{ unit = 512 }", "\"dftl\""] {
            let said = of_file(&format!("map = {value}\n"));
            assert_eq!(said, format!("x.toml:1:7: map: {map} {keys}"));
        }
        assert_eq!(
            of_file("layers = \"\"\n[[map]]\nunit = 512\n"),
            format!("x.toml:2:1: map: {map}; [[map]] makes a list of sections {keys}")
        );
        assert_eq!(of_set("map"), format!("set: map: is a section: write map.KEY=VALUE {keys}"));
        assert_eq!(
            of_file("drive = 3\n"),
            "x.toml:1:9: drive: is a section: write [drive] and its keys below (allowed: \
             drive.blocks)"
        );
    }

    #[test]
    fn a_value_holds_no_keys() {
        let unit = "map.unit: is a value, not a section: write";
        for text in ["[map.unit]\n", "[map.unit]\nx = 3\n", "[[map.unit]]\n", "[map.unit.x]\n"] {
            let said = of_file(text);
            assert!(said.starts_with("x.toml:1:"), "{said}");
            assert!(said.ends_with(&format!("{unit} `unit = VALUE` under [map]")), "{said}");
        }
        let layers = "layers: is a value, not a section: write";
        for text in ["[layers]\n", "[layers]\nx = 3\n", "[[layers]]\nx = 3\n"] {
            let said = of_file(text);
            assert!(
                said.ends_with(&format!("{layers} `layers = VALUE` above all sections")),
                "{said}"
            );
        }
        assert_eq!(of_set("map.unit.x"), format!("set: {unit} map.unit=VALUE"));
        assert_eq!(of_set("layers.x"), format!("set: {layers} layers=VALUE"));
    }

    #[test]
    fn sections_and_tables_that_nobody_knows_are_refused() {
        assert_eq!(
            of_file("[driv]\n"),
            "x.toml:1:1: driv: no part of this drive has such a section; did you mean `drive`? \
             (allowed: drive, map)"
        );
        let all = "(allowed: drive.*, layers, map.*)";
        assert_eq!(of_file("[[zzzzzzzz]]\n"), format!("x.toml:1:1: zzzzzzzz: no such key {all}"));
        assert_eq!(
            of_file("zzzzzzzz = [1]\n"),
            "x.toml:1:12: zzzzzzzz: the value must be a number, a text, true, false or a list of \
             texts"
        );
        assert_eq!(
            of_file("[map.stor]\n"),
            "x.toml:1:6: map.stor: no such key; did you mean `map.store`? \
             (allowed: map.unit, map.store)"
        );
        // a section that exists may be empty
        let empty = RawConfig::from_toml("[map]\n", "x.toml").unwrap();
        assert!(empty.resolve(&DEFS.each_ref(), |_| None).is_ok());
    }

    #[test]
    fn every_fault_is_said_in_the_order_of_lines() {
        // keys are sorted by name: the key of the last line comes first
        let text = "[map]\nstor = \"x\"\nunit = { kb = 4, msec = 1 }\n[drive]\nblocks = 9\n\
                    block = 1\n";
        let said = of_file(text);
        let faults: Vec<&str> = said.split("; also ").collect();
        assert_eq!(
            faults,
            [
                "x.toml:2:1: map.stor: no such key; did you mean `map.store`? \
                 (allowed: map.unit, map.store)",
                "x.toml:3:1: map.unit: `msec` is not `value`, `source` or a unit of size \
                 (allowed: b, kib, mib, gib, tib, kb, mb, gb, tb, k, m, g)",
                "x.toml:5:1: drive.blocks: 9 is out of range (allowed: 1 to 8)",
                "x.toml:6:1: drive.block: no such key; did you mean `drive.blocks`? \
                 (allowed: drive.blocks)",
            ]
        );
    }

    #[test]
    fn a_key_of_time_names_units_of_time() {
        const ERASE: Param<crate::Dur> = Param::time("timing.t_erase", "time of an erase");
        let raw = RawConfig::from_toml("[timing]\nt_erase = { msec = 5 }\n", "x.toml");
        let said = raw.and_then(|raw| raw.resolve(&[&ERASE.def], |_| None)).unwrap_err();
        assert_eq!(
            said.to_string(),
            "x.toml:2:1: timing.t_erase: `msec` is not `value`, `source` or a unit of time; did \
             you mean `ms`? (allowed: ps, ns, us, ms, s, min, h)"
        );
    }

    #[test]
    fn a_key_of_another_section_is_suggested_there() {
        assert_eq!(
            of_set("drive.unit"),
            "set: drive.unit: no such key; did you mean `map.unit`? (allowed: drive.blocks)"
        );
    }

    #[test]
    fn what_lies_over_a_misshapen_part_does_not_hide_it() {
        let mut raw = RawConfig::default();
        raw.overlay(RawConfig::from_toml("[map.unit]\nx = 3\n", "x.toml").unwrap());
        raw.set("map.unit", "512", "set");
        let said = raw.resolve(&DEFS.each_ref(), |_| None).unwrap_err().to_string();
        assert!(said.starts_with("x.toml:1:6: map.unit: is a value"), "{said}");
        let refused = raw.must_be_value("map.unit").unwrap_err().to_string();
        assert_eq!(refused, said);
    }
}
