//! A drive as the leaf of a stack: its power, and the simulator's inspection of its content.

use super::{DeviceCounters, Ssd};
use crate::interface::TOGETHER;
use crate::{DriveConfig, LayerReport, Storage, SubmitError};
use flashatlas_ftl::Place;
use flashatlas_ftl::units::unit_by_stamp_at;
use flashatlas_nand::Medium;
use flashatlas_types::{
    Dealing, FtlError, Lpn, Ppn, Seed, Stamp, StampSum, Violation, at_once, share,
};

impl Storage for Ssd {
    fn lower(&self) -> &[Box<dyn Storage>] {
        &[]
    }

    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>] {
        &mut []
    }

    fn into_drives(self: Box<Self>) -> Vec<Ssd> {
        vec![*self]
    }

    fn set_instant(&mut self, on: bool) {
        assert!(!self.is_busy(), "the drive is busy");
        self.instant = on;
        self.plan.set_recording(!on);
    }

    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.mount_again(config, seed)
    }

    fn own_failure(&self) -> Option<SubmitError> {
        self.failed.clone().map(SubmitError::from)
    }

    fn check_own(&self) -> Result<(), Violation> {
        self.ftl.check(&self.medium)
    }

    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        Ok(self.peek(unit)?.map_or(Stamp::ZERO, |u| u.stamp))
    }

    fn peek_stamps(&self, first: Lpn, stamps: &mut [Stamp]) -> Result<(), SubmitError> {
        // the tables that return the places are sorted by unit, but the states of the places are
        // spread over memory
        let mut places = Vec::with_capacity(stamps.len());
        for (unit, stamp) in (first.0..).map(Lpn).zip(&mut *stamps) {
            let place;
            (*stamp, place) = self.held_or_place(unit);
            places.push(place);
        }
        let share = share(stamps.len(), WORTH_A_THREAD);
        let shares = (first.0..).step_by(share).zip(places.chunks(share));
        let medium = &self.medium;
        let found = at_once(shares.zip(stamps.chunks_mut(share)), |((first, places), stamps)| {
            stamps_at(medium, Lpn(first), places, stamps)
        });
        Ok(found.into_iter().collect::<Result<(), _>>()?)
    }

    fn sum_of_stamps(&self) -> Option<StampSum> {
        let mut sum = self.ftl.sum_of_stamps(&self.medium)?;
        for entry in self.cache.iter().flat_map(|cache| cache.units()) {
            let below = self.peek_below_cache(entry.lpn).ok().flatten();
            sum.replace(entry.lpn, below.map_or(Stamp::ZERO, |unit| unit.stamp), entry.stamp);
        }
        Some(sum)
    }

    fn forgets_trims(&self) -> bool {
        self.ftl.report().forgets_trims
    }

    fn report(&self) -> Option<LayerReport> {
        None
    }

    fn reset_own_counters(&mut self) {
        self.medium.counters = Default::default();
        self.medium.nvm.counters = Default::default();
        self.counters = DeviceCounters::default();
        if let Some(hpb) = &mut self.hpb {
            hpb.counters = Default::default();
        }
        self.ftl.reset_counters();
        self.engine.reset_statistics();
        if let Some(power) = &mut self.power {
            power.reset_counters(self.engine.now());
        }
    }

    fn drives(&self) -> Vec<&Ssd> {
        vec![self]
    }

    fn drives_mut(&mut self) -> Vec<&mut Ssd> {
        vec![self]
    }

    fn ssd(&self) -> &Ssd {
        self
    }

    fn ssd_mut(&mut self) -> &mut Ssd {
        self
    }
}

impl Ssd {
    /// Returns the stamp of a unit in memory, or the place of a unit on flash. The other component
    /// is zero or [`Ppn::NONE`].
    fn held_or_place(&self, unit: Lpn) -> (Stamp, Ppn) {
        if let Some(entry) = self.cache.as_ref().and_then(|cache| cache.get(unit)) {
            return (entry.stamp, Ppn::NONE);
        }
        match self.ftl.peek(unit) {
            Place::Nowhere => (Stamp::ZERO, Ppn::NONE),
            Place::Buffer(unit) => (unit.stamp, Ppn::NONE),
            Place::Flash(ppn) => (Stamp::ZERO, ppn),
        }
    }
}

/// Number of units below which a lookup takes less time than the start of a thread.
const WORTH_A_THREAD: usize = 1 << 14;

/// Looks up the stamps of the units of a run that are on flash.
///
/// Units in the same window of the medium are looked up one after another, because the states of
/// such slots lie in few pages of memory.
fn stamps_at(
    medium: &Medium,
    first: Lpn,
    places: &[Ppn],
    stamps: &mut [Stamp],
) -> Result<(), FtlError> {
    let windows = Medium::windows(medium.layout());
    let on_flash = (0..).zip(places).filter_map(|(at, ppn)| Some((at, ppn.mapped()?)));
    let dealt: Vec<(u32, Ppn)> =
        Dealing::sorted(windows, on_flash.map(|unit| (Medium::window(unit.1), unit)));
    let mut refused: Option<(u32, FtlError)> = None;
    for units in dealt.chunks(TOGETHER) {
        units.iter().for_each(|&(_, ppn)| medium.prefetch_unit(ppn));
        for &(at, ppn) in units {
            match unit_by_stamp_at(medium, ppn, Lpn(first.0 + at)) {
                Ok(unit) => stamps[at as usize] = unit.stamp,
                Err(_) if refused.as_ref().is_some_and(|&(before, _)| before < at) => {}
                Err(error) => refused = Some((at, error)),
            }
        }
    }
    refused.map_or(Ok(()), |(_, error)| Err(error))
}
