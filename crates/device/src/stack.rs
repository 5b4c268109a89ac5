//! A drive with the layers over it.

use crate::{Cmd, DriveConfig, Reply, Ssd, Storage, SubmitError};
use flashatlas_nand::Medium;
use flashatlas_types::{ConfigError, Lba, Lpn, Ps, Seed, Stamp, Tag};
use std::ops::{Deref, DerefMut};

/// A drive with the layers that its configuration names.
pub struct Stack {
    top: Box<dyn Storage>,
    bare: bool,
}

/// The tag of commands that bring a device into a state.
const PREPARING: Tag = Tag(0);

impl Stack {
    /// Put the layers of `config` over `ssd` and mount each.
    ///
    /// # Errors
    /// What a layer found below.
    pub fn over(ssd: Ssd, config: &DriveConfig) -> Result<Stack, ConfigError> {
        let layers = config.layers();
        let mut top: Box<dyn Storage> = Box::new(ssd);
        top.set_instant(true);
        for layer in layers.iter().rev() {
            top = (layer.build)(config, top)
                .map_err(|e| ConfigError::new("layers", e.to_string()))?;
        }
        top.set_instant(false);
        Ok(Stack { top, bare: layers.is_empty() })
    }

    /// Whether there is no layer.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// Power off and on again: whatever is in memory, of the drive and of the host, is lost, and
    /// what is on the medium is mounted.
    ///
    /// # Errors
    /// When it cannot be mounted.
    ///
    /// # Panics
    /// When commands are in flight.
    pub fn power_cycle(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.ssd_mut().power_off();
        self.top.power_on(config, seed)
    }

    /// Another medium takes the place of the drive's, and is mounted; it was switched off.
    ///
    /// # Errors
    /// When it cannot be mounted. The stack is of no use then.
    ///
    /// # Panics
    /// When commands are in flight.
    pub fn remount(
        &mut self,
        medium: Medium,
        config: &DriveConfig,
        seed: Seed,
    ) -> Result<(), SubmitError> {
        self.ssd_mut().replace_medium(medium);
        self.top.power_on(config, seed)
    }

    /// Let everything that is under way come to its end; no command may be in flight. Returns when
    /// that was.
    pub fn drain(&mut self) -> Ps {
        let mut done = Vec::new();
        while let Some(at) = self.top.next_event() {
            self.top.advance(at, &mut done);
        }
        assert!(done.is_empty(), "{} commands were in flight", done.len());
        self.ssd_mut().drain()
    }

    /// Write every mapping unit once, in ascending order, in no time, and make it durable.
    /// `content` names what is written to each; `go_on` hears now and then how many were, and stops
    /// it by answering `false`. Returns whether all were written.
    ///
    /// # Errors
    /// When the drive cannot hold them.
    pub fn fill_while(
        &mut self,
        content: impl Fn(Lpn) -> u64,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, SubmitError> {
        if self.is_bare() {
            return self.ssd_mut().fill_while(|lpn| Stamp::whole(content(lpn), 0), go_on);
        }
        let unit_sectors = self.unit_sectors();
        let bytes = self.ssd().keeps_bytes().then(|| vec![0; unit_sectors as usize * 512]);
        self.set_instant(true);
        let mut reply = Reply::default();
        for unit in 0..self.shape().units() {
            let (lba, sectors) = (Lba(u64::from(unit) * u64::from(unit_sectors)), unit_sectors);
            let data = bytes.as_deref();
            let write = Cmd::Write { lba, sectors, fua: false, content: content(Lpn(unit)), data };
            self.submit(Ps::ZERO, PREPARING, write, &mut reply)?;
            if unit % (1 << 16) == 0 && !go_on(unit.into()) {
                self.set_instant(false);
                return Ok(false);
            }
        }
        self.submit(Ps::ZERO, PREPARING, Cmd::Flush, &mut reply)?;
        self.set_instant(false);
        Ok(true)
    }

    /// Forget a unit, in no time.
    ///
    /// # Errors
    /// When the map cannot be updated.
    pub fn forget(&mut self, unit: Lpn) -> Result<(), SubmitError> {
        if self.is_bare() {
            return self.ssd_mut().forget(unit);
        }
        let sectors = self.unit_sectors();
        let lba = Lba(u64::from(unit.0) * u64::from(sectors));
        self.set_instant(true);
        self.submit(Ps::ZERO, PREPARING, Cmd::Trim { lba, sectors }, &mut Reply::default())?;
        self.set_instant(false);
        Ok(())
    }

    /// Bring everything that is in memory to where it survives, as a FLUSH does, in no time.
    ///
    /// # Errors
    /// When there is no space.
    pub fn make_durable(&mut self) -> Result<(), SubmitError> {
        if self.is_bare() {
            return self.ssd_mut().make_durable();
        }
        self.submit(Ps::ZERO, PREPARING, Cmd::Flush, &mut Reply::default())
    }

    /// Power off for good: what is left is the medium.
    pub fn into_medium(self) -> Medium {
        self.top.into_ssd().into_medium()
    }
}

/// A stack is the device at its top.
impl Deref for Stack {
    type Target = dyn Storage;

    fn deref(&self) -> &Self::Target {
        &*self.top
    }
}

impl DerefMut for Stack {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.top
    }
}
