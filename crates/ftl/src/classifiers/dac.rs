//! Dynamic dAta Clustering: a page moves up one region at each update and down one region at each
//! collection.

use super::{Classifier, ClassifierDef, Page};
use crate::MemoryUse;
use flashatlas_types::{Index, Lpn, MemoryKind, StreamId, TiVec, ti_vec};

pub const DEF: ClassifierDef = ClassifierDef {
    name: "dac",
    summary: "a page moves one region up at each update, and one region down at each collection",
    paper: "Chiang, Lee and Chang, Using Data Clustering to Improve Cleaning Performance for Flash \
            Memory (1999)",
    params: &[],
    streams: None,
    history: false,
    build: &|_, units, streams| {
        Box::new(Dac { region: ti_vec![UNWRITTEN; units.index()], streams: streams as u8 })
    },
};

const UNWRITTEN: u8 = u8::MAX;

struct Dac {
    region: TiVec<Lpn, u8>,
    streams: u8,
}

impl Classifier for Dac {
    fn written(&mut self, page: &Page) -> StreamId {
        let region = &mut self.region[page.lpn];
        *region = if *region == UNWRITTEN { 0 } else { (*region + 1).min(self.streams - 1) };
        StreamId::new((*region).into())
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        let region = &mut self.region[page.lpn];
        *region = if *region == UNWRITTEN { 0 } else { region.saturating_sub(1) };
        StreamId::new((*region).into())
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bits = u64::from(u8::BITS - (self.streams - 1).leading_zeros()).max(1);
        let bytes = (self.region.len() as u64 * bits).div_ceil(8);
        vec![MemoryUse { table: "DAC regions", memory: MemoryKind::Dram, bytes }]
    }
}
