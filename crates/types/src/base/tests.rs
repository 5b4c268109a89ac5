//! Tests of bases on drives of several shapes, some of them with bad blocks.

use super::{Base, Filled, Held, Steady};
use crate::{AllocationOrder, BlockId, Cell, FrameId, Geometry, Layout, Lpn, Ppn, Rng, Seed, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// Returns a layout of `lanes` lanes with `blocks` blocks of `frames` frames of `slots` slots.
fn layout(lanes: u32, [blocks, frames, slots]: [u32; 3], logical_units: u32) -> Arc<Layout> {
    let geometry = Geometry {
        channels: lanes,
        ways: 1,
        dies: 1,
        planes: 1,
        blocks,
        pages: frames,
        page_bytes: slots * 512,
        spare_bytes: 64,
        cell: Cell::Slc,
    };
    let order = AllocationOrder::parse("CWDP").unwrap();
    Layout::new(geometry, Span::ONE, 512, order, logical_units).unwrap().into()
}

/// Returns all slots of a layout.
fn slots(layout: &Layout) -> impl Iterator<Item = Ppn> {
    (0..layout.slots()).map(Ppn)
}

/// Returns items in a random order.
fn shuffled<T>(items: impl Iterator<Item = T>, rng: &mut Rng) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    for end in (2..=items.len()).rev() {
        items.swap(end - 1, rng.place(end));
    }
    items
}

/// Draws a steady drive. About one in ten of its blocks is erased or bad, and each other block has
/// a random number of valid slots. Some blocks have none, and some have only valid slots.
fn drawn(lanes: u32, shape: [u32; 3], rng: &mut Rng) -> (Arc<Layout>, Vec<(BlockId, u32)>, Steady) {
    let blank = layout(lanes, shape, 1);
    let used = shuffled(blank.block_ids(), rng).into_iter().skip(blank.blocks() as usize / 10);
    let per_block = blank.slots_per_block;
    let blocks: Vec<(BlockId, u32)> = used
        .map(|block| {
            let valid = match rng.below(6) {
                0 => 0,
                1 => per_block,
                _ => rng.below(u64::from(per_block) + 1) as u32,
            };
            (block, valid)
        })
        .collect();
    let units = blocks.iter().map(|(_, valid)| valid).sum::<u32>();
    let layout = layout(lanes, shape, units);
    let steady = Steady::new(&layout, &blocks, rng);
    (layout, blocks, steady)
}

const SHAPES: &[(u32, [u32; 3])] = &[
    (1, [40, 1, 1]),
    (1, [9, 5, 3]),
    (4, [20, 8, 4]),
    (3, [11, 7, 1]),
    (2, [30, 64, 4]),
    (16, [6, 9, 12]),
    (1, [5, 1152, 16]),
];

#[test]
fn every_page_of_a_steady_drive_is_found_both_ways() {
    let mut rng = Rng::stream(Seed(1), "base");
    for &(lanes, shape) in SHAPES {
        let (layout, blocks, steady) = drawn(lanes, shape, &mut rng);
        let base = Base::Steady(steady.clone());
        for page in (0..layout.logical_units).map(Lpn) {
            assert_eq!(base.page_at(base.slot_of(page)), Some(Held::Valid(page)), "{shape:?}");
        }
        // all pages have slots of their own; the counts below show that no other slot is valid
        let mut valid: HashMap<BlockId, u32> = HashMap::new();
        for slot in slots(&layout) {
            let held = base.page_at(slot);
            let count = valid.entry(layout.block_of(slot)).or_default();
            *count += u32::from(matches!(held, Some(Held::Valid(_))));
            let is_full = blocks.iter().any(|&(block, _)| block == layout.block_of(slot));
            assert_eq!(held.is_some(), is_full, "{shape:?}");
        }
        for &(block, count) in &blocks {
            assert_eq!((valid[&block], steady.valid(block)), (count, count), "{shape:?}");
        }
        blocks_agree_with_their_slots(&base, &layout);
        let programmed = blocks.iter().flat_map(|&(block, _)| {
            let frames = layout.frames_of(block);
            (frames.start.0..frames.end.0).map(FrameId)
        });
        assert!(
            programmed
                .map(|frame| base.sequence(frame))
                .eq((1..).map(Some).take(blocks.len() * layout.frames_per_block as usize))
        );
    }
}

fn page_of(held: &Held) -> Option<Lpn> {
    if let Held::Valid(page) = *held { Some(page) } else { None }
}

/// Compares what a base says of whole blocks with what it says of their frames and slots.
fn blocks_agree_with_their_slots(base: &Base, layout: &Layout) {
    let mut programs = 0;
    for block in layout.block_ids() {
        let frames = (0..layout.frames_per_block).map(|index| layout.frame_in(block, index));
        let programmed: Vec<bool> = frames.map(|frame| base.sequence(frame).is_some()).collect();
        let count = base.programmed(block);
        assert!(programmed.iter().zip(0..).all(|(&is, index)| is == (index < count)), "{block}");
        programs += u64::from(count);
        let first = layout.block_slot(block).0;
        let asked: Vec<Option<Held>> =
            (first..first + layout.slots_per_block).map(|slot| base.page_at(Ppn(slot))).collect();
        let is_valid = |held: &Option<Held>| matches!(held, Some(Held::Valid(_)));
        for (slot, held) in (first..).map(Ppn).zip(&asked) {
            assert_eq!(base.is_valid(slot), is_valid(held), "slot {slot}");
        }
        assert_eq!(base.valid(block) as usize, asked.iter().filter(|held| is_valid(held)).count());
        let mut pages = Vec::new();
        base.for_each_page(block, |page| pages.push(page));
        pages.sort_unstable();
        let mut valid: Vec<Lpn> = asked.iter().flatten().filter_map(page_of).collect();
        valid.sort_unstable();
        assert_eq!(pages, valid, "block {block}");
        let mut decoded = Vec::new();
        base.decode(block, &mut decoded);
        assert!(decoded.into_iter().eq(asked.into_iter().flatten()), "block {block}");
    }
    assert_eq!(base.programs(), programs);
}

#[test]
fn the_valid_version_of_an_old_one_is_in_a_later_block() {
    let mut rng = Rng::stream(Seed(2), "base");
    for &(lanes, shape) in SHAPES {
        let (layout, blocks, steady) = drawn(lanes, shape, &mut rng);
        let place: HashMap<BlockId, usize> =
            blocks.iter().enumerate().map(|(place, &(block, _))| (block, place)).collect();
        let last = blocks.iter().rposition(|&(_, valid)| valid > 0).unwrap();
        let mut old = 0;
        for slot in slots(&layout) {
            let of = place.get(&layout.block_of(slot)).copied();
            match steady.page_at(slot) {
                Some(Held::Old(page)) => {
                    let valid = place[&layout.block_of(steady.slot_of(page))];
                    assert!(valid > of.unwrap(), "{shape:?}: slot {slot}");
                    old += 1;
                }
                Some(Held::Padding) => assert!(of.unwrap() >= last, "{shape:?}: slot {slot}"),
                Some(Held::Valid(_)) | None => {}
            }
        }
        assert!(old > 0, "{shape:?}");
    }
}

/// An old version belongs to each later page with the same probability. So the mean distance to its
/// valid version is half of the blocks that follow.
#[test]
fn old_versions_are_of_random_later_pages() {
    let shape = [100, 64, 4];
    let blocks: Vec<(BlockId, u32)> = (0..100).map(|block| (BlockId::new(block), 128)).collect();
    let layout = layout(1, shape, 12_800);
    let steady = Steady::new(&layout, &blocks, &mut Rng::stream(Seed(3), "base"));
    let (mut sum, mut expected, mut variance) = (0.0, 0.0, 0.0);
    for slot in slots(&layout) {
        let block = layout.block_of(slot).number();
        if let Some(Held::Old(page)) = steady.page_at(slot) {
            let later = f64::from(99 - block);
            sum += f64::from(layout.block_of(steady.slot_of(page)).number() - block);
            expected += (later + 1.0) / 2.0;
            variance += (later * later - 1.0) / 12.0;
        }
    }
    let off = (sum - expected).abs() / f64::sqrt(variance);
    assert!(off < 5.0, "{sum} rather than {expected}");
}

/// Compares the numbers of valid slots of frames with the hypergeometric distribution: all places
/// of the valid slots of a block are equally likely. The sum of squares may lie 5 standard
/// deviations above its mean.
#[test]
fn valid_slots_lie_at_random_places() {
    let mut rng = Rng::stream(Seed(4), "base");
    for (blocks, frames, per_frame) in [(4000, 16, 4), (500, 64, 4), (16, 4608, 4), (12, 2304, 8)] {
        let per_block = frames * per_frame;
        let counts: Vec<(BlockId, u32)> = (0..blocks)
            .map(|block| {
                (BlockId::new(block), per_block / 2 + rng.below(u64::from(per_block) / 2) as u32)
            })
            .collect();
        let units = counts.iter().map(|(_, valid)| valid).sum();
        let layout = layout(1, [blocks, frames, per_frame], units);
        let steady = Steady::new(&layout, &counts, &mut rng);
        let mut found = vec![0u32; per_frame as usize + 1];
        for frame in 0..layout.frames() {
            let first = layout.first_slot(FrameId(frame)).0;
            let is_valid = |slot: &u32| matches!(steady.page_at(Ppn(*slot)), Some(Held::Valid(_)));
            found[(first..first + per_frame).filter(is_valid).count()] += 1;
        }
        let mut expected = vec![0.0; found.len()];
        for &(_, valid) in &counts {
            // slot by slot, the chance that it is valid depends on the valid slots before it
            let mut chances = vec![1.0];
            for drawn in 0..per_frame {
                let mut next = vec![0.0; chances.len() + 1];
                for (k, chance) in (0..).zip(&chances) {
                    let p = f64::from(valid - k) / f64::from(per_block - drawn);
                    next[k as usize + 1] += chance * p;
                    next[k as usize] += chance * (1.0 - p);
                }
                chances = next;
            }
            for (sum, chance) in expected.iter_mut().zip(chances) {
                *sum += chance * f64::from(frames);
            }
        }
        let (mut square, mut freedom) = (0.0, -1.0);
        for (&found, &expected) in found.iter().zip(&expected).filter(|(_, mean)| **mean > 5.0) {
            square += (f64::from(found) - expected).powi(2) / expected;
            freedom += 1.0;
        }
        let bound = freedom + 5.0 * f64::sqrt(2.0 * freedom);
        assert!(freedom > 2.0 && square < bound, "{square}: {found:?}, {expected:?}");
    }
}

/// Compares the formula with a fill page by page.
#[test]
fn a_filled_drive_has_each_page_where_a_fill_puts_it() {
    let mut rng = Rng::stream(Seed(5), "base");
    for &(lanes, shape) in SHAPES {
        for spare in [0, 1, lanes * shape[2], lanes * shape[1] * shape[2] - 1] {
            let [blocks, frames, per_frame] = shape;
            let used = blocks.div_ceil(2);
            let units = (lanes * used * frames * per_frame).saturating_sub(spare).max(1);
            let layout = layout(lanes, shape, units);
            let order: Vec<Vec<BlockId>> = layout
                .lane_ids()
                .map(|lane| {
                    let mut blocks = shuffled(layout.lane_blocks(lane), &mut rng);
                    blocks.truncate(used as usize);
                    blocks
                })
                .collect();
            let base = Base::Filled(Filled::new(&layout, &order));
            let mut held = HashMap::new();
            let mut written = HashMap::new();
            let (mut page, mut number) = (0, 0);
            'fill: for row in 0..used * frames {
                for order in &order {
                    if page >= units {
                        break 'fill;
                    }
                    let frame = layout.frame_in(order[(row / frames) as usize], row % frames);
                    number += 1;
                    written.insert(frame, number);
                    for slot in 0..per_frame {
                        let at = Ppn(layout.first_slot(frame).0 + slot);
                        let is_page = page < units;
                        held.insert(
                            at,
                            if is_page { Held::Valid(Lpn(page)) } else { Held::Padding },
                        );
                        if is_page {
                            assert_eq!(base.slot_of(Lpn(page)), at, "{shape:?}");
                        }
                        page += 1;
                    }
                }
            }
            for slot in slots(&layout) {
                assert_eq!(base.page_at(slot), held.get(&slot).copied(), "{shape:?}: {slot}");
            }
            for frame in (0..layout.frames()).map(FrameId) {
                assert_eq!(base.sequence(frame), written.get(&frame).copied(), "{shape:?}");
            }
            blocks_agree_with_their_slots(&base, &layout);
        }
    }
}

#[test]
fn a_base_is_made_again_of_its_parts() {
    let mut rng = Rng::stream(Seed(6), "base");
    for &(lanes, shape) in SHAPES {
        let (steady_layout, _, steady) = drawn(lanes, shape, &mut rng);
        let blank = layout(lanes, shape, 1);
        let in_lanes = blank.lane_ids().map(|lane| {
            let mut blocks: Vec<BlockId> = blank.lane_blocks(lane).collect();
            blocks.reverse();
            blocks.truncate(shape[0] as usize / 2 + 1);
            blocks
        });
        let order: Vec<Vec<BlockId>> = in_lanes.collect();
        let room = order.concat().len() as u32 * blank.slots_per_block;
        let full = layout(lanes, shape, room - room / 5);
        let filled = Filled::new(&full, &order);
        for (layout, base) in [(steady_layout, Base::Steady(steady)), (full, Base::Filled(filled))]
        {
            let parts = base.parts();
            let again = Base::from_parts(&layout, &parts).unwrap();
            assert_eq!(again.parts(), parts);
            assert!(slots(&layout).all(|slot| again.page_at(slot) == base.page_at(slot)));
            let frames = (0..layout.frames()).map(FrameId);
            assert!(frames.into_iter().all(|f| again.sequence(f) == base.sequence(f)));
            let refused = |change: &dyn Fn(&mut super::BaseParts)| {
                let mut parts = base.parts();
                change(&mut parts);
                parts != base.parts() && Base::from_parts(&layout, &parts).is_err()
            };
            assert!(refused(&|parts| parts.order[0] = layout.blocks()), "no such block");
            assert!(refused(&|parts| parts.order.push(parts.order[0])), "a block twice");
            assert!(refused(&|parts| parts.keys.push(1)), "a word too many");
            if parts.keys.is_empty() {
                assert!(refused(&|parts| parts.order.truncate(lanes as usize / 2)), "no room");
                assert!(lanes == 1 || refused(&|parts| parts.order.reverse()), "another lane");
            } else {
                assert!(refused(&|parts| parts.valid.push(0)), "a count of no block");
                assert!(refused(&|parts| parts.valid[0] += 1), "a slot too many");
                assert!(refused(&|parts| parts.valid[0] = u32::MAX), "more than a block has");
            }
        }
    }
}
