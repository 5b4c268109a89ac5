//! Log pages (Base 5.1.12).

use crate::bytes::Page;
use crate::durable::Durable;
use crate::errors::{ErrorLog, Refused, invalid};
use crate::features::Features;
use crate::support::{Kind, effects};
use crate::{Entry, Health, NamespaceId, Status, Vitals};
use flashatlas_device::smart::{
    SPARE_THRESHOLD, critical_warning, data_units, percentage_field, power_on_hours,
};
use flashatlas_types::plan::Cause;
use std::collections::BTreeSet;

/// Identifiers of the supported log pages.
pub mod id {
    #![allow(missing_docs)]
    pub const SUPPORTED: u8 = 0x00;
    pub const ERRORS: u8 = 0x01;
    pub const SMART: u8 = 0x02;
    pub const FIRMWARE: u8 = 0x03;
    pub const CHANGED: u8 = 0x04;
    pub const EFFECTS: u8 = 0x05;
    pub const FEATURES: u8 = 0x12;
    pub const MANAGEMENT: u8 = 0x13;
    pub const DISCOVERY: u8 = 0x70;
    pub const AMPLIFICATION: u8 = 0xC0;
}

/// Part of a log page that a command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    offset: u64,
    bytes: usize,
}

/// Log page that is made from the health of the media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HealthLog {
    pub log: u8,
    /// `true` if reading the page clears no event.
    pub retain: bool,
    part: Part,
}

impl HealthLog {
    /// Returns the part that was asked for.
    pub fn make(&self, durable: &Durable, features: &Features, health: &Health) -> Vec<u8> {
        let page = match self.log {
            id::SMART => smart(durable, features, health),
            _ => amplification(health),
        };
        self.part.of(page).unwrap_or_default()
    }
}

/// Bytes of the pages that are made from the health.
const SMART_BYTES: usize = 512;

impl Part {
    /// Returns the part of a page, with zeros beyond its end.
    fn of(self, mut page: Vec<u8>) -> Result<Vec<u8>, Refused> {
        if self.offset > page.len() as u64 {
            return Err(invalid(12, 0));
        }
        page.drain(..self.offset as usize);
        page.resize(self.bytes, 0);
        Ok(page)
    }
}

/// Returns the number of bytes that Get Log Page transfers.
pub(crate) fn bytes(entry: &Entry) -> u64 {
    let dwords = u64::from(entry.at(10) >> 16) | u64::from(entry.at(11) & 0xFFFF) << 16;
    (dwords + 1) * 4
}

/// Sources of the pages that need no media.
pub(crate) struct Logs<'a> {
    pub discovery: bool,
    pub errors: &'a ErrorLog,
    pub changed: &'a BTreeSet<NamespaceId>,
    pub firmware: &'a str,
    pub discovery_page: &'a dyn Fn() -> Vec<u8>,
}

/// Answer to Get Log Page.
pub(crate) enum Answer {
    Data(Vec<u8>),
    Health(HealthLog),
}

impl Logs<'_> {
    /// Answers Get Log Page for a supported log.
    pub fn answer(&self, entry: &Entry) -> Result<Answer, Refused> {
        let log = entry.at(10) as u8;
        if entry.at(14) >> 23 & 1 != 0 {
            return Err(invalid(14, 23)); // no index offsets
        }
        if entry.at(12) & 3 != 0 {
            return Err(invalid(12, 0));
        }
        if matches!(log, id::SUPPORTED | id::EFFECTS | id::FEATURES) && entry.at(14) >> 24 != 0 {
            return Err(Status::COMMAND_SET_NOT_SUPPORTED.at(14, 24));
        }
        let offset = u64::from(entry.at(12)) | u64::from(entry.at(13)) << 32;
        let part = Part { offset, bytes: bytes(entry) as usize };
        if log == id::SMART && !matches!(entry.nsid(), NamespaceId::NONE | NamespaceId::ALL) {
            return Err(invalid(1, 0));
        }
        if matches!(log, id::SMART | id::AMPLIFICATION) {
            if offset > SMART_BYTES as u64 {
                return Err(invalid(12, 0));
            }
            return Ok(Answer::Health(HealthLog {
                log,
                retain: entry.at(10) >> 15 & 1 != 0,
                part,
            }));
        }
        let page = match log {
            id::SUPPORTED => self.supported(),
            id::ERRORS => self.errors.page(),
            id::FIRMWARE => Page::new(512).u8(0, 1).ascii(8, 8, self.firmware).take(),
            id::CHANGED => self.changed(),
            id::EFFECTS => self.effects(),
            id::FEATURES => words(1024, 0, &effects(Kind::Feature, self.discovery)).take(),
            id::MANAGEMENT => vec![0; 4096],
            _ => (self.discovery_page)(),
        };
        part.of(page).map(Answer::Data)
    }

    fn supported(&self) -> Vec<u8> {
        words(1024, 0, &effects(Kind::Log, self.discovery)).take()
    }

    fn changed(&self) -> Vec<u8> {
        let mut page = Page::new(4096);
        for (at, nsid) in (0..4096).step_by(4).zip(self.changed) {
            page.u32(at, nsid.0);
        }
        page.take()
    }

    /// Returns Commands Supported and Effects (Base 5.1.12.1.6). In this page, the opcode of
    /// Fabrics commands is an admin opcode.
    fn effects(&self) -> Vec<u8> {
        let mut page = words(4096, 0, &effects(Kind::Admin, self.discovery));
        page.u32(usize::from(crate::command::fabrics::OPCODE) * 4, 1);
        let io = effects(Kind::Io, self.discovery);
        for (at, word) in (1024..).step_by(4).zip(io) {
            page.u32(at, word);
        }
        page.take()
    }
}

fn words(bytes: usize, from: usize, words: &[u32; 256]) -> Page {
    let mut page = Page::new(bytes);
    for (at, &word) in (from..).step_by(4).zip(words) {
        page.u32(at, word);
    }
    page
}

/// Returns the critical warnings of SMART (Base, Figure 206).
pub(crate) fn warnings(features: &Features, vitals: Vitals) -> u8 {
    let hot = vitals.kelvins >= features.over || vitals.kelvins <= features.under;
    critical_warning(vitals.available_spare, vitals.read_only) | u8::from(hot) << 1
}

/// Returns SMART / Health Information (Base 5.1.12.1.3).
fn smart(durable: &Durable, features: &Features, health: &Health) -> Vec<u8> {
    let totals = &durable.totals;
    let hours = power_on_hours(durable.powered_ms(health.powered));
    let used = totals.percentage_used.max(health.percentage_used);
    let mut page = Page::new(SMART_BYTES);
    page.u8(0, warnings(features, health.vitals()))
        .u16(1, health.kelvins)
        .u8(3, health.available_spare)
        .u8(4, SPARE_THRESHOLD)
        .u8(5, percentage_field(used))
        .u128(32, data_units(totals.units_read).into())
        .u128(48, data_units(totals.units_written).into())
        .u128(64, totals.reads.into())
        .u128(80, totals.writes.into())
        .u128(112, totals.power_cycles.into())
        .u128(128, hours.into())
        .u128(144, totals.unsafe_shutdowns.into())
        .u128(160, totals.media_errors.into())
        .u128(176, totals.errors.into());
    page.take()
}

/// Returns write amplification by cause, a vendor-specific page.
///
/// | Bytes | Content |
/// |---|---|
/// | 3:0 | version of the layout: 1 |
/// | 7:4 | number of causes |
/// | 15:8 | bytes that hosts have written |
/// | 23:16 | bytes that were programmed |
/// | 31:24 | write amplification in thousandths, rounded down; 0 if nothing was written |
/// | 39:32 | erased blocks |
/// | 63:40 | zeros |
/// | 64 + 8 n | bytes that were programmed for cause n, in the order of [`Cause::ALL`] |
fn amplification(health: &Health) -> Vec<u8> {
    let programmed: u128 = health.programmed.iter().map(|&bytes| u128::from(bytes)).sum();
    let thousandths = (programmed * 1000).checked_div(health.host_bytes.into()).unwrap_or(0);
    let most = u128::from(u64::MAX);
    let mut page = Page::new(SMART_BYTES);
    page.u32(0, 1)
        .u32(4, Cause::ALL.len() as u32)
        .u64(8, health.host_bytes)
        .u64(16, programmed.min(most) as u64)
        .u64(24, thousandths.min(most) as u64)
        .u64(32, health.erases);
    for (at, &bytes) in (64..).step_by(8).zip(&health.programmed) {
        page.u64(at, bytes);
    }
    page.take()
}

/// Returns the layout of the page of write amplification in Markdown, for the document.
pub fn amplification_markdown() -> String {
    let mut text = String::from(
        "| Bytes | Content |\n|---|---|\n\
         | 3:0 | version of the layout: 1 |\n\
         | 7:4 | number of causes |\n\
         | 15:8 | bytes that hosts have written |\n\
         | 23:16 | bytes that were programmed |\n\
         | 31:24 | write amplification in thousandths, rounded down; 0 if nothing was written |\n\
         | 39:32 | erased blocks |\n\
         | 63:40 | zeros |\n",
    );
    for (at, cause) in (64..).step_by(8).zip(Cause::ALL) {
        let name = cause.name();
        text += &format!("| {}:{at} | bytes that were programmed for `{name}` |\n", at + 7);
    }
    text
}
