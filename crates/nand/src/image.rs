//! The content of a medium as plain arrays. A checkpoint stores these arrays.

use crate::errors::Aged;
use crate::medium::cell::Header;
use crate::medium::cells::Cells;
use crate::medium::laid::Laid;
use crate::medium::power::Power;
use crate::medium::{Block, FrameState};
use crate::{Counters, Medium, Nvm, OobRole, Rules};
use flashatlas_types::base::Base;
use flashatlas_types::{BlockId, BlockMode, FrameId, LaneId, Layout, Lpn, Ppn, Stamp, ti_vec};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// The arrays of a medium, and the number of the last program.
///
/// The array of spare blocks is indexed by lane. Erases, write pointers, health and roles are
/// indexed by block. States (values of [`FrameState`]) and program sequences are indexed by frame.
/// Logical pages and content stamps are indexed by slot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Image {
    /// Erases of each block.
    pub erases: Vec<u32>,
    /// Write pointer of each block.
    pub next: Vec<u32>,
    /// Health of each block, as bits: [`BAD`], [`ERASE_FAILS`], [`PROGRAM_FAILS`].
    pub health: Vec<u8>,
    /// Number of spare blocks left in each lane.
    pub spares: Vec<u32>,
    /// The role of each block. The spare areas of the block's pages contain it.
    pub roles: Vec<u8>,
    /// The mode of each block, as the number of a [`BlockMode`]. Empty if all blocks are native.
    pub modes: Vec<u8>,
    /// Erases of each block that ended a cycle in SLC mode. Empty if there were no such erases.
    pub slc_erases: Vec<u32>,
    /// State of each frame.
    pub state: Vec<u8>,
    /// Low 32 bits of each frame's program sequence.
    pub sequence_low: Vec<u32>,
    /// High 8 bits of each frame's program sequence.
    pub sequence_high: Vec<u8>,
    /// Number of copybacks of each frame's data since it was last corrected. Empty if there were no
    /// copybacks.
    pub copied: Vec<u8>,
    /// The logical page in each slot.
    pub lpns: Vec<u32>,
    /// The content stamp of each slot.
    pub stamps: Vec<u32>,
    /// Number of the last program.
    pub sequence: u64,
    /// First slot of each map page whose bytes are in `map_bytes`, in ascending order.
    pub map_slots: Vec<u32>,
    /// Bytes of these map pages. All map pages have the same length.
    pub map_bytes: Vec<u8>,
    /// Clock and age of the blocks, if operations of the medium may fail by themselves.
    pub aged: Option<Aged>,
    /// The bytes of the byte-addressable memory.
    pub nvm: Vec<u8>,
    /// Number of stores to each line of the byte-addressable memory.
    pub nvm_wear: Vec<u32>,
}

/// Health of a block that is bad.
pub const BAD: u8 = 1;
/// Health of a block whose next erase fails.
pub const ERASE_FAILS: u8 = 2;
/// Health of a block whose next program fails.
pub const PROGRAM_FAILS: u8 = 4;

impl Image {
    /// Returns the mode of the block at an index.
    pub fn mode(&self, at: usize) -> BlockMode {
        let number = self.modes.get(at).copied().unwrap_or(0);
        BlockMode::from_number(number).unwrap_or_default()
    }
}

impl Medium {
    /// Turns this medium into its arrays.
    ///
    /// # Panics
    /// Panics if the medium stores bytes, because an image contains only stamps.
    pub fn into_image(mut self) -> Image {
        self.densify();
        let frames = (0..self.layout.frames()).map(FrameId);
        let headers: Vec<Header> = frames.map(|frame| self.cells.header(frame)).collect();
        let slots = (0..self.layout.slots()).map(Ppn);
        let (lpns, stamps) = slots.map(|slot| self.cells.cell(slot).into()).unzip();
        Image {
            state: headers.iter().map(|header| header.state).collect(),
            sequence_low: headers.iter().map(|header| header.sequence as u32).collect(),
            sequence_high: headers.iter().map(|header| (header.sequence >> 32) as u8).collect(),
            copied: unless_all_zero(headers.iter().map(|header| header.copied).collect()),
            lpns,
            stamps,
            ..self.into_image_of_blocks()
        }
    }

    /// Turns a medium that is as its base says into its base and the arrays of its lanes and
    /// blocks. The arrays of frames and slots are empty, and map pages that were written once are
    /// left out, because they follow from the base. Returns the medium if it has no base, or
    /// differs from it.
    ///
    /// # Errors
    /// Returns the medium, unchanged.
    pub fn into_image_over_base(mut self) -> Result<(Image, Arc<Base>), Box<Medium>> {
        let base = self.base_under_map().cloned();
        let Some(base) = base.filter(|_| self.has_map_once()) else { return Err(Box::new(self)) };
        self.leave_out_map(&base);
        Ok((self.into_image_of_blocks(), base))
    }

    /// Returns the arrays of lanes and blocks.
    fn into_image_of_blocks(self) -> Image {
        assert!(!self.rules.keep_bytes, "an image cannot hold the bytes of pages");
        let mut map_slots: Vec<u32> = self.bytes.keys().map(|ppn| ppn.0).collect();
        map_slots.sort_unstable();
        let map_bytes =
            map_slots.iter().flat_map(|&slot| self.bytes[&Ppn(slot)].iter().copied()).collect();
        let aged = self.aged();
        let (nvm, nvm_wear) = self.nvm.into_parts();
        Image {
            erases: self.erases.into(),
            next: self.blocks.iter().map(|b| b.next).collect(),
            health: self.blocks.iter().map(health).collect(),
            spares: self.spares.into(),
            roles: self.blocks.iter().map(|b| b.role.0).collect(),
            modes: unless_all_zero(self.blocks.iter().map(|b| b.mode as u8).collect()),
            slc_erases: unless_all_zero(self.slc_erases.into()),
            sequence: self.sequence,
            map_slots,
            map_bytes,
            aged,
            nvm,
            nvm_wear,
            ..Image::default()
        }
    }

    /// Returns a medium of this layout with the content of `image`.
    ///
    /// # Errors
    /// Returns a description of the first part of the image that contradicts the layout or the
    /// rules of flash.
    pub fn from_image(layout: Arc<Layout>, rules: Rules, image: Image) -> Result<Medium, String> {
        Medium::restored(layout, rules, image, None)
    }

    /// Returns a medium that is as a base says, with the arrays of its lanes and blocks. `stamp`
    /// returns the content of each page.
    ///
    /// # Errors
    /// Returns a description of the first part of the image that contradicts the base, the layout
    /// or the rules of flash.
    pub fn from_image_over_base(
        layout: Arc<Layout>,
        rules: Rules,
        image: Image,
        (base, stamp): (Arc<Base>, fn(Lpn) -> Stamp),
    ) -> Result<Medium, String> {
        let found = image.next.iter().zip(image.roles.iter().zip(&image.health));
        for (block, (&next, (&role, &health))) in layout.block_ids().zip(found) {
            let programmed = base.programmed(block);
            let is_usable = programmed == 0 || health == 0;
            if next != programmed || OobRole(role) != OobRole::default() || !is_usable {
                return Err(format!(
                    "block {block} has the write pointer {next}, the role {role} and the health \
                     {health}, but the base has {programmed} frames of data in it"
                ));
            }
        }
        if image.sequence != base.programs() {
            return Err(format!(
                "the last program has number {}, but {} programs wrote the base",
                image.sequence,
                base.programs()
            ));
        }
        Medium::restored(layout, rules, image, Some(Laid { base, stamp }))
    }

    fn restored(
        layout: Arc<Layout>,
        rules: Rules,
        image: Image,
        laid: Option<Laid>,
    ) -> Result<Medium, String> {
        let blocks = layout.blocks() as usize;
        // over a base, no array has an entry for each frame or slot
        let (frames, slots) = match laid {
            Some(_) => (0, 0),
            None => (layout.frames() as usize, layout.slots() as usize),
        };
        for (what, have, expected) in [
            ("erase counts", image.erases.len(), blocks),
            ("write pointers", image.next.len(), blocks),
            ("healths of blocks", image.health.len(), blocks),
            ("numbers of spare blocks", image.spares.len(), layout.lanes as usize),
            ("roles", image.roles.len(), blocks),
            ("frame states", image.state.len(), frames),
            ("program sequences", image.sequence_low.len(), frames),
            ("program sequences (high)", image.sequence_high.len(), frames),
            ("logical pages", image.lpns.len(), slots),
            ("content stamps", image.stamps.len(), slots),
        ] {
            if have != expected {
                return Err(format!(
                    "the saved state has {have} {what}, and the drive has {expected}"
                ));
            }
        }
        for (what, have) in
            [("modes", image.modes.len()), ("erases in SLC mode", image.slc_erases.len())]
        {
            if have != 0 && have != blocks {
                return Err(format!(
                    "the saved state has {have} {what}, and the drive has {blocks} blocks"
                ));
            }
        }
        if image.copied.len() != frames && !image.copied.is_empty() {
            return Err(format!(
                "the saved state has copybacks of {} frames, and the drive has {frames} frames",
                image.copied.len()
            ));
        }
        if let Some(mode) = image.modes.iter().find(|&&m| BlockMode::from_number(m).is_none()) {
            return Err(format!("the mode `{mode}` of a block is not known"));
        }
        if image.modes.contains(&(BlockMode::Slc as u8)) {
            layout
                .allows_slc_mode()
                .map_err(|e| format!("the saved state has blocks in SLC mode; {e}"))?;
        }
        let mut erased = image.slc_erases.iter().zip(&image.erases);
        if let Some((slc, all)) = erased.find(|(slc, all)| slc > all) {
            return Err(format!(
                "a block has {slc} erases in SLC mode, but only {all} erases in all"
            ));
        }
        if let Some(state) = image.state.iter().find(|&&s| s > FrameState::Lost as u8) {
            return Err(format!("the state `{state}` of a frame is not known"));
        }
        if let Some(next) = image.next.iter().find(|&&n| n > layout.frames_per_block) {
            return Err(format!(
                "a write pointer is {next}, but a block has {} frames",
                layout.frames_per_block
            ));
        }
        if let Some(health) = image.health.iter().find(|&&h| h > BAD | ERASE_FAILS | PROGRAM_FAILS)
        {
            return Err(format!("the health `{health}` of a block is not known"));
        }
        if let Some(spares) = image.spares.iter().find(|&&s| s > rules.spare_blocks) {
            return Err(format!(
                "a lane has {spares} spare blocks left, but began with {}",
                rules.spare_blocks
            ));
        }
        if let Some(lpn) =
            image.lpns.iter().find(|&&l| l >= layout.logical_units && l != Lpn::NONE.0)
        {
            return Err(format!(
                "the saved state names logical page {lpn}, but the drive has {} logical pages",
                layout.logical_units
            ));
        }
        let sequence =
            |i: usize| u64::from(image.sequence_low[i]) | u64::from(image.sequence_high[i]) << 32;
        if image.sequence >> 40 != 0 || (0..frames).any(|i| sequence(i) > image.sequence) {
            return Err("the number of a program is above the number of the last program".into());
        }
        let (pages, bytes) = (image.map_slots.len(), image.map_bytes.len());
        if bytes % pages.max(1) != 0
            || (pages == 0 && bytes > 0)
            || !image.map_slots.is_sorted_by(|a, b| a < b)
        {
            return Err(format!(
                "the map pages have {bytes} bytes in all, which do not fit {pages} pages in \
                 ascending slots"
            ));
        }
        if let Some(&slot) = image.map_slots.iter().find(|&&s| {
            s as usize >= slots
                || !OobRole(image.roles[usize::from(layout.block_of(Ppn(s)))]).has_bytes()
        }) {
            return Err(format!(
                "slot {slot} holds a map page, but its block is not for map pages"
            ));
        }
        let nvm_lines = rules.nvm_bytes.div_ceil(crate::nvm::LINE_BYTES) as usize;
        if image.nvm.len() as u64 != rules.nvm_bytes || image.nvm_wear.len() != nvm_lines {
            return Err(format!(
                "the saved state has {} bytes of NVM, and the drive has {}",
                image.nvm.len(),
                rules.nvm_bytes
            ));
        }
        let cells = match laid {
            Some(laid) => over(&layout, laid),
            None => cells(&layout, &image),
        };
        let aged = image.aged.unwrap_or_default();
        if [aged.programmed_at.len(), aged.reads.len()].iter().any(|&n| n != blocks && n != 0) {
            return Err(format!(
                "the saved state has ages of {} blocks, and the drive has {blocks}",
                aged.reads.len()
            ));
        }
        let (carried, lost_parts) = (aged.carried.clone(), aged.lost_parts.clone());
        let page_bytes = bytes / pages.max(1);
        let map_pages = image.map_slots.iter().zip(image.map_bytes.chunks_exact(page_bytes.max(1)));
        let modes = image.modes.iter().copied().chain(std::iter::repeat(0));
        let state = image.next.iter().zip(image.health.iter().zip(image.roles.iter().zip(modes)));
        let mut medium = Medium {
            rules,
            blocks: state
                .map(|(&next, (&health, (&role, mode)))| Block {
                    next,
                    bad: health & BAD != 0,
                    erase_fails: health & ERASE_FAILS != 0,
                    program_fails: health & PROGRAM_FAILS != 0,
                    role: OobRole(role),
                    mode: BlockMode::from_number(mode).expect("checked above"),
                })
                .collect(),
            slc_erases: match image.slc_erases {
                none if none.is_empty() => ti_vec![0; blocks],
                some => some.into(),
            },
            erases: image.erases.into(),
            cells,
            bytes: map_pages.map(|(&slot, bytes)| (Ppn(slot), bytes.into())).collect(),
            spare: FxHashMap::default(),
            elsewhere: None,
            not_elsewhere: FxHashSet::default(),
            sequence: image.sequence,
            stepped: false,
            power: Power::ON,
            cut: None,
            journal: None,
            fading: Vec::new(),
            failing_program: 0,
            failing_erase: 0,
            spares: image.spares.into(),
            errors: Medium::aged_errors(&rules, &aged, blocks),
            is_plain: image.modes.is_empty() && Medium::begins_plain(&rules, &layout),
            nvm: Nvm::holding(image.nvm, image.nvm_wear),
            counters: Counters::default(),
            layout,
        };
        medium.check().map_err(|violation| violation.to_string())?;
        medium.lay_carried(&carried)?;
        medium.lay_lost_parts(&lost_parts)?;
        Ok(medium)
    }
}

impl Medium {
    /// Sets the erases and the health of a block, for a medium that is rebuilt with
    /// [`Medium::redo`].
    pub fn lay_block(&mut self, block: BlockId, erases: u32, health: u8) {
        self.erases[block] = erases;
        let state = &mut self.blocks[block];
        state.bad = health & BAD != 0;
        state.erase_fails = health & ERASE_FAILS != 0;
        state.program_fails = health & PROGRAM_FAILS != 0;
    }

    /// Sets the number of erases of a block that ended a cycle in SLC mode, for a medium that is
    /// rebuilt with [`Medium::redo`].
    pub fn lay_slc_erases(&mut self, block: BlockId, erases: u32) {
        self.slc_erases[block] = erases.min(self.erases[block]);
    }

    /// Sets the number of spare blocks left in a lane, for a medium that is rebuilt with
    /// [`Medium::redo`].
    pub fn lay_spares(&mut self, lane: LaneId, left: u32) {
        self.spares[lane] = left.min(self.rules.spare_blocks);
    }
}

/// Returns the cells of a drive that is as a base says.
fn over(layout: &Arc<Layout>, laid: Laid) -> Cells {
    let (mut cells, base) = (Cells::new(layout), Arc::clone(&laid.base));
    cells.lay(laid, |block| base.programmed(block) > 0);
    cells
}

/// Returns the cells of an image of this layout. What an image holds of erased blocks is dropped.
fn cells(layout: &Arc<Layout>, image: &Image) -> Cells {
    let mut cells = Cells::new(layout);
    for block in layout.block_ids() {
        let Range { start, end } = layout.frames_of(block);
        if image.state[usize::from(start)..usize::from(end)].iter().all(|&state| state == 0) {
            continue;
        }
        for frame in (start.0..end.0).map(FrameId) {
            let (at, slot) = (usize::from(frame), layout.first_slot(frame).0 as usize);
            let (low, high) = (u64::from(image.sequence_low[at]), image.sequence_high[at]);
            let (header, slots) = cells.change(frame);
            let sequence = low | u64::from(high) << 32;
            let copied = image.copied.get(at).copied().unwrap_or(0);
            *header = Header { state: image.state[at], sequence, copied }.words();
            let held = image.lpns[slot..].iter().zip(&image.stamps[slot..]);
            slots.iter_mut().zip(held).for_each(|(cell, (&lpn, &stamp))| *cell = [lpn, stamp]);
        }
    }
    cells
}

fn health(block: &Block) -> u8 {
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    bit(block.bad, BAD)
        | bit(block.erase_fails, ERASE_FAILS)
        | bit(block.program_fails, PROGRAM_FAILS)
}

/// Returns the values, or no values if all of them are zero.
fn unless_all_zero<T: Default + PartialEq>(values: Vec<T>) -> Vec<T> {
    if values.iter().all(|value| *value == T::default()) { Vec::new() } else { values }
}
