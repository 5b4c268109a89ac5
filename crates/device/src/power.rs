//! Power states, and the energy of a drive.
//!
//! A drive that rests long enough enters PS3 and later PS4, the states of low power that NVMe
//! drives name so (NVM Express Base Specification, Power Management). A command that then arrives
//! waits until the drive has entered the state and left it again. A drive rests while no operation
//! is unfinished. Work in the background wakes it immediately, because nobody waits for this work.

use flashatlas_types::{ConfigError, Dur, Param, ParamDef, Params, Ps};

const MW_MAX: u64 = 1_000_000;
const NJ_MAX: u64 = 1_000_000_000_000;

const fn milliwatts(key: &'static str, doc: &'static str) -> Param<u32> {
    Param::int(key, 0, MW_MAX, doc)
}

const fn nanojoules(key: &'static str, doc: &'static str) -> Param<u64> {
    Param::int(key, 0, NJ_MAX, doc)
}

const READ: Param<u64> = nanojoules(
    "energy.read_nj",
    "nanojoules of the cells for each page of a plane that is read, at each retry again",
)
.or("0");
const PROGRAM: Param<u64> = nanojoules(
    "energy.program_nj",
    "nanojoules of the cells for each page of a plane that is programmed, over all steps",
)
.or("0");
const ERASE: Param<u64> = nanojoules(
    "energy.erase_nj",
    "nanojoules of the cells for each block of a plane that is erased",
)
.or("0");
const READ_SLC: Param<u64> =
    nanojoules("energy.read_slc_nj", "energy.read_nj of a page in SLC mode; 0: the same").or("0");
const PROGRAM_SLC: Param<u64> =
    nanojoules("energy.program_slc_nj", "energy.program_nj of a page in SLC mode; 0: the same")
        .or("0");
const ERASE_SLC: Param<u64> =
    nanojoules("energy.erase_slc_nj", "energy.erase_nj of a block in SLC mode; 0: the same")
        .or("0");
const CHANNEL: Param<u32> =
    milliwatts("power.channel_mw", "milliwatts of a channel while it transfers").or("0");
const LINK: Param<u32> =
    milliwatts("power.link_mw", "milliwatts of the host link while it transfers, each way").or("0");
const CORE: Param<u32> =
    milliwatts("power.core_mw", "milliwatts of a core while it works (firmware.cores)").or("0");
const WORK: Param<u32> = milliwatts(
    "power.work_mw",
    "milliwatts of the controller and its memory while any operation is unfinished",
)
.or("0");
const IDLE: Param<u32> =
    milliwatts("power.idle_mw", "milliwatts of the drive while it rests in PS0").or("0");
const PS3: [Param<Dur>; 3] = [
    Param::time("power.ps3_after", "rest after which the drive enters PS3; 0: never").or("0"),
    Param::time("power.ps3_entry", "time in which the drive enters PS3").or("0"),
    Param::time("power.ps3_exit", "time in which the drive leaves PS3 for a command").or("0"),
];
const PS4: [Param<Dur>; 3] = [
    Param::time("power.ps4_after", "rest after which the drive enters PS4; 0: never").or("0"),
    Param::time("power.ps4_entry", "time in which the drive enters PS4").or("0"),
    Param::time("power.ps4_exit", "time in which the drive leaves PS4 for a command").or("0"),
];
const PS3_MW: Param<u32> =
    milliwatts("power.ps3_mw", "milliwatts of the drive from the entry to PS3 on").or("0");
const PS4_MW: Param<u32> =
    milliwatts("power.ps4_mw", "milliwatts of the drive from the entry to PS4 on").or("0");

/// Parameters of power and energy.
pub(crate) const PARAMS: [ParamDef; 19] = [
    READ.def,
    PROGRAM.def,
    ERASE.def,
    READ_SLC.def,
    PROGRAM_SLC.def,
    ERASE_SLC.def,
    CHANNEL.def,
    LINK.def,
    CORE.def,
    WORK.def,
    IDLE.def,
    PS3[0].def,
    PS3[1].def,
    PS3[2].def,
    PS3_MW.def,
    PS4[0].def,
    PS4[1].def,
    PS4[2].def,
    PS4_MW.def,
];

/// Names of the states of low power, in the order in which a drive enters them.
pub const STATES: [&str; 2] = ["ps3", "ps4"];

/// The energy of each operation, in nanojoules, and the power of each resource, in milliwatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnergyRates {
    /// A page read, a page programmed and a block erased, all of one plane.
    pub native: [u64; 3],
    /// The same in SLC mode.
    pub slc: [u64; 3],
    /// A channel that transfers.
    pub channel: u64,
    /// The host link that transfers, each way.
    pub link: u64,
    /// A core that works.
    pub core: u64,
    /// The controller while any operation is unfinished.
    pub work: u64,
    /// The drive at rest in PS0.
    pub idle: u64,
    /// The drive in each of [`STATES`].
    pub states: [u64; 2],
}

impl EnergyRates {
    /// Returns the rates that `params` describe, or `None` if all of them are 0.
    pub(crate) fn of(params: &Params) -> Option<EnergyRates> {
        let native = [READ, PROGRAM, ERASE].map(|param| params.get(param));
        let slc = [READ_SLC, PROGRAM_SLC, ERASE_SLC].map(|param| params.get(param));
        let mw = |param: Param<u32>| u64::from(params.get(param));
        let rates = EnergyRates {
            native,
            slc: [0, 1, 2].map(|i| if slc[i] == 0 { native[i] } else { slc[i] }),
            channel: mw(CHANNEL),
            link: mw(LINK),
            core: mw(CORE),
            work: mw(WORK),
            idle: mw(IDLE),
            states: [PS3_MW, PS4_MW].map(mw),
        };
        (rates != EnergyRates::default()).then_some(rates)
    }
}

/// A state of low power.
#[derive(Clone, Copy, Debug)]
struct LowPower {
    after: Dur,
    entry: Dur,
    exit: Dur,
}

/// The states of low power of a drive, and the time that it was in each.
#[derive(Clone, Debug)]
pub struct PowerStates {
    /// Each state with its place in [`STATES`], in the order in which the drive enters them.
    states: Vec<(usize, LowPower)>,
    /// Time at which the drive has woken up.
    awake: Ps,
    /// Time from which on rest is counted.
    counted_from: Ps,
    /// Number of times that the drive was in each of [`STATES`], and the sum of these times.
    pub counts: [(u64, Dur); 2],
}

impl PowerStates {
    /// Returns the states that `params` describe, or `None` if the drive never enters one.
    pub(crate) fn of(params: &Params) -> Option<Box<PowerStates>> {
        let states = [PS3, PS4].into_iter().enumerate().map(|(place, keys)| {
            let [after, entry, exit] = keys.map(|key| params.get(key));
            (place, LowPower { after, entry, exit })
        });
        let states: Vec<_> = states.filter(|(_, state)| state.after > Dur::ZERO).collect();
        let power = PowerStates {
            states,
            awake: Ps::ZERO,
            counted_from: Ps::ZERO,
            counts: Default::default(),
        };
        (!power.states.is_empty()).then(|| Box::new(power))
    }

    /// Sets the counts to zero at `now`.
    pub(crate) fn reset_counters(&mut self, now: Ps) {
        (self.counts, self.counted_from) = (Default::default(), now);
    }

    /// Ends a rest that began at `since`. Returns the time for which a command that arrives now
    /// waits.
    pub(crate) fn wake(&mut self, since: Ps, now: Ps) -> Dur {
        let rest = now.since(since);
        let mut waits = Dur::ZERO;
        for (i, &(place, state)) in self.states.iter().enumerate() {
            if rest < state.after {
                break;
            }
            let from = since.after(state.after);
            let next = self.states.get(i + 1).map_or(now, |(_, next)| since.after(next.after));
            let (count, time) = &mut self.counts[place];
            *count += 1;
            *time = *time + next.min(now).since(from.max(self.counted_from));
            waits = from.after(state.entry).since(now) + state.exit;
        }
        self.awake = now.after(waits);
        waits
    }

    /// Returns the time for which a command that arrives now waits, while the drive wakes up.
    pub(crate) fn wakes_for(&self, now: Ps) -> Dur {
        self.awake.since(now)
    }
}

/// Refuses states of low power that contradict each other, and more than one drive.
pub(crate) fn fits(params: &Params, drives: u32) -> Result<(), ConfigError> {
    for (keys, mw, name) in [(PS3, PS3_MW, "PS3"), (PS4, PS4_MW, "PS4")] {
        let [after, entry, exit] = keys;
        let unused = [(entry.key(), params.get(entry)), (exit.key(), params.get(exit))]
            .into_iter()
            .find(|(_, time)| *time > Dur::ZERO)
            .map(|(key, _)| key)
            .or((params.get(mw) > 0).then_some(mw.key()));
        if let (Dur::ZERO, Some(key)) = (params.get(after), unused) {
            let why = format!("the drive never enters {name}: set {}", after.key());
            return Err(ConfigError::new(key, why));
        }
    }
    let [first, second] = [PS3, PS4].map(|keys| keys.map(|key| params.get(key)));
    if second[0] > Dur::ZERO && second[0] < first[0] + first[1] {
        let why = format!(
            "the drive would enter PS4 before it has entered PS3 ({} and {})",
            PS3[0].key(),
            PS3[1].key()
        );
        return Err(ConfigError::new(PS4[0].key(), why));
    }
    let is_set = |key: &&str| {
        params.iter().any(|(of, value)| of == *key && !matches!(&*value.to_string(), "0" | "0ns"))
    };
    match PARAMS.iter().map(|def| def.key).find(is_set) {
        Some(key) if drives > 1 => {
            let why = "power and energy are of one drive; the layers here combine several";
            Err(ConfigError::new(key, why))
        }
        _ => Ok(()),
    }
}
