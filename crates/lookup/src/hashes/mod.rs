//! Hash functions from a logical address to a set of the primary LPMT. The paper (Song et al. 2019)
//! names four functions but does not define them, so each file cites the definition that it uses.
//! Each function has one file, and one line here. A program may add further functions to a
//! registry.

mod division;
mod folding;
mod mixer;
mod radix;
mod shifting;

use flashatlas_types::{ConfigError, Entries, Entry, Param, ParamDef, Params, Text};

/// A hash function with its parameters.
pub trait Hash: Send {
    /// Returns the key of an address: a number below the number of sets.
    fn key(&self, la: u32) -> u32;
}

/// Builder of a hash function from its parameters, the number of bits of an address, and the number
/// of bits of a set's number.
pub type Build = dyn Fn(&Params, u32, u32) -> Result<Box<dyn Hash>, ConfigError> + Send + Sync;

/// One hash function of the registry.
pub struct HashDef {
    /// Name in `lookup.hash`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source that describes the function.
    pub paper: &'static str,
    /// Parameters of the function itself.
    pub params: &'static [ParamDef],
    /// Function that builds the hash function for addresses of `la_bits` bits and `2^set_bits`
    /// sets.
    pub build: &'static Build,
}

/// All hash functions.
pub const HASHES: &[HashDef] =
    &[shifting::DEF, division::DEF, folding::DEF, radix::DEF, mixer::DEF];

/// Registry of the hash functions of this crate.
pub const STANDARD: Entries<HashDef> = Entries::of(HASHES);

flashatlas_types::entry!(HashDef, "hash function", "lookup.hash");

/// The parameter `lookup.hash`.
pub const HASH: Param<Text> = Param::part(
    "lookup.hash",
    HashDef::KIND,
    "the hash function from an address to a set; the paper's Table VI uses `folding`",
)
.or("folding");

/// Returns the parameters of every function of `hashes`, because a comparison of functions may set
/// the parameters of all.
pub fn params(hashes: Entries<HashDef>) -> impl Iterator<Item = &'static ParamDef> {
    hashes.iter().flat_map(|hash| hash.params)
}

/// Returns a number whose lowest `bits` bits are set.
const fn mask(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}
