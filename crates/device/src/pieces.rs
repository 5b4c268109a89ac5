//! Splitting of a command into the parts for each mapping unit, with sector and byte positions.

use crate::cache::CacheEntry;
use flashatlas_nand::ReadPart;
use flashatlas_types::{Lba, Lpn, SECTOR_BYTES, Stamp};
use std::ops::Range;
use std::sync::Arc;

/// The part of a write that falls into one mapping unit.
#[derive(Clone, Copy)]
pub struct Piece {
    /// The unit.
    pub lpn: Lpn,
    /// First sector in the unit.
    pub first: u32,
    /// Number of sectors.
    pub sectors: u32,
    /// First sector of the piece, counted from the first sector of the command.
    pub offset: u32,
}

/// Content of a write.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// Number from which stamps are computed.
    Named(u64),
    /// Stamps of whole units, one for each unit.
    Stamps(&'a [Stamp]),
}

impl Content<'_> {
    /// Returns the stamp of a piece's unit after the write. The stamp was `old` before the write.
    pub fn stamp(&self, piece: &Piece, old: Stamp, unit_sectors: u32) -> Stamp {
        match *self {
            Content::Named(name) => piece.stamp(old, name, unit_sectors),
            Content::Stamps(stamps) => {
                assert!(piece.is_whole(unit_sectors), "stamps are given for whole units");
                stamps[(piece.offset / unit_sectors) as usize]
            }
        }
    }
}

impl Piece {
    /// Returns `true` if the piece covers its whole unit.
    pub fn is_whole(&self, unit_sectors: u32) -> bool {
        self.sectors == unit_sectors
    }

    /// Returns a bit mask of the sectors that the piece covers.
    pub fn mask(&self) -> u128 {
        let ones = if self.sectors == 128 { u128::MAX } else { (1u128 << self.sectors) - 1 };
        ones << self.first
    }

    /// Returns the stamp of the unit after this piece of write `content`. The stamp was `old`
    /// before.
    fn stamp(&self, old: Stamp, content: u64, unit_sectors: u32) -> Stamp {
        if self.is_whole(unit_sectors) {
            Stamp::whole(content, self.offset)
        } else {
            old.overwritten(content, self.first, self.sectors)
        }
    }
}

/// Returns the units that a range of sectors touches.
#[inline]
pub fn units(lba: Lba, sectors: u32, unit_sectors: u32) -> Range<u64> {
    let unit = u64::from(unit_sectors);
    let end = lba.0 + u64::from(sectors) + unit - 1;
    // nearly all unit sizes are powers of two, and a 64-bit division would be the slowest
    // instruction of a request
    if unit.is_power_of_two() {
        lba.0 >> unit.trailing_zeros()..end >> unit.trailing_zeros()
    } else {
        lba.0 / unit..end / unit
    }
}

/// Returns the pieces of a range of sectors.
#[inline]
pub fn pieces(lba: Lba, sectors: u32, unit_sectors: u32) -> impl Iterator<Item = Piece> {
    let (unit, start, end) = (u64::from(unit_sectors), lba.0, lba.0 + u64::from(sectors));
    units(lba, sectors, unit_sectors).map(move |lpn| {
        let (from, to) = (start.max(lpn * unit), end.min((lpn + 1) * unit));
        Piece {
            lpn: Lpn(lpn as u32),
            first: (from - lpn * unit) as u32,
            sectors: (to - from) as u32,
            offset: (from - start) as u32,
        }
    })
}

/// Returns the total number of bytes of some pieces.
pub fn bytes_of(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|p| u64::from(p.sectors)).sum::<u64>() * u64::from(SECTOR_BYTES)
}

/// Returns a bit mask of all sectors of a unit.
pub fn all_sectors(unit_sectors: u32) -> u128 {
    if unit_sectors == 128 { u128::MAX } else { (1 << unit_sectors) - 1 }
}

/// Returns the range from the first to the last sector that is missing in `present`.
pub fn missing(present: u128, unit_sectors: u32) -> ReadPart {
    let lacking = all_sectors(unit_sectors) & !present;
    let first = lacking.trailing_zeros();
    ReadPart::Sectors { first, count: (u128::BITS - lacking.leading_zeros()) - first }
}

/// Returns the bytes of one piece within the data of its command.
pub fn slice_of<'d>(data: &'d [u8], piece: &Piece) -> &'d [u8] {
    let start = (piece.offset * SECTOR_BYTES) as usize;
    &data[start..start + (piece.sectors * SECTOR_BYTES) as usize]
}

/// Returns a unit with the bytes of a piece in their place. Its other bytes come from `under`, or
/// are zeros if `under` is `None`.
///
/// The bytes `under` are modified in place if they have no other owner.
pub fn placed(bytes: &[u8], piece: &Piece, under: Option<Arc<[u8]>>, unit: usize) -> Arc<[u8]> {
    let mut unit = match under {
        Some(held) => held,
        None if bytes.len() == unit => return Arc::from(bytes),
        None => std::iter::repeat_n(0, unit).collect(),
    };
    let start = (piece.first * SECTOR_BYTES) as usize;
    Arc::make_mut(&mut unit)[start..start + bytes.len()].copy_from_slice(bytes);
    unit
}

/// Fills the missing sectors of an entry from the bytes `under`.
pub fn merge_under(entry: &mut CacheEntry, under: Option<&[u8]>) {
    if let (Some(bytes), Some(under)) = (&mut entry.bytes, under) {
        let bytes = Arc::make_mut(bytes);
        for (sector, (to, from)) in bytes.chunks_mut(512).zip(under.chunks(512)).enumerate() {
            if entry.present >> sector & 1 == 0 {
                to.copy_from_slice(from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that each sector belongs to exactly one piece, the piece of the sector's unit.
    #[test]
    fn pieces_cover_a_range_unit_by_unit() {
        for unit in [1, 3, 8, 12] {
            for (lba, sectors) in (0..40).flat_map(|lba| (1..30).map(move |sectors| (lba, sectors)))
            {
                let all = pieces(Lba(lba), sectors, unit);
                let covered = all.flat_map(|p| {
                    (0..p.sectors).map(move |s| (p.offset + s, p.lpn.0, p.first + s))
                });
                let sector = |offset: u32| {
                    let at = lba as u32 + offset;
                    (offset, at / unit, at % unit)
                };
                assert!(
                    covered.eq((0..sectors).map(sector)),
                    "{sectors} sectors from sector {lba} on are not whole units of {unit} sectors"
                );
                let touched = units(Lba(lba), sectors, unit);
                let ends = [touched.start, touched.end - 1].map(|u| u as u32);
                assert_eq!(ends, [sector(0).1, sector(sectors - 1).1]);
            }
        }
    }
}
