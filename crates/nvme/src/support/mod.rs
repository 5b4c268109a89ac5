//! The only table of supported and refused commands, features, log pages and Identify data
//! structures.
//!
//! The dispatch, the effects logs, the capability bits of Identify Controller and `docs/NVME.md`
//! are made from this table.

mod commands;
mod pages;

use crate::Status;

/// Kind of a row. It gives the code its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Opcode of an admin command.
    Admin,
    /// Type of a Fabrics command.
    Fabrics,
    /// Opcode of an I/O command of the NVM Command Set.
    Io,
    /// Feature identifier (FID).
    Feature,
    /// Log page identifier (LID).
    Log,
    /// Data structure of Identify (CNS).
    Identify,
}

impl Kind {
    /// All kinds, in the order of the document.
    pub const ALL: [Kind; 6] =
        [Kind::Admin, Kind::Fabrics, Kind::Io, Kind::Feature, Kind::Log, Kind::Identify];

    /// Returns the heading of this kind's rows.
    pub const fn heading(self) -> &'static str {
        match self {
            Kind::Admin => "Admin commands (opcode)",
            Kind::Fabrics => "Fabrics commands (type)",
            Kind::Io => "I/O commands (opcode)",
            Kind::Feature => "Features (FID)",
            Kind::Log => "Log pages (LID)",
            Kind::Identify => "Identify data structures (CNS)",
        }
    }

    /// Returns the status of a command with an unsupported code (Base 4.2.3.1, 4.4, 5.1.12,
    /// 5.1.13.1).
    pub const fn refusal(self) -> Status {
        match self {
            Kind::Admin | Kind::Io => Status::INVALID_OPCODE,
            Kind::Fabrics | Kind::Feature | Kind::Identify => Status::INVALID_FIELD,
            Kind::Log => Status::INVALID_LOG_PAGE,
        }
    }
}

/// Controllers that answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// No controller.
    None,
    /// I/O controllers.
    Io,
    /// Discovery controllers.
    Discovery,
    /// Controllers of both types.
    Both,
}

/// Capability field of Identify Controller that has a bit for a row (Base 5.1.13.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Optional NVM Command Support.
    Oncs,
    /// Log Page Attributes.
    Lpa,
    /// Optional Fabrics Commands Support.
    Ofcs,
}

/// Row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Code of the row.
    pub code: u8,
    /// Name in the specification.
    pub name: &'static str,
    /// Section of the specification: Base 2.1, or NVM Command Set 1.1.
    pub section: &'static str,
    /// Controllers that answer.
    pub by: By,
    /// Reason of a refusal, or extent of the support.
    pub why: &'static str,
    /// Bits of the logs of effects, besides the bit of a supported code (Base 5.1.12.1.6).
    pub effects: u32,
    /// Bit of a capability field.
    pub capability: Option<(Field, u8)>,
}

impl Row {
    /// Returns `true` if a controller of this type answers.
    pub const fn there(&self, discovery: bool) -> bool {
        match self.by {
            By::None => false,
            By::Io => !discovery,
            By::Discovery => discovery,
            By::Both => true,
        }
    }

    const fn effects(self, effects: u32) -> Row {
        Row { effects, ..self }
    }

    const fn bit(self, field: Field, bit: u8) -> Row {
        Row { capability: Some((field, bit)), ..self }
    }
}

/// The command may change user data.
const CONTENT: u32 = 1 << 1;
/// Scope of commands and features: a namespace.
const NAMESPACE: u32 = 1 << 20;
/// Scope of commands and features: the controller.
const CONTROLLER: u32 = 1 << 21;

const fn yes(code: u8, name: &'static str, section: &'static str, why: &'static str) -> Row {
    Row { code, name, section, why, by: By::Io, effects: 0, capability: None }
}

const fn both(code: u8, name: &'static str, section: &'static str, why: &'static str) -> Row {
    Row { by: By::Both, ..yes(code, name, section, why) }
}

const fn discovery(code: u8, name: &'static str, section: &'static str, why: &'static str) -> Row {
    Row { by: By::Discovery, ..yes(code, name, section, why) }
}

const fn no(code: u8, name: &'static str, section: &'static str, why: &'static str) -> Row {
    Row { by: By::None, ..yes(code, name, section, why) }
}

/// Returns the rows of a kind, by code.
pub fn rows(kind: Kind) -> &'static [Row] {
    match kind {
        Kind::Admin => commands::ADMIN,
        Kind::Fabrics => commands::FABRICS,
        Kind::Io => commands::IO,
        Kind::Feature => pages::FEATURES,
        Kind::Log => pages::LOGS,
        Kind::Identify => pages::IDENTIFY,
    }
}

/// Checks that a controller of this type answers to a code.
///
/// # Errors
/// Returns the status of [`Kind::refusal`] if it does not.
pub fn check(kind: Kind, code: u8, discovery: bool) -> Result<(), Status> {
    let found = rows(kind).iter().any(|row| row.code == code && row.there(discovery));
    if found { Ok(()) } else { Err(kind.refusal()) }
}

/// Returns a capability field, made of the rows that have a bit in it.
pub fn capabilities(field: Field, discovery: bool) -> u16 {
    Kind::ALL
        .iter()
        .flat_map(|&kind| rows(kind))
        .filter(|row| row.there(discovery))
        .filter_map(|row| row.capability)
        .filter(|&(of, _)| of == field)
        .fold(0, |bits, (_, bit)| bits | 1 << bit)
}

/// Returns the effects of each code of this kind: bit 0 is set if the code is supported.
pub fn effects(kind: Kind, discovery: bool) -> [u32; 256] {
    let mut effects = [0; 256];
    for row in rows(kind).iter().filter(|row| row.there(discovery)) {
        effects[usize::from(row.code)] = row.effects | 1;
    }
    effects
}

/// Returns the table in Markdown, with a heading for each kind.
pub fn markdown() -> String {
    let mut text = String::new();
    for kind in Kind::ALL {
        let heading = kind.heading();
        text += &format!("### {heading}\n\n| Code | Name | There | Note | Section |\n");
        text += "|---|---|---|---|---|\n";
        for row in rows(kind) {
            let there = match row.by {
                By::None => "no",
                By::Io => "yes",
                By::Discovery => "discovery controllers",
                By::Both => "yes, discovery controllers too",
            };
            text += &format!(
                "| {:02X}h | {} | {there} | {} | {} |\n",
                row.code, row.name, row.why, row.section
            );
        }
        text.push('\n');
    }
    text
}
