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
        /// Its cells.
        medium: Box<Medium>,
        /// What the digests of layers stand for: data, as the cells are.
        contents: Option<Contents>,
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
        let contents = stack.contents().cloned();
        self.power = Power::Off { medium: Box::new(stack.into_medium()), contents };
        self.forget_in_flight();
        self.clock = self.clock.max(now);
        self.cuts += 1;
    }

    /// Mount what is left. Returns how long that takes.
    pub(crate) fn mount(&mut self) -> Result<Dur, Refusal> {
        let gone = Power::Gone("the drive could not be mounted".into());
        let (medium, contents) = match std::mem::replace(&mut self.power, gone) {
            Power::Off { medium, contents } => (medium, contents),
            Power::On(stack) => {
                self.power = Power::On(stack);
                return Err(refuse(FaCode::FA_ERR_ARGUMENT, "the power is on"));
            }
            Power::Gone(why) => {
                self.power = Power::Gone(why.clone());
                return Err(refuse(FaCode::FA_ERR_FAILED, why));
            }
        };
        match self.mounted(*medium, contents) {
            Ok(stack) => {
                let time = stack.ssd().mount_time();
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
    fn mounted(&self, mut medium: Medium, contents: Option<Contents>) -> Result<Stack, String> {
        medium.restore_power();
        if self.config.layers().is_empty() {
            let ssd = self.config.build_on(medium, self.seed).map_err(|e| e.to_string())?;
            return Stack::over(ssd, &self.config).map_err(|e| e.to_string());
        }
        // layers mount what they read, and must know what its digests stand for before they do
        let mut stack = self.config.build_stack(self.seed).map_err(|e| e.to_string())?;
        if let (Some(knows), Some(contents)) = (stack.contents(), &contents) {
            knows.learn(contents);
        }
        stack.remount(medium, &self.config, self.seed).map_err(|e| e.to_string())?;
        Ok(stack)
    }
}
