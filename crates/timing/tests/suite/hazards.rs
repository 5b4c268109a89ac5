//! Tests of dependencies, and of the three rules of order on a block, which hold for all
//! priorities. A read of a page waits for that page's program, an erase waits for every earlier
//! operation on its block, and the programs of one block start in order.
//!
//! The comments of each test work out the expected times by hand, in picoseconds. A byte takes 1 ps
//! on a channel (see `common`).

use crate::common::{Player, board, expect_small, program, read, times, times_with};
use flashatlas_timing::Engine;
use flashatlas_types::{Class, Dur, OpId, OpKind, Plan, Ps, Tag};

/// A read that keeps die 0 busy until 1100, so that later operations wait together.
const BUSY: &str = "busy = read 0.7.0 x100\n";

fn expect_behind_busy(script: &str, expected: &[(&str, u64)]) {
    expect_small(times(), &format!("{BUSY}{script}"), expected);
}

// ---- a read of a page waits for its program

#[test]
fn a_read_of_a_page_waits_for_its_program_though_its_class_is_higher() {
    // a is in at 1100-1200 and takes tPROG, and then b starts
    expect_behind_busy(
        "a = program 0.0.0 x100 idle\nb = read 0.0.0 x100",
        &[("a", 6_200), ("b", 7_300)],
    );
}

#[test]
fn a_read_waits_for_a_program_that_has_begun() {
    let script = "a = program 0.0.0 x100\nat 3000\nb = read 0.0.0 x100\nc = read 0.0.1 x100 idle";
    // c joins the queue at 3000 and b at 5100; when the die takes its next operation, b has not
    // joined yet, so c goes first
    expect_small(times(), script, &[("a", 5_100), ("c", 6_200), ("b", 7_300)]);
}

#[test]
fn a_read_of_another_page_or_block_does_not_wait() {
    expect_behind_busy(
        "a = program 0.0.1 x100\nb = read 0.0.0 x100",
        &[("b", 2_200), ("a", 7_300)],
    );
    expect_behind_busy(
        "a = program 0.1.0 x100\nb = read 0.0.0 x100",
        &[("b", 2_200), ("a", 7_300)],
    );
}

#[test]
fn a_read_waits_for_the_right_one_of_many_programs() {
    // p0 is in at 1100-1200 and ends at 6200; then p1, which was waiting, takes 6200-11300. r0 is
    // released when p0 ends, before p2, which is released when p1 starts. So r0 takes 11300-12400,
    // r1 (host read) 12400-13500 and p2 13500-18600
    let script = "
        p0 = program 0.0.0 x100 gc
        p1 = program 0.0.1 x100 gc
        p2 = program 0.0.2 x100 gc
        r0 = read 0.0.0 x100 gc
        r1 = read 0.0.1 x100";
    expect_behind_busy(
        script,
        &[("p0", 6_200), ("p1", 11_300), ("r0", 12_400), ("r1", 13_500), ("p2", 18_600)],
    );
}

#[test]
fn a_read_waits_for_the_newest_program_of_its_page() {
    // a programs at 1200-6200, e ends at 26200, b is in at 26200-26300 and ends at 31300; then r
    // starts
    let script = "
        a = program 0.0.0 x100
        e = erase 0.0
        b = program 0.0.0 x100
        r = read 0.0.0 x100";
    expect_behind_busy(script, &[("a", 6_200), ("e", 26_200), ("b", 31_300), ("r", 32_400)]);
}

#[test]
fn a_read_does_not_wait_for_a_later_program_of_its_page() {
    // the program waits for the erase, the erase for the read
    let script = "r = read 0.0.0 x100 idle\ne = erase 0.0\np = program 0.0.0 x100";
    expect_behind_busy(script, &[("r", 2_200), ("e", 22_200), ("p", 27_300)]);
}

#[test]
fn a_read_waits_for_a_program_that_itself_waits() {
    // the program waits for a delay of 9000, so it is in at 9000-9100 and ends at 14100
    let script = "d = delay 9000\np = program 0.0.0 x100 after d\nr = read 0.0.0 x100";
    expect_small(times(), script, &[("p", 14_100), ("r", 15_200)]);
}

// ---- a read of a page as it was

#[test]
fn a_read_of_a_page_as_it_was_waits_for_no_program_since_and_the_erase_waits_for_it() {
    // when d ends at 9000, e would start, but r has been on the die since 8000 and ends at 9100; so
    // e takes 9100-29100 and p 29100-34200
    let script = "
        d = delay 9000
        c = read 0.0.0 x100 gc
        e = erase 0.0 after d
        p = program 0.0.0 x100
        at 8000
        r = read 0.0.0 back-3 x100";
    expect_small(times(), script, &[("c", 1_100), ("r", 9_100), ("e", 29_100), ("p", 34_200)]);
}

#[test]
fn a_read_of_a_page_as_it_was_waits_for_the_program_that_it_is_of() {
    // a programs at 1200-6200 and releases c and r, c first; c takes 6200-7300, r ends at 8400, e
    // at 28400 and b at 33500
    let script = "
        a = program 0.0.0 x100
        c = read 0.0.0 x100 gc
        e = erase 0.0
        b = program 0.0.0 x100
        r = read 0.0.0 back-3 x100";
    let expected = [("a", 6_200), ("c", 7_300), ("r", 8_400), ("e", 28_400), ("b", 33_500)];
    expect_behind_busy(script, &expected);
}

#[test]
fn an_erase_that_nothing_holds_back_does_not_wait_for_a_read_of_a_page_as_it_was() {
    // e is already in the queue when r arrives with a lower class
    let script = "
        c = read 0.1.0 x100
        e = erase 0.0 host_read
        at 100
        r = read 0.0.0 back-2 x100 idle";
    expect_small(times(), script, &[("c", 1_100), ("e", 21_100), ("r", 22_200)]);
}

// ---- an erase waits for every earlier operation on its block

#[test]
fn an_erase_waits_for_earlier_reads_though_its_class_is_higher() {
    let script = "a = read 0.0.0 x100 idle\nb = read 0.0.1 x100 idle\ne = erase 0.0 host_read";
    expect_behind_busy(script, &[("a", 2_200), ("b", 3_300), ("e", 23_300)]);
}

#[test]
fn an_erase_waits_for_earlier_programs_though_its_class_is_higher() {
    let script =
        "a = program 0.0.0 x100 idle\nb = program 0.0.1 x100 idle\ne = erase 0.0 host_read";
    expect_behind_busy(script, &[("a", 6_200), ("b", 11_300), ("e", 31_300)]);
}

#[test]
fn an_erase_waits_for_operations_of_earlier_plans_that_are_not_ready_yet() {
    // r and p are ready only at 9000, and the erase e, which is issued at 200, must wait for both
    let script = "
        d = delay 9000
        r = read 0.0.0 x100 after d
        at 100
        p = program 0.0.1 x100 after d
        at 200
        e = erase 0.0
        other = erase 0.1
        at 300
        next = program 0.0.0 x100 host_read";
    // `other` takes 200-20200; then r (host read) ends at 21300, p at 26400, e at 46400 and `next`
    // at 51500
    let order = [("other", 20_200), ("r", 21_300), ("p", 26_400), ("e", 46_400), ("next", 51_500)];
    expect_small(times(), script, &order);
}

#[test]
fn an_erase_waits_until_the_last_page_has_left_the_die() {
    // with cache read, the cells are free at 1000, but the page is on the channel until 1500
    let t = times_with(|t| t.cache_read = true);
    expect_small(t, "r = read 0.0.0 x500\ne = erase 0.0", &[("r", 1_500), ("e", 21_500)]);
}

#[test]
fn an_erase_does_not_wait_for_other_blocks() {
    let script = "a = read 0.1.0 x100 idle\nb = program 0.2.0 x100 idle\ne = erase 0.0 host_read";
    expect_behind_busy(script, &[("e", 21_100), ("a", 22_200), ("b", 27_300)]);
}

#[test]
fn an_erase_waits_for_reads_that_came_in_between_others_that_are_done() {
    // a is complete at 2200, c at 3300, and b, which waits for a delay, at 8100; each operation
    // leaves the block's list when it is complete
    let script = "
        d = delay 7000
        a = read 0.0.0 x100
        b = read 0.0.1 x100 after d
        c = read 0.0.2 x100
        at 4000
        e = erase 0.0";
    expect_behind_busy(script, &[("a", 2_200), ("c", 3_300), ("b", 8_100), ("e", 28_100)]);
}

// ---- programs of one block start in order

#[test]
fn programs_of_a_block_start_in_order_though_the_later_has_the_higher_class() {
    expect_behind_busy(
        "a = program 0.0.0 x100 idle\nb = program 0.0.1 x100 map",
        &[("a", 6_200), ("b", 11_300)],
    );
}

#[test]
fn programs_of_a_block_start_in_order_though_the_later_is_ready_earlier() {
    // a is in at 3000-3100 and ends at 8100, and then b starts
    let script = "d = delay 3000\na = program 0.0.0 x100 after d\nb = program 0.0.1 x100";
    expect_small(times(), script, &[("a", 8_100), ("b", 13_200)]);
}

#[test]
fn a_whole_chain_of_programs_keeps_its_order() {
    let script = "
        a = program 0.0.0 x100 idle
        b = program 0.0.1 x100 gc
        c = program 0.0.2 x100 host_write
        d = program 0.0.3 x100 map";
    expect_behind_busy(script, &[("a", 6_200), ("b", 11_300), ("c", 16_400), ("d", 21_500)]);
}

#[test]
fn programs_of_other_blocks_keep_to_their_classes() {
    let script = "a = program 0.0.0 x100 idle\nb = program 0.1.0 x100 map";
    expect_behind_busy(script, &[("b", 6_200), ("a", 11_300)]);
}

#[test]
fn a_program_comes_to_the_queue_when_the_one_before_it_has_the_die() {
    // a gets the die at 1100; b and c then wait together, and b goes first, because its class is
    // higher
    let script =
        "a = program 0.0.0 x100\nb = program 0.0.1 x100 map\nc = program 0.1.0 x100 host_write";
    expect_behind_busy(script, &[("a", 6_200), ("b", 11_300), ("c", 16_400)]);
}

#[test]
fn order_within_a_block_holds_with_cache_program() {
    // a is in at 1100-1200, and b at 1200-1300 while a is programmed
    let t = times_with(|t| t.cache_program = true);
    let script = format!(
        "{BUSY}a = program 0.0.0 x100 idle\nb = program 0.0.1 x100 map\nc = program 0.0.2 x100 map"
    );
    expect_small(t, &script, &[("a", 6_200), ("b", 11_200), ("c", 16_200)]);
}

#[test]
fn a_program_does_not_start_before_an_earlier_erase_of_its_block() {
    // the erase waits for a delay and takes 3000-23000, although the program is ready long before
    let script = "d = delay 3000\ne = erase 0.0 idle after d\np = program 0.0.0 x100 host_read";
    expect_small(times(), script, &[("e", 23_000), ("p", 28_100)]);
}

#[test]
fn an_order_across_plans_holds_too() {
    let script = "
        d = delay 3000
        a = program 0.0.0 x100 idle after d
        at 1000
        b = program 0.0.1 x100 host_read";
    expect_small(times(), script, &[("a", 8_100), ("b", 13_200)]);
}

#[test]
fn a_program_of_a_lower_class_holds_back_only_its_block() {
    // a waits until 3000; c, which is of another block, takes 0-5100, and then a and b follow
    let script = "
        d = delay 3000
        a = program 0.0.0 x100 after d
        b = program 0.0.1 x100 map
        c = program 0.1.0 x100 idle";
    expect_small(times(), script, &[("c", 5_100), ("a", 10_200), ("b", 15_300)]);
}

// ---- dependencies, joins, numbers

#[test]
fn dependencies_reach_into_earlier_plans_complete_or_not() {
    let script = "
        a = read 0.0.0 x100
        b = program 1.0.0 x100
        at 2000
        c = read 2.0.0 x100 after a
        d = read 3.0.0 x100 after a b";
    expect_small(times(), script, &[("a", 1_100), ("b", 5_100), ("c", 3_100), ("d", 6_200)]);
}

#[test]
fn a_dependency_named_twice_is_one() {
    expect_small(times(), "a = delay 10\nb = delay 5 after a a", &[("a", 10), ("b", 15)]);
}

#[test]
fn a_join_is_complete_with_the_last_that_it_names() {
    let script = "a = delay 10\nb = delay 30\nc = delay 20\nj = join after a b c\nk = join\nl = \
                  delay 1 after j";
    expect_small(times(), script, &[("j", 30), ("k", 0), ("l", 31)]);
}

#[test]
fn commands_complete_in_order_each_with_its_tag_and_time() {
    let mut engine = Engine::new(&board(1, 1), times());
    let mut plan = Plan::default();
    let long = plan.push(OpKind::Delay(Dur(10)), Class::Gc, &[]);
    let short = plan.push(OpKind::Delay(Dur(4)), Class::Gc, &[]);
    for (tag, after) in [(7, long), (5, short), (6, long)] {
        plan.push(OpKind::Complete(Tag(tag)), Class::Gc, &[after]);
    }
    plan.push(OpKind::Complete(Tag(9)), Class::Gc, &[]);
    engine.issue(Ps(100), &plan);
    let mut out = Vec::new();
    engine.advance(Ps(110), &mut out);
    let order: Vec<_> = out.iter().map(|f| (f.tag.0, f.at.0)).collect();
    assert_eq!(order, [(9, 100), (5, 104), (7, 110), (6, 110)]);
}

#[test]
fn a_command_that_is_complete_at_once_is_an_event() {
    let mut engine = Engine::new(&board(1, 1), times());
    let mut plan = Plan::default();
    plan.push(OpKind::Delay(Dur(100)), Class::Idle, &[]);
    plan.push(OpKind::Complete(Tag(1)), Class::HostRead, &[]);
    engine.issue(Ps(5), &plan);
    // a caller that waits for the command goes from event to event, so its completion must come
    // before the delay ends at 105
    assert_eq!(engine.next_event(), Some(Ps(5)));
    let mut out = Vec::new();
    engine.advance(Ps(5), &mut out);
    assert_eq!(out.iter().map(|f| (f.tag, f.at)).collect::<Vec<_>>(), [(Tag(1), Ps(5))]);
    assert_eq!(engine.next_event(), Some(Ps(105)));
}

#[test]
fn operations_that_were_never_issued_hold_nothing_back() {
    let mut player = Player::new(&board(1, 1), times());
    let first = player.op(read(0, 0, 100), Class::HostRead, &[]);
    player.issue(0);
    let lost = player.op(read(0, 1, 100), Class::HostRead, &[]);
    player.plan.clear();
    player.plan.set_recording(false);
    assert_eq!(player.plan.push(read(0, 2, 100), Class::HostRead, &[]), OpId::NONE);
    player.plan.set_recording(true);
    let next = player.op(OpKind::Delay(Dur(5)), Class::HostRead, &[first, lost, OpId::NONE]);
    player.issue(10);
    // `first` is complete at 1100, and `lost` was never issued
    player.finish();
    assert_eq!((player.done(first), player.done(next)), (1_100, 1_105));
}

#[test]
fn numbers_may_leap_while_an_old_operation_is_unfinished() {
    let mut player = Player::new(&board(1, 1), times());
    let old = player.op(program(0, 0, 0, 100), Class::HostWrite, &[]);
    player.issue(0);
    let mut chain = Vec::new();
    for leap in [1_023, 5_000, 40_000] {
        for _ in 0..leap {
            player.plan.push(OpKind::Join, Class::Gc, &[]);
        }
        player.plan.clear();
        chain.push(player.op(read(0, 0, 100), Class::HostRead, &[old]));
        player.issue(10);
    }
    assert_eq!((player.engine.oldest_unfinished(), player.engine.unfinished()), (old, 8));
    player.finish();
    // the program takes 100 + 5000, and each of the three reads 1100
    assert_eq!(chain.iter().map(|&op| player.done(op)).collect::<Vec<_>>(), [6_200, 7_300, 8_400]);
    assert_eq!(player.engine.oldest_unfinished(), OpId(u64::MAX));
}

#[test]
fn thousands_of_operations_may_be_unfinished() {
    let mut player = Player::new(&board(2, 2), times());
    let gate = player.op(OpKind::Delay(Dur(50)), Class::Gc, &[]);
    let reads: Vec<OpId> =
        (0..5_000).map(|i| player.op(read(i % 4, 0, 600), Class::HostRead, &[gate])).collect();
    player.issue(0);
    assert_eq!(player.engine.oldest_unfinished(), gate);
    player.finish();
    // each channel has two dies with tR 1000 and 600 bytes a page, so the period is 1600, and the
    // second die is 600 behind
    for (i, &op) in reads.iter().enumerate() {
        let (round, second) = (i as u64 / 4, i as u64 % 2);
        assert_eq!(player.done(op), 50 + 1_600 + 1_600 * round + 600 * second, "read {i}");
    }
}

#[test]
fn dependencies_reach_back_over_thousands_of_operations() {
    let mut player = Player::new(&board(1, 1), times());
    // the numbers of the operations do not start at a power of two
    for _ in 0..700 {
        player.plan.push(OpKind::Join, Class::Gc, &[]);
    }
    player.issue(0);
    let mut steps: Vec<OpId> = Vec::new();
    for i in 0..6_000_usize {
        let before = i.checked_sub(900).map_or(OpId::NONE, |j| steps[j]);
        steps.push(player.op(OpKind::Delay(Dur(10)), Class::Gc, &[before]));
    }
    player.issue(0);
    assert_eq!(player.engine.oldest_unfinished(), steps[0]);
    player.finish();
    // there are 900 chains at the same time
    for (i, &op) in steps.iter().enumerate() {
        assert_eq!(player.done(op), 10 * (i as u64 / 900 + 1), "delay {i}");
    }
}

#[test]
fn the_oldest_unfinished_operation_is_known_after_a_leap() {
    let mut player = Player::new(&board(1, 1), times());
    player.op(OpKind::Delay(Dur(1)), Class::Gc, &[]);
    player.issue(0);
    player.finish();
    for _ in 0..100 {
        player.plan.push(OpKind::Join, Class::Gc, &[]);
    }
    player.plan.clear();
    let a = player.op(OpKind::Delay(Dur(10)), Class::Gc, &[]);
    let b = player.op(OpKind::Delay(Dur(20)), Class::Gc, &[]);
    player.issue(10);
    assert_eq!(player.engine.oldest_unfinished(), a);
    player.advance(Ps(20));
    assert_eq!((player.engine.oldest_unfinished(), player.engine.is_complete(a)), (b, true));
}

#[test]
#[should_panic(expected = "in the past")]
fn nothing_is_issued_in_the_past() {
    let mut player = Player::new(&board(1, 1), times());
    player.advance(Ps(100));
    player.engine.issue(Ps(99), &player.plan);
}

#[test]
#[should_panic(expected = "not handled")]
fn nothing_is_issued_over_events_that_were_not_handled() {
    let mut player = Player::new(&board(1, 1), times());
    player.op(OpKind::Delay(Dur(10)), Class::Gc, &[]);
    player.issue(0);
    player.engine.issue(Ps(11), &player.plan);
}

#[test]
#[should_panic(expected = "comes later")]
fn nothing_waits_for_a_later_operation() {
    let mut player = Player::new(&board(1, 1), times());
    player.plan.push(OpKind::Join, Class::Gc, &[OpId(2)]);
    player.issue(0);
}
