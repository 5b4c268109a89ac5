//! Merges calculated by hand on a very small drive: eight logical blocks of four pages on one die.
//! `script.rs` describes the language of the scripts.

mod script;

use flashatlas_device::Device;
use flashatlas_ftl::MergeClass;
use flashatlas_types::Dur;
use script::{Script, play};

/// FAST has one sequential log block, and two for random writes.
const FAST: &[&str] = &["ftl.scheme=fast", "ftl.log_blocks=3"];

#[test]
fn a_blank_drive_is_written_in_place_and_unwritten_pages_are_never_copied() {
    play(
        FAST,
        "w 4 5 7
        1: dd.d
        w 6                 -- the place is still erased, and any order is allowed here
        1: dddd
        = in place 4
        w 8  -- the place of this first page is erased: no sequential log block
        2: d...
        = in place 1
        w 8                 -- now this page opens one
        2: l...
        w 4  -- logical block 1 opens one: logical block 2 has no other page to copy
        2: d...
        1: lddd
        = partial 1, erases 1
        w 8                 -- the merge copies three pages
        1: dddd
        = partial 1, copies 3, erases 1",
    );
}

#[test]
fn a_log_block_in_order_is_switched() {
    play(
        FAST,
        "fill
        w 4 5 6 7
        1: llll
        = nothing            -- a complete log block waits
        w 8
        1: dddd
        2: lddd
        = switch 1, erases 1",
    );
}

#[test]
fn a_complete_log_block_is_switched_before_a_page_of_it_changes() {
    play(
        FAST,
        "fill
        w 4 5 6 7 6
        1: ddld              -- the new version is a random page
        = switch 1, erases 1",
    );
}

#[test]
fn a_sequential_run_broken_after_one_two_or_three_pages() {
    // forwards: the page that breaks the run is written to its place during the partial merge, and
    // the other pages are copied
    play(FAST, "fill\n w 4 6\n 1: dddd\n = partial 1, copies 2, erases 1");
    play(FAST, "fill\n w 4 7\n 1: dddd\n = partial 1, copies 2, erases 1");
    play(FAST, "fill\n w 4 5 7\n 1: dddd\n = partial 1, copies 1, erases 1");
    // backwards: a new version of a page in the log block needs a full merge, which copies the
    // three other pages
    play(FAST, "fill\n w 4 5 5\n 1: dddd\n = full 1, data full 1, copies 3, erases 2");
    play(FAST, "fill\n w 4 5 6 5\n 1: dddd\n = full 1, data full 1, copies 3, erases 2");
    // at the first page: the run starts again
    play(FAST, "fill\n w 4 4\n 1: lddd\n = partial 1, copies 3, erases 1");
    play(FAST, "fill\n w 4 5 6 4\n 1: lddd\n = partial 1, copies 1, erases 1");
    // a page of another logical block does not break the run
    play(FAST, "fill\n w 4 5 10 6 7\n 1: llll\n 2: ddld\n = nothing");
}

#[test]
fn the_last_page_of_a_logical_block_and_the_first_of_the_next_are_strangers() {
    play(FAST, "fill\n w 7\n 1: dddl\n w 8\n 2: lddd\n w 9\n 2: lldd\n = nothing");
}

#[test]
fn a_random_log_block_takes_one_full_merge_for_each_associated_logical_block() {
    play(
        FAST,
        "fill
        w 5 9 6 13           -- first log block: logical blocks 1, 2, 3
        w 17 21 25 29        -- second log block
        = nothing
        w 5  -- no room: the oldest log block is reclaimed, then 5 is written to the log
        1: dldd
        2: dddd
        3: dddd
        = full 1, data full 3, copies 12, erases 4
        w 1 2 3
        = nothing
        w 1                  -- the second log block is the oldest now
        4: dddd
        7: dddd
        = full 1, data full 4, copies 16, erases 5",
    );
}

#[test]
fn a_log_block_without_a_valid_page_is_dead() {
    play(FAST, "fill\n w 5 5 5 5 5 5 5 5\n = nothing\n w 5\n = dead 1, erases 1\n 1: dldd");
    // trims invalidate all pages of a log block; a logical block without mapped pages loses its
    // data block immediately
    play(
        FAST,
        "fill
        w 5 6 7 5
        t 5 6 7
        1: d...
        = nothing
        t 4
        1: ....
        = erases 1
        w 9 9 9 9
        w 13
        = dead 1, erases 1
        w 4
        1: d...
        = in place 1",
    );
    let eager = ["ftl.scheme=fast", "ftl.log_blocks=3", "ftl.eager_dead=true"];
    play(&eager, "fill\n w 5 6 7 5 9\n = nothing\n t 5 6 7\n = dead 1, erases 1");
}

#[test]
fn a_logical_block_that_is_both_sequential_and_random() {
    play(
        FAST,
        "fill
        w 6 7                -- random
        w 4 5                -- sequential
        1: llll
        w 6                  -- continues the run: the random copy is superseded
        1: llll
        w 9 13 17 21 25 29   -- the log is full
        = nothing
        w 10  -- the oldest has 7, 9, 13: partial merge of block 1, full merges of 2 and 3
        1: dddd
        = partial 1, full 1, data full 2, copies 9, erases 4",
    );
}

#[test]
fn under_strict_order_a_page_passed_over_goes_to_the_log() {
    let strict = ["ftl.scheme=fast", "ftl.log_blocks=3", "nand.program_order=strict"];
    play(
        &strict,
        "w 4 6\n 1: d.d.\n = in place 2\n w 5\n 1: dld.\n = detours 1\n w 7\n 1: dldd\n = in place \
         1",
    );
}

/// BAST has two log blocks, each bound to one logical block.
const BAST: &[&str] = &["ftl.scheme=bast", "ftl.log_blocks=2"];

#[test]
fn bast_merges_the_log_block_that_was_written_least_recently() {
    play(
        BAST,
        "fill
        w 5 9 5
        = nothing
        w 13  -- reclaims the log block of block 2, which does not begin with page 8
        2: dddd
        1: dldd
        = full 1, data full 1, copies 4, erases 2
        w 4                  -- block 1 has a log block with room
        = nothing
        w 6                  -- fills this log block
        = nothing
        w 7                  -- the log block is full: it is merged before the write
        1: dddl
        = full 1, data full 1, copies 4, erases 2",
    );
}

#[test]
fn bast_switches_and_merges_in_part() {
    play(BAST, "fill\n w 4 5 6 7\n 1: llll\n = nothing\n w 4\n 1: lddd\n = switch 1, erases 1");
    play(BAST, "fill\n w 4 5 8 12\n 1: dddd\n = partial 1, copies 2, erases 1");
    play(BAST, "fill\n w 4 4 8 12\n 1: dddd\n = full 1, data full 1, copies 4, erases 2");
}

#[test]
fn sast_shares_log_blocks_in_a_group_only() {
    // groups have two logical blocks and up to two log blocks; there are three log blocks in all
    let sast =
        ["ftl.scheme=sast", "ftl.log_blocks=3", "ftl.group_blocks=2", "ftl.group_log_blocks=2"];
    play(
        &sast,
        "fill
        w 1 5 2 6            -- group 0 fills its first log block with logical blocks 0 and 1
        w 1                  -- and opens its second log block
        w 9                  -- group 1
        = nothing
        w 17  -- group 2: no free log block; group 0, the least recent, gives up its oldest
        0: dddd              -- the page in the group's second log block is merged too
        1: dddd
        = full 1, data full 2, copies 8, erases 3",
    );
    play(
        &sast,
        "fill\n w 1 5 2 6\n w 3 9 17\n 0: dddd\n 1: dddd\n = full 1, data full 2, copies 8, erases \
         3",
    );
}

#[test]
fn faster_gives_valid_pages_a_second_chance_and_isolates_cold_ones() {
    // log blocks: one sequential, two random, and three for isolation
    let faster = ["ftl.scheme=faster", "ftl.log_blocks=6", "ftl.isolation_interval=64"];
    play(
        &faster,
        "fill
        w 5 9 13 5           -- three valid pages
        = nothing
        w 17  -- the second block opens and receives the valid pages: 9, 13 and 5
        = moved 1, moves 3, erases 1
        1: dldd
        w 6  -- full again: 9, 13, 5 on their second chance are isolated, 17 is copied
        = moved 1, moves 4, erases 1
        w 9                  -- this update supersedes the isolated copy
        = nothing",
    );
    // all pages are valid and no page is on its second chance: the block is spared once
    play(
        &["ftl.scheme=faster", "ftl.log_blocks=7", "ftl.isolation_blocks=3"],
        "fill
        w 5 9 13 17          -- all valid
        w 6 6 6 6  -- one page is valid; all pages of the first log block get a second chance
        = nothing
        w 21                 -- the first block is spared, the valid page of the second is moved
        = moved 1, moves 1, erases 1",
    );
    // a run of more than two pages starts in the middle of a logical block; the earlier pages of
    // the logical block are copied in
    play(
        &["ftl.scheme=faster", "ftl.log_blocks=7", "ftl.sequential_pages=2"],
        "fill
        w 5 6
        = nothing
        w 7  -- the third page of a run: a sequential log block gets 4, 5, 6 and then 7
        1: llll
        = copies 3
        w 8
        1: dddd
        = switch 1, erases 1",
    );
}

#[test]
fn superblock_collects_inside_first() {
    // there are two superblocks of four logical blocks, and two blocks for updates
    let two = ["ftl.scheme=superblock", "ftl.log_blocks=2", "ftl.superblock_blocks=4"];
    play(
        &two,
        "fill
        w 4 5 6 7            -- all pages of one block are superseded
        w 8                  -- the second block for updates
        = nothing
        w 12 16  -- 12 has room; superblock 1 cannot be collected, so superblock 0 is
        = dead 1, erases 1",
    );
    let one = ["ftl.scheme=superblock", "ftl.log_blocks=1", "ftl.superblock_blocks=4"];
    play(
        &one,
        "fill
        w 4 5 6 7 9
        = dead 1, erases 1   -- the block of 4 to 7 was erased for another update block
        w 13 1 2
        = nothing
        w 10  -- the two valid pages of the first block move to the reserve, and so does 10
        = moved 1, moves 2, erases 1
        w 14
        = nothing",
    );
}

/// LAST has one block for sequential requests, one hot block and two cold blocks. Requests of two
/// pages are sequential.
const LAST: &[&str] = &[
    "ftl.scheme=last",
    "ftl.log_blocks=4",
    "ftl.sequential_blocks=1",
    "ftl.hot_blocks=1",
    "ftl.cold_blocks=2",
    "ftl.sequential_pages=2",
];

#[test]
fn last_keeps_sequential_requests_apart_and_fills_gaps_in_a_partial_merge() {
    play(
        LAST,
        "fill
        r 5 2                -- sequential, from the middle of logical block 1: page 4 is a gap
        1: dlld
        w 7                  -- sequential too, because it continues the request
        1: dlll
        = nothing
        r 8 2                -- another logical block: block 1 is merged, and page 4 is copied
        1: dddd
        = partial 1, copies 1, erases 1
        r 8 4                -- from the start again, but 8 is already in the log block
        2: llll
        = partial 1, copies 2, erases 1
        r 12 2
        2: dddd
        = switch 1, erases 1",
    );
    let strict: Vec<&str> = LAST.iter().copied().chain(["nand.program_order=strict"]).collect();
    play(
        &strict,
        "fill
        r 5 3
        r 8 2                -- page 4 cannot be programmed after page 5, so a full merge
        1: dddd
        = full 1, data full 1, copies 4, erases 2, detours 1",
    );
}

#[test]
fn last_moves_hot_pages_to_the_cold_partition_and_merges_the_cheapest() {
    play(
        LAST,
        "fill
        w 5 9 13             -- cold: three pages of a block of four
        w 5 9                -- hot: updated within the window of four
        = nothing
        w 5 9                -- the hot block is full
        = nothing
        w 13 13 13  -- 13 was written three random writes ago: hot; 5 and 9 leave the hot block
        1: dldd
        = moved 1, moves 2, erases 1
        w 17 21              -- the second cold block is full
        = nothing
        w 25                 -- the first has no valid page, because 13 also moved to the hot block
        = dead 1, erases 1",
    );
}

#[test]
fn last_takes_the_cold_block_of_least_merge_cost() {
    play(
        LAST,
        "fill
        w 5 9 13 17          -- four logical blocks
        w 21 25 29 22        -- three logical blocks
        = nothing
        w 1
        5: dddd
        1: dldd
        = full 1, data full 3, copies 12, erases 4",
    );
}

/// MAST has one block for sequential writes, two locality blocks, two hot and three cold blocks.
/// The sizes are fixed.
const MAST: &[&str] = &[
    "ftl.scheme=mast",
    "ftl.log_blocks=8",
    "ftl.sequential_blocks=1",
    "ftl.locality_blocks=2",
    "ftl.hot_blocks=2",
    "ftl.cold_blocks=3",
    "ftl.resize_window=0",
];

fn mast(more: &[&'static str]) -> Vec<&'static str> {
    MAST.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn mast_takes_a_page_updated_in_the_locality_area_for_hot() {
    play(
        MAST,
        "fill
        w 5 9 13 17          -- the locality area's first block
        w 5 9 13 17          -- all hot: the first block is dead
        w 21 22 25 26        -- the second block
        = nothing
        w 29                 -- the dead block is erased
        = dead 1, erases 1",
    );
}

#[test]
fn mast_migrates_a_full_block_and_moves_what_little_another_holds() {
    play(
        MAST,
        "fill
        w 5 9 13 17          -- all valid
        w 21 25 29 22
        = nothing
        w 1                  -- the first block moves to the cold area without a copy
        = migrated 1
        w 2 3 21 25          -- 21 and 25 are hot: half of the second block stays valid
        w 23 10  -- the third is full; valid pages of the second (below 3/4) move to the cold area
        = moved 1, moves 2, erases 1",
    );
    play(
        &mast(&["ftl.migrate=copy"]),
        "fill\n w 5 9 13 17 21 25 29 22\n w 1\n = moved 1, moves 4, erases 1",
    );
}

#[test]
fn mast_merges_the_cold_block_with_the_fewest_associated_logical_blocks() {
    // three blocks migrate; the second and the third have two pages of each logical block
    let filled = "fill
        w 5 9 13 17
        w 21 22 25 26
        w 29 30 1 2
        w 6 10 14 18
        w 23 27 31 3
        = migrated 3
        5: dlll
        1: dlld";
    // the second and the third block are associated with two logical blocks: the older block is
    // merged
    play(
        MAST,
        &format!(
            "{filled}\n w 7 11 15 19\n = full 1, data full 2, copies 8, erases 3, migrated 1\n 5: \
             dddd"
        ),
    );
    // the most valid pages count first, but all blocks have four; then the fewest associated
    // logical blocks count
    play(
        &mast(&["ftl.cold_victim=valid"]),
        &format!(
            "{filled}\n w 7 11 15 19\n = full 1, data full 2, copies 8, erases 3, migrated 1\n 5: \
             dddd"
        ),
    );
}

#[test]
fn mast_merges_in_idle_time_one_logical_block_after_the_other() {
    let filled = "fill
        w 5 9 13 17
        w 21 25 29 22
        w 1 6 10 14
        = migrated 1";
    // the cold area can open two blocks but must be able to open three, so all four logical blocks
    // of its block are merged
    play(
        &mast(&["ftl.idle_log_blocks=3"]),
        &format!("{filled}\n idle\n 4: dddd\n = full 1, data full 4, copies 16, erases 5"),
    );
    play(&mast(&["ftl.idle_log_blocks=2"]), &format!("{filled}\n idle\n = nothing"));
    play(&mast(&["ftl.idle_log_blocks=0"]), &format!("{filled}\n idle\n = nothing"));
}

/// Checks that a request that arrives in idle time waits for the merge of at most one logical
/// block.
#[test]
fn idle_merges_stop_when_a_request_arrives() {
    let mut state = Script::on(&mast(&["ftl.idle_log_blocks=3", "host.idle_after=1ms"]));
    for line in ["fill", "w 5 9 13 17", "w 21 25 29 22", "w 1", "= migrated 1"] {
        state.line(line);
    }
    state.settle();
    // a merge reads and programs four pages of 2 KiB and erases a block: 4 x (25 + 200) us, 1.5 ms
    // and the transfers sum to more than 2.4 ms
    let until = state.now.after(Dur::from_us(2_000));
    state.drive.idle(state.now, until).unwrap();
    state.now = until;
    state.line("w 2");
    let m = state.drive.ftl_report().merges.unwrap();
    assert_eq!(
        m.data_blocks[MergeClass::Full as usize],
        1,
        "one merge was begun, and no other merge followed"
    );
    assert_eq!(m.log_blocks.unwrap()[MergeClass::Full as usize], 0, "the log block is still there");
    state.line("idle");
    let m = state.drive.ftl_report().merges.unwrap();
    assert_eq!(
        m.data_blocks[MergeClass::Full as usize],
        4,
        "the other merges follow in the next idle time"
    );
    assert_eq!(m.log_blocks.unwrap()[MergeClass::Full as usize], 1);
}

#[test]
fn mast_moves_a_block_from_cold_to_locality_when_hot_pages_die_in_cold() {
    let mut state = Script::on(&mast(&["ftl.resize_window=16"]));
    let budgets = |state: &Script| {
        state.drive.ftl_report().areas.iter().map(|a| a.budget).collect::<Vec<_>>()
    };
    assert_eq!(budgets(&state), [1, 2, 2, 3]);
    // the fill ends two windows, and there is no log yet. The first eight of the next 16 pages fill
    // two blocks, which migrate. Later all pages of the first block are updated. Then half of the
    // cold area is valid, which is below 0.6
    for line in ["fill", "w 5 9 13 17", "w 21 25 29 22", "w 1 2 3", "w 5 9 13 17"] {
        state.line(line);
    }
    assert_eq!(budgets(&state), [1, 2, 2, 3], "15 pages");
    state.line("w 6");
    assert_eq!(budgets(&state), [1, 3, 2, 2]);
}
