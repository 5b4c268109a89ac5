//! The whole map in DRAM, one entry a page: the baseline of every other store. Volatile; nothing is persisted, a mount
//! rebuilds it from the spare areas.

use super::{MapStore, MapStoreDef};
use crate::{Cx, MapCounters, MemoryUse};
use flashatlas_types::{Class, FtlError, Layout, Lpn, MemoryKind, OpId, OpKind, Params, Ppn};

pub const DEF: MapStoreDef = MapStoreDef {
    name: "dram",
    summary: "the whole map in DRAM, volatile",
    paper: "in common use",
    params: &[],
    build: |params, layout| Box::new(Dram::new(params, layout)),
};

struct Dram {
    entries: Vec<Ppn>,
    entry_bytes: u32,
    counters: MapCounters,
}

impl Dram {
    fn new(params: &Params, layout: &Layout) -> Dram {
        Dram {
            entries: vec![Ppn::NONE; layout.logical_units as usize],
            entry_bytes: params.u32("map.entry_bytes"),
            counters: MapCounters::default(),
        }
    }
}

impl MapStore for Dram {
    #[inline]
    fn get(&mut self, cx: &mut Cx<'_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        self.counters.lookups += 1;
        self.counters.hits += 1;
        let access = OpKind::Memory { kind: MemoryKind::Dram, accesses: 1, bytes: self.entry_bytes, write: false };
        let op = cx.flash.plan.push(access, Class::Map, &[cx.command]);
        Ok((self.entries[lpn.0 as usize], op))
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Ppn {
        self.entries[lpn.0 as usize]
    }

    #[inline]
    fn set(&mut self, _: &mut Cx<'_>, lpn: Lpn, ppn: Ppn) -> Result<Ppn, FtlError> {
        self.counters.updates += 1;
        Ok(std::mem::replace(&mut self.entries[lpn.0 as usize], ppn))
    }

    fn counters(&self) -> MapCounters {
        self.counters
    }

    fn reset_counters(&mut self) {
        self.counters = MapCounters::default();
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = self.entries.len() as u64 * u64::from(self.entry_bytes);
        vec![MemoryUse { table: "L2P map", memory: MemoryKind::Dram, bytes }]
    }
}
