//! Hash functions from a logical address to a set of the primary LPMT. The paper (Song et al. 2019)
//! names four and defines none: each file says which textbook definition it takes. One file each,
//! and one line here; others are added to a registry.

mod division;
mod folding;
mod mixer;
mod radix;
mod shifting;

use flashatlas_types::{ConfigError, Entries, Entry, Param, ParamDef, Params, Text};

/// A hash function with its parameters.
pub trait Hash: Send {
    /// The key of an address: a number below the number of sets.
    fn key(&self, la: u32) -> u32;
}

/// Builds a hash function for addresses of so many bits, and so many bits of a set's number.
pub type Build = dyn Fn(&Params, u32, u32) -> Result<Box<dyn Hash>, ConfigError> + Send + Sync;

/// One hash function of the registry.
pub struct HashDef {
    /// Name in `lookup.hash`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub paper: &'static str,
    /// Its own parameters.
    pub params: &'static [ParamDef],
    /// Build it for addresses of `la_bits` bits and `2^set_bits` sets.
    pub build: &'static Build,
}

/// All hash functions.
pub const HASHES: &[HashDef] =
    &[shifting::DEF, division::DEF, folding::DEF, radix::DEF, mixer::DEF];

/// Those of this crate.
pub const STANDARD: Entries<HashDef> = Entries::of(HASHES);

flashatlas_types::entry!(HashDef, "hash function", "lookup.hash");

/// The parameter `lookup.hash`.
pub const HASH: Param<Text> = Param::part(
    "lookup.hash",
    HashDef::KIND,
    "the hash function from an address to a set: `folding` is the one of the paper's Table VI",
)
.or("folding");

/// The parameters of every function of `hashes`: whoever compares functions may set those of all.
pub fn params(hashes: Entries<HashDef>) -> impl Iterator<Item = &'static ParamDef> {
    hashes.iter().flat_map(|hash| hash.params)
}

/// The lowest `bits` bits set.
const fn mask(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}
