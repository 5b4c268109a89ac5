//! Parameters of the timing engine.

use crate::nvm::TECHNOLOGIES;
use flashatlas_types::flash_times::{
    T_ERASE, T_PROGRAM, T_PROGRAM_SLC, T_PROGRAM_STEPS, T_READ, T_READ_SLC,
};
use flashatlas_types::{Dur, Param, ParamDef, Text};

pub(crate) const T_READ_MIDDLE: Param<Dur> = Param::time(
    "timing.t_read_middle",
    "tR of the second page of a word line; 0: as timing.t_read",
)
.or("0");

pub(crate) const T_READ_UPPER: Param<Dur> =
    Param::time("timing.t_read_upper", "tR of the third page of a word line; 0: as t_read_middle")
        .or("0");

pub(crate) const T_READ_TOP: Param<Dur> =
    Param::time("timing.t_read_top", "tR of the fourth page of a word line; 0: as t_read_upper")
        .or("0");

pub(crate) const T_PROGRAM_MIDDLE: Param<Dur> = Param::time(
    "timing.t_program_middle",
    "tPROG of the second page of a word line; 0: as t_program",
)
.or("0");

pub(crate) const T_PROGRAM_UPPER: Param<Dur> = Param::time(
    "timing.t_program_upper",
    "tPROG of the third page of a word line; 0: as t_program_middle",
)
.or("0");

pub(crate) const T_PROGRAM_TOP: Param<Dur> = Param::time(
    "timing.t_program_top",
    "tPROG of the fourth page of a word line; 0: as t_program_upper",
)
.or("0");

pub(crate) const T_COMMAND: Param<Dur> = Param::time(
    "timing.t_command",
    "time on the channel for the command and address cycles of one operation",
)
.or("0");

pub(crate) const T_STATUS: Param<Dur> = Param::time(
    "timing.t_status",
    "time on the channel for the status that is read when the cells of a die have finished: before \
     the data of a read, and before a program or an erase is complete",
)
.or("0");

/// The parameter `timing.plane_reads`.
pub const PLANE_READS: Param<Text> = Param::choice(
    "timing.plane_reads",
    &["together", "independent"],
    "`together`: a die works on one read at a time, of one plane or of all planes of a frame; \
     `independent`: reads of different planes of a die sense at the same time, and share its bus; \
     frames must not cover all planes (drive.frame_planes)",
)
.or("together");

pub(crate) const PLANE_READS_MAX: Param<u32> = Param::int(
    "timing.plane_reads_max",
    0,
    16,
    "timing.plane_reads = independent: largest number of reads that a die works on at the \
     same time; 0: one for each plane",
)
.or("0");

pub(crate) const PLANE_READS_KINDS: Param<Text> = Param::choice(
    "timing.plane_reads_kinds",
    &["any", "same"],
    "timing.plane_reads = independent: kinds of the pages that are read at the same time",
)
.or("any");

pub(crate) const CHANNEL_RATE: Param<u64> =
    Param::rate("timing.channel_rate", "bytes a second over one channel; 0: no limit");

/// The parameter `timing.cache_read`.
pub const CACHE_READ: Param<bool> = Param::flag(
    "timing.cache_read",
    "sense the next page of a die while the previous page is still on the channel",
)
.or("false");

/// The parameter `timing.cache_program`.
pub const CACHE_PROGRAM: Param<bool> = Param::flag(
    "timing.cache_program",
    "transfer the next page to a die while the die still programs the previous page",
)
.or("false");

pub(crate) const SUSPEND: Param<Text> = Param::choice(
    "timing.suspend",
    &["none", "program", "erase", "both"],
    "operations that are suspended for a read that waits for their die: for a host read, or for a \
     read of the map that a host read waits for",
)
.or("none");

pub(crate) const T_SUSPEND: Param<Dur> =
    Param::time("timing.t_suspend", "time from the suspend command to the first read").or("0");

pub(crate) const T_RESUME: Param<Dur> =
    Param::time("timing.t_resume", "time added to a suspended operation each time it resumes")
        .or("0");

pub(crate) const SUSPENDS_MAX: Param<u32> = Param::int(
    "timing.suspends_max",
    1,
    255,
    "largest number of suspensions of one operation, which then runs to its end",
)
.or("16");

pub(crate) const ERASE_SUSPENDS_MAX: Param<u32> = Param::int(
    "timing.erase_suspends_max",
    0,
    255,
    "largest number of suspensions of one erase; 0: as timing.suspends_max",
)
.or("0");

pub(crate) const T_RESUME_SUSPEND: Param<Dur> = Param::time(
    "timing.t_resume_suspend",
    "shortest time from a resume to the next suspension of the same operation; reads wait for it",
)
.or("0");

pub(crate) const SUSPENDED_MAX: Param<Dur> = Param::time(
    "timing.suspended_max",
    "longest time of one suspension; then the operation runs to its end, even if reads wait; \
     timing.passed_max bounds a suspension as well; 0: only timing.passed_max does",
)
.or("1ms");

pub(crate) const PRIORITY: Param<Text> = Param::text(
    "timing.priority",
    "order in which waiting operations get a die or a channel, first to last; all five names, in \
     any order",
)
.or("host_read,map,host_write,gc,idle");

pub(crate) const PASSED_MAX: Param<Dur> = Param::time(
    "timing.passed_max",
    "longest time for which the first operation of a class waits in a queue while operations of \
     higher classes pass; after this time it is next. The time also bounds a suspension. 0: no \
     bound. Kyber aims at 10 ms for a write (Linux, block/kyber-iosched.c)",
)
.or("10ms");

pub(crate) const SRAM_LATENCY: Param<Dur> =
    Param::time("memory.sram_latency", "time of one access to a table in SRAM").or("0");

pub(crate) const DRAM_LATENCY: Param<Dur> =
    Param::time("memory.dram_latency", "time of one access to a table in DRAM").or("0");

pub(crate) const NVM: Param<Text> = Param::name(
    "memory.nvm",
    || TECHNOLOGIES.iter().map(|t| t.name).collect(),
    "kind of NVM, which sets each time or rate whose memory.nvm_* key is 0; `pcm` is 100 times \
     faster than NAND",
)
.or("pcm");

pub(crate) const NVM_READ_LATENCY: Param<Dur> =
    Param::time("memory.nvm_read_latency", "time of one load from NVM; 0: as memory.nvm").or("0");

pub(crate) const NVM_WRITE_LATENCY: Param<Dur> =
    Param::time("memory.nvm_write_latency", "time of one store to NVM; 0: as memory.nvm").or("0");

pub(crate) const SRAM_RATE: Param<u64> =
    Param::rate("memory.sram_rate", "bytes a second of SRAM; 0: no limit").or("0");

pub(crate) const DRAM_RATE: Param<u64> =
    Param::rate("memory.dram_rate", "bytes a second of DRAM; 0: no limit").or("0");

pub(crate) const NVM_RATE: Param<u64> =
    Param::rate("memory.nvm_rate", "bytes a second of NVM; 0: as memory.nvm").or("0");

/// The parameter `memory.dram_shared_rate`.
pub const DRAM_SHARED_RATE: Param<u64> = Param::rate(
    "memory.dram_shared_rate",
    "bytes a second of a DRAM of the controller for which all data and the tables in DRAM wait; \
     data passes it twice, in and out; 0: data and tables wait for no DRAM, as in SRAM",
)
.or("0");

pub(crate) const DRAM_BURST: Param<u32> = Param::int(
    "memory.dram_burst",
    0,
    4096,
    "memory.dram_shared_rate: least number of bytes that one access to a table moves; 0: as many \
     as the access needs",
)
.or("0");

/// The parameter `firmware.cores`.
pub const CORES: Param<u32> = Param::int(
    "firmware.cores",
    0,
    1024,
    "cores of the controller, each of which works on one command, or on the start of one operation \
     on flash, at a time; 0: there is always a core that has no work",
)
.or("0");

pub(crate) const FLASH_TIME: Param<Dur> = Param::time(
    "firmware.flash_time",
    "time of a core before each operation on flash, for whatever cause",
)
.or("0");

pub(crate) const LINK_RATE: Param<u64> =
    Param::rate("host.link_rate", "bytes a second between host and drive, each way; 0: no limit")
        .or("0");

pub(crate) const FULL_DUPLEX: Param<bool> = Param::flag(
    "host.full_duplex",
    "data flows both ways on the host link at the same time (PCIe, UFS); false: one way at a time \
     (SATA)",
)
.or("true");

/// Parameters of the timing engine.
pub const PARAMS: &[ParamDef] = &[
    T_READ.def,
    T_READ_MIDDLE.def,
    T_READ_UPPER.def,
    T_READ_TOP.def,
    T_READ_SLC.def,
    T_PROGRAM.def,
    T_PROGRAM_MIDDLE.def,
    T_PROGRAM_UPPER.def,
    T_PROGRAM_TOP.def,
    T_PROGRAM_SLC.def,
    T_PROGRAM_STEPS[0].def,
    T_PROGRAM_STEPS[1].def,
    T_PROGRAM_STEPS[2].def,
    T_ERASE.def,
    T_COMMAND.def,
    T_STATUS.def,
    CHANNEL_RATE.def,
    PLANE_READS.def,
    PLANE_READS_MAX.def,
    PLANE_READS_KINDS.def,
    CACHE_READ.def,
    CACHE_PROGRAM.def,
    SUSPEND.def,
    T_SUSPEND.def,
    T_RESUME.def,
    T_RESUME_SUSPEND.def,
    SUSPENDS_MAX.def,
    ERASE_SUSPENDS_MAX.def,
    SUSPENDED_MAX.def,
    PRIORITY.def,
    PASSED_MAX.def,
    SRAM_LATENCY.def,
    DRAM_LATENCY.def,
    NVM.def,
    NVM_READ_LATENCY.def,
    NVM_WRITE_LATENCY.def,
    SRAM_RATE.def,
    DRAM_RATE.def,
    NVM_RATE.def,
    DRAM_SHARED_RATE.def,
    DRAM_BURST.def,
    CORES.def,
    FLASH_TIME.def,
    LINK_RATE.def,
    FULL_DUPLEX.def,
];
