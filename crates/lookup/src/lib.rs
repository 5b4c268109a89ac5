//! The hardware lookup engine of Song et al., An implementation of low latency address-mapping
//! logic for SSD controllers (2019): a set-associative table from logical addresses to pages (LPMT)
//! with block tables (BT) behind it, in the banks of a DRAM, whose order of visits follows the
//! banks' recent use.
//!
//! [`tables`] answer, and say what they touch; [`probe`] says in which bank and row that lies, and
//! in which order it is read; [`flashatlas_dram`] says when.

mod error;
pub mod extents;
pub mod hashes;
pub mod probe;
pub mod study;
pub mod tables;

pub use error::LookupError;
pub use extents::Extents;
