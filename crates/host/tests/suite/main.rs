//! Layers over drives: what a host reads, writes and finds after a power failure.

mod hpb;
mod layers;
mod mirror;
mod registries;
mod stacks;
