//! Sessions. A session is one call of the firmware, with the functions of the drive that it uses
//! during the call.

use super::shadow::Shadow;
use super::token::{TOKEN_BYTES, Token};
use crate::abi::{FaHost, FaSpare, FaState, FaStatus};
use crate::tables;
use crate::watch;
use FaStatus::{
    FA_ERASE_FAILED, FA_OK, FA_POWER_LOST, FA_PROGRAM_FAILED, FA_REFUSED, FA_UNREADABLE,
};
use flashatlas_ftl::{FtlContext, MountReport, Role};
use flashatlas_nand::{FrameState, OobRole, ReadPart, Unit};
use flashatlas_types::{
    BlockId, Cause, Class, Dur, FrameId, FtlError, Lpn, MediumError, OpId, OpKind, PartFault, Ppn,
    Stamp,
};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::Arc;

/// Largest number of operations in one call, for each page of the drive. A call with more
/// operations counts as an endless loop.
const PER_PAGE: u64 = 64;
/// Number of operations that every call may have, even on a small drive.
const AT_LEAST: u64 = 1 << 16;

/// Target of the pointer in `fa_host`. Its address does not change while the firmware exists.
pub(super) struct HostCell {
    pub host: FaHost,
    /// The session of the current call; null between calls.
    pub(super) session: Cell<*mut c_void>,
    /// A function of the host that the firmware called outside of any call.
    pub(super) stray: Cell<Option<&'static str>>,
    pub(super) allocations: Cell<u64>,
    pub(super) allocated: Cell<u64>,
}

/// Operations for which an operation waits. Mostly these are at most the arrival of data and an
/// erase.
pub(super) type Waits = SmallVec<[OpId; 4]>;

/// Counts of a firmware's work since the counters were reset.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub copies: u64,
    pub own_programs: u64,
    pub own_reads: u64,
}

/// State that is kept from one call of a firmware to the next.
pub(super) struct State {
    pub who: &'static str,
    pub shadow: Shadow,
    /// The last operation, for which the next operation waits.
    pub chain: OpId,
    /// Number of writes so far. It distinguishes the data of two writes.
    pub writes: u64,
    pub counts: Counts,
    pub mount: MountReport,
    pub retired: u64,
}

/// One call of a firmware.
pub(super) struct Session<'a, 'b> {
    pub cx: &'a mut FtlContext<'b>,
    pub state: &'a mut State,
    pub callback: &'static str,
    /// The causes of three kinds of operations: programs of data; copies and erases; reads, and
    /// programs of the firmware's own pages.
    pub causes: [Cause; 3],
    /// The unit that is written, and the operation for which its program waits.
    pub unit: Option<(&'a Unit, OpId)>,
    /// `true` if the unit was programmed.
    pub programmed: bool,
    /// `true` during the mount.
    pub mounting: bool,
    /// `true` if the call is not part of the simulation. Nothing is then counted, and nothing takes
    /// time.
    pub silent: bool,
    /// The operations for which the next operation waits instead of the last operation.
    pub(super) after: Option<Waits>,
    operations: u64,
    /// The last error of the medium, which the firmware may return.
    said: Option<(FaStatus, MediumError)>,
    /// The fault of this call, which overrides the firmware's answer.
    pub(super) wrong: Option<Wrong>,
    /// The reason that the firmware has given for `FA_FAILED`.
    pub why: Option<String>,
}

/// Reason why a call fails regardless of the firmware's answer.
pub(super) enum Wrong {
    Fault(String),
    Medium(MediumError),
    Panic(Box<dyn Any + Send>),
}

impl HostCell {
    /// Returns a cell whose functions `table` makes for the address of a cell.
    pub fn new(table: fn(*mut c_void) -> FaHost) -> Box<HostCell> {
        let mut cell = Box::new(HostCell {
            host: table(ptr::null_mut()),
            session: Cell::new(ptr::null_mut()),
            stray: Cell::default(),
            allocations: Cell::default(),
            allocated: Cell::default(),
        });
        cell.host.context = ptr::from_mut(cell.as_mut()).cast();
        cell
    }

    /// Returns the bytes and the number of allocations that the firmware has not released.
    pub fn allocated(&self) -> (u64, u64) {
        (self.allocated.get(), self.allocations.get())
    }

    /// Returns the function that the firmware called outside of any call, and clears it.
    pub fn stray(&self) -> Option<&'static str> {
        self.stray.take()
    }
}

impl<'a, 'b> Session<'a, 'b> {
    pub fn new(
        cx: &'a mut FtlContext<'b>,
        state: &'a mut State,
        callback: &'static str,
    ) -> Session<'a, 'b> {
        Session {
            cx,
            state,
            callback,
            causes: [Cause::Host, Cause::Gc, Cause::Map],
            unit: None,
            programmed: false,
            mounting: false,
            silent: false,
            after: None,
            operations: 0,
            said: None,
            wrong: None,
            why: None,
        }
    }

    /// Calls the firmware.
    ///
    /// # Errors
    /// Returns an error if the power has failed, which no firmware can handle.
    ///
    /// # Panics
    /// Panics with a [`PartFault`] for a fault of the firmware.
    pub fn call<T>(
        &mut self,
        cell: &HostCell,
        call: impl FnOnce(*const FaHost) -> T,
    ) -> Result<T, FtlError> {
        if let Some(function) = cell.stray() {
            self.raise(format!("`{function}` was called outside of every call of the firmware"));
        }
        let watched = watch::enter(self.state.who, self.callback, self.cx.command.now.0);
        let before = cell.session.replace(ptr::from_mut(self).cast());
        let answer = call(&raw const cell.host);
        drop(watched);
        cell.session.set(before);
        match self.wrong.take() {
            None => Ok(answer),
            Some(Wrong::Medium(error)) => Err(error.into()),
            Some(Wrong::Fault(what)) => self.raise(what),
            Some(Wrong::Panic(panic)) => resume_unwind(panic),
        }
    }

    /// Returns the last error of the medium if `answer` is its status.
    pub fn medium_error(&self, answer: u32) -> Option<MediumError> {
        self.said.filter(|&(status, _)| status as u32 == answer).map(|(_, error)| error)
    }

    /// Ends the run with the fault `what` of the firmware.
    pub fn raise(&self, what: impl std::fmt::Display) -> ! {
        let (callback, now) = (self.callback, self.cx.command.now);
        PartFault::raise(self.state.who, format!("`{callback}` at {}: {what}", Dur(now.0)))
    }

    pub(super) fn refuse(&mut self, what: String) -> FaStatus {
        self.wrong.get_or_insert(Wrong::Fault(what));
        FA_REFUSED
    }

    /// Returns the status for an error of the medium.
    fn failed(&mut self, error: MediumError) -> FaStatus {
        let status = match error {
            MediumError::Unreadable(_) | MediumError::Damaged(_) => FA_UNREADABLE,
            MediumError::ProgramFailed(_) => FA_PROGRAM_FAILED,
            MediumError::EraseFailed(_) => FA_ERASE_FAILED,
            MediumError::PowerLost => {
                self.wrong.get_or_insert(Wrong::Medium(error));
                FA_POWER_LOST
            }
            MediumError::BadBlock(block) => return self.refuse(format!("block {block} is bad")),
        };
        self.said = Some((status, error));
        status
    }

    /// Begins another operation. Returns the operations for which it waits.
    fn begin(&mut self, more: &[OpId]) -> Result<Waits, FaStatus> {
        if matches!(self.wrong, Some(Wrong::Medium(_))) {
            return Err(FA_POWER_LOST);
        }
        self.operations += 1;
        let most = AT_LEAST.max(PER_PAGE * u64::from(self.state.shadow.layout.frames()));
        if self.operations > most {
            return Err(
                self.refuse(format!("one call made more than {most} operations and did not end"))
            );
        }
        let mut after = self.after.take().unwrap_or_else(|| smallvec![self.state.chain]);
        after.extend_from_slice(more);
        after.retain(|&mut op| op != OpId::NONE && op >= self.cx.command.oldest_unfinished);
        Ok(after)
    }

    pub(super) fn frame(&mut self, function: &str, page: u32) -> Result<FrameId, FaStatus> {
        let frames = self.state.shadow.layout.frames();
        if page < frames {
            return Ok(FrameId(page));
        }
        Err(self.refuse(format!(
            "`{function}` of page {page} is not possible: the drive has the pages 0 to {}",
            frames - 1
        )))
    }

    pub(super) fn block(&mut self, function: &str, block: u32) -> Result<BlockId, FaStatus> {
        let blocks = self.state.shadow.layout.blocks();
        if block < blocks {
            return Ok(BlockId::new(block));
        }
        Err(self.refuse(format!(
            "`{function}` of block {block} is not possible: the drive has the blocks 0 to {}",
            blocks - 1
        )))
    }

    /// Returns the content of a buffer that is to be programmed.
    ///
    /// The content is the unit, the place from which it was read, and the operation with which it
    /// arrives.
    pub(super) fn content(&mut self, data: &[u8]) -> Result<(Unit, Option<Ppn>, OpId), FaStatus> {
        let Some(token) = Token::decode(data) else {
            let (lpn, stamp) = (Lpn::NONE, Stamp(crc32c::crc32c(data)));
            let bytes = Some(Arc::from(data));
            return Ok((Unit { lpn, stamp, bytes }, None, OpId::NONE));
        };
        if let Some(from) = token.from.mapped() {
            let medium = &*self.cx.flash.medium;
            let frame = self.state.shadow.layout.frame_of(from);
            return match medium.frame_sequence(frame) {
                Ok(number) if number == token.number => {
                    Ok((medium.unit(from).map_err(|e| self.failed(e))?, Some(from), OpId::NONE))
                }
                _ => Err(self.refuse(format!(
                    "the programmed data was read from page {from}, which was erased since then"
                ))),
            };
        }
        match self.unit {
            Some((unit, arrived)) if token.number == self.state.writes => {
                Ok((unit.clone(), None, arrived))
            }
            _ => Err(self.refuse(format!(
                "the programmed data of page {} comes from an earlier `write`",
                token.lpn
            ))),
        }
    }

    pub(super) fn program_unit(
        &mut self,
        frame: FrameId,
        unit: &Unit,
        from: Option<Ppn>,
        arrived: OpId,
    ) -> FaStatus {
        let from_host = self.unit.is_some_and(|(written, _)| written.lpn == unit.lpn)
            && from.is_none()
            && unit.lpn != Lpn::NONE;
        if let Some(why) = self.cx.flash.medium.refuses_program(frame) {
            return self.refuse(why);
        }
        let block = self.state.shadow.layout.block_of_frame(frame);
        let after = match self.begin(&[arrived, self.state.shadow.erased[block]]) {
            Ok(after) => after,
            Err(status) => return status,
        };
        if self.cx.flash.medium.write_pointer(block) == 0 {
            self.cx.flash.open(block, OobRole::MIXED);
        }
        let [host, moved, own] = self.causes;
        let cause = match (unit.lpn, from_host) {
            (Lpn::NONE, _) => own,
            (_, true) => host,
            (_, false) => moved,
        };
        let programmed = self.cx.flash.program(frame, std::iter::once(unit), cause, &after);
        self.state.shadow.programmed(self.cx.flash.medium, block);
        let op = match programmed {
            Ok((_, op)) => op,
            Err(error) => return self.failed(error),
        };
        self.state.chain = op;
        let oldest = self.cx.command.oldest_unfinished;
        if unit.lpn == Lpn::NONE {
            self.state.counts.own_programs += 1;
        } else if from_host {
            self.state.shadow.moved(unit.lpn, frame, op, oldest);
            // the firmware may program the data again, for example after its own checkpoint has
            // failed; only the last program counts
            if self.programmed {
                self.cx.took_again(op);
            } else {
                self.cx.took_host_data(op, 1);
            }
            self.programmed = true;
        } else {
            self.state.counts.copies += 1;
            let newest = self.state.shadow.newest.get(unit.lpn).copied();
            // if there are two copies of a version, the firmware may copy either one
            let medium = &*self.cx.flash.medium;
            let same = |at: Ppn| medium.unit(at).is_ok_and(|there| there == *unit);
            if newest.and_then(Ppn::mapped).is_some_and(|at| Some(at) == from || same(at)) {
                self.state.shadow.moved(unit.lpn, frame, op, oldest);
            }
        }
        FA_OK
    }

    pub(super) fn read(
        &mut self,
        page: u32,
        offset: u32,
        buffer: &mut [u8],
    ) -> Result<(), FaStatus> {
        let frame = self.frame("read", page)?;
        let (end, page_bytes) =
            (u64::from(offset) + buffer.len() as u64, self.state.shadow.layout.unit_bytes);
        if end > u64::from(page_bytes) {
            let what = format!("bytes {offset} to {end} of page {page} are read");
            return Err(self.refuse(format!("{what}, but a page has {page_bytes} bytes")));
        }
        if !self.silent {
            let after = self.begin(&[])?;
            let cause = self.causes[2];
            let sensed = self.cx.flash.read(frame, 1, ReadPart::Whole, cause, &after);
            self.state.chain = sensed.map_err(|e| self.failed(e))?;
            self.state.counts.own_reads += 1;
            self.state.mount.map_page_reads += u64::from(self.mounting);
        }
        let (medium, slot) = (&*self.cx.flash.medium, self.state.shadow.layout.first_slot(frame));
        let number = medium.frame_sequence(frame).map_err(|e| self.failed(e))?;
        let medium = &*self.cx.flash.medium;
        let found = match medium.lpn(slot) {
            Ok(Lpn::NONE) => medium.map_page(slot).map(|bytes| {
                buffer.copy_from_slice(&bytes[offset as usize..end as usize]);
            }),
            Ok(lpn) => {
                let token = Token { lpn, from: slot, number }.encode();
                for (at, byte) in (offset as usize..).zip(buffer.iter_mut()) {
                    *byte = if at < TOKEN_BYTES { token[at] } else { 0 };
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        found.map_err(|e| self.failed(e))
    }

    pub(super) fn copy(&mut self, from: u32, to: u32) -> Result<FaStatus, FaStatus> {
        let (source, target) = (self.frame("copy", from)?, self.frame("copy", to)?);
        let slot = self.state.shadow.layout.first_slot(source);
        let after = self.begin(&[])?;
        let cause = self.causes[1];
        let sensed = self.cx.flash.read(source, 1, ReadPart::Whole, cause, &after);
        let sensed = sensed.map_err(|e| self.failed(e))?;
        let medium = &*self.cx.flash.medium;
        let unit = match medium.lpn(slot) {
            Ok(Lpn::NONE) => medium.map_page(slot).map(|bytes| Unit {
                lpn: Lpn::NONE,
                stamp: Stamp(crc32c::crc32c(bytes)),
                bytes: Some(bytes.clone()),
            }),
            Ok(_) => medium.unit(slot),
            Err(error) => Err(error),
        };
        let unit = unit.map_err(|e| self.failed(e))?;
        self.after = Some(smallvec![sensed]);
        Ok(self.program_unit(target, &unit, Some(slot), OpId::NONE))
    }

    pub(super) fn erase(&mut self, block: u32) -> Result<(), FaStatus> {
        let block = self.block("erase", block)?;
        if self.cx.flash.medium.is_bad(block) {
            return Err(self.refuse(format!("bad block {block} is erased")));
        }
        if let Some((lpn, at)) = self.state.shadow.resident(self.cx.flash.medium, block) {
            return Err(self.refuse(format!(
                "the erase of block {block} loses logical page {lpn}, whose newest version is in \
                 page {at}"
            )));
        }
        let oldest = self.cx.command.oldest_unfinished;
        let superseders: Vec<OpId> = self.state.shadow.superseded.take(block, oldest).collect();
        let after = self.begin(&superseders)?;
        match self.cx.flash.erase(block, self.causes[1], &after) {
            Ok(op) => {
                self.state.chain = op;
                self.state.shadow.erased[block] = op;
            }
            Err(error) => {
                if matches!(error, MediumError::EraseFailed(_)) {
                    self.state.shadow.blocks.set_role(block, Role::Bad);
                    self.state.retired += 1;
                }
                return Err(self.failed(error));
            }
        }
        self.state.shadow.programmed(self.cx.flash.medium, block);
        Ok(())
    }

    pub(super) fn spare(&mut self, page: u32) -> Result<FaSpare, FaStatus> {
        let frame = self.frame("spare", page)?;
        let (medium, layout) = (&*self.cx.flash.medium, &self.state.shadow.layout);
        if self.mounting && !self.silent {
            self.state.mount.read_spare_areas(layout, layout.block_of_frame(frame), 1);
        }
        let slot = layout.first_slot(frame);
        let sequence = medium.frame_sequence(frame).unwrap_or(0);
        let (state, lpn) = match (medium.state(frame), medium.lpn(slot)) {
            (FrameState::Erased, _) => (FaState::FA_ERASED, Lpn::NONE),
            (FrameState::Torn | FrameState::Unfinished, _) | (_, Err(_)) => {
                (FaState::FA_TORN, Lpn::NONE)
            }
            (_, Ok(Lpn::NONE)) if medium.map_page(slot).is_err() => (FaState::FA_TORN, Lpn::NONE),
            (_, Ok(Lpn::NONE)) => (FaState::FA_OWN, Lpn::NONE),
            (_, Ok(lpn)) => (FaState::FA_DATA, lpn),
        };
        Ok(FaSpare { state: state as u32, lpn: lpn.0, sequence })
    }

    pub(super) fn access(&mut self, memory: u32, accesses: u32, bytes: u32, write: bool) {
        let Some(kind) = tables::memory_of(memory) else {
            self.refuse(format!("an access names memory {memory}, which is not an fa_memory"));
            return;
        };
        if self.silent {
            return;
        }
        if let Ok(after) = self.begin(&[]) {
            let access = OpKind::Memory { kind, accesses, bytes, write };
            self.state.chain = self.cx.flash.plan.push(access, Class::Map, &after);
        }
    }
}
