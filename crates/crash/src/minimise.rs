//! Shortening of a failing workload: steps are dropped as long as a cut breaks the same promise.

use crate::Failure;
use crate::cut::Cut;

/// The shortest failing workload that was found, and its failure.
pub struct Minimal<S> {
    /// The remaining steps.
    pub steps: Vec<S>,
    /// The cut of the workload, the cut of the mount after it, and so on.
    pub cuts: Vec<Cut>,
    /// The failure after these cuts.
    pub failure: Failure,
}

/// Maximum number of shorter workloads that are tried.
const TRIES: u32 = 400;

/// Drops steps of a failing workload as long as a cut of the rest breaks the same promise.
///
/// `fails` returns the first failure of a workload, or its first failure of one promise. The first
/// tries drop half of the steps together, and the last tries drop a single step. Returns `None` if
/// the workload does not fail.
pub fn minimise<S: Clone>(
    steps: &[S],
    fails: impl Fn(&[S], Option<&str>) -> Option<(Vec<Cut>, Failure)>,
) -> Option<Minimal<S>> {
    let (cuts, failure) = fails(steps, None)?;
    let mut best = Minimal { steps: steps.to_vec(), cuts, failure };
    let mut tries = 0;
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 && tries < TRIES {
        let mut from = 0;
        let mut dropped = false;
        while from < best.steps.len() && tries < TRIES {
            tries += 1;
            let mut fewer = best.steps.clone();
            fewer.drain(from..(from + size).min(fewer.len()));
            match fails(&fewer, Some(best.failure.promise)) {
                Some((cuts, failure)) => {
                    best = Minimal { steps: fewer, cuts, failure };
                    dropped = true;
                }
                None => from += size,
            }
        }
        if !dropped || size > 1 {
            size /= 2;
        }
    }
    Some(best)
}
