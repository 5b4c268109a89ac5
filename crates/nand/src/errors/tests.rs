//! Rates of pages by their kind, their word line, and the mode of their block. Every rate is worked
//! out by hand.

use super::{BitErrors, Correction, ErrorRules, FailureRates};
use crate::errors::models::Formula;
use crate::{Flash, FrameState, Medium, OobRole, ReadPart, Rules, Unit};
use flashatlas_types::{
    AllocationOrder, BlockId, BlockMode, Cause, Cell, Dur, Geometry, Layout, Lpn, MediumError,
    OpId, OpKind, PageOrder, Plan, ProgramUnit, Seed, Span, Stamp,
};

const BLOCK: BlockId = BlockId::new(1);

/// Numbers of a formula in which nothing causes errors.
const NONE: Formula = Formula { base: 0.0, wear: [0.0; 2], retention: [0.0; 3], disturb: [0.0; 3] };

/// Errors of a flash whose upper pages have three times the rate of lower pages, and whose last
/// word line has twice the rate of the first. A page in SLC mode has half the rate of a lower page.
/// A codeword of 8192 bits corrects 40, and retries gain nothing.
fn bits(formula: Formula) -> BitErrors {
    BitErrors {
        formula,
        time_unit: 86_400,
        block_spread: 0.0,
        page_spread: 3.0,
        layer_spread: 2.0,
        slc_factor: 0.5,
        cycles: 0,
        correction: Correction {
            codeword: 1024,
            correctable: 40,
            decode: Dur::ZERO,
            soft: None,
            steps: 0,
            gain: 1.0,
            overlap: false,
        },
    }
}

fn rules(bits: BitErrors) -> Rules {
    let errors = ErrorRules {
        bits: Some(bits),
        rates: FailureRates::default(),
        rest_s: 0,
        rebuild: Dur::ZERO,
    };
    Rules { errors: Some(errors), ..Rules::PLAIN }
}

/// Returns a medium with blocks of `pages` pages. A page holds one unit of 1 KiB.
fn medium(cell: Cell, pages: u32, of: ProgramUnit, order: PageOrder, rules: Rules) -> Medium {
    let geometry = Geometry {
        channels: 1,
        ways: 1,
        dies: 1,
        planes: 1,
        blocks: 3,
        pages,
        page_bytes: 1024,
        spare_bytes: 128,
        cell,
    };
    let dies = AllocationOrder::parse("CWDP").unwrap();
    let layout = Layout::of_frames(geometry, Span::ONE, 1024, dies, 9, of).unwrap();
    Medium::new(layout.in_page_order(order).unwrap().into(), rules, 0, Seed(1)).unwrap()
}

/// Returns a flash of three bits a cell whose pages are programmed one by one.
fn tlc(rules: Rules) -> Medium {
    medium(Cell::Tlc, 9, ProgramUnit::Page, PageOrder::Consecutive, rules)
}

fn open(m: &mut Medium, mode: BlockMode) {
    Flash { medium: m, plan: &mut Plan::default() }.open_in(BLOCK, OobRole(0), mode);
}

fn program(m: &mut Medium, index: u32) {
    let frame = m.layout.frame_in(BLOCK, index);
    let unit = |n: u32| Unit { lpn: Lpn(n), stamp: Stamp(n + 1), bytes: None };
    let units: Vec<Unit> = (0..m.layout.slots_in(m.mode(BLOCK))).map(unit).collect();
    let mut plan = Plan::default();
    Flash { medium: m, plan: &mut plan }.program(frame, units.iter(), Cause::Host, &[]).unwrap();
}

fn read(m: &mut Medium, plan: &mut Plan, index: u32, slots: u64) -> Result<OpId, MediumError> {
    let frame = m.layout.frame_in(BLOCK, index);
    Flash { medium: m, plan }.read(frame, slots, ReadPart::Whole, Cause::Host, &[])
}

fn erase(m: &mut Medium) {
    Flash { medium: m, plan: &mut Plan::default() }.erase(BLOCK, Cause::Gc, &[]).unwrap();
}

/// Returns the rates of the pages of a block, frame by frame.
fn rates(m: &mut Medium) -> Vec<f64> {
    let (frames, pages) = (m.frames_of(BLOCK), m.layout.pages_at_once(m.mode(BLOCK)));
    let pages = (0..frames).flat_map(|index| (0..pages).map(move |page| (index, page)));
    pages.map(|(index, page)| m.bit_error_rate(BLOCK, index, page).0).collect()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
    let same = found.len() == expected.len() && found.iter().zip(expected).all(near);
    assert!(same, "{found:?}, expected {expected:?}");
}

/// Kinds of TLC count 1, 2 and 3, kinds of MLC 1 and 3, and the three word lines 1, 1.5 and 2.
#[test]
fn a_page_is_judged_by_its_kind_and_its_word_line_in_every_order() {
    use PageOrder::{Consecutive, Shadow, ShadowEvenOdd};
    use ProgramUnit::{Page, WordLine};
    let in_lines = vec![1.0, 2.0, 3.0, 1.5, 3.0, 4.5, 2.0, 4.0, 6.0];
    let cases = [
        (Cell::Tlc, 9, Page, Consecutive, in_lines.clone()),
        (Cell::Tlc, 9, WordLine, Consecutive, in_lines),
        // L0 L1 U0 L2 U1 U2
        (Cell::Mlc, 6, Page, Shadow, vec![1.0, 1.5, 3.0, 2.0, 4.5, 6.0]),
        // the same, with an even and an odd page of each kind
        (
            Cell::Mlc,
            12,
            Page,
            ShadowEvenOdd,
            vec![1.0, 1.0, 1.5, 1.5, 3.0, 3.0, 2.0, 2.0, 4.5, 4.5, 6.0, 6.0],
        ),
    ];
    for (cell, pages, of, order, expected) in cases {
        let rules = rules(bits(Formula { base: 1.0 / 64.0, ..NONE }));
        let mut m = medium(cell, pages, of, order, rules);
        let expected: Vec<f64> = expected.into_iter().map(|rate| rate / 64.0).collect();
        assert_near(&rates(&mut m), &expected);
        // the last page is the worst: 6 x 8192 / 64 wrong bits of 40
        let worst = 6.0 * 128.0 / 40.0;
        let (lasting, passing) = m.shares_of_correctable(BLOCK);
        assert_near(&[lasting, passing, m.largest_lasting_share()], &[worst, 0.0, worst]);
        // in SLC mode a page has half the rate of a lower page on its word line
        open(&mut m, BlockMode::Slc);
        let slc: &[f64] = if order == ShadowEvenOdd {
            &[0.5, 0.5, 0.75, 0.75, 1.0, 1.0]
        } else {
            &[0.5, 0.75, 1.0]
        };
        let slc: Vec<f64> = slc.iter().map(|rate| rate / 64.0).collect();
        assert_near(&rates(&mut m), &slc);
        let (lasting, passing) = m.shares_of_correctable(BLOCK);
        assert_near(&[lasting, passing, m.largest_lasting_share()], &[128.0 / 40.0, 0.0, worst]);
    }
}

/// One cycle causes 1/1024 wrong bits. With a quarter of the wear, four cycles in SLC mode are one.
#[test]
fn errors_follow_the_wear_of_each_mode() {
    let mut flat = bits(Formula { wear: [1.0 / 1024.0, 1.0], ..NONE });
    (flat.page_spread, flat.layer_spread) = (1.0, 1.0);
    let mut m = tlc(Rules { slc_wear: 250, ..rules(flat) });
    let now = |m: &mut Medium| (rates(m)[0] * 1024.0).round();
    assert_eq!(now(&mut m), 1.0, "a new block is in its first cycle");
    let mut used = Vec::new();
    for _ in 0..5 {
        open(&mut m, BlockMode::Slc);
        used.push(rates(&mut m)[0] * 1024.0);
        erase(&mut m);
    }
    // 0.25, 0.5, 0.75, 1 and 1.25 native cycles, rounded up, and half the rate of each
    assert_near(&used, &[0.5, 0.5, 0.5, 0.5, 1.0]);
    // five cycles in SLC mode are two, and this is a native one
    assert_eq!(now(&mut m), 3.0);
    erase(&mut m);
    assert_eq!(now(&mut m), 4.0);
    let mut m = tlc(Rules { slc_wear: 0, ..rules(flat) });
    open(&mut m, BlockMode::Slc);
    assert_near(&rates(&mut m)[..1], &[0.5 / 1024.0]);
}

/// A read of each page causes 1/1024 wrong bits. A block in SLC mode has a third of the pages.
#[test]
fn reads_disturb_the_pages_that_a_mode_has() {
    let mut flat = bits(Formula { disturb: [1.0 / 1024.0, 0.0, 1.0], ..NONE });
    (flat.page_spread, flat.layer_spread) = (1.0, 1.0);
    for (mode, of, expected) in [
        (BlockMode::Native, ProgramUnit::Page, 2.0),
        (BlockMode::Slc, ProgramUnit::Page, 6.0 * 0.5),
        (BlockMode::Native, ProgramUnit::WordLine, 2.0),
        (BlockMode::Slc, ProgramUnit::WordLine, 6.0 * 0.5),
    ] {
        let mut m = medium(Cell::Tlc, 9, of, PageOrder::Consecutive, rules(flat));
        open(&mut m, mode);
        program(&mut m, 0);
        for _ in 0..18 {
            read(&mut m, &mut Plan::default(), 0, 1).unwrap();
        }
        assert_near(&rates(&mut m)[..1], &[expected / 1024.0]);
    }
}

/// A lower page has 8192 x 0.002 = 16 wrong bits a codeword in the mean, with a standard deviation
/// of 4, and an upper page 48, of 40 that are corrected.
#[test]
fn each_page_of_a_word_line_has_errors_of_its_own() {
    let mut strong = bits(Formula { base: 0.002, ..NONE });
    strong.layer_spread = 1.0;
    strong.correction.steps = 2;
    let line = |page_spread: f64| {
        let rules = rules(BitErrors { page_spread, ..strong });
        let mut m = medium(Cell::Mlc, 6, ProgramUnit::WordLine, PageOrder::Consecutive, rules);
        program(&mut m, 0);
        program(&mut m, 1);
        m
    };
    let levels = |plan: &Plan| -> Vec<(u32, u8, u32)> {
        let read = |kind| match kind {
            OpKind::Read { page, level, bytes, .. } => Some((page, level, bytes)),
            _ => None,
        };
        plan.iter().filter_map(|(_, op, _)| read(op.kind)).collect()
    };
    let (mut m, mut plan) = (line(100.0), Plan::default());
    // unit 0 is the lower page, unit 1 the upper one, which no retry corrects
    read(&mut m, &mut plan, 1, 0b01).unwrap();
    assert_eq!(levels(&plan), [(1, 0, 1024)]);
    plan.clear();
    read(&mut m, &mut plan, 1, 0b10).unwrap_err();
    assert_eq!(levels(&plan), [(1, 1, 1024); 3]);
    let found = m.counters.errors;
    assert_eq!((found.reads, found.by_retries[0], found.uncorrectable), (2, 1, 1));
    // a frame is lost as a whole, because its record is
    assert_eq!(m.state(m.layout.frame_in(BLOCK, 1)), FrameState::Lost);
    m.find_unreadable();
    assert_eq!(m.counters.errors.found_unreadable, 1, "the other frame has an upper page, too");
    // with pages that are all alike, both are corrected without a retry
    let (mut m, mut plan) = (line(1.0), Plan::default());
    read(&mut m, &mut plan, 1, 0b11).unwrap();
    assert_eq!(levels(&plan), [(1, 0, 1024), (1, 1, 1024)]);
    let found = m.counters.errors;
    assert_eq!((found.reads, found.by_retries[0]), (2, 2));
    // codewords of two pages have draws of their own: the same mean, and not the same number
    let both = found.corrected_bits;
    plan.clear();
    read(&mut m, &mut plan, 1, 0b01).unwrap();
    let lower = m.counters.errors.corrected_bits - both;
    assert!((8..=28).contains(&lower) && (8..=28).contains(&(both - lower)), "{lower} of {both}");
    assert_ne!(2 * lower, both);
    m.find_unreadable();
    assert_eq!(m.counters.errors.found_unreadable, 0);
    // in SLC mode there is one page, with half the rate of a lower page
    let mut m = line(100.0);
    erase(&mut m);
    open(&mut m, BlockMode::Slc);
    program(&mut m, 0);
    plan.clear();
    read(&mut m, &mut plan, 0, 1).unwrap();
    assert_eq!(levels(&plan), [(0, flashatlas_types::SLC_MODE_LEVEL, 1024)]);
    m.find_unreadable();
    assert_eq!(m.counters.errors.found_unreadable, 0);
}

/// The rate is 1/4 after a day, of which nothing is left to a program of today.
#[test]
fn the_age_of_data_begins_with_its_block() {
    let mut flat = bits(Formula { retention: [0.25, 0.0, 1.0], ..NONE });
    (flat.page_spread, flat.layer_spread) = (1.0, 1.0);
    let mut m = tlc(rules(flat));
    open(&mut m, BlockMode::Slc);
    program(&mut m, 0);
    m.rest(86_400);
    assert_near(&rates(&mut m)[..1], &[0.125]);
    erase(&mut m);
    program(&mut m, 0);
    assert_near(&rates(&mut m)[..1], &[0.0]);
    m.rest(86_400);
    assert_near(&rates(&mut m)[..1], &[0.25]);
}

/// A page that a spare block cannot take over is lost, and the program goes on.
#[test]
fn a_spare_block_takes_what_can_be_read() {
    let mut strong = bits(Formula { base: 0.002, ..NONE });
    (strong.page_spread, strong.layer_spread) = (100.0, 1.0);
    let mut m = medium(
        Cell::Mlc,
        6,
        ProgramUnit::Page,
        PageOrder::Consecutive,
        Rules { spare_blocks: 1, ..rules(strong) },
    );
    program(&mut m, 0);
    program(&mut m, 1);
    m.fail_program_after(0);
    program(&mut m, 2);
    let states = [0, 1, 2].map(|index| m.state(m.layout.frame_in(BLOCK, index)));
    assert_eq!(states, [FrameState::Programmed, FrameState::Lost, FrameState::Programmed]);
    assert_eq!(m.counters.replaced_blocks, 1);
}

/// A page that wrong bits took has its spare area left: its block keeps role and mode over a power
/// failure, and numbers of programs go on after it, as if the page were readable.
#[test]
fn a_block_whose_pages_are_all_lost_keeps_its_role_its_mode_and_its_number() {
    let mut m = tlc(rules(bits(Formula { base: 0.5, ..NONE })));
    let role = OobRole(5);
    Flash { medium: &mut m, plan: &mut Plan::default() }.open_in(BLOCK, role, BlockMode::Slc);
    program(&mut m, 0);
    let number = m.sequence();
    m.find_unreadable();
    assert_eq!(m.state(m.layout.frame_in(BLOCK, 0)), FrameState::Lost);
    m.power_off();
    assert_eq!((m.oob_role(BLOCK), m.mode(BLOCK), m.sequence()), (role, BlockMode::Slc, number));
}
