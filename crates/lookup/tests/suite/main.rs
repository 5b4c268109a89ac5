//! The lookup engine, tried.

mod check_values;
mod places;
mod recency;
mod registries;
mod requests;
mod tables;
