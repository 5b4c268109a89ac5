//! The context of one call of a scheme: what the controller tells it, what it works with, and what
//! it reports.

use crate::Copies;
use flashatlas_nand::Flash;
use flashatlas_types::{Lpn, OpId, Ps};

/// The command, or the piece of idle work, for which a scheme is called. The controller fills it,
/// and a scheme reads it.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Simulated time at which the request was submitted.
    pub now: Ps,
    /// The number of the command. No two commands share a number, even if `first` is the same.
    pub number: u64,
    /// The operation of the controller's work on the command: map accesses wait for it.
    pub first: OpId,
    /// Every operation with a smaller number is complete.
    pub oldest_unfinished: OpId,
}

impl Command {
    /// Work outside of any command, in no time: a mount, or the preparation of a state. Every
    /// operation is complete.
    pub const UNTIMED: Command =
        Command { now: Ps::ZERO, number: 0, first: OpId::NONE, oldest_unfinished: OpId(u64::MAX) };
}

/// The reports of a scheme about its work. The scheme fills them through
/// [`FtlContext::took_host_data`] and [`FtlContext::remap`], and the controller reads them.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Programs that took host data to flash, in order.
    programmed: Vec<Programmed>,
    /// Pages whose map entry changed, in order; `None` unless the drive hands entries out.
    remapped: Option<Vec<Lpn>>,
}

impl Outcome {
    /// Begins to keep the pages whose map entry changes, for a drive that hands entries out (see
    /// [`Ftl::export_entries`](crate::Ftl::export_entries)).
    pub fn keep_remapped(&mut self) {
        self.remapped.get_or_insert_default();
    }

    /// Returns the programs that took host data to flash since they were last cleared, in order.
    #[inline]
    pub fn programmed(&self) -> &[Programmed] {
        &self.programmed
    }

    /// Removes the reported programs.
    #[inline]
    pub fn clear_programmed(&mut self) {
        self.programmed.clear();
    }

    /// Removes and returns the pages whose map entry changed, in order.
    pub fn drain_remapped(&mut self) -> impl Iterator<Item = Lpn> + '_ {
        self.remapped.iter_mut().flat_map(|pages| pages.drain(..))
    }
}

/// A program that took host data to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programmed {
    /// The operation, or [`OpId::NONE`] if a unit was replaced in the page buffer before it went
    /// out.
    pub op: OpId,
    /// The number of mapping units of host data in it.
    pub units: u32,
}

/// Everything that a scheme works with during one call.
pub struct FtlContext<'a> {
    /// The medium and the plan, which the scheme changes.
    pub flash: Flash<'a>,
    /// The command, which the scheme reads.
    pub command: &'a Command,
    /// The sources of copies that may not be programmed yet: the scheme notes them, and the
    /// controller looks them up.
    pub copies: &'a mut Copies,
    outcome: &'a mut Outcome,
}

impl<'a> FtlContext<'a> {
    /// Returns the context of a call for `command`. The scheme's reports are added to `outcome`.
    #[inline]
    pub fn new(
        flash: Flash<'a>,
        command: &'a Command,
        copies: &'a mut Copies,
        outcome: &'a mut Outcome,
    ) -> FtlContext<'a> {
        FtlContext { flash, command, copies, outcome }
    }

    /// Reports that operation `op` takes `units` mapping units of host data to flash.
    ///
    /// `op` is [`OpId::NONE`] if the units were replaced or trimmed in the page buffer before they
    /// went out.
    #[inline]
    pub fn took_host_data(&mut self, op: OpId, units: u32) {
        self.outcome.programmed.push(Programmed { op, units });
    }

    /// Reports that operation `op` takes the same host data to flash once more: only the last
    /// program of the data counts.
    ///
    /// # Panics
    /// Panics if no host data was reported before.
    pub fn took_again(&mut self, op: OpId) {
        self.outcome.programmed.last_mut().expect("host data was reported before").op = op;
    }

    /// Reports that the map entry of a page changes.
    #[inline]
    pub fn remap(&mut self, lpn: Lpn) {
        if let Some(pages) = &mut self.outcome.remapped {
            pages.push(lpn);
        }
    }

    /// Returns `true` if the operation exists and may be unfinished. Otherwise nothing has to wait
    /// for it.
    #[inline]
    pub(crate) fn may_be_unfinished(&self, op: OpId) -> bool {
        op != OpId::NONE && op >= self.command.oldest_unfinished
    }
}
