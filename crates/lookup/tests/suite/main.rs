//! The lookup engine, tried.

mod brute_force;
mod check_values;
mod places;
mod recency;
mod tables;
