//! The parts of log-block schemes.
//!
//! A log-block (hybrid) scheme stores most of the drive in *data blocks*. A data block stores one
//! logical block, with every page at its offset, so that a map of blocks is enough to find the
//! pages. Updates are written to a few *log blocks* in the order in which they arrive, and a small
//! map of pages finds them. When the log is full, the scheme selects one of its blocks, the
//! *victim*, and *reclaims* it. The logical blocks with valid pages in the victim are *associated*
//! with it. They are *merged*, and then the victim is erased. The schemes differ in the choice of
//! the log block for a page, and in the choice of the victim.
//!
//! | item | purpose |
//! |---|---|
//! | [`Core`] | block map, log map and association counts; in-place writes, trims, erases |
//! | [`Log`] | the metadata of one log block |
//! | `merge` | switch, partial, full and dead merges; moves of pages between log blocks |
//! | [`Area`] | log blocks for pages of one kind, filled one after another |
//! | [`Sequential`] | log blocks for sequential writes, by FAST's rule |
//! | [`Groups`] | log blocks for groups of neighbouring logical blocks |
//! | `mount` | rebuild of all these tables from the spare areas |
//! | [`Hybrid`] | the translation layer around a scheme |
//!
//! Only the simulator reads `Core::newest`. A real drive looks into its log map, then into its
//! block map.

mod area;
mod budget;
mod core;
mod ftl;
mod groups;
mod log;
pub(crate) mod mechanisms;
mod merge;
mod mount;
mod sequential;
mod settings;

pub(crate) use area::Area;
pub(crate) use core::{Core, HostPage, LogContext};
pub(crate) use ftl::{Hybrid, LogScheme};
pub(crate) use groups::{GROUP_BLOCKS, GROUP_LOG_BLOCKS, Groups, fits_groups};
pub(crate) use log::Log;
pub(crate) use mount::FoundLog;
pub(crate) use sequential::Sequential;
pub(crate) use settings::{IDLE, LogSettings, PARAMS, fits_budget, fits_parts, kept, share};

use crate::MountLimit;
use flashatlas_nand::OobRole;
use flashatlas_types::Layout;

/// Returns the maximum work of a mount of a log-block scheme.
pub(crate) fn mount_limit(layout: &Layout) -> MountLimit {
    MountLimit::of_merges(layout, layout.frames_per_block)
}

/// Roles of blocks in the spare areas; see `docs/FORMATS.md`.
pub(crate) const ROLE_DATA: OobRole = OobRole(0);
/// Log block for sequential writes: one logical block, pages at their offsets.
pub(crate) const ROLE_SEQUENTIAL: OobRole = OobRole(1);
/// Log block for random writes (FAST, FASTer, MAST's locality area).
pub(crate) const ROLE_RANDOM: OobRole = OobRole(2);
/// Log block for hot pages (LAST, MAST, Superblock).
pub(crate) const ROLE_HOT: OobRole = OobRole(3);
/// Log block for cold pages (LAST, MAST, Superblock, FASTer's isolation area).
pub(crate) const ROLE_COLD: OobRole = OobRole(4);
/// Log block of a group of logical blocks (BAST, SAST).
pub(crate) const ROLE_GROUP: OobRole = OobRole(5);
