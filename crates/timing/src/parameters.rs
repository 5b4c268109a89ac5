//! Times and policies of the engine, and their declarations.

use crate::nvm::{TECHNOLOGIES, Technology};
use flashatlas_dram::{self as dram, Device, Rules, Timings};
use flashatlas_types::{Class, ConfigError, Dur, MemoryKind, ParamDef, ParamKind, Params};

/// One declaration; `default` of `None` means that a drive must say it.
const fn time(key: &'static str, default: Option<&'static str>, doc: &'static str) -> ParamDef {
    ParamDef { key, kind: ParamKind::Time, default, doc }
}

const fn rate(key: &'static str, default: Option<&'static str>, doc: &'static str) -> ParamDef {
    ParamDef { key, kind: ParamKind::Bytes(0, 1 << 50), default, doc }
}

const fn flag(key: &'static str, doc: &'static str) -> ParamDef {
    ParamDef { key, kind: ParamKind::Bool, default: Some("false"), doc }
}

/// Parameters of the timing engine.
pub const PARAMS: &[ParamDef] = &[
    time("timing.t_read", None, "tR: sensing a (lower) page"),
    time("timing.t_read_middle", Some("0"), "tR of the second page of a word line; 0: as t_read"),
    time(
        "timing.t_read_upper",
        Some("0"),
        "tR of the third page of a word line; 0: as t_read_middle",
    ),
    time("timing.t_program", None, "tPROG: programming a (lower) page"),
    time(
        "timing.t_program_middle",
        Some("0"),
        "tPROG of the second page of a word line; 0: as t_program",
    ),
    time(
        "timing.t_program_upper",
        Some("0"),
        "tPROG of the third page of a word line; 0: as t_program_middle",
    ),
    time("timing.t_erase", None, "tBERS: erasing a block"),
    time(
        "timing.t_command",
        Some("0"),
        "time on the channel for the command and address cycles of one operation",
    ),
    rate("timing.channel_rate", None, "bytes a second over one channel; 0: no limit"),
    flag(
        "timing.cache_read",
        "sense the next page of a die while the last one is still on the channel",
    ),
    flag(
        "timing.cache_program",
        "transfer the next page to a die while it still programs the last one",
    ),
    ParamDef {
        key: "timing.suspend",
        kind: ParamKind::Choice(&["none", "program", "erase", "both"]),
        default: Some("none"),
        doc: "which operations are suspended when a host read waits for their die",
    },
    time("timing.t_suspend", Some("0"), "from the suspend command to the first read"),
    time("timing.t_resume", Some("0"), "added to a suspended operation each time it resumes"),
    ParamDef {
        key: "timing.suspends_max",
        kind: ParamKind::Int(1, 255),
        default: Some("16"),
        doc: "how often one operation is suspended; after that it runs to its end",
    },
    ParamDef {
        key: "timing.priority",
        kind: ParamKind::Text,
        default: Some("host_read,map,host_write,gc,idle"),
        doc: "order in which waiting operations get a die or a channel, first to last; all five \
              names, in any order",
    },
    time("memory.sram_latency", Some("0"), "one access to a table in SRAM"),
    time("memory.dram_latency", Some("0"), "one access to a table in DRAM"),
    ParamDef {
        key: "memory.nvm",
        kind: ParamKind::Name(|| TECHNOLOGIES.iter().map(|t| t.name).collect()),
        default: Some("pcm"),
        doc: "the kind of NVM, which says what the memory.nvm_* keys do not: `pcm` is 100 times \
              faster than NAND",
    },
    time("memory.nvm_read_latency", Some("0"), "one load from NVM; 0: as memory.nvm says"),
    time("memory.nvm_write_latency", Some("0"), "one store to NVM; 0: as memory.nvm says"),
    rate("memory.sram_rate", Some("0"), "bytes a second of SRAM; 0: no limit"),
    rate("memory.dram_rate", Some("0"), "bytes a second of DRAM; 0: no limit"),
    rate("memory.nvm_rate", Some("0"), "bytes a second of NVM; 0: as memory.nvm says"),
    rate(
        "host.link_rate",
        Some("0"),
        "bytes a second between host and drive, each way; 0: no limit",
    ),
    ParamDef {
        key: "host.full_duplex",
        kind: ParamKind::Bool,
        default: Some("true"),
        doc: "whether data flows both ways at once on the host link (PCIe, UFS) or one way at a \
              time (SATA)",
    },
];

/// Which operations give way to host reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspend {
    /// Programs are suspended.
    pub program: bool,
    /// Erases are suspended.
    pub erase: bool,
    /// From the suspend command to the first read.
    pub latency: Dur,
    /// Added at each resume.
    pub resume: Dur,
    /// Suspensions of one operation.
    pub max: u8,
}

/// Latency and bandwidth of one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTimes {
    /// One load.
    pub read: Dur,
    /// One store.
    pub write: Dur,
    /// Bytes a second; 0: no limit.
    pub rate: u64,
}

/// Everything that the engine needs to know of a drive's speed.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// tR by page kind.
    pub read: [Dur; 3],
    /// tPROG by page kind.
    pub program: [Dur; 3],
    /// tBERS.
    pub erase: Dur,
    /// Command and address cycles.
    pub command: Dur,
    /// Bytes a second of a channel.
    pub channel_rate: u64,
    /// Sense while transferring.
    pub cache_read: bool,
    /// Transfer while programming.
    pub cache_program: bool,
    /// Suspension.
    pub suspend: Suspend,
    /// Rank of each [`Class`]: 0 goes first.
    pub rank: [u8; Class::ALL.len()],
    /// SRAM, DRAM, NVM.
    pub memory: [MemoryTimes; 3],
    /// The DRAM whose commands are timed one by one, where a table asks for that.
    pub dram: Option<(Device, Timings, Rules)>,
    /// Bytes a second of the host link, each way.
    pub link_rate: u64,
    /// Both ways at once.
    pub full_duplex: bool,
}

impl Times {
    /// The times that `params` describe.
    ///
    /// # Errors
    /// A `timing.priority` that does not name each class once; DRAM timings that contradict each
    /// other.
    pub fn from_params(params: &Params) -> Result<Times, ConfigError> {
        let or = |key: &str, other: Dur| {
            if params.time(key) == Dur::ZERO { other } else { params.time(key) }
        };
        let levels = |keys: [&'static str; 3]| {
            let lower = params.time(keys[0]);
            let middle = or(keys[1], lower);
            [lower, middle, or(keys[2], middle)]
        };
        let memory = |read, write, rate| MemoryTimes {
            read: params.time(read),
            write: params.time(write),
            rate: params.int(rate),
        };
        let suspend = params.text("timing.suspend");
        Ok(Times {
            read: levels(["timing.t_read", "timing.t_read_middle", "timing.t_read_upper"]),
            program: levels([
                "timing.t_program",
                "timing.t_program_middle",
                "timing.t_program_upper",
            ]),
            erase: params.time("timing.t_erase"),
            command: params.time("timing.t_command"),
            channel_rate: params.int("timing.channel_rate"),
            cache_read: params.flag("timing.cache_read"),
            cache_program: params.flag("timing.cache_program"),
            suspend: Suspend {
                program: matches!(suspend, "program" | "both"),
                erase: matches!(suspend, "erase" | "both"),
                latency: params.time("timing.t_suspend"),
                resume: params.time("timing.t_resume"),
                max: params.u32("timing.suspends_max") as u8,
            },
            rank: ranks(params.text("timing.priority"))?,
            memory: [
                memory("memory.sram_latency", "memory.sram_latency", "memory.sram_rate"),
                memory("memory.dram_latency", "memory.dram_latency", "memory.dram_rate"),
                nvm(params),
            ],
            dram: if params.has("dram.preset") {
                Some(dram::timings::from_params(params)?)
            } else {
                None
            },
            link_rate: params.int("host.link_rate"),
            full_duplex: params.flag("host.full_duplex"),
        })
    }

    /// The time of `accesses` dependent accesses of `bytes` each.
    pub fn memory_time(&self, kind: MemoryKind, accesses: u32, bytes: u32, write: bool) -> Dur {
        let m = self.memory[kind as usize];
        let one = (if write { m.write } else { m.read }) + Dur::transfer(u64::from(bytes), m.rate);
        Dur(one.0.checked_mul(u64::from(accesses)).expect("memory accesses longer than 2^64 ps"))
    }
}

/// The drive's NVM: its technology, but for what is given.
fn nvm(params: &Params) -> MemoryTimes {
    let technology: &Technology =
        TECHNOLOGIES.iter().find(|t| t.name == params.text("memory.nvm")).expect("resolved");
    let rate = match params.int("memory.nvm_rate") {
        0 => technology.rate,
        rate => rate,
    };
    let given =
        |key: &str, or: Dur| if params.time(key) == Dur::ZERO { or } else { params.time(key) };
    MemoryTimes {
        read: given("memory.nvm_read_latency", technology.read),
        write: given("memory.nvm_write_latency", technology.write),
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
                    format!("`{text}` does not name each class once"),
                )
            });
        };
        rank[class as usize] = place as u8;
    }
    if names.len() != Class::ALL.len() {
        return Err(ConfigError::new(
            "timing.priority",
            format!("`{text}` names more than the five classes"),
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
