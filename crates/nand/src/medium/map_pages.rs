//! Map pages over a base: what a base says is not written into them.
//!
//! An entry of such a page is computed when a caller asks for it. The page has its header, and the
//! entries that differ from the base. Its bytes, and the checksum of them in the stamp, are made
//! when a caller needs them ([`Medium::write_down_maps`]). Every function of [`Medium`] but
//! [`Medium::map_content`] and [`Medium::map_page`] then gives the same results as on a medium with
//! bytes.

use crate::{Medium, OobRole};
use flashatlas_types::base::{Base, Held};
use flashatlas_types::{BlockId, Layout, Lpn, MediumError, Ppn};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The bytes before the entries of a map page.
pub const MAP_HEADER_BYTES: usize = 24;

/// The form of the entries of a map page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapForm {
    /// The number of entries of a map page.
    pub per_page: u32,
    /// The number of bytes of an entry: 4 or 8.
    pub entry_bytes: u32,
    /// The number of slots of a map page.
    pub slots: u32,
}

impl MapForm {
    /// Appends entries as little-endian bytes. Entries of unmapped pages, and entries that follow
    /// the last entry of the drive, are all ones.
    pub fn encode(&self, entries: impl ExactSizeIterator<Item = Ppn>, out: &mut Vec<u8>) {
        let padding = std::iter::repeat_n(Ppn::NONE, self.per_page as usize - entries.len());
        let all = entries.chain(padding);
        if self.entry_bytes == 4 {
            out.extend(all.flat_map(|p| p.0.to_le_bytes()));
        } else {
            // the upper half is reserved for larger drives
            out.extend(all.flat_map(|p| {
                if p == Ppn::NONE { u64::MAX } else { u64::from(p.0) }.to_le_bytes()
            }));
        }
    }
}

/// A map page whose entries are as the base says, but for some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapOfBase {
    /// The bytes before the entries.
    pub header: [u8; MAP_HEADER_BYTES],
    /// The entries that differ from the base in ascending order: their index in the page, and the
    /// place that they name.
    pub changed: Box<[(u32, Ppn)]>,
}

impl MapOfBase {
    /// Returns the place that an entry names, or `None` if it is as the base says.
    pub fn place(&self, index: u32) -> Option<Ppn> {
        let at = self.changed.binary_search_by_key(&index, |&(index, _)| index).ok()?;
        Some(self.changed[at].1)
    }
}

/// The content of a map page.
#[derive(Clone, Copy, Debug)]
pub enum MapContent<'a> {
    /// Header and entries.
    Bytes(&'a Arc<[u8]>),
    /// Entries as the base says, but for some.
    OfBase(&'a MapOfBase),
}

/// The map pages of a medium that are as its base says, but for some entries.
#[derive(Clone, Debug)]
pub(crate) struct MapsOfBase {
    form: MapForm,
    /// The pages by their first slot. Nothing depends on their order.
    pages: FxHashMap<Ppn, MapOfBase>,
}

impl MapsOfBase {
    /// Removes the pages in a block.
    pub fn drop_block(&mut self, layout: &Layout, block: BlockId) {
        let first = layout.block_slot(block).0;
        for slot in (first..first + layout.slots_per_block).step_by(self.form.slots as usize) {
            self.pages.remove(&Ppn(slot));
        }
    }
}

/// Returns the place of each page in a base, block by block, which is faster than page by page.
fn places(layout: &Layout, base: &Base) -> Vec<Ppn> {
    let mut places = vec![Ppn::NONE; layout.logical_units as usize];
    let mut held = Vec::with_capacity(layout.block_len());
    for block in layout.block_ids() {
        held.clear();
        base.decode(block, &mut held);
        for (slot, held) in (layout.block_slot(block).0..).map(Ppn).zip(&held) {
            if let Held::Valid(lpn) = held {
                places[lpn.0 as usize] = slot;
            }
        }
    }
    places
}

impl Medium {
    /// Returns whether a map page may be held as the base says. A journal has bytes.
    #[inline]
    pub fn holds_maps_of_base(&self) -> bool {
        self.cells.base.is_some() && self.journal.is_none()
    }

    /// Gives the map page that was just programmed to a slot the entries of the base, but for some.
    /// All such pages of a medium have one form.
    ///
    /// # Panics
    /// Panics if the medium has no base, or holds pages of another form.
    pub fn hold_map_of_base(&mut self, ppn: Ppn, page: MapOfBase, form: MapForm) {
        assert!(self.holds_maps_of_base(), "there is a base under the map");
        let maps = self
            .cells
            .maps
            .get_or_insert_with(|| Box::new(MapsOfBase { form, pages: FxHashMap::default() }));
        assert!(maps.form == form, "map pages have one form");
        maps.pages.insert(ppn, page);
    }

    /// Returns the content of the map page that begins in a slot, without an operation.
    ///
    /// # Errors
    /// Returns the errors of [`Medium::map_page`].
    #[inline]
    pub fn map_content(&self, ppn: Ppn) -> Result<MapContent<'_>, MediumError> {
        if let Some(maps) = &self.cells.maps
            && let Some(page) = maps.pages.get(&ppn)
        {
            self.must_be_readable(self.layout.frame_of(ppn))?;
            return Ok(MapContent::OfBase(page));
        }
        self.map_page(ppn).map(MapContent::Bytes)
    }

    /// Returns the place of a page in the base.
    ///
    /// # Panics
    /// Panics if the medium has no base.
    pub fn place_in_base(&self, lpn: Lpn) -> Ppn {
        self.cells.base.as_ref().expect("a medium with a base").base.slot_of(lpn)
    }

    /// Returns the base of this medium, if every block is still as the base says. Blocks of map
    /// pages in which the base has nothing may differ.
    pub fn base_under_map(&self) -> Option<&Arc<Base>> {
        let base = &self.cells.base.as_ref()?.base;
        let is_map = |block| self.oob_role(block) == OobRole::MAP;
        let untouched = self.cells.is_untouched(|block| base.programmed(block) > 0, is_map);
        untouched.then_some(base)
    }

    /// Returns the blocks of map pages.
    fn map_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.layout.block_ids().filter(|&block| self.oob_role(block) == OobRole::MAP)
    }

    /// Returns whether no block was erased yet, and each map page was written once at most.
    pub(crate) fn has_map_once(&self) -> bool {
        let mut seen = FxHashSet::default();
        let mut is_new = |block| {
            let first = self.layout.block_slot(block).0;
            let slots = self.write_pointer(block) * self.layout.slots_per_frame;
            let step = self.cells.maps.as_ref().map_or(1, |maps| maps.form.slots as usize);
            let mut pages = (first..first + slots).step_by(step).map(|slot| self.lpn(Ppn(slot)));
            pages.all(|page| page.is_ok_and(|page| page == Lpn::NONE || seen.insert(page)))
        };
        self.erases.iter().all(|&erases| erases == 0) && self.map_blocks().all(&mut is_new)
    }

    /// Makes the blocks of map pages blocks that were never programmed.
    pub(crate) fn leave_out_map(&mut self, base: &Base) {
        for block in self.map_blocks().collect::<Vec<_>>() {
            self.blocks[block].next = 0;
            self.blocks[block].role = OobRole::default();
            self.cells.wipe(block);
            self.drop_bytes(block);
        }
        self.sequence = base.programs();
    }

    /// Gives every map page bytes of its own, and a stamp that is their checksum. This changes no
    /// content.
    pub fn write_down_maps(&mut self) {
        let Some(maps) = self.cells.maps.take() else { return };
        let MapsOfBase { form, pages } = *maps;
        let layout = Arc::clone(&self.layout);
        let base = &self.cells.base.as_ref().expect("map pages of a base have one").base;
        let places = places(&layout, base);
        for (ppn, page) in pages {
            let first = self.cells.cell(ppn)[0] as usize * form.per_page as usize;
            let end = (first + form.per_page as usize).min(places.len());
            let mut entries = places[first..end].to_vec();
            page.changed.iter().for_each(|&(index, place)| entries[index as usize] = place);
            let mut bytes = page.header.to_vec();
            form.encode(entries.into_iter(), &mut bytes);
            let (frame, stamp) = (layout.frame_of(ppn), crc32c::crc32c(&bytes));
            let at = (ppn.0 - layout.first_slot(frame).0) as usize;
            let (_, cells) = self.cells.change(frame);
            cells[at..][..form.slots as usize].iter_mut().for_each(|cell| cell[1] = stamp);
            self.bytes.insert(ppn, bytes.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flash, Rules, Unit};
    use flashatlas_fixtures::layouts::lanes;
    use flashatlas_types::base::Filled;
    use flashatlas_types::{BlockMode, Cause, Index, Plan, Seed, Stamp};

    const FORM: MapForm = MapForm { per_page: 32, entry_bytes: 4, slots: 2 };

    /// Returns a filled medium with a map page in block 3, and the place of the map page. The page
    /// has entries 160 to 164, the last of the drive. Page 161 is not mapped.
    fn with_map_page() -> (Medium, Ppn) {
        let layout = Arc::new(lanes(2, [9, 8, 4], 165));
        let order = [[5, 2, 8], [10, 17, 9]].map(|lane| lane.map(BlockId::from_number).to_vec());
        let mut medium = Medium::new(layout.clone(), Rules::PLAIN, 0, Seed(1)).unwrap();
        medium.lay(Arc::new(Base::Filled(Filled::new(&layout, &order))), |lpn| Stamp(lpn.0 + 1));
        let block = BlockId::new(3);
        medium.open(block, OobRole::MAP, BlockMode::Native);
        let unit = Unit { lpn: Lpn(5), stamp: Stamp::ZERO, bytes: None };
        let mut plan = Plan::default();
        let mut flash = Flash { medium: &mut medium, plan: &mut plan };
        let frame = layout.frame_in(block, 0);
        let (at, _) = flash.program(frame, [&unit, &unit].into_iter(), Cause::Map, &[]).unwrap();
        let changed = Box::new([(1, Ppn::NONE)]);
        medium.hold_map_of_base(at, MapOfBase { header: [7; 24], changed }, FORM);
        (medium, at)
    }

    #[test]
    fn a_map_page_of_a_base_gets_bytes_when_they_are_needed() {
        let (mut medium, at) = with_map_page();
        assert!(medium.base_under_map().is_some() && medium.untouched_base().is_none());
        let Ok(MapContent::OfBase(page)) = medium.map_content(at) else { panic!("it has bytes") };
        assert_eq!([0, 1, 2].map(|index| page.place(index)), [None, Some(Ppn::NONE), None]);
        let mut expected = vec![7; 24];
        for lpn in 160..192 {
            let is_mapped = lpn < 165 && lpn != 161;
            let place = if is_mapped { medium.place_in_base(Lpn(lpn)) } else { Ppn::NONE };
            expected.extend(place.0.to_le_bytes());
        }
        let stamp = |medium: &Medium, slot| medium.unit_by_stamp(Ppn(slot)).unwrap().stamp;
        medium.write_down_maps();
        assert!(matches!(medium.map_content(at), Ok(MapContent::Bytes(b)) if b[..] == expected));
        for slot in [at.0, at.0 + 1] {
            assert_eq!(stamp(&medium, slot), Stamp(crc32c::crc32c(&expected)));
        }
        assert_eq!(stamp(&medium, at.0 + 2), Stamp::ZERO, "the padding has no stamp");
        let (mut damaged, at) = with_map_page();
        damaged.corrupt(at);
        assert_eq!(damaged.map_content(at).err(), Some(MediumError::Damaged(at)));
    }

    #[test]
    fn a_map_page_of_a_base_goes_with_its_block() {
        let (mut medium, at) = with_map_page();
        assert!(medium.has_map_once());
        let mut plan = Plan::default();
        let mut flash = Flash { medium: &mut medium, plan: &mut plan };
        flash.erase(BlockId::new(3), Cause::Map, &[]).unwrap();
        assert!(medium.map_content(at).is_err() && !medium.has_map_once());
        assert!(medium.cells.maps.as_ref().unwrap().pages.is_empty());
        // a checkpoint of the base leaves the map page out
        let (medium, _) = with_map_page();
        let base = medium.base_under_map().cloned().unwrap();
        let (image, _) = medium.into_image_over_base().unwrap();
        assert_eq!((image.sequence, image.next[3], image.roles[3]), (base.programs(), 0, 0));
        assert!(image.map_slots.is_empty());
    }
}
