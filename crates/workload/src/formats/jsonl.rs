//! JSON lines by specification: `jsonl:time=ts:us,op=op,offset=lba:sectors,size=len:bytes`.

use crate::described::{self, Described, Places};
use crate::devices::Devices;
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::lines::{LineFormat, TextSource};
use crate::raw::{Fault, Raw};
use crate::text::Field;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::io::BufRead;

pub(crate) const FORMAT: FormatDef = FormatDef {
    name: "jsonl",
    summary: "JSON objects, one a line, by specification: \
              jsonl:time=ts:us,op=op,offset=lba:sectors,size=len:bytes",
    quirks: "The format is never recognised: it must be named, with its keys. If no format \
             recognises a file, the error offers a guess at the keys. A place is a key; a dot \
             separates the keys of nested objects (`io.offset`). Numbers may stand in quotes; \
             texts with escapes are not supported. All other rules are the same as for `columns`.",
    source: "https://jsonlines.org",
    licence: "As the trace.",
    times: Presence::Sometimes,
    operations: Presence::Sometimes,
    params: &described::PARAMS,
    sniff: |_| Sniff::No,
    open,
    writer: None,
};

struct JsonLines {
    described: Described,
    keys: Places<String>,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let (described, keys) = Described::of(start).map_err(|e| e.at(FORMAT.name))?;
    let (times, operations) = (keys[0].is_some(), keys[1].is_some());
    let format = JsonLines { described, keys };
    Ok(Reader { source: TextSource::open(input, format, start.options), times, operations })
}

impl LineFormat for JsonLines {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let object = object(line, line)?;
        let mut found = Places::default();
        for (place, key) in found.iter_mut().zip(&self.keys) {
            *place = key.as_ref().map(|key| value(line, &object, key)).transpose()?;
        }
        self.described.raw(found).map(Some)
    }

    fn devices(&self) -> Option<&Devices> {
        Some(self.described.devices())
    }
}

type Object<'a> = FxHashMap<&'a str, &'a RawValue>;

/// Returns the object in `text`, a part of `line`.
fn object<'a>(line: &[u8], text: &'a [u8]) -> Result<Object<'a>, Fault> {
    serde_json::from_slice(text).map_err(|error| {
        let at = offset(line, text) + error.column().saturating_sub(1);
        Fault {
            why: "not a JSON object:".into(),
            expected: "a whole object on one line, with the keys of the specification",
            span: (at, usize::MAX),
            kind: None,
        }
    })
}

/// Returns the value of a key, which may name a value in nested objects.
fn value<'a>(line: &[u8], object: &Object<'a>, key: &str) -> Result<Field<'a>, Fault> {
    if let Some(value) = object.get(key) {
        return plain(line, value.get().as_bytes());
    }
    if let Some((outer, rest)) = key.split_once('.')
        && let Some(inner) = object.get(outer)
    {
        return value_within(line, inner, rest);
    }
    Err(Fault::whole("a key of the specification is missing in", "every key of the specification"))
}

fn value_within<'a>(line: &[u8], inner: &'a RawValue, rest: &str) -> Result<Field<'a>, Fault> {
    value(line, &self::object(line, inner.get().as_bytes())?, rest)
}

/// Returns the field of a number, or of a text without its quotes.
fn plain<'a>(line: &[u8], value: &'a [u8]) -> Result<Field<'a>, Fault> {
    let field = Field { text: value, start: offset(line, value) };
    match value {
        [b'"', text @ .., b'"'] if text.contains(&b'\\') => {
            Err(field.fault("a string with escapes:", "a string without escapes"))
        }
        [b'"', text @ .., b'"'] => Ok(Field { text, start: field.start + 1 }),
        _ => Ok(field),
    }
}

/// Returns the offset in `line` at which its part `text` begins.
fn offset(line: &[u8], text: &[u8]) -> usize {
    text.as_ptr() as usize - line.as_ptr() as usize
}
