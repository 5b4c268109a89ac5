//! The notes of runs: omissions and simplifications, and reasons against a steady state.

use flashatlas_types::{RANK_MIDDLE, notes};
use serde_json::Value;

notes! {
    /// A drive that completed no request for a long time.
    pub(crate) STOOD_STILL = "stood-still", 5,
        "the drive stood still: from {from:.2} s on no request completed for {seconds:.2} s while \
         some were outstanding",
        "`--explain p99.9` shows what requests waited for. If requests waited for collection, `-s \
         ftl.gc_pace=paced` bounds the work of collection at a time. If requests waited for other \
         requests, use `-s timing.passed_max=10ms`.";

    /// A drive that wore out before its workload ended.
    pub(crate) WORN_OUT = "worn-out", 3,
        "the drive is worn out: at request {request}, {retired} blocks were bad, and the data had \
         no room; the numbers cover only the earlier requests",
        "`nand.endurance` and the share of spare flash decide how long a drive lasts.";

    /// A format that the user did not name, in a trace whose text names no units.
    pub(crate) FORMAT_GUESSED = "format-guessed", 4,
        "{path} was read as {format}, because its content looks like this format: {rests_on}",
        "Name the format (`--format`), and the units of the format `columns`, so that nothing is \
         guessed.";

    /// Units that were read and had never been written.
    pub(crate) UNMAPPED_READS = "unmapped-reads", 10,
        "{units} of the read units had never been written: such reads cost no flash operation and \
         look fast (precondition the drive)",
        "Precondition the drive: `--precondition fill`, `steady` or `trace:FILE`.";

    /// A drive with much more flash than it exports.
    pub(crate) SPARE_LARGE = "spare-large", 15,
        "the drive has {share:.0} % more flash than it exports, but real drives have 7 to 50 %: \
         this drive collects little, so it has less write amplification than real drives",
        "Make a drive small with `drive.channels`, `drive.ways` or `drive.dies`, or export more of \
         its flash with `drive.over_provisioning=0.28`.";

    /// A run in which no simulated time passes.
    pub(crate) UNTIMED = "untimed", 20,
        "untimed: no time passes, so there are no latencies and no work in idle time",
        "Use another `--mode` for latencies.";

    /// A trace whose times are not used.
    pub(crate) TIMES_IGNORED = "times-ignored", 30,
        "closed loop: the times of the trace are ignored",
        "Use `--mode open` for the pauses and bursts of the trace.";

    /// A drive that was filled.
    pub(crate) FILLED = "filled-unaged", 40,
        "the drive was filled in address order in no time, so it begins unaged",
        "Use `--precondition steady`, or a warm-up, for a drive that collects.";

    /// A large drive whose content before the run was not computed, but written to tables.
    pub(crate) HELD_IN_TABLES = "held-in-tables", 42,
        "the drive was held in tables, because {reason}: they take about {gib:.1} GiB of memory, \
         and at least {seconds:.0} s of a core before the first request",
        "Results do not depend on it. docs/SUPPORT.md lists the drives that need tables; others \
         begin in a moment, in memory that grows with what is changed.";

    /// A run whose results do not depend on the seed.
    pub NOTHING_DRAWN = "nothing-drawn", 45,
        "no random number was drawn: another seed gives the same results",
        "Runs with other seeds say nothing about noise here.";

    /// A trace whose extents were packed.
    pub(crate) EXTENTS_PACKED = "extents-packed", 48,
        "the extents that the trace touches were packed (trace.extent_bytes): the distances \
         between extents are lost",
        "Use a larger drive and `--fit error` if distances matter, as for prefetch.";

    /// A trace in open loop.
    pub(crate) OPEN_LOOP = "open-loop", RANK_MIDDLE,
        "open loop: requests keep the times of the trace even if the drive is slow; a request \
         waits at the host for a place in the queue",
        "Latencies include the time at the host; use `--mode closed` for a host that waits.";

    /// Work of the controller that takes no time.
    pub(crate) NO_ECC_TIME = "no-ecc-time", 90,
        "the spare area's transfer, ECC decoding and read retries take no time",
        "Reads of a real drive are slower by these times.";

    /// Errors of the flash, whose numbers are partly assumed.
    pub(crate) ERRORS_ASSUMED = "errors-assumed", 12,
        "bit errors follow {model}, with the {unit} as the unit of time; the strengths of codes, \
         retries and spreads are assumed: latencies of retries explain a mechanism, and are no \
         forecast for a drive",
        "Take the numbers of your flash: `errors.*` and `ecc.*` (docs/MODELLED.md).";

    /// New data has more wrong bits than the share at which blocks are refreshed.
    pub(crate) REFRESH_BELOW_WEAR = "refresh-below-wear", 13,
        "new data already has up to {lasting:.0} % of the wrong bits that hard decoding corrects, \
         and ftl.refresh is {share:.0} %: a block is due when time and reads have added this share \
         of the rest, and never if there is no rest",
        "Refresh takes away only what time and reads have added. Use fewer `errors.cycles` or a \
         stronger code (`ecc.correctable`) if data must last longer.";

    /// A drive on which a power failure in a program destroys earlier pages.
    pub(crate) LOWER_PAGES_UNDEFENDED = "lower-pages-undefended", 93,
        "a power failure in a program destroys the earlier pages of the same cells, even flushed \
         pages: this drive has no defence",
        "Use `ftl.lower_pages`, `nand.plp_bytes` or `drive.program_unit=word-line`. Without power \
         failures, a run has the speed and the counts of a drive without a defence.";

    /// Addresses beyond the range of a part.
    pub(crate) WRAPPED_IN_RANGE = "wrapped-in-range", RANK_MIDDLE,
        "{requests} requests had addresses beyond the range (`space`) of their part of the merge: \
         these addresses were taken modulo the size of the range",
        "Give the part a larger `space`, or leave `space` out: then the range holds every address \
         of the file.";

    /// Addresses beyond the drive.
    pub(crate) ADDRESSES_WRAPPED = "addresses-wrapped", RANK_MIDDLE,
        "addresses were taken modulo the capacity: distinct pages of the trace may share a page of \
         the drive",
        "Use `--fit compact` so that distinct pages stay distinct.";

    /// A drive that a trace was written to.
    pub(crate) PRECONDITION_TRACE = "precondition-trace", RANK_MIDDLE,
        "the writes and trims of {path} were applied in no time before the run",
        "There was no collection in the idle time between these writes.";

    /// A drive in the steady state.
    pub(crate) PRECONDITION_STEADY = "precondition-steady", RANK_MIDDLE,
        "the drive began in the steady state of uniform random writes, by the model of its victim \
         policy; no block had been erased before",
        "Another workload has another steady state: `--until steady` plays the workload until its \
         steady state is reached.";

    /// A drive from a checkpoint.
    pub PRECONDITION_CHECKPOINT = "precondition-checkpoint", RANK_MIDDLE,
        "the drive began in the state of the checkpoint {path}",
        "The key `checkpoint` of the record says how the checkpoint was made.";

    /// A drive that several runs of a comparison begin with.
    pub(crate) PRECONDITION_SHARED = "precondition-shared", RANK_MIDDLE,
        "the preconditioned drive was shared with other runs of the comparison",
        "Each run alone gives the same results.";

    /// A drive that was switched off and on.
    pub(crate) POWER_CYCLED = "power-cycled", RANK_MIDDLE,
        "the preconditioned drive was switched off and on, so it began with the content of \
         its flash",
        "Caches begin empty: use `--warmup` to fill them.";

    /// FLUSHes that were added to the workload.
    pub(crate) FLUSHES_ADDED = "flushes-added", RANK_MIDDLE,
        "a FLUSH was added after every {writes} writes",
        "The option `flush_every` asks for this.";

    /// A checkpoint whose trace was placed on the drive in another way.
    pub(crate) LAID_OUT_OTHERWISE = "laid-out-otherwise", RANK_MIDDLE,
        "the checkpoint was made from a trace with `--fit {before}`, but this trace is placed with \
         `--fit {now}`: equal addresses in the two traces are different places on the drive",
        "Make the checkpoint with the `--fit` of the run.";

    /// Records out of order.
    pub(crate) OUT_OF_ORDER = "out-of-order", RANK_MIDDLE,
        "{requests} requests carried an earlier time than the previous request, and arrive \
         together with the previous request",
        "Sort the trace by time if the order matters.";

    /// Requests across the end of the drive.
    pub(crate) CROSSED_END = "crossed-end", RANK_MIDDLE,
        "{requests} requests were moved so that they do not cross the end of the drive",
        "Use a drive of another size, or `--fit compact`.";

    /// Bad records.
    pub(crate) BAD_SKIPPED = "bad-records-skipped", RANK_MIDDLE,
        "{records} bad records were skipped{kinds}",
        "The option `skip_bad` allows this; `flashatlas trace info` shows the first bad records.";

    /// Repeated records.
    pub(crate) DUPLICATES_DROPPED = "duplicates-dropped", RANK_MIDDLE,
        "{records} records that repeated the previous record within {within} were dropped",
        "The option `drop_duplicates` asks for this.";

    /// Records with a time before the time of the first record.
    pub(crate) BEFORE_FIRST = "before-first", RANK_MIDDLE,
        "{records} records carry an earlier time than the first record, and arrive with it",
        "Sort the trace by time if the order matters.";

    /// Records of other address spaces.
    pub(crate) NOT_SELECTED = "not-selected", RANK_MIDDLE,
        "{records} records of other address spaces were left out",
        "The option `device_map` selects an address space.";

    /// Pauses that were cut.
    pub(crate) GAPS_CUT = "gaps-cut", RANK_MIDDLE,
        "{gaps} pauses were cut to {longest}",
        "The option `time_gap_max` asks for this.";

    /// Steps back in time.
    pub(crate) BACKWARD_STEPS = "backward-steps", RANK_MIDDLE,
        "{steps} steps back in time by more than {longest} were ignored",
        "The option `time_gap_max` asks for this.";

    /// A clock that jumps.
    pub(crate) CLOCK_JUMPS = "clock-jumps", RANK_MIDDLE,
        "the clock of the trace jumps, first by {seconds:+.0} s at {place}, which changes rates \
         and idle times (`time_gap_max` cuts jumps)",
        "Cut pauses with `--time-gap-max 1s`.";

    /// Records without an operation.
    pub(crate) OPERATION_ASSUMED = "operation-assumed", RANK_MIDDLE,
        "the trace does not name the operation of a request: all requests were read as {op}s",
        "The option `assume_op` sets the operation.";

    /// Several drives.
    pub(crate) SEVERAL_DRIVES = "several-drives", RANK_MIDDLE,
        "flash operations and write amplification are the sums over all {drives} drives; map, \
         blocks, wear and utilisation cover only the first drive (the key `drives` has the numbers \
         of each)",
        "The key `drives` of the record has the numbers of each drive.";

    /// Settings of parts that are not in use.
    pub(crate) SETTINGS_UNUSED = "settings-unused", RANK_MIDDLE,
        "these settings of {drive} belong to parts that are not in use, and were left out: \
         {settings}",
        "The settings come from the preset, not from your options.";

    /// Units in the write cache at the end.
    pub(crate) UNITS_IN_CACHE = "units-in-cache", 92,
        "{units} units were still in the write cache at the end: their programs are not counted",
        "Write amplification is lower by the share of these units; a longer run makes the share \
         small.";

    /// Requests that NVMe would send as several commands.
    pub(crate) LONGER_THAN_NVME = "longer-than-nvme", RANK_MIDDLE,
        "{requests} reads and writes are longer than 65,536 blocks: NVMe would send each as \
         several commands, but here each is one command",
        "Split these requests in the trace if the number of commands matters.";

    /// Rows of the time series that became longer.
    pub(crate) ROWS_LONGER = "rows-longer", RANK_MIDDLE,
        "rows of the time series are {width} ns long instead of {given} ns: rows were joined so \
         that the table stays small",
        "Use a longer `--interval`, or a shorter run.";

    /// Pages that were not looked at after the run.
    pub(crate) NOT_SWEPT = "not-swept", RANK_MIDDLE,
        "every read was compared, but not all of the drive's {pages} pages were compared again \
         after the run",
        "All pages of a smaller drive are compared.";

    /// A workload that did not settle.
    pub(crate) NOT_SETTLED = "not-settled", RANK_MIDDLE,
        "after {passes} passes of the workload the drive was not steady; the next pass was \
         measured nevertheless (settling.reasons)",
        "Play a longer workload, or precondition with `steady`.";

    /// An option of a job file that is left out.
    pub(crate) JOB_OPTION = "job-option-left-out", RANK_MIDDLE,
        "{place}: {option}: {why}",
        "`flashatlas job FILE` lists the jobs, files and requests of a job file.";

    /// A job that ended before it settled.
    pub(crate) JOB_NOT_SETTLED = "job-not-settled", RANK_MIDDLE,
        "job `{job}` did not settle by its `steadystate`: {why}",
        "Let the job run longer, or use another criterion.";

    /// A file system between jobs and the drive.
    pub(crate) EXT4_ORDERED = "ext4-ordered", RANK_MIDDLE,
        "ext4 (data=ordered): data goes to the drive when a job writes it, and no other file \
         changes; {transactions} transactions, {checkpoints} checkpoints of the journal",
        "See docs/howto/run-a-fio-job.md.";

    /// A reason against a steady state: throughput.
    pub(crate) IOPS_UNSTEADY = "iops-unsteady", RANK_MIDDLE,
        "requests a second by {of}: {rounds} (range {range:.0} % of the mean, limit {range_max:.0} \
         %; trend {trend:+.0} %, limit {trend_max:.0} %)",
        "Play more requests, leave out the first ones (`--warmup N`), or repeat the workload until \
         its rounds are alike (`--until steady`).";

    /// A reason against a steady state: write amplification.
    pub(crate) WAF_UNSTEADY = "waf-unsteady", RANK_MIDDLE,
        "write amplification by {of}: {rounds} (range {range:.0} % of the mean, limit \
         {range_max:.0} %; trend {trend:+.0} %, limit {trend_max:.0} %)",
        "Play more requests, leave out the first ones (`--warmup N`), or repeat the workload until \
         its rounds are alike (`--until steady`).";

    /// A reason against a steady state: free blocks.
    pub(crate) FREE_BLOCKS_CHANGE = "free-blocks-change", RANK_MIDDLE,
        "{programmed} pages were programmed and {erased} erased (difference {share:+.0} %, limit \
         {most:.0} %): the number of free blocks changes",
        "Begin with `--precondition steady`, or play until the drive collects.";

    /// A reason against a steady state: writes that did not reach the flash.
    pub(crate) NOTHING_PROGRAMMED = "nothing-programmed", RANK_MIDDLE,
        "{written} bytes were written, but no page was programmed: all written bytes are still in \
         the write cache or in NVM",
        "Write several times the capacity of the drive, or use a smaller write cache \
         (`cache.bytes`).";

    /// A reason against a steady state: a host that outruns the drive.
    pub(crate) BACKLOG = "backlog", RANK_MIDDLE,
        "requests arrive faster than the drive completes them: the last request waited {waited:.0} \
         % of the run (limit {most:.0} %)",
        "Use a larger drive, a smaller `--speed`, or a closed loop.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_SETS_DRAWN = "lookup-sets-drawn", RANK_MIDDLE,
        "sets were drawn at random",
        "The sets of a trace are not random.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_ADDRESSES_DRAWN = "lookup-addresses-drawn", RANK_MIDDLE,
        "addresses were drawn at random",
        "The addresses of a trace are not random.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_FILES = "lookup-files", RANK_MIDDLE,
        "each address at which a request begins is a file, in units of {sectors} sectors",
        "See docs/howto/study-hardware-lookup.md.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_ALIASES = "lookup-aliases", RANK_MIDDLE,
        "only the lowest {bits} bits of an address count: {aliases} of {requests} requests share \
         these bits with requests to another address",
        "Use more `lookup.la_bits`, or the addresses `dense`.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_CHANGES_FREE = "lookup-changes-free", RANK_MIDDLE,
        "insertions and deletions take no time",
        "The setting `lookup.changes` charges insertions and deletions.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_ALL_KNOWN = "lookup-all-known", RANK_MIDDLE,
        "all lookups are known beforehand, so they follow each other as fast as the DRAM allows",
        "The setting `lookup.look_ahead` bounds the number of lookups that are known beforehand.";

    /// Studies of the lookup engine.
    pub(crate) LOOKUP_DRAM_ALONE = "lookup-dram-alone", RANK_MIDDLE,
        "the DRAM serves lookups alone; comparing entries takes no time",
        "Lookups are as fast as this DRAM allows at best.";
}

/// Replaces the text of every note in a record and in statistics of jobs by the note's code.
///
/// This exposes programs that depend on the wording of a note: see `FLASHATLAS_NOTES` in
/// `docs/FORMATS.md`.
pub fn say_codes(record: &mut Value, jobs: Option<&mut Value>) {
    let codes = |notes: Option<&mut Value>| {
        for note in notes.and_then(Value::as_array_mut).into_iter().flatten() {
            note["text"] = note["code"].clone();
        }
    };
    for place in ["/approximations", "/steadiness/reasons", "/settling/reasons"] {
        codes(record.pointer_mut(place));
    }
    codes(jobs.and_then(|jobs| jobs.pointer_mut("/warnings")));
}
