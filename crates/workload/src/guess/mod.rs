//! Guess of the format of an unknown text trace: a specification for `columns` or `jsonl`, from the
//! names in its header and from its first values. An error offers the guess; no reader uses it by
//! itself.

mod roles;

use crate::described::WANTED;
use crate::format::Start;
use crate::formats::{columns, jsonl};
use crate::lines::head_lines;
use crate::settings;
use crate::source::ReadOptions;
use roles::{Column, Role};
use serde_json::{Map, Value};
use std::io::Cursor;

/// Maximum number of lines that are looked at.
const LINES: usize = 200;

/// Returns a specification that reads content beginning with `head`, or `None` if no specification
/// can be guessed.
pub(crate) fn guess(head: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(&head[..memchr::memrchr(b'\n', head).unwrap_or(head.len())]);
    text.ok()?;
    let lines: Vec<&str> = head_lines(head)
        .filter(|line| !line.trim_ascii().is_empty())
        .filter_map(|line| std::str::from_utf8(line).ok())
        .take(LINES)
        .collect();
    let spec = match lines.first()?.as_bytes().first()? {
        b'{' => of_json(&lines)?,
        // a document of JSON or XML is no table
        b'[' | b'<' => return None,
        _ => of_text(&lines)?,
    };
    reads(&spec, head).then_some(spec)
}

/// Returns `true` if `spec` can read more than half of the first records.
fn reads(spec: &str, head: &[u8]) -> bool {
    let (name, parameters) = settings::split_name(spec);
    let records = || {
        let format = if name == columns::FORMAT.name { &columns::FORMAT } else { &jsonl::FORMAT };
        let params = settings::parse(parameters, name, format.params).ok()?;
        let options = ReadOptions { skip_bad: LINES as u64, ..ReadOptions::default() };
        let start = Start { head, params: &params, options: &options };
        let content = Box::new(Cursor::new(head.to_vec()));
        let mut source = (format.open)(content, &start).ok()?.source;
        let mut good = 0;
        while good < LINES && source.next().ok()?.is_some() {
            good += 1;
        }
        Some((good, source.account().skipped_bad))
    };
    records().is_some_and(|(good, bad)| good as u64 > bad)
}

fn of_text(lines: &[&str]) -> Option<String> {
    let (name, delimiter) = delimiter(lines)?;
    let rows: Vec<Vec<&str>> = lines.iter().map(|line| fields(line, delimiter)).collect();
    let header = is_header(&rows);
    let body = &rows[usize::from(header)..];
    let columns = (0..rows[0].len())
        .map(|column| Column {
            place: match rows[0][column] {
                name if header && !name.is_empty() && !name.contains([',', '=']) => name.to_owned(),
                _ => column.to_string(),
            },
            name: if header { rows[0][column].to_owned() } else { String::new() },
            values: body.iter().filter_map(|row| row.get(column).copied()).collect(),
        })
        .collect();
    let mut spec = format!("columns:{}", described(columns)?);
    if name != "," {
        spec += &format!(",delimiter={name}");
    }
    if header {
        spec += ",header=1";
    }
    Some(spec)
}

fn of_json(lines: &[&str]) -> Option<String> {
    let objects: Vec<Map<String, Value>> =
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut keys = Vec::new();
    gather("", objects.first()?, &mut keys);
    let texts: Vec<Vec<String>> =
        keys.iter().map(|key| objects.iter().filter_map(|o| text_of(o, key)).collect()).collect();
    let columns = keys
        .iter()
        .zip(&texts)
        .map(|(key, values)| Column {
            place: key.clone(),
            name: key.clone(),
            values: values.iter().map(String::as_str).collect(),
        })
        .collect();
    Some(format!("jsonl:{}", described(columns)?))
}

/// Adds the keys of numbers and texts in an object to `keys`; a dot separates the keys of nested
/// objects.
fn gather(before: &str, object: &Map<String, Value>, keys: &mut Vec<String>) {
    for (key, value) in object {
        match value {
            Value::Object(inner) => gather(&format!("{before}{key}."), inner, keys),
            Value::Number(_) | Value::String(_) => keys.push(format!("{before}{key}")),
            _ => {}
        }
    }
}

fn text_of(object: &Map<String, Value>, key: &str) -> Option<String> {
    match key.split_once('.') {
        Some((outer, rest)) if !object.contains_key(key) => {
            text_of(object.get(outer)?.as_object()?, rest)
        }
        _ => match object.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        },
    }
}

/// Returns the parameters of [`crate::described`] for these columns, or `None` if no column holds
/// addresses.
fn described(columns: Vec<Column<'_>>) -> Option<String> {
    let found = roles::find(columns);
    let has = |role| found.iter().any(|(known, ..)| *known == role);
    if !has(Role::Offset) {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    for (role, param) in Role::ALL.into_iter().zip(WANTED) {
        match found.iter().find(|(known, ..)| *known == role) {
            Some((_, column, unit)) => parts.push(match unit {
                Some(unit) => format!("{}={}:{unit}", param.key(), column.place),
                None => format!("{}={}", param.key(), column.place),
            }),
            None if role == Role::Size => parts.push("size=each:4KiB".to_owned()),
            None => {}
        }
    }
    parts.extend(found.iter().flat_map(|(role, column, _)| roles::further(*role, column)));
    Some(parts.join(","))
}

/// Returns the name of the delimiter and its sign; `None` as the sign stands for blanks.
///
/// A sign qualifies if it splits the first line into at least two fields, and at least nine lines
/// in ten into the same number of fields. Of the signs that qualify, the sign that makes the most
/// fields is taken. If no sign qualifies, blanks are tried.
fn delimiter(lines: &[&str]) -> Option<(&'static str, Option<char>)> {
    let score = |delimiter: Option<char>| {
        let first = fields(lines[0], delimiter).len();
        let same = lines.iter().filter(|line| fields(line, delimiter).len() == first).count();
        (first >= 2 && 10 * same >= 9 * lines.len()).then_some(first)
    };
    let signs = [(",", ','), ("tab", '\t'), (";", ';'), ("|", '|')];
    let scored = signs.iter().filter_map(|&(name, sign)| Some((score(Some(sign))?, name, sign)));
    match scored.max_by_key(|(fields, ..)| *fields) {
        Some((_, name, sign)) => Some((name, Some(sign))),
        None => score(None).map(|_| ("space", None)),
    }
}

fn fields(line: &str, delimiter: Option<char>) -> Vec<&str> {
    match delimiter {
        Some(sign) => line.split(sign).map(str::trim).collect(),
        None => line.split_ascii_whitespace().collect(),
    }
}

/// Returns `true` if the first row names the columns: it has no number, and a row below has one.
fn is_header(rows: &[Vec<&str>]) -> bool {
    let numbers = |row: &[&str]| row.iter().filter(|field| roles::number(field).is_some()).count();
    numbers(&rows[0]) == 0 && rows.len() > 1 && rows[1..].iter().any(|row| numbers(row) > 0)
}
