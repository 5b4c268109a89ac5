//! State of a drive without power, and its mount.

use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use crate::drive::Drive;
use flashatlas_device::{Contents, Stack};
use flashatlas_nand::Medium;
use flashatlas_types::{Dur, Ps};

/// State of the power.
pub enum Power {
    /// There is.
    On(Stack),
    /// The power is off.
    Off {
        /// The cells of the drive; of each drive, if a layer is over several.
        media: Vec<Medium>,
        /// The contents that the digests of layers stand for: they are data, as the cells are.
        contents: Vec<Contents>,
    },
    /// There is no drive, for this reason: a mount or the return from a checkpoint failed. Also a
    /// placeholder while the state changes.
    Gone(String),
}

impl Drive {
    /// Cuts the power at `now`: everything in memory and in flight is lost.
    pub(crate) fn lose_power(&mut self, now: Ps) {
        let off = Power::Gone("the power failed twice".into());
        let mut stack = match std::mem::replace(&mut self.power, off) {
            Power::On(stack) => stack,
            other => {
                self.power = other;
                return;
            }
        };
        let contents = stack.contents();
        self.power = Power::Off { media: stack.into_media(), contents };
        self.forget_in_flight();
        self.clock = self.clock.max(now);
        self.cuts += 1;
    }

    /// Mounts the medium, and returns the time that this takes.
    pub(crate) fn mount(&mut self) -> Result<Dur, Refusal> {
        let gone = Power::Gone("the drive could not be mounted".into());
        let (media, contents) = match std::mem::replace(&mut self.power, gone) {
            Power::Off { media, contents } => (media, contents),
            Power::On(stack) => {
                self.power = Power::On(stack);
                return Err(refuse(FaCode::FA_ERR_ARGUMENT, "the power is on"));
            }
            Power::Gone(why) => {
                self.power = Power::Gone(why.clone());
                return Err(refuse(FaCode::FA_ERR_FAILED, why));
            }
        };
        match self.mounted(media, &contents) {
            Ok(stack) => {
                let times = stack.drives().into_iter().map(|drive| drive.mount_time());
                let time = times.max().expect("at least one drive");
                self.power = Power::On(stack);
                Ok(time)
            }
            Err(why) => {
                let why = format!("the drive could not be mounted: {why}");
                self.power = Power::Gone(why.clone());
                Err(refuse(FaCode::FA_ERR_FAILED, why))
            }
        }
    }

    /// Returns a mounted controller whose engine knows nothing of what was under way.
    pub(crate) fn mounted(
        &self,
        mut media: Vec<Medium>,
        contents: &[Contents],
    ) -> Result<Stack, String> {
        media.iter_mut().for_each(Medium::restore_power);
        if self.config.layers().is_empty() {
            let medium = media.pop().expect("a bare drive");
            let ssd = self.config.build_on(medium, self.seed).map_err(|e| e.to_string())?;
            return Stack::over(vec![ssd], &self.config).map_err(|e| e.to_string());
        }
        // layers mount what they read, and must know what its digests stand for before they do
        let mut stack = self.config.build_stack(self.seed).map_err(|e| e.to_string())?;
        stack.learn(contents);
        stack.remount(media, &self.config, self.seed).map_err(|e| e.to_string())?;
        Ok(stack)
    }
}
