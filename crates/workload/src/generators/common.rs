//! Parts that all generators share: parameters, the mix of operations, times, and the source.

use crate::error::TraceError;
use crate::source::{Account, END_OF_SECTORS, MAX_TRANSFER_SECTORS, Record, RecordSource};
use flashatlas_types::{
    ConfigError, Dur, HostOp, Lba, Param, ParamDef, Params, Ps, Request, Rng, SECTOR_BYTES, Seed,
};

/// Bytes of the longest request of a generator: the limit that readers of traces have, too.
const MAX_BYTES: u64 = MAX_TRANSFER_SECTORS as u64 * SECTOR_BYTES as u64;

/// Bytes a request, for generators with one size.
pub(super) const SIZE: Param<u64> = Param::bytes(
    "size",
    SECTOR_BYTES as u64,
    MAX_BYTES,
    "bytes of a request, a multiple of 512; every request is aligned to this size",
)
.or("4KiB");

const REQUESTS: Param<u64> =
    Param::int("requests", 1, u64::MAX, "number of requests, including flushes").or("100000");

const READ: Param<f64> = Param::ratio(
    "read",
    0.0,
    1.0,
    "share of reads among the requests that are not flushes; requests that are neither reads nor \
     trims are writes",
)
.or("0");

const TRIM: Param<f64> =
    Param::ratio("trim", 0.0, 1.0, "share of trims among the requests that are not flushes")
        .or("0");

const FLUSH_EVERY: Param<u64> = Param::int(
    "flush_every",
    0,
    u64::MAX - 1,
    "number of other requests before each flush; 0: no flushes",
)
.or("0");

const RANGE: Param<f64> = Param::ratio(
    "range",
    0.0,
    1.0,
    "share of the drive's capacity, from its start, that requests go to",
)
.or("1");

const INTERVAL: Param<Dur> = Param::time(
    "interval",
    "time from one request to the next; 0: all requests arrive at the same time, as for a closed \
     loop",
)
.or("0");

const COMMON: [ParamDef; 6] =
    [REQUESTS.def, READ.def, TRIM.def, FLUSH_EVERY.def, RANGE.def, INTERVAL.def];

/// Returns the parameters of a generator: its `own`, then the parameters that all generators share.
/// `N` is the number of all parameters.
pub(super) const fn with_common<const OWN: usize, const N: usize>(
    own: [ParamDef; OWN],
) -> [ParamDef; N] {
    assert!(N == OWN + COMMON.len());
    let mut all = [COMMON[0]; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < OWN { own[i] } else { COMMON[i - OWN] };
        i += 1;
    }
    all
}

/// Pattern of the addresses of a generator.
pub(super) trait Pattern: Send + 'static {
    /// Returns the first sector and the number of sectors of the next request.
    fn next(&mut self, rng: &mut Rng) -> (u64, u32);
}

/// Returns the number of sectors from the start of the drive that requests may go to. It is at most
/// the number of sectors with 64-bit byte addresses.
pub(super) fn range_sectors(params: &Params, capacity_sectors: u64) -> u64 {
    let capacity_sectors = capacity_sectors.min(END_OF_SECTORS);
    let share = params.get(RANGE);
    if share >= 1.0 {
        capacity_sectors
    } else {
        ((capacity_sectors as f64 * share) as u64).min(capacity_sectors)
    }
}

/// Returns the number of sectors of a request of `bytes` bytes; an error names `key`.
pub(super) fn whole_sectors(key: &str, bytes: u64) -> Result<u32, ConfigError> {
    let sector = u64::from(SECTOR_BYTES);
    match u32::try_from(bytes / sector) {
        Ok(sectors) if sectors > 0 && bytes % sector == 0 && bytes <= MAX_BYTES => Ok(sectors),
        _ => Err(ConfigError::allowing(
            key,
            format!("a request cannot have {bytes} bytes"),
            format!("multiples of {SECTOR_BYTES} up to {MAX_BYTES} bytes"),
        )),
    }
}

/// A range divided into slots of one request size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// Sectors of a slot.
    pub sectors: u32,
    /// Number of slots in the range, at least one.
    pub count: u64,
}

impl Slots {
    /// Returns the slots of the parameters `size` and `range`.
    pub fn of(params: &Params, capacity_sectors: u64) -> Result<Slots, ConfigError> {
        let sectors = whole_sectors(SIZE.key(), params.get(SIZE))?;
        Slots::within(SIZE.key(), sectors, range_sectors(params, capacity_sectors))
    }

    /// Returns all slots of `sectors` sectors in `range` sectors; if no slot fits, the error names
    /// `key`.
    pub fn within(key: &str, sectors: u32, range: u64) -> Result<Slots, ConfigError> {
        let count = range / u64::from(sectors);
        if count == 0 {
            let (size, sector) =
                (u64::from(sectors) * u64::from(SECTOR_BYTES), u128::from(SECTOR_BYTES));
            let room = u128::from(range) * sector;
            return Err(ConfigError::new(
                key,
                format!("a request of {size} bytes does not fit the range of {room} bytes"),
            ));
        }
        Ok(Slots { sectors, count })
    }

    /// Returns the first sector and the number of sectors of a slot.
    pub fn place(&self, slot: u64) -> (u64, u32) {
        debug_assert!(slot < self.count);
        (slot * u64::from(self.sectors), self.sectors)
    }
}

/// Returns the source of the requests of `pattern`, with the common parameters applied.
pub(super) fn source<P: Pattern>(
    pattern: P,
    params: &Params,
    seed: Seed,
) -> Result<Box<dyn RecordSource>, ConfigError> {
    let (read, trim) = (params.get(READ), params.get(TRIM));
    if read + trim > 1.0 {
        return Err(ConfigError::new(
            "trim",
            format!("the shares of reads ({read}) and trims ({trim}) are more than 1 in sum"),
        ));
    }
    let (requests, interval_ps) = (params.get(REQUESTS), params.get(INTERVAL).0);
    if interval_ps.checked_mul(requests - 1).is_none() {
        let why = format!(
            "{requests} requests at this interval take longer than the 213 days of simulated time"
        );
        return Err(ConfigError::new("interval", why));
    }
    Ok(Box::new(Generator {
        pattern,
        addresses: Rng::stream(seed, "workload.addresses"),
        kinds: Rng::stream(seed, "workload.kinds"),
        read,
        read_or_trim: read + trim,
        flush_every: params.get(FLUSH_EVERY),
        until_flush: params.get(FLUSH_EVERY),
        interval_ps,
        requests,
        pass: requests,
        sent: 0,
    }))
}

struct Generator<P> {
    pattern: P,
    addresses: Rng,
    kinds: Rng,
    read: f64,
    read_or_trim: f64,
    flush_every: u64,
    until_flush: u64,
    interval_ps: u64,
    requests: u64,
    /// Number of requests of the first pass.
    pass: u64,
    sent: u64,
}

impl<P: Pattern> RecordSource for Generator<P> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if self.sent == self.requests {
            return Ok(None);
        }
        let at = Ps(self.sent.saturating_mul(self.interval_ps));
        self.sent += 1;
        let request = if self.flush_every > 0 && self.until_flush == 0 {
            self.until_flush = self.flush_every;
            Request { at, op: HostOp::Flush, lba: Lba(0), sectors: 0, fua: false }
        } else {
            self.until_flush = self.until_flush.saturating_sub(1);
            // no random number is drawn if all requests are reads, or all are writes
            let chance = self.read < 1.0 && self.read_or_trim > 0.0;
            let draw = if chance { self.kinds.unit() } else { 0.0 };
            let op = match draw {
                _ if draw < self.read => HostOp::Read,
                _ if draw < self.read_or_trim => HostOp::Trim,
                _ => HostOp::Write,
            };
            let (first, sectors) = self.pattern.next(&mut self.addresses);
            Request { at, op, lba: Lba(first), sectors, fua: false }
        };
        Ok(Some(Record { request, device: 0 }))
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn bytes_read(&self) -> u64 {
        0
    }

    fn expected(&self) -> Option<u64> {
        Some(self.requests)
    }

    fn go_on(&mut self) -> bool {
        self.requests = self.requests.saturating_add(self.pass);
        true
    }
}
