//! Times at which a job may issue its next request: rates and pauses.

use flashatlas_fio::{Direction, Job, Options};
use flashatlas_types::{Dur, Ps, Rng, Seed};

/// Rates and pauses of one job, as in fio.
///
/// A rate is averaged from its beginning, so a job that fell behind catches up. A pause begins when
/// nothing is in flight.
pub(super) struct Pacer {
    /// Bytes per second by direction; 0 means no limit.
    rates: [u64; 3],
    /// Bytes that count for the rate.
    paced_bytes: [u64; 3],
    /// Sum of the gaps that were drawn (`rate_process=poisson`).
    gaps: [Dur; 3],
    /// Generators of the gaps.
    draws: Option<[Rng; 3]>,
    /// Time at which the rate allows the next request.
    next: [Ps; 3],
    /// Time from which rates count.
    epoch: Ps,
    /// Numbers of requests that were issued and completed.
    issued: u64,
    completed: u64,
    /// The count of requests at the last pause.
    paused_at: u64,
    last_pause: Ps,
}

/// Direction and time of the next request, by the rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// The job may issue in this direction now.
    Go(Direction),
    /// The job waits until nothing is in flight, then until this time, and issues in this
    /// direction.
    Wait(Direction, Ps),
}

impl Pacer {
    pub fn new(job: &Job, seed: Seed, now: Ps) -> Pacer {
        let draws = job.options.poisson.then(|| {
            Direction::ALL.map(|direction| {
                Rng::stream(seed, &format!("fio.{}.gaps.{}", job.number, direction.name()))
            })
        });
        Pacer { draws, ..Pacer::begun(job, now) }
    }

    fn begun(job: &Job, now: Ps) -> Pacer {
        Pacer {
            rates: [0, 1, 2].map(|dir| job.options.bytes_per_second(dir)),
            paced_bytes: [0; 3],
            gaps: [Dur::ZERO; 3],
            draws: None,
            next: [now; 3],
            epoch: now,
            issued: 0,
            completed: 0,
            paused_at: 0,
            last_pause: now,
        }
    }

    /// Begins anew at `now`, but continues the random gaps.
    pub fn restart(&mut self, job: &Job, now: Ps) {
        let draws = self.draws.take();
        *self = Pacer { draws, ..Pacer::begun(job, now) };
    }

    /// Returns the time and the direction of the next request, preferably in direction `wish`.
    ///
    /// A mixed job takes the other direction if that direction may issue earlier.
    pub fn pace(&self, o: &Options, wish: Direction, now: Ps) -> Pace {
        let ready = self.next[wish as usize];
        if ready <= now {
            return Pace::Go(wish);
        }
        let Some(other) = other(o, wish) else { return Pace::Wait(wish, ready) };
        match self.next[other as usize] {
            at if at <= now => Pace::Go(other),
            at if at < ready => Pace::Wait(other, at),
            _ => Pace::Wait(wish, ready),
        }
    }

    /// Counts a request that was issued.
    pub fn issue(&mut self, o: &Options, direction: Direction, bytes: u64) {
        let dir = direction as usize;
        self.issued += 1;
        if self.rates[dir] > 0 {
            match &mut self.draws {
                Some(draws) => {
                    let gap = o.drawn_gap(dir, &mut draws[dir]);
                    self.move_on(dir, gap);
                }
                None => self.count(dir, bytes),
            }
        }
    }

    /// Counts `bytes` for the rate.
    fn count(&mut self, dir: usize, bytes: u64) {
        self.paced_bytes[dir] = self.paced_bytes[dir].saturating_add(bytes);
        self.next[dir] = later(self.epoch, self.paced_bytes[dir], self.rates[dir]);
    }

    /// Moves the time of the next request by `gap`.
    fn move_on(&mut self, dir: usize, gap: Dur) {
        self.gaps[dir] = Dur(self.gaps[dir].0.saturating_add(gap.0));
        self.next[dir] = Ps(self.epoch.0.saturating_add(self.gaps[dir].0));
    }

    /// Counts a request that is complete.
    pub fn complete(&mut self) {
        self.completed += 1;
    }

    /// Returns `true` if a pause is due after a request in `direction`, and notes the pause.
    pub fn pause_due(&mut self, o: &Options, direction: Direction, now: Ps) -> bool {
        if o.think == Dur::ZERO {
            return false;
        }
        let long = o.think_after > Dur::ZERO && now.since(self.last_pause) >= o.think_after;
        if !long && o.think_after > Dur::ZERO && o.think_blocks.is_none() {
            return false;
        }
        let count = if o.think_issued { self.issued } else { self.completed };
        let due = long || count >= self.paused_at + o.think_blocks.unwrap_or(1);
        if due {
            self.paused_at = count;
            if o.rate_ignores_think {
                self.forgive(direction, o.think, o.sizes[direction as usize].0);
            }
        }
        due
    }

    /// Notes the end of a pause.
    pub fn paused(&mut self, now: Ps) {
        self.last_pause = now;
    }

    /// Counts as issued all bytes that the rate allows during a pause, except one block.
    ///
    /// The option `rate_ignore_thinktime` asks for this.
    fn forgive(&mut self, direction: Direction, pause: Dur, block: u64) {
        let dir = direction as usize;
        if self.rates[dir] > 0 && self.draws.is_some() {
            self.move_on(dir, pause);
        } else if self.rates[dir] > 0 {
            let missed = u128::from(self.rates[dir]) * u128::from(pause.0) / 1_000_000_000_000;
            let missed = u64::try_from(missed).unwrap_or(u64::MAX).saturating_sub(block);
            self.count(dir, missed);
        }
    }
}

/// Returns the other direction if the job is mixed and has a share in that direction.
fn other(o: &Options, wish: Direction) -> Option<Direction> {
    match wish {
        Direction::Read if o.pattern.mixed() && o.read_percent < 100 => Some(Direction::Write),
        Direction::Write if o.pattern.mixed() && o.read_percent > 0 => Some(Direction::Read),
        _ => None,
    }
}

/// Returns the time at which `bytes` are due at `rate`, at most the largest simulated time.
fn later(epoch: Ps, bytes: u64, rate: u64) -> Ps {
    let ps =
        (u128::from(bytes) * 1_000_000_000_000).div_ceil(u128::from(rate)) + u128::from(epoch.0);
    Ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_fio::parse;

    fn job(options: &str) -> Job {
        let text = format!("[job]\nsize=64k\n{}\n", options.replace(' ', "\n"));
        let file =
            parse(&text, "job.fio", &|_| None, &|_| Err(std::io::Error::other("none"))).unwrap();
        file.layout(1 << 20).unwrap().jobs.remove(0)
    }

    const fn ms(n: u64) -> Ps {
        Ps(n * 1_000_000_000)
    }

    #[test]
    fn a_mixed_job_takes_the_direction_that_may_go_first() {
        let job = job("rw=randrw rate_iops=20,10");
        let o = &job.options;
        let mut pacer = Pacer::new(&job, Seed(1), Ps::ZERO);
        assert_eq!(pacer.pace(o, Direction::Write, Ps::ZERO), Pace::Go(Direction::Write));
        pacer.issue(&job.options, Direction::Read, 4096);
        pacer.issue(&job.options, Direction::Write, 4096);
        // reads may go on after 50 ms, writes after 100 ms
        assert_eq!(pacer.pace(o, Direction::Write, Ps::ZERO), Pace::Wait(Direction::Read, ms(50)));
        assert_eq!(pacer.pace(o, Direction::Read, Ps::ZERO), Pace::Wait(Direction::Read, ms(50)));
        assert_eq!(pacer.pace(o, Direction::Write, ms(60)), Pace::Go(Direction::Read));
        assert_eq!(pacer.pace(o, Direction::Write, ms(100)), Pace::Go(Direction::Write));
    }

    #[test]
    fn a_direction_without_a_share_is_not_taken_instead() {
        let job = job("rw=randrw rwmixread=100 rate_iops=20,10");
        let mut pacer = Pacer::new(&job, Seed(1), Ps::ZERO);
        pacer.issue(&job.options, Direction::Read, 4096);
        assert_eq!(
            pacer.pace(&job.options, Direction::Read, Ps::ZERO),
            Pace::Wait(Direction::Read, ms(50))
        );
    }

    #[test]
    fn a_pause_that_does_not_count_is_made_up_for() {
        let job = job("rw=write rate=4096000 thinktime=10ms rate_ignore_thinktime=1");
        let mut pacer = Pacer::new(&job, Seed(1), Ps::ZERO);
        pacer.issue(&job.options, Direction::Write, 4096);
        pacer.complete();
        assert!(pacer.pause_due(&job.options, Direction::Write, ms(1)));
        // the rate allows 40960 bytes in 10 ms; all of them except one block of 4096 count as
        // issued, so 1 + 9 blocks are due after 10 ms
        assert_eq!(
            pacer.pace(&job.options, Direction::Write, ms(1)),
            Pace::Wait(Direction::Write, ms(10))
        );
    }
}
