//! One workload on one drive, through either interface.

use crate::cut::Cut;
use crate::enumerate::{Depth, Enumerator, Tally};
use crate::minimise::{Minimal, minimise};
use crate::model::Step;
use crate::recording::Recording;
use crate::sample::Sample;
use crate::subject::over_tiny;
use crate::{Failure, nvme};
use flashatlas_device::DriveConfig;
use std::fmt::Display;

/// A workload on a drive.
pub(crate) struct Trial {
    /// The drive.
    pub config: DriveConfig,
    /// `true` if every unit is written before the workload begins.
    pub filled: bool,
    /// The workload.
    pub steps: Steps,
}

/// Steps of a workload.
pub(crate) enum Steps {
    /// Commands of the drive.
    Device(Vec<Step>),
    /// Commands that go through an NVMe controller.
    Nvme(Vec<nvme::Step>),
}

/// A workload that was carried out once.
pub(crate) enum Recorded {
    /// Commands of the drive.
    Device(Recording),
    /// Commands that went through an NVMe controller.
    Nvme(Box<nvme::Recording>),
}

/// Function that is called for each failure, with the cuts that led to it.
type OnFailure<'a> = &'a mut dyn FnMut(&[Cut], Failure);

impl Trial {
    /// Carries the workload out.
    ///
    /// # Errors
    /// Returns the failure that the workload fails while the power is on.
    pub fn record(&self) -> Result<Recorded, Failure> {
        let Trial { config, filled, .. } = self;
        match &self.steps {
            Steps::Device(steps) => {
                Recording::make(config, steps, *filled, None).map(Recorded::Device)
            }
            Steps::Nvme(steps) => {
                nvme::Recording::make(config, steps, *filled).map(Box::new).map(Recorded::Nvme)
            }
        }
    }

    /// Tries every cut of the sample, or only the path of cuts in `only`.
    pub fn cut(
        &self,
        recorded: &Recorded,
        depth: Depth,
        only: Option<&[Cut]>,
        sample: Sample,
        on_failure: OnFailure<'_>,
    ) -> Tally {
        match recorded {
            Recorded::Device(recording) => {
                let cuts = Enumerator::new(&self.config, depth, only, on_failure);
                cuts.sampled(sample).run(recording)
            }
            Recorded::Nvme(recording) => {
                let cuts = Enumerator::behind_nvme(&self.config, depth, only, on_failure);
                cuts.sampled(sample).run(recording)
            }
        }
    }

    /// Describes the shortest failing workload that was found, in lines.
    ///
    /// The lines are the drive's settings, the steps, the cut, and the broken promise.
    pub fn minimal_lines(&self, depth: Depth) -> Vec<String> {
        match &self.steps {
            Steps::Device(steps) => self.shortened(steps, depth, Steps::Device),
            Steps::Nvme(steps) => self.shortened(steps, depth, Steps::Nvme),
        }
    }

    fn shortened<S: Clone + Display>(
        &self,
        steps: &[S],
        depth: Depth,
        kind: fn(Vec<S>) -> Steps,
    ) -> Vec<String> {
        let fails = |steps: &[S], promise: Option<&str>| {
            let Trial { config, filled, .. } = self;
            let fewer =
                Trial { config: config.clone(), filled: *filled, steps: kind(steps.to_vec()) };
            fewer.first_failure(depth, promise)
        };
        let Some(Minimal { steps, cuts, failure }) = minimise(steps, fails) else {
            return Vec::new();
        };
        let mut lines = vec![format!("drive tiny {}", over_tiny(&self.config).join(" "))];
        lines.extend(self.filled.then(|| "fill".to_owned()));
        lines.extend(steps.iter().map(S::to_string));
        let cuts: Vec<String> = cuts.iter().map(Cut::to_string).collect();
        lines.push(format!("cut {}", cuts.join(".")));
        lines.push(failure.to_string());
        lines
    }

    /// Returns the first failure, or the first failure of `promise`.
    fn first_failure(&self, depth: Depth, promise: Option<&str>) -> Option<(Vec<Cut>, Failure)> {
        let mut first: Option<(Vec<Cut>, Failure)> = None;
        let mut note = |cuts: &[Cut], failure: Failure| {
            if promise.is_none_or(|p| p == failure.promise) && first.is_none() {
                first = Some((cuts.to_vec(), failure));
            }
        };
        match self.record() {
            Ok(recorded) => drop(self.cut(&recorded, depth, None, Sample::all(), &mut note)),
            Err(failure) => note(&[], failure),
        }
        first
    }
}
