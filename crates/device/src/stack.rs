//! Stacks: one or several drives with the layers over them.

use crate::{
    Build, Cmd, Contents, DeviceShape, Done, DriveConfig, Reply, Ssd, Storage, SubmitError,
};
use flashatlas_nand::{Counters, Medium};
use flashatlas_types::{ConfigError, Lba, Lpn, Ps, Seed, Stamp, Tag};

/// A drive, or as many drives as the layers need, with the layers that the configuration names.
pub struct Stack {
    top: Box<dyn Storage>,
    bare: bool,
}

/// The tag of commands that prepare a device.
const PREPARING: Tag = Tag(0);

impl Stack {
    /// Puts the layers of `config` over `drives` and mounts each layer.
    ///
    /// # Errors
    /// Returns the fault that a layer found in the device below.
    ///
    /// # Panics
    /// Panics if the number of drives is not [`DriveConfig::drives`].
    pub fn over(drives: Vec<Ssd>, config: &DriveConfig) -> Result<Stack, ConfigError> {
        assert_eq!(drives.len(), config.drives() as usize, "drives under the layers");
        let layers = config.layers();
        let mut devices: Vec<Box<dyn Storage>> =
            drives.into_iter().map(|drive| Box::new(drive) as Box<dyn Storage>).collect();
        devices.iter_mut().for_each(|device| device.set_instant(true));
        let refused = |e: SubmitError| ConfigError::new("layers", e.to_string());
        for layer in layers.iter().rev() {
            let mut below = devices.into_iter();
            devices = match layer.build {
                Build::Over(build) => {
                    below.map(|device| build(config, device)).collect::<Result<_, _>>()
                }
                Build::OverSeveral { count, build } => {
                    let count = count(&config.params) as usize;
                    let groups = std::iter::from_fn(|| {
                        let group: Vec<_> = below.by_ref().take(count).collect();
                        (!group.is_empty()).then_some(group)
                    });
                    groups.map(|group| build(config, group)).collect()
                }
            }
            .map_err(refused)?;
        }
        let mut top = devices.pop().expect("a drive, or a layer over all of them");
        top.set_instant(false);
        Ok(Stack { top, bare: layers.is_empty() })
    }

    /// Returns `true` if the stack has no layer.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// Returns the device at the top: the drive, or the uppermost layer.
    pub fn top(&self) -> &dyn Storage {
        &*self.top
    }

    /// Returns the device at the top for modification.
    pub fn top_mut(&mut self) -> &mut dyn Storage {
        &mut *self.top
    }

    /// Sends a command to the device at the top, as [`Device::submit`](crate::Device::submit)
    /// describes.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] if the command is refused. A refused command never completes.
    #[inline]
    pub fn submit(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        self.top.submit(now, tag, cmd, reply)
    }

    /// Prepares for reads of these mapping units, as [`Device::prefetch`](crate::Device::prefetch)
    /// does.
    pub fn prefetch(&self, units: &[Lpn]) {
        self.top.prefetch(units);
    }

    /// Returns the time of the next event, or `None` if there is none.
    #[inline]
    pub fn next_event(&self) -> Option<Ps> {
        self.top.next_event()
    }

    /// Runs up to and including `until`, and appends completions in the order of time.
    #[inline]
    pub fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        self.top.advance(until, out);
    }

    /// Runs to the first instant at which commands complete, but not beyond `until`. Returns the
    /// time that was reached, as
    /// [`Device::advance_to_completion`](crate::Device::advance_to_completion) does.
    #[inline]
    pub fn advance_to_completion(&mut self, until: Ps, out: &mut Vec<Done>) -> Ps {
        self.top.advance_to_completion(until, out)
    }

    /// Lets background work use the time from `now` until `until`. The host sends no command in
    /// this time.
    ///
    /// # Errors
    /// Returns an error if background work finds a fault that it cannot handle.
    pub fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        self.top.idle(now, until)
    }

    /// Returns the shape that the device at the top exports.
    pub fn shape(&self) -> DeviceShape {
        self.top.shape()
    }

    /// Returns the number of sectors in a mapping unit.
    pub fn unit_sectors(&self) -> u32 {
        self.top.unit_sectors()
    }

    /// Makes commands take effect in no time and without completions, if `on` is `true`.
    pub fn set_instant(&mut self, on: bool) {
        self.top.set_instant(on);
    }

    /// Returns the drives at the bottom.
    pub fn drives(&self) -> Vec<&Ssd> {
        self.top.drives()
    }

    /// Returns the drives at the bottom for modification.
    pub fn drives_mut(&mut self) -> Vec<&mut Ssd> {
        self.top.drives_mut()
    }

    /// Returns the drive at the bottom, or the first of several.
    pub fn ssd(&self) -> &Ssd {
        self.top.ssd()
    }

    /// Returns the drive at the bottom, or the first of several, for modification.
    pub fn ssd_mut(&mut self) -> &mut Ssd {
        self.top.ssd_mut()
    }

    /// Switches the power off and on again. The memory of the drives and of the host is lost, and
    /// the media are mounted.
    ///
    /// # Errors
    /// Returns an error if the medium cannot be mounted.
    ///
    /// # Panics
    /// Panics if commands are in flight.
    pub fn power_cycle(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.drives_mut().into_iter().for_each(Ssd::power_off);
        self.top.power_on(config, seed)
    }

    /// Replaces the media of the drives with media that were switched off, and mounts the new
    /// media.
    ///
    /// # Errors
    /// Returns an error if one of the media cannot be mounted. The stack is then unusable.
    ///
    /// # Panics
    /// Panics if commands are in flight, or if the number of media is not the number of drives.
    pub fn remount(
        &mut self,
        media: impl IntoIterator<Item = Medium>,
        config: &DriveConfig,
        seed: Seed,
    ) -> Result<(), SubmitError> {
        let (mut drives, mut media) = (self.drives_mut().into_iter(), media.into_iter());
        for drive in drives.by_ref() {
            drive.replace_medium(media.next().expect("a medium for each drive"));
        }
        assert!(media.next().is_none(), "a drive for each medium");
        drop(drives);
        self.top.power_on(config, seed)
    }

    /// Runs until all work is complete, and returns the time of the last event. No command may be
    /// in flight.
    pub fn drain(&mut self) -> Ps {
        let mut done = Vec::new();
        while let Some(at) = self.top.next_event() {
            self.top.advance(at, &mut done);
        }
        assert!(done.is_empty(), "{} commands were in flight", done.len());
        self.drives_mut().into_iter().map(Ssd::drain).max().expect("at least one drive")
    }

    /// Writes every mapping unit once, in ascending order, in no time, and makes it durable.
    ///
    /// `content` returns the name of each unit's content. `go_on` is called from time to time with
    /// the number of written units, and stops the filling if it returns `false`. Returns `true` if
    /// all units were written.
    ///
    /// # Errors
    /// Returns an error if the drive has no room for the units.
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

    /// Fills a blank drive without layers as [`Ssd::fill_blank`] does, and returns the same values.
    /// Returns `None` if the stack has layers. The drive must be power cycled afterwards.
    pub fn fill_blank(
        &mut self,
        content: impl Fn(Lpn) -> u64 + Sync,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Option<bool> {
        if !self.is_bare() {
            return None;
        }
        self.ssd_mut().fill_blank(&|lpn| Stamp::whole(content(lpn), 0), go_on)
    }

    /// Fills a blank drive without layers as [`Ssd::lay_filled`] does. Returns `false` if the stack
    /// has layers, or if the drive cannot do this. The drive must be power cycled afterwards.
    pub fn lay_filled(&mut self, config: &DriveConfig, stamp: fn(Lpn) -> Stamp) -> bool {
        self.is_bare() && self.ssd_mut().lay_filled(config, stamp)
    }

    /// Writes the whole map of each drive as [`Ssd::write_map`] does. The stack must be power
    /// cycled afterwards.
    ///
    /// # Errors
    /// Returns an error if the medium of a drive cannot be mounted.
    pub fn write_maps(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.drives_mut().into_iter().try_for_each(|drive| drive.write_map(config, seed))
    }

    /// Trims a unit, in no time.
    ///
    /// # Errors
    /// Returns an error if the map cannot be updated.
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

    /// Makes all data in memory durable in no time, as a FLUSH does.
    ///
    /// # Errors
    /// Returns an error if there is no space.
    pub fn make_durable(&mut self) -> Result<(), SubmitError> {
        if self.is_bare() {
            return self.ssd_mut().make_durable();
        }
        self.submit(Ps::ZERO, PREPARING, Cmd::Flush, &mut Reply::default())
    }

    /// Returns the sum of the flash counters of all drives.
    pub fn flash_counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.drives().into_iter().for_each(|drive| sum.add(&drive.medium().counters));
        sum
    }

    /// Returns the contents that the stamps of each layer represent, from the top down (see
    /// [`Contents`]).
    pub fn contents(&mut self) -> Vec<Contents> {
        let mut all = Vec::new();
        self.top.each_contents(&mut |contents| all.push(contents.clone()));
        all
    }

    /// Adds the contents that [`Stack::contents`] returned for the same layers of another stack.
    pub fn learn(&mut self, contents: &[Contents]) {
        let mut known = contents.iter();
        self.top.each_contents(&mut |own| {
            if let Some(other) = known.next() {
                own.learn(other);
            }
        });
    }

    /// Switches the power off permanently, and returns the media of the drives.
    pub fn into_media(self) -> Vec<Medium> {
        self.top.into_drives().into_iter().map(Ssd::into_medium).collect()
    }
}
