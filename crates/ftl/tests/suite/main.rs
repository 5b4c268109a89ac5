//! Map stores beside independent references.

mod store_references;
