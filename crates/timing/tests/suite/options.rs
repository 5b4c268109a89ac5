//! Tests of the optional rules: cache read, cache program and suspension. Each test checks that an
//! operation is complete at its time, and not complete one picosecond earlier.
//!
//! The comments of each test work out the expected times by hand, in picoseconds. A byte takes 1 ps
//! on a channel (see `common`).

use crate::common::{Player, board, expect, expect_small, times, times_with};
use flashatlas_timing::{Suspend, Times};
use flashatlas_types::Dur;

// ---- cache read

fn cache_read() -> Times {
    times_with(|t| t.cache_read = true)
}

const THREE_READS: &str = "a = read 0.0.0 x100\nb = read 0.0.1 x100\nc = read 0.0.2 x100";
const THREE_LONG_READS: &str = "a = read 0.0.0 x1500\nb = read 0.0.1 x1500\nc = read 0.0.2 x1500";

#[test]
fn without_cache_read_a_page_leaves_before_the_next_is_sensed() {
    expect_small(times(), THREE_READS, &[("a", 1_100), ("b", 2_200), ("c", 3_300)]);
    expect_small(times(), THREE_LONG_READS, &[("a", 2_500), ("b", 5_000), ("c", 7_500)]);
}

#[test]
fn cache_read_senses_while_the_last_page_leaves() {
    // the pages are sensed at 1000, 2000 and 3000, and each page goes out immediately
    expect_small(cache_read(), THREE_READS, &[("a", 1_100), ("b", 2_100), ("c", 3_100)]);
}

#[test]
fn a_sensed_page_waits_until_the_cache_register_is_free() {
    // a is sensed at 1000 and out at 1000-2500. b is sensed at 2000, moves to the register at 2500,
    // and is out at 2500-4000. c is sensed at 2500-3500 and out at 4000-5500
    expect_small(cache_read(), THREE_LONG_READS, &[("a", 2_500), ("b", 4_000), ("c", 5_500)]);
}

#[test]
fn only_one_page_is_sensed_ahead() {
    // d is sensed at 4000-5700, after c moves to the register at 4000, and is out at 5700-5800 (if
    // it were sensed earlier, it would be out at 5500-5600)
    let script = "
        a = read 0.0.0 x1500
        b = read 0.0.1 x1500
        c = read 0.0.2 x1500
        d = read 0.0.3 upper x100";
    expect_small(cache_read(), script, &[("c", 5_500), ("d", 5_800)]);
}

#[test]
fn a_program_or_an_erase_waits_until_the_cache_register_is_free() {
    // a is out at 1000-2500; then b is in at 2500-2600 and takes tPROG; an erase takes tBERS
    expect_small(
        cache_read(),
        "a = read 0.0.0 x1500\nb = program 0.1.0 x100",
        &[("a", 2_500), ("b", 7_600)],
    );
    expect_small(
        cache_read(),
        "a = read 0.0.0 x1500\nb = erase 0.1",
        &[("a", 2_500), ("b", 22_500)],
    );
}

#[test]
fn a_read_behind_a_program_does_not_pass_it_for_the_cache_register() {
    // b goes before c by class; b waits for the register and c waits for b, so b takes 2500-7600,
    // and c is out at 8600-8700
    let script = "a = read 0.0.0 x1500\nb = program 0.1.0 x100\nc = read 0.2.0 x100 gc";
    expect_small(cache_read(), script, &[("a", 2_500), ("b", 7_600), ("c", 8_700)]);
}

#[test]
fn cache_read_overlaps_with_command_cycles_too() {
    // a has its command at 0-30 and is sensed at 1030. The command of b, at 1030-1060, comes before
    // the data of a, because the die would be idle otherwise. a is out at 1060-1160; b is sensed at
    // 2060 and out at 2060-2160
    let t = times_with(|t| (t.cache_read, t.command) = (true, Dur(30)));
    expect_small(t, "a = read 0.0.0 x100\nb = read 0.0.1 x100", &[("a", 1_160), ("b", 2_160)]);
}

#[test]
fn cache_read_overlaps_with_command_cycles_when_pages_wait_for_the_register() {
    // a has its command at 0-30, is sensed at 1030, and is out at 1060-2560, after the command of
    // b. b is sensed at 2060 and moves to the register at 2560. The command of c takes 2560-2590, b
    // is out at 2590-4090, and c is sensed at 3590 and out at 4090-5590
    let t = times_with(|t| (t.cache_read, t.command) = (true, Dur(30)));
    expect_small(t, THREE_LONG_READS, &[("a", 2_560), ("b", 4_090), ("c", 5_590)]);
}

// ---- cache program

fn cache_program() -> Times {
    times_with(|t| t.cache_program = true)
}

const THREE_PROGRAMS: &str =
    "a = program 0.0.0 x100\nb = program 0.0.1 x100\nc = program 0.0.2 x100";
const THREE_LONG_PROGRAMS: &str =
    "a = program 0.0.0 x7000\nb = program 0.0.1 x7000\nc = program 0.0.2 x7000";

#[test]
fn without_cache_program_a_page_is_programmed_before_the_next_comes() {
    expect_small(times(), THREE_PROGRAMS, &[("a", 5_100), ("b", 10_200), ("c", 15_300)]);
}

#[test]
fn cache_program_loads_while_the_last_page_is_programmed() {
    // a is in at 0-100 and programmed at 5100; b is in at 100-200 and programmed at 10100; c is in
    // at 5100-5200 and programmed at 15100
    expect_small(cache_program(), THREE_PROGRAMS, &[("a", 5_100), ("b", 10_100), ("c", 15_100)]);
}

#[test]
fn a_transfer_longer_than_t_prog_sets_the_pace() {
    // the pages are in at 0-7000, 7000-14000 and 14000-21000, and each then takes tPROG
    let order = [("a", 12_000), ("b", 19_000), ("c", 26_000)];
    expect_small(cache_program(), THREE_LONG_PROGRAMS, &order);
}

#[test]
fn only_one_page_is_loaded_ahead() {
    // c takes the register when b leaves it at 5100, so c is in at 5100-11100 (and not at
    // 200-6200), and then takes tPROG
    let script = "a = program 0.0.0 x100\nb = program 0.0.1 x100\nc = program 0.0.2 x6000";
    expect_small(cache_program(), script, &[("b", 10_100), ("c", 16_100)]);
}

#[test]
fn a_program_that_arrives_during_another_is_loaded_at_once() {
    // b is in at 4000-4100 and its cells start at 5100; without the cache it would end at 5200 +
    // 5000
    let script = "a = program 0.0.0 x100\nat 4000\nb = program 0.1.0 x100";
    expect_small(cache_program(), script, &[("a", 5_100), ("b", 10_100)]);
}

#[test]
fn a_command_belongs_to_the_load() {
    // a is in at 0-130 and programmed at 5130; b is in at 130-260 and programmed at 10130
    let t = times_with(|t| (t.cache_program, t.command) = (true, Dur(30)));
    expect_small(
        t,
        "a = program 0.0.0 x100\nb = program 0.0.1 x100",
        &[("a", 5_130), ("b", 10_130)],
    );
}

#[test]
fn only_a_program_that_is_next_is_loaded_ahead() {
    // the host read b is next and takes 5100-6200; then c is in at 6200-6300 and takes tPROG
    let script = "a = program 0.0.0 x100\nat 50\nb = read 0.1.0 x100\nc = program 0.2.0 x100";
    expect_small(cache_program(), script, &[("a", 5_100), ("b", 6_200), ("c", 11_300)]);
    // an erase does not use the register, and no page is loaded during an erase
    let script = "a = program 0.0.0 x100\nb = erase 0.1\nc = program 0.2.0 x100 idle";
    expect_small(cache_program(), script, &[("a", 5_100), ("b", 25_100), ("c", 30_200)]);
}

#[test]
fn a_loaded_page_goes_before_a_read_that_comes_later() {
    // b is in the register from 200 on, so it is programmed at 5100-10100, and c takes 10100-11200
    let script = "a = program 0.0.0 x100\nb = program 0.0.1 x100\nat 300\nc = read 0.1.0 x100";
    expect_small(cache_program(), script, &[("a", 5_100), ("b", 10_100), ("c", 11_200)]);
}

// ---- suspension

/// Returns suspension of programs and erases, with latency 50, resume 20, and at most 2
/// suspensions.
fn suspend() -> Suspend {
    Suspend {
        program: true,
        erase: true,
        latency: Dur(50),
        resume: Dur(20),
        max: 2,
        longest: Dur(0),
        ..Suspend::default()
    }
}

fn suspends(change: impl FnOnce(&mut Suspend)) -> Times {
    let mut s = suspend();
    change(&mut s);
    times_with(|t| t.suspend = s)
}

fn expect_suspends(t: Times, script: &str, expected: &[(&str, u64)], count: u64) -> Player {
    let mut player = expect_small(t, script, expected);
    assert_eq!(player.statistics().suspends, count, "suspensions");
    player
}

#[test]
fn a_host_read_suspends_a_program() {
    // a is in at 0-100, is programmed from 100 on, and has 4000 left at 1100. b is sensed at
    // 1150-2150 and out at 2250. a ends at 2250 + 20 + 4000
    let script = "a = program 0.0.0 x100\nat 1100\nb = read 0.1.0 x100";
    let mut player = expect_suspends(suspends(|_| ()), script, &[("b", 2_250), ("a", 6_270)], 1);
    // the cells work for 1000 on the program, then on the read, then for 4000 and the resume
    assert_eq!(player.statistics().die_busy[0], Dur(1_000 + 1_000 + 4_020));
}

#[test]
fn a_host_read_suspends_an_erase() {
    // a has 18900 left at 1100; b is as above; a ends at 2250 + 20 + 18900
    let script = "a = erase 0.0\nat 1100\nb = read 0.1.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("b", 2_250), ("a", 21_170)], 1);
}

#[test]
fn only_what_may_be_suspended_is() {
    let program = "a = program 0.0.0 x100\nat 1100\nb = read 0.1.0 x100";
    let erase = "a = erase 0.0\nat 1100\nb = read 0.1.0 x100";
    expect_suspends(suspends(|s| s.program = false), program, &[("a", 5_100), ("b", 6_200)], 0);
    expect_suspends(suspends(|s| s.program = false), erase, &[("b", 2_250)], 1);
    expect_suspends(suspends(|s| s.erase = false), erase, &[("a", 20_000), ("b", 21_100)], 0);
    expect_suspends(suspends(|s| s.erase = false), program, &[("b", 2_250)], 1);
}

#[test]
fn nothing_is_suspended_for_other_reads_or_for_programs() {
    for what in ["read 0.1.0 x100 map", "read 0.1.0 x100 gc", "program 0.1.0 x100 host_read"] {
        let script = format!("a = program 0.0.0 x100\nat 1100\nb = {what}");
        expect_suspends(suspends(|_| ()), &script, &[("a", 5_100)], 0);
    }
}

#[test]
fn a_read_is_not_suspended() {
    let script = "a = read 0.0.0 x100 idle\nat 100\nb = read 0.1.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("a", 1_100), ("b", 2_200)], 0);
}

#[test]
fn what_ends_within_the_suspend_latency_runs_to_its_end() {
    // at 5050, a has 50 left, which is no more than the latency, so b waits and takes 5100-6200
    let script = "a = program 0.0.0 x100\nat 5050\nb = read 0.1.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("a", 5_100), ("b", 6_200)], 0);
    // at 5049, a has 51 left, so b takes 5099-6199, and a ends at 6199 + 20 + 51
    let script = "a = program 0.0.0 x100\nat 5049\nb = read 0.1.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("b", 6_199), ("a", 6_270)], 1);
}

#[test]
fn an_operation_is_suspended_no_more_than_suspends_max_times() {
    // a has 18900 left at 1100 and resumes at 2250 with 18920. At 3000 it has 18170 left; c takes
    // 3050-4150, and a resumes with 18190. At 5000 it has 17340 left and may not be suspended
    // again, so a ends at 22340, and then d starts
    let script = "
        a = erase 0.0
        at 1100
        b = read 0.1.0 x100
        at 3000
        c = read 0.1.1 x100
        at 5000
        d = read 0.1.2 x100";
    let order = [("b", 2_250), ("c", 4_150), ("a", 22_340), ("d", 23_440)];
    expect_suspends(suspends(|_| ()), script, &order, 2);
    // with at most 1 suspension, a works from 2250 to 21170, and c and d wait for it
    let order = [("b", 2_250), ("a", 21_170), ("c", 22_270), ("d", 23_370)];
    expect_suspends(suspends(|s| s.max = 1), script, &order, 1);
}

#[test]
fn an_operation_is_suspended_no_longer_than_it_may_be() {
    // four reads wait. a stops at 1150, b ends at 2250 and c at 3350. By then 2200 have passed
    // since 1100, so a resumes, although d and e wait. It is not suspended again, and ends at 3350
    // + 20 + 4000
    let script = "
        a = program 0.0.0 x100
        at 1100
        b = read 0.1.0 x100
        c = read 0.1.1 x100
        d = read 0.1.2 x100
        e = read 0.1.3 x100";
    let bounded = suspends(|s| s.longest = Dur(2_000));
    let order = [("b", 2_250), ("c", 3_350), ("a", 7_370), ("d", 8_470), ("e", 9_570)];
    expect_suspends(bounded, script, &order, 1);
    // without a bound, a waits for all four reads
    let order = [("b", 2_250), ("c", 3_350), ("d", 4_450), ("e", 5_550), ("a", 9_570)];
    expect_suspends(suspends(|_| ()), script, &order, 1);
}

#[test]
fn reads_that_come_while_it_stops_or_rests_share_one_suspension() {
    // c arrives while a stops, and d during b; the reads take 1150-2250, 2250-3350 and 3350-4450,
    // and a ends at 4450 + 20 + 4000
    let script = "
        a = program 0.0.0 x100
        at 1100
        b = read 0.1.0 x100
        at 1120
        c = read 0.1.1 x100
        at 2000
        d = read 0.1.2 x100";
    let order = [("b", 2_250), ("c", 3_350), ("d", 4_450), ("a", 8_470)];
    expect_suspends(suspends(|_| ()), script, &order, 1);
}

#[test]
fn only_host_reads_go_before_a_suspended_operation() {
    // the read of the map waits for a, although a is suspended when it arrives
    let script = "
        a = program 0.0.0 x100 gc
        at 1100
        b = read 0.1.0 x100
        at 1200
        c = read 0.1.1 x100 map";
    expect_suspends(suspends(|_| ()), script, &[("b", 2_250), ("a", 6_270), ("c", 7_370)], 1);
}

#[test]
fn a_read_of_the_page_that_is_programmed_waits_for_it() {
    let script = "a = program 0.0.0 x100\nat 1100\nb = read 0.0.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("a", 5_100), ("b", 6_200)], 0);
    // such a read also waits while a is suspended for a read of another page
    let script = "a = program 0.0.1 x100\nat 1100\nb = read 0.0.1 x100\nc = read 0.0.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("c", 2_250), ("a", 6_270), ("b", 7_370)], 1);
}

#[test]
fn a_host_read_that_waits_suspends_as_soon_as_the_cells_begin() {
    // a is in at 0-100 and is suspended at 100 with all 5000 left; b takes 150-1250, and a ends at
    // 1250 + 20 + 5000
    let script = "a = program 0.0.0 x100\nat 50\nb = read 0.1.0 x100";
    expect_suspends(suspends(|_| ()), script, &[("b", 1_250), ("a", 6_270)], 1);
}

#[test]
fn the_latency_may_be_zero() {
    let script = "a = program 0.0.0 x100\nat 1100\nb = read 0.1.0 x100";
    // b takes 1100-2200, and a ends at 2200 + 4000
    let none = suspends(|s| (s.latency, s.resume) = (Dur::ZERO, Dur::ZERO));
    expect_suspends(none, script, &[("b", 2_200), ("a", 6_200)], 1);
}

#[test]
fn a_suspended_die_lends_its_channel() {
    // both dies are on one channel; b is sensed at 1150-2150 and out at 2250, c is sensed at
    // 1200-2200 and out at 2250-2350, and a ends as without c
    let script = "
        a = program 0.0.0 x100
        at 1100
        b = read 0.1.0 x100
        at 1200
        c = read 1.0.0 x100";
    expect(&board(1, 2), suspends(|_| ()), script, &[("b", 2_250), ("c", 2_350), ("a", 6_270)]);
}

#[test]
fn with_cache_read_a_suspended_operation_resumes_when_the_last_page_has_left() {
    // b is sensed at 1150-2150 and out at 2250, c is sensed at 2150-3150 and out at 3250, and a
    // ends at 3250 + 20 + 4000
    let mut t = suspends(|_| ());
    t.cache_read = true;
    let script = "a = program 0.0.0 x100\nat 1100\nb = read 0.1.0 x100\nc = read 0.1.1 x100";
    expect_suspends(t, script, &[("b", 2_250), ("c", 3_250), ("a", 7_270)], 1);
}

#[test]
fn a_program_is_not_suspended_while_the_next_page_is_in_the_register() {
    // b is loaded at 100-200, so a is not suspended and ends at 5100; b begins then and is
    // suspended; c takes 5150-6250, and b ends at 6250 + 20 + 5000
    let mut t = suspends(|_| ());
    t.cache_program = true;
    let script = "a = program 0.0.0 x100\nb = program 0.0.1 x100\nat 300\nc = read 0.1.0 x100";
    expect_suspends(t, script, &[("a", 5_100), ("c", 6_250), ("b", 11_270)], 1);
}

/// Reads of 1000 ps, programs and an erase wait at a die from 0 on. Reads pass the others for 3000
/// ps, and the first program is next when the current read then ends.
#[test]
fn a_program_is_passed_for_no_longer_than_the_bound() {
    let script = "at 0
        a = read 0.1.0
        w = program 0.2.0
        b = read 0.1.0
        c = read 0.1.0
        d = read 0.1.0
        e = read 0.1.0
        v = program 0.2.1
        f = erase 0.3";
    // without a bound, the reads go first, then the programs, and then the erase
    let all = [("e", 5_000), ("w", 10_000), ("v", 15_000), ("f", 35_000)];
    expect_small(times(), script, &all);
    // reads a, b and c end at 1000, 2000 and 3000. By then w and the erase have been passed for
    // 3000; w goes first because of its class, and ends at 8000. The overdue erase ends at 28000.
    // Since 3000, v has been the first of its class and d the first read, and d goes before v
    // because of its class. So d ends at 29000 and v at 34000. Then e, which has been first since
    // 28000 and is overdue, ends at 35000
    let bounded = times_with(|t| t.passed_max = Dur(3_000));
    let all =
        [("c", 3_000), ("w", 8_000), ("f", 28_000), ("d", 29_000), ("v", 34_000), ("e", 35_000)];
    expect_small(bounded, script, &all);
}
