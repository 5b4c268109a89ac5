//! Status, independent reads of planes, and the limits of suspension that data sheets state,
//! computed by hand. Times come from `common::times`: tR 1000 (middle pages 1300), tPROG 5000,
//! tBERS 20000, and 1 a byte on the channel.

use crate::common::{BLOCKS, board, expect, expect_small, times_with};
use flashatlas_timing::{PARAMS, PlaneReads, Suspend, Times};
use flashatlas_types::{AllocationOrder, Dur, Geometry, Layout, RawConfig, Span};

/// Returns one die with `planes` planes. Block `8 p + b` of the die is block `b` of plane `p`.
fn planes(planes: u32) -> Layout {
    let geometry = Geometry { channels: 1, ways: 1, planes, ..board(1, 1).geometry };
    let order = AllocationOrder::parse("WDPC").unwrap();
    let layout = Layout::new(geometry, Span::ONE, 4096, order, 1).unwrap();
    assert_eq!(layout.blocks(), planes * BLOCKS);
    layout
}

fn independent(limits: PlaneReads) -> Times {
    times_with(|t| t.plane_reads = Some(limits))
}

const ALL: PlaneReads = PlaneReads { max: 0, same_kind: false };

#[test]
fn a_status_takes_the_channel_when_the_cells_have_finished() {
    let times = times_with(|t| t.status = Dur(10));
    // a: data 100, cells 5000, status 10. b, on the other die of the channel: data from 100 to 200,
    // cells to 5200, status to 5210. c: cells 1000, status 10 and data 30 together.
    let script = "at 0
        a = program 0.1.0 x100
        b = program 1.1.0 x100
        c = read 2.0.0 x30";
    expect_small(times.clone(), script, &[("a", 5_110), ("b", 5_210), ("c", 1_040)]);
    // the status of a waits for the data of b, and the die does nothing meanwhile, so d is read
    // later. a: cells end at 5100; b has the channel from 5050 to 5350; status to 5360; d: cells to
    // 6360, status and data to 6390
    let script = "at 0
        a = program 0.1.0 x100
        at 5050
        b = program 1.1.0 x300
        d = read 0.2.0 x20";
    let done = [("a", 5_360), ("b", 10_360), ("d", 6_390)];
    let mut player = expect_small(times.clone(), script, &done);
    // data 100 and 300, two statuses of 10 of programs, and 10 + 20 of the read
    assert_eq!(player.statistics().channel_busy[0], Dur(450));
    // an erase: cells 20000, status 10; its command takes no time on the channel
    expect_small(times, "at 0\n e = erase 0.1", &[("e", 20_010)]);
}

#[test]
fn reads_of_different_planes_sense_at_once_and_share_the_bus() {
    let script = "at 0
        a = read 0.0.0 x400
        b = read 0.8.0 x400
        c = read 0.16.0 middle x400";
    // together: 1400 for each read, one after another; the last read is of a middle page
    let one =
        expect(&planes(4), times_with(|_| {}), script, &[("a", 1_400), ("b", 2_800), ("c", 4_500)]);
    drop(one);
    // independent: all sense from 0; the bus carries a from 1000, b from 1400, and c from 1800
    let done = [("a", 1_400), ("b", 1_800), ("c", 2_200)];
    expect(&planes(4), independent(ALL), script, &done);
    // with a command of 50 before each read: the cells of a from 50, of b from 100, of c from 150;
    // a's data is out at 1450, b's at 1850, and c's at 2250
    let commands = Times { command: Dur(50), ..independent(ALL) };
    expect(&planes(4), commands, script, &[("a", 1_450), ("b", 1_850), ("c", 2_250)]);
}

#[test]
fn a_plane_reads_one_page_at_a_time_and_nothing_is_passed() {
    // b is on the plane of a, and waits for its data; c is on another plane, but behind b
    let script = "at 0
        a = read 0.0.0 x400
        b = read 0.1.0 x400
        c = read 0.8.0 x400";
    let done = [("a", 1_400), ("b", 2_800), ("c", 3_200)];
    expect(&planes(2), independent(ALL), script, &done);
}

#[test]
fn programs_and_erases_use_the_whole_die() {
    // p waits until both reads have left the die, and c waits for p
    let script = "at 0
        a = read 0.0.0 x400
        b = read 0.8.0 x400
        p = program 0.1.0 x100 host_read
        c = read 0.9.0 x400";
    // reads until 1800; data 100, cells 5000; then c
    let done = [("a", 1_400), ("b", 1_800), ("p", 6_900), ("c", 8_300)];
    expect(&planes(2), independent(ALL), script, &done);
}

#[test]
fn a_number_and_a_kind_limit_reads_at_once() {
    let script = "at 0
        a = read 0.0.0 x400
        b = read 0.8.0 middle x400
        c = read 0.16.0 middle x400";
    // at most two: c begins when a has left, at 1400; b's data is out from 1400 to 1800; c senses
    // until 2700
    let two = independent(PlaneReads { max: 2, same_kind: false });
    expect(&planes(4), two, script, &[("a", 1_400), ("b", 1_800), ("c", 3_100)]);
    // the same kind: b waits for a; c joins b at 1400; both sense until 2700
    let same = independent(PlaneReads { max: 0, same_kind: true });
    expect(&planes(4), same, script, &[("a", 1_400), ("b", 3_100), ("c", 3_500)]);
}

fn suspend(change: impl FnOnce(&mut Suspend)) -> Times {
    let mut suspend = Suspend { program: true, erase: true, max: 9, ..Suspend::default() };
    suspend.latency = Dur(100);
    change(&mut suspend);
    times_with(|t| t.suspend = suspend)
}

const TWO_READS: &str = "at 0
        e = erase 0.1
        at 1000
        a = read 0.2.0 x100
        at 2400
        b = read 0.3.0 x100";

#[test]
fn the_next_suspension_waits_for_a_time_after_the_resume() {
    // without a gap: a suspends e at 1000 and reads from 1100 to 2200; e resumes with 19000 left; b
    // suspends e at 2400 (18800 left) and reads from 2500 to 3600; e ends at 22400
    let done = [("a", 2_200), ("b", 3_600), ("e", 22_400)];
    expect_small(suspend(|_| {}), TWO_READS, &done);
    // with a gap of 1000 after the resume at 2200, b suspends e at 3200 (18000 left) and reads from
    // 3300 to 4400
    let done = [("a", 2_200), ("b", 4_400), ("e", 22_400)];
    expect_small(suspend(|s| s.gap = Dur(1_000)), TWO_READS, &done);
    // a gap beyond the end of the erase: b waits until 21200
    let done = [("a", 2_200), ("e", 21_200), ("b", 22_300)];
    expect_small(suspend(|s| s.gap = Dur(30_000)), TWO_READS, &done);
}

#[test]
fn erases_and_programs_have_limits_of_their_own() {
    // one suspension of an erase: b waits for the end of e
    let done = [("a", 2_200), ("e", 21_200), ("b", 22_300)];
    expect_small(suspend(|s| s.erase_max = 1), TWO_READS, &done);
    // the limit for erases does not hold for programs: p has 4800 of its cells left at 300, and is
    // suspended at 300 and at 2000
    let programs = "at 0
        p = program 0.1.0 x100
        at 300
        a = read 0.2.0 x100
        at 2000
        b = read 0.3.0 x100";
    // a reads from 400 to 1500; p resumes with 4800 left; b suspends p at 2000 (4300 left) and
    // reads from 2100 to 3200; p ends at 7500
    let done = [("a", 1_500), ("b", 3_200), ("p", 7_500)];
    expect_small(suspend(|s| s.erase_max = 1), programs, &done);
}

#[test]
fn limits_without_what_they_limit_are_refused_by_name() {
    let load = |settings: &[(&str, &str)]| {
        let mut raw = RawConfig::default();
        let needed = [
            ("timing.t_read", "50us"),
            ("timing.t_program", "600us"),
            ("timing.t_erase", "3ms"),
            ("timing.channel_rate", "800MB"),
        ];
        for (key, value) in needed.iter().chain(settings) {
            raw.set(key, value, "test");
        }
        let params = raw.resolve(&PARAMS.iter().collect::<Vec<_>>(), |_| None).unwrap();
        Times::from_params(&params)
    };
    let key = |settings: &[(&str, &str)]| load(settings).unwrap_err().key;
    assert_eq!(key(&[("timing.plane_reads_max", "2")]), "timing.plane_reads_max");
    assert_eq!(key(&[("timing.plane_reads_kinds", "same")]), "timing.plane_reads_kinds");
    let independent = ("timing.plane_reads", "independent");
    assert_eq!(key(&[independent, ("timing.cache_read", "true")]), "timing.plane_reads");
    let times = load(&[independent, ("timing.plane_reads_max", "2")]).unwrap();
    assert_eq!(times.plane_reads, Some(PlaneReads { max: 2, same_kind: false }));
    assert_eq!(load(&[]).unwrap().plane_reads, None);
}
