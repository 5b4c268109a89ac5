//! How much is proved in one run of the tests.

/// The environment variable that says it: one in so many cases. `make test` sets nothing, which
/// is one in [`USUAL`]; `make test-full` sets 1.
pub const VARIABLE: &str = "FLASHATLAS_PROOFS";

/// What is taken where [`VARIABLE`] is not set.
pub const USUAL: usize = 20;

/// One in so many.
///
/// # Panics
/// When [`VARIABLE`] is no positive number.
#[allow(clippy::disallowed_methods, reason = "how much a test proves is told by the environment")]
pub fn one_in() -> usize {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(n) if n > 0 => n,
            _ => panic!("{VARIABLE} is `{text}`: expected a positive number, one in so many cases"),
        },
        _ => USUAL,
    }
}

/// As many of `all` random cases as this run takes, at least one.
pub fn cases(all: usize) -> usize {
    all.div_ceil(one_in())
}
