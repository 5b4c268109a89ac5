//! Tests in which one constraint alone decides a command, worked out by hand.

use super::Pair;
use CommandKind::{Activate, Precharge, PrechargeAll, Read, Refresh, Write};
use flashatlas_dram::{Command, CommandKind, Device, PRESETS, Rules, Timings};
use flashatlas_types::DramAccess;
use std::collections::BTreeSet;

/// Timings that all differ, so that a test shows which timing was applied. DL 4, CCD_S 4 and CWL 9
/// come from `table-1`. Banks 0 and 4 are in one group.
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

/// Clock of arrival, bank, row, number of bursts, and `true` for a write.
type Step = (i64, u8, u32, u16, bool);

fn read(bank: u8, row: u32) -> Step {
    (0, bank, row, 1, false)
}

fn write(bank: u8, row: u32) -> Step {
    (0, bank, row, 1, true)
}

/// Checks that rule `why` alone decides the clock of the last command of kind `what` in the last
/// step, and that this clock is `clock`. The checker accepts the command at this clock and refuses
/// it one clock earlier and one clock later.
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
    // tRAS allows the precharge at 0 + 30, which is later than 16
    decides(T, "ras", &miss, Precharge, 30, "ras");
    // the write is at 10 and its data ends at 10 + 9 + 4 = 23; the precharge comes at 23 + 13
    decides(T, "none", &[write(0, 1), read(0, 2)], Precharge, 36, "wr");
}

#[test]
fn columns() {
    let (other, group) = ([read(0, 1), read(1, 1)], [read(0, 1), read(4, 1)]);
    // the first read is at 10, the second at 10 + 4, or at 10 + 7 in the same group; the third
    // burst of one bank is at 10 + 2 x 7 or 10 + 2 x 4
    decides(T, "none", &other, Read, 14, "ccd_s");
    decides(T, "none", &group, Read, 14, "ccd_s");
    decides(T, "ccd_l", &other, Read, 14, "ccd_s");
    decides(T, "ccd_l", &group, Read, 17, "ccd_l");
    decides(T, "ccd_l", &[write(0, 1), write(4, 1)], Write, 17, "ccd_l");
    decides(T, "ccd_l", &[(0, 0, 1, 3, false)], Read, 24, "ccd_l");
    decides(T, "none", &[(0, 0, 1, 3, false)], Read, 18, "ccd_s");
    // the write may come at 10 + 12 + 4 + 2 - 9 = 19; with CL 5 that would be 10 + 2, so CCD
    // decides, and the write comes at 10 + 4 or 10 + 7
    decides(T, "none", &[read(0, 1), write(1, 1)], Write, 19, "turnaround");
    decides(Timings { cl: 5, ..T }, "none", &[read(0, 1), write(1, 1)], Write, 14, "ccd_s");
    decides(Timings { cl: 5, ..T }, "ccd_l", &[read(0, 1), write(4, 1)], Write, 17, "ccd_l");
    // the data of the write ends at 10 + 9 + 4 = 23; the read comes at 23 + 3 or 23 + 8
    decides(T, "none", &[write(0, 1), read(1, 1)], Read, 26, "wtr_s");
    decides(T, "none", &[write(0, 1), read(4, 1)], Read, 31, "wtr_l");
    // the writes are at 10 (bank 0) and 14 (bank 1); the older write decides, because 23 + 8 is
    // later than 27 + 3
    decides(T, "none", &[write(0, 1), write(1, 1), read(4, 1)], Read, 31, "wtr_l");
}

#[test]
fn activations() {
    let five = [0, 1, 2, 3, 5].map(|bank| read(bank, 1));
    decides(T, "none", &[read(0, 1), read(1, 1)], Activate, 0, "order");
    decides(T, "rrd", &[read(0, 1), read(1, 1)], Activate, 5, "rrd_s");
    decides(T, "rrd", &[read(0, 1), read(4, 1)], Activate, 8, "rrd_l");
    // activations of banks 0 and 1 are at 0 and 5; bank 4 waits for bank 0 and not for bank 1,
    // because 0 + 12 is later than 5 + 5
    decides(
        Timings { rrd_l: 12, ..T },
        "rrd",
        &[read(0, 1), read(1, 1), read(4, 1)],
        Activate,
        12,
        "rrd_l",
    );
    // four activations are at 0 and the fifth at 40; the fifth is also at 40 if the others are at
    // 0, 5, 10 and 15
    decides(T, "faw", &five[..4], Activate, 0, "order");
    decides(T, "faw", &five, Activate, 40, "faw");
    decides(T, "rrd,faw", &five, Activate, 40, "faw");
    decides(T, "rrd", &five[..4], Activate, 15, "rrd_s");
    // the second row of bank 0 is activated at 27 (see `banks`), and no later activation comes
    // earlier
    decides(T, "none", &[read(0, 1), read(0, 2), read(1, 1)], Activate, 27, "order");
    // the reads are at 10 and from 14 to 14 + 4 x 599 = 2410; the precharge comes at 2410 - 1024
    decides(T, "none", &[read(0, 1), (0, 1, 1, 600, false), read(0, 2)], Precharge, 1386, "window");
    decides(T, "none", &[read(0, 1), (50, 0, 2, 1, false)], Precharge, 50, "from");
}

#[test]
fn command_bus() {
    // the activations are at 0 and 1 and the reads at 10, 16 and 22; bank 0 could be precharged at
    // 10 + 6 = 16, but that clock is taken
    let slow = Timings { ccd_s: 6, ..T };
    let steps = [read(0, 1), read(1, 1), read(2, 1), read(0, 2)];
    decides(slow, "command_bus", &steps[..2], Activate, 1, "command bus");
    decides(slow, "command_bus", &steps, Precharge, 17, "command bus");
    decides(slow, "none", &steps, Precharge, 16, "rtp");
}

#[test]
fn refresh() {
    let late = |write| (995, 0, 1, 1, write);
    // the refresh is due at 1000 and no row is open, so the activation comes at 1000 + 100
    decides(T, "refresh", &[(1000, 0, 1, 1, false)], Refresh, 1000, "refi");
    decides(T, "refresh", &[(1000, 0, 1, 1, false)], Activate, 1100, "rfc");
    decides(T, "refresh", &[(999, 0, 1, 1, false)], Activate, 999, "from");
    // with an open row, the precharge is at 1000, the refresh at 1000 + 11 and the activation, even
    // of another bank, at 1011 + 100
    let open = [read(0, 1), (1000, 1, 1, 1, false)];
    decides(T, "refresh", &open, PrechargeAll, 1000, "refi");
    decides(T, "refresh", &open, Refresh, 1011, "rp");
    decides(T, "refresh", &open, Activate, 1111, "rfc");
    // the activation is at 995 and the read or write at 1005, so the next slot is past 1000; the
    // precharge of all banks comes at 1005 + 6, 1005 + 9 + 4 + 13 or 995 + 30
    decides(T, "refresh", &[late(false), read(0, 1)], PrechargeAll, 1011, "rtp");
    decides(T, "refresh", &[late(true), read(0, 1)], PrechargeAll, 1031, "wr");
    decides(T, "ras,refresh", &[late(false), read(0, 1)], PrechargeAll, 1025, "ras");
    // after a read at 996 the next slot is at 1000, where the refresh is due; after a read at 995
    // it is at 999
    decides(T, "refresh", &[(986, 0, 1, 1, false), read(1, 1)], PrechargeAll, 1002, "rtp");
    decides(T, "refresh", &[(985, 0, 1, 1, false), read(1, 1)], Read, 999, "ccd_s");
    // the device is idle past 5000; the first refresh closes the rows, and the fifth is shown as
    // well
    let rest = [read(0, 1), (5050, 0, 1, 1, false)];
    decides(T, "refresh", &rest, PrechargeAll, 1000, "refi");
    decides(T, "refresh", &rest, Refresh, 5000, "refi");
    decides(T, "refresh", &rest, Activate, 5100, "rfc");
}
