//! Rerun of one failure, by its identity.

use crate::cut::{Cut, CutKind, Id};
use crate::enumerate::Depth;
use crate::in_flight::subsets;
use crate::interface::Task;
use crate::run::{Drives, Finding, Job, bounded, chosen, power_only};
use crate::sample::Sample;
use crate::subject::{GEOMETRIES, Subject, candidates};
use crate::trial::{Recorded, Steps};
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
    let task = Task::named(&id.workload)?;
    let geometry = GEOMETRIES.iter().find(|g| g.name == id.geometry).expect("chosen");
    task.has_seed(id.seed)?;
    let job = Job { stack, geometry, task, seeds: 0..0, drives: Drives::default() };
    let trial = job.trial(id.seed, id.steps)?;
    let depth =
        Depth { cuts: id.cuts.len().max(1) as u32, faults: task.interface().faults("all")? };
    let mut first: Option<Failure> = None;
    let mut note = |_: &[Cut], failure| {
        first.get_or_insert(failure);
    };
    let missing = match (&trial.steps, id.cuts.first()) {
        (Steps::Device(steps), Some(&cut @ Cut { how: CutKind::Subset(_), .. })) => {
            let start = (trial.filled, id.seed);
            let all = Sample::all();
            subsets(&trial.config, steps, start, Some(cut), all, &mut note).reordered == 0
        }
        (_, kind) => match trial.record() {
            Err(failure) => {
                note(&[], failure);
                false
            }
            Ok(Recorded::Device(recording))
                if matches!(kind, Some(Cut { how: CutKind::FailingPart(_), .. })) =>
            {
                let parts = job.parts(&trial.config, &recording, depth, (1, ""));
                let tally = parts.run(Some(&id.cuts), &mut note);
                tally.failed_parts == 0 || id.cuts.len() > 1 && tally.cuts() == 0
            }
            Ok(recorded) => {
                let tally = trial.cut(&recorded, depth, Some(&id.cuts), Sample::all(), &mut note);
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
        minimal: if power_only(&id.cuts) { trial.minimal_lines(depth) } else { Vec::new() },
    }))
}
