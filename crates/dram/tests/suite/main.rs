//! Tests of the DRAM engine against an independent checker, and of the table against the engine.

mod brute_force;
mod transitions;
