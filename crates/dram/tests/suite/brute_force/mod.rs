//! A checker of the DRAM engine that does not work like the engine.
//!
//! The checker stores the past commands in a plain list. It compares each new command with all past
//! commands, even if they come later in time. It also tries every earlier clock for the new
//! command. Its rules are the specification:
//!
//! 1. Commands to one bank come in the order in which they were issued, and are at least the
//!    distance apart that [`Checker::between`] returns.
//! 2. A refresh is due every tREFI. A due refresh goes before an access if the access arrives at
//!    that time or later, or if its data bus slot would come then. The refresh comes after the
//!    newest read or write, with all rows closed. If more refreshes are due when the access
//!    arrives, they follow the first refresh. The last of them is shown, and the others are only
//!    counted.
//! 3. A read or a write comes after all other reads and writes. An activation comes at the clock of
//!    the newest activation or later. No command comes before its access arrives or more than
//!    `WINDOW` clocks before the newest read or write.
//! 4. Every command has the first clock that these rules allow.

mod each_rule;

use CommandKind::{Activate, Precharge, PrechargeAll, Read, Refresh, Write};
use flashatlas_dram::engine::WINDOW;
use flashatlas_dram::{Command, CommandKind, Device, Dram, PRESETS, Rules, Served, Timings};
use flashatlas_types::{DramAccess, Rng, Seed};
use std::iter::once_with;

/// A distance in clocks that no constraint of these tests reaches.
const LONGEST: i64 = 600;

struct Checker {
    device: Device,
    timings: Timings,
    rules: Rules,
    /// Commands in the order in which they were issued. Commands that are too old to matter are
    /// removed.
    past: Vec<Command>,
    open: Vec<Option<u32>>,
    /// The clock at which the present access arrived.
    from: i64,
    /// Clocks of the newest read or write and of the newest activation.
    newest: i64,
    activated: i64,
    refreshes: u64,
    activations: u64,
    bursts: u64,
}

impl Checker {
    fn new(device: &Device, timings: &Timings, rules: Rules) -> Checker {
        let open = vec![None; device.banks as usize];
        let (past, never) = (Vec::new(), i64::MIN / 2);
        let (device, timings) = (*device, *timings);
        let (from, newest, activated, refreshes, activations, bursts) = (0, never, never, 0, 0, 0);
        Checker {
            device,
            timings,
            rules,
            past,
            open,
            from,
            newest,
            activated,
            refreshes,
            activations,
            bursts,
        }
    }

    fn due(&self) -> i64 {
        (self.refreshes as i64 + 1) * i64::from(self.timings.refi)
    }

    /// Returns the least distances from `a` to the later command `b`, each with its reason.
    fn between(&self, a: &Command, b: &Command) -> [(u32, &'static str); 2] {
        let t = &self.timings;
        let one_bank = a.bank == b.bank;
        let one_group = u32::from(a.bank.abs_diff(b.bank)) % self.device.groups == 0;
        let pick = |long: bool, l, s| if long { l } else { s };
        let ccd = pick(one_group && self.rules.ccd_l, (t.ccd_l, "ccd_l"), (t.ccd_s, "ccd_s"));
        let nothing = (0, "");
        let one = match (a.what, b.what) {
            (Activate, Read | Write) if one_bank => (t.rcd, "rcd"),
            (Activate, Precharge) if one_bank && self.rules.ras => (t.ras, "ras"),
            (Activate, PrechargeAll) if self.rules.ras => (t.ras, "ras"),
            (Activate, Activate) if self.rules.rrd => {
                pick(one_group, (t.rrd_l, "rrd_l"), (t.rrd_s, "rrd_s"))
            }
            (Read, Precharge) if one_bank => (t.rtp, "rtp"),
            (Read, PrechargeAll) => (t.rtp, "rtp"),
            (Write, Precharge) if one_bank => (t.cwl + t.dl + t.wr, "wr"),
            (Write, PrechargeAll) => (t.cwl + t.dl + t.wr, "wr"),
            (Precharge, Activate) if one_bank => (t.rp, "rp"),
            (Precharge | PrechargeAll, Refresh) | (PrechargeAll, Activate) => (t.rp, "rp"),
            (Refresh, _) => (t.rfc, "rfc"),
            (Read, Read) | (Write, Write) => ccd,
            (Read, Write) => return [((t.cl + t.dl + 2).saturating_sub(t.cwl), "turnaround"), ccd],
            (Write, Read) => {
                let wtr = pick(one_group, (t.wtr_l, "wtr_l"), (t.wtr_s, "wtr_s"));
                return [(t.cwl + t.dl + wtr.0, wtr.1), ccd];
            }
            _ => nothing,
        };
        [one, nothing]
    }

    /// Returns the rules that a new command breaks because of a past command.
    fn clash(&self, old: &Command, new: &Command) -> [Option<&'static str>; 4] {
        let (a, b) = if new.at < old.at { (new, old) } else { (old, new) };
        let broken =
            self.between(a, b).map(|(least, why)| (b.at - a.at < i64::from(least)).then_some(why));
        let all_banks = |c: &Command| matches!(c.what, PrechargeAll | Refresh);
        let shared = old.bank == new.bank || all_banks(old) || all_banks(new);
        let disorder = (shared && new.at < old.at).then_some("disorder");
        let bus = (self.rules.command_bus && a.at == b.at).then_some("command bus");
        [broken[0], broken[1], disorder, bus]
    }

    /// Returns the rule that five activations in too short a time break.
    fn five(&self, new: &Command) -> Option<&'static str> {
        let faw = i64::from(self.timings.faw);
        if !self.rules.faw || new.what != Activate {
            return None;
        }
        let near = |c: &&Command| c.what == Activate && (c.at - new.at).abs() < faw;
        let mut clocks: Vec<i64> =
            self.past.iter().filter(near).map(|c| c.at).chain([new.at]).collect();
        clocks.sort_unstable();
        clocks.windows(5).any(|five| five[4] - five[0] < faw).then_some("faw")
    }

    /// Returns the rule that a command breaks if the state of the banks does not allow it.
    fn senseless(&self, new: &Command) -> Option<&'static str> {
        let row = self.open[new.bank as usize];
        let sound = match new.what {
            Read | Write => row == Some(new.row),
            Activate => row.is_none(),
            Precharge => row.is_some(),
            PrechargeAll => self.open.iter().any(Option::is_some),
            Refresh => self.open.iter().all(Option::is_none),
        };
        (!sound).then_some("state")
    }

    /// Returns the first clock that the order of accesses allows for a command, and the reason.
    fn floor(&self, what: CommandKind) -> (i64, &'static str) {
        let (known, window) = ((self.from, "from"), (self.newest - WINDOW, "window"));
        match what {
            Precharge => known.max(window),
            Activate => known.max(window).max((self.activated, "order")),
            Read | Write => known.max(window).max((self.newest + 1, "order")),
            PrechargeAll | Refresh => (self.due(), "refi").max((self.newest + 1, "order")),
        }
    }

    /// Returns everything that is wrong with a new command.
    fn reasons(&self, new: Command) -> impl Iterator<Item = &'static str> {
        let floor = self.floor(new.what);
        let early = (new.at < floor.0).then_some(floor.1);
        let clashes = self.past.iter().rev().flat_map(move |old| self.clash(old, &new)).flatten();
        early
            .into_iter()
            .chain(self.senseless(&new))
            .chain(clashes)
            .chain(once_with(move || self.five(&new)).flatten())
    }

    /// Adds a command, or returns an error if the command is wrong or could have come earlier.
    fn accept(&mut self, new: Command) -> Result<(), String> {
        if let Some(why) = self.reasons(new).next() {
            return Err(format!("{new:?} breaks {why}"));
        }
        // an old command that forbids one clock mostly forbids the next clock, too
        let mut obstacle = None;
        for at in self.floor(new.what).0..new.at {
            let sooner = Command { at, ..new };
            let in_the_way = |old: &&Command| self.clash(old, &sooner).iter().any(Option::is_some);
            if obstacle.as_ref().is_some_and(in_the_way) {
                continue;
            }
            obstacle = self.past.iter().rev().find(in_the_way);
            if obstacle.is_none() && self.five(&sooner).is_none() {
                return Err(format!("{new:?} could have been at {at}"));
            }
        }
        self.past.push(new);
        let bank = new.bank as usize;
        match new.what {
            Activate => {
                (self.open[bank], self.activated, self.activations) =
                    (Some(new.row), new.at, self.activations + 1)
            }
            Precharge => self.open[bank] = None,
            PrechargeAll => self.open.fill(None),
            Refresh => {
                // of the refreshes that were due before the present access, only the last one is
                // shown
                let more = (self.from - self.due()) / i64::from(self.timings.refi);
                self.refreshes += more.max(1) as u64;
            }
            Read | Write => (self.newest, self.bursts) = (new.at, self.bursts + 1),
        }
        Ok(())
    }

    /// Begins the next access, which arrived at clock `from`.
    fn begin(&mut self, from: i64) {
        self.from = from;
        self.past.retain(|c| c.at >= self.newest - WINDOW - LONGEST);
    }

    /// Checks that one access has the right commands at the right clocks, and no other commands.
    fn follow(
        &mut self,
        access: DramAccess,
        from: i64,
        commands: &[Command],
    ) -> Result<(), String> {
        let column = if access.write { Write } else { Read };
        let mut expected = Vec::new();
        let mut row = self.open[access.bank as usize];
        self.begin(from);
        if self.rules.refresh && from.max(self.newest + i64::from(self.timings.ccd_s)) >= self.due()
        {
            let any = self.open.iter().any(Option::is_some);
            expected.extend(any.then_some((PrechargeAll, 0)));
            let more = from >= self.due() + i64::from(self.timings.refi);
            expected.extend([(Refresh, 0)].repeat(1 + usize::from(more)));
            row = None;
        }
        if row != Some(access.row) {
            expected.extend(row.map(|_| (Precharge, access.bank)));
            expected.push((Activate, access.bank));
        }
        expected.extend((0..access.bursts).map(|_| (column, access.bank)));
        if !commands.iter().map(|c| (c.what, c.bank)).eq(expected.iter().copied()) {
            return Err(format!("{expected:?} was expected, not {commands:?}"));
        }
        if let Some(c) = commands
            .iter()
            .find(|c| matches!(c.what, Activate | Read | Write) && c.row != access.row)
        {
            return Err(format!("{c:?} for row {}", access.row));
        }
        commands.iter().try_for_each(|c| self.accept(*c))
    }
}

/// The engine and its checker, side by side.
struct Pair {
    dram: Dram,
    checker: Checker,
}

impl Pair {
    fn new(device: &Device, timings: &Timings, rules: Rules) -> Pair {
        Pair {
            dram: Dram::new(device, timings, rules),
            checker: Checker::new(device, timings, rules),
        }
    }

    fn serve(&mut self, access: DramAccess, from: i64) -> Result<(), String> {
        let mut commands = Vec::new();
        let served = self.dram.serve(access, from, &mut |c| commands.push(c));
        let (dram, checker) = (&self.dram, &mut self.checker);
        checker.follow(access, from, &commands)?;
        let latency = if access.write { checker.timings.cwl } else { checker.timings.cl }
            + checker.timings.dl;
        let expected = Served { last: checker.newest, data: checker.newest + i64::from(latency) };
        let counts = [checker.refreshes, checker.activations, checker.bursts];
        let sound = served == expected && dram.newest() == expected.last;
        if !sound || [dram.refreshes, dram.activations, dram.bursts] != counts {
            return Err(format!(
                "{expected:?} and {counts:?} were expected, not {served:?} and {dram:?}"
            ));
        }
        Ok(())
    }
}

/// Kinds of streams. The numbers are: banks to draw from (0: one bank after the other), rows to
/// draw from, the largest number of bursts, writes in a million, and the longest gap between
/// arrivals in clocks. Streams with gaps also have long idle times, and accesses that take longer
/// than `WINDOW`.
const KINDS: &[(u64, u64, u64, u32, u64)] = &[
    (64, 1 << 14, 1, 0, 0),
    (64, 2, 1, 300_000, 0),
    (1, 3, 2, 100_000, 0),
    (2, 2, 4, 500_000, 0),
    (0, 1 << 14, 1, 0, 0),
    (0, 1 << 14, 4, 50_000, 0),
    (64, 4, 8, 200_000, 0),
    (64, 2, 8, 200_000, 60),
    (64, 1 << 14, 2, 400_000, 400),
    (4, 3, 1, 500_000, 2000),
];

/// Serves `count` accesses of every kind, one kind after the other.
fn stream(pair: &mut Pair, count: u64, rng: &mut Rng) -> Result<(), String> {
    let (device, refi) = (pair.checker.device, u64::from(pair.checker.timings.refi));
    let mut clock = 0;
    for kind in KINDS {
        let (banks, rows, most, writes, gap) = *kind;
        for turn in 0..count {
            let (mut from, mut bursts) = (0, 1 + rng.below(most));
            if gap > 0 {
                let rest = if rng.chance(10_000) { rng.below(5 * refi) } else { 0 };
                clock = (pair.dram.newest() - 300).max(clock + rng.below(gap) as i64) + rest as i64;
                from = clock;
                bursts = if rng.chance(1_000) { 300 + rng.below(1500) } else { bursts };
            }
            let bank = if banks == 0 { turn } else { rng.below(banks) } % u64::from(device.banks);
            let (row, write) = (rng.below(rows) as u32, rng.chance(writes));
            let access = DramAccess {
                row,
                bank: bank as u8,
                bursts: bursts as u16,
                write,
                dependent: false,
            };
            pair.serve(access, from)
                .map_err(|why| format!("{kind:?} {turn}, {access:?} from {from}: {why}"))?;
        }
    }
    Ok(())
}

pub fn rules(bits: u64) -> Rules {
    let on = |bit: u64| bits >> bit & 1 == 1;
    Rules { ras: on(0), rrd: on(1), faw: on(2), ccd_l: on(3), refresh: on(4), command_bus: on(5) }
}

/// Checks every preset with several sets of rules.
#[test]
fn presets_obey() {
    let mut rng = Rng::stream(Seed(1), "presets obey");
    for preset in PRESETS {
        // no rule, all rules, each rule alone, and some other sets
        let alone = (0..6).map(|bit| 1 << bit);
        let random: Vec<u64> = (0..8).map(|_| rng.below(64)).collect();
        for bits in [0, 63].into_iter().chain(alone).chain(random) {
            let mut pair = Pair::new(&preset.device, &preset.timings, rules(bits));
            let found = stream(&mut pair, 160, &mut rng);
            assert_eq!(found, Ok(()), "{} with {:?}", preset.name, rules(bits));
        }
    }
}

fn random_timings(rng: &mut Rng) -> Timings {
    let mut more = |least: u32, range: u64| least + rng.below(range) as u32;
    let [rcd, cl, cwl, rp, wr] = [(); 5].map(|()| more(1, 30));
    let [rtp, rrd_s, wtr_s] = [(); 3].map(|()| more(1, 16));
    let (dl, rfc) = (more(1, 8), more(1, 300));
    let ccd_s = more(dl, 4);
    let (ccd_l, ras, rrd_l, faw, wtr_l) =
        (more(ccd_s, 8), more(rcd, 40), more(rrd_s, 10), more(rrd_s, 90), more(wtr_s, 16));
    let (tck_ps, refi) = (1000, more(2 * (rfc + ras + rp + rcd), 2000));
    Timings {
        tck_ps,
        rcd,
        cl,
        rp,
        rtp,
        dl,
        ccd_s,
        ccd_l,
        ras,
        rrd_s,
        rrd_l,
        faw,
        cwl,
        wr,
        wtr_s,
        wtr_l,
        refi,
        rfc,
    }
}

/// Returns a random device that does not exist, its timings, and random rules.
pub fn random_device(rng: &mut Rng) -> (Device, Timings, Rules) {
    let (timings, rules) = (random_timings(rng), rules(rng.below(64)));
    let groups = 1 + rng.below(4) as u32;
    let device = Device { groups, banks: groups * (1 + rng.below(8) as u32), ..PRESETS[0].device };
    assert!(timings.check().is_ok() && device.check().is_ok(), "{timings:?}");
    (device, timings, rules)
}

/// Checks devices on which other constraints decide than on the presets.
#[test]
fn random_devices_obey() {
    let mut rng = Rng::stream(Seed(2), "random devices obey");
    for _ in 0..100 {
        let (device, timings, rules) = random_device(&mut rng);
        let found = stream(&mut Pair::new(&device, &timings, rules), 100, &mut rng);
        assert_eq!(found, Ok(()), "{device:?}, {timings:?}, {rules:?}");
    }
}

/// Without rules, `CAS[t] = max(CAS[t-1] + CCD, on a row miss: CAS_last(bank) + RTP + RP + RCD)`.
/// `WINDOW` has no effect here, because an activation that follows a precharge so long before the
/// newest read never delays the next read.
#[test]
fn recurrence() {
    let mut rng = Rng::stream(Seed(3), "recurrence");
    for preset in PRESETS {
        let t = preset.timings;
        let miss = i64::from(t.rtp + t.rp + t.rcd);
        for (banks, rows) in [(1, 2), (2, 2), (4, 1 << 14), (8, 3), (8, 1 << 14)] {
            let mut dram = Dram::new(&preset.device, &t, Rules::NONE);
            let mut last: Option<i64> = None;
            let mut used = [None; 8];
            for _ in 0..3000 {
                let (bank, row) = (rng.below(banks) as u8, rng.below(rows) as u32);
                let ready = match used[bank as usize] {
                    None => i64::from(t.rcd),
                    Some((open, _)) if open == row => 0,
                    Some((_, cas)) => cas + miss,
                };
                let cas = last.map_or(ready, |newest| ready.max(newest + i64::from(t.ccd_s)));
                let read = DramAccess { row, bank, bursts: 1, write: false, dependent: false };
                assert_eq!(dram.serve(read, 0, &mut |_| {}).last, cas, "{}: {read:?}", preset.name);
                (last, used[bank as usize]) = (Some(cas), Some((row, cas)));
            }
        }
    }
}
