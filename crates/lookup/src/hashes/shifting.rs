//! Shifting. The key is a part of the address's bits.

use super::{Hash, HashDef, mask};
use flashatlas_types::{ConfigError, Param};

pub const DEF: HashDef = HashDef {
    name: "shifting",
    summary: "bits of the address itself, from bit lookup.shift on",
    paper: "Gou et al., Single hash (2018), as Song et al. (2019) cite it",
    params: &[SHIFT.def],
    build: &|params, la_bits, set_bits| {
        let shift = params.get(SHIFT);
        if shift > 0 && shift >= la_bits {
            return Err(ConfigError::allowing(
                "lookup.shift",
                format!("a shift by {shift} bits leaves no bit of an address of {la_bits} bits"),
                format!("0 to {}", la_bits - 1),
            ));
        }
        Ok(Box::new(Shifting { shift, mask: mask(set_bits) }))
    },
};

const SHIFT: Param<u32> = Param::int(
    "lookup.shift",
    0,
    31,
    "number of low bits of the address that `shifting` drops; 0 takes the lowest bits of the \
     address",
)
.or("0");

struct Shifting {
    shift: u32,
    mask: u32,
}

impl Hash for Shifting {
    #[inline]
    fn key(&self, la: u32) -> u32 {
        (la >> self.shift) & self.mask
    }
}
