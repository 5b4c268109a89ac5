//! Examination of the state after a cut: what may be left, and what is found.

use crate::Failure;
use crate::media::{DriveChange, Media};
use crate::model::Model;
use flashatlas_device::{Contents, Stack};
use flashatlas_nand::Medium;
use flashatlas_types::{FrameId, Ppn, Stamp};

/// Damage that a mount may find.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remains {
    /// The state after a power failure: every promise holds.
    Sound,
    /// Pages with newest data or map pages cannot be read. Their units may return to an older
    /// version or become empty, and the mount reports damage (promise R6).
    Damaged(Lost),
    /// A block accepts no more programs, and no spare block takes its place. Flushed data is
    /// present after the mount, or the mount fails with an error that reports the failed block. The
    /// drive accepts no more writes.
    Broken,
}

/// Content of the frames that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    units: Vec<u32>,
    /// `true` if a part of the map or of the trims is lost, so that trimmed data may come back.
    map: bool,
}

impl Lost {
    /// Adds the content of a frame that will be lost.
    pub fn add(&mut self, medium: &Medium, frame: FrameId) {
        let layout = medium.layout();
        if medium.holds_map(frame) {
            self.map = true;
            return;
        }
        let first = layout.first_slot(frame).0;
        let slots = (first..first + layout.slots_per_frame).map(Ppn);
        self.units.extend(slots.filter_map(|slot| medium.lpn(slot).ok()).map(|lpn| lpn.0));
    }

    /// Returns the loss of a part of the map.
    pub(crate) fn of_map() -> Lost {
        Lost { units: Vec::new(), map: true }
    }

    /// Returns `true` if nothing is lost.
    pub fn is_nothing(&self) -> bool {
        self.units.is_empty() && !self.map
    }

    /// Returns `true` if a unit may hold an older version or be empty.
    ///
    /// If the drive does not rely on its map alone, only trims are lost with a part of the map.
    pub(crate) fn excuses(&self, model: &Model, unit: u32, trusts_its_map: bool) -> bool {
        let of_map = trusts_its_map || model.versions(unit).contains(&Stamp::ZERO);
        self.units.contains(&unit) || self.map && of_map
    }
}

/// Results of a mount.
#[derive(Default)]
pub struct Mounted {
    /// The media before the mount, if the caller asked for them.
    pub before: Option<Media>,
    /// Changes that the mount made.
    pub changes: Vec<DriveChange>,
    /// Contents for the digests that layers store, from this and earlier mounts, if the caller
    /// asked for them.
    pub contents: Vec<Contents>,
}

/// Examiner of the states that cuts leave.
pub trait Examine {
    /// Model of the states that are allowed.
    type Model;

    /// Prepares for the next state of the workload or of the mount that is cut.
    fn begin_again(&mut self);

    /// Examines the state that a cut left on `media`, which must be switched off.
    ///
    /// `number` decides how much is tried after the mount. With `keep`, the result also contains
    /// the media before the mount and the contents for digests. Returns `Ok(None)` if nothing more
    /// can be tried, and `remains` allows that.
    ///
    /// # Errors
    /// Returns the first broken promise.
    fn examine(
        &mut self,
        media: Media,
        model: &Self::Model,
        number: u64,
        keep: bool,
        remains: &Remains,
    ) -> Result<Option<Mounted>, Failure>;

    /// Replaces the contents for digests, and returns the previous contents.
    fn knows_more(&mut self, contents: Vec<Contents>) -> Vec<Contents>;

    /// Returns `true` if a cut may leave one of several states.
    fn is_dirty(model: &Self::Model) -> bool;

    /// Returns the number of mounts so far, and the programs and erases of the longest mount.
    fn mounts(&self) -> (u64, u64);

    /// Returns the number of units that read as an error after the mounts of cuts, because wrong
    /// bits had taken their newest data.
    fn lost_units(&self) -> u64 {
        0
    }
}

/// Maximum number of digests that a layer may store in addition to the digests of the workload.
///
/// Normally a layer soon drops the digests of data that its drive no longer holds. Here it cannot
/// do this, because the verifier exchanges the drive's medium without informing the layer.
const LEARNT_MAX: usize = 1 << 15;

/// Lets the layers of a drive drop all contents that are not `known`, if they have stored too many
/// contents from earlier media.
pub(crate) fn drop_learnt(drive: &mut Stack, known: &[Contents]) {
    let mut known = known.iter();
    drive.top_mut().each_contents(&mut |knows| {
        if let Some(contents) = known.next()
            && knows.len() > contents.len() + LEARNT_MAX
        {
            knows.clone_from(contents);
        }
    });
}
