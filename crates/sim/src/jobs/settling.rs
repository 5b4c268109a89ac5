//! fio's `steadystate`: a job, or a group that reports as one, ends when its rates have settled.
//!
//! The rates are measured at the end of each interval. Once the window is full, fio's rule judges
//! the measurements in it: by the largest distance of a measurement from their mean, or by the
//! slope of the line that fits the measurements best. The project's own criterion
//! ([`crate::steadiness`]) judges whether a *run* was steady.

use super::stats::Completed;
use super::thread::Thread;
use crate::notes::JOB_NOT_SETTLED;
use crate::steadiness::slope;
use flashatlas_fio::{Job, Measured, Settling};
use flashatlas_types::{Dur, Note, Ps};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Rates and latency of one interval.
#[derive(Clone, Copy)]
struct Measurement {
    iops: f64,
    bandwidth: f64,
    latency_ns: f64,
}

/// Watch over the rates of one job, or of the jobs of a group.
#[derive(Clone)]
pub(super) struct Watch {
    settling: Settling,
    /// Numbers of the jobs, in order.
    members: std::ops::Range<usize>,
    /// Time of the next measurement; `None` before a member has started, and when the watch is
    /// over.
    due: Option<Ps>,
    /// `true` if the next measurement is at the end of the ramp.
    in_ramp: bool,
    before: Completed,
    window: VecDeque<Measurement>,
    /// The last value of the criterion: deviation or slope, and its share of the mean in percent.
    found: Option<(f64, f64)>,
    attained: bool,
}

impl Watch {
    /// Returns a watch for each job with `steadystate`.
    ///
    /// If a group reports as one, its jobs share a watch.
    pub fn over(jobs: &[Job]) -> Vec<Watch> {
        let mut watches: Vec<Watch> = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            if job.options.settling.intervals() == 0 {
                continue;
            }
            let together = job.options.group_reporting
                && number > 0
                && jobs[number - 1].group == job.group
                && jobs[number - 1].options.group_reporting;
            match watches.last_mut() {
                Some(watch) if together => watch.members.end = number + 1,
                _ => watches.push(Watch {
                    settling: job.options.settling,
                    members: number..number + 1,
                    due: None,
                    in_ramp: true,
                    before: Completed::default(),
                    window: VecDeque::new(),
                    found: None,
                    attained: false,
                }),
            }
        }
        watches
    }

    /// Returns `true` if the watch is over job `number`.
    pub fn is_of(&self, number: usize) -> bool {
        self.members.contains(&number)
    }

    /// Returns the jobs of the watch.
    pub fn members(&self) -> std::ops::Range<usize> {
        self.members.clone()
    }

    /// Notes that a member with a ramp of `ramp` starts at `now`.
    ///
    /// The ramp of the watch begins when its first member starts.
    pub fn start(&mut self, now: Ps, ramp: Dur) {
        if self.due.is_none() && self.in_ramp {
            self.due = Some(now.after(self.settling.ramp.max(ramp)));
        }
    }

    /// Returns the time of the next measurement.
    pub fn due(&self) -> Option<Ps> {
        self.due
    }

    /// Measures the work of the members by `now`; `threads` are all jobs of the file.
    ///
    /// Returns `true` if the jobs of the watch have settled.
    pub fn look(&mut self, now: Ps, threads: &[Thread]) -> bool {
        let members = &threads[self.members.clone()];
        if members.iter().all(Thread::is_over) {
            self.due = None; // the jobs ended by themselves
            return false;
        }
        let sum = |of: fn(&Completed) -> u64| members.iter().map(|t| of(&t.completed)).sum();
        let counts = Completed {
            requests: sum(|c| c.requests),
            bytes: sum(|c| c.bytes),
            latency_ns: sum(|c| c.latency_ns),
        };
        let before = std::mem::replace(&mut self.before, counts);
        if std::mem::take(&mut self.in_ramp) {
            self.due = Some(now.after(self.settling.interval));
            return false;
        }
        let seconds = self.settling.interval.0 as f64 / 1e12;
        let requests = (counts.requests - before.requests) as f64;
        let latency = (counts.latency_ns - before.latency_ns) as f64;
        self.window.push_back(Measurement {
            iops: requests / seconds,
            bandwidth: (counts.bytes - before.bytes) as f64 / seconds,
            latency_ns: if requests > 0.0 { latency / requests } else { 0.0 },
        });
        if self.window.len() > self.settling.intervals() {
            self.window.pop_front();
        }
        self.attained = self.window.len() == self.settling.intervals() && self.settled();
        self.due = (!self.attained).then(|| now.after(self.settling.interval));
        self.attained
    }

    /// Judges a full window; returns `true` if the rates have settled.
    fn settled(&mut self) -> bool {
        let criterion = self.settling.criterion;
        let values: Vec<f64> = self.window.iter().map(|m| self.value(m)).collect();
        let found = if criterion.slope { slope(&values) } else { deviation(&values) };
        let share = 100.0 * found / mean(&values);
        self.found = Some((found, share));
        (if criterion.percent { share } else { found }).abs() < criterion.limit
    }

    fn value(&self, m: &Measurement) -> f64 {
        match self.settling.criterion.measured {
            Measured::Iops => m.iops,
            Measured::Bandwidth => m.bandwidth,
            Measured::Latency => m.latency_ns,
        }
    }

    /// Returns a note if the jobs ended before they had settled; `jobs` are all jobs of the file.
    pub fn complaint(&self, jobs: &[Job]) -> Option<Note> {
        let name = &jobs[self.members.start].name;
        let why = match self.found {
            _ if self.attained => return None,
            None => format!(
                "the job ended after {} of the {} measurements of a window",
                self.window.len(),
                self.settling.intervals()
            ),
            Some((found, share)) => {
                let percent = self.settling.criterion.percent;
                let (found, unit) = if percent { (share, " %") } else { (found, "") };
                let limit = self.settling.criterion.limit;
                format!(
                    "{} is {found:.3}{unit} at the end, which is not below {limit}{unit}",
                    self.name()
                )
            }
        };
        Some(JOB_NOT_SETTLED.with([("job", name.as_str().into()), ("why", why.into())]))
    }

    /// Returns the name of the criterion in job files.
    fn name(&self) -> String {
        let slope = if self.settling.criterion.slope { "_slope" } else { "" };
        format!("{}{slope}", self.measured())
    }

    fn measured(&self) -> &'static str {
        match self.settling.criterion.measured {
            Measured::Iops => "iops",
            Measured::Bandwidth => "bw",
            Measured::Latency => "lat",
        }
    }

    /// Returns the criterion and the measurements that it judged, for the statistics of the jobs.
    pub fn json(&self) -> Value {
        let criterion = self.settling.criterion;
        let column = |of: fn(&Measurement) -> f64| self.window.iter().map(of).collect::<Vec<_>>();
        json!({
            "criterion": self.name(),
            "limit": criterion.limit,
            "percent": criterion.percent,
            "duration_ns": self.settling.window.ns(),
            "interval_ns": self.settling.interval.ns(),
            "attained": self.attained,
            "found": self.found.map(|(found, _)| found),
            "found_percent": self.found.map(|(_, share)| share).filter(|s| s.is_finite()),
            "iops": column(|m| m.iops),
            "bandwidth": column(|m| m.bandwidth),
            "latency_ns": column(|m| m.latency_ns),
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the largest distance of a value from the mean.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|y| (y - mean).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_by_hand() {
        // the mean is 11.5, the first and last values differ from it by 1.5, and each value is 1
        // above the one before
        let even = [10.0, 11.0, 12.0, 13.0];
        assert_eq!((deviation(&even), slope(&even)), (1.5, 1.0));
        // (-1.5 * 4 - 0.5 * 8 + 0.5 * 8 + 1.5 * 4) / 5: a hill has no slope
        let hill = [4.0, 8.0, 8.0, 4.0];
        assert_eq!((deviation(&hill), slope(&hill)), (2.0, 0.0));
        assert_eq!(slope(&[9.0, 3.0]), -6.0);
    }
}
