//! The two slots that keep the durable record.
//!
//! Records go into the slots in turn. After a torn write, the record before it is still there.

use flashatlas_types::SeededBug;

/// Number of slots.
pub const SLOTS: u64 = 2;
/// Bytes of a slot before the record: the checksum of the rest, the length of the record, and its
/// number.
pub const HEAD: usize = 16;

/// The newest record in the slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest<'a> {
    /// Number of the record, counted from 1 over the life of the slots.
    pub number: u64,
    /// The record.
    pub record: &'a [u8],
}

/// Returns the content of a slot with this record.
pub fn encode(number: u64, record: &[u8]) -> Vec<u8> {
    let mut slot = vec![0; 4];
    slot.extend((record.len() as u32).to_le_bytes());
    slot.extend(number.to_le_bytes());
    slot.extend(record);
    let sum = crc32c::crc32c(&slot[4..]);
    slot[..4].copy_from_slice(&sum.to_le_bytes());
    slot
}

/// Returns the record of a slot, unless the slot is blank or torn.
fn decode(slot: &[u8]) -> Option<Newest<'_>> {
    let (head, rest) = slot.split_at_checked(HEAD)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = word(4) as usize;
    let record = rest.get(..length).filter(|record| !record.is_empty())?;
    let number = u64::from(word(8)) | u64::from(word(12)) << 32;
    (word(0) == crc32c::crc32c(&slot[4..HEAD + length])).then_some(Newest { number, record })
}

/// Returns the newest record in the slots, or `None` if no slot holds one.
pub fn newest<'a>(slots: impl IntoIterator<Item = &'a [u8]>) -> Option<Newest<'a>> {
    slots.into_iter().filter_map(decode).max_by_key(|newest| newest.number)
}

/// Returns the number of the next record, and the slot that it overwrites: the older slot.
pub fn next(newest: Option<Newest<'_>>) -> (u64, u64) {
    let number = newest.map_or(0, |newest| newest.number) + 1;
    (number, if SeededBug::RecordInPlace.is_active() { 0 } else { number % SLOTS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_write_leaves_the_record_before_it() {
        let mut slots = [vec![0; 600], vec![0; 600]];
        for last in 1..6u8 {
            let before = newest(slots.iter().map(Vec::as_slice)).map(|n| n.record.to_vec());
            let (number, slot) = next(newest(slots.iter().map(Vec::as_slice)));
            assert_eq!(number, last.into());
            let written = encode(number, &[last; 560]);
            for torn in 0..written.len() {
                let mut left = slots.clone();
                left[slot as usize][..torn].copy_from_slice(&written[..torn]);
                let found = newest(left.iter().map(Vec::as_slice)).map(|n| n.record.to_vec());
                // the last byte of a record may equal the byte that it overwrites
                let whole = left[slot as usize][..written.len()] == written[..];
                assert!(whole || found == before, "{torn} bytes of record {last}");
            }
            slots[slot as usize][..written.len()].copy_from_slice(&written);
            assert_eq!(newest(slots.iter().map(Vec::as_slice)).unwrap().record, [last; 560]);
        }
    }
}
