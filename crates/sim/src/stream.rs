//! Pacing of traces and generators.
//!
//! A stream of requests is played at its own times or as fast as a queue depth allows.

use crate::fit::Mapper;
use crate::input::Input;
use crate::player::Player;
use crate::progress::PROGRESS_EVERY;
use crate::settling::Passes;
use crate::steadiness::Verdict;
use crate::{Mode, Progress, RunError, RunSpec, Until};
use flashatlas_types::{HostOp, Ps, Request};
use flashatlas_workload::ext4::FLUSH;

/// Number of requests that are read ahead, so that table entries of their pages are prefetched
/// together.
const AHEAD: usize = 16;

/// Latest time of an arrival: 200 days, of the 213 days that simulated time can represent.
const LATEST_PS: f64 = 200.0 * 86_400e12;

/// Rules for playing a stream, from the options of a run.
pub(crate) struct Pacing {
    issue: Issue,
    /// Number of requests at the start that are not measured.
    warmup: u64,
    /// `true` if the workload is played again until its passes are steady.
    settles: bool,
    /// Number of requests after which the workload, or each of its passes, ends.
    limit: u64,
    /// Number of writes after which a FLUSH is added; 0: no FLUSH is added.
    flush_every: u64,
}

/// Rule by which a request is issued.
enum Issue {
    /// The request is issued immediately, and no time passes.
    Untimed,
    /// The request is issued as soon as fewer than `depth` commands are in flight.
    InQueue { depth: usize },
    /// The request is issued at its own time divided by `speed`, but not before fewer than `depth`
    /// commands are in flight.
    AtTimes { depth: usize, speed: f64 },
}

impl Pacing {
    /// Returns the rules of a run on a drive that accepts `queue_depth` commands at the same time.
    pub fn of(spec: &RunSpec, queue_depth: usize) -> Pacing {
        Pacing {
            issue: match spec.mode {
                Mode::Untimed => Issue::Untimed,
                Mode::Asap => Issue::InQueue { depth: queue_depth },
                Mode::Closed => Issue::InQueue { depth: spec.depth.unwrap_or(1) as usize },
                Mode::Open => Issue::AtTimes { depth: queue_depth, speed: spec.speed },
            },
            warmup: spec.warmup,
            settles: spec.until == Until::Steady,
            limit: spec.limit.unwrap_or(u64::MAX),
            flush_every: spec.flush_every,
        }
    }
}

/// A request that was read ahead.
struct Coming {
    request: Request,
    /// Number of the request in the workload, from 1.
    number: u64,
    /// Arrival of the request, or of an earlier request if the earlier request arrives later.
    due: Ps,
}

/// A stream of requests on its way to the drive.
struct Stream<'a> {
    player: &'a mut Player,
    pacing: &'a Pacing,
    mapper: &'a mut Mapper,
    /// Number of requests of the workload so far, including earlier passes.
    number: u64,
    /// Number of requests before the measured part.
    warmup: u64,
    until_flush: u64,
    /// Start of this pass.
    base: Ps,
    /// Latest arrival so far.
    latest: Ps,
    out_of_order: u64,
}

/// Plays all requests of `input`, and waits until the last request is complete.
///
/// `reopen` opens the workload anew. Returns the number of requests with an earlier time than a
/// request before them. If there are passes before the measured pass, also returns all passes and
/// the verdict on the last five.
pub(crate) fn play<'i>(
    player: &mut Player,
    pacing: &Pacing,
    input: &mut Input<'_>,
    reopen: &dyn Fn() -> Result<Input<'i>, RunError>,
    mapper: &mut Mapper,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(u64, Option<(Passes, Verdict)>), RunError> {
    let mut passes = pacing.settles.then(|| player.passes());
    let mut stream = Stream {
        player,
        pacing,
        mapper,
        number: 0,
        warmup: if passes.is_some() { u64::MAX } else { pacing.warmup },
        until_flush: pacing.flush_every,
        base: Ps::ZERO,
        latest: Ps::ZERO,
        out_of_order: 0,
    };
    let mut requests = stream.pass(input, progress)?;
    let mut verdict = None;
    if let Some(passes) = &mut passes {
        let mut again = None;
        loop {
            let measured = passes.ended(stream.player.count())?;
            if measured {
                stream.warmup = stream.number;
            }
            if input.source.go_on() {
                requests = stream.pass(input, progress)?;
            } else {
                stream.rebase(requests)?;
                requests = stream.pass(again.insert(reopen()?), progress)?;
            }
            if measured {
                verdict = Some(passes.measured(stream.player.count()));
                break;
            }
        }
    }
    stream.end()?;
    Ok((stream.out_of_order, passes.zip(verdict)))
}

impl Stream<'_> {
    /// Plays `input` to its end or to the limit, and returns the number of requests played.
    fn pass(
        &mut self,
        input: &mut Input<'_>,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<u64, RunError> {
        let limit = self.number.saturating_add(self.pacing.limit);
        let first = self.number;
        let played = self.play_until(limit, input, progress);
        self.player.until_worn_out(played)?;
        Ok(self.number - first)
    }

    fn play_until(
        &mut self,
        limit: u64,
        input: &mut Input<'_>,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), RunError> {
        let mut ahead = Vec::with_capacity(AHEAD);
        let mut more = true;
        while more {
            let read = self.read_ahead(input, limit, &mut ahead);
            self.player.prefetch(ahead.iter().map(|coming| &coming.request));
            for coming in ahead.drain(..) {
                self.play(&coming)?;
                if coming.number % PROGRESS_EVERY == 0 {
                    self.tell(coming.number, input, limit, progress)?;
                }
            }
            more = read?;
        }
        Ok(())
    }

    /// Reads the next requests, and returns `true` if there may be more.
    ///
    /// If a request cannot be read, the requests before it are played all the same.
    fn read_ahead(
        &mut self,
        input: &mut Input<'_>,
        limit: u64,
        ahead: &mut Vec<Coming>,
    ) -> Result<bool, RunError> {
        while ahead.len() < AHEAD {
            if self.number == limit {
                return Ok(false);
            }
            let Some(record) = input.next_record()? else { return Ok(false) };
            self.number += 1;
            let placed = |error| match (error, input.source.account().last_place) {
                (RunError::Fit(why), Some(place)) => {
                    RunError::Fit(format!("{}:{place}: {why}", input.file()))
                }
                (error, _) => error,
            };
            let mapped = self.mapper.map(&record, self.number).map_err(placed)?;
            let Some(mut request) = mapped else { continue };
            request.at = Ps(request.at.0.saturating_add(self.base.0));
            self.out_of_order += u64::from(request.at < self.latest);
            self.latest = self.latest.max(request.at);
            ahead.push(Coming { request, number: self.number, due: self.latest });
        }
        Ok(true)
    }

    /// Hands a request to the drive, and the FLUSH that follows it.
    fn play(&mut self, coming: &Coming) -> Result<(), RunError> {
        self.issue(coming)?;
        if coming.request.op == HostOp::Write && self.until_flush > 0 {
            self.until_flush -= 1;
            if self.until_flush == 0 {
                self.until_flush = self.pacing.flush_every;
                let flush = Request { at: coming.request.at, ..FLUSH };
                self.issue(&Coming { request: flush, ..*coming })?;
            }
        }
        Ok(())
    }

    /// Reports progress.
    fn tell(
        &self,
        number: u64,
        input: &Input<'_>,
        limit: u64,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), RunError> {
        let (phase, share) = if self.pacing.settles {
            (if self.warmup == u64::MAX { "settle" } else { "run" }, None)
        } else {
            let share =
                input.source.expected().map(|total| number as f64 / total.min(limit).max(1) as f64);
            ("run", share.or_else(|| input.share_read()))
        };
        if progress(Progress { phase, requests: number, share }) {
            Ok(())
        } else {
            Err(RunError::Interrupted)
        }
    }

    /// Sets the start of the next pass behind this pass, which had `requests` requests.
    ///
    /// The gap between the passes is the mean distance between two requests.
    fn rebase(&mut self, requests: u64) -> Result<(), RunError> {
        let span = self.latest.since(self.base).0;
        let gap = span / requests.saturating_sub(1).max(1);
        self.base = Ps(self.latest.0.saturating_add(gap.max(1)));
        if let Issue::AtTimes { speed, .. } = self.pacing.issue
            && (self.base.0 as f64 + span as f64) / speed > LATEST_PS
        {
            return Err(RunError::option(
                "until",
                "the passes last longer than 200 days in sum, but simulated time ends there: use \
                 ‹mode=closed› or a larger speed",
            ));
        }
        Ok(())
    }

    /// Waits until the last request is complete.
    fn end(&mut self) -> Result<(), RunError> {
        if !self.player.is_measuring() {
            let left_out = match self.number.saturating_sub(self.player.tally.submitted) {
                0 => String::new(),
                n => format!(
                    ", but ‹fit=compact› leaves out {n} of them, which trim addresses that no \
                     other request touches"
                ),
            };
            return Err(RunError::option(
                "warmup",
                format!(
                    "a warm-up of {} requests leaves no request to measure: the workload has {} \
                     requests{left_out}",
                    self.pacing.warmup, self.number
                ),
            ));
        }
        while self.player.in_flight() > 0 {
            self.player.advance_to_completion(Ps::MAX, |_, _| ())?;
        }
        let tally = self.player.tally;
        if tally.submitted == tally.completed { Ok(()) } else { Err(self.player.stalled()) }
    }

    /// Hands one request to the drive, when its time has come and the queue has room.
    fn issue(&mut self, coming: &Coming) -> Result<(), RunError> {
        let player = &mut *self.player;
        let arrived = match self.pacing.issue {
            Issue::Untimed => Ps::ZERO,
            Issue::InQueue { depth } => {
                make_room(player, depth)?;
                player.now
            }
            Issue::AtTimes { depth, speed } => {
                make_room(player, depth)?;
                let arrived = scaled(coming.due, speed, coming.number)?;
                if arrived > player.now {
                    player.advance(arrived, |_, _| ())?;
                }
                arrived
            }
        };
        if coming.number > self.warmup && !player.is_measuring() {
            player.start_measuring();
        }
        player.submit(&coming.request, arrived, coming.number, None).map(|_| ())
    }
}

/// Lets time pass until fewer than `depth` commands are in flight.
fn make_room(player: &mut Player, depth: usize) -> Result<(), RunError> {
    while player.in_flight() >= depth {
        player.advance_to_completion(Ps::MAX, |_, _| ())?;
    }
    Ok(())
}

/// Returns a time of the trace at the speed of the run; at speed 1, the time is exact.
fn scaled(at: Ps, speed: f64, number: u64) -> Result<Ps, RunError> {
    let scaled = at.0 as f64 / speed;
    match speed == 1.0 {
        true => Ok(at),
        false if scaled < LATEST_PS => Ok(Ps(scaled as u64)),
        false => Err(RunError::option(
            "speed",
            format!(
                "request {number} would arrive {:.0} days after the first request, but simulated \
                 time ends after 200 days: use a larger speed",
                scaled / 86_400e12
            ),
        )),
    }
}
