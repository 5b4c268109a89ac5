//! Parameters of the medium.

use crate::errors::params::PARAMS as ERRORS;
use flashatlas_types::params::concat;
use flashatlas_types::{Param, ParamDef, Text};

pub(crate) const PROGRAM_ORDER: Param<Text> = Param::choice(
    "nand.program_order",
    &["strict", "any"],
    "`strict`: the pages of a block are programmed in ascending order (skipped pages stay \
     unused); `any`: in any order (early SLC parts)",
)
.or("strict");

pub(crate) const ENDURANCE: Param<u32> = Param::int(
    "nand.endurance",
    1,
    u32::MAX as u64,
    "erases that a block survives; the next one fails and the block is bad",
)
.or("4294967295");

pub(crate) const SLC_WEAR: Param<f64> = Param::ratio(
    "nand.slc_wear",
    0.0,
    1.0,
    "wear of a block by a cycle in SLC mode, as a share of a native cycle (nand.endurance); in \
     steps of 0.001",
)
.or("1");

/// The parameter `nand.factory_bad`.
pub const FACTORY_BAD: Param<u32> = Param::int(
    "nand.factory_bad",
    0,
    500_000,
    "mean number of factory-bad blocks in a million, random in each plane; the n-th FTL block of a \
     lane uses the n-th good block of each plane",
)
.or("0");

pub(crate) const SPARE_BLOCKS: Param<u32> = Param::int(
    "nand.spare_blocks",
    0,
    1 << 16,
    "spare blocks of each lane, in addition to the drive's blocks; they take the place of blocks \
     in which a program or an erase fails; 0: a block that cannot be erased is lost, and a failed \
     program is an error",
)
.or("0");

/// The parameter `nand.data`.
pub const DATA: Param<Text> = Param::choice(
    "nand.data",
    &["none", "ram"],
    "`none`: a 32-bit content stamp stands for the bytes of a mapping unit; `ram`: the bytes and \
     the encoded spare area are kept",
)
.or("none");

/// The parameter `nvm.bytes`.
pub const NVM_BYTES: Param<u64> = Param::bytes(
    "nvm.bytes",
    0,
    1 << 32,
    "byte-addressable non-volatile memory beside the flash; 0: none",
)
.or("0");

/// The parameter `nand.plp_bytes`.
pub const PLP_BYTES: Param<u64> = Param::bytes(
    "nand.plp_bytes",
    0,
    1 << 40,
    "bytes of programs that the capacitors of the drive finish after the power fails (power-loss \
     protection): no program is then left half done, on any scheme; at least all the bytes that \
     the dies may be programming at the same time; 0: no protection",
)
.or("0");

const OWN: &[ParamDef] = &[
    PROGRAM_ORDER.def,
    ENDURANCE.def,
    SLC_WEAR.def,
    FACTORY_BAD.def,
    SPARE_BLOCKS.def,
    DATA.def,
    NVM_BYTES.def,
    PLP_BYTES.def,
];

/// Parameters of the medium.
pub const PARAMS: &[ParamDef] = &concat::<{ OWN.len() + ERRORS.len() }>(&[OWN, ERRORS]);
