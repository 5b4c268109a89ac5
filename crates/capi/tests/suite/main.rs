//! The library as C, C++ and Python have it.

mod any_calls;
mod behaviour;
mod build;
mod examples;
mod guide;
mod header;
mod hosted;
mod power;
mod refusals;
mod whole;
