//! The options that are modelled, each with its names and the function that sets its value.

use super::distribution::{Distribution, parse_split};
use super::options::{
    Engine, ExitWhat, FileService, Generator, Options, PATTERNS, Pattern, Sequencer,
};
use super::replay::WITHOUT_INFLUENCE;
use super::value::{Amount, Arg, MAX_INT, MAX_NUMBER, one_of};
use flashatlas_types::Dur;

/// Largest `iodepth`, `numjobs`, `nrfiles`, and other counts with memory for each item.
const MAX_COUNT: u64 = 65_536;
/// The largest `flow`.
const MAX_WEIGHT: u64 = 1000;
const SECOND_US: u64 = 1_000_000;

/// Engines that do block I/O on files or drives, and their kind.
const ENGINES: &[(&str, Engine)] = &[
    ("sync", Engine::Sync),
    ("psync", Engine::Sync),
    ("vsync", Engine::Sync),
    ("pvsync", Engine::Sync),
    ("pvsync2", Engine::Sync),
    ("mmap", Engine::Sync),
    ("sg", Engine::Sync),
    ("libaio", Engine::Libaio),
    ("io_uring", Engine::IoUring),
    ("io_uring_cmd", Engine::IoUring),
    ("posixaio", Engine::IoUring),
    ("null", Engine::Null),
];

/// An option that is modelled.
pub(super) struct OptionDef {
    /// Name of the option in fio's list.
    pub name: &'static str,
    /// Other name of the option; empty if there is none.
    pub alias: &'static str,
    /// Function that stores the value.
    pub set: fn(&mut Options, &Arg<'_>) -> Result<(), String>,
}

impl OptionDef {
    /// Returns the first version of fio with the option; empty if version 3.33 has the option.
    pub fn since(&self) -> &'static str {
        if self.name == "steadystate_check_interval" { "3.35" } else { "" }
    }
}

/// Returns an option without an alias.
const fn option(
    name: &'static str,
    set: fn(&mut Options, &Arg<'_>) -> Result<(), String>,
) -> OptionDef {
    OptionDef { name, alias: "", set }
}

const fn aliased(
    name: &'static str,
    alias: &'static str,
    set: fn(&mut Options, &Arg<'_>) -> Result<(), String>,
) -> OptionDef {
    OptionDef { name, alias, set }
}

/// A closure that stores the result of `$parse`.
macro_rules! store {
    ($field:ident, $parse:expr) => {
        |o, a| {
            let parse: fn(&Arg<'_>) -> Result<_, String> = $parse;
            o.$field = parse(a)?;
            Ok(())
        }
    };
}

/// All options that are modelled.
pub(super) const MODELLED: &[OptionDef] = &[
    option("name", store!(name, |a| a.text().map(|t| Some(t.to_owned())))),
    option("description", store!(description, |a| a.text().map(str::to_owned))),
    option("kb_base", store!(kb_base, kb_base)),
    aliased("rw", "readwrite", set_pattern),
    option("rw_sequencer", store!(sequencer, sequencer)),
    option("rwmixread", store!(read_percent, |a| a.int(0, 100).map(|n| n as u32))),
    option("rwmixwrite", store!(read_percent, |a| a.int(0, 100).map(|n| 100 - n as u32))),
    aliased("bs", "blocksize", |o, a| {
        o.split = Default::default();
        a.by_dir(&mut o.sizes, |one| one.size().map(|n| (n, n)))
    }),
    aliased("bsrange", "blocksize_range", |o, a| {
        o.split = Default::default();
        a.by_dir(&mut o.sizes, Arg::range)
    }),
    option("bssplit", set_split),
    aliased("bs_unaligned", "blocksize_unaligned", store!(sizes_unaligned, |a| a.flag())),
    option("bs_is_seq_rand", store!(sizes_by_order, |a| a.switch())),
    aliased("ba", "blockalign", |o, a| a.by_dir(&mut o.align, |one| one.size().map(Some))),
    option("size", store!(size, |a| a.amount(1).map(Some))),
    aliased("io_size", "io_limit", store!(io_size, |a| a.amount(1).map(Some))),
    option("filesize", store!(file_size, |a| a.size().map(Some))),
    aliased("offset", "fileoffset", store!(offset, |a| a.amount(0))),
    option("offset_increment", store!(offset_increment, |a| a.amount(0))),
    option("offset_align", store!(offset_align, |a| a.size().map(Some))),
    option("read_iolog", |o, a| {
        o.replay.logs = filenames(a)?;
        Ok(())
    }),
    option("replay_no_stall", |o, a| {
        o.replay.no_stall = a.switch()?;
        Ok(())
    }),
    option("replay_redirect", |o, a| {
        o.replay.redirect = Some(a.text()?.to_owned());
        Ok(())
    }),
    option("replay_scale", |o, a| {
        o.replay.scale = a.int(0, MAX_INT)?;
        Ok(())
    }),
    option("replay_align", |o, a| {
        o.replay.align = replay_align(a)?;
        Ok(())
    }),
    option("replay_time_scale", |o, a| {
        o.replay.speed_percent = a.int(1, MAX_INT)?;
        Ok(())
    }),
    option("number_ios", store!(number_ios, |a| a.int(1, u64::MAX).map(Some))),
    option("wait_for", store!(wait_for, |a| a.text().map(|t| Some(t.to_owned())))),
    option("filename", add_filenames),
    option("directory", store!(directory, directory)),
    aliased("nrfiles", "nr_files", store!(files, count)),
    option("file_service_type", store!(service, service)),
    option("zonemode", |o, a| {
        o.zoning.strided = zone_mode(a)?;
        Ok(())
    }),
    option("zonesize", |o, a| {
        o.zoning.size = a.int(0, MAX_NUMBER)?;
        Ok(())
    }),
    option("zonerange", |o, a| {
        o.zoning.range = a.int(0, MAX_NUMBER)?;
        Ok(())
    }),
    option("zoneskip", |o, a| {
        o.zoning.skip = a.int(0, MAX_NUMBER)?;
        Ok(())
    }),
    option("numjobs", store!(clones, count)),
    option("iodepth", store!(depth, count)),
    aliased("iodepth_batch", "iodepth_batch_submit", |o, a| {
        o.batching.submit = a.int(0, MAX_COUNT)? as u32;
        Ok(())
    }),
    aliased("iodepth_batch_complete_min", "iodepth_batch_complete", |o, a| {
        o.batching.complete_min = a.int(0, MAX_COUNT)? as u32;
        Ok(())
    }),
    option("iodepth_batch_complete_max", |o, a| {
        o.batching.complete_max = a.int(0, MAX_COUNT)? as u32;
        Ok(())
    }),
    option("iodepth_low", |o, a| {
        o.batching.low = a.int(0, MAX_COUNT)? as u32;
        Ok(())
    }),
    option("ioengine", store!(engine, engine)),
    option("direct", store!(direct, |a| a.switch())),
    option("buffered", store!(direct, |a| a.switch().map(|b| !b))),
    option("sync", store!(durable, durable)),
    option("fsync", store!(fsync, |a| a.int(0, MAX_INT))),
    option("fdatasync", store!(fdatasync, |a| a.int(0, MAX_INT))),
    option("end_fsync", store!(end_fsync, |a| a.switch())),
    option("fsync_on_close", store!(end_fsync, |a| a.switch())),
    option("thinktime", store!(think, |a| a.short_time(1))),
    option("thinktime_spin", store!(think_spin, |a| a.short_time(1))),
    option("thinktime_blocks", store!(think_blocks, |a| a.int(1, MAX_INT).map(Some))),
    option("thinktime_blocks_type", store!(think_issued, think_issued)),
    option("thinktime_iotime", store!(think_after, |a| a.short_time(SECOND_US))),
    option("rate", |o, a| a.by_dir(&mut o.rate, rate)),
    option("rate_iops", |o, a| a.by_dir(&mut o.rate_iops, rate)),
    option("rate_process", store!(poisson, rate_process)),
    option("rate_ignore_thinktime", store!(rate_ignores_think, |a| a.switch())),
    option("random_distribution", store!(distribution, Distribution::parse)),
    option("random_generator", store!(generator, generator)),
    option("norandommap", store!(no_map, |a| a.flag())),
    option("percentage_random", |o, a| {
        a.by_dir(&mut o.percent_random, |one| one.int(0, 100).map(|n| n as u32))
    }),
    option("randrepeat", store!(repeat, |a| a.switch())),
    option("allrandrepeat", store!(repeat, |a| a.switch())),
    option("randseed", store!(seed, |a| a.int(0, u64::MAX).map(Some))),
    option("verify", store!(verify, verify)),
    option("verify_pattern", |o, a| {
        a.text()?;
        o.verify |= !o.places.contains_key("verify");
        Ok(())
    }),
    option("verify_backlog", store!(verify_backlog, |a| a.int(0, MAX_INT))),
    option("verify_backlog_batch", store!(verify_batch, |a| a.int(0, MAX_INT))),
    option("do_verify", store!(do_verify, |a| a.switch())),
    aliased("runtime", "timeout", store!(runtime, |a| a.time(SECOND_US))),
    option("time_based", store!(time_based, |a| a.flag())),
    option("ramp_time", store!(ramp, |a| a.time(SECOND_US))),
    aliased("steadystate", "ss", |o, a| o.settling.set_criterion(a)),
    aliased("steadystate_duration", "ss_dur", |o, a| {
        o.settling.window = a.time(SECOND_US)?;
        Ok(())
    }),
    aliased("steadystate_ramp_time", "ss_ramp", |o, a| {
        o.settling.ramp = a.time(SECOND_US)?;
        Ok(())
    }),
    aliased("steadystate_check_interval", "ss_interval", |o, a| {
        o.settling.interval = a.time(SECOND_US)?;
        Ok(())
    }),
    option("startdelay", store!(start_delay, |a| a.times(SECOND_US))),
    option("loops", store!(loops, |a| a.int(1, MAX_INT))),
    option("flow", |o, a| {
        o.flow.weight = a.int(0, MAX_WEIGHT)? as u32;
        Ok(())
    }),
    option("flow_id", |o, a| {
        o.flow.id = a.int(0, MAX_INT)? as u32;
        Ok(())
    }),
    option("flow_sleep", |o, a| {
        o.flow.sleep = Dur::from_us(a.int(0, MAX_INT)?);
        Ok(())
    }),
    option("exitall", store!(exit_all, exit_all)),
    option("exit_what", store!(exit_what, exit_what)),
    aliased("stonewall", "wait_for_previous", store!(stonewall, |a| a.flag())),
    option("new_group", store!(new_group, |a| a.flag())),
    option("group_reporting", store!(group_reporting, |a| a.flag())),
];

fn kb_base(arg: &Arg<'_>) -> Result<u64, String> {
    match arg.text()? {
        "1000" => Ok(1000),
        "1024" => Ok(1024),
        other => Err(format!("{other} is not a base; give 1000 or 1024")),
    }
}

fn rate_process(arg: &Arg<'_>) -> Result<bool, String> {
    one_of(arg.text()?, "rate_process", &[("linear", false), ("poisson", true)])
}

fn exit_all(arg: &Arg<'_>) -> Result<bool, String> {
    match arg.text {
        None | Some("1") => Ok(true),
        Some(_) => Err("fio 3.33 ignores the value and ends all jobs; leave the option out, or \
                        write `exitall` without a value"
            .into()),
    }
}

fn exit_what(arg: &Arg<'_>) -> Result<ExitWhat, String> {
    let choices =
        [("group", ExitWhat::Group), ("stonewall", ExitWhat::Running), ("all", ExitWhat::All)];
    one_of(arg.text()?, "exit_what", &choices)
}

fn zone_mode(arg: &Arg<'_>) -> Result<bool, String> {
    match arg.text()? {
        "zbd" => Err("zoned drives are not simulated; use `strided` for parts of a file".into()),
        text => one_of(text, "zonemode", &[("none", false), ("strided", true)]),
    }
}

fn replay_align(arg: &Arg<'_>) -> Result<u64, String> {
    match arg.int(0, MAX_INT)? {
        n if n == 0 || n.is_power_of_two() => Ok(n),
        n => Err(format!("{n} is not a power of two")),
    }
}

fn set_pattern(o: &mut Options, arg: &Arg<'_>) -> Result<(), String> {
    let text = arg.text()?;
    let (name, postfix) = text.split_once(':').map_or((text, None), |(name, p)| (name, Some(p)));
    let choices: Vec<(&str, Pattern)> = PATTERNS.iter().map(|p| (p.name, *p)).collect();
    let pattern = one_of(name, "pattern", &choices)?;
    (o.pattern, o.random_every, o.hole) = (pattern, 1, 0);
    match postfix {
        Some(every) if pattern.random => {
            o.random_every =
                Arg { text: Some(every), ..*arg }.plain(1, u64::from(i32::MAX as u32))?
        }
        Some(hole) => o.hole = arg.signed(hole)?,
        None => {}
    }
    Ok(())
}

fn set_split(o: &mut Options, arg: &Arg<'_>) -> Result<(), String> {
    arg.by_dir(&mut o.split, parse_split)?;
    for (sizes, split) in o.sizes.iter_mut().zip(&o.split) {
        if let (Some(low), Some(high)) =
            (split.iter().map(|s| s.bytes).min(), split.iter().map(|s| s.bytes).max())
        {
            *sizes = (low, high);
        }
    }
    Ok(())
}

fn sequencer(arg: &Arg<'_>) -> Result<Sequencer, String> {
    let choices = [("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)];
    one_of(arg.text()?, "sequencer", &choices)
}

fn generator(arg: &Arg<'_>) -> Result<Generator, String> {
    let choices = [
        ("tausworthe", Generator::Random),
        ("tausworthe64", Generator::Random),
        ("lfsr", Generator::Lfsr),
    ];
    one_of(arg.text()?, "generator", &choices)
}

fn engine(arg: &Arg<'_>) -> Result<Engine, String> {
    one_of(arg.text()?, "engine", ENGINES)
}

fn durable(arg: &Arg<'_>) -> Result<bool, String> {
    let choices = [("none", false), ("0", false), ("sync", true), ("dsync", true), ("1", true)];
    one_of(arg.text()?, "sync", &choices)
}

/// Returns `true` if the value of `verify` asks to read back written data.
///
/// fio sends the same requests for all methods of checking the data.
fn verify(arg: &Arg<'_>) -> Result<bool, String> {
    const WAYS: &[&str] = &[
        "0",
        "md5",
        "crc64",
        "crc32",
        "crc32c-intel",
        "crc32c",
        "crc16",
        "crc7",
        "sha1",
        "sha256",
        "sha512",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "xxhash",
        "meta",
        "pattern",
        "pattern_hdr",
        "null",
    ];
    let choices: Vec<(&str, bool)> = WAYS.iter().map(|way| (*way, *way != "0")).collect();
    one_of(arg.text()?, "verify", &choices)
}

fn think_issued(arg: &Arg<'_>) -> Result<bool, String> {
    one_of(arg.text()?, "thinktime_blocks_type", &[("complete", false), ("issue", true)])
}

fn service(arg: &Arg<'_>) -> Result<FileService, String> {
    let text = arg.text()?;
    let (name, each) = text.split_once(':').map_or((text, "1"), |(name, each)| (name, each));
    let each = Arg { text: Some(each), ..*arg }.plain(1, MAX_INT)? as u32;
    let choices = [
        ("roundrobin", FileService::RoundRobin(each)),
        ("sequential", FileService::Sequential),
        ("random", FileService::Random(each)),
    ];
    one_of(name, "file_service_type", &choices)
}

fn count(arg: &Arg<'_>) -> Result<u32, String> {
    arg.int(1, MAX_COUNT).map(|n| n as u32)
}

fn rate(arg: &Arg<'_>) -> Result<u64, String> {
    match arg.number(arg.text()?)? {
        0 => Err("a rate of 0 would issue no request; leave the option out to set no limit".into()),
        n => Ok(n),
    }
}

/// Returns the directory.
///
/// Several directories are refused, because fio spreads the clones over the directories, and clones
/// would then use different files.
fn directory(arg: &Arg<'_>) -> Result<Option<String>, String> {
    let text = arg.text()?;
    if text.contains(':') {
        Err("several directories are given; give one, and write a job for each of the other \
             directories"
            .into())
    } else {
        Ok(Some(text.trim_end_matches('/').to_owned()))
    }
}

/// Adds the names in `arg` to the names from earlier lines.
fn add_filenames(o: &mut Options, arg: &Arg<'_>) -> Result<(), String> {
    o.filenames.extend(filenames(arg)?);
    match o.filenames.len() as u64 {
        n if n > MAX_COUNT => Err(format!("{n} files are too many; give at most {MAX_COUNT}")),
        _ => Ok(()),
    }
}

/// Returns the names that colons separate; `\:` is a colon within a name.
fn filenames(arg: &Arg<'_>) -> Result<Vec<String>, String> {
    let text = arg.text()?.replace("\\:", "\0");
    let names: Vec<String> = text.split(':').map(|name| name.trim().replace('\0', ":")).collect();
    if names.iter().any(String::is_empty) {
        return Err("a file name is empty".into());
    }
    match names.len() as u64 {
        n if n > MAX_COUNT => Err(format!("{n} files are too many; give at most {MAX_COUNT}")),
        _ => Ok(names),
    }
}

/// Returns the options in `o` that are not simulated or have no influence, each with the reason.
pub(super) fn left_out(o: &Options) -> Vec<(&'static str, &'static str)> {
    let mut list = Vec::new();
    let replays = !o.replay.logs.is_empty();
    let given = |name: &&&str| replays && o.places.contains_key(**name);
    let of_log = "has no influence together with `read_iolog`, as in fio: the log decides";
    list.extend(WITHOUT_INFLUENCE.iter().filter(given).map(|&name| (name, of_log)));
    if !o.direct {
        list.push((
            "direct",
            "0 is fio's default, but the page cache is not simulated: requests go to the drive as \
             with direct=1",
        ));
    }
    if o.engine == Engine::Null {
        list.push((
            "ioengine",
            "the engine `null` does nothing in fio; here its requests go to the simulated drive",
        ));
    }
    if o.settling.window == Dur::ZERO && o.places.contains_key("steadystate") {
        list.push((
            "steadystate",
            "has no influence without `steadystate_duration`, as in fio: the job runs to its end",
        ));
    }
    if o.generator == Generator::Lfsr && !replays {
        list.push((
            "random_generator",
            "`lfsr` is another permutation of the blocks here than in fio",
        ));
    }
    list
}

/// Returns `true` if the job is `time_based` without a `runtime`, and so would never end.
pub(super) fn endless(o: &Options) -> bool {
    o.time_based && o.runtime == Dur::ZERO
}

/// Returns `amount` of `whole` bytes, in bytes.
pub(super) fn of(amount: Amount, whole: u64) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
    }
}
