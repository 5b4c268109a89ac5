//! One drive. The host of the drive keeps its clock.
//!
//! Every call of the host has a time. Before a command is submitted, all events up to this time are
//! handled. A command that completes during this step stays in flight until the host fetches it.

mod power;
mod record;

pub use power::Power;
pub use record::Tally;

use crate::abi::{FA_LATEST, FA_NEVER, FaCode, FaCommand, FaDone, FaGeometry, FaReply};
use crate::command::{Refusal, checked, has_room, op_of, put, refuse};
use flashatlas_device::params::QUEUE_DEPTH;
use flashatlas_device::{DeviceShape, Done, DriveConfig, Reply, Stack, SubmitError};
use flashatlas_nand::params::DATA;
use flashatlas_types::{Dur, HostOp, Ps, SECTOR_BYTES, Seed, Tag};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Smallest content number that the drive gives to a write.
const CONTENT: u64 = 1 << 60;

/// Smallest content number of `fa_fill`.
const FILLED: u64 = 1 << 62;

/// A command that the host has not fetched yet.
struct InFlight {
    op: HostOp,
    since: Ps,
    complete: bool,
}

/// A drive, its layers, and the commands that the host has in flight.
pub struct Drive {
    pub(crate) config: DriveConfig,
    pub(crate) seed: Seed,
    pub(crate) power: Power,
    /// Number of power failures.
    pub(crate) cuts: u64,
    shape: DeviceShape,
    keeps_bytes: bool,
    queue_depth: u32,
    /// The time that the drive has reached. No call may have an earlier time.
    pub(crate) clock: Ps,
    in_flight: FxHashMap<u64, InFlight>,
    /// Number of commands in `in_flight` that are not complete.
    incomplete: usize,
    /// Commands that are complete but were not fetched yet.
    waiting: VecDeque<Done>,
    /// Commands that an event completed; empty between calls.
    arrived: Vec<Done>,
    reply: Reply,
    /// Number of the next write to which the host gives no number, counted from `CONTENT`.
    pub(crate) writes: u64,
    pub(crate) tally: Tally,
}

/// Returns the device if the power is on.
fn powered(power: &mut Power) -> Result<&mut Stack, Refusal> {
    match power {
        Power::On(stack) => Ok(stack),
        Power::Off { .. } => {
            Err(refuse(FaCode::FA_ERR_POWER_OFF, "the power is off; call fa_power_on"))
        }
        Power::Gone(why) => Err(refuse(FaCode::FA_ERR_FAILED, why.clone())),
    }
}

/// Makes everything in memory durable, in no simulated time.
pub(crate) fn make_durable(stack: &mut Stack) -> Result<(), SubmitError> {
    stack.set_instant(true);
    let durable = stack.make_durable();
    stack.set_instant(false);
    durable
}

impl Drive {
    /// Returns a blank drive at time zero.
    pub fn new(
        name: &str,
        toml: Option<&str>,
        settings: &[String],
        seed: u64,
    ) -> Result<Drive, Refusal> {
        let refused =
            |e: flashatlas_types::ConfigError| refuse(FaCode::FA_ERR_ARGUMENT, e.to_string());
        let config = crate::parts::registry().load(name, toml, settings).map_err(refused)?;
        let stack = config.build_stack(Seed(seed)).map_err(refused)?;
        Ok(Drive {
            shape: stack.shape(),
            keeps_bytes: config.params.get(DATA) == "ram",
            queue_depth: config.params.get(QUEUE_DEPTH),
            config,
            seed: Seed(seed),
            power: Power::On(stack),
            cuts: 0,
            clock: Ps::ZERO,
            in_flight: FxHashMap::default(),
            incomplete: 0,
            waiting: VecDeque::new(),
            arrived: Vec::new(),
            reply: Reply::default(),
            writes: 0,
            tally: Tally::default(),
        })
    }

    /// Returns the shape that the host sees.
    pub fn geometry(&self) -> FaGeometry {
        FaGeometry {
            sectors: self.shape.sectors,
            unit_bytes: self.shape.unit_sectors * SECTOR_BYTES,
            queue_depth: self.queue_depth,
            keeps_bytes: u32::from(self.keeps_bytes),
            reserved: 0,
        }
    }

    /// Returns `true` if the power is on.
    pub fn is_on(&self) -> bool {
        matches!(self.power, Power::On(_))
    }

    /// Returns the number of commands that were not fetched yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the time of a call, or an error if the time is too early or too late.
    pub(crate) fn reached(&self, now: u64) -> Result<Ps, Refusal> {
        let why = if now < self.clock.0 {
            format!(
                "the time {now} ps is before {} ps, which the drive has already reached",
                self.clock.0
            )
        } else if now > FA_LATEST {
            format!("the time {now} ps is after FA_LATEST ({FA_LATEST} ps)")
        } else {
            return Ok(Ps(now));
        };
        Err(refuse(FaCode::FA_ERR_TIME, why))
    }

    /// Submits a command: `fa_submit`.
    ///
    /// # Safety
    /// The buffers of `command` and `place` are null or as long as the two structures say.
    pub unsafe fn submit(
        &mut self,
        now: u64,
        tag: u64,
        command: &FaCommand,
        mut place: Option<&mut FaReply>,
    ) -> Result<(), Refusal> {
        if let Some(place) = &mut place {
            (place.data_bytes, place.stamp_count) = (0, 0);
        }
        powered(&mut self.power)?;
        let now = self.reached(now)?;
        if tag >> 63 != 0 {
            let why = format!("the highest bit of tag {tag} must be 0");
            return Err(refuse(FaCode::FA_ERR_ARGUMENT, why));
        }
        if self.in_flight.contains_key(&tag) {
            let why = format!("tag {tag} is already in flight, or is complete but not fetched");
            return Err(refuse(FaCode::FA_ERR_ARGUMENT, why));
        }
        if self.in_flight.len() >= self.queue_depth as usize {
            let why = format!(
                "{} commands are in flight, which is the limit (host.queue_depth)",
                self.queue_depth
            );
            return Err(refuse(FaCode::FA_ERR_QUEUE_FULL, why));
        }
        let content = CONTENT + self.writes;
        // SAFETY: as the caller promises
        let cmd = unsafe { checked(command, &self.shape, self.keeps_bytes, content)? };
        if let Some(place) = &place {
            has_room(place, &cmd, &self.shape, self.keeps_bytes)?;
        }
        self.run(now.0)?;
        self.clock = self.clock.max(now);
        let submitted = powered(&mut self.power)?.submit(now, Tag(tag), cmd, &mut self.reply);
        self.still_on(now)?;
        submitted.map_err(|error| self.refused(error))?;
        let op = op_of(command)?;
        self.writes += u64::from(op == HostOp::Write);
        self.tally.submitted(op, u64::from(command.sectors) * u64::from(SECTOR_BYTES));
        self.incomplete += 1;
        self.in_flight.insert(tag, InFlight { op, since: now, complete: false });
        if let Some(place) = place {
            // SAFETY: as the caller promises; `has_room` agreed
            unsafe { put(place, &self.reply) };
        }
        Ok(())
    }

    /// Returns the refusal for an error of the device.
    pub(crate) fn refused(&mut self, error: SubmitError) -> Refusal {
        let code = match powered(&mut self.power).map(|stack| stack.top().failure()) {
            Ok(None) => FaCode::FA_ERR_UNREADABLE,
            Ok(Some(_)) | Err(_) => FaCode::FA_ERR_FAILED,
        };
        refuse(code, error.to_string())
    }

    /// Returns an error if the power failed in the last operation because a cut was requested.
    pub(crate) fn still_on(&mut self, now: Ps) -> Result<(), Refusal> {
        let lost =
            |stack: &Stack| stack.drives().iter().any(|drive| drive.medium().has_lost_power());
        match &self.power {
            Power::On(stack) if lost(stack) => {
                self.lose_power(now);
                Err(refuse(FaCode::FA_ERR_POWER_LOST, "the power failed (fa_power_cut_after)"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the time of the next event, or [`FA_NEVER`] if there is none.
    pub fn next_event(&self) -> u64 {
        let waiting = self.waiting.front().map(|done| done.at);
        let next = match &self.power {
            Power::On(stack) => stack.next_event(),
            Power::Off { .. } | Power::Gone(_) => None,
        };
        waiting.into_iter().chain(next).min().map_or(FA_NEVER, |at| at.0)
    }

    /// Handles all events up to and including `until`.
    ///
    /// With `FA_NEVER`, the function returns when all commands are complete. Without power it does
    /// nothing.
    pub fn run(&mut self, until: u64) -> Result<(), Refusal> {
        // the loop ends, because each round handles one event and a plan has at most one event per
        // operation
        while (until != FA_NEVER || self.incomplete > 0)
            && let Power::On(stack) = &mut self.power
            && let Some(at) = stack.next_event().filter(|at| at.0 <= until)
        {
            stack.advance(at, &mut self.arrived);
            self.clock = self.clock.max(at);
            for done in self.arrived.drain(..) {
                let of = self.in_flight.get_mut(&done.tag.0).expect("the command was submitted");
                of.complete = true;
                self.incomplete -= 1;
                self.tally.completed(of.op, done.at.since(of.since));
                self.waiting.push_back(done);
            }
            self.still_on(at)?;
        }
        Ok(())
    }

    /// Returns the next command that is complete by `until`, or `None` if there is none.
    pub fn fetch(&mut self, until: u64) -> Option<FaDone> {
        let done = *self.waiting.front().filter(|done| done.at.0 <= until)?;
        self.waiting.pop_front();
        self.in_flight.remove(&done.tag.0);
        Some(FaDone { tag: done.tag.0, at_ps: done.at.0 })
    }

    /// Passes idle time: `fa_idle`.
    pub fn idle(&mut self, now: u64, until: u64) -> Result<(), Refusal> {
        powered(&mut self.power)?;
        let now = self.reached(now)?;
        let until = self.reached(until)?;
        self.run(now.0)?;
        if until <= now || self.incomplete > 0 {
            return Ok(());
        }
        let worked = powered(&mut self.power)?.idle(now, until);
        self.clock = self.clock.max(until);
        self.still_on(until)?;
        worked.map_err(|error| self.refused(error))
    }

    /// Removes the commands in flight that a power cut loses, which are the incomplete commands.
    pub(crate) fn forget_in_flight(&mut self) {
        self.in_flight.retain(|_, of| of.complete);
        self.incomplete = 0;
    }

    /// Handles events until the drive has no work left. Returns an error if a command is in flight.
    pub(crate) fn rest(&mut self) -> Result<&mut Stack, Refusal> {
        powered(&mut self.power)?;
        let busy = self.in_flight.len();
        if busy > 0 {
            let why = format!("{busy} commands are in flight, or are complete but not fetched");
            return Err(refuse(FaCode::FA_ERR_BUSY, why));
        }
        let stack = powered(&mut self.power)?;
        self.clock = self.clock.max(stack.drain());
        Ok(stack)
    }

    /// Fills the drive: `fa_fill`.
    pub fn fill(&mut self) -> Result<(), Refusal> {
        let stack = self.rest()?;
        // the fill bypasses the write cache, so older data in the cache must be written first
        let filled = make_durable(stack)
            .and_then(|()| stack.fill_while(|lpn| FILLED + u64::from(lpn.0), &mut |_| true))
            .map(|_| ());
        self.still_on(self.clock)?;
        filled.map_err(|error| self.refused(error))
    }

    /// Plans a power failure: `fa_power_cut_after`.
    pub fn power_cut_after(&mut self, operations: u64) -> Result<(), Refusal> {
        if operations == u64::MAX {
            return Err(refuse(
                FaCode::FA_ERR_ARGUMENT,
                "`operations` is the largest number, which no drive reaches",
            ));
        }
        let single = self.config.single_drive("fa_power_cut_after");
        single.map_err(|e| refuse(FaCode::FA_ERR_ARGUMENT, e.to_string()))?;
        powered(&mut self.power)?.ssd_mut().faults().cut_power_after(operations);
        Ok(())
    }

    /// Checks all rules: `fa_check`.
    pub fn check(&mut self) -> Result<(), Refusal> {
        let checked = powered(&mut self.power)?.top().check();
        checked.map_err(|violation| refuse(FaCode::FA_ERR_CHECK, violation.to_string()))?;
        let drives = powered(&mut self.power)?.drives();
        let media = drives.into_iter().try_for_each(|drive| drive.medium().check());
        media.map_err(|violation| refuse(FaCode::FA_ERR_CHECK, violation.to_string()))
    }

    /// Sets counters to zero: `fa_reset_counters`.
    pub fn reset_counters(&mut self) -> Result<(), Refusal> {
        powered(&mut self.power)?.top_mut().reset_counters();
        self.tally = Tally::default();
        Ok(())
    }

    /// Returns the record: `fa_record_json`.
    pub fn record(&mut self) -> Result<serde_json::Value, Refusal> {
        powered(&mut self.power)?;
        Ok(record::record(self))
    }

    /// Switches the power on: `fa_power_on`.
    pub fn power_on(&mut self, now: u64) -> Result<u64, Refusal> {
        let now = self.reached(now)?;
        let mount: Dur = self.mount()?;
        self.clock = now.after(mount);
        Ok(self.clock.0)
    }

    /// Cuts the power: `fa_power_cut`.
    pub fn power_cut(&mut self, now: u64) -> Result<(), Refusal> {
        powered(&mut self.power)?;
        let now = self.reached(now)?;
        self.run(now.0)?;
        self.lose_power(now);
        Ok(())
    }
}
