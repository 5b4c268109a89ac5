//! `flow`: jobs whose numbers of requests keep fixed proportions.
//!
//! A job that has issued more than its share waits until the other jobs have caught up (fio 3.33,
//! `flow.c`: `flow_threshold_exceeded`). As in fio, jobs that have not started count with their
//! weight, and jobs that are over do not count.

use flashatlas_fio::FlowOptions;
use flashatlas_types::{Dur, Ps};

/// A group of jobs whose numbers of requests keep fixed proportions.
pub(super) struct Flow {
    id: u32,
    /// Number of requests of its jobs, plus 1.
    count: u64,
    /// Sum of the weights of its jobs.
    weight: u64,
}

/// A job's part in a flow.
#[derive(Clone, Copy)]
pub(super) struct Share {
    /// The flow.
    pub flow: usize,
    weight: u64,
    count: u64,
    /// Time between two checks of the share.
    pub sleep: Dur,
}

impl Flow {
    /// Adds a job with these options to its flow, and returns the job's share.
    ///
    /// The flow is created if it does not exist yet. Returns `None` if the job belongs to no flow.
    pub fn join(flows: &mut Vec<Flow>, o: FlowOptions) -> Option<Share> {
        if o.weight == 0 {
            return None;
        }
        let flow = flows.iter().position(|flow| flow.id == o.id).unwrap_or_else(|| {
            flows.push(Flow { id: o.id, count: 1, weight: 0 });
            flows.len() - 1
        });
        let weight = u64::from(o.weight);
        flows[flow].weight += weight;
        Some(Share { flow, weight, count: 0, sleep: o.sleep })
    }

    /// Returns `true` if a job has issued more than its share.
    pub fn is_ahead(&self, share: &Share) -> bool {
        u128::from(share.count) * u128::from(self.weight)
            > u128::from(share.weight) * u128::from(self.count)
    }

    /// Counts a request of a job.
    pub fn count(&mut self, share: &mut Share) {
        self.count += 1;
        share.count += 1;
    }

    /// Removes a job that is over from the flow.
    pub fn leave(&mut self, share: Share) {
        self.count -= share.count;
        self.weight -= share.weight;
    }
}

impl Share {
    /// Returns the time of the next check, at or after `now`; the checks began at `since`.
    pub fn next_look(&self, since: Ps, now: Ps) -> Ps {
        if self.sleep == Dur::ZERO {
            return now;
        }
        let looks = now.since(since).0.div_ceil(self.sleep.0).max(1);
        Ps(since.0.saturating_add(looks.saturating_mul(self.sleep.0)))
    }
}
