//! Tests of the power-failure enumerator.

mod at_random;
mod bit_errors;
mod copybacks;
mod damaged_plans;
mod lower_pages;
mod nvme;
mod own_scheme;
mod parity;
mod plans;
mod program_steps;
mod support;
mod trim_records;
mod unfit;

// `make test-seeded-bugs` builds and runs these tests; released builds do not contain the bugs.
#[cfg(feature = "seeded-bugs")]
mod seeded_bugs;
