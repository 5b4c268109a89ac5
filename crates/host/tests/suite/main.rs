//! Tests of layers over drives: the data that a host reads, writes, and finds after a power
//! failure.

mod hpb;
mod layers;
mod mirror;
mod registries;
mod stacks;
