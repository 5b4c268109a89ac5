//! Tests of trace formats, generators and job files.

mod atlas;
mod block_layer;
mod common;
mod described_formats;
mod errors;
mod fio_errors;
mod fio_mutation;
mod fio_options;
mod fio_paced;
mod fio_reference;
mod fio_replay;
mod fio_values;
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
