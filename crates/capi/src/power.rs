//! What is left when the power fails, and how it is mounted.

use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use crate::drive::Drive;
use flashatlas_device::{Contents, Stack};
use flashatlas_nand::Medium;
use flashatlas_types::{Dur, Ps};

/// Whether there is power.
pub enum Power {
    /// There is.
    On(Stack),
    /// What is left of the drive.
    Off {
        /// Its cells; those of each drive, where a layer is over several.
        media: Vec<Medium>,
        /// What the digests of layers stand for: data, as the cells are.
        contents: Vec<Contents>,
    },
    /// It could not be mounted; why.
    Gone(String),
}

impl Drive {
    /// The power is gone at `now`: so is everything in memory, and what is in flight.
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

    /// Mount what is left. Returns how long that takes.
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

    /// A controller whose engine knows nothing of what was under way.
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
