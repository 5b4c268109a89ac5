//! A mixer as hash tables use them today: every bit of the address changes half of the key's.

use super::{Hash, HashDef};

pub const DEF: HashDef = HashDef {
    name: "mixer",
    summary: "two rounds of multiply and shift (the finaliser of SplitMix64): what a hash table \
              would use today",
    paper: "Steele, Lea and Flood, Fast splittable pseudorandom number generators (2014)",
    params: &[],
    build: |_, _, set_bits| Ok(Box::new(Mixer { set_bits })),
};

struct Mixer {
    set_bits: u32,
}

impl Hash for Mixer {
    #[inline]
    fn key(&self, la: u32) -> u32 {
        let x = (u64::from(la)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let x = x ^ (x >> 31);
        // the highest bits; in two steps, for a single set has none
        ((x >> 1) >> (63 - self.set_bits)) as u32
    }
}
