//! Tests of every time and every resource rule of the engine. Each test checks that an operation is
//! complete at its time, and not complete one picosecond earlier.
//!
//! The comments of each test work out the expected times by hand, in picoseconds. A byte takes 1 ps
//! on a channel (see `common`). The optional rules, which are cache operations and suspension, are
//! in `options.rs`.

use crate::common::{board, expect, expect_small, times, times_with};
use flashatlas_timing::{MemoryTimes, PARAMS, Times};
use flashatlas_types::{Class, ConfigError, Dur, PAGE_KINDS, RawConfig, STEPS_MAX};

// ---- one operation

#[test]
fn a_read_takes_t_r_of_its_page_kind_and_the_transfer() {
    // tR is 1000, 1300, 1700 or 2200, 400 in SLC mode, and 100 bytes are transferred out
    let ready =
        [("lower", 1_100), ("middle", 1_400), ("upper", 1_800), ("top", 2_300), ("slc", 500)];
    for (kind, ready) in ready {
        expect_small(times(), &format!("a = read 0.0.0 {kind} x100"), &[("a", ready)]);
    }
}

#[test]
fn a_program_takes_the_transfer_and_t_prog_of_its_page_kind() {
    // 100 bytes are transferred in, and tPROG is 5000, 6000, 8000 or 9000, 700 in SLC mode
    let ready =
        [("lower", 5_100), ("middle", 6_100), ("upper", 8_100), ("top", 9_100), ("slc", 800)];
    for (kind, ready) in ready {
        expect_small(times(), &format!("a = program 0.0.0 {kind} x100"), &[("a", ready)]);
    }
}

#[test]
fn an_erase_takes_t_bers() {
    expect_small(times(), "a = erase 0.0", &[("a", 20_000)]);
}

#[test]
fn every_operation_starts_with_its_command() {
    let t = || times_with(|t| t.command = Dur(30));
    expect_small(t(), "a = read 0.0.0 x100", &[("a", 30 + 1_000 + 100)]);
    expect_small(t(), "a = program 0.0.0 x100", &[("a", 30 + 100 + 5_000)]);
    expect_small(t(), "a = erase 0.0", &[("a", 30 + 20_000)]);
}

#[test]
fn a_transfer_rounds_up_to_a_picosecond() {
    // 100 bytes at 3 bytes a ps take 33.3 ps
    expect_small(times_with(|t| t.channel_rate *= 3), "a = read 0.0.0 x100", &[("a", 1_034)]);
}

#[test]
fn a_channel_without_limit_takes_no_time() {
    let t = || times_with(|t| t.channel_rate = 0);
    expect_small(t(), "a = read 0.0.0 x100\nb = read 1.0.0 x100", &[("a", 1_000), ("b", 1_000)]);
    expect_small(
        t(),
        "a = program 0.0.0 x100\nb = program 1.0.0 x100",
        &[("a", 5_000), ("b", 5_000)],
    );
}

#[test]
fn operations_start_when_they_are_issued() {
    expect_small(times(), "at 700\na = read 0.0.0 x100", &[("a", 700 + 1_100)]);
}

#[test]
fn one_operation_on_n_planes_senses_once_and_transfers_n_pages() {
    // four planes of 100 bytes take one tR and 400 bytes, while four single operations take four
    // times both
    expect_small(times(), "a = read 0.0.0 x400", &[("a", 1_000 + 400)]);
    expect_small(times(), "a = program 0.0.0 x400", &[("a", 400 + 5_000)]);
    let single =
        "a = read 0.0.0 x100\nb = read 0.1.0 x100\nc = read 0.2.0 x100\nd = read 0.3.0 x100";
    expect_small(times(), single, &[("d", 4 * (1_000 + 100))]);
}

// ---- memory, link, fixed times

fn memories(t: &mut Times) {
    t.memory = [
        MemoryTimes { read: Dur(2), write: Dur(2), rate: 4_000_000_000_000 },
        MemoryTimes { read: Dur(50), write: Dur(50), rate: 2_000_000_000_000 },
        MemoryTimes { read: Dur(70), write: Dur(300), rate: 0 },
    ];
}

#[test]
fn a_memory_access_takes_its_latency_and_its_bytes() {
    let t = || times_with(memories);
    // SRAM takes 2 + 64/4 = 18 and DRAM 50 + 64/2 = 82; the rate of NVM is not limited
    expect_small(t(), "a = sram 1 x64", &[("a", 18)]);
    expect_small(t(), "a = dram 1 x64", &[("a", 82)]);
    expect_small(t(), "a = nvm 1 x64\nb = nvm 1 x64 store", &[("a", 70), ("b", 300)]);
}

#[test]
fn accesses_of_one_operation_follow_one_another() {
    // the accesses take 5 × (50 + 7/2 rounded up)
    expect_small(times_with(memories), "a = dram 5 x7", &[("a", 5 * 54)]);
}

#[test]
fn memory_operations_and_delays_share_nothing() {
    let script = "a = dram 1 x64\nb = dram 2 x64\nc = delay 90\nd = delay 90\ne = read 0.0.0 x100";
    expect_small(
        times_with(memories),
        script,
        &[("a", 82), ("b", 164), ("c", 90), ("d", 90), ("e", 1_100)],
    );
}

#[test]
fn the_link_takes_its_bytes_each_way() {
    // at 2 bytes a ps, 101 bytes take 50.5 ps
    let t = || times_with(|t| t.link_rate = 2_000_000_000_000);
    expect_small(t(), "a = in x101", &[("a", 51)]);
    expect_small(t(), "a = out x101", &[("a", 51)]);
    expect_small(times(), "a = in x101\nb = out x101", &[("a", 0), ("b", 0)]);
}

#[test]
fn one_way_of_the_link_serves_one_transfer_at_a_time() {
    let t = || times_with(|t| t.link_rate = 1_000_000_000_000);
    expect_small(t(), "a = in x100\nb = in x50", &[("a", 100), ("b", 150)]);
    expect_small(t(), "a = out x100\nb = out x50", &[("a", 100), ("b", 150)]);
}

#[test]
fn only_a_full_duplex_link_flows_both_ways_at_once() {
    let t = |full| {
        times_with(|t| {
            t.link_rate = 1_000_000_000_000;
            t.full_duplex = full;
        })
    };
    let script = "a = in x100\nb = out x70";
    let mut full = expect_small(t(true), script, &[("a", 100), ("b", 70)]);
    assert_eq!(full.statistics().link_busy, [Dur(100), Dur(70)]);
    let mut half = expect_small(t(false), script, &[("a", 100), ("b", 170)]);
    assert_eq!(half.statistics().link_busy, [Dur(100), Dur(70)]);
}

#[test]
fn the_link_serves_by_class_then_by_arrival() {
    let t = times_with(|t| t.link_rate = 1_000_000_000_000);
    // a is on the link; c (host read) goes before b and d (both gc)
    let script = "a = out x100 gc\nb = out x10 gc\nc = out x20 host_read\nd = out x30 gc";
    expect_small(t, script, &[("a", 100), ("c", 120), ("b", 130), ("d", 160)]);
}

#[test]
fn a_delay_takes_its_time_and_none_takes_none() {
    expect_small(
        times(),
        "at 5\na = delay 40\nb = delay 0\nc = delay 2 after a b",
        &[("a", 45), ("b", 5), ("c", 47)],
    );
}

// ---- slots of the write cache

#[test]
fn a_slot_is_as_good_as_another() {
    // b frees one slot at 5000, before a frees two at 5100, so the first wait ends with b, although
    // a was issued first
    let script = "
        a = program 0.0.0 x100
        b = program 2.0.0
        x = free 2 after a
        y = free 1 after b
        first = await 1
        second = await 2
        third = await 3
        at 6000
        late = await 3
        fourth = await 4
        z = delay 500
        w = free 1 after z";
    let times_of =
        [("first", 5_000), ("second", 5_100), ("third", 5_100), ("late", 6_000), ("fourth", 6_500)];
    expect_small(times(), script, &times_of);
}

#[test]
fn a_wait_for_slots_begins_when_what_it_names_is_complete() {
    let script = "a = delay 30\nb = delay 20\nx = free 1 after b\nw = await 1 after a";
    expect_small(times(), script, &[("w", 30)]);
}

/// Both waits end at 30, when the slot is freed, so the one with the lower number releases its read
/// first. The slot was freed after `w` had nothing else to wait for, in the same instant. A read
/// takes 1000 + 100, and the die serves one at a time.
#[test]
fn waits_that_a_slot_ends_go_on_in_the_order_of_their_numbers() {
    let script = "
        a = await 1
        b = delay 30
        x = free 1 after b
        w = await 1 after b
        late = read 0.0.1 x100 after w
        early = read 0.0.0 x100 after a";
    expect_small(times(), script, &[("a", 30), ("w", 30), ("early", 1_130), ("late", 2_230)]);
}

// ---- dies and channels

#[test]
fn one_die_serves_one_operation_at_a_time() {
    // the second page is sensed after the first has left, which takes 2 × (1000 + 100); the program
    // then takes 100 + 5000, and the erase 20000
    let script =
        "a = read 0.0.0 x100 gc\nb = read 0.1.0 x100 gc\nc = program 0.2.0 x100 gc\nd = erase 0.3";
    expect_small(times(), script, &[("a", 1_100), ("b", 2_200), ("c", 7_300), ("d", 27_300)]);
}

#[test]
fn two_dies_of_a_channel_sense_together_and_transfer_in_turn() {
    // both pages are sensed at 1000, and are out at 1000-1100 and 1100-1200
    expect_small(
        times(),
        "a = read 0.0.0 x100\nb = read 1.0.0 x100",
        &[("a", 1_100), ("b", 1_200)],
    );
}

#[test]
fn two_dies_of_a_channel_load_in_turn_and_program_together() {
    // the pages are in at 0-100 and 100-200, and each then takes tPROG
    expect_small(
        times(),
        "a = program 0.0.0 x100\nb = program 1.0.0 x100",
        &[("a", 5_100), ("b", 5_200)],
    );
}

#[test]
fn commands_take_turns_on_a_channel() {
    let t = || times_with(|t| t.command = Dur(30));
    // the commands take 0-30 and 30-60, the pages are sensed at 1030 and 1060, and are out at
    // 1030-1130 and 1130-1230
    expect_small(t(), "a = read 0.0.0 x100\nb = read 1.0.0 x100", &[("a", 1_130), ("b", 1_230)]);
    // the commands take 0-30 and 30-60, and each erase then takes tBERS
    expect_small(t(), "a = erase 0.0\nb = erase 1.0", &[("a", 20_030), ("b", 20_060)]);
    // a program's command and data are one use of the channel, so the channel is used at 0-130 and
    // 130-160
    expect_small(t(), "a = program 0.0.0 x100\nb = erase 1.0", &[("a", 5_130), ("b", 20_160)]);
}

#[test]
fn two_channels_share_nothing() {
    let t = times_with(|t| t.command = Dur(30));
    let script =
        "a = read 0.0.0 x100\nb = read 2.0.0 x100\nc = program 1.0.0 x100\nd = program 3.0.0 x100";
    // each channel carries a command at 0-30 (read), 30-160 (program with data), and a page at
    // 1030-1130
    expect_small(t, script, &[("a", 1_130), ("b", 1_130), ("c", 5_160), ("d", 5_160)]);
}

#[test]
fn a_die_keeps_a_sensed_page_until_the_channel_takes_it() {
    // a and b are sensed at 1000, and go out at 1000-1500 and 1500-1600; c is sensed after that
    let script = "a = read 0.0.0 x500\nb = read 1.0.0 x100\nc = read 1.1.0 x100";
    expect_small(times(), script, &[("a", 1_500), ("b", 1_600), ("c", 2_700)]);
}

#[test]
fn a_die_keeps_a_program_that_waits_for_the_channel() {
    // b holds die 1 from 0 on and waits for the channel until 3000, and the host read c waits for b
    let script = "a = program 0.0.0 x3000\nb = program 1.0.0 x100\nc = read 1.1.0 x100";
    expect_small(times(), script, &[("a", 8_000), ("b", 8_100), ("c", 9_200)]);
}

#[test]
fn an_erase_without_command_time_needs_no_channel() {
    expect_small(times(), "a = program 0.0.0 x3000\nb = erase 1.0", &[("a", 8_000), ("b", 20_000)]);
}

#[test]
fn an_operation_starts_when_all_that_it_names_are_complete() {
    // a is complete at 1100 and b at 5100, so c starts at 5100
    let script = "a = read 0.0.0 x100\nb = program 2.0.0 x100\nc = read 0.1.0 x100 after a b";
    expect_small(times(), script, &[("a", 1_100), ("b", 5_100), ("c", 6_200)]);
}

// ---- priorities

/// Five operations of five classes wait for die 0, which is busy until 1100. The lowest class is
/// issued first.
const FIVE_CLASSES: &str = "
    first = read 0.0.0 x100
    idle = read 0.1.0 x100 idle
    gc = read 0.2.0 x100 gc
    write = read 0.3.0 x100 host_write
    map = read 0.4.0 x100 map
    host = read 0.5.0 x100 host_read";

#[test]
fn a_die_serves_host_reads_first_and_idle_work_last() {
    let order = [("host", 2_200), ("map", 3_300), ("write", 4_400), ("gc", 5_500), ("idle", 6_600)];
    expect_small(times(), FIVE_CLASSES, &order);
}

#[test]
fn priorities_can_be_reversed() {
    let t = times_with(|t| t.rank = [4, 3, 2, 1, 0]);
    let order = [("idle", 2_200), ("gc", 3_300), ("write", 4_400), ("map", 5_500), ("host", 6_600)];
    expect_small(t, FIVE_CLASSES, &order);
}

#[test]
fn within_a_class_a_die_serves_in_order_of_arrival() {
    // b arrives before a, which arrives at 50, and c arrives after both at 60
    let script = "
        first = read 0.0.0 x100
        later = delay 50
        a = read 0.1.0 x100 after later
        at 40
        b = read 0.2.0 x100
        at 60
        c = read 0.3.0 x100";
    expect_small(times(), script, &[("b", 2_200), ("a", 3_300), ("c", 4_400)]);
}

#[test]
fn a_channel_serves_by_class_then_by_arrival() {
    // a is out at 1000-2000. b and d (gc) are sensed at 1000 and c (host read, upper page) at 1700,
    // so the order is c, b, d
    let script = "
        a = read 0.0.0 x1000
        b = read 1.0.0 x100 gc
        c = read 2.0.0 upper x100
        d = read 3.0.0 x100 gc";
    expect(
        &board(1, 4),
        times(),
        script,
        &[("a", 2_000), ("c", 2_100), ("b", 2_200), ("d", 2_300)],
    );
}

#[test]
fn what_has_begun_is_not_interrupted() {
    let script = "a = program 0.0.0 x100 idle\nat 1\nb = read 0.1.0 x100";
    expect_small(times(), script, &[("a", 5_100), ("b", 6_200)]);
}

// ---- equal instants

#[test]
fn operations_issued_together_arrive_in_order_of_number() {
    // the die is free, so a takes it before b, which has a higher class, arrives
    expect_small(
        times(),
        "a = read 0.0.0 x100 idle\nb = read 0.1.0 x100",
        &[("a", 1_100), ("b", 2_200)],
    );
}

#[test]
fn a_free_die_goes_to_what_waits_before_what_its_last_operation_released() {
    // at 1100, a releases the host read c and frees the die, for which only b waits at that moment
    let script = "a = read 0.0.0 x100\nb = read 0.1.0 x100 idle\nc = read 0.2.0 x100 after a";
    expect_small(times(), script, &[("a", 1_100), ("b", 2_200), ("c", 3_300)]);
}

#[test]
fn what_one_completion_releases_arrives_in_order_of_number() {
    // all operations wait for g; a takes the die, and b and c follow by class
    let script = "
        g = delay 10
        a = read 0.0.0 x100 gc after g
        b = read 0.1.0 x100 gc after g
        c = read 0.2.0 x100 after g";
    expect_small(times(), script, &[("a", 1_110), ("c", 2_210), ("b", 3_310)]);
}

#[test]
fn what_began_first_ends_first_at_one_instant() {
    // both delays end at 100, but y began first, so b is first on the die
    let script = "
        x = delay 60
        y = delay 100
        z = delay 40 after x
        a = read 0.0.0 x100 after z
        b = read 0.1.0 x100 after y";
    expect_small(times(), script, &[("b", 1_200), ("a", 2_300)]);
}

// ---- parameters

fn resolve(settings: &[(&str, &str)]) -> Result<Times, ConfigError> {
    let mut raw = RawConfig::default();
    let must =
        [("t_read", "25us"), ("t_program", "600us"), ("t_erase", "3ms"), ("channel_rate", "400MB")];
    must.iter().for_each(|(key, text)| raw.set(&format!("timing.{key}"), text, "test"));
    settings.iter().for_each(|(key, text)| raw.set(key, text, "test"));
    Times::from_params(&raw.resolve(&PARAMS.iter().collect::<Vec<_>>(), |_| None)?)
}

/// Returns the times of a program by kind of page.
fn kinds(t: &Times) -> [Dur; PAGE_KINDS] {
    *t.program.first_chunk().expect("steps follow")
}

#[test]
fn page_kinds_that_are_not_given_are_as_the_one_before() {
    let us = Dur::from_us;
    let levels = |lower, middle, upper, top| [us(lower), us(middle), us(upper), us(top), us(0)];
    let t = resolve(&[]).unwrap();
    let expected = (levels(25, 25, 25, 25), levels(600, 600, 600, 600), us(3_000));
    assert_eq!((t.read, kinds(&t), t.erase), expected);
    assert_eq!(t.program[PAGE_KINDS..], [us(0); STEPS_MAX], "steps have no default");
    let t =
        resolve(&[("timing.t_read_middle", "30us"), ("timing.t_program_upper", "2ms")]).unwrap();
    let expected = (levels(25, 30, 30, 30), levels(600, 600, 2_000, 2_000));
    assert_eq!((t.read, kinds(&t)), expected);
    let t = resolve(&[
        ("timing.t_read_upper", "40us"),
        ("timing.t_read_top", "50us"),
        ("timing.t_read_slc", "20us"),
        ("timing.t_program_top", "3ms"),
        ("timing.t_program_slc", "75us"),
    ])
    .unwrap();
    assert_eq!(t.read, [us(25), us(25), us(40), us(50), us(20)]);
    assert_eq!(kinds(&t), [us(600), us(600), us(600), us(3_000), us(75)]);
    let t = resolve(&[
        ("timing.t_program_first", "200us"),
        ("timing.t_program_second", "300us"),
        ("timing.t_program_third", "400us"),
    ])
    .unwrap();
    assert_eq!(t.program[PAGE_KINDS..], [us(200), us(300), us(400)]);
}

#[test]
fn every_parameter_reaches_its_time() {
    let t = resolve(&[
        ("timing.t_command", "1us"),
        ("timing.cache_program", "true"),
        ("timing.suspend", "erase"),
        ("timing.t_suspend", "2us"),
        ("timing.t_resume", "3us"),
        ("timing.suspends_max", "4"),
        ("timing.suspended_max", "5us"),
        ("memory.nvm_read_latency", "5ns"),
        ("memory.nvm_write_latency", "6ns"),
        ("memory.nvm_rate", "10GB"),
        ("memory.dram_latency", "7ns"),
        ("memory.dram_rate", "8GB"),
        ("host.link_rate", "9GB"),
        ("host.full_duplex", "false"),
    ])
    .unwrap();
    assert_eq!(
        (t.command, t.channel_rate, t.cache_read, t.cache_program),
        (Dur::from_us(1), 400_000_000, false, true)
    );
    let s = t.suspend;
    assert_eq!(
        (s.program, s.erase, s.latency, s.resume, s.max, s.longest),
        (false, true, Dur::from_us(2), Dur::from_us(3), 4, Dur::from_us(5))
    );
    assert_eq!(t.memory[0], MemoryTimes::default());
    assert_eq!(
        t.memory[1],
        MemoryTimes { read: Dur::from_ns(7), write: Dur::from_ns(7), rate: 8_000_000_000 }
    );
    assert_eq!(
        t.memory[2],
        MemoryTimes { read: Dur::from_ns(5), write: Dur::from_ns(6), rate: 10_000_000_000 }
    );
    let mram = resolve(&[("memory.nvm", "stt-mram"), ("memory.nvm_write_latency", "6ns")])
        .unwrap()
        .memory[2];
    assert_eq!(
        mram,
        MemoryTimes { read: Dur::from_ns(35), write: Dur::from_ns(6), rate: 3_000_000_000 }
    );
    assert_eq!((t.link_rate, t.full_duplex), (9_000_000_000, false));
}

#[test]
fn the_default_order_is_host_reads_map_host_writes_collection_idle() {
    assert_eq!(resolve(&[]).unwrap().rank, [0, 1, 2, 3, 4]);
    let t = resolve(&[("timing.priority", "idle,gc,host_write,map,host_read")]).unwrap();
    assert_eq!((t.rank[Class::Idle as usize], t.rank[Class::HostRead as usize]), (0, 4));
    assert_eq!(resolve(&[("timing.priority", "idle,gc")]).unwrap_err().key, "timing.priority");
}
