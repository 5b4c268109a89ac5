//! A summary as JSON.

use super::{DeviceCounts, IntervalUnit, PAGE_BYTES, TraceSummary};
use flashatlas_types::HostOp;
use serde_json::{Map, Value, json};

impl TraceSummary {
    /// Returns the summary as a JSON object. Times are seconds, sizes bytes, shares 0 to 1.
    ///
    /// | Key | Meaning |
    /// |---|---|
    /// | `requests`, `reads`, `writes`, `trims`, `flushes` | counts |
    /// | `read_share`, `mean_bytes`, `read_bytes`, `written_bytes` | of reads and writes |
    /// | `footprint_bytes` | distinct pages of 4 KiB that reads and writes touch |
    /// | `pages_written`, `distinct_pages_written`, `overwrite_ratio` | pages of 4 KiB, and the ratio of the first number to the second |
    /// | `highest_bytes` | one past the highest byte addressed |
    /// | `devices` | address spaces |
    /// | `duration_s` | the latest time |
    /// | `unaligned_share`, `sequential_share` | of all requests but flushes |
    /// | `out_of_order` | records with an earlier time than the record before |
    /// | `zero_time` | `true` if every record is at time 0 |
    /// | `jumps` | steps of time of more than a day |
    /// | `repeats` | records that repeat the previous record of the same device within 5 ms |
    /// | `dispersion`, `peak_to_mean` | of the requests in windows of a second; absent without times |
    /// | `sizes.OP` | list of `[bytes, count]`: number of requests with at most `bytes` bytes, and more than half of them |
    /// | `device_counts` | for each: `device`, `reads`, `writes`, `trims`, `flushes`, `read_bytes`, `written_bytes` |
    /// | `intervals.by` | `time`, or `requests` when all records are at time 0 |
    /// | `intervals.width` | seconds, or requests |
    /// | `intervals.requests`, `.read_bytes`, `.written_bytes` | in each interval |
    /// | `intervals.working_set_bytes` | distinct pages in each interval; the standard error is 1.6 % |
    /// | `intervals.footprint_bytes` | distinct pages from the start of the trace to the end of each interval |
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "requests": self.requests(), "reads": self.reads(), "writes": self.writes(),
            "trims": self.trims(),
            "flushes": self.flushes(), "read_share": self.read_share(),
            "mean_bytes": self.mean_bytes(),
            "read_bytes": self.read_bytes(), "written_bytes": self.written_bytes(),
            "footprint_bytes": self.footprint_bytes(), "pages_written": self.pages_written(),
            "distinct_pages_written": self.distinct_pages_written(),
            "overwrite_ratio": self.overwrite_ratio(),
            "highest_bytes": self.highest_bytes(), "devices": self.devices(),
            "duration_s": seconds(self.duration().0),
            "unaligned_share": self.unaligned_share(), "sequential_share": self.sequential_share(),
            "out_of_order": self.out_of_order(), "zero_time": self.zero_time(),
            "jumps": self.jumps(), "repeats": self.repeats(),
            "sizes": self.sizes_json(),
            "device_counts": self.device_counts().map(|(device, counts)| device_json(device,
                counts)).collect::<Value>(),
            "intervals": self.intervals_json(),
        });
        if !self.zero_time() {
            object["dispersion"] = json!(self.dispersion());
            object["peak_to_mean"] = json!(self.peak_to_mean());
        }
        object
    }

    fn sizes_json(&self) -> Value {
        let sized = HostOp::ALL.into_iter().filter(|&op| op != HostOp::Flush);
        let histograms = sized.map(|op| {
            let rows = self.sizes(op).map(|(bytes, count)| json!([bytes, count]));
            (op.name().to_owned(), rows.collect::<Value>())
        });
        Value::Object(histograms.collect::<Map<String, Value>>())
    }

    fn intervals_json(&self) -> Value {
        let intervals = self.intervals();
        let each: Vec<_> = intervals.each().collect();
        let (by, width) = match intervals.by() {
            IntervalUnit::Time => ("time", json!(seconds(intervals.width()))),
            IntervalUnit::Requests => ("requests", json!(intervals.width())),
        };
        json!({
            "by": by, "width": width,
            "requests": each.iter().map(|i| i.requests).collect::<Vec<u64>>(),
            "read_bytes": each.iter().map(|i| i.read_bytes).collect::<Vec<u64>>(),
            "written_bytes": each.iter().map(|i| i.written_bytes).collect::<Vec<u64>>(),
            "working_set_bytes":
                each.iter().map(|i| i.working_set_pages() * PAGE_BYTES).collect::<Vec<u64>>(),
            "footprint_bytes":
                each.iter().map(|i| i.footprint_pages * PAGE_BYTES).collect::<Vec<u64>>(),
        })
    }
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

fn device_json(device: u32, counts: &DeviceCounts) -> Value {
    let [reads, writes, trims, flushes] = counts.requests;
    json!({
        "device": device, "reads": reads, "writes": writes, "trims": trims, "flushes": flushes,
        "read_bytes": counts.bytes[HostOp::Read as usize],
        "written_bytes": counts.bytes[HostOp::Write as usize],
    })
}
