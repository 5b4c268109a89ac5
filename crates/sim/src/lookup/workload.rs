//! The requests of a study, from a trace, a generator, or at random.

use super::{Address, LookupSpec, Source};
use crate::notes::{LOOKUP_ADDRESSES_DRAWN, LOOKUP_ALIASES, LOOKUP_FILES, LOOKUP_SETS_DRAWN};
use crate::run::Progress;
use crate::{Inputs, Opener, RunError};
use flashatlas_lookup::study::LookupRequest;
use flashatlas_types::{HostOp, Note, Rng, Seed};
use rustc_hash::FxHashMap;

/// Maximum number of requests of a study: 1.2 GB of them.
const LARGEST: u64 = 100_000_000;

/// Requests between two calls of the progress function.
const PROGRESS_EVERY: usize = 65_536;

/// Sectors are of 512 bytes.
const SECTOR_BYTES: u64 = flashatlas_types::SECTOR_BYTES as u64;

/// Requests of a study, and notes on them.
pub(super) struct LookupWorkload<'a> {
    pub spec: &'a LookupSpec,
    pub la_bits: u32,
    /// Sets of the primary LPMT.
    pub sets: u32,
    pub opener: &'a dyn Opener,
    /// Trace formats and generators.
    pub workloads: flashatlas_workload::Registry,
    pub progress: &'a mut dyn FnMut(Progress) -> bool,
    pub asks: Vec<LookupRequest>,
    pub notes: Vec<Note>,
}

fn refuse<T>(why: String) -> Result<T, RunError> {
    Err(RunError::Unusable(why))
}

/// Returns `value`, a share from 0 to `most`, in millionths.
fn share(key: &str, value: f64, most: f64) -> Result<u32, RunError> {
    if (0.0..=most).contains(&value) {
        Ok((value * 1e6) as u32)
    } else {
        refuse(format!("{key} = {value}: a share from 0 to {most} was expected"))
    }
}

impl LookupWorkload<'_> {
    /// Gathers all requests.
    ///
    /// # Errors
    /// Returns an error for sources that cannot be read, and for numbers that make no sense.
    pub fn gather(&mut self) -> Result<(), RunError> {
        for (key, value, least) in [
            ("unit_sectors", u64::from(self.spec.unit_sectors), 1),
            ("page_bytes", self.spec.page_bytes.into(), SECTOR_BYTES),
            ("limit", self.spec.limit.unwrap_or(u64::MAX), 1),
        ] {
            if value < least {
                return refuse(format!("{key} = {value}: {least} or more was expected"));
            }
        }
        match &self.spec.source {
            Source::Trace(_) | Source::Workload(_) => self.requests(),
            &Source::Sets { lookups, repeat, skew } => self.sets(lookups, repeat, skew),
            &Source::Files { files, stride, again, known, lookups } => {
                self.files(files, stride, [again, known], lookups)
            }
        }
    }

    fn full(&self) -> bool {
        self.spec.limit == Some(self.asks.len() as u64)
    }

    /// Returns an error if `requests`, cut to the limit, are too many.
    fn room_for(&self, requests: u64) -> Result<(), RunError> {
        if requests.min(self.spec.limit.unwrap_or(u64::MAX)) > LARGEST {
            refuse(format!(
                "a study holds {LARGEST} requests at most: end it before that with a limit"
            ))
        } else {
            Ok(())
        }
    }

    fn push(&mut self, ask: LookupRequest, done: Option<f64>) -> Result<(), RunError> {
        self.asks.push(ask);
        let requests = self.asks.len() as u64;
        self.room_for(requests)?;
        if self.asks.len() % PROGRESS_EVERY == 0
            && !(self.progress)(Progress { phase: "read", requests, share: done })
        {
            return Err(RunError::Interrupted);
        }
        Ok(())
    }

    fn sets(&mut self, lookups: u64, repeat: f64, skew: Option<f64>) -> Result<(), RunError> {
        self.room_for(lookups)?;
        let repeat = share("repeat", repeat, 1.0)?;
        let skew = skew.map(|skew| share("skew", skew, 1.0)).transpose()?;
        if skew.is_some() && self.sets < 4 {
            return refuse(format!("skew needs four sets, there are {} (lookup.sets)", self.sets));
        }
        let mut rng = Rng::stream(Seed(self.spec.seed), "lookup");
        let mut set = 0;
        for _ in 0..lookups {
            if self.full() {
                break;
            }
            if !rng.chance(repeat) {
                let any = rng.below(self.sets.into()) as u32;
                set = match skew {
                    None => any,
                    Some(skew) if rng.chance(skew) => any / 4 * 4,
                    Some(_) => any / 4 * 4 + 1 + rng.below(3) as u32,
                };
            }
            self.push(LookupRequest::Set(set), None)?;
        }
        self.notes.push(LOOKUP_SETS_DRAWN.note());
        Ok(())
    }

    fn files(
        &mut self,
        files: u64,
        stride: u32,
        shares: [f64; 2],
        lookups: u64,
    ) -> Result<(), RunError> {
        self.room_for(files.saturating_add(lookups))?;
        // not all requests may be for known files, because the next new file would never come
        let [again, known] = [share("again", shares[0], 0.999)?, share("known", shares[1], 0.999)?];
        if stride == 0 {
            return refuse("stride = 0: 1 or more was expected".into());
        }
        let stride = u64::from(stride);
        let room = (1u64 << self.la_bits).div_ceil(stride);
        if files == 0 || files > room {
            return refuse(format!(
                "{files} files: there are {room} multiples of {stride} among addresses of {} bits \
                 (lookup.la_bits)",
                self.la_bits
            ));
        }
        let mut rng = Rng::stream(Seed(self.spec.seed), "lookup");
        let mut addresses = Addresses { drawn: Vec::new(), moved: FxHashMap::default(), room };
        while (addresses.drawn.len() as u64) < files && !self.full() {
            let number = match addresses.drawn.last() {
                Some(&last) if rng.chance(again) => last,
                Some(_) if rng.chance(known) => addresses.any(&mut rng),
                _ => addresses.draw(&mut rng),
            };
            self.push(LookupRequest::Pages((u64::from(number) * stride) as u32, 1), None)?;
        }
        for _ in 0..lookups {
            if self.full() {
                break;
            }
            let number = addresses.any(&mut rng);
            self.push(LookupRequest::Pages((u64::from(number) * stride) as u32, 1), None)?;
        }
        self.notes.push(LOOKUP_ADDRESSES_DRAWN.note());
        Ok(())
    }

    /// Gathers the requests of a trace or a generator.
    fn requests(&mut self) -> Result<(), RunError> {
        let (spec, bits) = (self.spec, self.la_bits);
        let unit = u64::from(spec.unit_sectors);
        let mut numbers: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        let mut first: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        let mut aliases = 0u64;
        let inputs = Inputs::new(self.opener, self.workloads, spec.reading.options()?);
        let mut input = match &spec.source {
            Source::Trace(path) => inputs.trace(path, spec.reading.format.as_deref(), false)?,
            Source::Workload(text) => match (unit * SECTOR_BYTES).checked_mul(1 << bits) {
                Some(capacity) => inputs.generated(text, capacity, Seed(spec.seed))?,
                None => {
                    return refuse(format!(
                        "2^{bits} units of {unit} sectors are more than 2^64 bytes"
                    ));
                }
            },
            _ => unreachable!("only these are read"),
        };
        input.must_say(&spec.reading)?;
        while !self.full() {
            let Some(record) = input.next_record()? else { break };
            let request = record.request;
            if matches!(request.op, HostOp::Flush) {
                continue;
            }
            let address = request.lba.0 / unit;
            let key = (record.device, address);
            let number = self.asks.len() + 1;
            let la = match spec.address {
                Address::Exact if address >> bits != 0 => {
                    return refuse(format!(
                        "{}, request {number}: address {address} (in units of {unit} sectors) is \
                         wider than lookup.la_bits = {bits}; use a larger unit, more bits, or \
                         addresses low-bits or dense",
                        input.name
                    ));
                }
                Address::Exact => address as u32,
                Address::LowBits => {
                    let la = (address & ((1 << bits) - 1)) as u32;
                    aliases += u64::from(*first.entry(la).or_insert(key) != key);
                    la
                }
                Address::Dense => {
                    let next = numbers.len() as u64;
                    if next >> bits != 0 && !numbers.contains_key(&key) {
                        return refuse(format!(
                            "{}, request {number}: more than {next} distinct addresses do not fit \
                             lookup.la_bits = {bits}",
                            input.name
                        ));
                    }
                    *numbers.entry(key).or_insert(next as u32)
                }
            };
            let bytes = u64::from(request.sectors) * SECTOR_BYTES;
            let ask = match request.op {
                HostOp::Trim => LookupRequest::Delete(la),
                _ => LookupRequest::Pages(la, bytes.div_ceil(spec.page_bytes.into()).max(1) as u32),
            };
            self.push(ask, input.share_read())?;
        }
        self.notes.push(LOOKUP_FILES.with([("sectors", unit.into())]));
        if spec.address == Address::LowBits {
            self.notes.push(LOOKUP_ALIASES.with([
                ("bits", bits.into()),
                ("aliases", aliases.into()),
                ("requests", self.asks.len().into()),
            ]));
        }
        Ok(())
    }
}

/// Distinct numbers below `room`, drawn one by one: a shuffle that stores only moved numbers.
struct Addresses {
    drawn: Vec<u32>,
    moved: FxHashMap<u32, u32>,
    room: u64,
}

impl Addresses {
    fn draw(&mut self, rng: &mut Rng) -> u32 {
        let place = self.drawn.len() as u32;
        let other = place + rng.below(self.room - u64::from(place)) as u32;
        let own = self.moved.remove(&place).unwrap_or(place);
        let number =
            if other == place { own } else { self.moved.insert(other, own).unwrap_or(other) };
        self.drawn.push(number);
        number
    }

    /// Returns a random number among those drawn.
    fn any(&self, rng: &mut Rng) -> u32 {
        self.drawn[rng.below(self.drawn.len() as u64) as usize]
    }
}
