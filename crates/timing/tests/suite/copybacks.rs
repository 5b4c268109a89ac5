//! Tests of copybacks. The comments work out the expected times by hand, in picoseconds: tR 1000
//! (1300 middle, 1700 upper, 400 in SLC mode), tPROG 5000, tBERS 20000, and a byte takes 1 ps on a
//! channel (see `common`).

use crate::common::{expect_small, times, times_with};
use flashatlas_timing::{PlaneReads, Suspend};
use flashatlas_types::Dur;

#[test]
fn a_copyback_takes_t_r_and_t_prog_and_only_the_changed_bytes_cross_the_channel() {
    // tR 0-1000, 16 bytes 1000-1016, tPROG 1016-6016
    let mut player = expect_small(times(), "a = copyback 0.1.0 x16 of 0.2.0", &[("a", 6_016)]);
    let s = player.statistics();
    assert_eq!((s.channel_busy[0], s.die_busy[0]), (Dur(16), Dur(6_000)));
    // the copy over the channel: tR, 100 bytes out, 100 bytes in, tPROG
    let script = "r = read 0.2.0 x100 gc\na = program 0.1.0 x100 gc after r";
    let mut player = expect_small(times(), script, &[("r", 1_100), ("a", 6_200)]);
    assert_eq!(player.statistics().channel_busy[0], Dur(200));
}

#[test]
fn commands_and_status_are_phases_on_the_channel() {
    let t = || times_with(|t| (t.command, t.status) = (Dur(7), Dur(3)));
    // command 0-7, tR 7-1007, status, command and 16 bytes 1007-1033, tPROG 1033-6033, status
    let mut player = expect_small(t(), "a = copyback 0.1.0 x16 of 0.2.0", &[("a", 6_036)]);
    let s = player.statistics();
    assert_eq!((s.channel_busy[0], s.die_busy[0]), (Dur(7 + 26 + 3), Dur(6_000)));
    // a word line: 7, 1000; 10, 1300; 10, 1700; 10 and 48 bytes, 5000; 3
    let script = "a = copyback 0.1.0 x48 of 0.2.0 0.2.0:middle 0.2.0:upper";
    let mut player = expect_small(t(), script, &[("a", 9_088)]);
    assert_eq!(player.statistics().channel_busy[0], Dur(7 + 10 + 10 + 58 + 3));
    // a fold of two pages in SLC mode into an upper page: 7, 400; 10, 400; 10 and 16, 8000; 3
    let script = "a = copyback 0.1.5 upper x16 of 0.2.0:slc 0.2.1:slc";
    expect_small(t(), script, &[("a", 8_846)]);
}

#[test]
fn the_channel_is_free_while_the_cells_of_a_copyback_work() {
    // die 1 is on the same channel: it senses and transfers while die 0 copies
    let script = "
        a = copyback 0.1.0 x16 of 0.2.0
        b = read 1.0.0 x900 gc
        c = program 2.0.0 x100";
    // b is on the channel from 1000 or 1016 to 1900 or 1916: a asked first, so it goes first
    expect_small(times(), script, &[("a", 6_016), ("b", 1_916), ("c", 5_100)]);
    // here the channel is taken at 1000, so the changed bytes wait until 3000
    let script = "
        b = program 1.0.0 x3000
        a = copyback 0.1.0 x16 of 0.2.0";
    expect_small(times(), script, &[("b", 8_000), ("a", 8_016)]);
}

#[test]
fn a_copyback_holds_its_die_between_its_phases() {
    // the host read arrives during tR, and waits until the page registers are free
    let script = "a = copyback 0.1.0 x16 of 0.2.0\nat 500\nb = read 0.3.0 x100";
    expect_small(times(), script, &[("a", 6_016), ("b", 7_116)]);
    let planes = times_with(|t| t.plane_reads = Some(PlaneReads { max: 0, same_kind: false }));
    expect_small(planes, script, &[("a", 6_016), ("b", 7_116)]);
    // with cache programs, the next program is not transferred during a copyback
    let caches = times_with(|t| t.cache_program = true);
    let script = "a = copyback 0.1.0 x16 of 0.2.0\nb = program 0.3.0 x100 gc";
    expect_small(caches, script, &[("a", 6_016), ("b", 11_116)]);
}

#[test]
fn the_program_of_a_copyback_is_suspended_and_its_sense_is_not() {
    let t = || {
        times_with(|t| {
            t.suspend = Suspend {
                program: true,
                latency: Dur(50),
                resume: Dur(20),
                max: 9,
                ..Suspend::default()
            }
        })
    };
    // suspended at 2000 with 4016 left; the read takes 2050-3150; then 4036 more
    let script = "a = copyback 0.1.0 x16 of 0.2.0\nat 2000\nb = read 0.3.0 x100";
    expect_small(t(), script, &[("b", 3_150), ("a", 7_186)]);
    // the read of 500 waits for the sense, and suspends tPROG as soon as that begins at 1016
    let script = "a = copyback 0.1.0 x16 of 0.2.0\nat 500\nb = read 0.3.0 x100";
    expect_small(t(), script, &[("b", 2_166), ("a", 7_186)]);
}

#[test]
fn a_copyback_waits_for_the_program_of_its_source_and_an_erase_waits_for_it() {
    // p 0-5100; a then 5100-11116; the erase of the source's block follows, of its own block too
    let script = "
        p = program 0.2.0 x100
        a = copyback 0.1.0 x16 of 0.2.0
        e = erase 0.2
        f = erase 0.1";
    expect_small(times(), script, &[("p", 5_100), ("a", 11_116), ("e", 31_116), ("f", 51_116)]);
    // behind a read until 1100, collection goes before idle work: the program of another page of
    // the source's block comes after the copyback, and the program of the source before it
    let behind = |page: u32| {
        format!(
            "busy = read 0.7.0 x100
            p = program 0.2.{page} x100 idle
            a = copyback 0.1.0 x16 of 0.2.0"
        )
    };
    expect_small(times(), &behind(1), &[("busy", 1_100), ("a", 7_116), ("p", 12_216)]);
    expect_small(times(), &behind(0), &[("busy", 1_100), ("p", 6_200), ("a", 12_216)]);
}

#[test]
fn a_read_waits_for_the_copyback_of_its_page_and_programs_of_its_block_keep_their_order() {
    // a 0-6016, then the host read of its page, then the next program of the block
    let script = "
        a = copyback 0.1.0 x16 of 0.2.0
        b = program 0.1.1 x100
        c = read 0.1.0 x100";
    // b is in the queue when a ends, and c arrives only then, so b takes the die first
    expect_small(times(), script, &[("a", 6_016), ("b", 11_116), ("c", 12_216)]);
}
