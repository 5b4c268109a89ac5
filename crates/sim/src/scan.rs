//! Scan of a workload for the extents that it touches, before a run with `fit=compact`.

use crate::fit::Extents;
use crate::input::{Input, Inputs};
use crate::progress::PROGRESS_EVERY;
use crate::{Environment, Fit, Progress, RunError};

/// Scan of a workload before a run with `fit=compact`.
pub(crate) struct Scan<'a> {
    /// Name of the drive.
    pub drive: &'a str,
    /// Number of sectors of the drive.
    pub capacity: u64,
    pub fit: Fit,
    pub inputs: &'a Inputs<'a>,
    /// Path of the preconditioning trace, if there is one, and the format that the user named for
    /// it.
    pub before: Option<(&'a str, Option<&'a str>)>,
    /// Opens the workload, if it is scanned as well.
    pub workload: Option<&'a dyn Fn() -> Result<Input<'a>, RunError>>,
    /// Number of requests of the workload that are played.
    pub limit: u64,
}

impl Scan<'_> {
    /// Returns the extents that the workload and its preconditioning touch.
    ///
    /// The size of the extents is the first of `sizes` with which the extents fit the drive. If a
    /// checkpoint has `packed` extents, the extents need not fit. The result is empty if the run is
    /// not `compact`.
    pub fn touched(
        &self,
        sizes: &[u64],
        packed: bool,
        env: &Environment<'_>,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Extents, RunError> {
        if self.fit != Fit::Compact {
            return Ok(Extents::of(sizes[0]));
        }
        let most = if packed { u64::MAX } else { self.capacity };
        for &size in sizes {
            let extents = self.of_size(size, most, progress)?;
            if extents.fit(most) {
                return Ok(extents);
            }
        }
        let least = sizes[sizes.len() - 1];
        let needed = self.of_size(least, u64::MAX, progress)?.bytes();
        Err(RunError::Fit(too_large(needed, least, self.capacity, self.drive, env)))
    }

    /// Returns the extents of one size; stops at the first extent that exceeds `capacity`.
    fn of_size(
        &self,
        size: u64,
        capacity: u64,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Extents, RunError> {
        let mut extents = Extents::of(size);
        let mut scan = |mut input: Input<'_>, limit: u64| -> Result<(), RunError> {
            let mut requests = 0;
            while requests < limit
                && let Some(record) = input.next_record()?
            {
                if !extents.add(&record, capacity) {
                    break;
                }
                requests += 1;
                let share = input.share_read();
                if requests % PROGRESS_EVERY == 0
                    && !progress(Progress { phase: "scan", requests, share })
                {
                    return Err(RunError::Interrupted);
                }
            }
            Ok(())
        };
        if let Some((path, format)) = self.before {
            scan(self.inputs.trace(path, format, false)?, u64::MAX)?;
        }
        if let Some(open) = self.workload {
            scan(open()?, self.limit)?;
        }
        Ok(extents)
    }
}

/// Describes a workload that does not fit a drive even if it is packed.
///
/// The text names the size of the packed workload, and the drives that are large enough for it.
fn too_large(
    needed: u64,
    extent: u64,
    capacity: u64,
    drive: &str,
    env: &Environment<'_>,
) -> String {
    let sectors = |name: &str| env.registry.load(name, None, &[]).map(|c| c.shape().sectors);
    let larger: Vec<&str> = env
        .registry
        .presets
        .iter()
        .map(|preset| preset.name)
        .filter(|&name| name != drive)
        .filter(|name| sectors(name).is_ok_and(|sectors| sectors * 512 >= needed))
        .collect();
    let ways = match larger[..] {
        [] => "a larger drive".to_owned(),
        _ => format!("a larger drive (such as {})", larger.join(", ")),
    };
    format!(
        "the packed extents of {} KiB that the workload touches need {} MiB, but the drive has {} \
         MiB: use {ways}, smaller extents (‹extent›), or ‹fit=wrap›",
        extent / 2,
        needed.div_ceil(1 << 20),
        capacity / 2048
    )
}
