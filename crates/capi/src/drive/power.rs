//! State of a drive without power, and its mount.

use super::Drive;
use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use flashatlas_device::{Contents, Stack};
use flashatlas_nand::Medium;
use flashatlas_types::{Dur, Ps};

/// State of the power.
pub enum Power {
    /// The power is on.
    On(Stack),
    /// The power is off.
    Off {
        /// One medium for each drive, because a layer may combine several drives.
        media: Vec<Medium>,
        /// The contents to which the digests in layers refer. Like the media, they survive a power
        /// cut.
        contents: Vec<Contents>,
    },
    /// The drive can no longer be used, for the given reason. This is the case after a failed
    /// mount, including the mount after a checkpoint. The value is also a placeholder while the
    /// power changes.
    Gone(String),
}

impl Drive {
    /// Cuts the power at `now`. Everything in memory and all commands in flight are lost.
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

    /// Mounts the media, and returns the time that the mount takes.
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

    /// Mounts `media` and returns the drive, in which no command is in flight.
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
        // layers read the contents of digests during their mount, so they need the contents before
        // it
        let mut stack = self.config.build_stack(self.seed).map_err(|e| e.to_string())?;
        stack.learn(contents);
        stack.remount(media, &self.config, self.seed).map_err(|e| e.to_string())?;
        Ok(stack)
    }
}
