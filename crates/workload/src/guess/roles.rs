//! Roles of the columns of an unknown trace, and their units.

use crate::described::iso_time;
use crate::text::Field;
use std::collections::BTreeSet;

/// Role of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Time,
    Op,
    Offset,
    Size,
    Device,
}

impl Role {
    /// All roles, in the order of their parameters in a specification.
    pub const ALL: [Role; 5] = [Role::Time, Role::Op, Role::Offset, Role::Size, Role::Device];

    /// Returns words in the name of a column that show this role, the most telling first.
    fn words(self) -> &'static [&'static str] {
        match self {
            Role::Time => {
                &["timestamp", "time", "ts", "date", "datetime", "clock", "arrival", "when", "t"]
            }
            Role::Op => {
                &["op", "operation", "opcode", "rw", "rwbs", "type", "iotype", "cmd", "command"]
            }
            Role::Offset => &[
                "offset", "lba", "slba", "lbn", "lpn", "sector", "address", "addr", "block", "blk",
                "position", "pos", "start",
            ],
            Role::Size => &[
                "size", "length", "len", "bytes", "nbytes", "sectors", "nsectors", "nlb", "blocks",
                "nblocks", "nsect", "count",
            ],
            Role::Device => {
                &["device", "dev", "disk", "volume", "vol", "lun", "namespace", "nsid", "asu"]
            }
        }
    }
}

/// A column: its place in a specification, its name in the trace (empty if it has no name), and its
/// first values.
pub(super) struct Column<'a> {
    pub place: String,
    pub name: String,
    pub values: Vec<&'a str>,
}

impl Column<'_> {
    /// Returns the words of the name, in lower case.
    fn words(&self) -> Vec<String> {
        self.name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect()
    }

    fn has(&self, words: &[&str]) -> bool {
        self.words().iter().any(|word| words.contains(&word.as_str()))
    }

    fn numbers(&self) -> Option<Vec<u64>> {
        self.values.iter().map(|value| number(value)).collect()
    }

    fn is_time(&self) -> bool {
        self.all(is_iso) || self.all(|value| value.parse::<f64>().is_ok())
    }

    fn all(&self, test: impl Fn(&str) -> bool) -> bool {
        !self.values.is_empty() && self.values.iter().all(|value| test(value))
    }

    /// Returns `true` if the values can have the role `role`.
    fn can_be(&self, role: Role) -> bool {
        match role {
            Role::Time => self.is_time(),
            Role::Offset | Role::Size => self.numbers().is_some_and(|numbers| !numbers.is_empty()),
            Role::Op => self.all(|value| value.len() <= 16),
            Role::Device => true,
        }
    }
}

/// Returns the whole number in `text`, decimal or with `0x` before it, or `None` if it is no such
/// number.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn is_iso(text: &str) -> bool {
    iso_time(Field { text: text.as_bytes(), start: 0 }).is_ok()
}

type Found<'a> = (Role, Column<'a>, Option<&'static str>);

/// Returns the columns that have a role, each with its unit. A name shows the role; if no name
/// does, the values show it.
pub(super) fn find(mut columns: Vec<Column<'_>>) -> Vec<Found<'_>> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for role in [Role::Op, Role::Time, Role::Offset, Role::Size, Role::Device] {
        let by_name = role.words().iter().find_map(|word| {
            columns.iter().position(|column| column.has(&[word]) && column.can_be(role))
        });
        if let Some(at) = by_name.or_else(|| by_values(role, &columns)) {
            found.push((role, columns.remove(at), None));
        }
    }
    let unit_of_offset = found.iter().find(|(role, ..)| *role == Role::Offset);
    let unit_of_offset = unit_of_offset.map(|(_, column, _)| length_unit(column, None));
    for (role, column, unit) in &mut found {
        *unit = match role {
            Role::Time => Some(time_unit(column)),
            Role::Offset => unit_of_offset,
            Role::Size => Some(length_unit(column, unit_of_offset)),
            Role::Op | Role::Device => None,
        };
    }
    let unit =
        |wanted| found.iter().find(|(role, ..)| *role == wanted).and_then(|(.., unit)| *unit);
    let doubtful = unit(Role::Offset) != Some("bytes") && unit(Role::Size) == Some("bytes");
    // the lengths are bytes, but the addresses are not multiples of 512. Such a column counts as
    // addresses only if its name says so, because it may hold response times
    if doubtful {
        found.retain(|(role, column, _)| *role != Role::Offset || !column.name.is_empty());
    }
    found
}

/// Returns the column whose values show the role, whatever its name. If a header names the columns,
/// values never show an address, and show a time only in ISO 8601.
fn by_values(role: Role, columns: &[Column<'_>]) -> Option<usize> {
    let named = columns.iter().any(|column| !column.name.is_empty());
    let most = |column: &Column<'_>| {
        column.numbers().and_then(|numbers| numbers.into_iter().max()).unwrap_or(0)
    };
    let numeric = |at: &usize| columns[*at].numbers().is_some_and(|numbers| !numbers.is_empty());
    match role {
        Role::Op => columns.iter().position(|column| {
            column.all(|value| operation(value).is_some() && value.parse::<f64>().is_err())
        }),
        Role::Time => columns.iter().position(|column| {
            let times: Option<Vec<f64>> = column.values.iter().map(|v| v.parse().ok()).collect();
            let rises = |times: Vec<f64>| {
                times.windows(2).all(|pair| pair[0] <= pair[1]) && times.first() < times.last()
            };
            column.all(is_iso) || (!named && times.is_some_and(rises))
        }),
        Role::Offset if named => None,
        Role::Offset => (0..columns.len()).filter(numeric).rev().max_by_key(|&i| most(&columns[i])),
        Role::Size => (0..columns.len()).filter(numeric).find(|&i| {
            let values: BTreeSet<_> = columns[i].values.iter().collect();
            (1..=1 << 26).contains(&most(&columns[i]))
                && (values.len() > 1 || most(&columns[i]) > 1)
        }),
        Role::Device => None,
    }
}

fn time_unit(column: &Column<'_>) -> &'static str {
    if column.all(is_iso) {
        return "iso";
    }
    let named = [
        ("ns", &["ns", "nsec", "nanoseconds"][..]),
        ("us", &["us", "usec", "microseconds"]),
        ("ms", &["ms", "msec", "milliseconds"]),
        ("s", &["s", "sec", "secs", "seconds"]),
    ];
    if let Some((unit, _)) = named.iter().find(|(_, words)| column.has(words)) {
        return unit;
    }
    if column.values.iter().any(|value| value.contains('.')) {
        return "s";
    }
    // seconds since 1970 have ten digits, and finer units have more
    match column.values.first().map_or(0, |value| value.len()) {
        10 => "s",
        13 => "ms",
        16 => "us",
        18 => "100ns",
        19 => "ns",
        _ => "us",
    }
}

fn length_unit(column: &Column<'_>, like: Option<&'static str>) -> &'static str {
    let named = [
        ("bytes", &["byte", "bytes", "nbytes", "b"][..]),
        ("sectors", &["sector", "sectors", "nsectors", "lba", "slba", "nlb"]),
        ("4KiB", &["lpn", "page", "pages", "block", "blocks", "nblocks", "blk"]),
    ];
    if let Some((unit, _)) = named.iter().find(|(_, words)| column.has(words)) {
        return unit;
    }
    let numbers = column.numbers().unwrap_or_default();
    let whole_sectors = numbers.iter().all(|number| number % 512 == 0);
    match like {
        _ if whole_sectors && numbers.iter().any(|&number| number > 0) => "bytes",
        Some(unit) if unit != "bytes" => unit,
        // a length may be an odd number of bytes, and then covers a part of a sector
        Some(_) => "bytes",
        None => "sectors",
    }
}

/// Returns the operation that a spelling looks like: `read`, `write`, `trim` or `flush`.
fn operation(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    match text.as_str() {
        "0" => Some("read"),
        "1" => Some("write"),
        _ if begins(&["r"]) => Some("read"),
        _ if begins(&["w"]) => Some("write"),
        _ if begins(&["d", "t", "unmap"]) => Some("trim"),
        _ if begins(&["f", "sync"]) => Some("flush"),
        _ => None,
    }
}

/// Returns further parameters of a column: unusual spellings, and lengths that count from zero.
pub(super) fn further(role: Role, column: &Column<'_>) -> Vec<String> {
    match role {
        Role::Op => ["read", "write", "trim", "flush"]
            .into_iter()
            .filter_map(|op| {
                let spelled: BTreeSet<&str> = column
                    .values
                    .iter()
                    .filter(|value| operation(value) == Some(op))
                    .copied()
                    .collect();
                let usual = |text: &&str| {
                    let small = text.to_ascii_lowercase();
                    let initial = small.len() == 1 && op.starts_with(&small);
                    let cased = small == op && (*text == op || *text == capital(op));
                    initial || cased || **text == op.to_ascii_uppercase()
                };
                (!spelled.iter().all(usual))
                    .then(|| format!("{op}={}", spelled.into_iter().collect::<Vec<_>>().join("/")))
            })
            .collect(),
        Role::Size if column.has(&["nlb"]) && column.values.contains(&"0") => {
            vec!["zero_based=true".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Returns `word` with its first letter in upper case.
fn capital(word: &str) -> String {
    word[..1].to_ascii_uppercase() + &word[1..]
}
