//! The power-failure enumerator, tried.

mod damaged_plans;
mod own_scheme;
mod trim_records;

// `make test-seeded-bugs` builds and runs these; no build that ships has the bugs.
#[cfg(feature = "seeded-bugs")]
mod seeded_bugs;
