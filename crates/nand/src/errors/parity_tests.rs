//! Frames with parity, beside a naive model of their codewords.

use super::draw::{Places, key};
use super::models::Formula;
use super::{BitErrors, Correction, ErrorRules, FailureRates};
use crate::{Change, Flash, FrameState, Medium, ReadPart, Rules, Unit};
use flashatlas_types::{
    AllocationOrder, BlockId, Cause, Cell, Class, Dur, FrameId, Geometry, Layout, Lpn, MediumError,
    Op, OpKind, Plan, Ppn, ProgramUnit, Rng, Seed, Span, Stamp,
};

const DIES: u32 = 4;
const PLANES: u32 = 2;
const LINES: u32 = 2;
const PAGE: u32 = 2048;
const UNIT: u32 = 1024;
const CODEWORD: u32 = 512;
const CORRECTABLE: u32 = 10;

/// Returns a drive of one lane, whose frames are word lines of two pages on eight planes. A page
/// has four codewords and holds two units. Of the 4096 bits of a codeword, `rate` are wrong in the
/// mean.
fn medium(rate: f64, seed: u64) -> Medium {
    let geometry = Geometry {
        channels: 2,
        ways: 2,
        dies: 1,
        planes: PLANES,
        blocks: 4,
        pages: 16,
        page_bytes: PAGE,
        spare_bytes: 64,
        cell: Cell::Mlc,
    };
    let span = Span { channels: 2, ways: 2, dies: 1, planes: PLANES };
    let order = AllocationOrder::parse("CWDP").unwrap();
    let of = ProgramUnit::WordLine;
    let layout = Layout::of_frames_with_parity(geometry, span, UNIT, order, 100, of).unwrap();
    let none = [0.0; 3];
    let bits = BitErrors {
        formula: Formula { base: rate, wear: [0.0; 2], retention: none, disturb: none },
        time_unit: 86_400,
        block_spread: 0.0,
        page_spread: 1.0,
        layer_spread: 1.0,
        slc_factor: 1.0,
        cycles: 0,
        correction: Correction {
            codeword: CODEWORD,
            correctable: CORRECTABLE,
            decode: Dur::ZERO,
            soft: None,
            steps: 0,
            gain: 1.0,
            overlap: false,
        },
    };
    let (rates, rest_s, rebuild) = (FailureRates::default(), 0, Dur::ZERO);
    let errors = Some(ErrorRules { bits: Some(bits), rates, rest_s, rebuild });
    let rules = Rules { errors, spare_blocks: 1, ..Rules::PLAIN };
    Medium::new(layout.into(), rules, 0, Seed(seed)).unwrap()
}

/// Slots of a frame: three dies with data, two planes, two pages of a word line, two units each.
const SLOTS: u32 = (DIES - 1) * PLANES * LINES * 2;

fn program(m: &mut Medium, plan: &mut Plan, frame: u32) {
    let unit = |n: u32| Unit { lpn: Lpn(n), stamp: Stamp(n + 100 * frame), bytes: None };
    let units: Vec<Unit> = (0..SLOTS).map(unit).collect();
    let mut flash = Flash { medium: m, plan };
    flash.program(FrameId(frame), units.iter(), Cause::CacheEvict, &[]).unwrap();
}

fn read(m: &mut Medium, plan: &mut Plan, frame: u32, slots: u64) -> Result<(), MediumError> {
    plan.clear();
    let mut flash = Flash { medium: m, plan };
    flash.read(FrameId(frame), slots, ReadPart::Whole, Cause::Rmw, &[]).map(drop)
}

/// Returns the operations on flash, each with its die and its bytes.
fn on_flash(plan: &Plan) -> Vec<(Op, u32, u32)> {
    let place = |op: &Op| match op.kind {
        OpKind::Read { die, bytes, .. } | OpKind::Program { die, bytes, .. } => {
            Some((*op, die, bytes))
        }
        _ => None,
    };
    plan.iter().filter_map(|(_, op, _)| place(op)).collect()
}

/// Returns the dies of a lane in the order of a frame: dies are numbered channel by channel.
fn dies(m: &Medium) -> Vec<u32> {
    m.layout.dies_of(flashatlas_types::LaneId::new(0)).to_vec()
}

#[test]
fn each_frame_programs_parity_on_the_next_die() {
    let (mut m, mut plan) = (medium(0.0, 1), Plan::default());
    for frame in 0..5 {
        plan.clear();
        program(&mut m, &mut plan, frame);
        let ops = on_flash(&plan);
        let of = |cause| ops.iter().filter(move |(op, ..)| op.cause == Some(cause));
        let parity: Vec<u32> = of(Cause::Parity).map(|&(_, die, _)| die).collect();
        assert_eq!(parity, [dies(&m)[frame as usize % 4]]);
        assert_eq!(of(Cause::CacheEvict).count(), 3);
        // two planes x two pages of the word line, for every die
        assert!(ops.iter().all(|&(op, _, bytes)| {
            op.class == Class::HostWrite && bytes == PLANES * LINES * PAGE
        }));
    }
    let programs = m.counters.programs;
    assert_eq!(programs[Cause::CacheEvict as usize], 5 * u64::from((DIES - 1) * PLANES * LINES));
    assert_eq!(programs[Cause::Parity as usize], 5 * u64::from(PLANES * LINES));
}

/// Unit 5 is on the second page of the second plane of the first die with data, because the first
/// pages of the three dies come first: 12 units of lower pages, four on each die.
#[test]
fn units_lie_on_the_dies_with_data_in_their_order() {
    let (mut m, mut plan) = (medium(0.0, 1), Plan::default());
    for frame in 0..4 {
        program(&mut m, &mut plan, frame);
        let data: Vec<u32> = (0..4).filter(|&n| n != frame).map(|n| dies(&m)[n as usize]).collect();
        for slot in 0..SLOTS {
            read(&mut m, &mut plan, frame, 1 << slot).unwrap();
            let ops = on_flash(&plan);
            let [(op, die, bytes)] = ops[..] else { panic!("{ops:?}") };
            let OpKind::Read { level, .. } = op.kind else { panic!("{op:?}") };
            assert_eq!((die, bytes), (data[(slot % 12 / 4) as usize], UNIT), "slot {slot}");
            assert_eq!(u32::from(level), slot / 12);
        }
    }
}

#[test]
fn a_lost_part_is_rebuilt_and_a_second_one_loses_the_frame() {
    let (mut m, mut plan) = (medium(0.0, 1), Plan::default());
    m.keep_journal();
    (0..3).for_each(|frame| program(&mut m, &mut plan, frame));
    m.lose_part(FrameId(0), 2);
    m.lose_part(FrameId(1), 1);
    // slot 5 of frame 0 is on die 2, whose number among the dies with data is 1
    read(&mut m, &mut plan, 0, 1 << 5).unwrap();
    let ops = on_flash(&plan);
    let found: Vec<(u32, u32, Option<Cause>)> =
        ops.iter().map(|&(op, die, bytes)| (die, bytes, op.cause)).collect();
    let dies = dies(&m);
    let parity = Some(Cause::Parity);
    let helpers = [0, 1, 3].map(|n: usize| (dies[n], PAGE, parity));
    assert_eq!(found[0], (dies[2], UNIT, Some(Cause::Rmw)));
    assert_eq!(found[1..], helpers);
    assert!(ops.iter().all(|(op, ..)| op.class == Class::HostRead));
    assert_eq!(m.unit(Ppn(5)).unwrap().stamp, Stamp(5));
    // what is not on the lost part is read as ever, and so is the frame whose parity is lost
    read(&mut m, &mut plan, 0, 1).unwrap();
    assert_eq!(on_flash(&plan).len(), 1);
    read(&mut m, &mut plan, 1, u64::MAX >> (64 - SLOTS)).unwrap();
    assert_eq!(on_flash(&plan).len(), 3 * LINES as usize);
    let errors = m.counters.errors;
    assert_eq!((errors.uncorrectable, errors.rebuilt, errors.lost), (1, 1, 0));
    assert_eq!(m.counters.reads[Cause::Parity as usize], 3);
    // a copy of the medium knows the same parts, by its journal and as an image
    let mut again = medium(0.0, 1);
    m.take_journal().iter().for_each(|change| again.redo(change));
    let image = m.clone().into_image();
    let parts = image.aged.clone().unwrap().lost_parts;
    assert_eq!(parts, [(FrameId(0), 2), (FrameId(1), 1)]);
    let held = Medium::from_image(m.shared_layout(), m.rules(), image.clone()).unwrap();
    for mut copy in [m, again, held] {
        copy.lose_part(FrameId(0), 2);
        assert_eq!(copy.state(FrameId(0)), FrameState::Programmed, "the same part");
        copy.lose_part(FrameId(0), 0);
        assert_eq!(copy.state(FrameId(0)), FrameState::Lost);
        assert!(copy.lpn(Ppn(0)).is_ok(), "the spare area survives");
        let block = BlockId::new(0);
        Flash { medium: &mut copy, plan: &mut plan }.erase(block, Cause::Gc, &[]).unwrap();
        program(&mut copy, &mut plan, 0);
        program(&mut copy, &mut plan, 1);
        assert!(copy.aged().unwrap().lost_parts.is_empty(), "an erase ends the loss");
    }
    for wrong in [(FrameId(7), 0), (FrameId(2), 4), (FrameId(999), 0)] {
        let mut image = image.clone();
        image.aged.as_mut().unwrap().lost_parts.push(wrong);
        let fresh = medium(0.0, 1);
        let error = Medium::from_image(fresh.shared_layout(), fresh.rules(), image).unwrap_err();
        assert!(error.contains("lost the part"), "{error}");
    }
}

#[test]
fn a_spare_block_takes_what_is_rebuilt() {
    let (mut m, mut plan) = (medium(0.0, 1), Plan::default());
    (0..2).for_each(|frame| program(&mut m, &mut plan, frame));
    m.lose_part(FrameId(0), 1);
    m.fail_program_after(0);
    program(&mut m, &mut plan, 2);
    assert_eq!(m.unit(Ppn(1)).unwrap().stamp, Stamp(1));
    assert!(m.aged().unwrap().lost_parts.is_empty(), "the copy has its parity anew");
    // the part is lost on both pages of the word line, and three dies rebuild each
    let errors = m.counters.errors;
    assert_eq!((errors.rebuilt, m.counters.reads[Cause::Parity as usize]), (2, 2 * 3 * 2));
}

#[test]
#[should_panic(expected = "its parity is on another die")]
fn frames_with_parity_have_no_copybacks() {
    let (mut m, mut plan) = (medium(0.0, 1), Plan::default());
    program(&mut m, &mut plan, 0);
    let target = m.layout.frame_in(BlockId::new(1), 1);
    let mut flash = Flash { medium: &mut m, plan: &mut plan };
    let _ = flash.copyback(&[FrameId(0)], target, Cause::Gc, &[]);
}

/// The wrong codewords of a frame, by word-line page, die, and place in the pages of the die.
struct Naive {
    wrong: Vec<Vec<Vec<bool>>>,
}

/// Codewords of a die that have one number on the word line.
const PLACES: u32 = PLANES * PAGE / CODEWORD;

impl Naive {
    /// Draws the wrong bits of each codeword of a frame, and adds the lost part.
    fn of(m: &Medium, frame: u32, rate: f64, lost: Option<u32>) -> Naive {
        let errors = m.errors.as_ref().unwrap();
        let key = key(errors.seed, frame, m.frame_sequence(FrameId(frame)).unwrap());
        let is_wrong =
            |number| Places::of(key, [number]).wrong_bits(8 * CODEWORD, rate).worst > CORRECTABLE;
        let of_die = |line: u32, die: u32| {
            let first = (line * DIES + die) * PLACES;
            (0..PLACES).map(|n| lost == Some(die) || is_wrong(first + n)).collect()
        };
        let of_line = |line| (0..DIES).map(|die| of_die(line, die)).collect();
        Naive { wrong: (0..LINES).map(of_line).collect() }
    }

    /// Returns `true` if two dies have lost codewords at one place.
    fn is_lost(&self) -> bool {
        let places = (0..PLACES as usize).map(|place| {
            let count = |dies: &Vec<Vec<bool>>| dies.iter().filter(|die| die[place]).count();
            self.wrong.iter().map(count).max().unwrap()
        });
        places.max().unwrap() > 1
    }

    /// Returns the parts that are rebuilt, the reads that nothing helps, and the pages that are
    /// read for a rebuild, of a read of all slots of some dies with data.
    fn read(&self, index: u32, slots: u64) -> (u64, u64, u64) {
        let (mut rebuilt, mut lost, mut pages) = (0, 0, 0);
        for (line, dies) in (0..).zip(&self.wrong) {
            let data: Vec<usize> =
                (0..DIES).filter(|d| index % DIES != *d).map(|d| d as usize).collect();
            for (rank, &die) in (0..).zip(&data) {
                // each slot is two codewords; two slots fill a page
                let first = (line * (DIES - 1) + rank) * PLANES * 2;
                let slot = |place: u32| first + place * CODEWORD / UNIT;
                let is_wanted = |place: u32| slots >> slot(place) & 1 == 1;
                let wrong: Vec<usize> = (0..PLACES)
                    .filter(|&place| is_wanted(place) && dies[die][place as usize])
                    .map(|place| place as usize)
                    .collect();
                if wrong.is_empty() {
                    continue;
                }
                let touched = (0..PLANES).filter(|plane| {
                    let of_plane = plane * PAGE / CODEWORD..(plane + 1) * PAGE / CODEWORD;
                    of_plane.clone().any(is_wanted)
                });
                pages += touched.count() as u64 * u64::from(DIES - 1);
                let others = (0..DIES as usize).filter(|&other| other != die);
                let failed = |&other: &usize| wrong.iter().any(|&place| dies[other][place]);
                match others.filter(failed).count() as u64 {
                    0 => rebuilt += 1,
                    failed => lost += 1 + failed,
                }
            }
        }
        (rebuilt, lost, pages)
    }
}

#[test]
fn frames_are_lost_as_a_naive_model_of_their_codewords_says() {
    let mut rng = Rng::stream(Seed(9), "parity");
    let (mut rebuilt_in_all, mut lost_in_all) = (0, 0);
    for seed in 0..60 {
        // 4 to 8 of 10 wrong bits in the mean: from one in a thousand codewords to one in six
        let rate = (4 + rng.below(5)) as f64 / f64::from(8 * CODEWORD);
        let (mut m, mut plan) = (medium(rate, seed), Plan::default());
        (0..8).for_each(|frame| program(&mut m, &mut plan, frame));
        let mut models = Vec::new();
        for frame in 0..8 {
            let lost = (rng.below(3) == 0).then(|| rng.below(DIES.into()) as u32);
            if let Some(die) = lost {
                m.lose_part(FrameId(frame), die);
            }
            models.push(Naive::of(&m, frame, rate, lost));
        }
        let mut mounted = m.clone();
        mounted.find_unreadable();
        for (frame, naive) in (0..).zip(&models) {
            let found = mounted.state(FrameId(frame)) == FrameState::Lost;
            assert_eq!(found, naive.is_lost(), "seed {seed}, frame {frame}");
            let slots = 1 + rng.below((1 << SLOTS) - 1);
            let before = (m.counters.errors, m.counters.reads[Cause::Parity as usize]);
            let done = read(&mut m, &mut plan, frame, slots);
            let (now, reads) = (m.counters.errors, m.counters.reads[Cause::Parity as usize]);
            let counts =
                (now.rebuilt - before.0.rebuilt, now.lost - before.0.lost, reads - before.1);
            assert_eq!(counts, naive.read(frame, slots), "seed {seed}, frame {frame}: {slots:b}");
            assert_eq!(done.is_err(), counts.1 > 0);
            assert_eq!(now.uncorrectable, now.rebuilt + now.lost);
            rebuilt_in_all += counts.0;
            lost_in_all += counts.1;
        }
    }
    assert!(rebuilt_in_all > 300 && lost_in_all > 300, "{rebuilt_in_all} {lost_in_all}");
}

#[test]
fn a_part_that_is_lost_is_recorded() {
    let (mut m, mut plan) = (medium(0.0, 1), Plan::default());
    program(&mut m, &mut plan, 0);
    m.keep_journal();
    m.lose_part(FrameId(0), 3);
    let change = Change::LostPart { frame: FrameId(0), die: 3 };
    assert!(!change.is_operation());
    assert_eq!(m.take_journal(), [change]);
}
