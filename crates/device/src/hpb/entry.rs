//! Entries of the map as they are sent to the host and back.
//!
//! An entry is a number of 64 bits, and 8 or 4 of its bytes are sent ([`Protect::entry_bytes`]).
//! The host stores the entry without interpreting it.
//!
//! | `hpb.protect` | bits 63 to 0 | chance that a forgery is accepted |
//! |---|---|---|
//! | `plain` | 36 zeros, 28 of the place (the paper's 4 bytes) | certain |
//! | `tagged` | 28 of the place, 8 of the generation, 28 of a tag | 1 in 2^28 |
//! | `encrypted` | 32 zeros, 32 of the encrypted place (28) and generation (4) | n in 2^32 |
//!
//! Here n is the number of slots whose spare area names the page. The tag is SipHash-2-4 (Aumasson
//! and Bernstein, INDOCRYPT 2012) of unit, page, place and generation, cut to 28 bits. An entry of
//! 4 bytes has no room for a tag. With `encrypted`, a Feistel network of eight rounds encrypts the
//! entry. Its round function is SipHash-2-4 of unit, page, round and the other half of the block. A
//! changed entry decrypts to another place and another generation. It is refused if the generation
//! is wrong, or if the spare area at that place names another page. The table states the chance
//! that neither check refuses it.

use flashatlas_types::{Lpn, Ppn, Rng, Seed};
use siphasher::sip::SipHasher24;

/// Entry that the host gets for a page without a place. The host sends no read with this entry.
pub const NO_ENTRY: u64 = u64::MAX;

/// Bits of a place.
const PLACE_BITS: u32 = 28;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
const TAG_BITS: u32 = 28;
/// The number of the drive's only logical unit.
const UNIT: u8 = 0;
const ROUNDS: u8 = 8;

/// Smallest number of slots for which a drive is refused. With fewer slots, an entry has enough
/// bits for every place.
pub const SLOTS_MAX: u32 = PLACE;

/// Protection of entries against forgery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protect {
    /// No protection.
    Plain,
    /// Protection by a tag.
    Tagged,
    /// Protection by encryption.
    Encrypted,
}

impl Protect {
    /// Returns the protection that a value of `hpb.protect` names.
    pub fn parse(name: &str) -> Protect {
        match name {
            "plain" => Protect::Plain,
            "tagged" => Protect::Tagged,
            _ => Protect::Encrypted,
        }
    }

    /// Returns the number of bytes of an entry on the link and in the host's memory.
    pub const fn entry_bytes(self) -> u32 {
        if matches!(self, Protect::Tagged) { 8 } else { 4 }
    }

    /// Returns the number of different generations of a subregion, or 1 if entries have no
    /// generation.
    pub const fn generations(self) -> u32 {
        match self {
            Protect::Plain => 1,
            Protect::Tagged => 1 << 8,
            Protect::Encrypted => 1 << 4,
        }
    }

    /// Returns the number of hashes needed to make or to check an entry.
    pub const fn hashes(self) -> u64 {
        match self {
            Protect::Plain => 0,
            Protect::Tagged => 1,
            Protect::Encrypted => ROUNDS as u64,
        }
    }
}

/// Reason why an entry is refused. The drive then looks up the page in its own map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The entry's subregion was never exported.
    Inactive,
    /// The subregion, or the page itself, has changed since the last export.
    Dirty,
    /// The entry belongs to an earlier generation, or is an encrypted entry that was changed.
    Stale,
    /// The tag does not match, or a bit is set that is zero in every valid entry.
    Tampered,
    /// The place lies beyond the flash.
    OutOfRange,
    /// The spare area at the place names another page.
    Elsewhere,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Refusal; 6] = [
        Refusal::Inactive,
        Refusal::Dirty,
        Refusal::Stale,
        Refusal::Tampered,
        Refusal::OutOfRange,
        Refusal::Elsewhere,
    ];

    /// Returns the name of the reason's counter.
    pub const fn name(self) -> &'static str {
        [
            "refused_inactive",
            "refused_dirty",
            "refused_stale",
            "refused_tampered",
            "refused_out_of_range",
            "refused_elsewhere",
        ][self as usize]
    }
}

/// Key that makes and checks entries.
#[derive(Clone)]
pub struct Sealer {
    protect: Protect,
    hash: SipHasher24,
    keys: Rng,
}

impl Sealer {
    /// Returns a sealer with its first key. [`Sealer::new_key`] draws a new key each time the power
    /// comes on, and when all generations are used up.
    ///
    /// A real drive draws its keys from noise. Here the seed determines the keys, so that runs can
    /// be repeated.
    pub fn new(protect: Protect, seed: Seed) -> Sealer {
        let mut sealer =
            Sealer { protect, hash: SipHasher24::new(), keys: Rng::stream(seed, "hpb key") };
        sealer.new_key();
        sealer
    }

    /// Replaces the key, so that all earlier entries become invalid. With [`Protect::Plain`] this
    /// changes nothing, because plain entries have no key.
    pub fn new_key(&mut self) {
        let mut draw = || self.keys.below(1 << 32) << 32 | self.keys.below(1 << 32);
        self.hash = SipHasher24::new_with_keys(draw(), draw());
    }

    /// Returns the protection of entries.
    pub fn protect(&self) -> Protect {
        self.protect
    }

    /// Returns the entry that records `ppn` as the place of `lpn` in `generation`.
    pub fn seal(&self, lpn: Lpn, ppn: Ppn, generation: u8) -> u64 {
        debug_assert!(ppn.0 < PLACE, "the layer is refused over drives with more slots");
        match self.protect {
            Protect::Plain => ppn.0.into(),
            Protect::Tagged => {
                let head = u64::from(ppn.0) << 8 | u64::from(generation);
                head << TAG_BITS | self.tag(lpn, head)
            }
            Protect::Encrypted => {
                self.feistel(lpn, ppn.0 << 4 | u32::from(generation & 15), 0..ROUNDS).into()
            }
        }
    }

    /// Returns the place in `entry`, after the checks that need only the entry itself. `generation`
    /// is the current generation of the page's subregion.
    ///
    /// # Errors
    /// Returns [`Refusal::Tampered`] or [`Refusal::Stale`] if the entry is refused.
    pub fn open(&self, lpn: Lpn, entry: u64, generation: u8) -> Result<Ppn, Refusal> {
        let place = match self.protect {
            Protect::Plain => u32::try_from(entry)
                .ok()
                .filter(|place| *place <= PLACE)
                .ok_or(Refusal::Tampered)?,
            Protect::Tagged => {
                let head = entry >> TAG_BITS;
                // a comparison of whole numbers takes the same time for every wrong tag
                if self.tag(lpn, head) ^ (entry & ((1 << TAG_BITS) - 1)) != 0 {
                    return Err(Refusal::Tampered);
                }
                if head as u8 != generation {
                    return Err(Refusal::Stale);
                }
                (head >> 8) as u32
            }
            Protect::Encrypted => {
                let sealed = u32::try_from(entry).map_err(|_| Refusal::Tampered)?;
                let open = self.feistel(lpn, sealed, (0..ROUNDS).rev());
                if open as u8 & 15 != generation & 15 {
                    return Err(Refusal::Stale);
                }
                open >> 4
            }
        };
        Ok(Ppn(place))
    }

    fn tag(&self, lpn: Lpn, head: u64) -> u64 {
        let mut message = [0; 10];
        message[0] = UNIT;
        message[1..5].copy_from_slice(&lpn.0.to_be_bytes());
        message[5..].copy_from_slice(&head.to_be_bytes()[3..]);
        self.hash.hash(&message) & ((1 << TAG_BITS) - 1)
    }

    /// Returns `block` after the rounds of the Feistel network: forward to encrypt, backward to
    /// decrypt.
    fn feistel(&self, lpn: Lpn, block: u32, rounds: impl Iterator<Item = u8>) -> u32 {
        let (mut left, mut right) = ((block >> 16) as u16, block as u16);
        for round in rounds {
            // an even round changes the left half and an odd round the right half, so a second run
            // of a round reverts the first
            let (from, to) = if round % 2 == 0 { (right, &mut left) } else { (left, &mut right) };
            let mut message = [0; 8];
            (message[0], message[1]) = (UNIT, round);
            message[2..6].copy_from_slice(&lpn.0.to_be_bytes());
            message[6..].copy_from_slice(&from.to_be_bytes());
            *to ^= self.hash.hash(&message) as u16;
        }
        u32::from(left) << 16 | u32::from(right)
    }
}

/// Formats the sealer without its key.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer({:?})", self.protect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector in appendix A of the SipHash paper: key 00 01 .. 0f, message 00 01 .. 0e.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let message: Vec<u8> = (0..15).collect();
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        assert_eq!(SipHasher24::new_with_key(&key).hash(&message), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn entries_say_what_was_sealed_and_nothing_else() {
        for protect in [Protect::Plain, Protect::Tagged, Protect::Encrypted] {
            let mut sealer = Sealer::new(protect, Seed(1));
            let mut opened = 0;
            for n in 0..2000u32 {
                let (lpn, ppn, generation) =
                    (Lpn(n * 7), Ppn(n * 131_071 % SLOTS_MAX), (n % 16) as u8);
                let entry = sealer.seal(lpn, ppn, generation);
                assert_eq!(sealer.open(lpn, entry, generation), Ok(ppn), "{protect:?}");
                if protect == Protect::Plain {
                    continue;
                }
                assert_eq!(
                    sealer.open(lpn, entry, (generation + 1) % 16),
                    Err(Refusal::Stale),
                    "{protect:?}"
                );
                // each bit is flipped in turn, and the entry is also tried for another page; if a
                // forgery is accepted, it must yield another place
                let forged =
                    (0..64).map(|bit| (lpn, entry ^ 1 << bit)).chain([(Lpn(lpn.0 + 1), entry)]);
                for (lpn, entry) in forged {
                    let found = sealer.open(lpn, entry, generation);
                    assert_ne!(found, Ok(ppn), "{protect:?}");
                    opened += u32::from(found.is_ok());
                }
            }
            // a forged tag matches once in 2^28; the generation of a forged encrypted entry is
            // right once in 16, but the place is still wrong
            let chance = if protect == Protect::Encrypted { 2000 * 33 / 16 } else { 0 };
            assert!(opened.abs_diff(chance) <= chance / 10, "{protect:?}: {opened} of {chance}");
            let entry = sealer.seal(Lpn(1), Ppn(1), 0);
            sealer.new_key();
            assert!(protect == Protect::Plain || sealer.open(Lpn(1), entry, 0) != Ok(Ppn(1)));
        }
    }
}
