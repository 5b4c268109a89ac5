//! Tests of the library as programs in C, C++ and Python use it.

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
