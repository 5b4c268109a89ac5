//! The commands of a block device, on a simulated drive.

use crate::clock::Clock;
use crate::disk::{Open, on_file};
use crate::image::Found;
use crate::mark::Verify;
use crate::mount::powered_on;
use crate::notes::{FLUSH_IGNORED, FUA_IGNORED, SERVED_AT_ARRIVAL};
use crate::parts::{STANDARD_PARTS, environment};
use crate::record::{OfServing, late_note, live, served};
use crate::recorder::Recorder;
use crate::spec::{Refused, ServeError, ServeSpec, Time};
use crate::state::State;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};
use flashatlas_sim::{Environment, Live, RunError};
use flashatlas_types::{HostOp, Lba, Lpn, Ps, Request, Rng, SECTOR_BYTES, Seed, Stamp};
use hdrhistogram::Histogram;
use serde_json::Value;

/// Largest delay of a reply, in nanoseconds. It is an hour, and a longer delay is counted as an
/// hour.
const LATE_MAX: u64 = 3_600_000_000_000;

/// End of serving.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The run record; `None` after a power failure.
    pub record: Option<Value>,
    /// Message about the error that occurred, if any.
    pub complaint: Option<String>,
}

/// A drive that is served.
pub struct Server<C> {
    plan: ServeSpec,
    clock: C,
    sectors: u64,
    unit_sectors: u32,
    queue_depth: usize,
    zeroes_by_trim: bool,
    found: Found,
    /// Number of client commands that were not answered yet.
    outstanding: AtomicUsize,
    /// Number of commands that clients wait for, if the program that serves the drive reports it.
    waited_for: AtomicUsize,
    /// Number of client writes with FUA.
    fua_writes: AtomicU64,
    /// Bytes of client writes.
    written: AtomicU64,
    /// `true` if the power must fail in the next flash operation.
    cut: AtomicBool,
    state: Mutex<State>,
}

impl<C: Clock> Server<C> {
    /// Powers on the drive of `plan`, with the standard parts and the plan's image, if any.
    ///
    /// # Errors
    /// Returns a [`ServeError`] if the plan does not describe a valid drive, or if the image
    /// belongs to another drive.
    pub fn begin(plan: &ServeSpec, clock: C) -> Result<Server<C>, ServeError> {
        Self::begin_on(plan, &environment(&STANDARD_PARTS, plan), on_file(plan), clock)
    }

    /// Powers on the drive of `plan` with the parts of `env`. `open` opens the disk of the image.
    ///
    /// # Errors
    /// Returns a [`ServeError`] if the plan does not describe a valid drive, if the image belongs
    /// to another drive, or if the power failed during the mount.
    pub fn begin_on(
        plan: &ServeSpec,
        env: &Environment<'_>,
        open: Option<Open<'_>>,
        clock: C,
    ) -> Result<Server<C>, ServeError> {
        let (mut live, image, found) = powered_on(plan, env, open, Verify::New)?;
        let recorder = plan.trace.as_deref().map(|path| {
            let io = |error| RunError::Io { path: path.display().to_string(), error };
            Recorder::begin(path).map_err(io)
        });
        let recorder = recorder.transpose()?;
        let shape = live.shape();
        let server = Server {
            plan: plan.clone(),
            clock,
            sectors: shape.sectors,
            unit_sectors: shape.unit_sectors,
            queue_depth: live.queue_depth(),
            zeroes_by_trim: !live.drive().top().forgets_trims(),
            found,
            outstanding: AtomicUsize::new(0),
            waited_for: AtomicUsize::new(0),
            fua_writes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            state: Mutex::new(State {
                live: Some(live),
                image,
                gone: None,
                late: Histogram::new_with_max(LATE_MAX, 3).expect("three digits"),
                recorder,
                cut_mode: plan.cut_mode,
                rng: Rng::stream(Seed(plan.seed), "serve.power"),
            }),
        };
        server.lock().persist(true).map_err(|why| ServeError::Run(RunError::Unusable(why)))?;
        Ok(server)
    }

    /// Returns the capacity that the drive exports, in bytes.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(SECTOR_BYTES)
    }

    /// Returns the size of a mapping unit in bytes. For a smaller write, the drive reads the unit,
    /// changes it and writes it.
    pub fn unit_bytes(&self) -> u32 {
        self.unit_sectors * SECTOR_BYTES
    }

    /// Returns the number of sectors that the drive exports.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the number of commands that the drive takes at the same time.
    pub fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    /// Returns `true` if no other thread uses the drive, so that a command would not have to wait.
    pub(crate) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    /// Reads as [`Server::read`] does, but does not wait until the drive completes the command.
    /// Returns the ticket for [`Server::wait`] unless the command is complete.
    pub(crate) fn submit_read(&self, out: &mut [u8], offset: u64) -> Result<Option<u64>, Refused> {
        let Time::Real(slower) = self.plan.time else {
            return self.read(out, offset).map(|()| None);
        };
        let request = self.request(HostOp::Read, offset, out.len() as u64, false)?;
        self.in_time(&request, None, Some(out), slower).map(Some)
    }

    /// Writes as [`Server::write`] does without FUA, but does not wait until the drive completes
    /// the command. Returns the ticket for [`Server::wait`] unless the command is complete.
    pub(crate) fn submit_write(&self, data: &[u8], offset: u64) -> Result<Option<u64>, Refused> {
        let Time::Real(slower) = self.plan.time else {
            return self.write(data, offset, false).map(|()| None);
        };
        let request = self.request(HostOp::Write, offset, data.len() as u64, false)?;
        self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.in_time(&request, Some(data), None, slower).map(Some)
    }

    /// Waits until the drive completes the command of a ticket.
    pub(crate) fn wait(&self, ticket: u64) -> Result<(), Refused> {
        match self.plan.time {
            Time::None => Ok(()),
            Time::Real(slower) => self.completes(ticket, slower),
        }
    }

    /// Returns `true` if [`Server::wait`] would return immediately; `false` if the drive is in use.
    pub(crate) fn is_complete(&self, ticket: u64) -> bool {
        let Time::Real(slower) = self.plan.time else { return true };
        let Ok(mut state) = self.state.try_lock() else { return false };
        let now = self.clock.simulated(slower);
        let completion = state.advance(now).and_then(|()| Ok(state.on()?.completion(ticket)));
        completion.is_ok_and(|at| at.is_some_and(|at| at <= now))
    }

    /// Sets the number of commands that clients wait for. A thread may wait for several. With
    /// [`Time::None`], the drive has this many in flight, but at most [`Server::queue_depth`].
    pub(crate) fn waited_for(&self, commands: usize) {
        self.waited_for.store(commands, Ordering::Relaxed);
    }

    /// Returns `true` if trimmed units read as zeros after a power failure, too.
    pub fn keeps_trims(&self) -> bool {
        self.zeroes_by_trim
    }

    /// Returns the record of the NVMe controller from the image, or `None` if none is kept there.
    ///
    /// # Errors
    /// Returns [`Refused`] if the image cannot be read.
    pub fn kept(&self) -> Result<Option<Vec<u8>>, Refused> {
        let mut state = self.lock();
        let kept = state.image.as_mut().map_or(Ok(None), |image| image.home().read());
        kept.map_err(|error| {
            Refused::Failed(format!("the image cannot be read or written: {error}"))
        })
    }

    /// Makes the record of the NVMe controller durable in the image, if there is an image.
    ///
    /// # Errors
    /// Returns [`Refused`] if nothing is served any more, or if the image cannot be written.
    pub fn keep(&self, record: &[u8]) -> Result<(), Refused> {
        let mut state = self.lock();
        state.on()?;
        let kept = state.image.as_mut().map_or(Ok(()), |image| image.home().write(record));
        kept.map_err(|error| state.fail(format!("the image cannot be read or written: {error}")))
    }

    /// Returns the result of `look`, which gets the drive and the number of bytes that clients have
    /// written.
    ///
    /// # Errors
    /// Returns [`Refused`] if nothing is served any more.
    pub(crate) fn seen<T>(&self, look: impl FnOnce(&mut Live, u64) -> T) -> Result<T, Refused> {
        let mut state = self.lock();
        let live = state.on()?;
        Ok(look(live, self.written.load(Ordering::Relaxed)))
    }

    /// Returns the damage that the mount found in the image, and the number of programmed frames.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Returns the reason why the drive is no longer served, or `None` while it is served.
    pub fn gone(&self) -> Option<Refused> {
        self.lock().gone.clone()
    }

    /// Returns the present state of the drive (JSON; `docs/FORMATS.md`).
    ///
    /// # Errors
    /// Returns [`Refused`] if nothing is served any more.
    pub fn look(&self) -> Result<Value, Refused> {
        let clock = self.clock.now();
        let mut state = self.lock();
        let late = state.late.clone();
        Ok(live(&self.plan, state.on()?, clock, &late))
    }

    /// Makes the power fail in the next flash operation.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    /// Makes the power fail in the flash operation after the next `operations` operations.
    ///
    /// # Errors
    /// Returns [`Refused`] if nothing is served any more.
    pub fn cut_after(&self, operations: u64) -> Result<(), Refused> {
        self.lock().on()?.drive().ssd_mut().faults().cut_power_after(operations);
        Ok(())
    }

    /// Returns the number of flash operations until the power fails, if a failure is planned.
    ///
    /// # Errors
    /// Returns [`Refused`] if nothing is served any more.
    pub fn operations_until_cut(&self) -> Result<Option<u64>, Refused> {
        Ok(self.lock().on()?.drive().ssd().medium().operations_until_cut())
    }

    /// Makes the power fail in the next flash operation, if the time of a planned failure has come.
    fn cut_if_due(&self, state: &mut State) -> Result<(), Refused> {
        let at = |seconds: f64| self.clock.now().0 as f64 >= seconds * 1e12;
        if self.cut.load(Ordering::Relaxed) || self.plan.cut_at.is_some_and(at) {
            state.on()?.drive().ssd_mut().faults().cut_power_after(0);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // a panic means that a rule of the drive was broken, so its state is wrong from then on
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.live = None;
            state.gone.get_or_insert(Refused::Failed("a rule of the drive was broken".into()));
            state
        })
    }

    fn request(&self, op: HostOp, offset: u64, bytes: u64, fua: bool) -> Result<Request, Refused> {
        let (sector, end) = (u64::from(SECTOR_BYTES), self.bytes());
        let refused = |why| Refused::Range(format!("{bytes} bytes from byte {offset} on {why}"));
        if offset % sector != 0 || bytes % sector != 0 {
            return Err(refused(format!("are not whole sectors ({sector} bytes)")));
        }
        if offset + bytes > end {
            return Err(refused(format!("reach beyond the end of the drive ({end} bytes)")));
        }
        let (lba, sectors) = (Lba(offset / sector), (bytes / sector) as u32);
        Ok(Request { at: Ps::ZERO, op, lba, sectors, fua })
    }

    /// Reads `out.len()` bytes.
    ///
    /// # Errors
    /// Returns [`Refused`] if the command is not carried out.
    pub fn read(&self, out: &mut [u8], offset: u64) -> Result<(), Refused> {
        if out.is_empty() {
            return Ok(());
        }
        let request = self.request(HostOp::Read, offset, out.len() as u64, false)?;
        self.carry_out(&request, None, Some(out))
    }

    /// Writes `data` at `offset`. With `fua`, the data is durable when this function returns.
    ///
    /// # Errors
    /// Returns [`Refused`] if the command is not carried out. The content of the range is then
    /// unknown.
    pub fn write(&self, data: &[u8], offset: u64, fua: bool) -> Result<(), Refused> {
        if data.is_empty() {
            return Ok(());
        }
        self.fua_writes.fetch_add(fua.into(), Ordering::Relaxed);
        let fua = fua && self.hears_fua();
        let request = self.request(HostOp::Write, offset, data.len() as u64, fua)?;
        self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.carry_out(&request, Some(data), None)
    }

    const fn hears_fua(&self) -> bool {
        !self.plan.ignore_flush && !self.plan.ignore_fua
    }

    /// Makes every answered write durable.
    ///
    /// # Errors
    /// Returns [`Refused`] if the command is not carried out.
    pub fn flush(&self) -> Result<(), Refused> {
        if self.plan.ignore_flush {
            return Ok(());
        }
        let request = self.request(HostOp::Flush, 0, 0, false)?;
        self.carry_out(&request, None, None)
    }

    /// Trims a range. From then on, reads of its units return zeros until the power fails.
    ///
    /// Units that lie only partly in the range are not changed.
    ///
    /// # Errors
    /// Returns [`Refused`] if the command is not carried out.
    pub fn trim(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), Refused> {
        if bytes > 0 {
            let request = self.request(HostOp::Trim, offset, bytes, false)?;
            self.carry_out(&request, None, None)?;
        }
        if fua && self.hears_fua() { self.flush() } else { Ok(()) }
    }

    /// Writes zeros. With `may_trim`, whole units are trimmed instead if trims survive a power
    /// failure.
    ///
    /// # Errors
    /// Returns [`Refused`] if the command is not carried out.
    pub fn zero(&self, offset: u64, bytes: u64, may_trim: bool, fua: bool) -> Result<(), Refused> {
        self.request(HostOp::Write, offset, bytes, false)?;
        let unit = u64::from(self.unit_bytes());
        let (end, first) = (offset + bytes, offset.div_ceil(unit) * unit);
        let last = end / unit * unit;
        if may_trim && self.zeroes_by_trim && first < last {
            self.write_zeros(offset, first)?;
            self.trim(first, last - first, false)?;
            self.write_zeros(last, end)?;
        } else {
            self.write_zeros(offset, end)?;
        }
        if fua && self.hears_fua() { self.flush() } else { Ok(()) }
    }

    fn write_zeros(&self, mut from: u64, to: u64) -> Result<(), Refused> {
        const ZEROS: &[u8] = &[0; 1 << 16];
        while from < to {
            let bytes = (to - from).min(ZEROS.len() as u64);
            self.write(&ZEROS[..bytes as usize], from, false)?;
            from += bytes;
        }
        Ok(())
    }

    /// Returns the parts of a range, in order. The first value of a part is its number of bytes.
    /// The second value is `true` if nothing is written there.
    ///
    /// # Errors
    /// Returns [`Refused`] if nothing is served any more.
    pub fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<(u64, bool)>, Refused> {
        let unit = u64::from(self.unit_bytes());
        let mut state = self.lock();
        let live = state.on()?;
        let mut ranges: Vec<(u64, bool)> = Vec::new();
        let mut at = offset;
        while at < offset + bytes {
            let next = ((at / unit + 1) * unit).min(offset + bytes);
            let held = live.drive().top().peek_stamp(Lpn((at / unit) as u32));
            let hole = held.is_ok_and(|stamp| stamp == Stamp::ZERO);
            match ranges.last_mut() {
                Some((length, same)) if *same == hole => *length += next - at,
                _ => ranges.push((next - at, hole)),
            }
            at = next;
        }
        Ok(ranges)
    }

    fn carry_out(
        &self,
        request: &Request,
        data: Option<&[u8]>,
        out: Option<&mut [u8]>,
    ) -> Result<(), Refused> {
        let depth = self.outstanding.fetch_add(1, Ordering::Relaxed) + 1;
        let depth = depth.max(self.waited_for.load(Ordering::Relaxed));
        let done = match self.plan.time {
            Time::None => self.at_once(request, data, out, depth),
            Time::Real(slower) => {
                let taken = self.in_time(request, data, out, slower);
                taken.and_then(|ticket| self.completes(ticket, slower))
            }
        };
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        done
    }

    /// Submits a command to the drive once fewer than `depth` commands are in flight, and fewer
    /// than [`Server::queue_depth`]. Simulated time passes until then.
    ///
    /// The effect of a command is decided when it is submitted. So the client does not wait until
    /// the drive completes the command.
    fn at_once(
        &self,
        request: &Request,
        data: Option<&[u8]>,
        out: Option<&mut [u8]>,
        depth: usize,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        self.cut_if_due(&mut state)?;
        let waited = state.on()?.wait_for(depth.min(self.queue_depth) - 1);
        waited.map_err(|error| state.refused(&error))?;
        state.of_client(request, data, out, (self.clock.now(), false)).map(drop)
    }

    /// Submits a command to the drive at the clock's time. Returns the ticket for
    /// [`Server::completes`].
    fn in_time(
        &self,
        request: &Request,
        data: Option<&[u8]>,
        out: Option<&mut [u8]>,
        slower: f64,
    ) -> Result<u64, Refused> {
        let mut state = self.lock();
        self.cut_if_due(&mut state)?;
        state.advance(self.clock.simulated(slower))?;
        state.of_client(request, data, out, (self.clock.now(), true))
    }

    /// Waits on the clock until the drive has completed a command.
    fn completes(&self, ticket: u64, slower: f64) -> Result<(), Refused> {
        let real = |at: Ps| Ps((at.0 as f64 * slower) as u64);
        let mut state = self.lock();
        loop {
            if let Some(at) = state.on()?.completed(ticket) {
                drop(state);
                self.clock.sleep_until(real(at));
                let late = self.clock.now().since(real(at)).0 / 1000;
                self.lock().late.saturating_record(late);
                return Ok(());
            }
            let Some(next) = state.on()?.next_event() else {
                let error = state.on()?.stalled();
                return Err(state.refused(&error));
            };
            drop(state);
            self.clock.sleep_until(real(next));
            state = self.lock();
            // the event is handled even if the clock is a little before the event
            state.advance(self.clock.simulated(slower).max(next))?;
        }
    }

    /// Ends serving: makes the write cache durable, closes the image, and creates the record.
    pub fn end(&self) -> Ended {
        self.end_in(&environment(&STANDARD_PARTS, &self.plan))
    }

    /// Ends serving like [`Server::end`], for a drive with the parts of `env`.
    pub fn end_in(&self, env: &Environment<'_>) -> Ended {
        self.finish(env, None)
    }

    /// Ends serving like [`Server::end_in`]. The image keeps the record of a controller, unless the
    /// write cache cannot be made durable.
    pub fn end_keeping(&self, env: &Environment<'_>, record: &[u8]) -> Ended {
        self.finish(env, Some(record))
    }

    fn finish(&self, env: &Environment<'_>, last: Option<&[u8]>) -> Ended {
        let mut state = self.lock();
        let recorded = state.recorder.take().map(Recorder::finish);
        if let Some(gone) = &state.gone {
            return Ended { record: None, complaint: Some(gone.to_string()) };
        }
        let flush =
            Request { at: Ps::ZERO, op: HostOp::Flush, lba: Lba(0), sectors: 0, fua: false };
        if let Err(why) = state.submit(&flush, None, None, false) {
            return Ended { record: None, complaint: Some(why.to_string()) };
        }
        let State { image, live, .. } = &mut *state;
        let closed = image.as_mut().map(|image| {
            if let Some(live) = live {
                image.keep_reads(live.drive().ssd().medium())?;
            }
            last.map_or(Ok(()), |record| image.home().write(record))?;
            image.close()
        });
        if let Some(Err(why)) = closed {
            return Ended {
                record: None,
                complaint: Some(format!("the image cannot be read or written: {why}")),
            };
        }
        let Some(mut live) = state.live.take() else {
            return Ended { record: None, complaint: Some("the server has ended".into()) };
        };
        let mut extra = vec![SERVED_AT_ARRIVAL.note()];
        if self.plan.ignore_flush {
            extra.push(FLUSH_IGNORED.note());
        } else if self.plan.ignore_fua {
            extra.push(FUA_IGNORED.note());
        }
        extra.extend(late_note(&state.late, &Value::Object(live.look().record)));
        match live.finish(env, "served", extra) {
            Ok(outcome) => {
                let of = OfServing {
                    time: self.plan.time,
                    late: &state.late,
                    fua_writes: self.fua_writes.load(Ordering::Relaxed),
                    found: &self.found,
                    recorded,
                };
                let record = served(outcome, of);
                Ended { record: Some(record), complaint: None }
            }
            Err(error) => Ended { record: None, complaint: Some(error.to_string()) },
        }
    }
}
