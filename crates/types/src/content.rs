//! Content stamps: 32 bits that stand for the bytes of a mapping unit.
//!
//! A simulation rarely needs bytes, but must notice when a read returns wrong bytes. A stamp is a
//! digest of the *history* of a unit: a whole write replaces it, and a partial write is mixed into
//! the old stamp. The drive computes the new stamp from the stamp that its own medium returned, and
//! the oracle computes it from its own copy with the same function. If a read-modify-write merges
//! the wrong old page, the two stamps differ.

/// A digest of a unit's content. [`Stamp::ZERO`] stands for a unit that was never written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stamp(pub u32);

impl Stamp {
    /// The stamp of a unit that was never written, or was trimmed. The unit reads as zeros.
    pub const ZERO: Stamp = Stamp(0);

    /// The stamp of a unit whose data was lost before it was copied. The copy cannot be read.
    pub const LOST: Stamp = Stamp(u32::MAX);

    /// Returns the stamp of a unit that one write covers completely.
    ///
    /// `content` identifies the write. `offset` is the first sector of the unit, counted from the
    /// first sector of the write, so that the units of one write have different stamps.
    #[inline]
    pub fn whole(content: u64, offset: u32) -> Stamp {
        Stamp::from_hash(mix(content ^ (u64::from(offset) << 40)))
    }

    /// Returns the stamp after a write of `sectors` sectors, from sector `first` of the unit on.
    /// This stamp stands for the content before the write.
    #[inline]
    pub fn overwritten(self, content: u64, first: u32, sectors: u32) -> Stamp {
        let place = (u64::from(first) << 32) | u64::from(sectors);
        Stamp::from_hash(mix(mix(content ^ place.rotate_left(17)) ^ u64::from(self.0)))
    }

    fn from_hash(hash: u64) -> Stamp {
        let folded = (hash >> 32) as u32;
        Stamp(folded.clamp(1, u32::MAX - 1))
    }
}

/// Returns `x` mixed by the finaliser of SplitMix64: every input bit reaches every output bit.
#[inline]
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_depends_on_the_old_content_the_place_and_the_write() {
        let old = Stamp::whole(1, 0);
        let new = old.overwritten(2, 0, 1);
        assert_ne!(new, Stamp::whole(9, 0).overwritten(2, 0, 1), "another old content");
        assert_ne!(new, old.overwritten(2, 1, 1), "another place");
        assert_ne!(new, old.overwritten(3, 0, 1), "another write");
        assert_ne!(Stamp::whole(1, 0), Stamp::whole(1, 8), "two units of one write");
        assert_ne!(old, Stamp::ZERO);
    }
}
