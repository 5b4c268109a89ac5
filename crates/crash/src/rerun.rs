//! Rerun of one failure, by its identity.

use crate::cut::{Cut, CutKind, Id};
use crate::enumerate::{Depth, Enumerator};
use crate::faults::Faults;
use crate::in_flight::subsets;
use crate::recording::Recording;
use crate::run::{ALL_SEQUENCES, Drives, Finding, Job, bounded, chosen, minimal_lines, power_only};
use crate::sample::Sample;
use crate::subject::{GEOMETRIES, Subject, candidates};
use crate::workloads::{SEQUENCES, WORKLOADS};
use crate::{CrashError, Failure};
use flashatlas_device::Registry;

/// Runs one failure again, and returns its finding, or `Ok(None)` if the failure no longer occurs.
///
/// # Errors
/// Returns an error if the identity names something that does not exist.
pub fn rerun(
    registry: &Registry,
    text: &str,
    set: &[String],
) -> Result<Option<Finding>, CrashError> {
    let id: Id = text.parse()?;
    bounded(id.steps)?;
    let named = |s: &Subject| {
        s.layers_name() == id.layers && s.scheme_name() == id.scheme && s.store_name() == id.store
    };
    let stack = candidates(registry).into_iter().find(named).filter(Subject::fits);
    let mut stack = stack.ok_or_else(|| CrashError::NotThere {
        scheme: id.scheme.clone(),
        store: id.store.clone(),
        layers: id.layers.clone(),
    })?;
    stack.more = set.to_vec();
    chosen(std::slice::from_ref(&id.geometry), "geometry", GEOMETRIES.iter().map(|g| g.name))?;
    chosen(
        std::slice::from_ref(&id.workload),
        "workload",
        WORKLOADS.iter().map(|w| w.name).chain([ALL_SEQUENCES]),
    )?;
    let geometry = GEOMETRIES.iter().find(|g| g.name == id.geometry).expect("chosen");
    let workload = WORKLOADS.iter().find(|w| w.name == id.workload);
    if workload.is_none() && id.seed >= SEQUENCES {
        return Err(CrashError::Sequence { number: id.seed, all: SEQUENCES });
    }
    let job = Job { stack, geometry, workload, seeds: 0..0, drives: Drives::default() };
    let config = job.drive()?;
    let steps = job.steps(&config, id.seed, id.steps);
    let depth = Depth { cuts: id.cuts.len().max(1) as u32, faults: Faults::ALL };
    let mut first: Option<Failure> = None;
    let mut note = |_: &[Cut], failure| {
        first.get_or_insert(failure);
    };
    let missing = match id.cuts.first() {
        Some(&cut @ Cut { how: CutKind::Subset(_), .. }) => {
            let start = (job.filled(), id.seed);
            let all = Sample::all();
            subsets(&config, &steps, start, Some(cut), all, &mut note).reordered == 0
        }
        kind => match Recording::make(&config, &steps, job.filled(), None) {
            Err(failure) => {
                note(&[], failure);
                false
            }
            Ok(recording) if matches!(kind, Some(Cut { how: CutKind::FailingPart(_), .. })) => {
                let parts = job.parts(&config, &recording, depth, (1, ""));
                let tally = parts.run(Some(&id.cuts), &mut note);
                tally.failed_parts == 0 || id.cuts.len() > 1 && tally.cuts() == 0
            }
            Ok(recording) => {
                let tally =
                    Enumerator::new(&config, depth, Some(&id.cuts), &mut note).run(&recording);
                tally.deeper + 1 < id.cuts.len() as u64 || tally.cuts() == 0 && !id.cuts.is_empty()
            }
        },
    };
    if first.is_none() && missing {
        return Err(CrashError::NoFailure(text.to_owned()));
    }
    Ok(first.map(|failure| Finding {
        id: text.to_owned(),
        failure: failure.to_string(),
        minimal: if power_only(&id.cuts) {
            minimal_lines(&config, &steps, job.filled(), depth)
        } else {
            Vec::new()
        },
    }))
}
