//! A file on ext4 that is written and synced, again and again.

use super::GeneratorDef;
use super::common::{SIZE, range_sectors, whole_sectors};
use crate::error::TraceError;
use crate::ext4::{Ext4, PARAMS};
use crate::source::{Account, Record, RecordSource};
use flashatlas_types::{ConfigError, HostOp, Lba, Param, Params, Ps, Request, Rng, Seed, Text};
use std::collections::VecDeque;

const OPERATIONS: Param<u64> =
    Param::int("operations", 1, u64::MAX, "number of calls of fsync or fdatasync").or("10000");

const WRITE: Param<Text> = Param::choice(
    "write",
    &["append", "overwrite", "random"],
    "writes to the file: the file grows, and is truncated to length 0 when it has filled its range \
     (`append`); the blocks of an existing file are written in order (`overwrite`) or at random \
     (`random`)",
)
.or("append");

const SYNC: Param<Text> = Param::choice("sync", &["fsync", "fdatasync"], "the call").or("fsync");

const WRITES_PER_SYNC: Param<u64> =
    Param::int("writes_per_sync", 1, 1 << 20, "number of writes before each call").or("1");

const SYNCS_PER_TICK: Param<u64> = Param::int(
    "syncs_per_tick",
    1,
    1 << 20,
    "number of calls in a tick of the kernel's clock (1/hz): after overwrites, one fsync in this \
     number finds a new time of modification and commits",
)
.or("1");

const RANGE: Param<f64> = Param::ratio(
    "range",
    0.0,
    1.0,
    "share of the drive's capacity, from its start, that the file takes",
)
.or("0.5");

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "ext4-sync",
    summary: "writes to a file on ext4, each followed by fsync or fdatasync: data, journal, \
              FLUSHes; for closed mode at depth 1",
    params: &[
        OPERATIONS.def,
        WRITE.def,
        SYNC.def,
        SIZE.def,
        WRITES_PER_SYNC.def,
        SYNCS_PER_TICK.def,
        RANGE.def,
        PARAMS[0],
        PARAMS[1],
        PARAMS[2],
        PARAMS[3],
        PARAMS[4],
    ],
    serial: true,
    build: |params, capacity, seed| Ok(Box::new(Ext4Sync::new(params, capacity, seed)?)),
};

struct Ext4Sync {
    fs: Ext4,
    append: bool,
    data_only: bool,
    /// Addresses of random overwrites.
    random: Option<Rng>,
    sectors: u32,
    /// Number of requests that fit the file.
    slots: u64,
    next: u64,
    writes_per_sync: u64,
    syncs_per_tick: u64,
    syncs: u64,
    operations: u64,
    /// Number of operations of the first pass.
    pass: u64,
    waiting: VecDeque<Request>,
}

impl Ext4Sync {
    fn new(params: &Params, capacity: u64, seed: Seed) -> Result<Ext4Sync, ConfigError> {
        let fs = Ext4::new(params, capacity, 1)?;
        let sectors = whole_sectors(SIZE.key(), params.get(SIZE))?;
        let file = range_sectors(params, capacity).min(fs.data_sectors());
        let slots = file / u64::from(sectors);
        if slots == 0 {
            return Err(ConfigError::new(
                "range",
                format!("a file of {file} sectors has no room for a write of {sectors} sectors"),
            ));
        }
        Ok(Ext4Sync {
            fs,
            append: params.get(WRITE) == "append",
            data_only: params.get(SYNC) == "fdatasync",
            random: (params.get(WRITE) == "random")
                .then(|| Rng::stream(seed, "workload.addresses")),
            sectors,
            slots,
            next: 0,
            writes_per_sync: params.get(WRITES_PER_SYNC),
            syncs_per_tick: params.get(SYNCS_PER_TICK),
            syncs: 0,
            operations: params.get(OPERATIONS),
            pass: params.get(OPERATIONS),
            waiting: VecDeque::new(),
        })
    }

    /// Makes the requests of one call, and of the writes before it.
    fn operation(&mut self) {
        for _ in 0..self.writes_per_sync {
            let slot = match &mut self.random {
                Some(rng) => rng.below(self.slots),
                None => {
                    let slot = self.next;
                    self.next = (slot + 1) % self.slots;
                    slot
                }
            };
            let lba = Lba(slot * u64::from(self.sectors));
            let write =
                Request { at: Ps::ZERO, op: HostOp::Write, lba, sectors: self.sectors, fua: false };
            self.waiting.push_back(write);
        }
        let new_time = !self.data_only && self.syncs % self.syncs_per_tick == 0;
        let mut requests = Vec::new();
        if self.append || new_time {
            self.fs.commit(&[0], &mut requests);
        } else {
            self.fs.flush(&mut requests);
        }
        self.syncs += 1;
        self.waiting.extend(requests);
    }
}

impl RecordSource for Ext4Sync {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if self.waiting.is_empty() && self.syncs < self.operations {
            self.operation();
        }
        Ok(self.waiting.pop_front().map(|request| Record { request, device: 0 }))
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn bytes_read(&self) -> u64 {
        0
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn go_on(&mut self) -> bool {
        self.operations = self.operations.saturating_add(self.pass);
        true
    }
}
