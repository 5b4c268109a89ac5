//! Tests of job files, many of which compare with fio itself.

mod errors;
mod mutation;
mod options;
mod paced;
mod reference;
mod replay;
mod values;
