//! The budget for log blocks.

use flashatlas_types::{OpId, Violation};
use std::collections::VecDeque;

/// The budget of the log: log blocks in use, and a slot for each log block that may still be taken.
/// The sum of slots and log blocks exceeds the limit in two cases only: after a mount that found
/// more log blocks, and while a log block is being emptied into another log block.
pub(crate) struct LogBudget {
    in_use: u32,
    limit: u32,
    /// For each log block that may still be taken, the erase that frees its room.
    slots: VecDeque<OpId>,
    /// Log blocks in the areas' budgets that no longer exist, because blocks have gone bad.
    deficit: u32,
}

impl LogBudget {
    /// Creates the budget for `limit` log blocks, none of which is in use.
    pub fn new(limit: u32) -> LogBudget {
        let slots = std::iter::repeat_n(OpId::NONE, limit as usize).collect();
        LogBudget { in_use: 0, limit, slots, deficit: 0 }
    }

    /// Returns the number of log blocks in use.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Returns the number of log blocks that may be in use.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the number of log blocks that may still be taken.
    pub fn free_slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the number of log blocks that the areas must still give up.
    pub fn deficit(&self) -> u32 {
        self.deficit
    }

    /// Returns the erase that frees the room for the next log block.
    pub fn next_room(&self) -> OpId {
        self.slots.front().copied().unwrap_or(OpId::NONE)
    }

    /// Counts a log block that is taken. The log block uses up a slot. If no slot is left, another
    /// log block is being emptied.
    pub fn take(&mut self) {
        self.in_use += 1;
        self.slots.pop_front();
    }

    /// Counts a log block that a mount found. It uses up no slot. [`LogBudget::fit_slots`] corrects
    /// the slots later.
    pub fn found(&mut self) {
        self.in_use += 1;
    }

    /// Releases a log block. Its room is free once `erase` is complete.
    pub fn release(&mut self, erase: OpId) {
        self.in_use -= 1;
        if self.in_use + self.free_slots() < self.limit {
            self.slots.push_back(erase);
        }
    }

    /// Lowers the limit by one log block that was lost to bad blocks, after an area gave up a log
    /// block.
    pub fn give_up(&mut self) {
        self.limit -= 1;
        self.deficit -= 1;
        if self.in_use + self.free_slots() > self.limit {
            self.slots.pop_back();
        }
    }

    /// Sets the deficit of a log of `own` blocks that has room for only `room` blocks. Both numbers
    /// exclude log blocks that store data in place of data blocks.
    pub fn set_deficit(&mut self, own: u32, room: u32) {
        self.deficit = own.saturating_sub(room);
    }

    /// Raises the limit temporarily to the number of log blocks in use, because a mount found more
    /// log blocks than the budget allows.
    pub fn borrow(&mut self) {
        self.limit = self.limit.max(self.in_use);
    }

    /// Lowers the limit to `limit` again, but not below the number of log blocks in use. A mount
    /// has emptied its surplus as far as possible before.
    pub fn end_borrowing(&mut self, limit: u32) {
        self.limit = limit.max(self.in_use).min(self.limit);
        self.fit_slots();
    }

    /// Removes slots until slots and log blocks together fit the limit.
    pub fn fit_slots(&mut self) {
        self.slots.truncate((self.limit - self.in_use) as usize);
    }

    /// Checks that slots and log blocks stay within the limit.
    ///
    /// # Errors
    /// Returns an error if the rule does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        let within = self.in_use + self.free_slots() <= self.limit.max(self.in_use);
        Violation::unless(within, "log blocks and slots keep the budget", || {
            format!(
                "{} log blocks and {} slots are in use, but the budget is {}",
                self.in_use,
                self.slots.len(),
                self.limit
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_blocks_and_slots_never_exceed_the_limit() {
        let mut budget = LogBudget::new(2);
        budget.take();
        assert_eq!((budget.next_room(), budget.free_slots()), (OpId::NONE, 1));
        budget.take();
        budget.take(); // while another log block is being emptied
        budget.release(OpId(7));
        assert_eq!((budget.in_use(), budget.free_slots()), (2, 0), "no slot beyond the limit");
        budget.release(OpId(8));
        assert_eq!((budget.free_slots(), budget.next_room()), (1, OpId(8)));
        budget.take();
        budget.set_deficit(2, 1);
        budget.release(OpId(9));
        budget.give_up();
        assert_eq!((budget.limit(), budget.deficit(), budget.free_slots()), (1, 0, 0));
        budget.check().unwrap();
    }

    #[test]
    fn a_mount_may_find_more_than_there_may_be() {
        let mut budget = LogBudget::new(1);
        (0..3).for_each(|_| budget.found());
        budget.borrow();
        budget.fit_slots();
        assert_eq!((budget.limit(), budget.free_slots()), (3, 0));
        budget.release(OpId(1));
        budget.end_borrowing(1);
        assert_eq!((budget.limit(), budget.in_use(), budget.free_slots()), (2, 2, 0));
        budget.check().unwrap();
    }
}
