//! The plan: the operations that a request causes, and the operations that each of them waits for.
//!
//! A scheme changes its state immediately and pushes operations onto the plan. The timing engine
//! decides later when each operation happens. At a power cut, the operations that have reached the
//! medium form a downward-closed subset of the plan's graph. If an operation is in the subset, all
//! operations that it waits for are in the subset, too.

pub use crate::cause::{Cause, Class};
use crate::{DieBlock, Dur, OpId, Tag};

/// The memory that holds a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryKind {
    /// On-chip static memory.
    Sram,
    /// Dynamic memory beside the controller.
    Dram,
    /// Byte-addressable non-volatile memory.
    Nvm,
}

/// The work of an operation, and the resource that it occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Sense a page (of one or more planes together) and transfer `bytes` to the controller.
    Read {
        /// Global die.
        die: u32,
        /// Part of a block on that die. The engine keeps the order of operations for each block.
        block: DieBlock,
        /// Page in the block.
        page: u32,
        /// Page kind (lower, middle, upper).
        level: u8,
        /// Bytes that cross the channel.
        bytes: u32,
        /// The number of operations by which the read looks back, or 0 to read the current page. A
        /// read that looks back does not wait for later programs of the page. A later erase waits
        /// for the read, if other operations still delay the erase.
        back: u32,
    },
    /// Transfer `bytes` to the die and program a page (of one or more planes together).
    Program {
        /// Global die.
        die: u32,
        /// Part of a block on that die.
        block: DieBlock,
        /// Page in the block.
        page: u32,
        /// Page kind.
        level: u8,
        /// Bytes that cross the channel.
        bytes: u32,
    },
    /// Sense pages of a die into its page registers, and program them into another page of the same
    /// planes (copyback). Only a part of the spare area crosses the channel. The pages that are
    /// sensed are the `count` pages that begin at `first` in the plan's list of [`CopySource`]s.
    Copyback {
        /// Global die.
        die: u32,
        /// Part of the block to program on that die.
        block: DieBlock,
        /// Page to program in the block.
        page: u32,
        /// Page kind of the page to program.
        level: u8,
        /// Bytes that cross the channel.
        bytes: u32,
        /// Index of the first source among all sources of the plan.
        first: u32,
        /// Number of sources, at least one. They are on one block.
        count: u8,
    },
    /// Erase a block (of one or more planes together).
    Erase {
        /// Global die.
        die: u32,
        /// Part of a block on that die.
        block: DieBlock,
    },
    /// Dependent accesses to a table in memory, one after another.
    Memory {
        /// The memory.
        kind: MemoryKind,
        /// Number of accesses.
        accesses: u32,
        /// Bytes of each access.
        bytes: u32,
        /// `true` if the accesses store, `false` if they load.
        write: bool,
    },
    /// Accesses to tables in DRAM, which the engine times command by command. In the plan's list of
    /// [`DramAccess`]es, they are the `count` accesses that begin at `first`.
    Dram {
        /// Index of the first access among all accesses of the plan.
        first: u32,
        /// Number of accesses, in order.
        count: u32,
        /// `true` if the operation changes the tables, `false` if it only looks entries up.
        update: bool,
    },
    /// Transfer of data over the host link.
    Link {
        /// `true` if the data goes towards the drive.
        inbound: bool,
        /// Bytes.
        bytes: u64,
    },
    /// A fixed time, such as the time in which the controller handles a command.
    Delay(Dur),
    /// A time for which the drive does not accept the data of a write, because free blocks run low.
    Throttle(Dur),
    /// A time of one of the controller's cores, for which the operation waits.
    Core(Dur),
    /// No work. The operation is complete when all operations that it waits for are.
    Join,
    /// Like [`OpKind::Join`]. The end of this operation completes the host command.
    Complete(Tag),
    /// Like [`OpKind::Join`]. The end of this operation frees this number of write-cache slots.
    FreeSlots(u32),
    /// Like [`OpKind::Join`], but the operation also waits until this number of slots of the write
    /// cache has been freed since the start of the engine. All freed slots count.
    AwaitSlots(u64),
}

/// Consecutive bursts of one row of a DRAM bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DramAccess {
    /// Row of the bank.
    pub row: u32,
    /// Bank.
    pub bank: u8,
    /// Bursts, at least one.
    pub bursts: u16,
    /// `true` if the bursts store data, `false` if they load data.
    pub write: bool,
    /// `true` if the access waits for the data of every earlier load of its operation. That data
    /// determines the address of the access, or the data that the access stores.
    pub dependent: bool,
}

/// A page that a copyback senses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySource {
    /// Part of its block on the die of the copyback.
    pub block: DieBlock,
    /// Page in the block.
    pub page: u32,
    /// Page kind.
    pub level: u8,
}

/// One operation of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// The work.
    pub kind: OpKind,
    /// Priority of the operation.
    pub class: Class,
    /// The reason for an operation on flash; `None` for any other operation.
    pub cause: Option<Cause>,
    deps: (u32, u32),
}

/// The operations of one or more requests, before the timing engine gets them.
#[derive(Debug)]
pub struct Plan {
    ops: Vec<Op>,
    deps: Vec<OpId>,
    dram: Vec<DramAccess>,
    sources: Vec<CopySource>,
    base: u64,
    /// The operation that every other operation waits for, directly or through others.
    first: OpId,
    recording: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        let (ops, deps, dram, sources) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Plan { ops, deps, dram, sources, base: 1, first: OpId::NONE, recording: true }
    }
}

impl Plan {
    /// Adds an operation that starts when all operations in `after` are complete. [`OpId::NONE`]
    /// counts as complete.
    #[inline]
    pub fn push(&mut self, kind: OpKind, class: Class, after: &[OpId]) -> OpId {
        self.add(kind, class, None, after)
    }

    /// Adds an operation on flash as [`Plan::push`] does. Its priority follows from its cause.
    #[inline]
    pub fn push_flash(&mut self, kind: OpKind, cause: Cause, after: &[OpId]) -> OpId {
        let class = cause.class(matches!(kind, OpKind::Read { .. }));
        self.add(kind, class, Some(cause), after)
    }

    /// Adds an operation on flash as [`Plan::push_flash`] does, with the priority of another cause.
    pub fn push_flash_in(
        &mut self,
        class: Class,
        kind: OpKind,
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        self.add(kind, class, Some(cause), after)
    }

    #[inline]
    fn add(&mut self, kind: OpKind, class: Class, cause: Option<Cause>, after: &[OpId]) -> OpId {
        if !self.recording {
            return OpId::NONE;
        }
        let start = self.deps.len() as u32;
        for &op in after {
            if op != OpId::NONE {
                self.deps.push(op);
            }
        }
        if self.first != OpId::NONE {
            // if the new operation waits for any operation of this plan, it already waits for
            // `first`
            let (base, first) = (OpId(self.base), self.first);
            if !self.deps[start as usize..].iter().any(|&op| op >= base || op == first) {
                self.deps.push(first);
            }
        }
        self.ops.push(Op { kind, class, cause, deps: (start, self.deps.len() as u32) });
        OpId(self.base + self.ops.len() as u64 - 1)
    }

    /// Makes every operation wait for `first`, directly or through others, until the next
    /// [`Plan::clear`]. So no operation of a command begins before the controller has handled the
    /// command.
    pub fn set_first(&mut self, first: OpId) {
        self.first = first;
    }

    /// Adds accesses to DRAM as one operation.
    pub fn push_dram(
        &mut self,
        accesses: &[DramAccess],
        update: bool,
        class: Class,
        after: &[OpId],
    ) -> OpId {
        if !self.recording {
            return OpId::NONE;
        }
        let first = self.dram.len() as u32;
        self.dram.extend_from_slice(accesses);
        self.push(OpKind::Dram { first, count: accesses.len() as u32, update }, class, after)
    }

    /// Returns the `count` accesses of an [`OpKind::Dram`] that begins at `first`.
    pub fn dram(&self, first: u32, count: u32) -> &[DramAccess] {
        &self.dram[first as usize..(first + count) as usize]
    }

    /// Adds a copyback of these pages. `kind` gets their place in the plan's list of sources.
    ///
    /// # Panics
    /// Panics if `kind` is no [`OpKind::Copyback`], or if there are more than 255 sources.
    pub fn push_copyback(
        &mut self,
        mut kind: OpKind,
        sources: &[CopySource],
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        let OpKind::Copyback { first, count, .. } = &mut kind else {
            panic!("{kind:?} copies nothing");
        };
        if !self.recording {
            return OpId::NONE;
        }
        *first = self.sources.len() as u32;
        *count = u8::try_from(sources.len()).expect("a copyback has at most 255 sources");
        self.sources.extend_from_slice(sources);
        self.push_flash(kind, cause, after)
    }

    /// Returns the pages that an operation of this plan senses, if it is a copyback.
    pub fn sources(&self, kind: OpKind) -> &[CopySource] {
        match kind {
            OpKind::Copyback { first, count, .. } => {
                &self.sources[first as usize..first as usize + usize::from(count)]
            }
            _ => &[],
        }
    }

    /// Returns an operation that is complete when all operations in `after` are. If `after` names
    /// only one operation, that operation is returned.
    pub fn join(&mut self, class: Class, after: &[OpId]) -> OpId {
        match after {
            [] => OpId::NONE,
            [one] => *one,
            many => self.push(OpKind::Join, class, many),
        }
    }

    /// Returns whether `op` belongs to this plan and waits for `on` directly.
    #[inline]
    pub fn waits_for(&self, op: OpId, on: OpId) -> bool {
        op >= self.first_id() && self.after((op.0 - self.base) as usize).contains(&on)
    }

    /// Returns the operations that the operation with this index in the plan waits for.
    #[inline]
    fn after(&self, place: usize) -> &[OpId] {
        self.deps_of(&self.ops[place])
    }

    #[inline]
    fn deps_of(&self, op: &Op) -> &[OpId] {
        &self.deps[op.deps.0 as usize..op.deps.1 as usize]
    }

    /// Returns `true` if `ops` wait for no operation on flash.
    ///
    /// The function examines `ops` and all operations of this plan that they wait for. Each must be
    /// an [`OpKind::Delay`], [`OpKind::Core`], [`OpKind::Memory`] or [`OpKind::Join`]. If an
    /// operation belongs to an earlier plan, it must be complete (`is_complete`).
    pub fn waits_for_time_alone(&self, ops: &[OpId], is_complete: &impl Fn(OpId) -> bool) -> bool {
        ops.iter().all(|&op| {
            if op < self.first_id() {
                return is_complete(op);
            }
            let place = (op.0 - self.base) as usize;
            let kind = self.ops[place].kind;
            matches!(
                kind,
                OpKind::Delay(_) | OpKind::Core(_) | OpKind::Memory { .. } | OpKind::Join
            ) && self.waits_for_time_alone(self.after(place), is_complete)
        })
    }

    /// Returns whether operations are recorded.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// Turns the recording of operations on or off. Recording is off while a drive is prepared,
    /// because the preparation must take no simulated time.
    pub fn set_recording(&mut self, on: bool) {
        self.recording = on;
    }

    /// Returns the operations, each with its number and the operations that it waits for.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &Op, &[OpId])> {
        (self.base..).zip(&self.ops).map(|(id, op)| (OpId(id), op, self.deps_of(op)))
    }

    /// Removes all operations. The numbering continues with the next operation.
    pub fn clear(&mut self) {
        self.base += self.ops.len() as u64;
        self.first = OpId::NONE;
        self.ops.clear();
        self.deps.clear();
        self.dram.clear();
        self.sources.clear();
    }

    /// Returns the number of the next operation.
    pub fn next_id(&self) -> OpId {
        OpId(self.base + self.ops.len() as u64)
    }

    /// Returns the number of the first operation, or of the next operation if the plan is empty.
    pub fn first_id(&self) -> OpId {
        OpId(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_and_finished_dependencies_are_dropped() {
        let mut plan = Plan::default();
        let a = plan.push(OpKind::Delay(Dur(1)), Class::Gc, &[OpId::NONE]);
        let b = plan.push(OpKind::Join, Class::Gc, &[a, OpId::NONE]);
        assert_eq!(
            plan.iter().map(|(_, _, after)| after.to_vec()).collect::<Vec<_>>(),
            [vec![], vec![a]]
        );
        plan.clear();
        assert_eq!(plan.push(OpKind::Join, Class::Gc, &[b]), OpId(3));
        plan.set_recording(false);
        assert_eq!(plan.push(OpKind::Join, Class::Gc, &[b]), OpId::NONE);
    }

    #[test]
    fn every_operation_waits_for_the_first_of_its_command() {
        let mut plan = Plan::default();
        let early = plan.push(OpKind::Join, Class::Gc, &[]);
        plan.clear();
        let command = plan.push(OpKind::Delay(Dur(5)), Class::HostRead, &[]);
        plan.set_first(command);
        let alone = plan.push(OpKind::Join, Class::Gc, &[]);
        plan.push(OpKind::Join, Class::Gc, &[early]);
        plan.push(OpKind::Join, Class::Gc, &[early, alone]);
        plan.push(OpKind::Join, Class::Gc, &[command]);
        let waits = |plan: &Plan| plan.iter().map(|(.., after)| after.to_vec()).collect::<Vec<_>>();
        assert_eq!(
            waits(&plan),
            [vec![], vec![command], vec![early, command], vec![early, alone], vec![command]]
        );
        // the first operation may belong to an earlier plan, if a command is sent after another
        // command
        plan.clear();
        plan.set_first(alone);
        plan.push(OpKind::Join, Class::Gc, &[early]);
        plan.push(OpKind::Join, Class::Gc, &[alone]);
        assert_eq!(waits(&plan), [vec![early, alone], vec![alone]]);
        plan.clear();
        plan.push(OpKind::Join, Class::Idle, &[]);
        assert_eq!(waits(&plan), [vec![]], "the next plan has a first operation of its own");
    }

    #[test]
    fn what_waits_for_time_alone_waits_for_nothing_on_flash() {
        let mut plan = Plan::default();
        let early = plan.push(OpKind::Erase { die: 0, block: DieBlock::new(0) }, Class::Gc, &[]);
        plan.clear();
        let delay = plan.push(OpKind::Delay(Dur(1)), Class::HostRead, &[early]);
        let erase = plan.push(OpKind::Erase { die: 0, block: DieBlock::new(1) }, Class::Gc, &[]);
        let table = OpKind::Memory { kind: MemoryKind::Dram, accesses: 1, bytes: 8, write: false };
        let lookup = plan.push(table, Class::Map, &[delay]);
        let both = plan.join(Class::Map, &[lookup, erase]);
        let alone = |op, done: bool| plan.waits_for_time_alone(&[op], &|_| done);
        assert!(
            alone(lookup, true) && !alone(lookup, false),
            "the lookup waits for an earlier erase"
        );
        assert!(!alone(both, true), "the join waits for an erase of this plan");
    }
}
