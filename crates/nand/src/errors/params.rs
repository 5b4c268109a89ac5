//! Parameters of bit errors, their correction, and failures at random.

use super::codes::CODES;
use super::models::MODELS;
use flashatlas_types::{Dur, Param, ParamDef, Text};

pub(super) const MODEL: Param<Text> = Param::name(
    "errors.model",
    || std::iter::once("none").chain(MODELS.iter().map(|m| m.name)).collect(),
    "raw bit error rate of the flash: e + a c^k + b c^m t^n + g c^p r^q after c cycles, time t and \
     r reads of each page of the block (form: Kim, Choi and Min, FAST 2019); `none`: no bit is \
     ever wrong; see `flashatlas explain errors`",
)
.or("none");

pub(super) const TIME_UNIT: Param<Text> = Param::choice(
    "errors.time_unit",
    &["day", "hour"],
    "unit of t. ASSUMED: the published numbers of tlc-72l do not settle it; by the hour, a year \
     would end data that client drives must keep (JESD218)",
)
.or("day");

/// Declares a number of the formula; -1 stands for the number of the model.
const fn number(key: &'static str, doc: &'static str) -> Param<f64> {
    Param::ratio(key, -1.0, 1000.0, doc).or("-1")
}

pub(super) const BASE: Param<f64> = number("errors.e", "e of the formula; -1: as errors.model");
pub(super) const WEAR: [Param<f64>; 2] = [
    number("errors.a", "a of the formula, by which cycles count; -1: as errors.model"),
    number("errors.k", "k of the formula; -1: as errors.model"),
];
pub(super) const RETENTION: [Param<f64>; 3] = [
    number("errors.b", "b of the formula, by which time counts; -1: as errors.model"),
    number("errors.m", "m of the formula; -1: as errors.model"),
    number("errors.n", "n of the formula; -1: as errors.model"),
];
pub(super) const DISTURB: [Param<f64>; 3] = [
    number("errors.g", "g of the formula, by which reads count; -1: as errors.model"),
    number("errors.p", "p of the formula; -1: as errors.model"),
    number("errors.q", "q of the formula; -1: as errors.model"),
];

pub(super) const BLOCK_SPREAD: Param<f64> = Param::ratio(
    "errors.block_spread",
    0.0,
    0.99,
    "the rate of each block is multiplied by a number from 1 - spread to 1 + spread, which the \
     seed draws (uniform). ASSUMED",
)
.or("0.2");

pub(super) const PAGE_SPREAD: Param<f64> = Param::ratio(
    "errors.page_spread",
    1.0,
    100.0,
    "rate of the last kind of page of a word line, as a multiple of the first; kinds between lie \
     on a line. 1: all alike",
)
.or("1");

pub(super) const LAYER_SPREAD: Param<f64> = Param::ratio(
    "errors.layer_spread",
    1.0,
    100.0,
    "rate of the last word line of a block, as a multiple of the first; word lines between lie on \
     a line. 1: all alike",
)
.or("1");

pub(super) const SLC_FACTOR: Param<f64> = Param::ratio(
    "errors.slc_factor",
    0.0,
    1.0,
    "rate of a page in SLC mode, as a share of the rate of a lower page on the same word line of a \
     native block with the same wear, age and reads. ASSUMED: one order of magnitude",
)
.or("0.1");

pub(super) const CYCLES: Param<u32> = Param::int(
    "errors.cycles",
    0,
    1 << 20,
    "program and erase cycles that every block had before the drive's own; they count in errors, \
     not in nand.endurance",
)
.or("0");

pub(super) const REST_DAYS: Param<u32> = Param::int(
    "errors.rest_days",
    0,
    36_500,
    "days for which the drive is switched off after it was preconditioned and before it is \
     switched on",
)
.or("0");

pub(super) const CODE: Param<Text> = Param::name(
    "ecc.code",
    || CODES.iter().map(|c| c.name).collect(),
    "error-correcting code, which sets each ecc.* key that is 0",
)
.or("ldpc-soft");

pub(super) const CODEWORD: Param<u32> = Param::bytes(
    "ecc.codeword",
    0,
    1 << 16,
    "data bytes of a codeword; must divide drive.page_bytes; 0: as ecc.code",
)
.or("0");

pub(super) const CORRECTABLE: Param<u32> = Param::int(
    "ecc.correctable",
    0,
    1 << 16,
    "wrong bits of a codeword that are corrected; 0: as ecc.code",
)
.or("0");

pub(super) const DECODE: Param<Dur> =
    Param::time("ecc.decode", "time to decode a read; 0: as ecc.code").or("0");

pub(super) const SOFT_CORRECTABLE: Param<u32> = Param::int(
    "ecc.soft_correctable",
    0,
    1 << 16,
    "wrong bits of a codeword that soft decoding corrects after the last retry; 0: as ecc.code",
)
.or("0");

pub(super) const SOFT_READS: Param<u32> = Param::int(
    "ecc.soft_reads",
    0,
    64,
    "reads of the page for soft decoding, in addition to the reads of retries; 0: as ecc.code",
)
.or("0");

pub(super) const SOFT_DECODE: Param<Dur> =
    Param::time("ecc.soft_decode", "time of soft decoding; 0: as ecc.code").or("0");

pub(super) const RETRY_STEPS: Param<u32> = Param::int(
    "ecc.retry_steps",
    0,
    super::STEPS_MAX as u64,
    "further reads with shifted voltages after a read with too many wrong bits; each occupies die \
     and bus again. ASSUMED",
)
.or("8");

pub(super) const RETRY_GAIN: Param<f64> = Param::ratio(
    "ecc.retry_gain",
    0.0,
    1.0,
    "each retry multiplies the part of the rate that time and reads cause by this. ASSUMED",
)
.or("0.7");

pub(super) const RETRY_OVERLAP: Param<bool> = Param::flag(
    "ecc.retry_overlap",
    "a retry is sensed while the read before it is transferred and decoded (pipelined read-retry, \
     Park et al., ASPLOS 2021); needs timing.cache_read",
)
.or("false");

/// The parameter `ecc.parity`.
pub const PARITY: Param<Text> = Param::choice(
    "ecc.parity",
    &["none", "die"],
    "`die`: one die of each frame holds the XOR of the others, and a page that nothing else \
     corrects is rebuilt from them (RAIN); needs frames over at least 3 dies (drive.frame_*)",
)
.or("none");

pub(super) const PARITY_TIME: Param<Dur> = Param::time(
    "ecc.parity_time",
    "time to rebuild a page, after all pages of its stripe are read. ASSUMED: 0, the XOR runs \
     beside the transfers",
)
.or("0");

/// Declares a number of failures in a million operations.
const fn rate(key: &'static str, doc: &'static str) -> Param<u32> {
    Param::int(key, 0, 1_000_000, doc).or("0")
}

pub(super) const PROGRAM_FAILURES: Param<u32> =
    rate("errors.program_failures", "programs of a million that fail, at random");

pub(super) const ERASE_FAILURES: Param<u32> =
    rate("errors.erase_failures", "erases of a million that fail, at random");

pub(super) const UNREADABLE: Param<u32> = rate(
    "errors.unreadable",
    "reads of a million that make the page permanently unreadable, at random and in addition to \
     errors.model",
);

/// Parameters of bit errors, their correction, and failures at random.
pub const PARAMS: &[ParamDef] = &[
    MODEL.def,
    TIME_UNIT.def,
    BASE.def,
    WEAR[0].def,
    WEAR[1].def,
    RETENTION[0].def,
    RETENTION[1].def,
    RETENTION[2].def,
    DISTURB[0].def,
    DISTURB[1].def,
    DISTURB[2].def,
    BLOCK_SPREAD.def,
    PAGE_SPREAD.def,
    LAYER_SPREAD.def,
    SLC_FACTOR.def,
    CYCLES.def,
    REST_DAYS.def,
    PROGRAM_FAILURES.def,
    ERASE_FAILURES.def,
    UNREADABLE.def,
    CODE.def,
    CODEWORD.def,
    CORRECTABLE.def,
    DECODE.def,
    SOFT_CORRECTABLE.def,
    SOFT_READS.def,
    SOFT_DECODE.def,
    RETRY_STEPS.def,
    RETRY_GAIN.def,
    RETRY_OVERLAP.def,
    PARITY.def,
    PARITY_TIME.def,
];
