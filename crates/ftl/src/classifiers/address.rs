//! Classification by address. The classification is perfect for a workload whose hot pages have the
//! lowest addresses, such as the generator `hotcold`.

use super::{Classifier, ClassifierDef, Page};
use crate::MemoryUse;
use flashatlas_types::{Lpn, Param, StreamId};

pub const DEF: ClassifierDef = ClassifierDef {
    name: "address",
    summary: "the first pages of the drive are hot; perfect for a load whose hot pages come first",
    paper: "-",
    params: &[HOT_SPACE.def],
    streams: None,
    history: false,
    build: &|params, units, streams| {
        let hot = (f64::from(units) * params.get(HOT_SPACE)) as u32;
        Box::new(ByAddress { hot, hottest: StreamId::new(streams - 1) })
    },
};

const HOT_SPACE: Param<f64> = Param::ratio(
    "ftl.hot_space",
    0.0,
    1.0,
    "address: the share of hot pages, which are the first pages of the drive",
)
.or("0.1");

struct ByAddress {
    /// The number of hot pages.
    hot: u32,
    hottest: StreamId,
}

impl ByAddress {
    fn stream(&self, lpn: Lpn) -> StreamId {
        if lpn.0 < self.hot { self.hottest } else { StreamId::new(0) }
    }
}

impl Classifier for ByAddress {
    fn written(&mut self, page: &Page) -> StreamId {
        self.stream(page.lpn)
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        self.stream(page.lpn)
    }

    fn memory(&self) -> Vec<MemoryUse> {
        Vec::new()
    }
}
