//! The player: hands requests to a drive, and checks the results of reads.
//!
//! [`crate::stream`] decides which request comes next, and when, for traces and generators;
//! [`crate::jobs`] decides this for job files. A player has one part for each of its other tasks:
//!
//! | | |
//! |---|---|
//! | [`time`] | letting time pass, to an instant or to the first completion |
//! | [`flights`] | the commands in flight, by their tags |
//! | [`tally`] | the counts of the requests |
//! | [`measurement`] | the metrics, and the instants at which they look at the drive |
//! | [`queue`] | the level of the queue, and the longest time without a completion |
//! | [`ahead`] | prefetching for the requests that come next |
//! | [`rest`] | the time at rest before the run |
//! | [`sweep`] | the check of every page at the end |

mod ahead;
mod flights;
mod measurement;
mod queue;
pub(crate) mod rest;
mod sweep;
mod tally;
mod time;

pub(crate) use sweep::sweep;
pub(crate) use tally::Tally;

use crate::RunError;
use crate::explain::Explain;
use crate::metrics::{Event, Findings, MetricDef, Start};
use crate::oracle::Oracle;
use crate::settling::Passes;
use crate::steadiness::Count;
use ahead::Ahead;
use flashatlas_device::{Cmd, Done, Reply, Ssd, Stack, SubmitError};
use flashatlas_types::{Dur, Entries, FtlError, HostOp, MediumError, Ps, Request, Tag, beat};
use flights::{Flight, Flights};
use measurement::{Measurement, View};
use serde::Serialize;
use serde_json::Value;

/// The point of a run at which the drive wore out.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct WornOut {
    /// The request that found no room, counted from 1.
    pub request: u64,
    /// Number of blocks that had gone bad by then.
    pub retired_blocks: u64,
}

/// Player of requests on a drive.
pub(crate) struct Player {
    pub drive: Stack,
    pub oracle: Oracle,
    /// Simulated time.
    pub now: Ps,
    /// Counts of the requests.
    pub tally: Tally,
    /// `true` if the run goes on after a read whose data cannot be read.
    survives_unreadable: bool,
    /// Units whose data was lost while the drive was at rest before the run.
    pub lost_at_rest: u64,
    /// End of a run whose drive wore out before the workload ended.
    pub worn_out: Option<WornOut>,
    flights: Flights,
    measurement: Measurement,
    ahead: Ahead,
    /// Buffer for the drive's completions; empty between calls.
    done: Vec<Done>,
    reply: Reply,
}

/// Returns `true` if `error` reports that data cannot be read.
fn is_unreadable(error: &SubmitError) -> bool {
    let SubmitError::Ftl(FtlError::Medium(error)) = error else { return false };
    matches!(error, MediumError::Unreadable(_) | MediumError::Damaged(_))
}

impl Player {
    /// Returns a player before its first request; its metrics begin with `start`.
    pub fn new(drive: Stack, oracle: Oracle, metrics: Entries<MetricDef>, start: Start) -> Player {
        let mut player = Player {
            drive,
            oracle,
            now: Ps::ZERO,
            tally: Tally::default(),
            survives_unreadable: false,
            lost_at_rest: 0,
            worn_out: None,
            flights: Flights::default(),
            measurement: Measurement::new(metrics, start),
            ahead: Ahead::default(),
            done: Vec::new(),
            reply: Reply::default(),
        };
        player.drive.set_instant(!start.timed);
        player
    }

    /// Hands a request to the drive now, and returns its tag.
    ///
    /// The request reached the host at `arrived`. `number`, counted from 1, is the content number
    /// of a write. `data` contains the bytes of a write if the drive keeps bytes.
    pub fn submit(
        &mut self,
        r: &Request,
        arrived: Ps,
        number: u64,
        data: Option<&[u8]>,
    ) -> Result<u32, RunError> {
        if let Some(requests) = self.measurement.due_in_requests(self.tally.submitted) {
            let (measurement, view) = self.view();
            measurement.sample(requests, view);
        }
        let bytes = tally::bytes(r);
        let tag = self.flights.tag(Flight {
            op: r.op,
            bytes,
            arrived,
            submitted: self.now,
            measured: self.measurement.begun,
            complete: false,
        });
        let cmd = match r.op {
            HostOp::Read => Cmd::Read { lba: r.lba, sectors: r.sectors },
            HostOp::Write => {
                Cmd::Write { lba: r.lba, sectors: r.sectors, fua: r.fua, content: number, data }
            }
            HostOp::Trim => Cmd::Trim { lba: r.lba, sectors: r.sectors },
            HostOp::Flush => Cmd::Flush,
        };
        let mut reply = std::mem::take(&mut self.reply);
        let submitted = self.drive.submit(self.now, Tag(u64::from(tag)), cmd, &mut reply);
        let unreadable = match submitted {
            Err(error) if self.survives(r, &error) => true,
            Err(error) => {
                if is_unreadable(&error) {
                    self.measurement.tell(&Event::Unreadable { bytes, goes_on: false });
                }
                return Err(self.refused(r, number, error));
            }
            Ok(()) => false,
        };
        self.tally.submitted(r);
        beat(1);
        if unreadable {
            self.tally.unreadable += 1;
        } else if r.op == HostOp::Read {
            self.oracle.compare(r, &reply.stamps, number);
        } else {
            self.oracle.apply(r, number);
        }
        self.reply = reply;
        self.measurement.tell(&Event::Submitted { op: r.op, bytes, at: self.now });
        if unreadable {
            self.measurement.tell(&Event::Unreadable { bytes, goes_on: true });
        }
        if self.measurement.start.timed {
            self.measurement.submitted(self.now, self.flights.count);
            self.flights.taken();
        } else {
            self.tally.completed += 1;
            self.flights.completed_at_once(tag);
        }
        Ok(tag)
    }

    /// Lets the run go on after a read whose data cannot be read, if the flash has errors and there
    /// is no layer over the drive.
    pub fn survive_unreadable(&mut self) {
        let drive = self.drive.is_bare().then(|| self.drive.ssd_mut());
        if let Some(drive) = drive.filter(|drive| drive.medium().has_errors()) {
            drive.complete_unreadable();
            self.survives_unreadable = true;
        }
    }

    /// Returns `true` if the run goes on although the drive returned `error` for `r`.
    fn survives(&self, r: &Request, error: &SubmitError) -> bool {
        self.survives_unreadable
            && r.op == HostOp::Read
            && matches!(error, SubmitError::Ftl(FtlError::Medium(MediumError::Unreadable(_))))
            && self.drive.top().failure().is_none()
    }

    /// Returns the bytes that the last read returned, if the drive keeps bytes.
    pub fn bytes_read(&self) -> &[u8] {
        &self.reply.bytes
    }

    /// Prefetches table entries for the first units of each coming request, all together.
    ///
    /// The call changes nothing but the CPU's caches.
    pub fn prefetch<'a>(&mut self, requests: impl Iterator<Item = &'a Request>) {
        self.ahead.prefetch(&self.drive, &self.oracle, requests);
    }

    /// Returns the number of commands that the drive has accepted and not completed.
    pub fn in_flight(&self) -> usize {
        self.flights.count
    }

    /// Returns the error that commands are in flight and no event is left.
    pub fn stalled(&self) -> RunError {
        if let Some(error) = self.drive.top().failure() {
            return self.ended(self.tally.submitted, error);
        }
        RunError::Stalled {
            submitted: self.tally.submitted,
            completed: self.tally.completed,
            waiting: self.drive.ssd().explain(),
        }
    }

    /// Begins to collect the reasons for the latencies of measured requests.
    pub fn explain(&mut self, explain: Explain) {
        self.drive.drives_mut().into_iter().for_each(Ssd::keep_paths);
        self.measurement.explain = Some(explain);
    }

    /// Returns the reasons for latencies, if they were asked for.
    pub fn explained(&self) -> Option<Value> {
        self.measurement.explain.as_ref().map(Explain::to_json)
    }

    /// Returns `true` if the measured part has begun.
    pub fn is_measuring(&self) -> bool {
        self.measurement.begun
    }

    /// Drops all measurements so far, so that the next request is the first that counts.
    pub fn start_measuring(&mut self) {
        self.flights.forget_measured();
        let (now, before) = (self.now, self.count());
        let (measurement, view) = self.view();
        measurement.begin(now, before, view);
    }

    /// Returns the longest time without a completion while commands were in flight, and its
    /// beginning.
    ///
    /// Only times of the measured part count.
    pub fn stillest(&self) -> (Dur, Ps) {
        self.measurement.stillness.longest
    }

    /// Returns the counts of the drive's work so far.
    pub fn count(&self) -> Count {
        let Tally { submitted, written, .. } = self.tally;
        let clock = if self.measurement.start.timed { self.now.0 } else { submitted };
        let (layout, counters) = (self.drive.ssd().layout(), self.drive.flash_counters());
        let count = Count::of(layout, &counters, clock, submitted, written);
        let Count { programmed, erased, .. } = self.measurement.before;
        Count { programmed: programmed + count.programmed, erased: erased + count.erased, ..count }
    }

    /// Returns the passes of a workload that begins now.
    pub fn passes(&self) -> Passes {
        let page_bytes = self.drive.ssd().medium().layout().geometry.page_bytes;
        Passes::new(self.measurement.start, page_bytes, self.count())
    }

    /// Returns the findings of the metrics so far.
    pub fn look(&mut self) -> Findings {
        let (measurement, view) = self.view();
        measurement.look(view)
    }

    /// Returns the findings of every metric at the end.
    pub fn measure(&mut self) -> Findings {
        let (measurement, view) = self.view();
        measurement.finish(view)
    }

    /// Lets the metrics take a sample at `at`.
    fn sample_at(&mut self, at: Ps) {
        let (measurement, view) = self.view();
        measurement.sample_at(at, view);
    }

    /// Returns the measurement, and the view of the drive that its metrics see.
    fn view(&mut self) -> (&mut Measurement, View<'_>) {
        let Player { drive, flights, tally, measurement, .. } = self;
        (measurement, View { drive, flights, submitted: tally.submitted })
    }
}
