//! BAST: block-associative sector translation. Each updated logical block has one log block of its
//! own.
//!
//! Kim, Kim, Noh, Min, Cho: *A space-efficient flash translation layer for CompactFlash systems*,
//! IEEE Transactions on Consumer Electronics 48:2, 2002 (reference 7 of papers/1). The scheme
//! follows the rules of [`Groups`] with one logical block and one log block in each group. A full
//! log block is merged when the next page of its logical block is written. If all log blocks are in
//! use, the least recently written log block is merged.

use super::{SchemeConfig, SchemeDef};
use crate::logblock::{Groups, Hybrid, IDLE, PARAMS, fits_groups, mechanisms};

pub const DEF: SchemeDef = SchemeDef {
    name: "bast",
    summary: "log blocks: one for each logical block that is updated",
    paper: "Kim et al., IEEE TCE 48:2 (2002)",
    params: &|_, _| Ok(PARAMS.iter().chain([&IDLE.def]).collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits_groups(params, layout, 1),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        Ok(Box::new(Hybrid::mount(params, cx, |settings, _| Groups::new(1, 1, settings))?))
    },
    on_flash: &[],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[&["ftl.log_blocks=2"], &["ftl.log_blocks=3", "nand.program_order=any"]],
    mechanisms: &[
        mechanisms::IN_PLACE,
        mechanisms::SWITCH,
        mechanisms::PARTIAL,
        mechanisms::FULL,
        mechanisms::IN_IDLE_TIME,
    ],
};
