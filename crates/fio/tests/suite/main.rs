//! Tests of job files, many of them beside fio itself.

mod errors;
mod mutation;
mod options;
mod paced;
mod reference;
mod replay;
mod values;
