//! The context of one call of a scheme: the command from the controller, the state that the scheme
//! changes, and the scheme's reports.

use crate::Copies;
use flashatlas_nand::Flash;
use flashatlas_types::{Lpn, OpId, Ps};

/// The command, or the piece of idle work, for which the controller calls a scheme. The controller
/// fills this struct, and the scheme reads it.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Simulated time at which the request was submitted.
    pub now: Ps,
    /// The number of the command. It is unique, even if several commands have the same `first`.
    pub number: u64,
    /// The operation of the controller's work on the command. Map accesses wait for this operation.
    pub first: OpId,
    /// The number below which every operation is complete.
    pub oldest_unfinished: OpId,
}

impl Command {
    /// Work outside of any command: a mount, or the preparation of a drive. The work takes no time,
    /// and every earlier operation is complete.
    pub const UNTIMED: Command =
        Command { now: Ps::ZERO, number: 0, first: OpId::NONE, oldest_unfinished: OpId(u64::MAX) };
}

/// The reports of a scheme about its work. The scheme adds reports through
/// [`FtlContext::took_host_data`] and [`FtlContext::remap`], and the controller reads them.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Programs that wrote host data to flash, in order.
    programmed: Vec<Programmed>,
    /// Pages whose map entry changed, in order; `None` if the drive exports no entries.
    remapped: Option<Vec<Lpn>>,
}

impl Outcome {
    /// Starts to record the pages whose map entry changes, for a drive that exports entries (see
    /// [`Ftl::export_entries`](crate::Ftl::export_entries)).
    pub fn keep_remapped(&mut self) {
        self.remapped.get_or_insert_default();
    }

    /// Returns the programs that wrote host data to flash since the last clear, in order.
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

/// A program that wrote host data to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programmed {
    /// The operation, or [`OpId::NONE`] if a unit was replaced in the page buffer before it was
    /// programmed.
    pub op: OpId,
    /// The number of mapping units of host data in the program.
    pub units: u32,
}

/// The state that a scheme reads and changes during one call.
pub struct FtlContext<'a> {
    /// The medium and the plan, which the scheme changes.
    pub flash: Flash<'a>,
    /// The command, which the scheme reads.
    pub command: &'a Command,
    /// The sources of copies whose programs may be unfinished. The scheme notes them, and the
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

    /// Reports that operation `op` writes `units` mapping units of host data to flash.
    ///
    /// `op` is [`OpId::NONE`] if the units were replaced or trimmed in the page buffer before they
    /// were programmed.
    #[inline]
    pub fn took_host_data(&mut self, op: OpId, units: u32) {
        self.outcome.programmed.push(Programmed { op, units });
    }

    /// Reports that operation `op` programs the same host data again. Only the last program of the
    /// data counts.
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

    /// Returns `true` if the operation exists and may be unfinished. Otherwise no operation needs
    /// to wait for it.
    #[inline]
    pub(crate) fn may_be_unfinished(&self, op: OpId) -> bool {
        op != OpId::NONE && op >= self.command.oldest_unfinished
    }
}
