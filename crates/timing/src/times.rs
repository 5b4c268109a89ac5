//! Times and policies of the engine.

use crate::nvm::{TECHNOLOGIES, Technology};
use crate::params::{
    CACHE_PROGRAM, CACHE_READ, CHANNEL_RATE, CORES, DRAM_BURST, DRAM_LATENCY, DRAM_RATE,
    DRAM_SHARED_RATE, ERASE_SUSPENDS_MAX, FLASH_TIME, FULL_DUPLEX, LINK_RATE, NVM, NVM_RATE,
    NVM_READ_LATENCY, NVM_WRITE_LATENCY, PASSED_MAX, PLANE_READS, PLANE_READS_KINDS,
    PLANE_READS_MAX, PRIORITY, SRAM_LATENCY, SRAM_RATE, SUSPEND, SUSPENDED_MAX, SUSPENDS_MAX,
    T_COMMAND, T_PROGRAM_MIDDLE, T_PROGRAM_TOP, T_PROGRAM_UPPER, T_READ_MIDDLE, T_READ_TOP,
    T_READ_UPPER, T_RESUME, T_RESUME_SUSPEND, T_STATUS, T_SUSPEND,
};
use flashatlas_dram::{self as dram, Device, Rules, Timings};
use flashatlas_types::flash_times::{
    T_ERASE, T_PROGRAM, T_PROGRAM_SLC, T_PROGRAM_STEPS, T_READ, T_READ_SLC,
};
use flashatlas_types::{
    Class, ConfigError, Dur, MemoryKind, PAGE_KINDS, PROGRAM_KINDS, Param, Params,
};

/// The limits of independent reads of planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneReads {
    /// Greatest number of reads that a die works on at the same time; 0 if every plane may have a
    /// read.
    pub max: u32,
    /// `true` if reads at the same time must be of pages of the same kind.
    pub same_kind: bool,
}

/// Settings of suspension: which operations are suspended for host reads, and how long that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspend {
    /// `true` if programs are suspended.
    pub program: bool,
    /// `true` if erases are suspended.
    pub erase: bool,
    /// Time from the suspend command to the first read.
    pub latency: Dur,
    /// Time added at each resume.
    pub resume: Dur,
    /// Greatest number of suspensions of one operation.
    pub max: u8,
    /// Greatest number of suspensions of one erase; 0 if it is [`Suspend::max`].
    pub erase_max: u8,
    /// Shortest time from a resume to the next suspension of the same operation.
    pub gap: Dur,
    /// Longest time of one suspension; 0 if only [`Times::passed_max`] bounds it.
    pub longest: Dur,
}

impl Suspend {
    /// Returns `true` if programs or erases are suspended.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.program || self.erase
    }
}

/// Number of cores of a controller on which no operation waits for a core.
const WITHOUT_LIMIT: u32 = u32::MAX;

/// The number of cores, and the time that an operation on flash takes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTimes {
    /// Number of cores.
    pub count: u32,
    /// Time of a core before each operation on flash.
    pub flash: Dur,
}

impl CoreTimes {
    /// Returns the cores that `params` describe, or `None` if no core is ever busy.
    pub(crate) fn of(params: &Params) -> Option<CoreTimes> {
        let (count, flash) = (params.get(CORES), params.get(FLASH_TIME));
        match (count, flash) {
            (0, Dur::ZERO) => None,
            (0, _) => Some(CoreTimes { count: WITHOUT_LIMIT, flash }),
            _ => Some(CoreTimes { count, flash }),
        }
    }

    /// Returns the number of cores, or 0 without a limit.
    pub(crate) fn number(self) -> u32 {
        if self.count == WITHOUT_LIMIT { 0 } else { self.count }
    }
}

/// The DRAM that all data and the tables in DRAM share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedDramTimes {
    /// Bytes a second.
    pub rate: u64,
    /// Least number of bytes of an access to a table.
    pub burst: u32,
}

impl SharedDramTimes {
    /// Returns the shared DRAM that `params` describe, or `None` if nothing waits for a DRAM.
    fn of(params: &Params) -> Result<Option<SharedDramTimes>, ConfigError> {
        let (rate, burst) = (params.get(DRAM_SHARED_RATE), params.get(DRAM_BURST));
        let key = DRAM_SHARED_RATE.key();
        let refused = |key, why: &str| Err(ConfigError::new(key, why));
        if rate == 0 && burst > 0 {
            let why = "is a size of accesses to a shared DRAM; set memory.dram_shared_rate";
            return refused(DRAM_BURST.key(), why);
        }
        if rate > 0 && params.get(DRAM_RATE) > 0 {
            let why = "does not combine with memory.dram_rate, a rate of the tables alone; leave \
                       one of them out";
            return refused(key, why);
        }
        if rate > 0 && params.has(dram::timings::PRESET) {
            let why = "does not combine with map.store = lpmt, which times each command of a DRAM \
                       of the tables alone (dram.preset); use another map store";
            return refused(key, why);
        }
        Ok((rate > 0).then_some(SharedDramTimes { rate, burst }))
    }
}

/// Latency and bandwidth of one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTimes {
    /// Time of one load.
    pub read: Dur,
    /// Time of one store.
    pub write: Dur,
    /// Bytes a second; 0 for no limit.
    pub rate: u64,
}

/// Times and policies: all settings of the engine that determine a drive's speed.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// tR by page kind.
    pub read: [Dur; PAGE_KINDS],
    /// tPROG by page kind, and then by step of a program in several steps.
    pub program: [Dur; PROGRAM_KINDS],
    /// tBERS.
    pub erase: Dur,
    /// Time of the command and address cycles of an operation.
    pub command: Dur,
    /// Time on the channel of the status that is read when the cells have finished.
    pub status: Dur,
    /// Bytes a second of a channel; 0 for no limit.
    pub channel_rate: u64,
    /// `true` if a page is sensed while another is transferred.
    pub cache_read: bool,
    /// `true` if a page is transferred while another is programmed.
    pub cache_program: bool,
    /// The limits of independent reads of planes, if the dies can do them.
    pub plane_reads: Option<PlaneReads>,
    /// Suspension.
    pub suspend: Suspend,
    /// Rank of each [`Class`]: 0 goes first.
    pub rank: [u8; Class::ALL.len()],
    /// Longest time for which the first operation of a class in a queue lets other classes pass; 0
    /// for no bound.
    pub passed_max: Dur,
    /// Times of SRAM, DRAM and NVM.
    pub memory: [MemoryTimes; 3],
    /// The DRAM whose commands are timed one by one, if a table is in such a DRAM.
    pub dram: Option<(Device, Timings, Rules)>,
    /// The cores of the controller, if they can be busy.
    pub cores: Option<CoreTimes>,
    /// The DRAM that data and tables share, if they wait for one.
    pub shared_dram: Option<SharedDramTimes>,
    /// Bytes a second of the host link in each direction; 0 for no limit.
    pub link_rate: u64,
    /// `true` if the host link transfers in both directions at the same time.
    pub full_duplex: bool,
}

impl Times {
    /// Returns the times that `params` describe.
    ///
    /// # Errors
    /// Returns an error if `timing.priority` does not name each class once, if DRAM timings
    /// contradict each other, or if planes are read independently with cache reads.
    pub fn from_params(params: &Params) -> Result<Times, ConfigError> {
        let levels = |[lower, middle, upper, top]: [Param<Dur>; 4], slc: Param<Dur>| {
            let lower = params.get(lower);
            let middle = time_or(params, middle, lower);
            let upper = time_or(params, upper, middle);
            [lower, middle, upper, time_or(params, top, upper), params.get(slc)]
        };
        let memory = |latency: Param<Dur>, rate: Param<u64>| MemoryTimes {
            read: params.get(latency),
            write: params.get(latency),
            rate: params.get(rate),
        };
        let suspend = params.get(SUSPEND);
        Ok(Times {
            read: levels([T_READ, T_READ_MIDDLE, T_READ_UPPER, T_READ_TOP], T_READ_SLC),
            program: {
                let kinds = [T_PROGRAM, T_PROGRAM_MIDDLE, T_PROGRAM_UPPER, T_PROGRAM_TOP];
                let [a, b, c, d, e] = levels(kinds, T_PROGRAM_SLC);
                let [first, second, third] = T_PROGRAM_STEPS.map(|time| params.get(time));
                [a, b, c, d, e, first, second, third]
            },
            erase: params.get(T_ERASE),
            command: params.get(T_COMMAND),
            status: params.get(T_STATUS),
            plane_reads: plane_reads(params)?,
            channel_rate: params.get(CHANNEL_RATE),
            cache_read: params.get(CACHE_READ),
            cache_program: params.get(CACHE_PROGRAM),
            suspend: Suspend {
                program: matches!(suspend, "program" | "both"),
                erase: matches!(suspend, "erase" | "both"),
                latency: params.get(T_SUSPEND),
                resume: params.get(T_RESUME),
                max: params.get(SUSPENDS_MAX) as u8,
                erase_max: params.get(ERASE_SUSPENDS_MAX) as u8,
                gap: params.get(T_RESUME_SUSPEND),
                longest: params.get(SUSPENDED_MAX),
            },
            rank: ranks(params.get(PRIORITY))?,
            passed_max: params.get(PASSED_MAX),
            memory: [memory(SRAM_LATENCY, SRAM_RATE), memory(DRAM_LATENCY, DRAM_RATE), nvm(params)],
            dram: if params.has(dram::timings::PRESET) {
                Some(dram::timings::from_params(params)?)
            } else {
                None
            },
            cores: CoreTimes::of(params),
            shared_dram: SharedDramTimes::of(params)?,
            link_rate: params.get(LINK_RATE),
            full_duplex: params.get(FULL_DUPLEX),
        })
    }

    /// Returns the time of `accesses` dependent accesses of `bytes` bytes each.
    pub fn memory_time(&self, kind: MemoryKind, accesses: u32, bytes: u32, write: bool) -> Dur {
        let m = self.memory[kind as usize];
        let one = (if write { m.write } else { m.read }) + Dur::transfer(u64::from(bytes), m.rate);
        Dur(one
            .0
            .checked_mul(u64::from(accesses))
            .expect("the memory accesses take longer than 2^64 ps"))
    }
}

/// Returns the limits of independent reads of planes, or `None` if a die does one read at a time.
fn plane_reads(params: &Params) -> Result<Option<PlaneReads>, ConfigError> {
    let limits = PlaneReads {
        max: params.get(PLANE_READS_MAX),
        same_kind: params.get(PLANE_READS_KINDS) == "same",
    };
    if params.get(PLANE_READS) == "together" {
        let unused = match limits {
            PlaneReads { max: 0, same_kind: false } => return Ok(None),
            PlaneReads { max: 0, .. } => PLANE_READS_KINDS.key(),
            PlaneReads { .. } => PLANE_READS_MAX.key(),
        };
        let why = "limits independent reads of planes; set timing.plane_reads = independent";
        return Err(ConfigError::new(unused, why));
    }
    if params.get(CACHE_READ) {
        let why = "`independent` does not combine with timing.cache_read; turn one of them off";
        return Err(ConfigError::new(PLANE_READS.key(), why));
    }
    Ok(Some(limits))
}

/// Returns the time of `param`, or `other` if it is 0.
fn time_or(params: &Params, param: Param<Dur>, other: Dur) -> Dur {
    if params.get(param) == Dur::ZERO { other } else { params.get(param) }
}

/// Returns the times of the drive's NVM. They come from its technology unless a parameter sets
/// them.
fn nvm(params: &Params) -> MemoryTimes {
    let technology: &Technology =
        TECHNOLOGIES.iter().find(|t| t.name == params.get(NVM)).expect("resolved");
    let rate = match params.get(NVM_RATE) {
        0 => technology.rate,
        rate => rate,
    };
    MemoryTimes {
        read: time_or(params, NVM_READ_LATENCY, technology.read),
        write: time_or(params, NVM_WRITE_LATENCY, technology.write),
        rate,
    }
}

fn ranks(text: &str) -> Result<[u8; Class::ALL.len()], ConfigError> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let mut rank = [0; Class::ALL.len()];
    for class in Class::ALL {
        let places: Vec<usize> = (0..names.len()).filter(|&i| names[i] == class.name()).collect();
        let [place] = places[..] else {
            return Err(ConfigError {
                allowed: Class::ALL.iter().map(|c| c.name().to_owned()).collect(),
                ..ConfigError::new(
                    "timing.priority",
                    format!("`{text}` does not name every class exactly once"),
                )
            });
        };
        rank[class as usize] = place as u8;
    }
    if names.len() != Class::ALL.len() {
        return Err(ConfigError::new(
            "timing.priority",
            format!("`{text}` names more than the five known classes"),
        ));
    }
    Ok(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_names_each_class_once() {
        assert_eq!(ranks("gc, idle,host_read,map,host_write").unwrap()[Class::Gc as usize], 0);
        assert!(ranks("gc,idle,host_read,map").is_err());
        assert!(ranks("gc,idle,host_read,map,host_write,gc").is_err());
        assert!(ranks("gc,idle,host_read,map,host_write,x").is_err());
    }
}
