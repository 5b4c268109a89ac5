//! Tests of the power-failure enumerator.

mod damaged_plans;
mod own_scheme;
mod trim_records;

// `make test-seeded-bugs` builds and runs these; no build that ships has the bugs.
#[cfg(feature = "seeded-bugs")]
mod seeded_bugs;
