//! The steady state of the page-mapped FTL, programmed directly onto a blank medium.
//!
//! Each lane gets as many full blocks as it has in the steady state. The victim policy's model
//! determines the number of valid slots in each ([`crate::steady`]). Blocks are programmed in the
//! order from the block that will be collected first to the newest. The content of each slot
//! follows from a formula ([`SteadyBase`]).

use super::settings::{GcMode, GcPace, PageSettings};
use crate::FtlContext;
use crate::schemes::SchemeConfig;
use crate::steady::{Lane, Steady};
use crate::victims::VICTIM;
use flashatlas_nand::{Medium, Unit};
use flashatlas_types::base::{Held, OLD, Steady as SteadyBase};
use flashatlas_types::{BlockId, Cause, ConfigError, Lpn, Rng, Seed, Stamp};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

/// Returns the victim policy's model of the steady state, or an error if the policy has no model.
fn model(config: &SchemeConfig<'_>) -> Result<Steady, ConfigError> {
    let no_model = |key: &str, why: String| {
        ConfigError::new(
            key,
            format!(
                "{why}: use ‹precondition=fill› and a warm-up, a trace, or a checkpoint made \
                 under a configuration with a model"
            ),
        )
    };
    let victim = config.parts.victim(config.params.get(VICTIM))?;
    let steady = victim.steady.ok_or_else(|| {
        let known: Vec<&str> =
            config.parts.victims.iter().filter(|v| v.steady.is_some()).map(|v| v.name).collect();
        let why = format!(
            "the steady state of `{}` has no model (policies with a model: {})",
            victim.name,
            known.join(", ")
        );
        no_model("ftl.victim", why)
    })?;
    if super::settings::streams(config)?.collection > 1 {
        let why = "the steady state of several streams has no model".into();
        return Err(no_model("ftl.streams", why));
    }
    Ok(steady)
}

/// Checks that the victim policy and the classifier have a model of the steady state.
///
/// # Errors
/// Returns an error if one of them has no model.
pub fn check(config: &SchemeConfig<'_>) -> Result<(), ConfigError> {
    model(config).map(|_| ())
}

pub(super) fn make(
    config: &SchemeConfig<'_>,
    cx: &mut FtlContext<'_>,
    seed: Seed,
    stamp: &dyn Fn(Lpn) -> Stamp,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, ConfigError> {
    let base = base(config, cx.flash.medium, seed)?;
    Ok(program(&base, cx, stamp, go_on))
}

/// Programs the full blocks of a steady state onto a blank medium. Returns `false` if `go_on`
/// stopped the work.
fn program(
    base: &SteadyBase,
    cx: &mut FtlContext<'_>,
    stamp: &dyn Fn(Lpn) -> Stamp,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> bool {
    let medium = &cx.flash.medium;
    let layout = medium.layout().clone();
    let bytes = medium.rules().keep_bytes.then(|| vec![0; layout.unit_bytes as usize].into());
    let mut writer = Writer { units: Vec::new(), stamp, bytes };
    let slots = layout.block_len();
    let (mut placed, mut stopped) = (0, false);
    // the contents of the next blocks are computed while the previous blocks are programmed
    let chunks = base.order().chunks((DECODED_TOGETHER / slots).max(1));
    std::thread::scope(|scope| {
        let (sender, decoded) = mpsc::sync_channel::<Vec<Held>>(DECODED_AHEAD);
        let (done, buffers) = mpsc::channel::<Vec<Held>>();
        let all = chunks.clone();
        let decode = move || {
            for blocks in all {
                let mut held = buffers.try_recv().unwrap_or_default();
                held.clear();
                blocks.iter().for_each(|&block| base.decode(block, &mut held));
                if sender.send(held).is_err() {
                    break; // `go_on` stopped the work, so no more blocks are wanted
                }
            }
        };
        scope.spawn(decode);
        for blocks in chunks {
            let held = decoded.recv().expect("all blocks are decoded");
            for (&block, held) in blocks.iter().zip(held.chunks(slots)) {
                writer.block(cx, block, held);
                placed += base.valid(block);
            }
            let _ = done.send(held); // the decoding thread may have ended
            if !go_on(placed.into()) {
                stopped = true;
                return;
            }
        }
    });
    assert!(stopped || placed == layout.logical_units, "every page was placed");
    !stopped
}

/// Draws the steady state of a blank medium: the full blocks of each lane, and their contents.
///
/// # Errors
/// Returns an error if the scheme has no model, or if the pages do not fit the full blocks.
pub(super) fn base(
    config: &SchemeConfig<'_>,
    medium: &Medium,
    seed: Seed,
) -> Result<SteadyBase, ConfigError> {
    let layout = medium.layout();
    let settings = PageSettings::new(config, layout);
    let steady = model(config)?;
    let mut rng = Rng::stream(seed, "precondition.steady");
    // the number of free blocks when the host has just filled its frontier
    let free = settings.map_quota.blocks
        + match settings.mode {
            GcMode::Single => 1,
            GcMode::Dual if settings.pace == GcPace::Paced => settings.blocks_of_room(),
            GcMode::Dual => settings.low_water + 1,
        };
    // an SLC cache is empty in the steady state: its data was folded
    let statics = settings.slc.map_or(0, |slc| slc.statics) as usize;
    let mut lanes: Vec<Vec<(BlockId, u32)>> = Vec::new();
    let mut models: BTreeMap<(u32, u64), Lane> = BTreeMap::new();
    for lane in layout.lane_ids() {
        let mut blocks: Vec<BlockId> =
            layout.lane_blocks(lane).skip(statics).filter(|&b| !medium.is_bad(b)).collect();
        shuffle(&mut blocks, &mut rng);
        blocks.truncate(blocks.len().saturating_sub(free as usize));
        let (n, units) = (blocks.len() as u32, u64::from(layout.logical_units));
        let share = units / u64::from(layout.lanes)
            + u64::from(u64::from(lane.number()) < units % u64::from(layout.lanes));
        if share > u64::from(n) * u64::from(layout.slots_per_block) {
            return Err(ConfigError::new(
                "drive.over_provisioning",
                format!(
                    "{share} pages do not fit into the {n} blocks of lane {lane} that are full in \
                     the steady state"
                ),
            ));
        }
        // most lanes have the same shape, and the model of a shape is solved only once
        let lane = models
            .entry((n, share))
            .or_insert_with(|| Lane::new(steady, config.params, n, layout.slots_per_block, share));
        lanes.push(blocks.into_iter().zip(lane.draw(&mut rng)).collect());
    }
    let longest = lanes.iter().map(Vec::len).max().unwrap_or(0);
    // if some blocks are bad, lanes have different numbers of blocks: their newest blocks are
    // programmed together
    let order: Vec<(BlockId, u32)> = (0..longest)
        .flat_map(|age| {
            let of_age = move |lane: &Vec<_>| {
                (age + lane.len()).checked_sub(longest).and_then(|i| lane.get(i)).copied()
            };
            lanes.iter().filter_map(of_age)
        })
        .collect();
    Ok(SteadyBase::new(&Arc::new(layout.clone()), &order, &mut rng))
}

/// The number of slots that are decoded together. It is large, so that threads seldom wait for each
/// other, but small enough for the processor's caches.
const DECODED_TOGETHER: usize = 1 << 14;

/// The number of decoded chunks that may wait to be programmed.
const DECODED_AHEAD: usize = 2;

struct Writer<'a> {
    units: Vec<Unit>,
    stamp: &'a dyn Fn(Lpn) -> Stamp,
    /// Zeros, if the drive keeps bytes.
    bytes: Option<Arc<[u8]>>,
}

impl Writer<'_> {
    /// Fills a block with the content of its slots.
    fn block(&mut self, cx: &mut FtlContext<'_>, block: BlockId, held: &[Held]) {
        let slots = cx.flash.medium.layout().frame_len();
        for (index, held) in (0..).zip(held.chunks(slots)) {
            self.units.clear();
            for &held in held {
                let (lpn, stamp) = match held {
                    Held::Valid(lpn) => (lpn, (self.stamp)(lpn)),
                    Held::Old(lpn) => (lpn, OLD),
                    Held::Padding => (Lpn::NONE, OLD),
                };
                self.units.push(Unit { lpn, stamp, bytes: self.bytes.clone() });
            }
            let frame = cx.flash.medium.layout().frame_in(block, index);
            cx.flash
                .program(frame, self.units.iter(), Cause::Host, &[])
                .expect("the power stays on during this preparation");
        }
    }
}

/// Shuffles items (Fisher and Yates), from the last item to the second.
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for end in (2..=items.len()).rev() {
        items.swap(end - 1, rng.place(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use flashatlas_fixtures::layouts::lanes;
    use flashatlas_nand::{Flash, Rules};
    use flashatlas_types::{FrameId, Ppn};

    #[test]
    fn the_medium_holds_what_the_formula_says() {
        let layout = Arc::new(lanes(2, [9, 8, 4], 240));
        let full =
            [(3, 2), (12, 20), (17, 0), (0, 32), (4, 31), (13, 30), (8, 32), (9, 32), (1, 32)];
        let full: Vec<_> = full.map(|(block, valid)| (BlockId::new(block), valid)).to_vec();
        let full = [&full[..], &[(BlockId::new(10), 240 - 211)]].concat();
        let base = SteadyBase::new(&layout, &full, &mut Rng::stream(Seed(1), "test"));
        let mut medium = Medium::new(layout.clone(), Rules::PLAIN, 0, Seed(1)).unwrap();
        let (mut plan, mut copies, mut outcome) = Default::default();
        let flash = Flash { medium: &mut medium, plan: &mut plan };
        let mut cx = FtlContext::new(flash, &Command::UNTIMED, &mut copies, &mut outcome);
        let mut told = Vec::new();
        assert!(program(&base, &mut cx, &|lpn| Stamp(lpn.0 + 1), &mut |pages| {
            told.push(pages);
            true
        }));
        assert_eq!(told.last(), Some(&240));
        for frame in (0..layout.frames()).map(FrameId) {
            assert_eq!(medium.frame_sequence(frame).ok(), base.sequence(frame));
        }
        for slot in (0..layout.slots()).map(Ppn) {
            let expected = base.page_at(slot).map(|held| match held {
                Held::Valid(lpn) => (lpn, Stamp(lpn.0 + 1)),
                Held::Old(lpn) => (lpn, OLD),
                Held::Padding => (Lpn::NONE, OLD),
            });
            let found = medium.unit_by_stamp(slot).ok().map(|unit| (unit.lpn, unit.stamp));
            assert_eq!(found, expected, "slot {slot}");
        }
    }
}
