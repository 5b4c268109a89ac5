//! Kinds of failing parts, and their names in identities of failures.

use crate::Fault;
use flashatlas_nand::Medium;
use flashatlas_types::FrameId;

/// Kind of the part that fails, and its circumstances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailingPart {
    /// A program fails, and a spare block takes the place of its block.
    Program,
    /// A program fails, and there is no spare block. The command ends in an error, and flushed data
    /// is present after a mount.
    ProgramWithoutSpare,
    /// An erase fails, and a spare block takes the place of the block.
    Erase,
    /// An erase fails, and there is no spare block. The drive goes on with one block less.
    EraseWithoutSpare,
    /// No operation fails, but blocks are bad from the beginning.
    FactoryBlocks,
    /// A page of a running drive cannot be read, and its reader gets an error.
    Page,
    /// A page cannot be read from before the mount on. Units that then hold an older version must
    /// be reported.
    PageBeforeMount,
}

/// Every kind of failure, with its letters in an identity and its switch, in the order of
/// [`FailingPart`].
pub(crate) const FAILING_PARTS: [(FailingPart, &str, Fault); 7] = [
    (FailingPart::Program, "fp", Fault::ProgramFailure),
    (FailingPart::ProgramWithoutSpare, "fx", Fault::ProgramFailure),
    (FailingPart::Erase, "fe", Fault::EraseFailure),
    (FailingPart::EraseWithoutSpare, "fb", Fault::GrownBad),
    (FailingPart::FactoryBlocks, "fm", Fault::FactoryBad),
    (FailingPart::Page, "up", Fault::Unreadable),
    (FailingPart::PageBeforeMount, "um", Fault::Unreadable),
];

/// A frame whose pages are lost, all or those on some of its dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPages {
    /// The frame.
    pub frame: FrameId,
    /// Number of its dies with data that lose their part of a frame with parity. `None` if the
    /// whole frame is lost, with its spare area.
    parts: Option<u32>,
    /// `true` if nothing else is lost, so that every read must be right.
    pub is_rebuilt: bool,
}

impl LostPages {
    /// Returns the losses of these frames that are tried: each frame, or each with one of its dies
    /// and with two of them.
    pub(crate) fn of(frames: &[FrameId], medium: &Medium) -> Vec<LostPages> {
        let has_parity = medium.layout().has_parity();
        let counts = if has_parity { vec![Some(1), Some(2)] } else { vec![None] };
        let of = |parts| {
            let lost = move |&frame: &FrameId| LostPages { frame, parts, is_rebuilt: false };
            let lost = frames.iter().map(lost);
            lost.map(|lost| LostPages { is_rebuilt: lost.leaves_all(medium), ..lost })
        };
        counts.into_iter().flat_map(of).collect()
    }

    /// Makes the pages unreadable.
    pub(crate) fn take_from(self, medium: &mut Medium) {
        let Some(parts) = self.parts else { return medium.decay(self.frame) };
        let layout = medium.shared_layout();
        let index = layout.index_in(layout.block_of_frame(self.frame), self.frame);
        // the first units of a padded frame are on the first dies with data
        let with_data =
            (0..layout.dies_per_frame).filter(|&die| layout.data_die(index, die).is_some());
        with_data.take(parts as usize).for_each(|die| medium.lose_part(self.frame, die));
    }

    /// Returns `true` if one die is lost, and no bits or rates take more.
    fn leaves_all(self, medium: &Medium) -> bool {
        let by_rate = medium.rules().errors.is_some_and(|errors| errors.rates.unreadable > 0);
        let mut left = medium.clone();
        left.power_off();
        left.find_unreadable();
        let is_sound =
            left.counters.errors.found_unreadable == medium.counters.errors.found_unreadable;
        self.parts == Some(1) && !by_rate && is_sound
    }
}

impl FailingPart {
    /// Returns the letters of this kind in an identity.
    pub const fn letters(self) -> &'static str {
        FAILING_PARTS[self as usize].1
    }

    /// Returns the kind of failure with these letters, if there is one.
    pub fn by_letters(letters: &str) -> Option<FailingPart> {
        FAILING_PARTS.iter().find(|part| part.1 == letters).map(|part| part.0)
    }
}

impl std::fmt::Display for FailingPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.letters())
    }
}
