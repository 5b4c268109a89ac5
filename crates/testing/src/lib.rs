//! What the tests of several crates share.

pub mod damage;
pub mod proofs;
pub mod traces;
