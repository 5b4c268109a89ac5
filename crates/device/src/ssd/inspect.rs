//! How a simulator looks into a drive.

use super::{DeviceCounters, Ssd};
use crate::{Contents, Inspect, LayerReport, SubmitError};
use flashatlas_ftl::Place;
use flashatlas_types::{Lpn, Stamp, Violation};

impl Inspect for Ssd {
    fn check(&self) -> Result<(), Violation> {
        self.ftl.check(&self.medium)
    }

    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        Ok(self.peek(unit)?.map_or(Stamp::ZERO, |u| u.stamp))
    }

    fn peek_stamps(&self, first: Lpn, stamps: &mut [Stamp]) -> Result<(), SubmitError> {
        let units = (first.0..).map(Lpn).take(stamps.len());
        for unit in units.clone() {
            if let Place::Flash(ppn) = self.ftl.peek(unit) {
                self.medium.expect_unit(ppn);
            }
        }
        for (unit, stamp) in units.zip(stamps) {
            *stamp = self.peek_stamp(unit)?;
        }
        Ok(())
    }

    fn forgets_trims(&self) -> bool {
        self.ftl.report().forgets_trims
    }

    fn each_contents(&mut self, _: &mut dyn FnMut(&mut Contents)) {}

    fn reports(&self) -> Vec<LayerReport> {
        Vec::new()
    }

    fn reset_counters(&mut self) {
        self.medium.counters = Default::default();
        self.medium.nvm.counters = Default::default();
        self.counters = DeviceCounters::default();
        if let Some(hpb) = &mut self.hpb {
            hpb.counters = Default::default();
        }
        self.ftl.reset_counters();
        self.engine.reset_statistics();
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
