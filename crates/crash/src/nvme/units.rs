//! Contents that each mapping unit may hold, block by block.

use super::step::Blocks;
use flashatlas_types::SECTOR_BYTES;
use std::ops::Range;

/// Bytes of a logical block.
pub const BLOCK: usize = SECTOR_BYTES as usize;

/// Content of a block: a number that its bytes repeat. [`ZEROS`] is a block of zeros.
pub type Tag = u32;
/// Content of a block of zeros.
pub const ZEROS: Tag = 0;
/// Content of a block that no host wrote.
const STRANGE: Tag = Tag::MAX;
/// Number of blocks of one write that can have different contents.
pub const WRITE_MAX: u32 = 1 << 8;

/// Returns the content of a block of the write of this number.
pub fn tag(write: u32, block: u32) -> Tag {
    (write + 1) << 8 | block
}

/// Returns the content of a block before a workload.
pub fn before(lba: u32) -> Tag {
    1 << 31 | lba
}

/// Appends the bytes of a block.
pub fn extend(bytes: &mut Vec<u8>, tag: Tag) {
    bytes.extend(std::iter::repeat_n(tag.to_le_bytes(), BLOCK / 4).flatten());
}

/// Returns the contents of the blocks in `bytes`.
pub fn tags(bytes: &[u8]) -> Vec<Tag> {
    let of_block = |block: &[u8]| {
        // a block that repeats its first four bytes equals itself shifted by four bytes
        let repeats = block[4..] == block[..BLOCK - 4];
        let first = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        if repeats { first } else { STRANGE }
    };
    bytes.chunks_exact(BLOCK).map(of_block).collect()
}

/// Reason why a unit may not hold a version any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise(pub &'static str);

/// One content of a unit.
#[derive(Clone, Debug)]
struct Version {
    blocks: Vec<Tag>,
    /// `true` if the drive may forget this version in a mount, although it is durable: it was
    /// deallocated on a drive that forgets trims.
    forgotten: bool,
    /// `true` if a Write Zeroes or Dataset Management command made it.
    zeroed: bool,
}

/// The versions of a unit.
#[derive(Clone, Debug)]
struct Unit {
    versions: Vec<Version>,
    /// Index of the oldest version that the unit may hold, and the promise that excludes older
    /// versions.
    floor: usize,
    promise: Promise,
    /// Index of the newest version that was acknowledged.
    confirmed: usize,
}

/// The versions of every unit. Reads return the newest version.
#[derive(Clone, Debug)]
pub struct Units {
    units: Vec<Unit>,
    unit_blocks: u32,
    forgets_trims: bool,
    /// Writes so far.
    writes: u32,
}

/// Promises of a command: for each unit, the oldest version from its completion on.
pub type Floors = Vec<(u32, usize)>;

impl Units {
    /// Returns the units of a drive. They hold zeros, or the contents of [`before`] if they are
    /// `filled`.
    pub fn new(count: u32, unit_blocks: u32, filled: bool, forgets_trims: bool) -> Units {
        let unit = |unit: u32| {
            let content = |lba| if filled { before(lba) } else { ZEROS };
            let blocks = (unit * unit_blocks..(unit + 1) * unit_blocks).map(content).collect();
            let version = Version { blocks, forgotten: false, zeroed: false };
            Unit { versions: vec![version], floor: 0, promise: Promise("N2"), confirmed: 0 }
        };
        Units { units: (0..count).map(unit).collect(), unit_blocks, forgets_trims, writes: 0 }
    }

    /// Returns the number of units.
    pub fn len(&self) -> u32 {
        self.units.len() as u32
    }

    /// Returns the blocks of a unit.
    pub fn unit_blocks(&self) -> u32 {
        self.unit_blocks
    }

    /// Returns `true` if a cut may leave one of several versions of a unit.
    pub fn is_dirty(&self) -> bool {
        self.units.iter().any(|unit| unit.floor + 1 < unit.versions.len())
    }

    /// Returns the newest content of blocks.
    pub fn newest(&self, blocks: Blocks) -> Vec<Tag> {
        let one = |lba: u32| {
            let version = self.units[(lba / self.unit_blocks) as usize].versions.last();
            version.expect("a unit has a version").blocks[(lba % self.unit_blocks) as usize]
        };
        (blocks.first..blocks.first + blocks.count).map(one).collect()
    }

    /// Returns the contents of the next write of blocks.
    pub fn next_write(&self, blocks: Blocks) -> Vec<Tag> {
        (0..blocks.count).map(|block| tag(self.writes, block)).collect()
    }

    /// Begins a write of blocks, and returns the floors that a promise of this write would set.
    pub fn write(&mut self, blocks: Blocks) -> Floors {
        let contents = self.next_write(blocks);
        self.writes += 1;
        self.change(blocks, &contents, false)
    }

    /// Begins a write of zeros, and returns the floors that a promise of this write would set.
    pub fn zero(&mut self, blocks: Blocks) -> Floors {
        self.change(blocks, &vec![ZEROS; blocks.count as usize], true)
    }

    /// Begins to deallocate the units that lie in the range as a whole.
    pub fn deallocate(&mut self, blocks: Blocks) -> Floors {
        let whole = blocks.whole(self.unit_blocks);
        let zeros = vec![ZEROS; self.unit_blocks as usize];
        let forgotten = self.forgets_trims;
        whole
            .map(|unit| self.push(unit, Version { blocks: zeros.clone(), forgotten, zeroed: true }))
            .collect()
    }

    fn change(&mut self, blocks: Blocks, contents: &[Tag], zeroed: bool) -> Floors {
        let of = |unit: u32| {
            let first = unit * self.unit_blocks;
            let version = self.units[unit as usize].versions.last().expect("a unit has a version");
            let mut changed = version.blocks.clone();
            for (block, content) in changed.iter_mut().enumerate() {
                let lba = first + block as u32;
                if let Some(new) = lba.checked_sub(blocks.first)
                    && let Some(&new) = contents.get(new as usize)
                {
                    *content = new;
                }
            }
            (unit, Version { blocks: changed, forgotten: false, zeroed })
        };
        let changed: Vec<_> = blocks.touched(self.unit_blocks).map(of).collect();
        changed.into_iter().map(|(unit, version)| self.push(unit, version)).collect()
    }

    fn push(&mut self, unit: u32, version: Version) -> (u32, usize) {
        let versions = &mut self.units[unit as usize].versions;
        versions.push(version);
        (unit, versions.len() - 1)
    }

    /// Notes that changes were acknowledged.
    pub fn confirm(&mut self, changes: &Floors) {
        for &(unit, version) in changes {
            let confirmed = &mut self.units[unit as usize].confirmed;
            *confirmed = version.max(*confirmed);
        }
    }

    /// Returns the floors of a promise about everything that was acknowledged.
    pub fn confirmed(&self) -> Floors {
        (0..).zip(&self.units).map(|(number, unit)| (number, unit.confirmed)).collect()
    }

    /// Returns the floors of a promise about the newest contents of units.
    pub fn all(&self, units: Range<u32>) -> Floors {
        units.map(|unit| (unit, self.units[unit as usize].versions.len() - 1)).collect()
    }

    /// Keeps a promise: the units hold these versions or newer versions from now on.
    pub fn settle(&mut self, floors: &Floors, promise: Promise) {
        for &(unit, version) in floors {
            let unit = &mut self.units[unit as usize];
            if version > unit.floor {
                (unit.floor, unit.promise) = (version, promise);
            }
        }
    }

    /// Returns the broken promise if a unit may not hold these blocks after a power failure.
    pub fn broken(&self, unit: u32, held: &[Tag]) -> Option<&'static str> {
        let unit = &self.units[unit as usize];
        let (old, allowed) = unit.versions.split_at(unit.floor);
        let is = |version: &Version| version.blocks == held;
        if allowed.iter().any(is) {
            return None;
        }
        if old.iter().any(is) {
            let may_return = allowed.iter().any(|version| version.forgotten);
            let broken = if allowed[0].zeroed { "N4" } else { unit.promise.0 };
            return (!may_return).then_some(broken);
        }
        let ever = |(block, tag): (usize, &Tag)| {
            unit.versions.iter().any(|version| version.blocks[block] == *tag)
        };
        // each block once had this content, but never together with the other blocks
        Some(if held.iter().enumerate().all(ever) { "N5" } else { "N2" })
    }

    /// Describes the versions that a unit may hold.
    pub fn describe(&self, unit: u32) -> String {
        let unit = &self.units[unit as usize];
        let allowed: Vec<_> = unit.versions[unit.floor..].iter().map(|v| &v.blocks).collect();
        format!("{allowed:x?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(first: u32, count: u32) -> Blocks {
        Blocks { first, count }
    }

    #[test]
    fn bytes_and_tags_are_the_same() {
        let mut bytes = Vec::new();
        [tag(0, 0), ZEROS, before(7)].into_iter().for_each(|tag| extend(&mut bytes, tag));
        assert_eq!(tags(&bytes), [0x100, 0, 0x8000_0007]);
        bytes[BLOCK - 1] ^= 1;
        assert_eq!(tags(&bytes)[0], STRANGE);
    }

    #[test]
    fn a_promise_leaves_what_was_acknowledged_and_newer() {
        let mut units = Units::new(3, 4, true, false);
        let old = units.newest(blocks(0, 4));
        let write = units.write(blocks(0, 4));
        let new = units.newest(blocks(0, 4));
        let flush = units.confirmed();
        assert_eq!((units.broken(0, &old), units.broken(0, &new)), (None, None));
        units.confirm(&write);
        units.settle(&flush, Promise("N2"));
        assert_eq!(units.broken(0, &old), None, "the write was not complete before the flush");
        units.settle(&units.confirmed(), Promise("N2"));
        assert_eq!((units.broken(0, &old), units.broken(0, &new)), (Some("N2"), None));
        assert!(!units.is_dirty());
    }

    #[test]
    fn a_mixture_of_two_versions_is_no_atomic_write() {
        let mut units = Units::new(1, 4, true, false);
        let mut mixed = units.newest(blocks(0, 4));
        units.write(blocks(0, 4));
        mixed[0] = units.newest(blocks(0, 1))[0];
        assert_eq!(units.broken(0, &mixed), Some("N5"));
        mixed[0] = 42;
        assert_eq!(units.broken(0, &mixed), Some("N2"), "nobody wrote that");
    }

    #[test]
    fn deallocated_data_comes_back_where_trims_are_forgotten_and_zeroed_data_nowhere() {
        for forgets in [false, true] {
            let mut units = Units::new(2, 4, true, forgets);
            let old = [units.newest(blocks(0, 4)), units.newest(blocks(4, 4))];
            let trim = units.deallocate(blocks(0, 7));
            assert_eq!(trim.len(), 1, "the other unit is covered in part");
            let zero = units.zero(blocks(4, 4));
            units.settle(&trim, Promise("N3"));
            units.settle(&zero, Promise("N3"));
            assert_eq!(units.broken(0, &old[0]), (!forgets).then_some("N4"));
            assert_eq!(units.broken(1, &old[1]), Some("N4"));
        }
    }
}
