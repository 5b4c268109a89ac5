//! Throttling: host writes are delayed as free blocks run low, so that their rate falls before the
//! drive has to collect for each of them.
//!
//! The delay of a write is decided when the write is submitted, from the free blocks at that
//! moment. The transfer of its data waits for the delay. Collection, and units that leave the write
//! cache, do not.

use super::Ssd;
use crate::Cmd;
use flashatlas_ftl::{THROTTLE_FROM, THROTTLE_RATE};
use flashatlas_timing::Engine;
use flashatlas_types::{Cause, Class, Dur, Layout, OpId, OpKind, Params, Plan, Ps, SECTOR_BYTES};

/// The throttling of a drive.
#[derive(Debug)]
pub(super) struct Throttle {
    /// Free blocks above the reserve, over all lanes, below which writes are delayed.
    from: u64,
    /// Bytes a second that are accepted without such blocks.
    rate: u64,
    /// Time at which the drive accepts the next write.
    accepts_at: Ps,
    /// Erases of blocks for data that may be unfinished, an operation for each die of a block.
    erases: Vec<OpId>,
    dies_per_block: u64,
}

impl Throttle {
    /// Returns the throttling that `params` describe, or `None` if writes are never delayed.
    pub fn of(params: &Params, layout: &Layout) -> Option<Box<Throttle>> {
        let from = if params.has(THROTTLE_FROM) { params.get(THROTTLE_FROM) } else { 0 };
        (from > 0).then(|| {
            Box::new(Throttle {
                from: u64::from(from) * u64::from(layout.lanes),
                rate: params.get(THROTTLE_RATE),
                accepts_at: Ps::ZERO,
                erases: Vec::new(),
                dies_per_block: u64::from(layout.dies_per_frame),
            })
        })
    }

    /// Notes the erases of a plan that give blocks back to data.
    pub fn note(&mut self, plan: &Plan) {
        let erases = plan.iter().filter(|(_, op, _)| {
            matches!(op.kind, OpKind::Erase { .. }) && op.cause != Some(Cause::Map)
        });
        self.erases.extend(erases.map(|(id, ..)| id));
    }

    /// Returns the number of blocks whose erase is unfinished.
    fn unfinished(&mut self, engine: &Engine) -> u64 {
        self.erases.retain(|&op| !engine.is_complete(op));
        (self.erases.len() as u64).div_ceil(self.dies_per_block)
    }

    /// Returns the time for which a write of `bytes` at `now` is delayed, with `free` blocks above
    /// the reserve.
    fn delay(&mut self, now: Ps, bytes: u64, free: u64) -> Dur {
        if free >= self.from {
            return Dur::ZERO;
        }
        let without_room = Dur::transfer(bytes, self.rate);
        let share = u128::from(without_room.0) * u128::from(self.from - free);
        let takes = share.div_ceil(u128::from(self.from)) as u64; // at most `without_room`
        let begins = self.accepts_at.max(now);
        self.accepts_at = begins.after(Dur(takes));
        begins.since(now)
    }
}

impl Ssd {
    /// Decides for how long a write is delayed. Returns the operation after which the drive accepts
    /// the data of the command.
    pub(super) fn accepts_after(&mut self, now: Ps, cmd: &Cmd<'_>, first: OpId) -> OpId {
        let Some(throttle) = self.throttle.as_mut().filter(|_| !self.instant) else {
            return first;
        };
        let bytes = match *cmd {
            Cmd::Write { sectors, .. } => u64::from(sectors) * SECTOR_BYTES as u64,
            Cmd::WriteUnits { stamps, .. } => {
                stamps.len() as u64 * u64::from(self.layout.unit_bytes)
            }
            _ => return first,
        };
        let free = self.ftl.free_above_reserve();
        let free = free.saturating_sub(throttle.unfinished(&self.engine));
        match throttle.delay(now, bytes, free) {
            Dur::ZERO => first,
            time => {
                self.counters.throttled_writes += 1;
                self.counters.throttled = self.counters.throttled + time;
                self.plan.push(OpKind::Throttle(time), Class::HostWrite, &[first])
            }
        }
    }
}
