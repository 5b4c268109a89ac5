//! The parameters of programs in several steps, and what they combine with.

use crate::classifiers::{CLASSIFIER, Streams};
use crate::pool::GC_PACE;
use flashatlas_nand::ErrorRules;
use flashatlas_nand::params::PLP_BYTES;
use flashatlas_types::flash_times::T_PROGRAM_STEPS;
use flashatlas_types::{ConfigError, Dur, Layout, Param, Params, ProgramUnit, Text};

/// The parameter `ftl.program_steps`.
pub const PROGRAM_STEPS: Param<u32> = Param::int(
    "ftl.program_steps",
    1,
    3,
    "steps in which a word line of a native block is programmed (2: foggy and fine, 3: 2-8-16): \
     every step transfers all of its pages; the first step of the next word line comes before the \
     last step of a word line, which cannot be read until then",
)
.or("1");

/// The parameter `ftl.flush`.
pub const FLUSH: Param<Text> = Param::choice(
    "ftl.flush",
    &["pad", "plp", "slc"],
    "ftl.program_steps, FLUSH and FUA with word lines between their steps: `pad`: word lines \
     without data are programmed until the last step of each is done; `plp`: they rest on \
     nand.plp_bytes; `slc`: their units are copied to blocks in SLC mode (of ftl.slc, or \
     ftl.flush_blocks)",
)
.or("pad");

/// The parameter `ftl.flush_blocks`.
pub(super) const FLUSH_BLOCKS: Param<u32> = Param::int(
    "ftl.flush_blocks",
    0,
    1 << 20,
    "ftl.flush = slc without an SLC cache: blocks of each lane that are always in SLC mode, for \
     the copies of a FLUSH alone; they do not count as exported capacity",
)
.or("0");

/// Treatment of host data between the steps of a program, if a FLUSH comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AtFlush {
    /// The FLUSH finishes the programs.
    Pad,
    /// The FLUSH leaves the programs to capacitors.
    Plp,
    /// The FLUSH copies the data to blocks in SLC mode.
    Slc,
}

impl AtFlush {
    /// Returns what the parameter says.
    pub fn of(params: &Params) -> AtFlush {
        match params.get(FLUSH) {
            "plp" => AtFlush::Plp,
            "slc" => AtFlush::Slc,
            _ => AtFlush::Pad,
        }
    }

    /// Returns the name of the value.
    pub fn name(self) -> &'static str {
        ["pad", "plp", "slc"][self as usize]
    }
}

/// The settings of programs in several steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepsSettings {
    /// The number of steps, at least two.
    pub steps: u8,
    pub flush: AtFlush,
}

impl StepsSettings {
    /// Returns the settings that `params` describe, or `None` if a program has one step.
    pub fn of(params: &Params) -> Option<StepsSettings> {
        let steps = params.get(PROGRAM_STEPS) as u8;
        (steps > 1).then(|| StepsSettings { steps, flush: AtFlush::of(params) })
    }

    /// Returns the number of word lines of a frontier that are between their steps at the same
    /// time.
    pub fn between(self) -> u32 {
        u32::from(self.steps) - 1
    }
}

/// Returns the number of frames of a block that may hold no data, because word lines without data
/// finish the ones before them.
pub(super) fn lost_frames(params: &Params) -> u32 {
    StepsSettings::of(params).map_or(0, StepsSettings::between)
}

/// Returns the number of free blocks of a lane that word lines without data may take before a
/// collection frees one.
pub(super) fn low_water(params: &Params) -> u32 {
    u32::from(params.get(PROGRAM_STEPS) > 1)
}

/// Refuses what programs in several steps do not combine with.
pub(super) fn fits(
    params: &Params,
    layout: &Layout,
    streams: Streams,
    map_blocks: u32,
) -> Result<(), ConfigError> {
    let refuse = |key: &str, why: String| Err(ConfigError::new(key, why));
    let Some(settings) = StepsSettings::of(params) else {
        let flush = params.get(FLUSH);
        if flush != "pad" {
            let why = format!(
                "`{flush}` is about word lines between their steps: it needs ftl.program_steps = 2 \
                 or 3"
            );
            return refuse(FLUSH.key(), why);
        }
        return Ok(());
    };
    let (key, steps) = (PROGRAM_STEPS.key(), settings.steps);
    if layout.program_unit != ProgramUnit::WordLine {
        let why = format!(
            "{steps} steps program a whole word line: use drive.program_unit = \
                           word-line"
        );
        return refuse(key, why);
    }
    if layout.geometry.cell.levels() < 3 {
        let why = format!(
            "{steps} steps program cells of three or four bits: use drive.cell = tlc \
                           or qlc"
        );
        return refuse(key, why);
    }
    if ErrorRules::from_params(params).is_some() {
        let why = format!(
            "{steps} steps need flash without errors, because errors (errors.*) do not know frames \
             between their steps; leave the keys of errors out, or use {key} = 1"
        );
        return refuse(key, why);
    }
    for (number, time) in (1..).zip(T_PROGRAM_STEPS) {
        let is_given = params.get(time) > Dur::ZERO;
        if is_given != (number <= steps) {
            let why = if is_given {
                format!("{key} = {steps} has no step {number}; leave this key out")
            } else {
                format!("is 0: {key} = {steps} needs the time of step {number}")
            };
            return refuse(time.key(), why);
        }
    }
    let value = |key: &str| params.value(key).map(ToString::to_string).unwrap_or_default();
    for (other, only, why) in [
        ("ftl.gc_mode", "dual", "copies of collection wait in frames of their own"),
        (GC_PACE.key(), "burst", "a pace of collection does not know frames between their steps"),
        (CLASSIFIER.key(), "none", "the host has one stream"),
        ("ftl.wear_static", "false", "cold data has no frames between their steps"),
    ] {
        if value(other) != only {
            return refuse(key, format!("{steps} steps need {other} = {only}, because {why}"));
        }
    }
    if streams.host > 1 || streams.collection > 1 {
        let why = format!("{steps} steps need ftl.streams = 1, because the host has one stream");
        return refuse(key, why);
    }
    if map_blocks > 0 {
        let why = format!(
            "{steps} steps are for data pages, and this map.store (with its map.flush) has map \
             pages on flash; use map.store = dram with map.flush = none"
        );
        return refuse(key, why);
    }
    fits_capacitors(params, layout, settings)
}

/// Refuses capacitors that do not finish every word line that may be between its steps, and a FLUSH
/// that would rest on none.
fn fits_capacitors(
    params: &Params,
    layout: &Layout,
    settings: StepsSettings,
) -> Result<(), ConfigError> {
    let bytes = params.get(PLP_BYTES);
    let refuse = |key: &str, why: String| Err(ConfigError::new(key, why));
    let flush = settings.flush;
    if flush == AtFlush::Plp && bytes == 0 {
        let why = "`plp` rests on capacitors, and nand.plp_bytes is 0; give their bytes, or use \
                   ftl.flush = pad";
        return refuse(FLUSH.key(), why.into());
    }
    let is_cached = params.value("cache.mode").is_none_or(|m| m.to_string() == "write-back");
    if flush != AtFlush::Pad && !is_cached {
        let why = format!(
            "`{}` needs cache.mode = write-back, which holds the data between two steps",
            flush.name()
        );
        return refuse(FLUSH.key(), why);
    }
    // a frontier of the host and one of collection in each lane, with the frame whose last step is
    // under way
    let frames = 2 * u64::from(layout.lanes) * u64::from(settings.steps);
    let most = frames * layout.frame_bytes();
    if bytes == 0 || bytes >= most {
        return Ok(());
    }
    let why = format!(
        "{bytes} bytes are less than {most}, which may be between their steps when the power fails \
         ({frames} word lines of {} bytes); give at least {most}, or 0 for no protection",
        layout.frame_bytes()
    );
    refuse(PLP_BYTES.key(), why)
}
