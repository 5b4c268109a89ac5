//! Tests of the bound `passed_max`. The first operation of a class in a queue lets other classes
//! pass for at most this time. After that, it waits only for the current operation, and for the
//! first operation of each other class that is overdue as well.

use crate::common::{board, expect, expect_small, times, times_with};
use flashatlas_timing::{Suspend, Times};
use flashatlas_types::Dur;

fn bounded(bound: u64) -> Times {
    times_with(|t| t.passed_max = Dur(bound))
}

/// Returns a script of `count` operations of one kind. Their names are `name` followed by a number.
fn many(name: &str, count: u32, kind: &str) -> String {
    (0..count).map(|i| format!("{name}{i} = {kind}\n")).collect()
}

#[test]
fn a_channel_passes_a_class_for_no_longer_than_the_bound() {
    // r0 is out at 1000-1400. w, which is of collection, waits for the channel from 1000 on. Two
    // host reads of 400 bytes wait from 1300 on, and are out at 1400-1800 and 1800-2200
    let script = "
        r0 = read 0.1.0 x400
        w = read 1.1.0 x100 gc
        r1 = read 2.1.0 middle x400
        r2 = read 3.1.0 middle x400";
    let four = board(1, 4);
    let all = [("r0", 1_400), ("r1", 1_800), ("r2", 2_200), ("w", 2_300)];
    expect(&four, times(), script, &all);
    // when r0 has left, w has been passed for 400
    let all = [("r0", 1_400), ("w", 1_500), ("r1", 1_900), ("r2", 2_300)];
    expect(&four, bounded(400), script, &all);
    // if w may be passed for 401, r1 goes before w, but r2 does not, because it has been first
    // since 1400 only
    let all = [("r0", 1_400), ("r1", 1_800), ("w", 1_900), ("r2", 2_300)];
    expect(&four, bounded(401), script, &all);
}

#[test]
fn the_link_passes_a_class_for_no_longer_than_the_bound() {
    // there are ten transfers of 100 for host reads and one for the map; a transfer is never
    // interrupted
    let script = format!("{}m = out x50 map", many("r", 10, "out x100"));
    let link = |bound| {
        let mut t = bounded(bound);
        t.link_rate = 1_000_000_000_000;
        t
    };
    expect_small(link(0), &script, &[("r9", 1_000), ("m", 1_050)]);
    // m is overdue at 250, and r2 uses the link until 300
    expect_small(link(250), &script, &[("r2", 300), ("m", 350), ("r3", 450), ("r9", 1_050)]);
    // both directions of a link that is not full duplex share one queue
    let mut half = link(250);
    half.full_duplex = false;
    let script = format!("{}w = in x50", many("r", 10, "out x100"));
    expect_small(half, &script, &[("r2", 300), ("w", 350), ("r3", 450)]);
}

#[test]
fn of_classes_that_are_overdue_the_one_that_waits_longest_goes_first() {
    // r0 uses the die until 1000, r1 until 2000 and r2 until 3000. The idle read i arrived at 0,
    // and g, a read of collection, at 100. Both are overdue at 3000, and i goes first although its
    // class is the lowest. g starts at 4000, and then the other host reads follow
    let script =
        format!("{}i = read 0.2.0 idle\nat 100\ng = read 0.2.1 gc", many("r", 6, "read 0.1.0"));
    let all = [("r2", 3_000), ("i", 4_000), ("g", 5_000), ("r3", 6_000), ("r5", 8_000)];
    expect_small(bounded(2_500), &script, &all);
}

#[test]
fn the_next_of_a_class_is_passed_anew() {
    // w0 waits from 0 on, starts when r1 ends at 2000, and ends at 7000. w1 is the first of its
    // class from 2000 on, and overdue at 7000. r2 has been the first of its class since 1000, so it
    // goes before w1 and ends at 8000. w1 ends at 13000, and then r3 starts, which has been first
    // since 7000
    let script = format!(
        "{}w0 = program 0.2.0\nw1 = program 0.2.1\nw2 = program 0.2.2",
        many("r", 4, "read 0.1.0")
    );
    let all = [("r1", 2_000), ("w0", 7_000), ("r2", 8_000), ("w1", 13_000), ("r3", 14_000)];
    expect_small(bounded(2_000), &script, &all);
}

#[test]
fn a_suspended_operation_rests_for_no_longer_than_either_bound() {
    // a begins to stop at 1100 and is suspended from 1150 on. Reads of 1000 follow each other and
    // end at 2150, 3150 and 4150. Counted from 1100, 3000 have passed when the third read ends at
    // 4150, and 2000 when the second read ends at 3150. a then resumes with 3900 + 20 left
    let script = format!("a = program 0.0.0\nat 1100\n{}", many("r", 6, "read 0.1.0"));
    let bound = |passed, longest| {
        let mut t = bounded(passed);
        t.suspend = Suspend {
            program: true,
            erase: true,
            latency: Dur(50),
            resume: Dur(20),
            max: 9,
            longest: Dur(longest),
            ..Suspend::default()
        };
        t
    };
    let two = [("r1", 3_150), ("a", 7_070), ("r2", 8_070)];
    let three = [("r2", 4_150), ("a", 8_070), ("r3", 9_070)];
    expect_small(bound(0, 2_000), &script, &two);
    expect_small(bound(2_000, 0), &script, &two);
    expect_small(bound(2_000, 3_000), &script, &two);
    expect_small(bound(3_000, 2_000), &script, &two);
    expect_small(bound(3_000, 3_000), &script, &three);
    // without any bound, every read goes first
    expect_small(bound(0, 0), &script, &[("r5", 7_150), ("a", 11_070)]);
}
