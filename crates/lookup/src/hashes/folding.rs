//! Folding. The address is divided into parts, which are added or combined by exclusive or.

use super::{Hash, HashDef, mask};
use flashatlas_types::{ConfigError, Param, Text};

pub const DEF: HashDef = HashDef {
    name: "folding",
    summary: "the sum (or exclusive or) of parts of lookup.fold_bits bits of the address",
    paper: "Singh and Garg, Choosing best hashing strategies (2009), as Song et al. (2019) cite it",
    params: &[FOLD.def, FOLD_BITS.def],
    build: &|params, la_bits, set_bits| {
        let bits = match params.get(FOLD_BITS) {
            0 => set_bits.max(1),
            bits if bits > la_bits => {
                return Err(ConfigError::allowing(
                    "lookup.fold_bits",
                    format!("an address of {la_bits} bits has no part of {bits} bits"),
                    format!("0 to {la_bits}"),
                ));
            }
            bits => bits,
        };
        let parts = la_bits.div_ceil(bits);
        let keys = mask(set_bits);
        Ok(match params.get(FOLD) {
            "xor" => Box::new(Folding::<{ XOR }> { bits, parts, keys }),
            "boundary" => Box::new(Folding::<{ BOUNDARY }> { bits, parts, keys }),
            _ => Box::new(Folding::<{ SUM }> { bits, parts, keys }),
        })
    },
};

const FOLD: Param<Text> = Param::choice(
    "lookup.fold",
    &["sum", "xor", "boundary"],
    "operation by which `folding` joins the parts: their `sum`, their exclusive or (`xor`), or the \
     sum in which every second part has its bits reversed (`boundary`)",
)
.or("sum");

const FOLD_BITS: Param<u32> = Param::int(
    "lookup.fold_bits",
    0,
    31,
    "bits of a part, from the lowest bit on; 0: as many bits as the number of a set has",
)
.or("0");

const SUM: u8 = 0;
const XOR: u8 = 1;
const BOUNDARY: u8 = 2;

struct Folding<const HOW: u8> {
    bits: u32,
    parts: u32,
    keys: u32,
}

impl<const HOW: u8> Hash for Folding<HOW> {
    #[inline]
    fn key(&self, la: u32) -> u32 {
        let mut sum = 0;
        for i in 0..self.parts {
            let part = ((u64::from(la) >> (i * self.bits)) as u32) & mask(self.bits);
            match HOW {
                XOR => sum ^= part,
                BOUNDARY if i % 2 == 1 => sum += part.reverse_bits() >> (32 - self.bits),
                _ => sum += part,
            }
        }
        sum & self.keys
    }
}
