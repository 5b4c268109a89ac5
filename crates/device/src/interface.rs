//! Interfaces that a drive and a layer over it share. A [`Device`] executes commands. A [`Storage`]
//! is a node in the tree of a stack, with power and inspection.
//!
//! A drive and a layer implement both traits. Default functions walk the tree: they combine the
//! answer of a device with the answers of the devices below.

use crate::{Cmd, Contents, DeviceShape, Done, DriveConfig, LayerReport, Reply, Ssd, SubmitError};
use flashatlas_types::{Lpn, Ps, Seed, Stamp, StampSum, Tag, Violation};

/// A command on its way to a device.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Time of the submission.
    pub now: Ps,
    /// Name that identifies the command until it completes.
    pub tag: Tag,
    /// The command.
    pub cmd: Cmd<'a>,
    /// Commands that this command waits for. A tag that is not in flight counts as complete.
    pub after: &'a [Tag],
}

/// A receiver of host commands: a drive, or a layer that owns the next device.
pub trait Device: Send {
    /// Accepts a command at `now`. Its effect is decided immediately, in order of submission.
    ///
    /// [`Device::advance`] returns the completion of the command. The data of a read is put into
    /// `reply`.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] if the command is refused. A refused command never completes.
    fn submit(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        self.submit_after(Submission { now, tag, cmd, after: &[] }, reply)
    }

    /// Accepts a command as [`Device::submit`] does, from a host that sends the command when other
    /// commands are complete.
    ///
    /// The host decides now which command it sends. The device decides when the command starts.
    ///
    /// # Errors
    /// Returns the errors of [`Device::submit`].
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError>;

    /// Prepares for reads of these mapping units. The device may load the table entries of all
    /// units from memory now, which is faster than loading them one by one later. Nothing else
    /// changes.
    fn prefetch(&self, units: &[Lpn]) {
        let _ = units;
    }

    /// Returns the time of the next event, or `None` if there is none.
    fn next_event(&self) -> Option<Ps>;

    /// Runs up to and including `until`, and appends completions in the order of time.
    fn advance(&mut self, until: Ps, out: &mut Vec<Done>);

    /// Runs as [`Device::advance`] does, but stops at the first instant at which commands complete.
    ///
    /// Returns the time that the device has reached. If no command completes by `until`, this is
    /// `until`, or the time of the last event if `until` is [`Ps::MAX`].
    fn advance_to_completion(&mut self, until: Ps, out: &mut Vec<Done>) -> Ps {
        let (before, mut now) = (out.len(), Ps::ZERO);
        while out.len() == before
            && let Some(at) = self.next_event().filter(|&at| at <= until)
        {
            self.advance(at, out);
            now = at;
        }
        if out.len() > before || until == Ps::MAX {
            return now;
        }
        self.advance(until, out);
        until
    }

    /// Lets background work use the time from `now` until `until`, in which the host sends no
    /// command.
    ///
    /// # Errors
    /// Returns an error if background work finds a fault that it cannot handle.
    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError>;

    /// Returns the shape that the device exports.
    fn shape(&self) -> DeviceShape;

    /// Returns the number of sectors in a mapping unit.
    fn unit_sectors(&self) -> u32 {
        self.shape().unit_sectors
    }

    /// Returns the number of sectors that the device exports.
    fn sectors(&self) -> u64 {
        self.shape().sectors
    }
}

/// A node in the tree of a stack: a drive, or a layer that owns one next device or several
/// identical next devices.
///
/// A device implements its own part: the devices below, its power, its failure, its rules, its
/// contents and its counters. A function that a layer does not define passes the call to the next
/// devices.
pub trait Storage: Device {
    /// Returns the next devices: none below a drive, at least one below a layer, and exactly one if
    /// the layer is built as [`crate::Build::Over`].
    fn lower(&self) -> &[Box<dyn Storage>];

    /// Returns the next devices for modification.
    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>];

    /// Returns the drives at the bottom, without their layers.
    fn into_drives(self: Box<Self>) -> Vec<Ssd>;

    /// Makes commands take effect in no time and without completions, if `on` is `true`. A caller
    /// uses this to prepare a device. A layer passes the call to the next devices.
    fn set_instant(&mut self, on: bool);

    /// Switches the power on again. Everything in memory is lost, and the device mounts the content
    /// of the medium. `config` is the configuration of the device.
    ///
    /// A layer powers on the next devices, and then mounts its data on them.
    ///
    /// # Errors
    /// Returns an error if the medium or a layer cannot be mounted. The device is then unusable.
    ///
    /// # Panics
    /// Panics if commands are in flight.
    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError>;

    /// Returns the counters and the memory tables of this layer, or `None` if the device is a
    /// drive.
    fn report(&self) -> Option<LayerReport>;

    /// Sets this device's own counters to zero. The content of the device does not change.
    fn reset_own_counters(&mut self);

    /// Returns the error that stopped this device itself, or `None`.
    fn own_failure(&self) -> Option<SubmitError> {
        None
    }

    /// Checks the rules of this device's own tables, in O(n).
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check_own(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// Returns the contents that the stamps of this layer represent, if the layer composes units.
    fn own_contents(&mut self) -> Option<&mut Contents> {
        None
    }

    /// Returns the error that stopped this device or a device below, or `None`. After such an
    /// error, commands in flight may never complete.
    ///
    /// A layer that continues without a failed device must override this function.
    fn failure(&self) -> Option<SubmitError> {
        self.own_failure().or_else(|| self.lower().iter().find_map(|device| device.failure()))
    }

    /// Checks this device's own rules and the rules of everything below, in O(n).
    ///
    /// A layer that continues without a failed device overrides this function to skip that device.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check(&self) -> Result<(), Violation> {
        self.check_own()?;
        self.lower().iter().try_for_each(|device| device.check())
    }

    /// Returns the stamp of a mapping unit. By default, the first of the next devices is asked for
    /// the unit with the same address. The lookup causes no operation and takes no time.
    ///
    /// # Errors
    /// Returns an error if a map points to an unreadable page, or to another unit.
    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        self.lower()[0].peek_stamp(unit)
    }

    /// Fills `stamps` with the stamps of the units from `first` on, as [`Storage::peek_stamp`]
    /// does. The table entries of several units are loaded from memory together. A drive uses all
    /// cores for many thousands of units.
    ///
    /// # Errors
    /// Returns the error of [`Storage::peek_stamp`] for the first unit that cannot be read.
    fn peek_stamps(&self, first: Lpn, stamps: &mut [Stamp]) -> Result<(), SubmitError> {
        let mut units = (first.0..).map(Lpn);
        for stamps in stamps.chunks_mut(TOGETHER) {
            let units: Vec<Lpn> = units.by_ref().take(stamps.len()).collect();
            self.prefetch(&units);
            for (stamp, unit) in stamps.iter_mut().zip(units) {
                *stamp = self.peek_stamp(unit)?;
            }
        }
        Ok(())
    }

    /// Returns the sum of the pairs of unit and stamp, over all units whose stamp is not
    /// [`Stamp::ZERO`].
    ///
    /// If [`Storage::check`] finds no fault, the sum has the stamps that [`Storage::peek_stamp`]
    /// returns. Returns `None` if computing the sum would take as long as looking up each unit. The
    /// default is `None`.
    fn sum_of_stamps(&self) -> Option<StampSum> {
        None
    }

    /// Returns `true` if trims may be lost in a power failure. By default, returns `true` if any of
    /// the next devices does.
    fn forgets_trims(&self) -> bool {
        self.lower().iter().any(|device| device.forgets_trims())
    }

    /// Calls `look` with the [`Contents`] of each layer that composes units, from the top down.
    fn each_contents(&mut self, look: &mut dyn FnMut(&mut Contents)) {
        if let Some(own) = self.own_contents() {
            look(own);
        }
        self.lower_mut().iter_mut().for_each(|device| device.each_contents(look));
    }

    /// Returns the counters and the memory tables of each layer, from the top down.
    ///
    /// If a layer spans several devices, the reports of the same layer below are summed.
    fn reports(&self) -> Vec<LayerReport> {
        let mut lower = self.lower().iter().map(|device| device.reports());
        let mut below = lower.next().unwrap_or_default();
        for others in lower {
            // the devices are identical, so their layers have the same positions
            below.iter_mut().zip(&others).for_each(|(sum, other)| sum.add(other));
        }
        self.report().into_iter().chain(below).collect()
    }

    /// Sets every counter to zero. The content of the device does not change.
    fn reset_counters(&mut self) {
        self.reset_own_counters();
        self.lower_mut().iter_mut().for_each(|device| device.reset_counters());
    }

    /// Returns the drives at the bottom: one, unless a layer spans several drives.
    fn drives(&self) -> Vec<&Ssd> {
        self.lower().iter().flat_map(|device| device.drives()).collect()
    }

    /// Returns the drives at the bottom for modification.
    fn drives_mut(&mut self) -> Vec<&mut Ssd> {
        self.lower_mut().iter_mut().flat_map(|device| device.drives_mut()).collect()
    }

    /// Returns the drive at the bottom, or the first of several.
    fn ssd(&self) -> &Ssd {
        self.lower()[0].ssd()
    }

    /// Returns the drive at the bottom, or the first of several, for modification.
    fn ssd_mut(&mut self) -> &mut Ssd {
        self.lower_mut()[0].ssd_mut()
    }
}

/// Number of units whose scattered table entries are loaded from memory together.
pub(crate) const TOGETHER: usize = 32;
