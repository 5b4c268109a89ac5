//! Interfaces that a drive and a layer over it share: commands ([`Device`]), power ([`PowerCycle`])
//! and inspection without commands ([`Inspect`]).
//!
//! A drive implements all three. A layer implements [`Device`] and [`Layer`], and gets the other
//! two from [`Layer`].

use crate::{Cmd, Contents, DeviceShape, Done, DriveConfig, LayerReport, Reply, Ssd, SubmitError};
use flashatlas_types::{Lpn, Ps, Seed, Stamp, StampSum, Tag, Violation};

/// A command on its way to a device.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Time at which it is submitted.
    pub now: Ps,
    /// Name of the command until it completes.
    pub tag: Tag,
    /// The command.
    pub cmd: Cmd<'a>,
    /// Commands that this one waits for. A tag that is not in flight counts as complete.
    pub after: &'a [Tag],
}

/// Something that takes host commands: a drive, or a layer that owns the next device.
pub trait Device: Send {
    /// Takes a command at `now`. Its effect is decided at once, in order of submission.
    ///
    /// [`Device::advance`] returns its completion, and `reply` receives what a read returns.
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

    /// Takes a command as [`Device::submit`] does, from a host that sends it when other commands
    /// are complete.
    ///
    /// The host decides now what it sends, and the device decides when.
    ///
    /// # Errors
    /// Returns the errors of [`Device::submit`].
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError>;

    /// Prepares for reads of these mapping units. The device may load its table entries of them
    /// from memory now, all at once, rather than one by one later. Nothing else changes.
    fn prefetch(&self, units: &[Lpn]) {
        let _ = units;
    }

    /// Returns the time of the next event, or `None` if there is none.
    fn next_event(&self) -> Option<Ps>;

    /// Runs up to and including `until`, and appends completions in the order of time.
    fn advance(&mut self, until: Ps, out: &mut Vec<Done>);

    /// Runs as [`Device::advance`] does, but no further than the first instant at which commands
    /// complete.
    ///
    /// Returns the time of the device after that: `until` if no command completes by then, or the
    /// time of the last event if `until` is [`Ps::MAX`].
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

    /// Offers the time from `now` until `until`, in which the host sends no command, to background
    /// work.
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

/// Power of a device, and preparation of a state without simulated time.
pub trait PowerCycle {
    /// Makes commands take effect in no time and without completions, if `on`. A caller brings a
    /// device into a state this way.
    fn set_instant(&mut self, on: bool);

    /// Switches the power on again. Everything in memory is lost, and the device mounts the content
    /// of the medium. `config` is the configuration of the device.
    ///
    /// # Errors
    /// Returns an error if the medium cannot be mounted. The device is of no use then.
    ///
    /// # Panics
    /// Panics if commands are in flight.
    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError>;

    /// Returns the error that stopped the device, if there is one. Commands in flight may never
    /// complete then.
    fn failure(&self) -> Option<SubmitError>;

    /// Returns the drives at the bottom, without their layers.
    fn into_drives(self: Box<Self>) -> Vec<Ssd>;
}

/// Inspection of a device by the simulator, without commands and in no time.
pub trait Inspect {
    /// Checks the rules of everything below, in O(n).
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check(&self) -> Result<(), Violation>;

    /// Returns the stamp that a mapping unit holds. The lookup causes no operation and takes no
    /// time.
    ///
    /// # Errors
    /// Returns an error if a map points to something that cannot be read, or to another unit.
    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError>;

    /// Fills `stamps` with the stamps of the units from `first` on, as [`Inspect::peek_stamp`]
    /// does.
    ///
    /// The units are loaded from memory together, and by all cores if there are many thousands.
    ///
    /// # Errors
    /// Returns the error of [`Inspect::peek_stamp`] for the first unit that cannot be read.
    fn peek_stamps(&self, first: Lpn, stamps: &mut [Stamp]) -> Result<(), SubmitError>;

    /// Returns the sum of all units, as pairs of a unit and its stamp, without the units that hold
    /// [`Stamp::ZERO`].
    ///
    /// The stamps are the ones that [`Inspect::peek_stamp`] returns, if [`Inspect::check`] finds no
    /// fault. Returns `None` if the sum takes as long as looking at each unit.
    fn sum_of_stamps(&self) -> Option<StampSum>;

    /// Returns `true` if trims do not outlive a power failure.
    fn forgets_trims(&self) -> bool;

    /// Calls `look` with the [`Contents`] of each layer that composes units, from the top down.
    fn each_contents(&mut self, look: &mut dyn FnMut(&mut Contents));

    /// Returns the counters and the memory tables of each layer, from the top down.
    ///
    /// Below a layer over several devices, the layers of all devices are reported as one.
    fn reports(&self) -> Vec<LayerReport>;

    /// Sets every counter to zero; what the device holds does not change.
    fn reset_counters(&mut self);

    /// Returns the drives at the bottom. There is one, unless a layer is over several drives.
    fn drives(&self) -> Vec<&Ssd>;

    /// Returns the drives at the bottom, to be changed.
    fn drives_mut(&mut self) -> Vec<&mut Ssd>;

    /// Returns the drive at the bottom, or the first of several.
    fn ssd(&self) -> &Ssd;

    /// Returns the drive at the bottom, or the first of several, to change.
    fn ssd_mut(&mut self) -> &mut Ssd;
}

/// A drive, or a layer over one.
pub trait Storage: Device + PowerCycle + Inspect {}

impl<S: Device + PowerCycle + Inspect> Storage for S {}

/// A layer: a device that owns the next device, or several next devices that are alike. The next
/// devices answer for everything that the layer does not define.
pub trait Layer: Device {
    /// Returns the next devices: at least one, and exactly one if the layer is built as
    /// [`crate::Build::Over`].
    fn lower(&self) -> &[Box<dyn Storage>];

    /// Returns the next devices, to change.
    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>];

    /// Returns the next devices, without this layer.
    fn into_lower(self: Box<Self>) -> Vec<Box<dyn Storage>>;

    /// Returns the error that stopped this layer, if there is one.
    fn own_failure(&self) -> Option<SubmitError>;

    /// Returns the error that stopped this layer or one below, if there is one. A layer that goes
    /// on without a failed device must override this function.
    fn failure(&self) -> Option<SubmitError> {
        self.own_failure().or_else(|| self.lower().iter().find_map(|device| device.failure()))
    }

    /// Powers on the next devices, as [`PowerCycle::power_on`] does, and then mounts the layer's
    /// data on them.
    ///
    /// # Errors
    /// Returns an error if a device or the layer cannot be mounted.
    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError>;

    /// Makes commands instant, as [`PowerCycle::set_instant`] does. The layer calls the next
    /// devices too.
    fn set_instant(&mut self, on: bool);

    /// Checks the rules of this layer's own tables, in O(n).
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check_own(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// Checks this layer's own rules and the rules of everything below, as [`Inspect::check`] does.
    /// A layer that goes on without a failed device overrides this function to leave that device
    /// out.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check(&self) -> Result<(), Violation> {
        self.check_own()?;
        self.lower().iter().try_for_each(|device| device.check())
    }

    /// Returns the stamp that a unit holds, as [`Inspect::peek_stamp`] does; by default the unit
    /// has the same address on the first device.
    ///
    /// # Errors
    /// Returns the errors of [`Inspect::peek_stamp`].
    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        self.lower()[0].peek_stamp(unit)
    }

    /// Returns the sum of all units, as [`Inspect::sum_of_stamps`] does; by default `None`.
    fn sum_of_stamps(&self) -> Option<StampSum> {
        None
    }

    /// Returns `true` if trims do not outlive a power failure, as [`Inspect::forgets_trims`] does;
    /// by default, if so on any of the next devices.
    fn forgets_trims(&self) -> bool {
        self.lower().iter().any(|device| device.forgets_trims())
    }

    /// Returns the contents that the stamps of this layer stand for, if it composes units.
    fn own_contents(&mut self) -> Option<&mut Contents> {
        None
    }

    /// Returns the counters and the memory tables of this layer.
    fn report(&self) -> LayerReport;

    /// Sets this layer's counters to zero.
    fn reset_own_counters(&mut self);
}

impl<L: Layer> PowerCycle for L {
    fn set_instant(&mut self, on: bool) {
        Layer::set_instant(self, on);
    }

    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        Layer::power_on(self, config, seed)
    }

    fn failure(&self) -> Option<SubmitError> {
        Layer::failure(self)
    }

    fn into_drives(self: Box<Self>) -> Vec<Ssd> {
        self.into_lower().into_iter().flat_map(|device| device.into_drives()).collect()
    }
}

/// Number of units that are loaded together from places all over memory.
pub(crate) const TOGETHER: usize = 32;

impl<L: Layer> Inspect for L {
    fn check(&self) -> Result<(), Violation> {
        Layer::check(self)
    }

    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        Layer::peek_stamp(self, unit)
    }

    fn peek_stamps(&self, first: Lpn, stamps: &mut [Stamp]) -> Result<(), SubmitError> {
        let mut units = (first.0..).map(Lpn);
        for stamps in stamps.chunks_mut(TOGETHER) {
            let units: Vec<Lpn> = units.by_ref().take(stamps.len()).collect();
            self.prefetch(&units);
            for (stamp, unit) in stamps.iter_mut().zip(units) {
                *stamp = Layer::peek_stamp(self, unit)?;
            }
        }
        Ok(())
    }

    fn sum_of_stamps(&self) -> Option<StampSum> {
        Layer::sum_of_stamps(self)
    }

    fn forgets_trims(&self) -> bool {
        Layer::forgets_trims(self)
    }

    fn each_contents(&mut self, look: &mut dyn FnMut(&mut Contents)) {
        if let Some(own) = self.own_contents() {
            look(own);
        }
        self.lower_mut().iter_mut().for_each(|device| device.each_contents(look));
    }

    fn reports(&self) -> Vec<LayerReport> {
        let mut reports = vec![self.report()];
        let mut lower = self.lower().iter().map(|device| device.reports());
        reports.extend(lower.next().into_iter().flatten());
        for others in lower {
            // the devices are alike, so their layers are at the same places
            reports[1..].iter_mut().zip(&others).for_each(|(sum, other)| sum.add(other));
        }
        reports
    }

    fn reset_counters(&mut self) {
        self.reset_own_counters();
        self.lower_mut().iter_mut().for_each(|device| device.reset_counters());
    }

    fn drives(&self) -> Vec<&Ssd> {
        self.lower().iter().flat_map(|device| device.drives()).collect()
    }

    fn drives_mut(&mut self) -> Vec<&mut Ssd> {
        self.lower_mut().iter_mut().flat_map(|device| device.drives_mut()).collect()
    }

    fn ssd(&self) -> &Ssd {
        self.lower()[0].ssd()
    }

    fn ssd_mut(&mut self) -> &mut Ssd {
        self.lower_mut()[0].ssd_mut()
    }
}
