//! Loads of a served drive.

use crate::now;
use flashatlas_types::{Rng, Seed};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub type Failed = Box<dyn std::error::Error>;

/// Bytes of a read.
pub const READ: u32 = 4096;
/// Bytes of a write that fills the drive.
const WRITE: u64 = 1 << 20;
/// Duration of the reads at the beginning that do not count.
const WARM: Duration = Duration::from_millis(200);

/// A client with one connection.
pub trait Client {
    /// Submits a read of [`READ`] bytes, and returns its identifier.
    fn submit(&mut self, offset: u64) -> Result<u64, Failed>;

    /// Waits for a read, and returns its identifier and its first bytes.
    fn wait(&mut self) -> Result<(u64, [u8; 8]), Failed>;

    /// Writes bytes.
    fn write(&mut self, offset: u64, data: Vec<u8>) -> Result<(), Failed>;
}

/// Writes `bytes` bytes. Each 4 KiB begin with their offset.
pub fn fill(client: &mut impl Client, bytes: u64) -> Result<(), Failed> {
    for offset in (0..bytes).step_by(WRITE as usize) {
        let mut data = vec![0x5a; WRITE as usize];
        for at in (0..WRITE).step_by(READ as usize) {
            data[at as usize..][..8].copy_from_slice(&(offset + at).to_le_bytes());
        }
        client.write(offset, data)?;
    }
    Ok(())
}

/// Reads at random addresses below `bytes`, which [`fill`] wrote, for `seconds` seconds. Returns
/// the number of reads, the reads a second, and percentiles of their latencies.
pub fn read(
    client: &mut impl Client,
    bytes: u64,
    depth: usize,
    seconds: f64,
) -> Result<Value, Failed> {
    let mut rng = Rng::stream(Seed(1), "benches.doors");
    let mut open: HashMap<u64, (u64, Instant)> = HashMap::new();
    let mut submit = |client: &mut _, open: &mut HashMap<_, _>| -> Result<(), Failed> {
        let offset = rng.below(bytes / u64::from(READ)) * u64::from(READ);
        let at = now();
        open.insert(Client::submit(client, offset)?, (offset, at));
        Ok(())
    };
    for _ in 0..depth {
        submit(client, &mut open)?;
    }
    let mut reads = 0_u64;
    let mut took = Histogram::<u64>::new_with_max(60_000_000_000, 3)?;
    let begin = now() + WARM;
    let end = begin + Duration::from_secs_f64(seconds);
    loop {
        let (name, first) = client.wait()?;
        let (offset, at) = open.remove(&name).ok_or("a read that nobody asked for")?;
        let found = u64::from_le_bytes(first);
        if found != offset {
            return Err(format!("byte {offset} has the data of byte {found}").into());
        }
        let here = now();
        reads += 1;
        if here >= end {
            break;
        }
        if here >= begin {
            took.record(u64::try_from((here - at).as_nanos())?)?;
        }
        submit(client, &mut open)?;
    }
    while !open.is_empty() {
        open.remove(&client.wait()?.0);
        reads += 1;
    }
    let us = |share: f64| took.value_at_quantile(share) as f64 / 1000.0;
    Ok(json!({
        "reads": reads,
        "reads_a_second": took.len() as f64 / seconds,
        "p50_us": us(0.5),
        "p99_us": us(0.99),
        "max_us": took.max() as f64 / 1000.0,
    }))
}
