//! Trace formats: one file each, listed in [`FORMATS`].
//!
//! To add one, write a file here with a `pub(super) const FORMAT: FormatDef` (see
//! [`crate::format`]), and add it to the list. A text format implements `LineFormat`, which
//! provides line handling, the places of errors, the account of bad records, and sniffing.

mod alibaba;
mod arc;
mod atlas;
mod blkparse;
mod blkreplay;
pub(crate) mod blktrace;
pub(crate) mod columns;
mod csv;
mod disksim;
mod events;
mod fiu;
mod ftrace;
pub mod iolog;
pub(crate) mod jsonl;
mod mqsim;
mod msr;
mod nexus5;
mod oraclegeneral;
mod pixel6a;
mod spc;
mod ssdsim;
mod systor17;
mod tencent;
mod vscsi;

use crate::format::FormatDef;
use flashatlas_types::{ConfigError, Param, Params, SECTOR_BYTES};

/// The terms of the SNIA IOTTA repository.
const SNIA_LICENCE: &str = "SNIA Trace Data Files Download License: cite the paper and the \
                            repository, and read the licence before you pass traces on.";

/// Every format.
pub const FORMATS: &[FormatDef] = &[
    alibaba::FORMAT,
    arc::FORMAT,
    atlas::FORMAT,
    blkparse::FORMAT,
    blkreplay::FORMAT,
    blktrace::FORMAT,
    columns::FORMAT,
    csv::FORMAT,
    disksim::FORMAT,
    events::FORMAT,
    fiu::FORMAT,
    ftrace::FORMAT,
    iolog::FORMAT,
    jsonl::FORMAT,
    mqsim::FORMAT,
    msr::FORMAT,
    nexus5::FORMAT,
    oraclegeneral::FORMAT,
    pixel6a::FORMAT,
    spc::FORMAT,
    ssdsim::FORMAT,
    systor17::FORMAT,
    tencent::FORMAT,
    vscsi::FORMAT,
];

/// Returns the parameter `param` of the format `name` in sectors. Its value is in bytes.
fn whole_sectors(params: &Params, name: &str, param: Param<u64>) -> Result<u64, ConfigError> {
    let (bytes, sector) = (params.get(param), u64::from(SECTOR_BYTES));
    if bytes % sector == 0 {
        return Ok(bytes / sector);
    }
    let why = format!("{bytes} bytes are not a whole number of sectors");
    Err(ConfigError::allowing(param.key(), why, "multiples of 512").at(name))
}
