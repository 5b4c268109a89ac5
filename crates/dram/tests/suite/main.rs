//! The DRAM engine beside a checker of its own.

mod brute_force;
mod transitions;
