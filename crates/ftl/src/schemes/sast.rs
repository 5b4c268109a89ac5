//! SAST: set-associative sector translation. N neighbouring logical blocks share up to K log
//! blocks.
//!
//! Park, Cheon, Kang, Roh, Cho, Kim: *A reconfigurable FTL (flash translation layer) architecture
//! for NAND flash-based applications*, ACM Transactions on Embedded Computing Systems 38, 2008
//! (reference 9 of papers/1). The scheme follows the rules of [`Groups`]. BAST is the case N = 1,
//! K = 1. If one group covers the whole drive and K is the number of log blocks, the scheme is FAST
//! without its sequential log block.

use super::{SchemeConfig, SchemeDef};
use crate::logblock::{
    GROUP_BLOCKS, GROUP_LOG_BLOCKS, Groups, Hybrid, IDLE, PARAMS, fits_groups, mechanisms,
};

pub const DEF: SchemeDef = SchemeDef {
    name: "sast",
    summary: "log blocks: up to K for each group of N logical blocks",
    paper: "Park et al., ACM TECS 38 (2008)",
    params: &|_, _| {
        Ok(PARAMS.iter().chain([&GROUP_BLOCKS.def, &GROUP_LOG_BLOCKS.def, &IDLE.def]).collect())
    },
    fits: &|&SchemeConfig { params, .. }, layout| {
        fits_groups(params, layout, params.get(GROUP_LOG_BLOCKS).into())
    },
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        let (n, k) = (params.get(GROUP_BLOCKS), params.get(GROUP_LOG_BLOCKS));
        Ok(Box::new(Hybrid::mount(params, cx, |settings, _| Groups::new(n, k, settings))?))
    },
    on_flash: &[],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[
        &["ftl.log_blocks=4"],
        &["ftl.log_blocks=5", "ftl.group_blocks=3", "nand.program_order=any"],
    ],
    mechanisms: &[
        mechanisms::IN_PLACE,
        mechanisms::SWITCH,
        mechanisms::PARTIAL,
        mechanisms::FULL,
        mechanisms::DEAD,
        mechanisms::IN_IDLE_TIME,
    ],
};
