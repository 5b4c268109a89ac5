//! Pacing of traces and generators: one stream of requests, at its own times or as fast as a queue
//! depth allows.

use crate::fit::Mapper;
use crate::input::Input;
use crate::player::Player;
use crate::{Mode, Progress, RunError, RunSpec};
use flashatlas_types::{HostOp, Ps, Request};
use flashatlas_workload::ext4::FLUSH;

/// Requests between two calls of the progress function.
pub(crate) const PROGRESS_EVERY: u64 = 8192;

/// The latest arrival: 200 of the 213 days that fit simulated time.
const LATEST_PS: f64 = 200.0 * 86_400e12;

/// Play all requests of `input`, and wait until the last is complete. Returns how many carried an
/// earlier time than the one before them.
pub(crate) fn play(
    player: &mut Player,
    spec: &RunSpec,
    queue_depth: usize,
    input: &mut Input,
    mapper: &mut Mapper,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<u64, RunError> {
    let depth =
        if spec.mode == Mode::Closed { spec.depth.unwrap_or(1) as usize } else { queue_depth };
    let limit = spec.limit.unwrap_or(u64::MAX);
    let (mut number, mut latest, mut out_of_order) = (0, Ps::ZERO, 0);
    let mut until_flush = spec.flush_every;
    while number < limit
        && let Some(record) = input.next_record()?
    {
        number += 1;
        let placed = |error| match (error, input.source.account().last_place) {
            (RunError::Fit(why), Some(place)) => {
                RunError::Fit(format!("{}:{place}: {why}", input.name))
            }
            (error, _) => error,
        };
        let Some(request) = mapper.map(&record, number).map_err(placed)? else { continue };
        out_of_order += u64::from(request.at < latest);
        latest = latest.max(request.at);
        issue(player, spec, depth, &request, latest, number)?;
        if request.op == HostOp::Write && until_flush > 0 {
            until_flush -= 1;
            if until_flush == 0 {
                until_flush = spec.flush_every;
                issue(player, spec, depth, &Request { at: request.at, ..FLUSH }, latest, number)?;
            }
        }
        if number % PROGRESS_EVERY == 0 {
            let expected = input.source.expected();
            let share = expected
                .map(|total| number as f64 / total.min(limit).max(1) as f64)
                .or_else(|| input.share_read());
            if !progress(Progress { phase: "run", requests: number, share }) {
                return Err(RunError::Interrupted);
            }
        }
    }
    if !player.measuring {
        let left_out = match number.saturating_sub(player.submitted) {
            0 => String::new(),
            n => format!(
                ", {n} of them trims of what nothing else touches, which `fit=compact` leaves out"
            ),
        };
        return Err(RunError::option(
            "warmup",
            format!(
                "{} requests leave nothing to measure: the workload has {number}{left_out}",
                spec.warmup
            ),
        ));
    }
    player.wait_for(0)?;
    if player.submitted == player.completed { Ok(out_of_order) } else { Err(player.stalled()) }
}

/// Hand one request to the drive, when its time has come and the queue has room.
fn issue(
    player: &mut Player,
    spec: &RunSpec,
    depth: usize,
    request: &Request,
    at: Ps,
    number: u64,
) -> Result<(), RunError> {
    let mut arrived = Ps::ZERO;
    if spec.mode != Mode::Untimed {
        player.wait_for(depth - 1)?;
        arrived = player.now;
        if spec.mode == Mode::Open {
            arrived = scaled(at, spec.speed, number)?;
            if arrived > player.now {
                while player.in_flight > 0
                    && let Some(at) = player.drive.next_event().filter(|&at| at <= arrived)
                {
                    player.advance(at, |_, _| ());
                }
                if player.in_flight == 0 {
                    player.idle(arrived)?;
                }
                player.now = arrived;
                player.advance(arrived, |_, _| ());
            }
        }
    }
    if number > spec.warmup && !player.measuring {
        player.start_measuring();
    }
    player.submit(request, arrived, number).map(|_| ())
}

/// A time of the trace at the speed of the run; at speed 1 to the picosecond.
fn scaled(at: Ps, speed: f64, number: u64) -> Result<Ps, RunError> {
    let scaled = at.0 as f64 / speed;
    match speed == 1.0 {
        true => Ok(at),
        false if scaled < LATEST_PS => Ok(Ps(scaled as u64)),
        false => Err(RunError::option(
            "speed",
            format!(
                "request {number} would arrive {:.0} days after the first, and simulated time ends \
                 after 200: use a larger speed",
                scaled / 86_400e12
            ),
        )),
    }
}
