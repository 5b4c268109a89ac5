//! Delimited text by specification: `columns:time=0:us,op=1,offset=2:bytes,size=3:sectors`.

use crate::described::{self, Described, Places, WANTED};
use crate::devices::Devices;
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::lines::{LineFormat, TextSource, head_lines};
use crate::raw::{Fault, Raw};
use crate::text::Field;
use flashatlas_types::params::concat;
use flashatlas_types::{ConfigError, Param, Text};
use std::io::BufRead;

pub(crate) const FORMAT: FormatDef = FormatDef {
    name: "columns",
    summary: "delimited text by specification: \
              columns:time=0:us,op=1,offset=2:bytes,size=3:sectors",
    quirks: "The format is never recognised: it must be named, with its columns. If no format \
             recognises a file, the error offers a guess at the columns. A column is a number from \
             0, or a name in the header line if there is a header line. Units follow a colon. \
             Without `time` every request is at time 0; without `op` it is a read unless an \
             operation is assumed (`assume_op`). Each distinct text in the column `device` is a \
             device. Quoted fields are not supported. Byte ranges are widened to the sectors that \
             they touch.",
    source: "None: this format is for traces that no other format reads.",
    licence: "As the trace.",
    times: Presence::Sometimes,
    operations: Presence::Sometimes,
    params: &concat::<13>(&[&described::PARAMS, &[DELIMITER.def, HEADER.def]]),
    sniff: |_| Sniff::No,
    open,
    writer: None,
};

const DELIMITER: Param<Text> = Param::text(
    "delimiter",
    "between columns: a sign such as `,`, `;` or `|`, tab, or space (any number of blanks)",
)
.or(",");

const HEADER: Param<u64> = Param::int(
    "header",
    0,
    1000,
    "lines at the start that hold no request; the last of them names the columns",
)
.or("0");

/// The last column that may be named; lines may have more.
const LAST_COLUMN: usize = 1023;

struct Columns {
    described: Described,
    /// Column of each of [`WANTED`].
    wanted: Places<usize>,
    /// Delimiter; `None` stands for blanks.
    delimiter: Option<u8>,
    header: u64,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let format = Columns::of(start).map_err(|e| e.at(FORMAT.name))?;
    let [time, op, ..] = format.wanted;
    Ok(Reader {
        source: TextSource::open(input, format, start.options),
        times: time.is_some(),
        operations: op.is_some(),
    })
}

impl Columns {
    fn of(start: &Start<'_>) -> Result<Columns, ConfigError> {
        let (described, places) = Described::of(start)?;
        let delimiter = delimiter(start.params.get(DELIMITER))?;
        let header = start.params.get(HEADER);
        let names = names(start.head, header, delimiter);
        let mut wanted = Places::default();
        for ((param, place), column) in WANTED.into_iter().zip(places).zip(&mut wanted) {
            *column = place.map(|text| number_of(param.key(), &text, &names)).transpose()?;
        }
        Ok(Columns { described, wanted, delimiter, header })
    }
}

impl LineFormat for Columns {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        if self.header > 0 {
            self.header -= 1;
            return Ok(None);
        }
        let mut found = Places::default();
        for (column, field) in columns(line, self.delimiter) {
            for (place, wanted) in found.iter_mut().zip(&self.wanted) {
                if *wanted == Some(column) {
                    *place = Some(field);
                }
            }
        }
        if self.wanted.iter().zip(&found).any(|(w, found)| w.is_some() && found.is_none()) {
            return Err(Fault::whole("too few columns in", "every column of the specification"));
        }
        self.described.raw(found).map(Some)
    }

    fn devices(&self) -> Option<&Devices> {
        Some(self.described.devices())
    }
}

/// Returns the columns of a line with their numbers, up to [`LAST_COLUMN`].
#[inline]
fn columns(line: &[u8], delimiter: Option<u8>) -> impl Iterator<Item = (usize, Field<'_>)> {
    crate::text::fields(line, delimiter).take(LAST_COLUMN + 1).enumerate()
}

/// Returns the names of the columns, and none if there is no header line.
fn names(head: &[u8], header: u64, delimiter: Option<u8>) -> Vec<&[u8]> {
    let Some(last) = header.checked_sub(1) else { return Vec::new() };
    let mut lines = head_lines(head).filter(|line| !line.trim_ascii().is_empty());
    let line = lines.nth(last as usize).unwrap_or_default();
    columns(line, delimiter).map(|(_, field)| field.text).collect()
}

fn delimiter(text: &str) -> Result<Option<u8>, ConfigError> {
    match text {
        "," | "" | "comma" => Ok(Some(b',')),
        ";" | "semicolon" => Ok(Some(b';')),
        "tab" => Ok(Some(b'\t')),
        "space" => Ok(None),
        _ if text.len() == 1 && text.bytes().all(|b| b.is_ascii_punctuation()) => {
            Ok(Some(text.as_bytes()[0]))
        }
        other => Err(ConfigError::unknown(
            "delimiter",
            "delimiter",
            other,
            &["tab", "space", "comma", "semicolon", "one sign"],
        )),
    }
}

/// Returns the number of a column that is given by number or by name.
fn number_of(key: &str, column: &str, names: &[&[u8]]) -> Result<usize, ConfigError> {
    if let Ok(number) = column.parse() {
        if number <= LAST_COLUMN {
            return Ok(number);
        }
        return Err(ConfigError::allowing(
            key,
            format!("there is no column {number}"),
            format!("0 to {LAST_COLUMN}"),
        ));
    }
    if names.is_empty() {
        let why = format!(
            "`{column}` is a name, and no line names the columns: write header=1, or a number"
        );
        return Err(ConfigError::new(key, why));
    }
    let known: Vec<String> =
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    known
        .iter()
        .position(|&name| name == column)
        .filter(|&number| number <= LAST_COLUMN)
        .ok_or_else(|| ConfigError::unknown(key, "column", column, &known))
}
