//! Energy of the drive by what used it, and the time that it spent in each state of power.
//!
//! All sums are whole femtojoules (a nanojoule is a million of them, and a milliwatt over a
//! picosecond is one), so the parts add up to the total.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_device::{POWER_STATES, Ssd};
use flashatlas_nand::Counters;
use flashatlas_types::{Cause, Dur};
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "energy",
    summary: "joules by operation, resource and cause, and the time in each state of power",
    build: |_| Box::new(OfCounters(look)),
};

const FJ_OF_NJ: u128 = 1_000_000;

fn joules(fj: u128) -> f64 {
    fj as f64 / 1e15
}

fn seconds(time: Dur) -> f64 {
    time.0 as f64 / 1e12
}

/// Returns the femtojoules of pages or blocks, of which some are in SLC mode.
fn of_cells([native, slc]: [u64; 2], all: u64, in_slc_mode: u64) -> u128 {
    let native = u128::from(all - in_slc_mode) * u128::from(native);
    (native + u128::from(in_slc_mode) * u128::from(slc)) * FJ_OF_NJ
}

fn look(now: &Snapshot<'_>, found: &mut Findings) {
    let drive: &Ssd = now.drive;
    let (rates, power) = (drive.energy_rates(), drive.power_states());
    if rates.is_none() && power.is_none() {
        return;
    }
    let rates = rates.unwrap_or_default();
    let counters = &now.counters;
    let [reads, programs, erases] = [&counters.reads, &counters.programs, &counters.erases];
    let rate = |i: usize| [rates.native[i], rates.slc[i]];
    let further = counters.errors.further_pages;
    let [slc_reads, slc_programs, slc_erases] = counters.in_slc_mode;
    let mut parts: Vec<(&str, u128)> = vec![
        ("reads", of_cells(rate(0), Counters::total(reads), slc_reads)),
        ("retries", of_cells(rate(0), further, 0)),
        ("programs", of_cells(rate(1), Counters::total(programs), slc_programs)),
        ("erases", of_cells(rate(2), Counters::total(erases), slc_erases)),
    ];
    let mut record = Map::new();
    if let Some(s) = now.statistics {
        let all = now.active.max(now.elapsed);
        let over = |mw: u64, time: Dur| u128::from(mw) * u128::from(time.0);
        let sum = |times: &[Dur]| Dur(times.iter().map(|time| time.0).sum());
        let counts = power.map_or_else(Default::default, |power| power.counts);
        let low = counts.map(|(_, time)| time);
        let idle = Dur(all.0.saturating_sub(s.at_work.0 + sum(&low).0));
        parts.push(("channels", over(rates.channel, sum(&s.channel_busy))));
        parts.push(("link", over(rates.link, sum(&s.link_busy))));
        parts.push(("cores", over(rates.core, s.core_busy)));
        parts.push(("work", over(rates.work, s.at_work)));
        parts.push(("idle", over(rates.idle, idle)));
        let mut times = json!({ "work": seconds(s.at_work), "idle": seconds(idle) });
        let mut entered = Map::new();
        for (state, name) in POWER_STATES.into_iter().enumerate() {
            let (count, time) = counts[state];
            if count > 0 {
                parts.push((name, over(rates.states[state], time)));
                times[name] = seconds(time).into();
                entered.insert(name.to_owned(), count.into());
            }
        }
        record.insert("seconds".into(), times);
        record.insert("entered".into(), Value::Object(entered));
        let total: u128 = parts.iter().map(|(_, fj)| fj).sum();
        if all > Dur::ZERO {
            record.insert("mean_w".into(), (joules(total) / seconds(all)).into());
        }
    }
    let total = parts.iter().map(|(_, fj)| fj).sum();
    let of_parts = parts.iter().map(|&(name, fj)| (name.to_owned(), joules(fj).into()));
    record.insert("total_j".into(), joules(total).into());
    record.insert("joules".into(), Value::Object(of_parts.collect()));
    // operations in SLC mode are not counted by cause
    if rates.native == rates.slc || counters.in_slc_mode == [0; 3] {
        record.insert("cells_by_cause".into(), by_cause(counters, &rates.native));
    }
    found.record.insert("energy".into(), Value::Object(record));
}

/// Returns the joules of the cells by cause, without retries.
fn by_cause(counters: &Counters, [read, program, erase]: &[u64; 3]) -> Value {
    let of = |cause: Cause| {
        let count = |table: &[u64; Cause::ALL.len()]| u128::from(table[cause as usize]);
        count(&counters.reads) * u128::from(*read)
            + count(&counters.programs) * u128::from(*program)
            + count(&counters.erases) * u128::from(*erase)
    };
    let each = Cause::ALL.iter().map(|&cause| (cause.name(), of(cause)));
    let some = each.filter(|&(_, nj)| nj > 0);
    Value::Object(some.map(|(name, nj)| (name.to_owned(), joules(nj * FJ_OF_NJ).into())).collect())
}
