//! Records that a specification describes: the place, the unit and the spelling of each field.
//!
//! The format splits a record into places: columns of a line, or keys of an object.

use crate::devices::Devices;
use crate::format::Start;
use crate::raw::{Extent, ExtentError, Fault, Raw, SECOND_PS, Time};
use crate::text::{Field, extent_fault};
use flashatlas_types::quantity::quantity;
use flashatlas_types::{ConfigError, HostOp, Param, ParamDef, Params, SECTOR_BYTES, Text};
use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};

/// Parameters for the places of a record, in the order of [`Places`].
pub(crate) const WANTED: [Param<Text>; 5] = [
    Param::text(
        "time",
        "PLACE:UNIT of the time; units: ps, ns, 100ns, us, ms, s (with decimals), or iso (ISO \
         8601; UTC if no zone is given)",
    )
    .or(""),
    Param::text("op", "PLACE of the operation").or(""),
    Param::text(
        "offset",
        "PLACE:UNIT of the address; units: bytes, sectors, or a size such as 4096 or 4KiB",
    ),
    Param::text(
        "size",
        "PLACE:UNIT of the length, with the units of offset; `each:4KiB`: every request has this \
         size",
    ),
    Param::text("device", "PLACE of the device").or(""),
];
const TIME: usize = 0;
const OP: usize = 1;
const OFFSET: usize = 2;
const SIZE: usize = 3;
const DEVICE: usize = 4;

/// Word that replaces the place if every request has the same size: `each:4KiB`.
const EACH: &str = "each";

const HEX: Param<bool> = Param::flag(
    "hex",
    "true: addresses and lengths are hexadecimal; numbers that begin with `0x` are always \
     hexadecimal",
)
.or("false");

const ZERO_BASED: Param<bool> =
    Param::flag("zero_based", "true: a length of 0 means one unit, as in NVMe commands")
        .or("false");

/// Returns the parameter with the spellings of an operation.
const fn spelling(op: HostOp) -> Param<Text> {
    match op {
        HostOp::Read => {
            Param::text("read", "spellings of a read, separated by `/`").or("R/r/Read/read/READ")
        }
        HostOp::Write => Param::text("write", "spellings of a write, separated by `/`")
            .or("W/w/Write/write/WRITE"),
        HostOp::Trim => Param::text("trim", "spellings of a trim, separated by `/`")
            .or("D/d/T/t/Trim/trim/TRIM/Discard/discard"),
        HostOp::Flush => Param::text(
            "flush",
            "spellings of a flush, separated by `/`; the address and the length of a flush are not \
             read",
        )
        .or("F/f/Flush/flush/FLUSH/sync"),
    }
}

/// The parameters that every described format has.
pub(crate) const PARAMS: [ParamDef; 11] = [
    WANTED[TIME].def,
    WANTED[OP].def,
    WANTED[OFFSET].def,
    WANTED[SIZE].def,
    WANTED[DEVICE].def,
    HEX.def,
    ZERO_BASED.def,
    spelling(HostOp::Read).def,
    spelling(HostOp::Write).def,
    spelling(HostOp::Trim).def,
    spelling(HostOp::Flush).def,
];

const TIME_UNITS: [(&str, TimeUnit); 7] = [
    ("ps", TimeUnit::Of(1)),
    ("ns", TimeUnit::Of(1_000)),
    ("100ns", TimeUnit::Of(100_000)),
    ("us", TimeUnit::Of(1_000_000)),
    ("ms", TimeUnit::Of(1_000_000_000)),
    ("s", TimeUnit::Of(SECOND_PS)),
    ("iso", TimeUnit::Iso),
];

#[derive(Clone, Copy)]
enum TimeUnit {
    /// Picoseconds.
    Of(u64),
    Iso,
}

/// A value for each of [`WANTED`]; `None` if no place is named for it.
pub(crate) type Places<T> = [Option<T>; WANTED.len()];

/// Reader of the places of a record.
pub(crate) struct Described {
    time: TimeUnit,
    offset_bytes: u64,
    size_bytes: u64,
    /// `true` if every request has `size_bytes`.
    each: bool,
    hex: bool,
    zero_based: bool,
    spellings: Vec<(Vec<u8>, HostOp)>,
    /// Operation of every record, if the trace names none.
    assumed: HostOp,
    devices: Devices,
}

impl Described {
    /// Returns the reader that the parameters describe, and the places that they name.
    pub fn of(start: &Start<'_>) -> Result<(Described, Places<String>), ConfigError> {
        let params = start.params;
        let mut described = Described {
            time: TimeUnit::Of(1),
            offset_bytes: 1,
            size_bytes: 1,
            each: false,
            hex: params.get(HEX),
            zero_based: params.get(ZERO_BASED),
            spellings: spellings(params)?,
            assumed: start.options.assume_op.unwrap_or(HostOp::Read),
            devices: Devices::default(),
        };
        let mut places = Places::default();
        for (wanted, (param, named)) in WANTED.into_iter().zip(&mut places).enumerate() {
            let key = param.key();
            let (place, unit) = match (params.get(param), wanted) {
                ("", _) => continue,
                (text, OP | DEVICE) => (text, ""),
                (text, _) => with_unit(key, text)?,
            };
            match wanted {
                TIME => described.time = time_unit(unit)?,
                OFFSET => described.offset_bytes = size_unit(key, unit)?,
                SIZE => described.size_bytes = size_unit(key, unit)?,
                _ => {}
            }
            described.each |= wanted == SIZE && place == EACH;
            if wanted != SIZE || place != EACH {
                *named = Some(place.to_owned());
            }
        }
        Ok((described, places))
    }

    /// Returns the record with the fields `found`, one for each place that the parameters name.
    pub fn raw(&mut self, found: Places<Field<'_>>) -> Result<Raw, Fault> {
        let op = found[OP].map_or(Ok(self.assumed), |field| self.operation(field))?;
        let time = found[TIME].map_or(Ok(Time::whole(0)), |field| self.time(field))?;
        let extent = match found[OFFSET] {
            Some(offset) if op != HostOp::Flush => self.extent(op, offset, found[SIZE])?,
            _ => Extent::NONE,
        };
        let device = found[DEVICE].map_or(Ok(0), |field| self.devices.number(field))?;
        Ok(Raw::plain(time, device, op, extent))
    }

    pub fn devices(&self) -> &Devices {
        &self.devices
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

    fn time(&self, field: Field<'_>) -> Result<Time, Fault> {
        match self.time {
            TimeUnit::Of(unit_ps) => field.decimal_time(unit_ps, "a time"),
            TimeUnit::Iso => iso_time(field),
        }
    }

    fn extent(
        &self,
        op: HostOp,
        offset: Field<'_>,
        size: Option<Field<'_>>,
    ) -> Result<Extent, Fault> {
        let number = |field: Field<'_>, expected| field.number_in(self.hex, expected);
        let at = number(offset, "an offset")?;
        let units = size.map_or(Ok(1), |field| number(field, "a size"))?;
        let units = if self.zero_based && !self.each { units.saturating_add(1) } else { units };
        let sector = u64::from(SECTOR_BYTES);
        let extent = if self.offset_bytes % sector == 0 && self.size_bytes % sector == 0 {
            // a far address in bytes may need more than 64 bits
            Extent::of_sectors(
                op,
                at.saturating_mul(self.offset_bytes / sector),
                units.saturating_mul(self.size_bytes / sector),
            )
        } else if let Some(byte) = at.checked_mul(self.offset_bytes) {
            Extent::of_bytes(op, byte, units.saturating_mul(self.size_bytes))
        } else {
            Err(ExtentError::TooFar)
        };
        extent.map_err(|e| extent_fault(e, offset, size.unwrap_or(offset)))
    }
}

/// Returns the time of a text in ISO 8601, counted from 1970; UTC if the text names no zone.
pub(crate) fn iso_time(field: Field<'_>) -> Result<Time, Fault> {
    let parsed = std::str::from_utf8(field.text).ok().and_then(|text| {
        // a time zone is `Z` or an offset after the time; the search skips the date, which contains
        // `-`
        let zoned = text.bytes().skip("2026-01-01".len()).any(|b| b"Zz+-".contains(&b));
        if zoned {
            text.parse::<Timestamp>().ok()
        } else {
            let local = text.parse::<DateTime>().ok()?;
            TimeZone::UTC.to_timestamp(local).ok()
        }
    });
    let ns = parsed.and_then(|time| u128::try_from(time.as_nanosecond()).ok());
    let ns = ns.ok_or_else(|| {
        field.fault("not an ISO 8601 time since 1970:", "a time such as 2026-01-31T12:00:00.25Z")
    })?;
    Ok(Time { ps: ns * 1_000, span: (field.start, field.start + field.text.len()) })
}

fn spellings(params: &Params) -> Result<Vec<(Vec<u8>, HostOp)>, ConfigError> {
    let given = |op: HostOp| Some(params.get(spelling(op))) != spelling(op).def.default;
    // given spellings take precedence over the default spellings of other operations
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
                    let why = format!("`{text}` is already a spelling of a {}", other.name());
                    return Err(ConfigError::new(op.name(), why));
                }
                Some(_) => {}
                None => all.push((text.as_bytes().to_vec(), op)),
            }
        }
    }
    Ok(all)
}

/// Splits `text` into a place and its unit.
fn with_unit<'a>(key: &str, text: &'a str) -> Result<(&'a str, &'a str), ConfigError> {
    text.rsplit_once(':').map(|(place, unit)| (place.trim(), unit.trim())).ok_or_else(|| {
        ConfigError::new(key, format!("`{text}` has no unit: write {key}=PLACE:UNIT"))
    })
}

fn time_unit(unit: &str) -> Result<TimeUnit, ConfigError> {
    let names = TIME_UNITS.map(|(name, _)| name);
    let known = TIME_UNITS.iter().find(|(name, _)| *name == unit);
    known.map(|&(_, unit)| unit).ok_or_else(|| ConfigError::unknown("time", "unit", unit, &names))
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
