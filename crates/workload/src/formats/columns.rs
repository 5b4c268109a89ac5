//! Delimited text by specification: `columns:time=0:us,op=1,offset=2:bytes,size=3:sectors`.

use crate::devices::Devices;
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::lines::{LineFormat, TextSource, head_lines};
use crate::raw::{Extent, ExtentError, Fault, Raw, Time};
use crate::text::{Field, extent_fault};
use flashatlas_types::quantity::quantity;
use flashatlas_types::{ConfigError, HostOp, Param, ParamDef, Params, SECTOR_BYTES, Text};
use std::io::BufRead;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "columns",
    summary: "delimited text by specification: \
              columns:time=0:us,op=1,offset=2:bytes,size=3:sectors",
    quirks: "Never recognised: it must be named, with its columns. A column is a number from 0 or, \
             if there is a header line, a name of it. Units follow a colon. Without `time` every \
             request is at time 0; without `op` it is a read unless an operation is assumed \
             (`assume_op`). Every text in the column `device` is a device. Quoted fields are not \
             known. Byte ranges are widened to the sectors that they touch.",
    source: "No one: it is for traces that have no format of their own here.",
    licence: "As the trace.",
    times: Presence::Sometimes,
    operations: Presence::Sometimes,
    params: &PARAMS,
    sniff: |_| Sniff::No,
    open,
    writer: None,
};

/// What a column is read for, and the parameter that says which column it is. The order is that of
/// [`Columns::wanted`].
const WANTED: [Param<Text>; 5] = [
    Param::text(
        "time",
        "COLUMN:UNIT of the time; units: ps, ns, 100ns, us, ms, s; decimals are read",
    )
    .or(""),
    Param::text("op", "COLUMN of the operation").or(""),
    Param::text(
        "offset",
        "COLUMN:UNIT of the address; units: bytes, sectors, or a size such as 4096 or 4KiB",
    ),
    Param::text("size", "COLUMN:UNIT of the length; units as for offset"),
    Param::text("device", "COLUMN of the device").or(""),
];
const TIME: usize = 0;
const OP: usize = 1;
const OFFSET: usize = 2;
const SIZE: usize = 3;
const DEVICE: usize = 4;

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

/// What stands for an operation.
const fn spelling(op: HostOp) -> Param<Text> {
    match op {
        HostOp::Read => Param::text("read", "what stands for a read, with / between spellings")
            .or("R/r/Read/read/READ"),
        HostOp::Write => {
            Param::text("write", "what stands for a write").or("W/w/Write/write/WRITE")
        }
        HostOp::Trim => Param::text("trim", "what stands for a trim")
            .or("D/d/T/t/Trim/trim/TRIM/Discard/discard"),
        HostOp::Flush => {
            Param::text("flush", "what stands for a flush, whose address and length are not read")
                .or("F/f/Flush/flush/FLUSH/sync")
        }
    }
}

const PARAMS: [ParamDef; 11] = [
    WANTED[TIME].def,
    WANTED[OP].def,
    WANTED[OFFSET].def,
    WANTED[SIZE].def,
    WANTED[DEVICE].def,
    DELIMITER.def,
    HEADER.def,
    spelling(HostOp::Read).def,
    spelling(HostOp::Write).def,
    spelling(HostOp::Trim).def,
    spelling(HostOp::Flush).def,
];

const TIME_UNITS: [(&str, u64); 6] = [
    ("ps", 1),
    ("ns", 1_000),
    ("100ns", 100_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];

/// The last column that may be named; lines may have more.
const LAST_COLUMN: usize = 1023;

struct Columns {
    /// Which column each of [`WANTED`] is in.
    wanted: [Option<usize>; WANTED.len()],
    time_ps: u64,
    offset_bytes: u64,
    size_bytes: u64,
    /// `None`: blanks.
    delimiter: Option<u8>,
    header: u64,
    spellings: Vec<(Vec<u8>, HostOp)>,
    /// The operation of traces without.
    assumed: HostOp,
    devices: Devices,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let format = Columns::of(start).map_err(|e| e.at(FORMAT.name))?;
    let (times, operations) = (format.wanted[TIME].is_some(), format.wanted[OP].is_some());
    Ok(Reader { source: TextSource::open(input, format, start.options), times, operations })
}

impl Columns {
    fn of(start: &Start<'_>) -> Result<Columns, ConfigError> {
        let params = start.params;
        let mut columns = Columns {
            wanted: [None; WANTED.len()],
            time_ps: 1,
            offset_bytes: 1,
            size_bytes: 1,
            delimiter: delimiter(params.get(DELIMITER))?,
            header: params.get(HEADER),
            spellings: spellings(params)?,
            assumed: start.options.assume_op.unwrap_or(HostOp::Read),
            devices: Devices::default(),
        };
        let names = columns.names(start.head);
        for (place, wanted) in WANTED.into_iter().enumerate() {
            let key = wanted.key();
            let (column, unit) = match (params.get(wanted), place) {
                ("", _) => continue,
                (text, OP | DEVICE) => (text, ""),
                (text, _) => with_unit(key, text)?,
            };
            columns.wanted[place] = Some(number_of(key, column, &names)?);
            match place {
                TIME => columns.time_ps = time_unit(unit)?,
                OFFSET => columns.offset_bytes = size_unit(key, unit)?,
                SIZE => columns.size_bytes = size_unit(key, unit)?,
                _ => {}
            }
        }
        Ok(columns)
    }

    /// The names of the columns, if there is a header line.
    fn names<'a>(&self, head: &'a [u8]) -> Vec<&'a [u8]> {
        let Some(last) = self.header.checked_sub(1) else { return Vec::new() };
        let mut lines = head_lines(head).filter(|line| !line.trim_ascii().is_empty());
        let line = lines.nth(last as usize).unwrap_or_default();
        let mut names = Vec::new();
        self.each_field(line, |_, field| names.push(field.text));
        names
    }

    /// Show each field of `line` with its column, up to [`LAST_COLUMN`].
    #[inline]
    fn each_field<'a>(&self, line: &'a [u8], mut show: impl FnMut(usize, Field<'a>)) {
        let fields = crate::text::fields(line, self.delimiter);
        fields.take(LAST_COLUMN + 1).enumerate().for_each(|(column, field)| show(column, field));
    }

    fn operation(&self, field: Field<'_>) -> Result<HostOp, Fault> {
        let spelled = self.spellings.iter().find(|(spelling, _)| spelling == field.text);
        spelled.map(|&(_, op)| op).ok_or_else(|| {
            field.fault(
                "an unknown operation",
                "one of the spellings of read, write, trim and flush",
            )
        })
    }

    fn extent(&self, op: HostOp, offset: Field<'_>, size: Field<'_>) -> Result<Extent, Fault> {
        let (at, len) = (offset.number("an offset")?, size.number("a size")?);
        let sector = u64::from(SECTOR_BYTES);
        let extent = if self.offset_bytes % sector == 0 && self.size_bytes % sector == 0 {
            // bytes of far addresses need more than 64 bits
            Extent::of_sectors(
                op,
                at.saturating_mul(self.offset_bytes / sector),
                len.saturating_mul(self.size_bytes / sector),
            )
        } else if let Some(byte) = at.checked_mul(self.offset_bytes) {
            Extent::of_bytes(op, byte, len.saturating_mul(self.size_bytes))
        } else {
            Err(ExtentError::TooFar)
        };
        extent.map_err(|e| extent_fault(e, offset, size))
    }
}

impl LineFormat for Columns {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        if self.header > 0 {
            self.header -= 1;
            return Ok(None);
        }
        let mut found = [None; WANTED.len()];
        self.each_field(line, |column, field| {
            for (place, wanted) in self.wanted.iter().enumerate() {
                if *wanted == Some(column) {
                    found[place] = Some(field);
                }
            }
        });
        if (0..WANTED.len()).any(|place| self.wanted[place].is_some() && found[place].is_none()) {
            return Err(Fault::whole("too few columns in", "every column of the specification"));
        }
        let op = found[OP].map_or(Ok(self.assumed), |field| self.operation(field))?;
        let time = found[TIME]
            .map_or(Ok(Time::whole(0)), |field| field.decimal_time(self.time_ps, "a time"))?;
        let extent = match (op, found[OFFSET], found[SIZE]) {
            (HostOp::Flush, ..) => Extent::NONE,
            (_, Some(offset), Some(size)) => self.extent(op, offset, size)?,
            _ => return Err(Fault::whole("too few columns in", "an offset and a size")),
        };
        let device = found[DEVICE].map_or(Ok(0), |field| self.devices.number(field))?;
        Ok(Some(Raw::plain(time, device, op, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
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

fn spellings(params: &Params) -> Result<Vec<(Vec<u8>, HostOp)>, ConfigError> {
    let given = |op: HostOp| Some(params.get(spelling(op))) != spelling(op).def.default;
    // what is spelled out goes before the defaults of the others
    let ops = HostOp::ALL
        .into_iter()
        .filter(|&op| given(op))
        .chain(HostOp::ALL.into_iter().filter(|&op| !given(op)));
    let mut all: Vec<(Vec<u8>, HostOp)> = Vec::new();
    for op in ops {
        let texts = params.get(spelling(op)).split('/').map(str::trim);
        for text in texts.filter(|text| !text.is_empty()) {
            match all.iter().find(|(other, _)| other == text.as_bytes()) {
                Some((_, other)) if given(op) => {
                    let why = format!("`{text}` already stands for a {}", other.name());
                    return Err(ConfigError::new(op.name(), why));
                }
                Some(_) => {}
                None => all.push((text.as_bytes().to_vec(), op)),
            }
        }
    }
    Ok(all)
}

/// A column and its unit.
fn with_unit<'a>(key: &str, text: &'a str) -> Result<(&'a str, &'a str), ConfigError> {
    text.rsplit_once(':').map(|(column, unit)| (column.trim(), unit.trim())).ok_or_else(|| {
        ConfigError::new(key, format!("`{text}` has no unit: write {key}=COLUMN:UNIT"))
    })
}

/// The number of a column that is given by number or name.
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

fn time_unit(unit: &str) -> Result<u64, ConfigError> {
    let names = TIME_UNITS.map(|(name, _)| name);
    let known = TIME_UNITS.iter().find(|(name, _)| *name == unit);
    known.map(|&(_, ps)| ps).ok_or_else(|| ConfigError::unknown("time", "unit", unit, &names))
}

fn size_unit(key: &str, unit: &str) -> Result<u64, ConfigError> {
    match unit {
        "bytes" => Ok(1),
        "sectors" => Ok(SECTOR_BYTES.into()),
        _ => match quantity(unit, false) {
            Ok(bytes) if (1..=1 << 30).contains(&bytes) => Ok(bytes),
            _ => Err(ConfigError::unknown(key, "unit", unit, &["bytes", "sectors", "1 to 1GiB"])),
        },
    }
}
