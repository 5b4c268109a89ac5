//! Map stores beside independent references, and the registries.

mod registries;
mod store_references;
