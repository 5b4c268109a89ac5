//! All counts over time, with one row for each interval.
//!
//! The drive's counters are read at the end of each interval, and a row is the difference of two
//! readings. If the user gave no interval, the first interval is a millisecond. Each time the table
//! is full, its rows are joined in pairs. So a run of a second and a run of a month both end with
//! 256 to 512 rows, in constant memory.

use super::merges::utilisation;
use super::{Event, Findings, Metric, MetricDef, Snapshot, Start, thin_out};
use crate::table::{Column, Table};
use flashatlas_ftl::{AreaUse, MergeClass, MergeCounters};
use flashatlas_nand::Counters;
use flashatlas_types::{Cause, HostOp};
use hdrhistogram::Histogram;
use serde_json::json;

pub const DEF: MetricDef = MetricDef {
    name: "series",
    summary: "requests, latencies, flash operations, busy shares and levels over time",
    build: |start| Box::new(Series::new(start)),
};

/// Number of rows at which rows are joined in pairs, if the user gave no width.
const ROWS_MAX: usize = 512;
/// Number of rows at which rows are joined in pairs, if the user gave the width.
const FIXED_ROWS_MAX: usize = 1 << 16;
/// Significant digits of a histogram: a percentile of a row is off by at most 1 %.
const DIGITS: u8 = 2;

/// Counters at one instant, counted since measuring began.
#[derive(Clone, Default)]
struct Reading {
    clock: u64,
    submitted: u64,
    counters: Counters,
    collected: [u64; 3],
    map: [u64; 2],
    merges: Option<MergeCounters>,
    /// Busy times, summed over dies and over channels.
    die_busy: u64,
    channel_busy: u64,
    link_busy: [u64; 2],
    /// Commands in flight, summed over the picoseconds since measuring began.
    in_flight_time: u128,
    /// Levels at this instant; the fields above are sums.
    cache_dirty: u64,
    free_blocks: u64,
    areas: Vec<AreaUse>,
}

/// Requests of the host in one interval.
#[derive(Clone, Default)]
struct Host {
    /// Latencies of each operation in the current interval.
    open: [Option<Histogram<u32>>; 4],
    /// Latencies of an interval that is over: upper edges of bins in nanoseconds, ascending, with
    /// counts.
    latency: [Vec<(u64, u32)>; 4],
    max_ps: [u64; 4],
    total_ps: [u128; 4],
    requests: [u64; 4],
    bytes: [u64; 4],
    written: u64,
}

struct Series {
    timed: bool,
    width: u64,
    rows_max: usize,
    readings: Vec<Reading>,
    rows: Vec<Host>,
    open: Host,
    dies: usize,
    channels: usize,
}

impl Series {
    fn new(start: Start) -> Series {
        let given = start.interval.filter(|_| start.timed).map(|d| d.0.max(1));
        Series {
            timed: start.timed,
            width: given.unwrap_or(start.first_width()),
            rows_max: if given.is_some() { FIXED_ROWS_MAX } else { ROWS_MAX },
            readings: Vec::new(),
            rows: Vec::new(),
            open: Host::default(),
            dies: 1,
            channels: 1,
        }
    }

    fn read(&mut self, clock: u64, now: &Snapshot<'_>) -> Reading {
        let mut reading = Reading {
            clock,
            submitted: now.submitted,
            counters: now.counters,
            collected: now.ftl.collected,
            map: [now.ftl.map.hits, now.ftl.map.misses],
            merges: now.ftl.merges,
            areas: now.ftl.areas.clone(),
            in_flight_time: now.in_flight_time,
            cache_dirty: now.drive.dirty_units(),
            free_blocks: now.ftl.free_blocks,
            ..Reading::default()
        };
        if let Some(s) = now.statistics {
            (self.dies, self.channels) = (s.die_busy.len(), s.channel_busy.len());
            reading.die_busy = s.die_busy.iter().map(|d| d.0).sum();
            reading.channel_busy = s.channel_busy.iter().map(|d| d.0).sum();
            reading.link_busy = s.link_busy.map(|d| d.0);
        }
        reading
    }

    fn push_row(&mut self, reading: Reading) {
        let mut row = std::mem::take(&mut self.open);
        for op in 0..4 {
            // most bins of a short interval are empty: keep only the other bins
            let full = row.open[op].take();
            row.latency[op] = full
                .iter()
                .flat_map(|h| h.iter_recorded())
                .map(|b| (b.value_iterated_to(), b.count_at_value()))
                .collect();
        }
        self.rows.push(row);
        self.readings.push(reading);
    }

    /// Closes the open row; if the number of rows is at its limit, joins rows in pairs.
    fn close(&mut self, reading: Reading) {
        self.push_row(reading);
        if self.rows.len() == self.rows_max {
            self.width *= 2;
            thin_out(&mut self.readings);
            let mut rows = std::mem::take(&mut self.rows).into_iter();
            while let Some(mut row) = rows.next() {
                if let Some(other) = rows.next() {
                    row.join(&other);
                }
                self.rows.push(row);
            }
        }
    }
}

impl Host {
    /// Returns the latency that `share` of an operation's requests do not exceed, in nanoseconds.
    fn quantile(&self, op: usize, share: f64) -> u64 {
        let total: u64 = self.latency[op].iter().map(|bin| u64::from(bin.1)).sum();
        let mut left = (share * total as f64).ceil() as u64;
        for &(edge, count) in &self.latency[op] {
            left = left.saturating_sub(count.into());
            if left == 0 {
                return edge;
            }
        }
        0
    }

    fn join(&mut self, other: &Host) {
        for op in 0..4 {
            for &(edge, count) in &other.latency[op] {
                match self.latency[op].binary_search_by_key(&edge, |bin| bin.0) {
                    Ok(at) => self.latency[op][at].1 += count,
                    Err(at) => self.latency[op].insert(at, (edge, count)),
                }
            }
            self.max_ps[op] = self.max_ps[op].max(other.max_ps[op]);
            self.total_ps[op] += other.total_ps[op];
            self.requests[op] += other.requests[op];
            self.bytes[op] += other.bytes[op];
        }
        self.written += other.written;
    }
}

impl Metric for Series {
    fn on(&mut self, event: &Event) {
        match *event {
            Event::Submitted { op, bytes, .. } => {
                if op == HostOp::Write {
                    self.open.written += bytes;
                }
                if !self.timed {
                    self.open.requests[op as usize] += 1;
                    self.open.bytes[op as usize] += bytes;
                }
            }
            Event::Done { op, bytes, arrived, at, .. } => {
                let (i, latency) = (op as usize, at.since(arrived));
                self.open.requests[i] += 1;
                self.open.bytes[i] += bytes;
                self.open.total_ps[i] += u128::from(latency.0);
                self.open.max_ps[i] = self.open.max_ps[i].max(latency.0);
                let new = || Histogram::new(DIGITS).expect("two digits are supported");
                let histogram = self.open.open[i].get_or_insert_with(new);
                histogram.record(latency.ns()).expect("the histogram grows");
            }
            Event::Unreadable { .. } => {}
        }
    }

    fn next_sample(&self) -> u64 {
        self.readings.last().map_or(0, |r| r.clock.saturating_add(self.width))
    }

    fn sample(&mut self, clock: u64, now: &Snapshot<'_>) {
        if clock == 0 {
            self.readings = vec![self.read(0, now)];
        } else if clock == self.next_sample() {
            let reading = self.read(clock, now);
            self.close(reading);
        }
    }

    fn finish(&mut self, end: &Snapshot<'_>, found: &mut Findings) {
        let clock = end.end_clock(self.timed);
        if clock > self.readings[self.readings.len() - 1].clock {
            let reading = self.read(clock, end);
            self.push_row(reading);
        }
        if self.rows.is_empty() {
            return;
        }
        let width = if self.timed {
            ("width_ns", self.width as f64 / 1e3)
        } else {
            ("width_requests", self.width as f64)
        };
        found.record.insert("series".into(), json!({ "rows": self.rows.len(), width.0: width.1 }));
        found.tables.push(self.table(f64::from(end.medium.layout().geometry.page_bytes)));
    }
}

impl Series {
    fn table(&self, page_bytes: f64) -> Table {
        let mut table = Table::new("series");
        let pairs: Vec<(&Reading, &Reading)> =
            self.readings.iter().zip(&self.readings[1..]).collect();
        let of = |value: &dyn Fn(&Reading) -> u64| self.differences(value);
        let at = |value: &dyn Fn(&Reading) -> u64| {
            Column::Int(pairs.iter().map(|(_, to)| value(to) as i64).collect())
        };
        if self.timed {
            let ns = |value: &dyn Fn(&Reading, &Reading) -> u64| {
                Column::Int(
                    pairs.iter().map(|(from, to)| (value(from, to) / 1000) as i64).collect(),
                )
            };
            table.add("start_ns", ns(&|from, _| from.clock));
            table.add("width_ns", ns(&|from, to| to.clock - from.clock));
        }
        table.add(
            "requests_from",
            Column::Int(pairs.iter().map(|(from, _)| from.submitted as i64 + 1).collect()),
        );
        for op in HostOp::ALL {
            self.add_operation(&mut table, op);
        }
        for (name, counts) in [
            ("programs", (|c| &c.programs) as fn(&Counters) -> &[u64; Cause::ALL.len()]),
            ("reads", |c| &c.reads),
            ("erases", |c| &c.erases),
        ] {
            for (cause, _) in
                Counters::by_cause(counts(&self.readings[self.readings.len() - 1].counters))
            {
                let i = Cause::ALL.iter().position(|c| c.name() == cause).expect("one of all");
                table.add(format!("{name}_{cause}"), of(&|r| counts(&r.counters)[i]));
            }
        }
        let waf = pairs.iter().zip(&self.rows).map(|((from, to), host)| {
            let programs =
                Counters::total(&to.counters.programs) - Counters::total(&from.counters.programs);
            if host.written == 0 {
                f64::NAN
            } else {
                programs as f64 * page_bytes / host.written as f64
            }
        });
        table.add("waf", Column::Float(waf.collect()));
        if self.timed {
            let share = |count: usize, busy: &dyn Fn(&Reading) -> u64| {
                let one = |(from, to): &(&Reading, &Reading)| {
                    (busy(to) - busy(from)) as f64 / (to.clock - from.clock) as f64 / count as f64
                };
                Column::Float(pairs.iter().map(one).collect())
            };
            table.add("die_busy", share(self.dies, &|r| r.die_busy));
            table.add("channel_busy", share(self.channels, &|r| r.channel_busy));
            table.add("link_in_busy", share(1, &|r| r.link_busy[0]));
            table.add("link_out_busy", share(1, &|r| r.link_busy[1]));
            let level = pairs.iter().map(|(from, to)| {
                (to.in_flight_time - from.in_flight_time) as f64 / (to.clock - from.clock) as f64
            });
            table.add("in_flight_mean", Column::Float(level.collect()));
        }
        table.add("cache_dirty_units", at(&|r| r.cache_dirty));
        table.add("free_blocks", at(&|r| r.free_blocks));
        table.add("collected_foreground", of(&|r| r.collected[0]));
        table.add("collected_idle", of(&|r| r.collected[1]));
        table.add("collected_wear", of(&|r| r.collected[2]));
        table.add("map_hits", of(&|r| r.map[0]));
        table.add("map_misses", of(&|r| r.map[1]));
        self.add_merges(&mut table);
        self.add_areas(&mut table);
        table
    }

    /// Returns the growth of a counter in each row.
    fn differences(&self, value: &dyn Fn(&Reading) -> u64) -> Column {
        let ends = self.readings.iter().zip(&self.readings[1..]);
        Column::Int(ends.map(|(from, to)| (value(to) - value(from)) as i64).collect())
    }

    /// Adds merges by class, and their copies, for schemes that merge.
    fn add_merges(&self, table: &mut Table) {
        let of = |value: &dyn Fn(&Reading) -> u64| self.differences(value);
        let Some(first) = self.readings[0].merges else { return };
        let merges = |r: &Reading| r.merges.unwrap_or_default();
        for (i, class) in MergeClass::ALL.iter().enumerate().take(first.data_blocks.len()) {
            table.add(format!("merges_{}", class.name()), of(&|r| merges(r).data_blocks[i]));
        }
        if first.log_blocks.is_some() {
            for (i, class) in MergeClass::ALL.iter().enumerate() {
                let reclaimed = of(&|r| merges(r).log_blocks.unwrap_or_default()[i]);
                table.add(format!("reclaimed_{}", class.name()), reclaimed);
            }
            table.add("moved_pages", of(&|r| merges(r).moved_pages));
        }
        table.add("merge_copies", of(&|r| merges(r).copies));
    }

    /// Adds the budget, blocks and share of valid pages of each area of the log.
    ///
    /// The values hold at the end of each row.
    fn add_areas(&self, table: &mut Table) {
        for (i, area) in self.readings[0].areas.iter().enumerate() {
            let ends = || self.readings[1..].iter().map(move |r| r.areas[i]);
            table.add(
                format!("area_{}_budget", area.name),
                Column::Int(ends().map(|a| a.budget.into()).collect()),
            );
            table.add(
                format!("area_{}_blocks", area.name),
                Column::Int(ends().map(|a| a.blocks.into()).collect()),
            );
            let valid = ends().map(|a| utilisation(&a).unwrap_or(f64::NAN));
            table.add(format!("area_{}_utilisation", area.name), Column::Float(valid.collect()));
        }
    }

    /// Adds the columns of one host operation, if such an operation occurred.
    fn add_operation(&self, table: &mut Table, op: HostOp) {
        let (i, name) = (op as usize, op.name());
        if self.rows.iter().all(|row| row.requests[i] == 0) {
            return;
        }
        table.add(
            format!("{name}_requests"),
            Column::Int(self.rows.iter().map(|r| r.requests[i] as i64).collect()),
        );
        table.add(
            format!("{name}_bytes"),
            Column::Int(self.rows.iter().map(|r| r.bytes[i] as i64).collect()),
        );
        if !self.timed {
            return;
        }
        let latency = |value: &dyn Fn(&Host) -> f64| {
            let one = |row: &Host| if row.requests[i] == 0 { f64::NAN } else { value(row) };
            Column::Float(self.rows.iter().map(one).collect())
        };
        let max_ns = |row: &Host| row.max_ps[i] as f64 / 1e3;
        let at = |row: &Host, share: f64| (row.quantile(i, share) as f64).min(max_ns(row));
        table.add(
            format!("{name}_mean_ns"),
            latency(&|row| row.total_ps[i] as f64 / row.requests[i] as f64 / 1e3),
        );
        table.add(format!("{name}_p50_ns"), latency(&|row| at(row, 0.5)));
        table.add(format!("{name}_p99_ns"), latency(&|row| at(row, 0.99)));
        table.add(format!("{name}_max_ns"), latency(&|row| max_ns(row)));
    }
}
