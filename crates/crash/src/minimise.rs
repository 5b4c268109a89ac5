//! Shortening of a failing workload: steps are dropped as long as a cut breaks the same promise.

use crate::Failure;
use crate::cut::Cut;
use crate::enumerate::{Depth, Enumerator};
use crate::model::Step;
use crate::recording::Recording;
use flashatlas_device::DriveConfig;

/// The shortest failing workload that was found, and its failure.
pub struct Minimal {
    /// The remaining steps.
    pub steps: Vec<Step>,
    /// The cut of the workload, the cut of the mount after it, and so on.
    pub cuts: Vec<Cut>,
    /// The failure after these cuts.
    pub failure: Failure,
}

/// Maximum number of shorter workloads that are tried.
const TRIES: u32 = 400;

/// Drops steps of a failing workload as long as a cut of the rest breaks the same promise.
///
/// The first tries drop half of the steps at once, and the last tries drop a single step. Returns
/// `None` if the workload does not fail.
pub fn minimise(
    config: &DriveConfig,
    steps: &[Step],
    filled: bool,
    depth: Depth,
) -> Option<Minimal> {
    let mut best = fails(config, steps, filled, depth, None)?;
    let mut tries = 0;
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 && tries < TRIES {
        let mut from = 0;
        let mut dropped = false;
        while from < best.steps.len() && tries < TRIES {
            tries += 1;
            let mut fewer = best.steps.clone();
            fewer.drain(from..(from + size).min(fewer.len()));
            match fails(config, &fewer, filled, depth, Some(best.failure.promise)) {
                Some(shorter) => {
                    best = shorter;
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

fn fails(
    config: &DriveConfig,
    steps: &[Step],
    filled: bool,
    depth: Depth,
    promise: Option<&str>,
) -> Option<Minimal> {
    let mut first: Option<(Vec<Cut>, Failure)> = None;
    let mut note = |cuts: &[Cut], failure: Failure| {
        if promise.is_none_or(|p| p == failure.promise) && first.is_none() {
            first = Some((cuts.to_vec(), failure));
        }
    };
    match Recording::make(config, steps, filled, None) {
        Ok(recording) => drop(Enumerator::new(config, depth, None, &mut note).run(&recording)),
        Err(failure) => note(&[], failure),
    }
    let (cuts, failure) = first?;
    Some(Minimal { steps: steps.to_vec(), cuts, failure })
}
