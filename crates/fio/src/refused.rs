//! Options of fio that change the requests but are not simulated.
//!
//! These options change which requests reach a drive, in what order, when, or how many at the same
//! time.
//!
//! Facts about these options are from `HOWTO.rst` and `options.c` of fio 3.33. Facts about later
//! options are from the same files of fio 3.34 to 3.42.

/// An option that is an error, unless its value changes nothing.
pub(super) struct Refused {
    /// Names of the option; the first is the name in fio's list.
    pub names: &'static [&'static str],
    /// First version of fio with the option; empty if version 3.33 has the option.
    pub since: &'static str,
    /// Values with which fio does the same as without the option.
    pub harmless: &'static [&'static str],
    /// Text of the error: what would change, and what to write instead.
    pub instead: &'static str,
}

const fn refused(
    names: &'static [&'static str],
    harmless: &'static [&'static str],
    instead: &'static str,
) -> Refused {
    Refused { names, since: "", harmless, instead }
}

const fn later(
    names: &'static [&'static str],
    since: &'static str,
    instead: &'static str,
) -> Refused {
    Refused { names, since, harmless: &["0", "none"], instead }
}

const SKIP: &str =
    "fio 3.33 uses it only for recordings of blktrace; remove the lines from the log";
const VERIFY: &str = "reading back what was written is not simulated; add a second job with \
                      rw=read (or randread), the same file and `stonewall`";
const TRIMS: &str = "fio 3.33 crashes at the first such trim, except with rw=trimwrite; use \
                     rw=trimwrite, or a job with rw=randtrim";
const STREAMS: &str = "the drives take no hints on placement or lifetime; leave it out";
const COMMAND: &str = "it makes fio send another command; leave it out";
const PROTECTION: &str = "metadata and protection information are not simulated; leave it out";
const LATENCY: &str = "the depth would depend on the latency; use a fixed `iodepth`";
const SPRANDOM: &str =
    "`--precondition` brings a drive into its steady state; leave the option out";
const MERGE: &str = "several recordings cannot be merged; run one recording with `--trace FILE`";

/// All refused options.
pub(super) const REFUSED: &[Refused] = &[
    refused(&["replay_skip"], &[], SKIP),
    refused(&["merge_blktrace_file"], &[], MERGE),
    refused(&["merge_blktrace_scalars"], &[], MERGE),
    refused(&["merge_blktrace_iters"], &[], MERGE),
    refused(&["verify_only"], &["0"], VERIFY),
    refused(&["experimental_verify"], &["0"], VERIFY),
    refused(&["verify_state_load"], &["0"], VERIFY),
    refused(&["trim_backlog"], &["0"], TRIMS),
    refused(
        &["rate_min", "ratemin"],
        &["0"],
        "a minimum rate would end the job early; only `rate` and `rate_iops` are simulated",
    ),
    refused(
        &["rate_iops_min"],
        &["0"],
        "a minimum rate would end the job early; only `rate` and `rate_iops` are simulated",
    ),
    refused(
        &["max_latency"],
        &["0"],
        "a long latency would end the job; leave the option out, and look at the maximum latency \
         in the statistics of the job",
    ),
    refused(&["latency_target"], &["0"], LATENCY),
    refused(
        &["serialize_overlap"],
        &["0"],
        "overlapping requests are sent in their order; use iodepth=1 to send one request at a time",
    ),
    refused(
        &["io_submit_mode"],
        &["inline"],
        "submission by a pool of threads is not simulated; use `numjobs` for parallel jobs",
    ),
    refused(
        &["lockfile"],
        &["none"],
        "waiting for the files of other jobs is not simulated; use `stonewall` or `wait_for`",
    ),
    refused(
        &["filename_format"],
        &["$jobname.$jobnum.$filenum"],
        "files have fio's default names; name files with `filename`",
    ),
    refused(&["opendir"], &[], "files of the machine are not searched; name files with `filename`"),
    refused(
        &["openfiles"],
        &["0"],
        "all files of a job are open at the same time; use a smaller `nrfiles`, or \
         file_service_type=sequential",
    ),
    refused(
        &["fill_device", "fill_fs"],
        &["0"],
        "a simulated file system never runs full; leave out `size` to use the whole drive",
    ),
    refused(
        &["file_append"],
        &["0"],
        "files do not grow; use `offset` to begin at the end of a file",
    ),
    refused(
        &["sync_file_range"],
        &[],
        "the page cache is not simulated; use `fsync` or `fdatasync`",
    ),
    refused(&["atomic"], &["0"], "atomic writes are not simulated; use sync=1 for durable writes"),
    refused(
        &["pre_read"],
        &["0"],
        "files are not read before a job; add a job with rw=read before this job, and use \
         `stonewall`",
    ),
    refused(&["create_only"], &["0"], "files need no creation; leave the job out"),
    refused(
        &["exec_prerun"],
        &[],
        "a program of the machine does not act on the simulated drive; leave it out",
    ),
    refused(
        &["exec_postrun"],
        &[],
        "a program of the machine does not act on the simulated drive; leave it out",
    ),
    refused(
        &["ioscheduler"],
        &["none", "noop"],
        "the host has no I/O scheduler, as with `none`; leave it out",
    ),
    refused(&["profile"], &[], "a profile defines jobs of its own; write these jobs into the file"),
    refused(&["write_hint"], &["none", "not_set"], STREAMS),
    refused(&["percentage_sequential"], &[], "fio 3.33 refuses it; use `percentage_random`"),
    refused(&["rwmixcycle"], &[], "fio 3.33 refuses it; leave it out"),
    refused(&["readfua"], &["0"], "reads do not write cached data to flash; leave the option out"),
    refused(&["writefua"], &["0"], "use sync=1, which sends writes with FUA"),
    refused(&["sg_write_mode"], &["write"], COMMAND),
    refused(&["stream_id"], &["0"], STREAMS),
    refused(
        &["nowait"],
        &["0"],
        "requests wait if there is no room in the queue; leave the option out",
    ),
    later(&["fdp"], "3.34", STREAMS),
    later(&["fdp_pli", "plids"], "3.34", STREAMS),
    later(&["fdp_pli_select", "plid_select"], "3.36", STREAMS),
    later(&["dataplacement", "data_placement"], "3.38", STREAMS),
    later(&["dp_scheme"], "3.38", STREAMS),
    later(&["num_range"], "3.37", "a trim has only one range; use more trims"),
    later(&["thinkcycles"], "3.37", "processor time is not simulated; use `thinktime`"),
    later(&["sprandom"], "3.41", SPRANDOM),
    later(&["spr_op"], "3.41", SPRANDOM),
    later(&["spr_num_regions"], "3.41", SPRANDOM),
    later(&["spr_cs"], "3.42", SPRANDOM),
    later(&["ramp_size"], "3.42", "a ramp goes by time; use `ramp_time`"),
    later(&["end_syncfs"], "3.42", "use end_fsync=1"),
    later(&["write_mode"], "3.38", COMMAND),
    later(&["verify_mode"], "3.38", COMMAND),
    later(&["deac"], "3.39", COMMAND),
    later(&["md_per_io_size"], "3.36", PROTECTION),
    later(&["pi_act"], "3.36", PROTECTION),
    later(&["pi_chk"], "3.36", PROTECTION),
    later(&["apptag"], "3.36", PROTECTION),
    later(&["apptag_mask"], "3.36", PROTECTION),
];
