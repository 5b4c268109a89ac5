//! Measurements of a study.

use flashatlas_dram::Timings;
use flashatlas_dram::paper_table::{CLASSES, Classifier, latency};
use flashatlas_types::DramAccess;
use hdrhistogram::Histogram;

/// A tenth of the requests, in order (Fig. 8).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tenth {
    /// Number of lookups.
    pub lookups: u64,
    /// Number of bursts that these lookups read.
    pub reads: u64,
    /// Clocks from the last read before the tenth to the last read of the tenth.
    pub clocks: u64,
    /// Clocks of the same reads by the paper's table.
    pub paper_clocks: u64,
}

/// The outcome of a study.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Length of a clock in picoseconds.
    pub tck_ps: u32,
    /// Number of lookups.
    pub lookups: u64,
    /// Number of lookups that found their address.
    pub hits: u64,
    /// Number of bursts that lookups read.
    pub reads: u64,
    /// Clocks from the first lookup's arrival to the last read.
    pub clocks: u64,
    /// Clocks of the same reads by the paper's table (Fig. 6), taken literally.
    pub paper_clocks: u64,
    /// Reads by the classes of Table V.
    pub classes: [u64; CLASSES.len()],
    /// Percentiles of the service, in clocks: 50, 90, 99, 99.9, 100.
    pub service: [u64; 5],
    /// The same percentiles of the latency, which is the time from a lookup's arrival until its
    /// data has arrived. Zero if all lookups arrive at the same time.
    pub latency: [u64; 5],
    /// Mean latency in clocks.
    pub latency_mean: f64,
    /// Tenths of the requests.
    pub tenths: Vec<Tenth>,
    /// For each bank, the share of the lookups whose first read goes to it.
    pub banks: Vec<f64>,
    /// Number of activations for lookups and changes.
    pub activations: u64,
    /// Number of refreshes.
    pub refreshes: u64,
    /// Number of entries in the LPMT at the end.
    pub entries: u64,
    /// Share of these entries that are in the primary table (Table IV).
    pub primary_share: f64,
    /// Number of secondary sets in use at the end.
    pub secondary_used: u32,
    /// Numbers of keys whose chains have 1, 2, 3 … sets.
    pub chains: Vec<u64>,
    /// Number of sets that lookups and timed changes scanned.
    pub sets_scanned: u64,
    /// Bytes of the DRAM rows that hold the LPMT (or the flat array).
    pub lpmt_bytes: u64,
    /// Bytes of the DRAM rows that hold the block tables.
    pub block_table_bytes: u64,
    /// Bytes of the LPMT if every field has its least width.
    pub lpmt_packed_bytes: u64,
    /// Bytes of the block tables if every field has its least width.
    pub block_table_packed_bytes: u64,
}

impl Summary {
    /// Returns the mean clocks of a lookup: the total time divided by the number of lookups.
    pub fn clocks_per_lookup(&self) -> f64 {
        self.clocks as f64 / self.lookups.max(1) as f64
    }

    /// Returns the sum of the squares of the banks' shares. It is 1 for a single bank, and 1
    /// divided by the number of banks if all are used equally.
    pub fn bank_skew(&self) -> f64 {
        self.banks.iter().map(|share| share * share).sum()
    }
}

/// Percentiles of [`Summary::service`] and [`Summary::latency`].
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// Counts of times in clocks. Times below [`Times::EXACT`] have one exact count each; longer times
/// are counted in a histogram.
struct Times {
    exact: Vec<u64>,
    longer: Histogram<u64>,
    longest: u64,
    total: u128,
    count: u64,
}

impl Times {
    const EXACT: u64 = 1024;

    fn new() -> Times {
        let longer = Histogram::new(3).expect("three digits");
        Times { exact: vec![0; Self::EXACT as usize], longer, longest: 0, total: 0, count: 0 }
    }

    #[inline]
    fn add(&mut self, clocks: u64) {
        self.total += u128::from(clocks);
        self.count += 1;
        self.longest = self.longest.max(clocks);
        match self.exact.get_mut(clocks as usize) {
            Some(count) => *count += 1,
            None => self.longer.record(clocks).expect("a histogram that grows"),
        }
    }

    fn mean(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }

    /// Returns the smallest time such that at least `percent` per cent of the times are not longer.
    fn percentile(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (clocks, count) in (0..).zip(&self.exact) {
            seen += count;
            if seen >= wanted {
                return clocks;
            }
        }
        match self.longer.len() {
            0 => 0,
            longer => self
                .longer
                .value_at_quantile((wanted - seen) as f64 / longer as f64)
                .min(self.longest),
        }
    }
}

pub(super) struct Measure {
    /// Clocks of a read of each class, by the paper's table.
    clocks: [u64; CLASSES.len()],
    /// Number of reads of each class since the current tenth began.
    classes: [u64; CLASSES.len()],
    summary: Summary,
    classifier: Classifier,
    first_reads: Vec<u64>,
    service: Times,
    latency: Times,
    requests: u64,
    expected: u64,
    /// Number of the request with which the next tenth begins.
    next: u64,
    tenth: Tenth,
}

impl Measure {
    pub fn new(timings: &Timings, banks: u32) -> Measure {
        Measure {
            clocks: std::array::from_fn(|class| latency(timings, class).into()),
            classes: [0; CLASSES.len()],
            summary: Summary { tck_ps: timings.tck_ps, ..Summary::default() },
            classifier: Classifier::new(banks),
            first_reads: vec![0; banks as usize],
            service: Times::new(),
            latency: Times::new(),
            requests: 0,
            expected: 0,
            next: u64::MAX,
            tenth: Tenth::default(),
        }
    }

    /// Announces the number of requests.
    pub fn expect(&mut self, requests: u64) {
        (self.expected, self.next) = (requests, requests.div_ceil(10));
    }

    /// Notes that a request begins.
    #[inline]
    pub fn request(&mut self) {
        if self.requests == self.next && self.summary.tenths.len() < 9 {
            self.end_tenth();
            let tenth = self.summary.tenths.len() as u128 + 1;
            self.next = (u128::from(self.expected) * tenth).div_ceil(10) as u64;
        }
        self.requests += 1;
    }

    /// Notes a change of the tables. It is not a lookup, but it opens other rows.
    pub fn change(&mut self, accesses: &[DramAccess]) {
        for access in accesses {
            self.classifier.read(access.bank, access.row, access.bursts.into());
        }
    }

    /// Notes that an access of a lookup was served. `first` marks the lookup's first access.
    #[inline]
    pub fn read(&mut self, access: DramAccess, first: bool) {
        let bursts = u64::from(access.bursts);
        let class = self.classifier.read(access.bank, access.row, bursts);
        self.classes[class] += 1;
        // the other bursts hit the row that the first burst opened
        self.classes[5] += bursts - 1;
        self.first_reads[usize::from(access.bank)] += u64::from(first);
    }

    /// Notes that all accesses of a lookup were served.
    #[inline]
    pub fn lookup(&mut self, service: u64, latency_clocks: Option<u64>, hit: bool) {
        self.summary.hits += u64::from(hit);
        let t = &mut self.tenth;
        t.lookups += 1;
        t.clocks += service;
        self.service.add(service);
        if let Some(clocks) = latency_clocks {
            self.latency.add(clocks);
        }
    }

    fn end_tenth(&mut self) {
        let mut t = std::mem::take(&mut self.tenth);
        let classes = std::mem::take(&mut self.classes);
        for (class, reads) in classes.into_iter().enumerate() {
            self.summary.classes[class] += reads;
            t.reads += reads;
            t.paper_clocks += reads * self.clocks[class];
        }
        self.summary.lookups += t.lookups;
        self.summary.reads += t.reads;
        self.summary.clocks += t.clocks;
        self.summary.paper_clocks += t.paper_clocks;
        self.summary.tenths.push(t);
    }

    /// Returns the summary, with the `activations` and `refreshes` of the device.
    pub fn finish(mut self, (activations, refreshes): (u64, u64)) -> Summary {
        self.end_tenth();
        let lookups = self.summary.lookups.max(1) as f64;
        Summary {
            service: PERCENTILES.map(|p| self.service.percentile(p)),
            latency: PERCENTILES.map(|p| self.latency.percentile(p)),
            latency_mean: self.latency.mean(),
            banks: self.first_reads.iter().map(|&reads| reads as f64 / lookups).collect(),
            activations,
            refreshes,
            ..self.summary
        }
    }
}
