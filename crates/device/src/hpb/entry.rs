//! Entries of the map as they travel to the host and back: 8 bytes that the host stores and does
//! not read.
//!
//! | `hpb.protect` | bits 63 to 0 | who could forge one |
//! |---|---|---|
//! | `plain` | 32 zeros, 4 zeros, 28 of the place (the paper's 4 bytes) | anyone |
//! | `tagged` | 28 of the place, 8 of the generation, 28 of a tag | one try in 2^28 |
//! | `encrypted` | 32 zeros, 32 of the encrypted place (28) and generation (4) | one try in 2^32, times the slots that name the page |
//!
//! The tag is SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) of unit, page, place and
//! generation, cut to 28 bits. 4 bytes have no room for a tag: there a Feistel network of eight
//! rounds, whose round function is SipHash-2-4 of unit, page and round, makes of a changed entry
//! another place and generation, which the spare area of the page read there does not confirm.

use flashatlas_types::{Lpn, Ppn, Rng, Seed};
use siphasher::sip::SipHasher24;

/// What the host gets for a page that has no place: no read is sent with it.
pub const NO_ENTRY: u64 = u64::MAX;

/// Bits of a place.
const PLACE_BITS: u32 = 28;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
const TAG_BITS: u32 = 28;
/// The one logical unit of a drive.
const UNIT: u8 = 0;
const ROUNDS: u8 = 8;

/// The most slots a drive may have for its entries to hold a place: one value is left for
/// "nowhere".
pub const SLOTS_MAX: u32 = PLACE;

/// How entries are protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protect {
    /// Not at all.
    Plain,
    /// By a tag.
    Tagged,
    /// By encryption.
    Encrypted,
}

impl Protect {
    /// As `hpb.protect` names it.
    pub fn parse(name: &str) -> Protect {
        match name {
            "plain" => Protect::Plain,
            "tagged" => Protect::Tagged,
            _ => Protect::Encrypted,
        }
    }

    /// Bytes of an entry on the wire and in the host's memory.
    pub const fn entry_bytes(self) -> u32 {
        if matches!(self, Protect::Tagged) { 8 } else { 4 }
    }

    /// Generations of a subregion before a number comes again; 1: there are none.
    pub const fn generations(self) -> u32 {
        match self {
            Protect::Plain => 1,
            Protect::Tagged => 1 << 8,
            Protect::Encrypted => 1 << 4,
        }
    }

    /// Hashes that it takes to make or to check an entry.
    pub const fn hashes(self) -> u64 {
        match self {
            Protect::Plain => 0,
            Protect::Tagged => 1,
            Protect::Encrypted => ROUNDS as u64,
        }
    }
}

/// Why an entry is not believed. The read is served by the drive's own map then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Its subregion was never handed out.
    Inactive,
    /// Its subregion, or the page itself, has changed since.
    Dirty,
    /// It is of an earlier generation.
    Stale,
    /// The tag does not match, or a bit is set that no entry has.
    Tampered,
    /// The place lies beyond the flash.
    OutOfRange,
    /// The page read there says that it is another.
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

    /// The name of its counter.
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

/// Makes and opens entries.
#[derive(Clone)]
pub struct Sealer {
    protect: Protect,
    hash: SipHasher24,
    keys: Rng,
}

impl Sealer {
    /// With a key of its own for each time that the power comes on. A drive draws it from noise;
    /// here it comes from the seed, so that runs can be repeated.
    pub fn new(protect: Protect, seed: Seed) -> Sealer {
        let mut sealer =
            Sealer { protect, hash: SipHasher24::new(), keys: Rng::stream(seed, "hpb key") };
        sealer.new_key();
        sealer
    }

    /// Another key: no entry that was made before is worth anything.
    pub fn new_key(&mut self) {
        let mut draw = || self.keys.below(1 << 32) << 32 | self.keys.below(1 << 32);
        self.hash = SipHasher24::new_with_keys(draw(), draw());
    }

    /// How entries are protected.
    pub fn protect(&self) -> Protect {
        self.protect
    }

    /// The entry that says, in `generation`, that `lpn` is at `ppn`.
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

    /// The place that `entry` says, checked as far as the entry itself goes: `generation` is that
    /// of its subregion.
    pub fn open(&self, lpn: Lpn, entry: u64, generation: u8) -> Result<Ppn, Refusal> {
        let place = match self.protect {
            Protect::Plain => u32::try_from(entry)
                .ok()
                .filter(|place| *place <= PLACE)
                .ok_or(Refusal::Tampered)?,
            Protect::Tagged => {
                let head = entry >> TAG_BITS;
                // one comparison of whole numbers: it takes as long however much of the tag is
                // right
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

    /// The rounds forward, or backward for what the other way round undoes.
    fn feistel(&self, lpn: Lpn, block: u32, rounds: impl Iterator<Item = u8>) -> u32 {
        let (mut left, mut right) = ((block >> 16) as u16, block as u16);
        for round in rounds {
            // an even round changes the left half, an odd one the right: each undoes itself
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

/// Never the key.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer({:?})", self.protect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the paper's appendix A: key 00 01 .. 0f, message 00 01 .. 0e.
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
                // every bit turned, and the same for another page: what opens all the same is
                // another place
                let forged =
                    (0..64).map(|bit| (lpn, entry ^ 1 << bit)).chain([(Lpn(lpn.0 + 1), entry)]);
                for (lpn, entry) in forged {
                    let found = sealer.open(lpn, entry, generation);
                    assert_ne!(found, Ok(ppn), "{protect:?}");
                    opened += u32::from(found.is_ok());
                }
            }
            // a tag is met by chance once in 2^28; of encrypted entries one in 16 has the
            // generation, which is no place yet
            let chance = if protect == Protect::Encrypted { 2000 * 33 / 16 } else { 0 };
            assert!(opened.abs_diff(chance) <= chance / 10, "{protect:?}: {opened} of {chance}");
            let entry = sealer.seal(Lpn(1), Ppn(1), 0);
            sealer.new_key();
            assert!(protect == Protect::Plain || sealer.open(Lpn(1), entry, 0) != Ok(Ppn(1)));
        }
    }
}
