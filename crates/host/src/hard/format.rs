//! Records on the lower device (`docs/FORMATS.md`). Each record has its own superpage.
//!
//! Records of all kinds have the same header.

use super::settings::{Areas, HEADER_BYTES};
use flashatlas_types::SECTOR_BYTES;

const MAGIC: [u8; 4] = *b"FAHD";
const VERSION: u16 = 1;

/// Kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(super) enum Kind {
    /// The parameters that determine the places of all areas. It is written once.
    Superblock = 1,
    /// Changes of the map since the previous record, written at the end of a segment.
    Summary = 2,
    /// Changes of the map since the previous record, written within a segment.
    Journal = 3,
    /// The header of a checkpoint.
    Checkpoint = 4,
    /// A part of the map of a checkpoint.
    Chunk = 5,
}

/// A record that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub kind: Kind,
    /// Number of a log record, or generation of a checkpoint and its chunks.
    pub sequence: u64,
    pub words: Vec<u32>,
}

/// Reason why bytes are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoRecord {
    /// The bytes are all zero, so nothing was written there.
    Blank,
    /// The bytes do not begin like a record.
    Foreign,
    /// The bytes begin like a record but are damaged.
    Damaged,
}

impl Record {
    /// Returns the bytes of the record's superpage.
    ///
    /// # Panics
    /// Panics if the words do not fit.
    pub fn encode(&self, superpage_bytes: u32) -> Vec<u8> {
        let length = self.words.len() * 4;
        assert!(
            HEADER_BYTES as usize + length <= superpage_bytes as usize,
            "{length} bytes do not fit into a superpage of {superpage_bytes} bytes"
        );
        let mut bytes = Vec::with_capacity(superpage_bytes as usize);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.kind as u16).to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&(self.words.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 12]);
        self.words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let sum = crc32c::crc32c(&bytes);
        bytes[20..24].copy_from_slice(&sum.to_le_bytes());
        bytes.resize(superpage_bytes as usize, 0);
        bytes
    }

    /// Returns the record in a superpage.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a record.
    pub fn decode(bytes: &[u8]) -> Result<Record, NoRecord> {
        if bytes.iter().all(|&b| b == 0) {
            return Err(NoRecord::Blank);
        }
        let word = |at: usize| {
            bytes.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")))
        };
        if bytes.get(..4) != Some(&MAGIC) {
            return Err(NoRecord::Foreign);
        }
        let (Some(kind), Some(low), Some(high), Some(count), Some(sum)) =
            (word(4), word(8), word(12), word(16), word(20))
        else {
            return Err(NoRecord::Damaged);
        };
        let end =
            (count as usize).checked_mul(4).and_then(|n| n.checked_add(HEADER_BYTES as usize));
        let Some(used) = end.and_then(|end| bytes.get(..end)) else {
            return Err(NoRecord::Damaged);
        };
        let mut summed = used.to_vec();
        summed[20..24].fill(0);
        let kinds = [Kind::Superblock, Kind::Summary, Kind::Journal, Kind::Checkpoint, Kind::Chunk];
        let known = kinds.into_iter().find(|&k| kind == u32::from(VERSION) | (k as u32) << 16);
        match known.filter(|_| crc32c::crc32c(&summed) == sum) {
            None => Err(NoRecord::Damaged),
            Some(kind) => Ok(Record {
                kind,
                sequence: u64::from(low) | u64::from(high) << 32,
                words: used[HEADER_BYTES as usize..]
                    .chunks_exact(4)
                    .map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")))
                    .collect(),
            }),
        }
    }
}

/// Returns the fields of a superblock, each with the parameter that sets it.
pub(super) fn superblock(areas: &Areas) -> [(&'static str, u32); 5] {
    [
        ("hard.page", areas.page_sectors * SECTOR_BYTES),
        ("hard.superpage", areas.superpage_bytes()),
        ("drive.logical_pages", areas.superpages),
        ("hard.ring", areas.ring),
        ("hard.reserve", areas.exported),
    ]
}

/// A change of the map in a log record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change<'a> {
    /// A superpage that was written, with the logical page of each of its pages ([`u32::MAX`] for
    /// none).
    Written(u32, &'a [u32]),
    /// A trim, by its first page and its number of pages.
    Trimmed(u32, u32),
}

const TRIMMED: u32 = 1 << 31;

/// Appends a change to the words of a log record.
pub(super) fn push(words: &mut Vec<u32>, change: Change<'_>) {
    match change {
        Change::Written(superpage, lpns) => {
            words.push(superpage);
            words.extend_from_slice(lpns);
        }
        Change::Trimmed(first, count) => words.extend([TRIMMED | count, first]),
    }
}

/// Returns the changes in a log record, and `None` for an invalid change.
pub(super) fn changes<'a>(
    mut words: &'a [u32],
    areas: &'a Areas,
) -> impl Iterator<Item = Option<Change<'a>>> {
    std::iter::from_fn(move || {
        let (&first, rest) = words.split_first()?;
        let length = if first & TRIMMED != 0 { 1 } else { areas.pages as usize };
        let Some((body, rest)) = rest.split_at_checked(length) else {
            words = &[];
            return Some(None);
        };
        words = rest;
        let known = |&lpn: &u32| lpn < areas.exported || lpn == u32::MAX;
        let change = if first & TRIMMED != 0 {
            let count = first & !TRIMMED;
            let fits = body[0].checked_add(count).is_some_and(|end| end <= areas.exported);
            fits.then_some(Change::Trimmed(body[0], count))
        } else {
            (first < areas.data && body.iter().all(known)).then_some(Change::Written(first, body))
        };
        Some(change)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn areas() -> Areas {
        Areas {
            page_sectors: 8,
            pages: 4,
            superpages: 100,
            chunks: 1,
            chunk_entries: 4088,
            ring: 8,
            data: 80,
            exported: 280,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_any_damage_is_seen() {
        let record = Record {
            kind: Kind::Journal,
            sequence: 0x1_2345_6789,
            words: vec![3, 1, 2, u32::MAX, 279, TRIMMED | 2, 7],
        };
        let bytes = record.encode(1024);
        assert_eq!(Record::decode(&bytes), Ok(record));
        for at in 0..HEADER_BYTES as usize + 28 {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                let expected = if at < 4 { NoRecord::Foreign } else { NoRecord::Damaged };
                assert_eq!(Record::decode(&bytes), Err(expected), "byte {at}, bit {bit}");
            }
        }
        for length in 0..HEADER_BYTES as usize + 28 {
            assert!(Record::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Record::decode(&[0; 1024]), Err(NoRecord::Blank));
    }

    #[test]
    fn the_header_is_what_the_formats_say() {
        let bytes = Record { kind: Kind::Summary, sequence: 5, words: vec![] }.encode(64);
        assert_eq!(&bytes[..20], b"FAHD\x01\0\x02\0\x05\0\0\0\0\0\0\0\0\0\0\0");
        let mut summed = bytes[..32].to_vec();
        summed[20..24].fill(0);
        assert_eq!(bytes[20..24], crc32c::crc32c(&summed).to_le_bytes());
        assert!(bytes[24..].iter().all(|&b| b == 0));
    }

    #[test]
    fn changes_out_of_range_are_none() {
        let areas = areas();
        let read = |words: &[u32]| changes(words, &areas).map(|c| c.is_some()).collect::<Vec<_>>();
        assert_eq!(read(&[79, 1, 2, u32::MAX, 279, TRIMMED | 2, 278]), [true, true]);
        assert_eq!(read(&[80, 1, 2, 3, 4]), [false], "no such superpage");
        assert_eq!(read(&[0, 1, 2, 3, 280]), [false], "no such page");
        assert_eq!(read(&[TRIMMED | 3, 278]), [false]);
        assert_eq!(read(&[TRIMMED | 3, u32::MAX]), [false]);
        assert_eq!(read(&[1, 2, 3]), [false], "cut short");
    }
}
