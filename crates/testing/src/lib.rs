//! Helpers that the tests of several crates share.
//!
//! ```
//! use flashatlas_testing::proofs::{cases, one_in};
//!
//! assert_eq!(cases(1000), 1000usize.div_ceil(one_in()));
//! ```

pub mod damage;
pub mod layouts;
pub mod proofs;
pub mod registries;
pub mod traces;
