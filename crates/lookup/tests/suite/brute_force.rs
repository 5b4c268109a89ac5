//! A checker of the DRAM engine that shares no thought with it: it keeps the commands of the past
//! in a plain list, holds each new one against all of them, whether they lie before it or after it
//! in time, and tries every earlier clock. Its rules, which are the specification:
//!
//! 1. Commands to one bank keep the order in which they were decided, and are as far apart as
//!    [`Checker::between`] says.
//! 2. A refresh is due every tREFI. It goes before an access that is known, or whose data bus slot
//!    would come, at that time or later, and after the newest read or write, with all rows closed.
//!    Others that are due when the access is known follow it, of which the last is shown and the
//!    rest are counted.
//! 3. A read or a write comes after all others, an activation not before another. Nothing comes
//!    before its access is known, nor more than `WINDOW` clocks before the newest read or write.
//! 4. Every command has the first clock that all this leaves.

use CommandKind::{Activate, Precharge, PrechargeAll, Read, Refresh, Write};
use flashatlas_dram::engine::WINDOW;
use flashatlas_dram::{Command, CommandKind, Device, Dram, PRESETS, Rules, Served, Timings};
use flashatlas_types::{DramAccess, Rng, Seed};
use std::collections::BTreeSet;
use std::iter::once_with;

/// No constraint of these tests reaches further.
const LONGEST: i64 = 600;

struct Checker {
    device: Device,
    timings: Timings,
    rules: Rules,
    /// In the order of decisions; those that are too old to matter are dropped.
    past: Vec<Command>,
    open: Vec<Option<u32>>,
    /// Since when the present access is known.
    from: i64,
    /// Newest read or write, newest activation.
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

    /// How far `b` must be behind `a`, and why; `a` comes first in time.
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

    /// What a command of the past has against a new one.
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

    /// Five activations in too short a time.
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

    /// A command that the state of the banks does not allow.
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

    /// The first clock that the order of service leaves for a command, and why.
    fn floor(&self, what: CommandKind) -> (i64, &'static str) {
        let (known, window) = ((self.from, "from"), (self.newest - WINDOW, "window"));
        match what {
            Precharge => known.max(window),
            Activate => known.max(window).max((self.activated, "order")),
            Read | Write => known.max(window).max((self.newest + 1, "order")),
            PrechargeAll | Refresh => (self.due(), "refi").max((self.newest + 1, "order")),
        }
    }

    /// Everything that is wrong with a new command.
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

    /// Take a command, unless it is wrong or could have been earlier.
    fn accept(&mut self, new: Command) -> Result<(), String> {
        if let Some(why) = self.reasons(new).next() {
            return Err(format!("{new:?} breaks {why}"));
        }
        // what is in the way at one clock mostly is at the next
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
                // those that the present access finds past, with another behind them, pass unseen
                let more = (self.from - self.due()) / i64::from(self.timings.refi);
                self.refreshes += more.max(1) as u64;
            }
            Read | Write => (self.newest, self.bursts) = (new.at, self.bursts + 1),
        }
        Ok(())
    }

    /// An access that is known since `from` is next.
    fn begin(&mut self, from: i64) {
        self.from = from;
        self.past.retain(|c| c.at >= self.newest - WINDOW - LONGEST);
    }

    /// The commands of one access: the right ones, each at its clock, and no others.
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

/// Kinds of streams: how many banks (0: one after the other), rows and bursts are drawn from, how
/// many of a million are writes, and the longest gap between arrivals. With gaps there are long
/// rests, too, and accesses that are longer than the window.
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

/// `count` accesses of every kind, one kind after the other.
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

fn rules(bits: u64) -> Rules {
    let on = |bit: u64| bits >> bit & 1 == 1;
    Rules { ras: on(0), rrd: on(1), faw: on(2), ccd_l: on(3), refresh: on(4), command_bus: on(5) }
}

/// Each device with each set of rules.
#[test]
fn presets_obey() {
    let mut rng = Rng::stream(Seed(1), "presets obey");
    for preset in PRESETS {
        // none, all, each alone, and some others
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

/// Devices that do not exist, where other constraints bind.
#[test]
fn random_devices_obey() {
    let mut rng = Rng::stream(Seed(2), "random devices obey");
    for _ in 0..100 {
        let (timings, rules) = (random_timings(&mut rng), rules(rng.below(64)));
        let groups = 1 + rng.below(4) as u32;
        let device =
            Device { groups, banks: groups * (1 + rng.below(8) as u32), ..PRESETS[0].device };
        assert!(timings.check().is_ok() && device.check().is_ok(), "{timings:?}");
        let found = stream(&mut Pair::new(&device, &timings, rules), 100, &mut rng);
        assert_eq!(found, Ok(()), "{device:?}, {timings:?}, {rules:?}");
    }
}

/// Without rules: `CAS[t] = max(CAS[t-1] + CCD, on a row miss: CAS_last(bank) + RTP + RP + RCD)`.
/// `WINDOW` cannot show: a precharge so long before the newest read ends long before the next one.
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

/// Timings that cannot be taken for one another; DL 4, CCD_S 4 and CWL 9 are `table-1`'s. Banks 0
/// and 4 are in one group.
const T: Timings = Timings { rcd: 10, cl: 12, rp: 11, rtp: 6, wr: 13, wtr_s: 3, wtr_l: 8, ..ROWS };
const ROWS: Timings = Timings {
    ccd_l: 7,
    ras: 30,
    rrd_s: 5,
    rrd_l: 8,
    faw: 40,
    refi: 1000,
    rfc: 100,
    ..PRESETS[0].timings
};
const DEVICE: Device =
    Device { groups: 4, banks: 8, rows: 1 << 15, columns: 1024, bus_bits: 8, burst_length: 8 };

/// From, bank, row, bursts, whether it writes.
type Step = (i64, u8, u32, u16, bool);

fn read(bank: u8, row: u32) -> Step {
    (0, bank, row, 1, false)
}

fn write(bank: u8, row: u32) -> Step {
    (0, bank, row, 1, true)
}

/// The last `what` of the last step is decided by `why` alone, and comes at `clock`: at that clock
/// the checker takes it, one before and one after it does not.
fn decides(t: Timings, rules: &str, steps: &[Step], what: CommandKind, clock: i64, why: &str) {
    assert_eq!(t.check(), Ok(()));
    let mut pair = Pair::new(&DEVICE, &t, Rules::parse(rules).unwrap());
    let access =
        |s: &Step| DramAccess { row: s.2, bank: s.1, bursts: s.3, write: s.4, dependent: false };
    let (end, before) = steps.split_last().unwrap();
    for step in before {
        assert_eq!(pair.serve(access(step), step.0), Ok(()), "{why}: {step:?}");
    }
    let mut commands = Vec::new();
    pair.dram.serve(access(end), end.0, &mut |c| commands.push(c));
    let place = commands.iter().rposition(|c| c.what == what).unwrap();
    assert_eq!(commands[place].at, clock, "{why}: {commands:?}");
    let mut checker = pair.checker;
    checker.begin(end.0);
    for command in &commands[..place] {
        assert_eq!(checker.accept(*command), Ok(()), "{why}");
    }
    let at = |at: i64| Command { at, ..commands[place] };
    assert_eq!(
        checker.reasons(at(clock - 1)).collect::<BTreeSet<_>>(),
        BTreeSet::from([why]),
        "{steps:?}"
    );
    assert!(checker.accept(at(clock - 1)).is_err(), "{why}");
    assert!(checker.accept(at(clock + 1)).is_err(), "{why}");
    assert_eq!(checker.accept(at(clock)), Ok(()), "{why}");
}

#[test]
fn banks() {
    let (hit, miss) = ([read(0, 1)], [read(0, 1), read(0, 2)]);
    // activation 0, read 10, precharge 10 + 6, activation 16 + 11, read 27 + 10
    decides(T, "none", &hit, Read, 10, "rcd");
    decides(T, "none", &miss, Precharge, 16, "rtp");
    decides(T, "none", &miss, Activate, 27, "rp");
    decides(T, "none", &miss, Read, 37, "rcd");
    // 0 + 30, later than 16
    decides(T, "ras", &miss, Precharge, 30, "ras");
    // write 10, its data end at 10 + 9 + 4 = 23; 23 + 13
    decides(T, "none", &[write(0, 1), read(0, 2)], Precharge, 36, "wr");
}

#[test]
fn columns() {
    let (other, group) = ([read(0, 1), read(1, 1)], [read(0, 1), read(4, 1)]);
    // reads 10 and 10 + 4, of one group 10 + 7, the third burst of one bank 10 + 2 x 7 or 10 + 2 x
    // 4
    decides(T, "none", &other, Read, 14, "ccd_s");
    decides(T, "none", &group, Read, 14, "ccd_s");
    decides(T, "ccd_l", &other, Read, 14, "ccd_s");
    decides(T, "ccd_l", &group, Read, 17, "ccd_l");
    decides(T, "ccd_l", &[write(0, 1), write(4, 1)], Write, 17, "ccd_l");
    decides(T, "ccd_l", &[(0, 0, 1, 3, false)], Read, 24, "ccd_l");
    decides(T, "none", &[(0, 0, 1, 3, false)], Read, 18, "ccd_s");
    // 10 + 12 + 4 + 2 - 9; with CL 5 that is 10 + 2, and CCD decides: 10 + 4, 10 + 7
    decides(T, "none", &[read(0, 1), write(1, 1)], Write, 19, "turnaround");
    decides(Timings { cl: 5, ..T }, "none", &[read(0, 1), write(1, 1)], Write, 14, "ccd_s");
    decides(Timings { cl: 5, ..T }, "ccd_l", &[read(0, 1), write(4, 1)], Write, 17, "ccd_l");
    // data of the write end at 10 + 9 + 4 = 23; 23 + 3, 23 + 8
    decides(T, "none", &[write(0, 1), read(1, 1)], Read, 26, "wtr_s");
    decides(T, "none", &[write(0, 1), read(4, 1)], Read, 31, "wtr_l");
    // writes 10 (bank 0) and 14 (bank 1): the older one decides, 23 + 8 against 27 + 3
    decides(T, "none", &[write(0, 1), write(1, 1), read(4, 1)], Read, 31, "wtr_l");
}

#[test]
fn activations() {
    let five = [0, 1, 2, 3, 5].map(|bank| read(bank, 1));
    decides(T, "none", &[read(0, 1), read(1, 1)], Activate, 0, "order");
    decides(T, "rrd", &[read(0, 1), read(1, 1)], Activate, 5, "rrd_s");
    decides(T, "rrd", &[read(0, 1), read(4, 1)], Activate, 8, "rrd_l");
    // 0, 5, and bank 4 waits for bank 0, not 1; with 5 + 5 against 0 + 12
    decides(
        Timings { rrd_l: 12, ..T },
        "rrd",
        &[read(0, 1), read(1, 1), read(4, 1)],
        Activate,
        12,
        "rrd_l",
    );
    // four at 0, the fifth 40 later; the same if they are at 0, 5, 10 and 15
    decides(T, "faw", &five[..4], Activate, 0, "order");
    decides(T, "faw", &five, Activate, 40, "faw");
    decides(T, "rrd,faw", &five, Activate, 40, "faw");
    decides(T, "rrd", &five[..4], Activate, 15, "rrd_s");
    // the second row of bank 0 at 27 (see `banks`): the next activation is not before it
    decides(T, "none", &[read(0, 1), read(0, 2), read(1, 1)], Activate, 27, "order");
    // reads 10, and 14 to 14 + 4 x 599 = 2410; 2410 - 1024
    decides(T, "none", &[read(0, 1), (0, 1, 1, 600, false), read(0, 2)], Precharge, 1386, "window");
    decides(T, "none", &[read(0, 1), (50, 0, 2, 1, false)], Precharge, 50, "from");
}

#[test]
fn command_bus() {
    // activations 0 and 1; reads 10, 16 and 22, so that clock 16 = 10 + 6 is taken when bank 0
    // could be precharged
    let slow = Timings { ccd_s: 6, ..T };
    let steps = [read(0, 1), read(1, 1), read(2, 1), read(0, 2)];
    decides(slow, "command_bus", &steps[..2], Activate, 1, "command bus");
    decides(slow, "command_bus", &steps, Precharge, 17, "command bus");
    decides(slow, "none", &steps, Precharge, 16, "rtp");
}

#[test]
fn refresh() {
    let late = |write| (995, 0, 1, 1, write);
    // due at 1000, no row is open; 1000 + 100
    decides(T, "refresh", &[(1000, 0, 1, 1, false)], Refresh, 1000, "refi");
    decides(T, "refresh", &[(1000, 0, 1, 1, false)], Activate, 1100, "rfc");
    decides(T, "refresh", &[(999, 0, 1, 1, false)], Activate, 999, "from");
    // with an open row: precharge 1000, refresh 1000 + 11, activation 1011 + 100, even of another
    // bank
    let open = [read(0, 1), (1000, 1, 1, 1, false)];
    decides(T, "refresh", &open, PrechargeAll, 1000, "refi");
    decides(T, "refresh", &open, Refresh, 1011, "rp");
    decides(T, "refresh", &open, Activate, 1111, "rfc");
    // activation 995, read or write 1005, so that the next slot is past 1000: 1005 + 6, 1005 + 9 +
    // 4 + 13, 995 + 30
    decides(T, "refresh", &[late(false), read(0, 1)], PrechargeAll, 1011, "rtp");
    decides(T, "refresh", &[late(true), read(0, 1)], PrechargeAll, 1031, "wr");
    decides(T, "ras,refresh", &[late(false), read(0, 1)], PrechargeAll, 1025, "ras");
    // a read at 996 has its next slot at 1000, one at 995 has not
    decides(T, "refresh", &[(986, 0, 1, 1, false), read(1, 1)], PrechargeAll, 1002, "rtp");
    decides(T, "refresh", &[(985, 0, 1, 1, false), read(1, 1)], Read, 999, "ccd_s");
    // a rest past 5000: the first closes the rows, the fifth is shown as well
    let rest = [read(0, 1), (5050, 0, 1, 1, false)];
    decides(T, "refresh", &rest, PrechargeAll, 1000, "refi");
    decides(T, "refresh", &rest, Refresh, 5000, "refi");
    decides(T, "refresh", &rest, Activate, 5100, "rfc");
}
