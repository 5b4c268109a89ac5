//! The steady state of the page-mapped FTL, programmed directly onto a blank medium.
//!
//! Each lane gets as many full blocks as it has in the steady state. The victim policy's model
//! determines the number of valid slots in each ([`crate::steady`]). Blocks are programmed in the
//! order from the block that will be collected first to the newest. A slot that must be invalid
//! gets an old version of a page whose valid version is programmed later.

use super::settings::{GcMode, GcPace, PageSettings};
use crate::FtlContext;
use crate::schemes::SchemeConfig;
use crate::steady::{Lane, Steady};
use crate::victims::VICTIM;
use flashatlas_nand::Unit;
use flashatlas_prefetch as prefetch;
use flashatlas_types::{BlockId, Cause, ConfigError, Lpn, Permutation, Rng, Seed, Stamp, beat};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

/// The content of old versions.
const OLD: Stamp = Stamp(0x01d0_1d01);

/// Returns the victim policy's model of the steady state, or an error if it has none.
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
    let layout = cx.flash.medium.layout().clone();
    let settings = PageSettings::new(config, &layout);
    let steady = model(config)?;
    let mut rng = Rng::stream(seed, "precondition.steady");
    // the number of free blocks when the host has just filled its frontier
    let free = settings.map_quota.blocks
        + match settings.mode {
            GcMode::Single => 1,
            GcMode::Dual if settings.pace == GcPace::Paced => settings.blocks_of_room(),
            GcMode::Dual => settings.low_water + 1,
        };
    let mut lanes: Vec<Vec<(BlockId, u32)>> = Vec::new();
    let mut models: BTreeMap<(u32, u64), Lane> = BTreeMap::new();
    for lane in layout.lane_ids() {
        let mut blocks: Vec<BlockId> =
            layout.lane_blocks(lane).filter(|&b| !cx.flash.medium.is_bad(b)).collect();
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
    let count = layout.logical_units;
    let pages = Pages::new(count, &mut rng);
    let mut draws = Draws { pages, count, next: 0, rng };
    let bytes =
        cx.flash.medium.rules().keep_bytes.then(|| vec![0; layout.unit_bytes as usize].into());
    let mut writer = Writer { units: Vec::new(), stamp, bytes };
    let slots = layout.block_len();
    let (mut placed, mut stopped) = (0, false);
    // the contents of the next blocks are drawn while the previous blocks are programmed
    let chunks = order.chunks((DRAWN_TOGETHER / slots).max(1));
    std::thread::scope(|scope| {
        let (sender, drawn) = mpsc::sync_channel::<Vec<Drawn>>(DRAWN_AHEAD);
        let (done, buffers) = mpsc::channel::<Vec<Drawn>>();
        let all = chunks.clone();
        let draw = move || {
            for blocks in all {
                let mut drawn = buffers.try_recv().unwrap_or_default();
                drawn.clear();
                blocks.iter().for_each(|&(_, valid)| draws.draw(slots, valid, &mut drawn));
                if sender.send(drawn).is_err() {
                    break; // the blocks before were the last that were wanted
                }
            }
        };
        scope.spawn(draw);
        for blocks in chunks {
            let drawn = drawn.recv().expect("all blocks are drawn");
            for (&(block, valid), drawn) in blocks.iter().zip(drawn.chunks(slots)) {
                writer.block(cx, block, drawn);
                placed += valid;
            }
            let _ = done.send(drawn); // the drawing thread may have ended
            if !go_on(placed.into()) {
                stopped = true;
                return;
            }
        }
    });
    assert!(stopped || placed == count, "every page was placed");
    Ok(!stopped)
}

/// The page in a slot, and `true` if the slot has the valid version.
type Drawn = (Lpn, bool);

/// The number of slots that are drawn together. It is large, so that threads seldom wait for each
/// other, but small enough for the processor's caches.
const DRAWN_TOGETHER: usize = 1 << 14;

/// The number of drawn chunks that may wait to be programmed.
const DRAWN_AHEAD: usize = 2;

struct Draws {
    /// All pages, in the order in which their valid versions are programmed.
    pages: Pages,
    count: u32,
    next: u32,
    rng: Rng,
}

impl Draws {
    /// Draws the contents of the slots of a block. Randomly chosen `valid` slots become valid.
    ///
    /// A valid slot gets the next page. Any other slot gets an old version of a page whose valid
    /// version comes later, or padding if there is no such page. The draws do not depend on each
    /// other, so the pages of several slots are loaded from memory together.
    fn draw(&mut self, slots: usize, valid: u32, drawn: &mut Vec<Drawn>) {
        let mut valid = u64::from(valid);
        for left in (1..=slots as u64).rev() {
            let later = u64::from(self.count - self.next);
            let is_valid = self.rng.below(left) < valid;
            let lpn = match is_valid {
                true => self.pages.at(self.next),
                false if later == 0 => Lpn::NONE,
                false => self.pages.at(self.next + self.rng.below(later) as u32),
            };
            valid -= u64::from(is_valid);
            self.next += u32::from(is_valid);
            drawn.push((lpn, is_valid));
        }
    }
}

struct Writer<'a> {
    units: Vec<Unit>,
    stamp: &'a dyn Fn(Lpn) -> Stamp,
    /// Zeros, if the drive keeps bytes.
    bytes: Option<Arc<[u8]>>,
}

impl Writer<'_> {
    /// Fills a block with the pages drawn for its slots.
    fn block(&mut self, cx: &mut FtlContext<'_>, block: BlockId, drawn: &[Drawn]) {
        let slots = cx.flash.medium.layout().frame_len();
        for (index, drawn) in (0..).zip(drawn.chunks(slots)) {
            self.units.clear();
            for &(lpn, is_valid) in drawn {
                let stamp = if is_valid { (self.stamp)(lpn) } else { OLD };
                self.units.push(Unit { lpn, stamp, bytes: self.bytes.clone() });
            }
            let frame = cx.flash.medium.layout().frame_in(block, index);
            cx.flash
                .program(frame, self.units.iter(), Cause::Host, &[])
                .expect("the power stays on during this preparation");
        }
    }
}

/// The largest number of pages that are shuffled in memory. With more pages, a shuffle would wait
/// for memory at each page.
const NEAR: u32 = 1 << 26;

/// All pages, in a random order.
enum Pages {
    /// Each order is equally likely.
    Shuffled(Vec<u32>),
    /// The order is pseudo-random and needs no memory.
    Permuted(Permutation),
}

impl Pages {
    fn new(count: u32, rng: &mut Rng) -> Pages {
        if count > NEAR {
            return Pages::Permuted(Permutation::new(count.into(), rng));
        }
        let mut pages: Vec<u32> = (0..count).collect();
        shuffle(&mut pages, rng);
        Pages::Shuffled(pages)
    }

    /// Returns the page at an index. Panics beyond the last page.
    #[inline]
    fn at(&self, place: u32) -> Lpn {
        Lpn(match self {
            Pages::Shuffled(pages) => pages[place as usize],
            Pages::Permuted(pages) => pages.at(place.into()).expect("one of them") as u32,
        })
    }
}

/// Shuffles items (Fisher and Yates), from the last item to the second. Some swap positions are
/// drawn ahead, so that their items are loaded from memory together.
fn shuffle<T: Copy>(items: &mut [T], rng: &mut Rng) {
    let mut end = items.len();
    while end > 1 {
        beat(1);
        let mut drawn = [0; 32];
        let count = drawn.len().min(end - 1);
        for (place, i) in drawn.iter_mut().zip((end - count..end).rev()) {
            *place = rng.place(i + 1);
            prefetch::item(&items[*place]);
        }
        for (&place, i) in drawn.iter().zip((end - count..end).rev()) {
            items.swap(i, place);
        }
        end -= count;
    }
}
