//! What a drive and a layer over it have in common: commands ([`Device`]), power ([`PowerCycle`])
//! and a look behind the commands ([`Inspect`]).
//!
//! A drive implements the three. A layer implements [`Device`] and [`Layer`]; power and inspection
//! reach the drive through it.

use crate::{Cmd, Contents, DeviceShape, Done, DriveConfig, LayerReport, Reply, Ssd, SubmitError};
use flashatlas_types::{Lpn, Ps, Seed, Stamp, StampSum, Tag, Violation};

/// A command on its way to a device.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// When it is submitted.
    pub now: Ps,
    /// Names it until it completes.
    pub tag: Tag,
    /// What it asks.
    pub cmd: Cmd<'a>,
    /// Commands that it waits for. Tags that are not in flight are complete.
    pub after: &'a [Tag],
}

/// Something that takes host commands: a drive, or a layer that owns the next device.
pub trait Device: Send {
    /// Take a command at `now`. Its effect is decided at once, in order of submission; its
    /// completion comes from [`Device::advance`]. What a read returns is in `reply`.
    ///
    /// # Errors
    /// [`SubmitError`]; a command that was refused completes never.
    fn submit(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        self.submit_after(Submission { now, tag, cmd, after: &[] }, reply)
    }

    /// As [`Device::submit`], of a host that sends the command when others are complete: it decides
    /// now what it sends, and the device says when.
    ///
    /// # Errors
    /// As [`Device::submit`].
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError>;

    /// Reads of these mapping units are about to come. What is known of them may be loaded from
    /// memory now, all at once, rather than one by one then; nothing else comes of it.
    fn prefetch(&self, units: &[Lpn]) {
        let _ = units;
    }

    /// When something happens next.
    fn next_event(&self) -> Option<Ps>;

    /// Run up to and including `until`; completions are appended in the order of time.
    fn advance(&mut self, until: Ps, out: &mut Vec<Done>);

    /// As [`Device::advance`], but no further than the first instant at which commands complete.
    /// Returns the time that it came to: `until` if none does before, or the time of the last event
    /// where that is [`Ps::MAX`].
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

    /// The host asks for nothing from `now` until `until`: background work may use the time.
    ///
    /// # Errors
    /// When background work finds a fault it has no answer to.
    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError>;

    /// What the device exports.
    fn shape(&self) -> DeviceShape;

    /// Sectors in a mapping unit.
    fn unit_sectors(&self) -> u32 {
        self.shape().unit_sectors
    }

    /// Sectors that the device exports.
    fn sectors(&self) -> u64 {
        self.shape().sectors
    }
}

/// The life of a device: how it is brought into a state, and what becomes of it when the power
/// fails.
pub trait PowerCycle {
    /// Commands take effect without any time passing and without completions: how a device is
    /// brought into a state.
    fn set_instant(&mut self, on: bool);

    /// The power is back: everything in memory is gone, and what is on the medium is mounted.
    /// `config` is that of the device.
    ///
    /// # Errors
    /// When it cannot be mounted. The device is of no use then.
    ///
    /// # Panics
    /// When commands are in flight.
    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError>;

    /// What stopped the device, if anything did: commands in flight may never complete.
    fn failure(&self) -> Option<SubmitError>;

    /// The drives at the bottom, without their layers.
    fn into_drives(self: Box<Self>) -> Vec<Ssd>;
}

/// How a simulator looks into a device: at no cost, and behind the back of its commands.
pub trait Inspect {
    /// The O(n) rules of everything below.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self) -> Result<(), Violation>;

    /// What a mapping unit holds, looked up behind the device's back: no operation, no time.
    ///
    /// # Errors
    /// When a map points to something that cannot be read, or to another unit.
    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError>;

    /// As [`Inspect::peek_stamp`], of as many units as `stamps`, from `first` on: they are loaded
    /// from memory together, and many thousands by all cores.
    ///
    /// # Errors
    /// As [`Inspect::peek_stamp`], of the first unit that cannot be read.
    fn peek_stamps(&self, first: Lpn, stamps: &mut [Stamp]) -> Result<(), SubmitError>;

    /// What all units hold, as pairs of a unit and its stamp, those left out that hold
    /// [`Stamp::ZERO`]: as [`Inspect::peek_stamp`] has it, if [`Inspect::check`] finds nothing.
    /// None where it takes as long as looking at each unit.
    fn sum_of_stamps(&self) -> Option<StampSum>;

    /// Whether trims do not outlive a power failure.
    fn forgets_trims(&self) -> bool;

    /// Show what the digests of layers stand for, of each layer that composes what it writes (see
    /// [`Contents`]), from the top down.
    fn each_contents(&mut self, look: &mut dyn FnMut(&mut Contents));

    /// What each layer counted and keeps in the host's memory, from the top down. Below a layer
    /// over several devices the layers of all of them are reported as one.
    fn reports(&self) -> Vec<LayerReport>;

    /// Set every counter to zero; what the device holds stays.
    fn reset_counters(&mut self);

    /// The drives at the bottom: one, but under a layer over several.
    fn drives(&self) -> Vec<&Ssd>;

    /// The drives at the bottom, to change.
    fn drives_mut(&mut self) -> Vec<&mut Ssd>;

    /// The drive at the bottom, or the first of them.
    fn ssd(&self) -> &Ssd;

    /// The drive at the bottom, or the first of them, to change.
    fn ssd_mut(&mut self) -> &mut Ssd;
}

/// A drive, or a layer over one.
pub trait Storage: Device + PowerCycle + Inspect {}

impl<S: Device + PowerCycle + Inspect> Storage for S {}

/// A layer: a device that owns the next one, or several that are alike. Whatever it says nothing
/// about is answered by those.
pub trait Layer: Device {
    /// The next devices. At least one; of a layer that is built as [`crate::Build::Over`], that.
    fn lower(&self) -> &[Box<dyn Storage>];

    /// The next devices, to change.
    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>];

    /// The next devices, without this layer.
    fn into_lower(self: Box<Self>) -> Vec<Box<dyn Storage>>;

    /// What stopped this layer, if anything did.
    fn own_failure(&self) -> Option<SubmitError>;

    /// What stopped this layer or one below; a layer that goes on without a device that failed
    /// says so here.
    fn failure(&self) -> Option<SubmitError> {
        self.own_failure().or_else(|| self.lower().iter().find_map(|device| device.failure()))
    }

    /// As [`PowerCycle::power_on`]: the next devices are powered on first, and then the layer
    /// mounts what is there.
    ///
    /// # Errors
    /// When either cannot be mounted.
    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError>;

    /// As [`PowerCycle::set_instant`]; the layer tells the next devices.
    fn set_instant(&mut self, on: bool);

    /// The O(n) rules of this layer's own tables.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check_own(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// As [`Inspect::check`]: this layer's own rules, and those of everything below. A layer that
    /// goes on without a device that failed leaves that out.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self) -> Result<(), Violation> {
        self.check_own()?;
        self.lower().iter().try_for_each(|device| device.check())
    }

    /// As [`Inspect::peek_stamp`]; by default the unit has the same address on the first device.
    ///
    /// # Errors
    /// As [`Inspect::peek_stamp`].
    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        self.lower()[0].peek_stamp(unit)
    }

    /// As [`Inspect::sum_of_stamps`]; by default nothing is said.
    fn sum_of_stamps(&self) -> Option<StampSum> {
        None
    }

    /// As [`Inspect::forgets_trims`].
    fn forgets_trims(&self) -> bool {
        self.lower().iter().any(|device| device.forgets_trims())
    }

    /// What the digests of this layer stand for, where it composes what it writes.
    fn own_contents(&mut self) -> Option<&mut Contents> {
        None
    }

    /// What this layer counted and keeps in the host's memory.
    fn report(&self) -> LayerReport;

    /// Set this layer's counters to zero.
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

/// Of what lies all over memory so many units are loaded together.
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
            // the devices are alike: their layers stand at the same places
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
