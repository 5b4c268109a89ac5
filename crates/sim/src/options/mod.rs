//! The options of a run, each declared once.
//!
//! A row of the table below declares an option with its help text and `name: Type = default`. The
//! calls behind the arrow declare its other properties:
//!
//! | | |
//! |---|---|
//! | `option(kind)` | type and range for Python and the command line ([`OptionKind`]) |
//! | `.most(n)` | the largest count, if it is less than the largest number of 64 bits |
//! | `.letter('t')` | the short form `-t` on the command line |
//! | `.metavar("TIME")` | placeholder in help texts, in place of the word for the type |
//! | `.recorded(…)` | condition under which the record contains it, and its place ([`Recorded`]) |
//! | `.by_job_file(n)` | a job file sets it, so it is refused beside a job file; its place is `n` |
//!
//! The rows make the following: the fields of [`Reading`] and [`RunSpec`], their JSON, the keys of
//! the record's `config`, the refusals beside a job file, the keyword arguments and types of
//! Python, and the options of the command line.

mod declaration;
mod parsed;
#[cfg(test)]
mod python;
#[cfg(test)]
mod tests;

pub use declaration::{OptionGroup, OptionKind, Recorded, RunOption};
pub(crate) use declaration::{Setting, first_by_job_file, first_of_reading, recorded, settings};

use crate::{Base, Extent, Fit, Mode, Precondition, SkipBad, Until};
use OptionKind::{Choice, Count, CountOr, Factor, File, Flag, Number, Text};
use Recorded::{Always, IfGiven, InOpenMode};
use declaration::option;
use flashatlas_workload::BadKind;

declaration::options! {
    /// Every option, in the order of help texts.
    const OPTIONS;

    /// Options for reading a trace, as texts. In JSON, unknown keys are errors.
    struct Reading {
        /// Format of the trace. `columns:…` describes a file with columns, for example
        /// `columns:time=0:us,op=1,offset=2:bytes,size=3:sectors`. By default the content of the
        /// trace decides.
        format: Option<String> = None => option(Text).recorded(IfGiven(1)).by_job_file(9);

        /// Treatment of several devices in a trace: `separate` (keep their address spaces apart;
        /// the default), `collapse` (let all share one), or `select:N` (read only device N).
        device_map: Option<String> = None =>
            option(Text).metavar("MAP").recorded(IfGiven(2)).by_job_file(10);

        /// Drop a record that repeats the previous one of its device within this time, such as
        /// `5ms`; by default no record is dropped.
        drop_duplicates: Option<String> = None =>
            option(Text).metavar("TIME").recorded(IfGiven(3)).by_job_file(11);

        /// Longest pause to keep, such as `1s`: a longer pause is shortened to this time. If the
        /// clock steps back by more than this time, no time passes between the two records. By
        /// default times stay as they are.
        time_gap_max: Option<String> = None =>
            option(Text).metavar("TIME").recorded(IfGiven(4)).by_job_file(12);

        /// Operation of all requests (`read`, `write` or `trim`), for a trace that names no
        /// operations.
        assume_op: Option<String> = None =>
            option(Text).metavar("OP").recorded(IfGiven(5)).by_job_file(13);

        /// Number of bad records that are skipped and counted; the next bad record is an error. Or
        /// a list of kinds, separated by commas: every record of these kinds is skipped and
        /// counted. The kinds are `zero-length` (no bytes), `too-long` (more bytes than the
        /// operation may have) and `too-far` (beyond the last 64-bit byte address).
        skip_bad: SkipBad = SkipBad::Count(0) =>
            option(CountOr(&BadKind::NAMES)).recorded(IfGiven(6)).by_job_file(14);

        /// Number of sectors added to every address (CloudPhysics traces: -7).
        shift: i64 = 0 => option(Number).recorded(IfGiven(7)).by_job_file(15);
    }

    /// One run. In JSON, unknown keys are errors.
    struct RunSpec {
        /// Preset name, or the name of the file whose text is in `drive_toml`.
        drive: String;
        /// Text of a drive file.
        #[serde(default)]
        drive_toml: Option<String>;
        /// `key=value` settings, applied in order.
        #[serde(default)]
        set: Vec<String>;
        /// Options for reading the trace, and the trace of a precondition.
        #[serde(default)]
        reading: Reading;
    }

    group Workload {
        /// Trace to replay, plain or compressed (gz, bz2, xz, zst).
        trace: Option<String> = None => option(File).letter('t');

        /// Generated workload in place of a trace:
        /// `uniform:requests=100000,size=4KiB,read=0.5`.
        workload: Option<String> = None => option(Text).letter('w').recorded(IfGiven(5));

        /// fio job file to play in place of a trace.
        job: Option<String> = None => option(File);

        /// With a job file: the file system between its jobs and the drive, `ext4` or
        /// `ext4:fua=true,files=written`; by default the jobs use the drive itself.
        filesystem: Option<String> = None => option(Text).metavar("FS").recorded(IfGiven(6));

        /// State of the drive before the workload: `none` (blank), `fill` (every page written
        /// once, in order), `steady` (the steady state of uniform random writes, set from a
        /// model and not simulated), `trace:FILE` (this trace was played), or `checkpoint:FILE`
        /// (saved by `flashatlas checkpoint`).
        precondition: Precondition = Precondition::None =>
            option(Choice(&["none", "fill", "steady", "trace:FILE", "checkpoint:FILE"]))
            .recorded(Always(2));

        /// Form of a drive with `precondition=fill` or `steady`. `computed`: content is computed
        /// until it is changed, so time and memory depend on the changes and not on the capacity; a
        /// note names a part of the drive that needs tables all the same. `dense`: all content is
        /// in tables. The results are the same.
        base: Base = Base::Computed => option(Choice(&["computed", "dense"]));

        /// Treatment of addresses beyond the drive: `error` (stop), `wrap` (take them modulo
        /// the capacity) or `compact` (pack the touched extents).
        fit: Fit = Fit::Error =>
            option(Choice(&["error", "wrap", "compact"])).recorded(Always(3)).by_job_file(3);

        /// Size of the extents that `fit=compact` packs. `auto` is the largest size with which the
        /// workload fits the drive. Distances within an extent are kept.
        extent: Extent = Extent::Auto =>
            option(Choice(&["auto", "1MiB", "256KiB", "64KiB", "16KiB", "4KiB"]))
            .recorded(IfGiven(12));

        /// Number of requests after which the workload ends, warm-up included. With `until=steady`,
        /// each pass ends after this number. By default the whole workload is played.
        limit: Option<u64> = None => option(Count(1)).recorded(IfGiven(10)).by_job_file(6);

        /// Seed of everything random.
        seed: u64 = 1 => option(Count(0));
    }

    group Playing {
        /// Rule by which requests are issued: `asap` (as many commands in flight as the drive
        /// accepts; the default), `closed` (`depth` commands in flight; the default if `depth` is
        /// given), `open` (at the times of the trace), `untimed` (no time passes).
        mode: Mode = Mode::Asap =>
            option(Choice(&["asap", "closed", "open", "untimed"]))
            .recorded(Always(1)).by_job_file(2);

        /// Number of commands in flight; selects `mode=closed`.
        depth: Option<u32> = None =>
            option(Count(1)).most(u32::MAX).recorded(IfGiven(8)).by_job_file(1);

        /// Factor by which the times of the trace are divided, with `mode=open`.
        speed: f64 = 1.0 => option(Factor).recorded(InOpenMode(13)).by_job_file(7);

        /// Number of requests at the start that are not measured.
        warmup: u64 = 0 => option(Count(0)).recorded(Always(4)).by_job_file(4);

        /// End of the run: `end` (of the workload) or `steady` (repeat the workload until five
        /// passes in a row are steady, or 25 passes are done; then play it once more and measure
        /// that pass).
        until: Until = Until::End =>
            option(Choice(&["end", "steady"])).recorded(IfGiven(9)).by_job_file(5);

        /// Number of writes after which a FLUSH is added, for traces that have none; 0: no
        /// FLUSH.
        flush_every: u64 = 0 => option(Count(0)).recorded(IfGiven(11)).by_job_file(8);

        /// Length of simulated time that each row of the time series covers, such as `100ms`;
        /// by default 1 ms, doubled until the run has at most 512 rows.
        interval: Option<String> = None => option(Text).metavar("TIME").recorded(IfGiven(7));

        /// Percentile, such as `p99.9`: the record shows how long the requests at or above it spent
        /// in each stage (waiting, cells, collection, merges, map pages). By default this is not
        /// recorded.
        explain: Option<String> = None => option(Text).metavar("pN");

        /// Add a fingerprint to the record: the number of flash operations, and a hash of the
        /// operations and their times.
        fingerprint: bool = false => option(Flag);
    }
}

impl RunSpec {
    /// Returns every option with its value in this run.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        settings(OPTIONS, &serde_json::json!(self))
    }
}
