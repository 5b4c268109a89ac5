//! Tests that a read of the map becomes a host read as soon as a host read waits for it. The
//! comments of each test work out the expected times by hand. tR is 1000 ps, tPROG is 5000 ps, and
//! a byte takes 1 ps on a channel. A suspension takes 50 ps, and a resume 20 ps.

use crate::common::{board, expect, expect_small, times, times_with};
use flashatlas_timing::{Suspend, Times};
use flashatlas_types::Dur;

fn suspends() -> Times {
    let suspend = Suspend {
        program: true,
        erase: true,
        latency: Dur(50),
        resume: Dur(20),
        max: 2,
        longest: Dur(0),
        ..Suspend::default()
    };
    times_with(|t| t.suspend = suspend)
}

#[track_caller]
fn expect_suspends(script: &str, expected: &[(&str, u64)], count: u64) {
    let mut player = expect_small(suspends(), script, expected);
    assert_eq!(player.statistics().suspends, count, "suspensions");
}

/// A program on die 0. Its cells work from 100 on, and still need 4000 at 1100.
const PROGRAM: &str = "a = program 0.0.0 x100\nat 1100\n";

#[test]
fn a_map_read_suspends_once_a_host_read_waits_for_it() {
    // m is sensed at 1150-2150 and out at 2250; a ends at 2250 + 20 + 4000; h is on die 1 from 2250
    // on, sensed at 3250 and out at 3350
    let script = format!("{PROGRAM} m = read 0.1.0 x100 map\nh = read 1.1.0 x100 after m");
    expect_suspends(&script, &[("m", 2_250), ("a", 6_270), ("h", 3_350)], 1);
    // without a host read, m waits for a and takes 5100-6200
    expect_suspends(
        &format!("{PROGRAM} m = read 0.1.0 x100 map"),
        &[("a", 5_100), ("m", 6_200)],
        0,
    );
    // m also waits for a if no host read waits for m, but only a write or a read of collection
    for write in ["program 1.1.0 x100", "in x100", "delay 5", "read 1.1.0 x100 gc"] {
        let script = format!("{PROGRAM} m = read 0.1.0 x100 map\nh = {write} after m");
        expect_suspends(&script, &[("a", 5_100), ("m", 6_200)], 0);
    }
}

#[test]
fn the_read_behind_the_map_read_shares_its_suspension() {
    // m is sensed at 1150-2150 and out at 2250, when h arrives at the same die; h is sensed at 3250
    // and out at 3350; a ends at 3350 + 20 + 4000
    let script = format!("{PROGRAM} m = read 0.1.0 x100 map\nh = read 0.2.0 x100 after m");
    expect_suspends(&script, &[("m", 2_250), ("h", 3_350), ("a", 7_370)], 1);
    // a lookup of 7 comes between; a resumes at 2250 and is suspended at 2257, when 20 + 4000 - 7
    // are left; h takes 2307-3407, and a ends at 3407 + 20 + 4013
    let script = format!(
        "{PROGRAM} m = read 0.1.0 x100 map
        s = delay 7 after m
        h = read 0.2.0 x100 after s"
    );
    expect_suspends(&script, &[("m", 2_250), ("h", 3_407), ("a", 7_440)], 2);
}

#[test]
fn a_map_read_that_stands_in_its_queue_suspends_when_a_host_read_begins_to_wait_for_it() {
    // m arrives at 1100 and h at 2000, when a has 3100 left; m takes 2050-3150, a ends at 3150 + 20
    // + 3100, and h takes 3150-4250
    let script = format!("{PROGRAM} m = read 0.1.0 x100 map\nat 2000\nh = read 1.1.0 x100 after m");
    expect_suspends(&script, &[("m", 3_150), ("a", 6_270), ("h", 4_250)], 1);
}

#[test]
fn a_map_read_that_is_under_way_only_changes_its_rank() {
    // g and m are reads of the map and are sensed at 1000, while b uses their channel at 500-2500.
    // h waits for m from 600 on, so m leaves at 2500-2600, before g, which waited first; h is
    // sensed at 3600
    let script = "
        g = read 0.1.0 x100 map
        m = read 1.1.0 x100 map
        at 500
        b = program 2.0.0 x2000
        at 600
        h = read 3.1.0 x100 after m";
    let four = board(1, 4);
    expect(&four, times(), script, &[("m", 2_600), ("g", 2_700), ("h", 3_700)]);
    // m also goes before g if both already wait for the channel, as they do from 1000 on
    let script = script.replace("at 600", "at 1200");
    expect(&four, times(), &script, &[("m", 2_600), ("g", 2_700), ("h", 3_700)]);
    // without h, they leave in the order in which they arrived
    let script = script.split("at 1200").next().unwrap();
    expect(&four, times(), script, &[("g", 2_600), ("m", 2_700)]);
}

#[test]
fn what_the_host_read_waits_through_hands_it_on() {
    // a lookup in SRAM, a fixed time and a join come between m and h; m ends at 2250 as before, and
    // h begins 7 later
    let script = format!(
        "{PROGRAM} m = read 0.1.0 x100 map
        s = sram 1 x8 after m
        d = delay 7 after s
        j = join after d
        h = read 1.1.0 x100 after j"
    );
    expect_suspends(&script, &[("m", 2_250), ("a", 6_270), ("h", 3_357)], 1);
    // h is data that goes to the host
    let script = format!("{PROGRAM} m = read 0.1.0 x100 map\nh = out x100 after m");
    expect_suspends(&script, &[("m", 2_250), ("h", 2_250)], 1);
    // h is the end of a read
    let script = format!("{PROGRAM} m = read 0.1.0 x100 map\nh = complete host_read after m");
    expect_suspends(&script, &[("m", 2_250), ("h", 2_250)], 1);
    // the end of a write does not raise m: the host sends the next read after this end, so the
    // drive does not have this read yet
    let script = format!(
        "{PROGRAM} m = read 0.1.0 x100 map
        c = complete host_write after m
        d = delay 5 after c
        h = read 1.1.0 x100 after d"
    );
    expect_suspends(&script, &[("m", 6_200), ("c", 6_200), ("h", 7_305)], 0);
}

#[test]
fn a_chain_inherits_as_a_whole_and_programs_in_it_keep_their_class() {
    // a map page is merged and written before the wanted map page is read. r takes 1150-2250. w, a
    // program of the map, is in at 2250-2350 and ends at 7350. b is in at 4900-5000 and has 2650
    // left at 7350, when m suspends it. m takes 7400-8500, and h ends at 9600
    let script = "
        a = program 0.0.0 x100
        at 1100
        r = read 0.1.0 x100 map
        w = program 1.1.0 x100 map after r
        m = read 2.1.0 x100 map after w
        h = read 3.1.0 x100 after m
        at 4900
        b = program 2.0.0 x100";
    let all = [("r", 2_250), ("w", 7_350), ("m", 8_500), ("h", 9_600), ("a", 6_270)];
    let mut player = expect(&board(2, 2), suspends(), script, &all);
    assert_eq!(player.statistics().suspends, 2);
    // w waits for program c on its die, as every program does. r ends at 1100. c is in at 2000-2100
    // and ends at 7100. w also arrives at 2000, is in at 7100-7200 and ends at 12200. m ends at
    // 13300 and h at 14400
    let script = "
        r = read 0.1.0 x100 map
        at 2000
        c = program 1.0.0 x100
        w = program 1.1.0 x100 map after r
        m = read 2.1.0 x100 map after w
        h = read 3.1.0 x100 after m";
    expect(&board(2, 2), suspends(), script, &[("c", 7_100), ("w", 12_200), ("h", 14_400)]);
}

#[test]
fn a_read_of_a_page_that_is_programmed_waits_for_what_its_program_waits_for() {
    // w programs the page that h reads, and waits for r; r takes 1150-2250, w is in at 2250-2350
    // and ends at 7350, and h ends at 8450
    let script = format!(
        "{PROGRAM} r = read 0.1.0 x100 map
        w = program 1.1.0 x100 map after r
        h = read 1.1.0 x100"
    );
    expect_suspends(&script, &[("r", 2_250), ("a", 6_270), ("w", 7_350), ("h", 8_450)], 1);
}

#[test]
fn a_map_read_is_ranked_as_a_host_read_where_nothing_is_suspended() {
    // m arrives at the die before the host read b, and becomes a host read when h arrives. It then
    // goes after b, which is already among the host reads, and before n. a ends at 5100, b at 6200,
    // m at 7300 and n at 8400
    let script = "
        a = program 0.0.0 x100
        n = read 0.3.0 x100 map
        m = read 0.1.0 x100 map
        b = read 0.2.0 x100
        h = read 2.1.0 x100 after m";
    let all = [("a", 5_100), ("b", 6_200), ("m", 7_300), ("n", 8_400), ("h", 8_400)];
    expect_small(times(), script, &all);
    // if the map has the highest rank, a read that inherits goes later: n ends at 6200, b at 7300
    // and m at 8400
    let map_first = times_with(|t| t.rank = [1, 0, 2, 3, 4]);
    expect_small(map_first, script, &[("n", 6_200), ("b", 7_300), ("m", 8_400), ("h", 9_500)]);
}
