//! State of a device before its next access, with every time counted from the newest read or write.
//!
//! Two devices in the same relative state serve the same accesses in the same clocks, as long as no
//! refresh is due. A time that is too old to delay a command is replaced by a common value: the
//! earliest clock of any command, or a later clock at which another limit ends.

use super::{Allowed, Bank, CLOSED, CommandBus, Dram, NEVER, WINDOW};

/// The whole state in numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Relative(Box<[i32]>);

impl Dram {
    /// Returns the relative state. The state includes the banks that have an open row, but not the
    /// numbers of these rows.
    ///
    /// # Panics
    /// Panics if nothing was served yet.
    pub(crate) fn relative(&self) -> Relative {
        let column = self.column;
        assert!(column >= 0, "nothing was served yet");
        let since = |at: i64| (at - column).max(-WINDOW) as i32;
        let activate = since(self.any.activate);
        let mut all = Vec::with_capacity(2 * self.banks.len() + 3 * self.groups.len() + 16);
        let mut first = i32::MAX;
        for bank in &self.banks {
            // an activation waits for the previous activation, and a refresh comes after the newest
            // read
            let from = match bank.row {
                CLOSED => since(bank.activate).max(activate.min(1)),
                _ => since(bank.precharge),
            };
            all.extend([i32::from(bank.row == CLOSED), from]);
            first = first.min(from);
        }
        all.extend(self.any.column.map(since));
        all.push(activate);
        for group in &self.groups {
            all.extend([0, 1].map(|kind| since(group.column[kind].max(self.any.column[kind]))));
            all.push(since(group.activate).max(activate));
        }
        let oldest_first = (0..4).map(|n| self.four[(self.four_next + n) % 4]);
        all.extend(oldest_first.map(|at| since(at).max(activate)));
        if let Some(bus) = &self.bus {
            let newest = since(bus.newest);
            all.push(newest);
            for begin in (first..=newest).step_by(31) {
                let clocks = begin..=newest.min(begin + 30);
                let taken = clocks.rev().map(|at| bus.is_taken(column + i64::from(at)));
                all.push(taken.fold(0, |bits, taken| bits << 1 | i32::from(taken)));
            }
        }
        Relative(all.into())
    }

    /// Sets the times of this device from a relative state whose newest read or write was at clock
    /// `column`. Open rows, the due refresh and the counts do not change.
    pub(crate) fn take_up(&mut self, Relative(state): &Relative, column: i64) {
        let mut state = state.iter().copied();
        let mut number = || state.next().expect("a state of this device");
        let at = |since: i32| column + i64::from(since);
        self.column = column;
        let mut first = i32::MAX;
        for bank in &mut self.banks {
            let (closed, from) = (number() == 1, number());
            debug_assert_eq!(closed, bank.row == CLOSED, "rows are kept up to date");
            first = first.min(from);
            *bank = if closed {
                Bank { precharge: NEVER, activate: at(from), ..*bank }
            } else {
                Bank { precharge: at(from), activate: NEVER, ..*bank }
            };
        }
        let mut allowed =
            || Allowed { column: [at(number()), at(number())], activate: at(number()) };
        self.any = allowed();
        self.groups.iter_mut().for_each(|group| *group = allowed());
        self.four = std::array::from_fn(|_| at(number()));
        self.four_next = 0;
        if let Some(bus) = &mut self.bus {
            let newest = number();
            *bus = CommandBus { newest: at(newest), ..CommandBus::new() };
            for begin in (first..=newest).step_by(31) {
                let bits = number();
                let taken = (0..31).filter(|n| bits >> n & 1 == 1);
                taken.for_each(|n| bus.take(at(begin + n)));
            }
        }
    }
}
