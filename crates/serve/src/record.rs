//! Descriptions of a drive while it is served and after serving, each as one JSON object.

use crate::image::Found;
use crate::notes::REPLIES_LATE;
use crate::spec::{ServeSpec, Time};
use flashatlas_sim::metrics::Findings;
use flashatlas_sim::table::{Column, Table};
use flashatlas_sim::{Live, Outcome};
use flashatlas_types::{Note, NoteValue, Ps, SECTOR_BYTES};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Share of the drive's own latency. If replies are delayed by more than this share, the record
/// gets a note.
const LATE_SHARE: f64 = 0.1;

/// Measurements of serving.
pub struct OfServing<'a> {
    /// The time at which replies were sent.
    pub time: Time,
    /// Delays of replies, in nanoseconds.
    pub late: &'a Histogram<u64>,
    /// Number of client writes with FUA.
    pub fua_writes: u64,
    /// Findings in the image.
    pub found: &'a Found,
    /// The record's entry for the trace, if one was recorded.
    pub recorded: Option<Value>,
}

/// Returns the delays of replies in nanoseconds, or `None` if no reply was sent at the drive's
/// time.
fn of_late(late: &Histogram<u64>) -> Option<Value> {
    (!late.is_empty()).then(|| {
        json!({
            "count": late.len(),
            "p50": late.value_at_quantile(0.5),
            "p99": late.value_at_quantile(0.99),
            "max": late.max(),
        })
    })
}

/// Returns a note that replies were late, if their p99 delay is over a tenth of the drive's p99.
///
/// The drive's p99 is the smallest p99 among the operations in `found`, the findings of the
/// metrics, because the delay matters most for that operation.
pub fn late_note(late: &Histogram<u64>, found: &Value) -> Option<Note> {
    let p99 = late.value_at_quantile(0.99);
    let ops = found.get("latency_ns")?.as_object()?;
    let of_op = |(op, numbers): (&String, &Value)| Some((op.clone(), numbers["p99"].as_f64()?));
    let (op, drive) = ops.iter().filter_map(of_op).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let us = |ns: f64| NoteValue::from((ns / 1e3).round() as u64);
    (p99 as f64 > LATE_SHARE * drive).then(|| {
        REPLIES_LATE.with([
            ("p50", us(late.value_at_quantile(0.5) as f64)),
            ("p99", us(p99 as f64)),
            ("drive", us(drive)),
            ("op", op.as_str().into()),
        ])
    })
}

/// Returns the note that replies are late, together with its advice. A viewer of a live drive has
/// no list of notes in which to find the advice.
fn with_advice(note: Note) -> Value {
    let mut said = json!(note);
    said["advice"] = REPLIES_LATE.advice.into();
    said
}

/// Returns the record, the tables and the measurements of serving as one object.
pub fn served(outcome: Outcome, of: OfServing<'_>) -> Value {
    let Outcome { mut record, tables, .. } = outcome;
    let OfServing { time, late, fua_writes, found, recorded } = of;
    let slower = match time {
        Time::None => 0.0,
        Time::Real(slower) => slower,
    };
    let mut said = json!({ "time": slower, "fua_writes": fua_writes });
    if let Some(late) = of_late(late) {
        said["late_ns"] = late;
    }
    if !found.damaged.is_empty() || !found.damaged_blocks.is_empty() {
        let blocks = found.damaged_blocks.iter().map(|block| block.number());
        said["damaged"] = json!({
            "frames": found.damaged.iter().map(|frame| frame.0).collect::<Vec<_>>(),
            "block_records": blocks.collect::<Vec<_>>(),
        });
    }
    if let Some(recorded) = recorded {
        said["recorded"] = recorded;
    }
    record["served"] = said;
    json!({ "record": record, "tables": tables.iter().map(table).collect::<Vec<_>>() })
}

/// Returns the state of a drive that is being served, as one object.
pub fn live(plan: &ServeSpec, live: &mut Live, clock: Ps, late: &Histogram<u64>) -> Value {
    let shape = live.shape();
    let (simulated_ns, in_flight) = (live.now().0 / 1000, live.in_flight());
    let Findings { record, tables } = live.look();
    let record = Value::Object(record);
    let note = late_note(late, &record);
    json!({
        "schema": "flashatlas.live/1",
        "drive": plan.drive,
        "set": plan.set,
        "capacity_bytes": shape.sectors * u64::from(SECTOR_BYTES),
        "serving_ns": clock.0 / 1000,
        "simulated_ns": simulated_ns,
        "in_flight": in_flight,
        "late_ns": of_late(late),
        "notes": note.into_iter().map(with_advice).collect::<Vec<_>>(),
        "record": record,
        "tables": tables.iter().map(table).collect::<Vec<_>>(),
    })
}

fn table(table: &Table) -> Value {
    let column = |(name, column): &(String, Column)| {
        let values = match column {
            Column::Int(values) => json!(values),
            // a missing value is NaN; JSON has no NaN, so it becomes null
            Column::Float(values) => json!(values),
            Column::Words { of, codes } => {
                json!(codes.iter().map(|&code| of[code as usize]).collect::<Vec<_>>())
            }
        };
        let kind = match column {
            Column::Int(_) => "int",
            Column::Float(_) => "float",
            Column::Words { .. } => "words",
        };
        json!({ "name": name, "kind": kind, "values": values })
    };
    json!({ "name": table.name, "columns": table.columns.iter().map(column).collect::<Vec<_>>() })
}
