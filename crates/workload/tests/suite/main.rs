//! Tests of trace formats and generators.

mod atlas;
mod block_layer;
mod common;
mod described_formats;
mod errors;
mod format_errors;
mod formats;
mod generators;
mod mutation;
mod options;
mod real_traces;
mod reuse;
mod slice;
mod summary;
mod text_formats;
mod writing;
