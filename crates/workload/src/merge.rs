//! Several traces as one source, in order of time, each in an address range of its own.
//!
//! A part is read as a stream: the merge holds one record of each part. If records have the same
//! time, the record of the earlier part comes first. A part of several passes is opened anew for
//! each pass.

use crate::error::{Place, TraceError};
use crate::source::{Account, END_OF_SECTORS, Record, RecordSource};
use flashatlas_types::{Dur, HostOp, Lba, Ps};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Arrival of the first request of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// At this time of the whole.
    At(Ps),
    /// At the time in its file. These times count from the earliest part that begins in this way.
    Recorded,
}

/// Function that opens a part anew, or returns the reason for which it cannot.
pub type Reopen<'a> = Box<dyn Fn() -> Result<Box<dyn RecordSource>, String> + Send + 'a>;

/// One of the merged traces.
pub struct MergePart<'a> {
    /// Name of the file, for errors.
    pub name: String,
    /// Records of the trace.
    pub source: Box<dyn RecordSource>,
    /// Function that opens the trace anew, for the next pass.
    pub reopen: Reopen<'a>,
    /// Arrival of its first request.
    pub begin: Begin,
    /// Number of passes over it, from 1.
    pub times: u64,
    /// Time from the last arrival of a pass to the first of the next; `None` stands for the mean
    /// distance between two arrivals of the pass.
    pub gap: Option<Dur>,
    /// Maximum number of requests of each pass.
    pub requests: u64,
    /// Sector of the whole at which sector 0 of the trace lies.
    pub start: u64,
    /// Number of sectors of its range; addresses beyond the range are taken modulo this number.
    /// `None` stands for all sectors that follow.
    pub space: Option<u64>,
}

/// A part that is being read.
struct Part<'a> {
    given: MergePart<'a>,
    /// Arrival of its first request.
    begin: Ps,
    /// Start of this pass.
    base: Ps,
    passes: u64,
    /// Number of requests of this pass.
    count: u64,
    /// Latest arrival of this pass, since the pass began.
    latest: Ps,
    /// Record that comes next.
    head: Option<Record>,
    /// Account of the passes that ended.
    account: Account,
    /// Number of bytes read in the passes that ended.
    bytes: u64,
    wrapped: u64,
}

/// The records of several parts.
pub struct Merge<'a> {
    parts: Vec<Part<'a>>,
    /// Arrivals and numbers of the parts that have a record.
    due: BinaryHeap<Reverse<(Ps, usize)>>,
    /// Part of the record, or of the error, that was yielded last.
    last: usize,
    /// `true` if the next record of the part `last` is still to be read. It is read only when the
    /// next record is wanted, so that the account of the part ends with the yielded record.
    empty: bool,
}

impl<'a> Merge<'a> {
    /// Returns the parts as one source.
    ///
    /// # Errors
    /// Returns the number of a part, with the reason: its first record cannot be read or is too
    /// late, or its file has no origin of time for [`Begin::Recorded`].
    pub fn new(parts: Vec<MergePart<'a>>) -> Result<Merge<'a>, (usize, TraceError)> {
        let mut all = Vec::new();
        for (number, given) in parts.into_iter().enumerate() {
            let mut part = Part {
                given,
                begin: Ps::ZERO,
                base: Ps::ZERO,
                passes: 0,
                count: 0,
                latest: Ps::ZERO,
                head: None,
                account: Account::default(),
                bytes: 0,
                wrapped: 0,
            };
            part.head = part.pull().map_err(|error| (number, error))?;
            all.push(part);
        }
        let mut merge = Merge { parts: all, due: BinaryHeap::new(), last: 0, empty: false };
        merge.begin()?;
        Ok(merge)
    }

    /// Puts the first records of all parts in order.
    fn begin(&mut self) -> Result<(), (usize, TraceError)> {
        let recorded = |part: &Part<'_>| part.given.begin == Begin::Recorded;
        let clock = |(number, part): (usize, &Part<'_>)| {
            part.given.source.origin_ps().ok_or_else(|| {
                let expected = "a format whose times have an origin";
                let why = "the file does not hold the time of its first request";
                (number, TraceError::new(Place::Byte(0), why, expected))
            })
        };
        let origins: Vec<u128> = self
            .parts
            .iter()
            .enumerate()
            .map(|(number, part)| if recorded(part) { clock((number, part)) } else { Ok(0) })
            .collect::<Result<_, _>>()?;
        let clocks = self.parts.iter().zip(&origins).filter(|(part, _)| recorded(part));
        let first = clocks.map(|(_, origin)| *origin).min().unwrap_or_default();
        for (number, (part, origin)) in self.parts.iter_mut().zip(origins).enumerate() {
            part.begin = match part.given.begin {
                Begin::At(at) => at,
                Begin::Recorded => Ps(u64::try_from(origin - first).unwrap_or(u64::MAX)),
            };
            if let Some(head) = &mut part.head {
                let place = part.given.source.account().last_place;
                head.request.at =
                    later(head.request.at, part.begin, place).map_err(|error| (number, error))?;
                self.due.push(Reverse((head.request.at, number)));
            }
            part.base = part.begin;
        }
        Ok(())
    }
}

/// Returns `at` moved by `by`, or an error if the sum is beyond simulated time.
fn later(at: Ps, by: Ps, place: Option<Place>) -> Result<Ps, TraceError> {
    at.0.checked_add(by.0).map(Ps).ok_or_else(|| {
        let place = place.unwrap_or(Place::Byte(0));
        TraceError::new(place, "a time too far from the first request", "at most 213 days")
    })
}

impl Part<'_> {
    /// Returns the next record with its time and place among the others, or `Ok(None)` after the
    /// last pass.
    fn pull(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if self.count < self.given.requests
                && let Some(record) = self.given.source.next()?
            {
                self.count += 1;
                self.latest = self.latest.max(record.request.at);
                return self.placed(record).map(Some);
            }
            self.passes += 1;
            if self.passes >= self.given.times {
                return Ok(None);
            }
            let mean = self.latest.0 / self.count.saturating_sub(1).max(1);
            let gap = self.given.gap.map_or(mean, |gap| gap.0);
            let passed = later(self.latest, Ps(gap), None)?;
            self.base = later(self.base, passed, None)?;
            (self.count, self.latest) = (0, Ps::ZERO);
            self.account = together(&self.account, &self.given.source.account());
            self.bytes += self.given.source.bytes_read();
            let opened = (self.given.reopen)();
            self.given.source = opened.map_err(|why| TraceError::new(Place::Byte(0), why, ""))?;
        }
    }

    fn placed(&mut self, mut record: Record) -> Result<Record, TraceError> {
        let place = || self.given.source.account().last_place.unwrap_or(Place::Byte(0));
        let wrong = |why: &'static str, expected| Err(TraceError::new(place(), why, expected));
        if record.device != 0 {
            return wrong(
                "a second address space in a part, which may have only one",
                "`device_map=collapse` or `device_map=select:N` of the part",
            );
        }
        let request = &mut record.request;
        request.at = Ps(self.base.0.saturating_add(request.at.0));
        if request.at.0 == u64::MAX {
            return wrong("a time too far from the first request", "at most 213 days");
        }
        if request.op == HostOp::Flush {
            return Ok(record);
        }
        let sectors = u64::from(request.sectors);
        if let Some(space) = self.given.space
            && request.lba.0 + sectors > space
        {
            if sectors > space {
                return wrong("a request longer than the range of its part", "a larger `space`");
            }
            self.wrapped += 1;
            request.lba = Lba((request.lba.0 % space).min(space - sectors));
        }
        match self.given.start.checked_add(request.lba.0) {
            Some(lba) if lba + sectors <= END_OF_SECTORS => request.lba = Lba(lba),
            _ => return wrong("an address beyond all drives", "an end below 2^64 bytes"),
        }
        Ok(record)
    }
}

/// Returns the sum of two accounts.
fn together(one: &Account, other: &Account) -> Account {
    Account {
        skipped_bad: one.skipped_bad + other.skipped_bad,
        skipped_kinds: std::array::from_fn(|kind| {
            one.skipped_kinds[kind] + other.skipped_kinds[kind]
        }),
        duplicates_dropped: one.duplicates_dropped + other.duplicates_dropped,
        not_selected: one.not_selected + other.not_selected,
        gaps_cut: one.gaps_cut + other.gaps_cut,
        backward_steps: one.backward_steps + other.backward_steps,
        before_first: one.before_first + other.before_first,
        wrapped: one.wrapped + other.wrapped,
        last_place: None,
        first_jump: one.first_jump.or(other.first_jump),
        device_names: Vec::new(),
    }
}

impl RecordSource for Merge<'_> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if std::mem::take(&mut self.empty) {
            let part = &mut self.parts[self.last];
            part.head = part.pull().inspect_err(|_| self.due.clear())?;
            if let Some(head) = part.head {
                self.due.push(Reverse((head.request.at, self.last)));
            }
        }
        let Some(Reverse((_, number))) = self.due.pop() else { return Ok(None) };
        (self.last, self.empty) = (number, true);
        Ok(self.parts[number].head.take())
    }

    fn account(&self) -> Account {
        let whole = self.parts.iter().fold(Account::default(), |all, part| {
            let ended = together(&all, &part.account);
            let so_far = together(&ended, &part.given.source.account());
            Account { wrapped: so_far.wrapped + part.wrapped, ..so_far }
        });
        let last_place = self.parts[self.last].given.source.account().last_place;
        Account { last_place, ..whole }
    }

    fn bytes_read(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes + part.given.source.bytes_read()).sum()
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn file(&self) -> Option<&str> {
        Some(&self.parts[self.last].given.name)
    }
}
