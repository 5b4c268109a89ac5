//! Tests that compare critical paths with arithmetic by hand. The steps follow each other without a
//! gap, and each step has the right reason.
//!
//! tR is 1000 ps, tPROG 5000 ps and tBERS 20000 ps. A byte takes 1 ps on a channel.

use crate::common::{Player, block, board, times, times_with};
use flashatlas_timing::{Reason, Suspend, Times};
use flashatlas_types::{Cause, Class, Dur, OpId, OpKind, Ps, Tag};

fn player(times: Times) -> Player {
    let mut player = Player::new(&board(1, 2), times);
    player.engine.keep_paths();
    player
}

fn flash(player: &mut Player, kind: OpKind, cause: Cause, after: &[OpId]) -> OpId {
    let op = player.plan.push_flash(kind, cause, after);
    player.plan.push(OpKind::Complete(Tag(op.0)), Class::HostRead, &[op]);
    op
}

fn read(die: u32, at: u32, bytes: u32) -> OpKind {
    OpKind::Read { die, block: block(die, at), page: 0, level: 0, bytes, back: 0 }
}

fn program(die: u32, at: u32, page: u32, bytes: u32) -> OpKind {
    OpKind::Program { die, block: block(die, at), page, level: 0, bytes }
}

fn erase(die: u32, at: u32) -> OpKind {
    OpKind::Erase { die, block: block(die, at) }
}

/// Returns the steps from `since` on to an operation that ends at `at`, each as its end and its
/// reason. Neighbouring steps with the same reason are joined.
fn steps(player: &Player, op: OpId, since: u64, at: u64) -> Vec<(u64, Reason)> {
    let mut steps = player.engine.path(Some(Tag(op.0)), Ps(at), Ps(since)).expect("it is complete");
    steps.reverse();
    let mut from = since;
    for step in &steps {
        assert_eq!(step.from.0, from, "no gap in {steps:?}");
        from = step.to.0;
    }
    assert_eq!(from, at, "{steps:?}");
    let runs = steps.chunk_by(|one, next| one.reason == next.reason);
    runs.map(|run| (run[run.len() - 1].to.0, run[0].reason)).collect()
}

#[test]
fn who_has_the_die_is_to_blame_for_waiting() {
    let mut player = player(times());
    let moved = flash(&mut player, program(0, 0, 0, 0), Cause::Gc, &[]);
    let erased = flash(&mut player, erase(0, 1), Cause::Gc, &[moved]);
    player.issue(0);
    let before = flash(&mut player, read(0, 2, 100), Cause::Host, &[]);
    let other_die = flash(&mut player, read(1, 2, 0), Cause::Host, &[]);
    player.issue(1_000);
    let behind = flash(&mut player, read(0, 3, 0), Cause::Host, &[]);
    player.issue(7_000);
    player.finish();
    // the program ends at 5000; a host read goes before the erase, which holds the die from 6100 on
    let expected = [(5_000, Reason::Collection), (6_000, Reason::Read), (6_100, Reason::Channel)];
    assert_eq!(steps(&player, before, 1_000, 6_100), expected);
    assert_eq!(steps(&player, other_die, 1_000, 2_000), [(2_000, Reason::Read)]);
    let expected = [(26_100, Reason::Erase), (27_100, Reason::Read)];
    assert_eq!(steps(&player, behind, 7_000, 27_100), expected);
    // work of collection counts as collection anywhere on a path
    let expected = [(5_000, Reason::Collection), (26_100, Reason::Erase)];
    assert_eq!(steps(&player, erased, 0, 26_100), expected);
}

#[test]
fn a_path_goes_through_what_was_waited_for_and_begins_with_the_request() {
    let mut player = player(times());
    let map = flash(&mut player, read(1, 0, 50), Cause::Map, &[]);
    player.issue(0);
    let delay = player.plan.push(OpKind::Delay(Dur(300)), Class::HostRead, &[]);
    let data = flash(&mut player, read(0, 0, 10), Cause::Host, &[map, delay]);
    player.issue(400);
    player.finish();
    // the read of the map page began at 0, but the time before the request is not part of the path
    let expected = [(1_050, Reason::Map), (2_050, Reason::Read), (2_060, Reason::Channel)];
    assert_eq!(steps(&player, data, 400, 2_060), expected);
    let late = [(2_050, Reason::Read), (2_060, Reason::Channel)];
    assert_eq!(steps(&player, data, 1_500, 2_060), late);
    let early = [&[(400, Reason::Layer)][..], &expected].concat();
    let mut player = self::player(times());
    player.plan.push(OpKind::Delay(Dur(1)), Class::HostRead, &[]);
    player.issue(0);
    let map = flash(&mut player, read(1, 0, 50), Cause::Map, &[]);
    let data = flash(&mut player, read(0, 0, 10), Cause::Host, &[map]);
    player.issue(400);
    player.finish();
    let shifted = early.iter().map(|&(at, why)| (if at == 400 { at } else { at + 400 }, why));
    assert_eq!(steps(&player, data, 100, 2_460), shifted.collect::<Vec<_>>());
}

#[test]
fn what_is_suspended_is_so_and_the_channel_has_a_queue() {
    let suspend = Suspend { program: true, max: 4, ..Suspend::default() };
    let mut player = player(times_with(|t| t.suspend = suspend));
    let write = flash(&mut player, program(0, 0, 0, 200), Cause::CacheEvict, &[]);
    let other = flash(&mut player, program(1, 0, 0, 300), Cause::Host, &[]);
    player.issue(0);
    flash(&mut player, read(0, 1, 0), Cause::Host, &[]);
    player.issue(1_200);
    player.finish();
    let expected = [(200, Reason::Channel), (1_200, Reason::Program), (2_200, Reason::Suspension)];
    let expected = [&expected[..], &[(6_200, Reason::Program)]].concat();
    assert_eq!(steps(&player, write, 0, 6_200), expected);
    let expected = [(200, Reason::ChannelQueue), (500, Reason::Channel), (5_500, Reason::Program)];
    assert_eq!(steps(&player, other, 0, 5_500), expected);
}

#[test]
fn a_page_in_the_cache_register_waits_for_whoever_has_the_cells() {
    let mut player = player(times_with(|t| t.cache_program = true));
    flash(&mut player, program(0, 0, 0, 0), Cause::Gc, &[]);
    let behind = flash(&mut player, program(0, 1, 0, 100), Cause::Host, &[]);
    player.issue(0);
    player.finish();
    let expected = [(100, Reason::Channel), (5_000, Reason::Collection), (10_000, Reason::Program)];
    assert_eq!(steps(&player, behind, 0, 10_000), expected);
}

#[test]
fn programs_of_a_block_wait_for_each_other() {
    let mut player = player(times());
    let gate = player.plan.push(OpKind::Delay(Dur(700)), Class::HostWrite, &[]);
    flash(&mut player, program(0, 0, 0, 0), Cause::Merge, &[gate]);
    let second = flash(&mut player, program(0, 0, 1, 0), Cause::Host, &[]);
    player.issue(0);
    player.finish();
    let expected = [(700, Reason::Controller), (5_700, Reason::Merge), (10_700, Reason::Program)];
    assert_eq!(steps(&player, second, 0, 10_700), expected);
}

#[test]
fn what_nobody_asks_for_is_forgotten() {
    let mut player = player(times());
    let first = flash(&mut player, read(0, 0, 0), Cause::Host, &[]);
    player.issue(0);
    let second = flash(&mut player, read(0, 0, 0), Cause::Host, &[]);
    player.issue(5_000);
    player.finish();
    player.engine.forget_paths(Ps(5_000));
    assert_eq!(player.engine.path(Some(Tag(first.0)), Ps(1_000), Ps(0)), None);
    assert_eq!(steps(&player, second, 5_000, 6_000), [(6_000, Reason::Read)]);
    assert_eq!(player.engine.path(None, Ps(6_000), Ps(5_000)).unwrap().len(), 1);
}
