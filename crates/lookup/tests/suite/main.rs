//! Tests of the lookup engine.

mod check_values;
mod places;
mod recency;
mod registries;
mod requests;
mod tables;
