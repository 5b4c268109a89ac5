//! The text format `time device sector sectors op`. DiskSim, SSDsim and MQSim share it, but not its
//! unit of time.

use crate::devices::Devices;
use crate::format::{Alternative, Sniff};
use crate::lines::{LineFormat, head_lines, mostly};
use crate::raw::{Extent, Fault, Raw};
use crate::text::{extent_fault, split_blanks};
use flashatlas_types::{HostOp, SECTOR_BYTES};

pub(crate) const NS_PS: u64 = 1_000;
pub(crate) const MS_PS: u64 = 1_000_000_000;

const COLUMNS: &str = "5 columns: time device sector sectors op";

/// A reader of the text.
pub(crate) struct Ascii {
    /// Picoseconds in a unit of time.
    pub unit_ps: u64,
    /// Description of the time, for errors.
    pub time: &'static str,
    /// Bytes in a unit of size, a multiple of a sector.
    pub size_bytes: u64,
    pub devices: Devices,
}

impl Ascii {
    /// Returns a reader for times in nanoseconds and sizes in sectors.
    pub fn nanoseconds() -> Ascii {
        let devices = Devices::default();
        Ascii {
            unit_ps: NS_PS,
            time: "a time in nanoseconds",
            size_bytes: SECTOR_BYTES.into(),
            devices,
        }
    }

    /// Returns a reader for times in milliseconds and sizes in units of `size_bytes`.
    pub fn milliseconds(size_bytes: u64) -> Ascii {
        Ascii {
            unit_ps: MS_PS,
            time: "a time in milliseconds",
            size_bytes,
            devices: Devices::default(),
        }
    }
}

impl LineFormat for Ascii {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([time, device, sector, size, op], count) = split_blanks::<5>(line);
        if count != 5 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let kind = match op.text {
            b"0" => HostOp::Write,
            b"1" => HostOp::Read,
            _ => return Err(op.fault("an unknown operation", "0 (write) or 1 (read)")),
        };
        let time = time.decimal_time(self.unit_ps, self.time)?;
        device.number("the number of a device")?;
        let (first, units) = (sector.number("an address in sectors")?, size.number("a size")?);
        let sectors = units.saturating_mul(self.size_bytes / u64::from(SECTOR_BYTES));
        let extent =
            Extent::of_sectors(kind, first, sectors).map_err(|e| extent_fault(e, sector, size))?;
        Ok(Some(Raw::plain(time, self.devices.number(device)?, kind, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}

/// Spelling of the times in this text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Numbers with decimals.
    Decimal,
    /// Numbers with decimals, and tabs between the columns.
    DecimalTabs,
    /// Whole numbers.
    Whole,
}

/// Returns the spelling of the times in `head`, or `None` if `head` is not this text.
pub(crate) fn look(head: &[u8]) -> Option<Look> {
    if !mostly(head, Ascii::nanoseconds()) {
        return None;
    }
    let mut lines = head_lines(head);
    let decimal = lines.find(|line| split_blanks::<1>(line).0[0].text.contains(&b'.'));
    Some(match decimal {
        None => Look::Whole,
        Some(line) if line.contains(&b'\t') => Look::DecimalTabs,
        Some(_) => Look::Decimal,
    })
}

/// Returns `true` if every address and size in `head` is a multiple of 512, and so may count bytes.
pub(crate) fn may_be_bytes(head: &[u8]) -> bool {
    head_lines(head).filter(|line| !line.trim_ascii().is_empty()).all(|line| {
        let [_, _, address, size, _] = split_blanks::<5>(line).0;
        [address, size]
            .iter()
            .all(|field| field.number("").is_ok_and(|number| number % u64::from(SECTOR_BYTES) == 0))
    })
}

/// Returns [`Sniff::Perhaps`] if the times in `head` are whole numbers: they may count nanoseconds
/// or milliseconds.
pub(crate) fn sniff_nanoseconds(head: &[u8], readings: &'static [Alternative]) -> Sniff {
    if look(head) == Some(Look::Whole) { Sniff::Perhaps(readings) } else { Sniff::No }
}

/// Units that SSDsim and MQSim assume.
pub(crate) const NANOSECONDS: &str =
    "times are nanoseconds, addresses and sizes sectors of 512 bytes";
