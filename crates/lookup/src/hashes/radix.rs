//! Radix transformation. The digits of the address in one base are read as a number in a larger
//! base.

use super::{Hash, HashDef, mask};
use flashatlas_types::{ConfigError, Param};

pub const DEF: HashDef = HashDef {
    name: "radix",
    summary: "the digits of the address in base lookup.radix_from, read in base lookup.radix_to",
    paper: "Lin, Key addressing of random access memories by radix transformation (1963), as Song \
            et al. (2019) cite it",
    params: &[RADIX_FROM.def, RADIX_TO.def],
    build: &|params, _, set_bits| {
        let (from, to) = (params.get(RADIX_FROM), params.get(RADIX_TO));
        if to <= from || gcd(from, to) != 1 {
            return Err(ConfigError::allowing(
                "lookup.radix_to",
                format!("digits in base {from} cannot be read in base {to}"),
                format!("more than {from} (lookup.radix_from), with no divisor in common"),
            ));
        }
        Ok(Box::new(Radix { from, to, keys: mask(set_bits) }))
    },
};

const RADIX_FROM: Param<u32> = Param::int(
    "lookup.radix_from",
    2,
    1 << 16,
    "base in which `radix` writes the address (Lin: 9)",
)
.or("10");

const RADIX_TO: Param<u32> = Param::int(
    "lookup.radix_to",
    3,
    1 << 16,
    "base in which `radix` reads the digits of the address: larger than radix_from, and without a \
     divisor in common",
)
.or("11");

struct Radix {
    from: u32,
    to: u32,
    keys: u32,
}

impl Hash for Radix {
    #[inline]
    fn key(&self, la: u32) -> u32 {
        let (mut rest, mut weight, mut sum) = (la, 1u32, 0u32);
        while rest > 0 {
            // the sum is modulo 2^32, which is a multiple of the number of sets
            sum = sum.wrapping_add((rest % self.from).wrapping_mul(weight));
            weight = weight.wrapping_mul(self.to);
            rest /= self.from;
        }
        sum & self.keys
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
