//! The bound of a connection's memory, measured. The allocator counts for the whole process: so
//! this is a program of its own, with one test.

#[path = "suite/receive.rs"]
mod receive;
#[path = "suite/wire.rs"]
#[allow(dead_code, reason = "the suite uses all of it")]
mod wire;

use flashatlas_nvme_tcp::pdu::{Alignment, Digests, IcReq};
use flashatlas_nvme_tcp::{CONNECTION_BYTES, Command, Limits, QueueShape};
use receive::{Received, decode};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use wire::{READ, WRITE, Wire, done, entry, with_buffer, with_capsule};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the bytes that are held since the region began.
fn held(region: &Region<'_, System>) -> usize {
    let stats = region.change();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Fills a queue with commands of one kind, and sends none of the output. Returns the largest
/// number of bytes that the connection held, including the commands that it handed over.
fn fill(make: impl Fn(u16) -> ([u8; 64], usize), answer: bool) -> usize {
    let limits = Limits::DEFAULT;
    let region = Region::new(ALLOCATOR);
    let digests = Digests { header: true, data: true };
    let alignment = Alignment::from_field(Alignment::MAX).expect("the largest");
    let request = IcReq { digests, alignment, max_r2t: u32::MAX };
    let shape = QueueShape { entries: limits.entries, admin: false, flow_control: true };
    let mut wire = Wire::established(limits, request, shape);
    let mut most = 0;
    let mut commands: Vec<Command> = Vec::with_capacity(limits.entries.into());
    for id in 0..limits.entries {
        let (entry, inside) = make(id);
        wire.command(entry, &vec![1; inside]);
        commands.extend(wire.connection.next_command());
        most = most.max(held(&region));
    }
    for r2t in wire.r2ts() {
        let part = vec![2; limits.h2c_data as usize];
        for offset in (r2t.offset..r2t.offset + r2t.length).step_by(part.len()) {
            let last = offset + limits.h2c_data == r2t.offset + r2t.length;
            wire.data(r2t, offset, &part, last).expect("data");
        }
        commands.extend(std::iter::from_fn(|| wire.connection.next_command()));
        most = most.max(held(&region));
    }
    for command in commands.drain(..).filter(|_| answer) {
        let room = command.room as usize;
        let id = command.id();
        drop(command);
        wire.connection.complete(done(id), vec![3; room]);
        most = most.max(held(&region));
    }
    most
}

#[test]
fn a_connection_keeps_its_bound_of_memory() {
    let transfer = Limits::DEFAULT.transfer;
    let data = Limits::DEFAULT.data as usize;
    let reads = fill(|id| (with_buffer(READ, id, transfer), 0), true);
    let small = fill(|id| (with_buffer(READ, id, 32 << 10), 0), true);
    let capsules = fill(|id| (with_capsule(WRITE, id, 8192), 8192), false);
    let writes = fill(|id| (with_buffer(WRITE, id, transfer), 0), false);
    let none = fill(|id| (entry(0, id), 0), true);
    for (name, most, at_least) in [
        ("large reads", reads, data),
        ("reads of 32 KiB", small, data),
        ("writes in capsules", capsules, 128 * 8192),
        ("large writes", writes, data),
        ("commands without data", none, 0),
    ] {
        println!("{name}: {most} of {CONNECTION_BYTES} bytes");
        assert!(most >= at_least, "{name}: {most} bytes were too few to be a test");
        assert!(most <= CONNECTION_BYTES, "{name}: {most} bytes, {CONNECTION_BYTES} allowed");
    }
}
