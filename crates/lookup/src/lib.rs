//! The hardware lookup engine of Song et al., An implementation of low latency address-mapping
//! logic for SSD controllers (2019): a set-associative table from logical addresses to pages
//! (LPMT), followed by block tables (BT). The tables are in the banks of a DRAM. The recent use of
//! the banks determines the order in which the engine visits them.
//!
//! [`tables`] answers lookups, and reports the items that a lookup reads. [`probe`] determines the
//! banks and rows of these items, and the order in which they are read. [`flashatlas_dram`]
//! determines the times.
//!
//! ```
//! use flashatlas_lookup::hashes::STANDARD;
//! use flashatlas_lookup::study::{LookupRequest, Study, settings};
//!
//! let params = settings(STANDARD, &["lookup.policy=dynamic".into()])?;
//! let mut study = Study::new(STANDARD, &params)?;
//! study.ask(LookupRequest::Pages(42, 1)).unwrap(); // not there: it is inserted
//! study.ask(LookupRequest::Pages(42, 1)).unwrap();
//! let summary = study.finish();
//! assert_eq!((summary.lookups, summary.hits), (2, 1));
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

mod error;
pub mod extents;
pub mod hashes;
pub mod probe;
pub mod study;
pub mod tables;

pub use error::LookupError;
pub use extents::Extents;
