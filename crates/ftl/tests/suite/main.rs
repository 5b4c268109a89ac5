//! Map stores beside independent references.

mod dftl_reference;
