//! The engine. It issues each command as early as the device and the order of accesses allow.
//!
//! Accesses are served in order. An access needs a precharge if another row is open, an activation
//! if its own row is not open, and its reads or writes. Each of these commands in turn gets the
//! earliest clock that
//! - the timings allow after everything that was issued for earlier accesses,
//! - is free on the command bus,
//! - and comes neither before the access arrived nor more than [`WINDOW`] clocks before the newest
//!   read or write.
//!
//! So the commands of one access overlap with the data of earlier accesses. If only the constraints
//! of Table I hold, this is the recurrence behind the paper's Fig. 6, `CAS[t] = max(CAS[t-1] + CCD,
//! on a row miss: CAS_last(bank) + RTP + RP + RCD)`. Reads, writes and activations keep the order
//! of accesses. This order delays no data as long as tRRD is at most tCCD. With a larger tRRD
//! (lpddr4-3200), a controller that reorders activations could be some clocks faster. Rows stay
//! open until another row of their bank is needed.
//!
//! A due refresh goes before every access that arrives at the due time or later, or whose data bus
//! slot would come then. All banks are precharged, and are then idle for tRFC. If several refreshes
//! are due after a long idle time, all of them are counted, but only the first and the last are
//! shown. An access that takes longer than tREFI delays refreshes; one delayed refresh is then
//! issued before each of the next accesses.

mod relative;

use super::{Device, Rules, Timings};
use flashatlas_types::DramAccess;
pub(crate) use relative::Relative;

/// The largest number of clocks by which a command may come before the newest read or write.
pub const WINDOW: i64 = 1024;

/// A clock before all others.
const NEVER: i64 = i64::MIN / 4;
/// Row number of a bank without an open row.
const CLOSED: u32 = u32::MAX;

/// Kind of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandKind {
    /// Open a row.
    Activate,
    /// Close the row of a bank.
    Precharge,
    /// A burst towards the controller.
    Read,
    /// A burst from the controller.
    Write,
    /// Close every bank.
    PrechargeAll,
    /// Refresh all banks.
    Refresh,
}

/// One command on the command bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The clock at which the command is issued.
    pub at: i64,
    /// The kind of the command.
    pub what: CommandKind,
    /// Bank; 0 for commands to all banks.
    pub bank: u8,
    /// The row that is opened, closed, read or written; 0 for commands to all banks.
    pub row: u32,
}

/// The clocks at which an access was served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Clock of the access's last read or write.
    pub last: i64,
    /// Clock at which all data of the access has been transferred.
    pub data: i64,
}

#[derive(Clone, Copy, Debug)]
struct Bank {
    row: u32,
    group: u32,
    /// The first clock at which the bank may be precharged.
    precharge: i64,
    /// The first clock at which the bank may be activated, while no row is open.
    activate: i64,
}

/// The first clocks at which the timings allow a read, a write and an activation. There is one
/// value for each bank group, and one value that holds for all groups.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    /// First clock of a read, then of a write.
    column: [i64; 2],
    activate: i64,
}

impl Allowed {
    const ALWAYS: Allowed = Allowed { column: [NEVER; 2], activate: NEVER };

    #[inline]
    fn after_column(&mut self, at: i64, gaps: &[i64; 2]) {
        let [read, write] = self.column;
        self.column = [read.max(at + gaps[0]), write.max(at + gaps[1])];
    }
}

/// Clocks from the last burst of a read or of a write to the commands that may follow it.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    /// To a read, and to a write.
    any: [i64; 2],
    /// To a read, and to a write, of the same bank group.
    group: [i64; 2],
    /// To the end of the burst's data.
    data: i64,
    /// To the precharge of the burst's bank.
    precharge: i64,
}

impl Gaps {
    /// Returns the gaps after reads and the gaps after writes.
    fn new(t: &Timings) -> [Gaps; 2] {
        let [ccd_s, ccd_l, cl, cwl] = [t.ccd_s, t.ccd_l, t.cl, t.cwl].map(i64::from);
        let [dl, rtp, wr] = [t.dl, t.rtp, t.wr].map(i64::from);
        // the bus turns round: two clocks between the data of a read and the data of a write
        let turn = cl + dl + 2 - cwl;
        let written = cwl + dl;
        let [wtr_s, wtr_l] = [t.wtr_s, t.wtr_l].map(|wtr| written + i64::from(wtr));
        let read = Gaps {
            any: [ccd_s, ccd_s.max(turn)],
            group: [ccd_l, ccd_l],
            data: cl + dl,
            precharge: rtp,
        };
        let write = Gaps {
            any: [ccd_s.max(wtr_s), ccd_s],
            group: [ccd_l.max(wtr_l), ccd_l],
            data: written,
            precharge: written + wr,
        };
        [read, write]
    }
}

/// A DRAM device and its state after the commands so far.
#[derive(Clone, Debug)]
pub struct Dram {
    timings: Timings,
    gaps: [Gaps; 2],
    banks: Vec<Bank>,
    groups: Vec<Allowed>,
    any: Allowed,
    bus: Option<CommandBus>,
    /// The clocks that 0 to 16 bursts take on the command bus, as bits counted from the first
    /// burst. The value is 0 if the bursts take more than 64 clocks.
    paces: [u64; 17],
    /// Clock of the newest read or write.
    column: i64,
    /// For each of the last four activations, the clock from which on tFAW allows a fifth
    /// activation. The entry of the oldest activation is at `four_next`.
    four: [i64; 4],
    four_next: usize,
    /// The clock at which the next refresh is due.
    refresh: i64,
    /// Refreshes so far.
    pub refreshes: u64,
    /// Activations so far.
    pub activations: u64,
    /// Bursts so far.
    pub bursts: u64,
}

impl Dram {
    /// Returns a device at clock 0, with all rows closed.
    pub fn new(device: &Device, timings: &Timings, rules: Rules) -> Dram {
        let mut t = *timings;
        for (on, clocks) in
            [(rules.ras, &mut t.ras), (rules.rrd, &mut t.rrd_s), (rules.faw, &mut t.faw)]
        {
            *clocks = if on { *clocks } else { 0 };
        }
        t.rrd_l = if rules.rrd { t.rrd_l } else { 0 };
        t.ccd_l = if rules.ccd_l { t.ccd_l } else { t.ccd_s };
        Dram {
            timings: t,
            gaps: Gaps::new(&t),
            banks: (0..device.banks)
                .map(|bank| Bank {
                    row: CLOSED,
                    group: device.group_of(bank),
                    precharge: NEVER,
                    activate: NEVER,
                })
                .collect(),
            groups: vec![Allowed::ALWAYS; device.groups as usize],
            any: Allowed::ALWAYS,
            bus: rules.command_bus.then(CommandBus::new),
            paces: std::array::from_fn(|bursts| {
                let clocks = (0..bursts as u32).map(|n| n * t.ccd_l);
                clocks
                    .map(|at| 1u64.checked_shl(at))
                    .try_fold(0, |all, bit| Some(all | bit?))
                    .unwrap_or(0)
            }),
            column: NEVER,
            four: [NEVER; 4],
            four_next: 0,
            refresh: if rules.refresh { i64::from(t.refi) } else { i64::MAX },
            refreshes: 0,
            activations: 0,
            bursts: 0,
        }
    }

    /// Returns the clock of the newest read or write, or a clock far in the past if there was none.
    pub fn newest(&self) -> i64 {
        self.column
    }

    /// Opens a row of a bank. Returns the row that was open before.
    #[inline]
    pub(crate) fn set_row(&mut self, bank: u8, row: u32) -> u32 {
        std::mem::replace(&mut self.banks[usize::from(bank)].row, row)
    }

    /// Returns `true` if a refresh goes before an access that could be served at clock `at` or a
    /// few clocks later.
    #[inline]
    pub(crate) fn is_refresh_due(&self, at: i64) -> bool {
        at + i64::from(self.timings.ccd_s) >= self.refresh
    }

    /// Serves an access that arrives at clock `from` (0 or later). The function passes each command
    /// to `see` when it issues the command.
    #[inline]
    pub fn serve(
        &mut self,
        access: DramAccess,
        from: i64,
        see: &mut impl FnMut(Command),
    ) -> Served {
        if from.max(self.column + i64::from(self.timings.ccd_s)) >= self.refresh {
            self.refresh_all(from, see);
        }
        let Bank { row, group, .. } = self.banks[usize::from(access.bank)];
        let mut column = from.max(self.column_allowed(group, access.write));
        if row != access.row {
            let earliest = from.max(self.column - WINDOW);
            let opened = self.open(access.bank, access.row, earliest, see);
            column = column.max(opened + i64::from(self.timings.rcd));
        }
        let what = if access.write { CommandKind::Write } else { CommandKind::Read };
        // the later bursts follow at intervals of tCCD_L, because no command that could delay them
        // has been issued
        let pace = i64::from(self.timings.ccd_l);
        let last = column + pace * i64::from(access.bursts - 1);
        if let Some(bus) = &mut self.bus {
            match self.paces.get(usize::from(access.bursts)) {
                _ if access.bursts == 1 => bus.take(column),
                Some(&slots) if slots != 0 => bus.take_all(column, slots, last),
                _ => (0..access.bursts).for_each(|n| bus.take(column + pace * i64::from(n))),
            }
        }
        for n in 0..access.bursts {
            let at = column + pace * i64::from(n);
            see(Command { at, what, bank: access.bank, row: access.row });
        }
        self.bursts += u64::from(access.bursts);
        self.column = last;
        let gaps = &self.gaps[usize::from(access.write)];
        self.any.after_column(last, &gaps.any);
        self.groups[group as usize].after_column(last, &gaps.group);
        let bank = &mut self.banks[usize::from(access.bank)];
        bank.precharge = bank.precharge.max(last + gaps.precharge);
        Served { last, data: last + gaps.data }
    }

    /// Serves the accesses of one operation. The operation arrives at clock `from`. A dependent
    /// access starts when the data of all earlier loads has arrived.
    ///
    /// Returns the clock of the last read or write, and the clock at which all data has been
    /// transferred.
    #[inline]
    pub fn serve_all(
        &mut self,
        accesses: &[DramAccess],
        from: i64,
        see: &mut impl FnMut(Command),
    ) -> Served {
        let mut loaded = from;
        let mut all = Served { last: from, data: from };
        for &access in accesses {
            let served = self.serve(access, if access.dependent { loaded } else { from }, see);
            if !access.write {
                loaded = loaded.max(served.data);
            }
            all = Served { last: served.last, data: all.data.max(served.data) };
        }
        all
    }

    /// Returns the first clock at which the timings allow a read or a write in a bank group.
    #[inline]
    fn column_allowed(&self, group: u32, write: bool) -> i64 {
        let kind = usize::from(write);
        self.any.column[kind].max(self.groups[group as usize].column[kind])
    }

    /// Opens a row, after it closes another row if needed. Returns the clock of the activation.
    fn open(&mut self, bank: u8, row: u32, earliest: i64, see: &mut impl FnMut(Command)) -> i64 {
        let Bank { row: open, group, precharge, activate } = self.banks[usize::from(bank)];
        let mut closed = activate;
        if open != CLOSED {
            let at = slot(&mut self.bus, precharge.max(earliest));
            see(Command { at, what: CommandKind::Precharge, bank, row: open });
            closed = at + i64::from(self.timings.rp);
        }
        let from = self.activation_allowed(group, closed).max(earliest);
        let at = slot(&mut self.bus, from);
        see(Command { at, what: CommandKind::Activate, bank, row });
        let t = &self.timings;
        self.activations += 1;
        self.any.activate = at + i64::from(t.rrd_s);
        self.groups[group as usize].activate = at + i64::from(t.rrd_l);
        self.four[self.four_next] = at + i64::from(t.faw);
        self.four_next = (self.four_next + 1) % 4;
        let precharge = at + i64::from(t.ras);
        self.banks[usize::from(bank)] = Bank { row, group, precharge, activate: NEVER };
        at
    }

    /// Returns the first clock at which the timings between activations allow an activation in a
    /// closed bank of `group`. The bank may be activated from clock `closed` on.
    #[inline]
    fn activation_allowed(&self, group: u32, closed: i64) -> i64 {
        closed
            .max(self.any.activate)
            .max(self.groups[group as usize].activate)
            .max(self.four[self.four_next])
    }

    /// Returns whether the row of an access is open.
    #[inline]
    pub(crate) fn is_open(&self, access: DramAccess) -> bool {
        self.banks[usize::from(access.bank)].row == access.row
    }

    /// Returns the clock that the first read or write of an access would get if the access were
    /// served next. The access arrives at clock `from`. Refreshes and commands on the command bus
    /// are ignored.
    #[inline]
    pub(crate) fn column_if_next(&self, access: DramAccess, from: i64) -> i64 {
        let Bank { row: open, group, precharge, activate } = self.banks[usize::from(access.bank)];
        let column = from.max(self.column_allowed(group, access.write));
        if open == access.row {
            return column;
        }
        let (t, earliest) = (&self.timings, from.max(self.column - WINDOW));
        let closed = match open {
            CLOSED => activate,
            _ => precharge.max(earliest) + i64::from(t.rp),
        };
        column.max(self.activation_allowed(group, closed).max(earliest) + i64::from(t.rcd))
    }

    /// Issues every refresh that is due before an access that arrives at clock `from`.
    #[cold]
    fn refresh_all(&mut self, from: i64, see: &mut impl FnMut(Command)) {
        let t = self.timings;
        let refi = i64::from(t.refi);
        loop {
            let mut at = self.refresh.max(self.column + 1);
            if self.banks.iter().any(|b| b.row != CLOSED) {
                let closes = self.banks.iter().filter(|b| b.row != CLOSED).map(|b| b.precharge);
                let closed = slot(&mut self.bus, closes.fold(at, i64::max));
                see(Command { at: closed, what: CommandKind::PrechargeAll, bank: 0, row: 0 });
                at = closed + i64::from(t.rp);
            }
            at = self
                .banks
                .iter()
                .filter(|b| b.row == CLOSED)
                .map(|b| b.activate)
                .fold(at, i64::max);
            let at = slot(&mut self.bus, at);
            see(Command { at, what: CommandKind::Refresh, bank: 0, row: 0 });
            let activate = at + i64::from(t.rfc);
            for bank in &mut self.banks {
                *bank = Bank { row: CLOSED, precharge: NEVER, activate, ..*bank };
            }
            self.refreshes += 1;
            self.refresh += refi;
            if from < self.refresh {
                return;
            }
            // after a long idle time, the refreshes between the first and the last are counted but
            // not shown
            let rest = (from - self.refresh) / refi;
            self.refreshes += rest as u64;
            self.refresh += rest * refi;
        }
    }
}

/// Takes the first free clock of the command bus from `from` on and returns it. Returns `from`
/// itself if the bus is not modelled.
#[inline]
fn slot(bus: &mut Option<CommandBus>, from: i64) -> i64 {
    match bus {
        Some(bus) => bus.first_free(from),
        None => from,
    }
}

/// The command bus: one bit for each of the last [`SLOTS`] clocks, set if the clock has a command.
#[derive(Clone, Debug)]
struct CommandBus {
    taken: [u64; (SLOTS / 64) as usize],
    /// The newest clock with a command. Later clocks are free, and their bits are stale.
    newest: i64,
}

/// The number of clocks that the command bus stores: [`WINDOW`] clocks before the newest read, and
/// the same number after it for activations.
const SLOTS: i64 = 2 * WINDOW;

impl CommandBus {
    fn new() -> CommandBus {
        CommandBus { taken: [0; (SLOTS / 64) as usize], newest: -1 }
    }

    /// Takes the first free clock from `from` on and returns it.
    #[inline]
    fn first_free(&mut self, from: i64) -> i64 {
        let mut at = from;
        while at <= self.newest {
            debug_assert!(self.newest - at < SLOTS, "a clock that the command bus no longer keeps");
            let taken = &mut self.taken[word(at)];
            let free = !*taken >> (at & 63);
            if free != 0 {
                at += i64::from(free.trailing_zeros());
                *taken |= 1 << (at & 63);
                self.newest = self.newest.max(at);
                return at;
            }
            at = (at | 63) + 1;
        }
        self.take(at);
        at
    }

    /// Takes the clocks whose bits are set in `slots`, counted from clock `at`. The last of these
    /// clocks is `last`. It is later than every clock that was taken before.
    #[inline]
    fn take_all(&mut self, at: i64, slots: u64, last: i64) {
        self.reach(last);
        let shift = (at & 63) as u32;
        self.taken[word(at)] |= slots << shift;
        // the other bits go to the next word; they are shifted in two steps, because one shift by
        // 64 bits is not allowed
        self.taken[word(at + 64)] |= (slots >> 1) >> (63 - shift);
    }

    /// Returns whether a clock that is not later than the newest command has a command.
    fn is_taken(&self, at: i64) -> bool {
        self.taken[word(at)] >> (at & 63) & 1 == 1
    }

    #[inline]
    fn take(&mut self, at: i64) {
        if at > self.newest {
            self.reach(at);
        }
        self.taken[word(at)] |= 1 << (at & 63);
    }

    /// Makes `at` the newest clock with a command, and clears the stale bits of the clocks before
    /// it.
    #[inline]
    fn reach(&mut self, at: i64) {
        let (old, new) = (self.newest >> 6, at >> 6);
        if old != new {
            for w in (old + 1)..=new.min(old + SLOTS / 64) {
                self.taken[(w & (SLOTS / 64 - 1)) as usize] = 0;
            }
        }
        self.newest = at;
    }
}

#[inline]
const fn word(at: i64) -> usize {
    ((at >> 6) & (SLOTS / 64 - 1)) as usize
}
