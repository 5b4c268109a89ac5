//! SepBIT: host writes are sorted by the lifetime of the version that they supersede. Collected
//! pages are sorted by their class and by their age. The age is compared with the mean lifespan of
//! blocks of short-lived pages.

use super::{Classifier, ClassifierDef, Collected, Page, Stream, Streams};
use crate::MemoryUse;
use flashatlas_types::{MemoryKind, Param, StreamId};

pub const DEF: ClassifierDef = ClassifierDef {
    name: "sepbit",
    summary: "six classes by inferred time of invalidation: two of host writes, four of collection",
    paper: "Wang et al., Separating Data via Block Invalidation Time Inference for Write \
            Amplification Reduction in Log-Structured Storage (FAST 2022), section 3, Algorithm 1",
    params: &[BLOCKS.def],
    streams: Some(Streams { host: 2, collection: 4 }),
    history: true,
    build: &|params, _, _| Box::new(SepBit::new(params.get(BLOCKS))),
};

const BLOCKS: Param<u32> = Param::int(
    "ftl.sepbit_blocks",
    1,
    1 << 20,
    "number of collected blocks of short-lived pages whose mean lifespan is one estimate",
)
.or("16");

/// The class of host writes that supersede a short-lived version.
const SHORT_LIVED: StreamId = StreamId::new(0);

/// The classifier SepBIT. The two streams of host writes are classes 1 and 2 of the paper. The four
/// streams of collection are classes 3 to 6.
struct SepBit {
    /// The number of collected blocks of class 1 in each estimate.
    blocks: u32,
    /// Mean lifespan of these blocks, in pages that the host wrote; infinite until the first
    /// estimate.
    lifespan: f64,
    /// Number of collected blocks since the last estimate, and the sum of their lifespans.
    collected: (u32, u64),
}

impl SepBit {
    fn new(blocks: u32) -> SepBit {
        SepBit { blocks, lifespan: f64::INFINITY, collected: (0, 0) }
    }
}

impl Classifier for SepBit {
    fn written(&mut self, page: &Page) -> StreamId {
        let short = page.age.is_some_and(|lived| (lived as f64) < self.lifespan);
        if short { SHORT_LIVED } else { StreamId::new(1) }
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        if page.from == Some(Stream::Host(SHORT_LIVED)) {
            return StreamId::new(0);
        }
        let age = page.age.map_or(f64::MAX, |age| age as f64);
        StreamId::new(match age {
            _ if age < 4.0 * self.lifespan => 1,
            _ if age < 16.0 * self.lifespan => 2,
            _ => 3,
        })
    }

    fn erased(&mut self, block: &Collected) {
        if block.stream != Some(Stream::Host(SHORT_LIVED)) {
            return;
        }
        let (count, sum) = &mut self.collected;
        (*count, *sum) = (*count + 1, *sum + block.age);
        if *count == self.blocks {
            self.lifespan = *sum as f64 / f64::from(*count);
            self.collected = (0, 0);
        }
    }

    fn memory(&self) -> Vec<MemoryUse> {
        vec![MemoryUse { table: "SepBIT counters", memory: MemoryKind::Sram, bytes: 24 }]
    }
}
