//! Treatment of records after decoding, in one place for all readers: devices, repeated records,
//! address shift, times, and the account of all these.

use crate::error::{Place, TraceError};
use crate::raw::{Extent, Fault, Raw, Time};
use crate::source::{Account, DeviceMap, JUMP, Jump, MAX_DEVICES, ReadOptions, Record};
use flashatlas_types::{Dur, HostOp, Lba, Ps, Request};

const TOO_FAR: &str = "a time too far from the first record";

/// Gate between a decoder and the consumer of its records.
pub(crate) struct Gate {
    options: ReadOptions,
    clock: Clock,
    /// The latest record of each device, for [`ReadOptions::drop_duplicates`].
    latest: Vec<Option<LastRecord>>,
    /// The record to deliver next, after the flush that was delivered before it.
    pending: Option<Record>,
    delivered: u64,
    ended: bool,
    account: Account,
}

#[derive(Clone, Copy)]
struct LastRecord {
    op: HostOp,
    extent: Extent,
    time_ps: u128,
}

impl Gate {
    pub fn new(options: &ReadOptions) -> Gate {
        Gate {
            options: *options,
            clock: Clock { origin_ps: None, latest: None },
            latest: Vec::new(),
            pending: None,
            delivered: 0,
            ended: false,
            account: Account::default(),
        }
    }

    /// Returns a gate whose times count from `origin_ps`, not from the first record.
    pub fn counting_from(mut self, origin_ps: u128) -> Gate {
        self.clock.origin_ps = Some(origin_ps);
        self
    }

    /// Returns the record to deliver for `raw`, or `Ok(None)` if the options leave it out. `raw`
    /// was decoded at `place`.
    ///
    /// A record that is refused or not selected has no effect on the next record. After a
    /// duplicate, the next record is compared with the duplicate, not with the record before it.
    #[inline]
    pub fn admit(&mut self, raw: &Raw, place: Place) -> Result<Option<Record>, Fault> {
        let device = match self.options.device_map {
            DeviceMap::Separate => raw.device,
            DeviceMap::Collapse => 0,
            DeviceMap::Select(number) if number == raw.device => 0,
            DeviceMap::Select(_) => {
                self.account.not_selected += 1;
                return Ok(None);
            }
        };
        let extent = self.shifted(raw)?;
        if self.options.drop_duplicates.is_some_and(|window| self.repeats(raw, window)) {
            self.account.duplicates_dropped += 1;
            self.remember(raw);
            return Ok(None);
        }
        let at = self.time(raw.time, place)?;
        if self.options.drop_duplicates.is_some() {
            self.remember(raw);
        }
        let request = Request {
            at,
            op: raw.op,
            lba: Lba(extent.first),
            sectors: extent.sectors,
            fua: raw.fua,
        };
        let record = Record { request, device };
        self.delivered += 1;
        self.account.last_place = Some(place);
        if !raw.preflush {
            return Ok(Some(record));
        }
        self.pending = Some(record);
        Ok(Some(Record {
            request: Request { at, op: HostOp::Flush, lba: Lba(0), sectors: 0, fua: false },
            device,
        }))
    }

    /// Returns the record that waits behind its flush, if there is one.
    #[inline]
    pub fn pending(&mut self) -> Option<Record> {
        let record = self.pending.take()?;
        self.delivered += 1;
        Some(record)
    }

    #[inline]
    fn shifted(&self, raw: &Raw) -> Result<Extent, Fault> {
        if raw.op == HostOp::Flush {
            return Ok(Extent::NONE);
        }
        raw.extent.shifted(self.options.shift_sectors).ok_or(Fault::whole(
            "the address shift moves the request off the drive",
            "a smaller shift",
        ))
    }

    /// Returns `true` if `raw` repeats the latest record of its device within `window`.
    fn repeats(&self, raw: &Raw, window: Dur) -> bool {
        let before = self.latest.get(raw.device as usize).copied().flatten();
        before.is_some_and(|before| {
            (before.op, before.extent) == (raw.op, raw.extent)
                && before.time_ps.abs_diff(raw.time.ps) <= u128::from(window.0)
        })
    }

    /// Notes `raw` as the record that the next record of its device may repeat.
    fn remember(&mut self, raw: &Raw) {
        assert!(raw.device < MAX_DEVICES, "readers number devices below the limit");
        let index = raw.device as usize;
        if index >= self.latest.len() {
            self.latest.resize(index + 1, None);
        }
        self.latest[index] =
            Some(LastRecord { op: raw.op, extent: raw.extent, time_ps: raw.time.ps });
    }

    #[inline]
    fn time(&mut self, time: Time, place: Place) -> Result<Ps, Fault> {
        let tick = self.clock.tick(time, self.options.time_gap_max)?;
        if let Some(step_ps) = tick.jump
            && self.account.first_jump.is_none()
        {
            self.account.first_jump = Some(Jump { place, step_ps });
        }
        self.account.gaps_cut += u64::from(tick.cut && !tick.back);
        self.account.before_first += u64::from(tick.early);
        self.account.backward_steps += u64::from(tick.cut && tick.back);
        Ok(tick.at)
    }

    /// Skips a bad record. Returns its error if the allowance is used up and the options do not
    /// skip its kind.
    pub fn reject(&mut self, error: TraceError) -> Result<(), TraceError> {
        let by_kind = error.kind.is_some_and(|kind| self.options.skip_kinds.has(kind));
        if by_kind || self.account.skipped_bad < self.options.skip_bad {
            self.account.skipped_bad += 1;
            if let Some(kind) = error.kind {
                self.account.skipped_kinds[kind as usize] += 1;
            }
            return Ok(());
        }
        Err(self.fail(error))
    }

    /// Ends the source, and returns `error` with the number of its record and the number of skipped
    /// records.
    pub fn fail(&mut self, error: TraceError) -> TraceError {
        self.ended = true;
        let skipped = self.account.skipped_bad;
        TraceError { record: self.delivered + skipped + 1, skipped, ..error }
    }

    /// Ends the input, with the error `empty` if no record came before.
    pub fn finish(
        &mut self,
        empty: impl FnOnce() -> TraceError,
    ) -> Result<Option<Record>, TraceError> {
        if self.delivered > 0 || self.ended {
            self.ended = true;
            return Ok(None);
        }
        let mut error = empty();
        if let (DeviceMap::Select(number), true) =
            (self.options.device_map, self.account.not_selected > 0)
        {
            error.why = format!("the trace holds no request of device {number}").into();
            error.expected = "the number of a device of the trace, counted from 0 in order of \
                              appearance";
        }
        Err(self.fail(error))
    }

    /// Returns the origin of all times, or `None` before the first record.
    pub fn origin_ps(&self) -> Option<u128> {
        self.clock.origin_ps
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the account so far, without the names of devices.
    pub fn account(&self) -> Account {
        self.account.clone()
    }
}

/// Conversion from the times of a trace to times since its first record.
struct Clock {
    origin_ps: Option<u128>,
    /// The latest time in the trace, and the same time in picoseconds since the origin. The second
    /// is negative before the origin.
    latest: Option<(u128, i128)>,
}

struct Tick {
    at: Ps,
    /// The step in the trace, if it is a jump.
    jump: Option<i128>,
    cut: bool,
    back: bool,
    /// `true` if the time is before the origin.
    early: bool,
}

impl Clock {
    /// Returns `time` as a time since the origin. Returns an error and changes nothing if [`Ps`]
    /// cannot hold the result.
    #[inline]
    fn tick(&mut self, time: Time, gap_max: Option<Dur>) -> Result<Tick, Fault> {
        let origin = self.origin_ps.unwrap_or(time.ps);
        // decoders yield times below 2^107 ps: a 64-bit number of units of at most 10^12 ps
        let signed = |from: u128| time.ps as i128 - from as i128;
        let (step, before) = match self.latest {
            Some((trace_ps, became)) => (signed(trace_ps), became),
            None => (0, signed(origin)),
        };
        let limit = gap_max.map_or(i128::MAX, |gap| i128::from(gap.0));
        let back = step < 0;
        let cut = step.abs() > limit;
        let moved = match (cut, back) {
            (false, _) => before + step,
            (true, false) => before + limit,
            (true, true) => before,
        };
        let at = u64::try_from(moved.max(0)).map_err(|_| Fault {
            why: TOO_FAR.into(),
            expected: match gap_max {
                None => "at most 213 days (‹time_gap_max› cuts long gaps)",
                Some(_) => "at most 213 days (a smaller ‹time_gap_max› cuts more)",
            },
            span: time.span,
            kind: None,
        })?;
        self.origin_ps = Some(origin);
        self.latest = Some((time.ps, moved));
        let jump = (step.abs() > i128::from(JUMP.0)).then_some(step);
        Ok(Tick { at: Ps(at), jump, cut, back, early: moved < 0 })
    }
}
