//! Share of the random cases that one run of the tests tries.

/// Environment variable with a number N: a run of the tests tries one case in N. `make test` sets
/// 20 unless the caller sets another number; `make test-full` sets 1.
pub const VARIABLE: &str = "FLASHATLAS_PROOFS";

/// The number N if [`VARIABLE`] is not set or empty.
pub const USUAL: usize = 20;

/// Returns N: a run tries one case in N.
///
/// # Panics
/// Panics if [`VARIABLE`] is no positive number.
#[allow(clippy::disallowed_methods, reason = "how much a test proves is told by the environment")]
pub fn one_in() -> usize {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(n) if n > 0 => n,
            _ => panic!("{VARIABLE} is `{text}`: expected a positive number N: one case in N"),
        },
        _ => USUAL,
    }
}

/// Returns the number of random cases among `all` that this run takes, at least one.
pub fn cases(all: usize) -> usize {
    all.div_ceil(one_in())
}
