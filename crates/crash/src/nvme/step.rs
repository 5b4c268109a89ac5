//! Steps of a workload that goes through an NVMe controller.

use std::fmt;
use std::ops::Range;

/// A range of logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// First block.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

impl Blocks {
    /// Returns the mapping units that the range touches, of `unit_blocks` blocks each.
    pub fn touched(self, unit_blocks: u32) -> Range<u32> {
        self.first / unit_blocks..(self.first + self.count).div_ceil(unit_blocks)
    }

    /// Returns the mapping units that lie in the range as a whole; empty if there are none.
    pub fn whole(self, unit_blocks: u32) -> Range<u32> {
        self.first.div_ceil(unit_blocks)..(self.first + self.count) / unit_blocks
    }
}

/// One step: a command of the host, or the progress of the media.
///
/// The host submits a command and does not wait. The media carry commands out when a step says so,
/// in any order. The host itself keeps the order of commands that touch the same units, as NVMe
/// demands: it waits for the earlier commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The power comes on, and the controller reads its record. This is the first step of every
    /// workload.
    PowerOn,
    /// The host enables the controller. A workload need not contain this step: the host enables the
    /// controller before the next command.
    Enable,
    /// Write.
    Write {
        /// The blocks.
        blocks: Blocks,
        /// `true` if the data is durable when the command is complete.
        fua: bool,
    },
    /// Write Zeroes.
    Zeroes {
        /// The blocks.
        blocks: Blocks,
        /// `true` if the zeros are durable when the command is complete.
        fua: bool,
        /// `true` if the units may be deallocated (DEAC).
        deallocate: bool,
    },
    /// Dataset Management with the attribute Deallocate.
    Deallocate {
        /// The ranges.
        ranges: [Blocks; 2],
    },
    /// Read.
    Read {
        /// The blocks.
        blocks: Blocks,
        /// `true` if the data that is read is durable.
        fua: bool,
    },
    /// Compare.
    Compare {
        /// The blocks.
        blocks: Blocks,
        /// `true` if the data that is compared is durable.
        fua: bool,
        /// `true` if the last byte of the host differs, so that the command fails.
        differs: bool,
    },
    /// FLUSH.
    Flush,
    /// The volatile write cache is switched.
    Cache {
        /// `true` to switch it on.
        on: bool,
        /// `true` if the value is saved.
        save: bool,
    },
    /// The over temperature threshold is set and saved, in kelvins.
    Threshold(u16),
    /// The host reads the SMART log.
    Smart,
    /// The host shuts the controller down, and waits for the end of the shutdown.
    Shutdown,
    /// The host resets the controller. Nobody waits for the commands in flight any more.
    Reset,
    /// The media carry out one of the commands in flight: number `n`, modulo their number.
    CarryOut(u8),
}

impl Step {
    /// Returns the ranges that the step reads or changes.
    pub fn ranges(self) -> impl Iterator<Item = Blocks> {
        let (one, more) = match self {
            Step::Write { blocks, .. }
            | Step::Zeroes { blocks, .. }
            | Step::Read { blocks, .. }
            | Step::Compare { blocks, .. } => (Some(blocks), None),
            Step::Deallocate { ranges: [one, two] } => (Some(one), Some(two)),
            _ => (None, None),
        };
        one.into_iter().chain(more)
    }

    /// Returns `true` if the step touches a unit that `other` touches.
    pub fn overlaps(self, other: Step, unit_blocks: u32) -> bool {
        self.ranges().map(|mine| mine.touched(unit_blocks)).any(|mine| {
            let theirs = other.ranges().map(|theirs| theirs.touched(unit_blocks));
            theirs.into_iter().any(|theirs| mine.start < theirs.end && theirs.start < mine.end)
        })
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.first, self.count)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |set: bool, word: &'static str| if set { word } else { "" };
        match *self {
            Step::PowerOn => f.write_str("power on"),
            Step::Enable => f.write_str("enable"),
            Step::Write { blocks, fua } => write!(f, "write {blocks}{}", with(fua, " fua")),
            Step::Zeroes { blocks, fua, deallocate } => {
                let deallocate = with(deallocate, " deallocate");
                write!(f, "write zeroes {blocks}{}{deallocate}", with(fua, " fua"))
            }
            Step::Deallocate { ranges: [one, two] } => write!(f, "deallocate {one} {two}"),
            Step::Read { blocks, fua } => write!(f, "read {blocks}{}", with(fua, " fua")),
            Step::Compare { blocks, fua, differs } => {
                write!(f, "compare {blocks}{}{}", with(fua, " fua"), with(differs, " differs"))
            }
            Step::Flush => f.write_str("flush"),
            Step::Cache { on, save } => {
                write!(f, "cache {}{}", if on { "on" } else { "off" }, with(save, " save"))
            }
            Step::Threshold(kelvins) => write!(f, "threshold {kelvins} save"),
            Step::Smart => f.write_str("smart"),
            Step::Shutdown => f.write_str("shutdown"),
            Step::Reset => f.write_str("reset"),
            Step::CarryOut(n) => write!(f, "carry out {n}"),
        }
    }
}
