//! Tests that compare latencies, rates and busy times of whole drives with arithmetic by hand. The
//! drives have no garbage collection.
//!
//! A page of 16384 bytes takes 16 us on a channel, and 4096 bytes take 4 us. tR is 50 us, tPROG 600
//! us and tBERS 3 ms. Times in the comments below are microseconds unless another unit is given.

use crate::common::{Player, board, program, read, times};
use flashatlas_timing::{MemoryTimes, Times};
use flashatlas_types::{Class, DieBlock, Dur, MemoryKind, OpId, OpKind, PROGRAM_KINDS, Ps};

const US: u64 = 1_000_000;
const PAGE: u32 = 16_384;

fn drive() -> Times {
    Times {
        read: [Dur::from_us(50); 5],
        program: [Dur::from_us(600); PROGRAM_KINDS],
        erase: Dur::from_us(3_000),
        channel_rate: 1_024_000_000,
        ..times()
    }
}

fn player(channels: u32, dies: u32, times: Times) -> Player {
    Player::new(&board(channels, dies), times)
}

/// Plays `count` operations in a closed loop. Each waits for the operation `depth` places before
/// it. Returns the completion times.
fn closed_loop(
    player: &mut Player,
    depth: usize,
    count: u32,
    kind: impl Fn(u32) -> OpKind,
) -> Vec<u64> {
    let mut ops: Vec<OpId> = Vec::new();
    for i in 0..count {
        let before = ops.len().checked_sub(depth).map_or(OpId::NONE, |j| ops[j]);
        ops.push(player.op(kind(i), Class::HostRead, &[before]));
    }
    player.issue(0);
    player.finish();
    ops.into_iter().map(|op| player.done(op)).collect()
}

/// Returns the completions a second between two completions of a run.
fn iops(done: &[u64], from: usize, to: usize) -> f64 {
    (to - from) as f64 / ((done[to] - done[from]) as f64 / 1e12)
}

// ---- one request at a time

#[test]
fn reads_one_at_a_time_take_t_r_and_a_transfer_each() {
    let done = closed_loop(&mut player(2, 2, drive()), 1, 100, |i| read(i % 4, 0, PAGE));
    // each read takes 50 + 16, on any die, so there are 15,151.5 a second
    assert!(done.iter().enumerate().all(|(i, &at)| at == 66 * US * (i as u64 + 1)), "{done:?}");
    assert!((iops(&done, 0, 99) - 1e6 / 66.0).abs() < 1e-6);
}

#[test]
fn small_reads_transfer_only_what_is_asked_for() {
    // a read of 4096 bytes of the page takes 50 + 4
    let done = closed_loop(&mut player(1, 1, drive()), 1, 10, |_| read(0, 0, 4_096));
    assert_eq!(done[9], 10 * 54 * US);
}

#[test]
fn programs_one_at_a_time_take_a_transfer_and_t_prog_each() {
    let done = closed_loop(&mut player(2, 2, drive()), 1, 16, |i| program(i % 4, 0, i / 4, PAGE));
    // each program takes 16 + 600
    assert!(done.iter().enumerate().all(|(i, &at)| at == 616 * US * (i as u64 + 1)), "{done:?}");
}

#[test]
fn a_block_is_filled_and_erased_in_the_sum_of_its_times() {
    let mut player = player(1, 1, Times { command: Dur::from_us(1), ..drive() });
    let pages: Vec<OpId> =
        (0..16).map(|page| player.op(program(0, 0, page, PAGE), Class::Gc, &[])).collect();
    let erase = player.op(OpKind::Erase { die: 0, block: DieBlock::new(0) }, Class::Gc, &[]);
    player.issue(0);
    player.finish();
    // the programs take 16 × (1 + 16 + 600), and the erase then takes 1 + 3000
    assert_eq!(player.done(pages[15]), 9_872 * US);
    assert_eq!(player.done(erase), 12_873 * US);
}

#[test]
fn a_host_read_is_the_sum_of_its_stations() {
    // the parts are: controller 3, map in DRAM 2 × (0.1 + 64 B at 640 MB/s = 0.1), command 1, tR
    // 50, channel 4096 B at 1.024 GB/s = 4, link 4096 B at 4.096 GB/s = 1; their sum is 59.4
    let mut t = Times { command: Dur::from_us(1), link_rate: 4_096_000_000, ..drive() };
    t.memory[MemoryKind::Dram as usize] =
        MemoryTimes { read: Dur::from_ns(100), write: Dur::from_ns(100), rate: 640_000_000 };
    let mut player = player(2, 2, t);
    let controller = player.op(OpKind::Delay(Dur::from_us(3)), Class::HostRead, &[]);
    let table = OpKind::Memory { kind: MemoryKind::Dram, accesses: 2, bytes: 64, write: false };
    let map = player.op(table, Class::Map, &[controller]);
    let page = player.op(read(3, 0, 4_096), Class::HostRead, &[map]);
    let out = player.op(OpKind::Link { inbound: false, bytes: 4_096 }, Class::HostRead, &[page]);
    player.issue(7 * US);
    player.finish();
    assert_eq!(
        [controller, map, page, out].map(|op| player.done(op) - 7 * US),
        [3_000_000, 3_400_000, 58_400_000, 59_400_000]
    );
}

// ---- many requests, dies of one channel

#[test]
fn four_dies_overlap_all_but_their_transfers() {
    let done = closed_loop(&mut player(1, 4, drive()), 4, 400, |i| read(i % 4, 0, PAGE));
    // 4 × 16 < 66, so each die has a period of 66, and die k is 16 k behind die 0
    for (i, &at) in done.iter().enumerate() {
        let (round, k) = (i as u64 / 4, i as u64 % 4);
        assert_eq!(at, (66 * (round + 1) + 16 * k) * US, "read {i}");
    }
    // there are four reads in each 66, which is 60,606 a second
    assert!((iops(&done, 0, 396) - 4e6 / 66.0).abs() < 1e-6);
}

#[test]
fn eight_dies_saturate_their_channel() {
    let done = closed_loop(&mut player(1, 8, drive()), 8, 800, |i| read(i % 8, 0, PAGE));
    // 8 × 16 > 66, so the channel is never idle after the first tR
    for (i, &at) in done.iter().enumerate() {
        assert_eq!(at, (50 + 16 * (i as u64 + 1)) * US, "read {i}");
    }
    // there is one page in each 16, which is 62,500 a second
    assert!((iops(&done, 0, 799) - 62_500.0).abs() < 1e-6);
}

#[test]
fn more_depth_than_dies_gives_no_more_than_the_dies() {
    // with 2 dies and depth 16, there are two reads in each 66
    let done = closed_loop(&mut player(1, 2, drive()), 16, 200, |i| read(i % 2, 0, PAGE));
    for (i, &at) in done.iter().enumerate() {
        assert_eq!(at, (66 * (i as u64 / 2 + 1) + 16 * (i as u64 % 2)) * US, "read {i}");
    }
    assert!((iops(&done, 0, 198) - 2e6 / 66.0).abs() < 1e-6);
}

#[test]
fn channels_multiply_the_rate() {
    // there are 4 channels of 8 dies, each as in `eight_dies_saturate_their_channel`, and read i is
    // on channel i % 4
    let done = closed_loop(&mut player(4, 8, drive()), 32, 3_200, |i| {
        read(i % 4 * 8 + i / 4 % 8, 0, PAGE)
    });
    for (i, &at) in done.iter().enumerate() {
        assert_eq!(at, (50 + 16 * (i as u64 / 4 + 1)) * US, "read {i}");
    }
    assert!((iops(&done, 0, 3_196) - 250_000.0).abs() < 1e-6);
}

#[test]
fn programs_of_many_dies_are_bound_by_the_cells() {
    // 8 × 16 < 616, so each die has a period of 616, and die k is 16 k behind die 0
    let done = closed_loop(&mut player(1, 8, drive()), 8, 128, |i| program(i % 8, 0, i / 8, PAGE));
    for (i, &at) in done.iter().enumerate() {
        assert_eq!(at, (616 * (i as u64 / 8 + 1) + 16 * (i as u64 % 8)) * US, "program {i}");
    }
    assert!((iops(&done, 0, 120) - 8e6 / 616.0).abs() < 1e-6);
}

#[test]
fn four_planes_together_pay_t_prog_once() {
    // one operation of 64 KiB takes 4 × 16 + 600; the two dies have a period of 664, and the second
    // is 64 behind
    let done =
        closed_loop(&mut player(1, 2, drive()), 2, 32, |i| program(i % 2, 0, i / 2, 4 * PAGE));
    for (i, &at) in done.iter().enumerate() {
        assert_eq!(at, (664 * (i as u64 / 2 + 1) + 64 * (i as u64 % 2)) * US, "program {i}");
    }
}

#[test]
fn cache_read_brings_one_die_to_the_longer_of_t_r_and_transfer() {
    let done = closed_loop(&mut player(1, 1, Times { cache_read: true, ..drive() }), 4, 50, |_| {
        read(0, 0, PAGE)
    });
    // a page is sensed every 50, and is out 16 later
    assert!(
        done.iter().enumerate().all(|(i, &at)| at == (50 * (i as u64 + 1) + 16) * US),
        "{done:?}"
    );
    let done = closed_loop(&mut player(1, 1, Times { cache_read: true, ..drive() }), 4, 50, |_| {
        read(0, 0, 4 * PAGE)
    });
    // the first read is complete at 50 + 64, and then one every 64
    assert!(
        done.iter().enumerate().all(|(i, &at)| at == (50 + 64 * (i as u64 + 1)) * US),
        "{done:?}"
    );
}

#[test]
fn cache_program_hides_the_transfer() {
    let done =
        closed_loop(&mut player(1, 1, Times { cache_program: true, ..drive() }), 16, 16, |i| {
            program(0, 0, i, PAGE)
        });
    // the first transfer takes 16, and then each program takes 600
    assert!(
        done.iter().enumerate().all(|(i, &at)| at == (16 + 600 * (i as u64 + 1)) * US),
        "{done:?}"
    );
}

// ---- busy times

#[test]
fn busy_times_are_those_of_cells_and_buses() {
    let mut player =
        player(2, 2, Times { command: Dur::from_us(1), link_rate: 4_096_000_000, ..drive() });
    player.op(read(0, 0, PAGE), Class::HostRead, &[]);
    player.op(program(1, 0, 0, PAGE), Class::HostWrite, &[]);
    player.op(OpKind::Erase { die: 3, block: crate::common::block(3, 0) }, Class::Gc, &[]);
    player.op(OpKind::Link { inbound: true, bytes: 4_096 }, Class::HostWrite, &[]);
    player.op(OpKind::Link { inbound: false, bytes: 8_192 }, Class::HostRead, &[]);
    player.issue(0);
    player.finish();
    let s = player.statistics();
    let us = |n: &[u64]| n.iter().map(|&n| Dur::from_us(n)).collect::<Vec<_>>();
    assert_eq!(s.die_busy, us(&[50, 600, 0, 3_000]));
    // channel 0 carries the commands and the pages of the read and the program; channel 1 carries
    // the command of the erase
    assert_eq!(s.channel_busy, us(&[1 + 16 + 1 + 16, 1]));
    assert_eq!(s.link_busy, [Dur::from_us(1), Dur::from_us(2)]);
    // die 0 is at work from 0 to 67 (command, tR, page). Die 1 holds its program from 0 on, uses
    // the channel from 1 to 18, and programs until 618. Die 3 is at work from 0 to 3001
    assert_eq!(s.die_time, u128::from((67 + 618 + 3_001) * US));
    assert_eq!((s.active, s.dies_max), (Dur::from_us(3_001), 3));
    assert!((s.mean_dies() - 3_686.0 / 3_001.0).abs() < 1e-12);
}

#[test]
fn the_mean_counts_only_time_in_which_a_die_is_at_work() {
    let mut player = player(2, 1, drive());
    player.op(read(0, 0, PAGE), Class::HostRead, &[]);
    player.issue(0);
    player.op(read(0, 0, PAGE), Class::HostRead, &[]);
    player.op(read(1, 0, PAGE), Class::HostRead, &[]);
    player.issue(1_000 * US);
    player.finish();
    // one die is at work for 66, none until 1000, and then two for 66
    let s = player.statistics();
    assert_eq!((s.die_time, s.active, s.dies_max), (u128::from(3 * 66 * US), Dur::from_us(132), 2));
    assert!((s.mean_dies() - 1.5).abs() < 1e-12);
}

#[test]
fn a_drive_that_never_worked_has_no_mean() {
    let mut player = player(1, 1, drive());
    player.advance(Ps(5 * US));
    assert_eq!((player.statistics().mean_dies(), player.statistics().dies_max), (0.0, 0));
}

#[test]
fn a_reset_forgets_what_was_and_keeps_what_is_under_way() {
    let mut player = player(2, 1, drive());
    player.op(program(0, 0, 0, PAGE), Class::HostWrite, &[]);
    player.issue(0);
    player.advance(Ps(216 * US));
    player.engine.reset_statistics();
    assert_eq!(player.statistics().dies_max, 1, "die 0 is at work");
    player.op(read(1, 0, PAGE), Class::HostRead, &[]);
    player.issue(300 * US);
    player.finish();
    // from 216 on, die 0 is at work until 616 (its whole busy time was counted when its cells
    // began), and die 1 from 300 to 366
    let s = player.statistics();
    assert_eq!(
        (s.die_time, s.active, s.dies_max),
        (u128::from((400 + 66) * US), Dur::from_us(400), 2)
    );
    assert_eq!(
        (s.die_busy[1], s.channel_busy[1], s.suspends),
        (Dur::from_us(50), Dur::from_us(16), 0)
    );
    assert_eq!(s.channel_busy[0], Dur::ZERO);
}

#[test]
fn a_suspended_die_is_at_work_though_its_cells_rest() {
    let mut t = drive();
    t.suspend.program = true;
    (t.suspend.latency, t.suspend.resume, t.suspend.max) = (Dur::from_us(5), Dur::from_us(10), 1);
    let mut player = player(1, 1, t);
    let write = player.op(program(0, 0, 0, PAGE), Class::HostWrite, &[]);
    player.issue(0);
    let page = player.op(read(0, 1, PAGE), Class::HostRead, &[]);
    player.issue(116 * US);
    player.finish();
    // the cells program from 16 to 116 and have stopped at 121; the read is sensed from 121 to 171
    // and out at 187; the program then takes 10 + 500 more, until 697
    assert_eq!((player.done(page), player.done(write)), (187 * US, 697 * US));
    let s = player.statistics();
    // the cells were busy for 100 + 50 + 510
    assert_eq!((s.die_busy[0], s.active, s.suspends), (Dur::from_us(660), Dur::from_us(697), 1));
}
