//! A mixer as in present hash tables. A change of one bit of the address changes about half of the
//! key's bits.

use super::{Hash, HashDef};
use flashatlas_types::content::mix;

pub const DEF: HashDef = HashDef {
    name: "mixer",
    summary: "two rounds of multiply and shift (the finaliser of SplitMix64), as a hash \
              table would use today",
    paper: "Steele, Lea and Flood, Fast splittable pseudorandom number generators (2014)",
    params: &[],
    build: &|_, _, set_bits| Ok(Box::new(Mixer { set_bits })),
};

struct Mixer {
    set_bits: u32,
}

impl Hash for Mixer {
    #[inline]
    fn key(&self, la: u32) -> u32 {
        let x = mix(u64::from(la));
        // the key is the highest bits; two steps are needed, because one shift by 64 bits is not
        // allowed
        ((x >> 1) >> (63 - self.set_bits)) as u32
    }
}
