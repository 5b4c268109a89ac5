//! Every cut of a recording that went through a controller.

use super::home::SlotWrite;
use super::model::Model;
use super::recording::{Event, Recording};
use super::verify::Verifier;
use crate::Failure;
use crate::cut::{Cut, CutKind};
use crate::enumerate::{Depth, ENOUGH, Enumerator, Tally};
use crate::faults::Fault;
use crate::media::Media;
use flashatlas_device::DriveConfig;
use flashatlas_nand::Torn;

impl<'c, 'f> Enumerator<'f, Verifier<'c>> {
    /// Returns an enumerator for drives of `config` behind a controller.
    ///
    /// `on_failure` is called for each failure, with the cuts that led to the failure.
    pub fn behind_nvme(
        config: &'c DriveConfig,
        depth: Depth,
        only: Option<&'f [Cut]>,
        on_failure: &'f mut dyn FnMut(&[Cut], Failure),
    ) -> Self {
        Enumerator::with(Verifier::new(config), config, (depth, only), on_failure)
    }

    /// Tries every cut of a recording, or the cuts of the sample, and returns the tally.
    ///
    /// Operations of the media count, and so do writes of the controller's record.
    pub fn run(mut self, recording: &Recording) -> Tally {
        self.examiner.knows(recording.contents.clone());
        let (mut media, mut model) = (recording.base.clone(), recording.model.clone());
        let mut operations = 0;
        for event in &recording.events {
            match event {
                Event::Submitted(number, step) => model.submitted(*number, *step),
                Event::Completed(number, seen) => {
                    if model.completed(*number, seen.as_ref()) && self.sample.takes() {
                        let cut = Cut { after: operations, how: CutKind::Acknowledged };
                        self.examine(&media, cut, &model, None);
                    }
                }
                Event::Changed(change) => {
                    if change.change.is_operation() {
                        self.cut_at(&media, change, operations, &model);
                        operations += 1;
                    }
                    media.redo(change);
                }
                Event::Kept(write) => {
                    self.cut_home(&media, write, operations, &model);
                    operations += 1;
                    model.kept(write);
                }
            }
            if self.tally.violations >= ENOUGH {
                return self.finish();
            }
        }
        let cut = Cut { after: operations, how: CutKind::Before };
        self.examine(&media, cut, &model, None);
        self.finish()
    }

    /// Lets the power fail before a write of the controller's record, and during it.
    fn cut_home(&mut self, media: &Media, write: &SlotWrite, after: u32, model: &Model) {
        if self.sample.takes() {
            self.examine(media, Cut { after, how: CutKind::Before }, model, None);
        }
        for (fault, torn) in [(Fault::TornGarbage, Torn::Garbage), (Fault::TornPart, Torn::Part)] {
            if self.depth.faults.has(fault) && self.sample.takes() {
                let mut left = model.clone();
                left.home.tear(write, torn);
                self.examine(media, Cut { after, how: CutKind::Torn(torn) }, &left, None);
            }
        }
    }
}
