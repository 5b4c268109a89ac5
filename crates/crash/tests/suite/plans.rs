//! Plans of power failures, as the tests write them.

use flashatlas_crash::CrashSpec;
use flashatlas_fixtures::proofs::one_in;

/// Returns names as a plan takes them.
pub fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns the names that commas separate.
pub fn separated(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

/// Returns a plan for drives without layers. It tries the sample of this test run, and leaves what
/// it finds as it is.
pub fn plan(schemes: &[&str], stores: &[&str]) -> CrashSpec {
    CrashSpec {
        layers: list(&["-"]),
        schemes: list(schemes),
        stores: list(stores),
        one_in: one_in() as u32,
        minimise: false,
        ..CrashSpec::default()
    }
}
