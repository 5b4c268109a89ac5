//! Progress of a job through one of its files, and the job's next request in this file.

use super::distribution::{Distribution, Zone};
use super::layout::JobSpan;
use super::map::BlockMap;
use super::options::{Generator, Options, Sequencer};
use super::sampler::Sampler;
use super::zoning::Zones;
use flashatlas_types::{Permutation, Rng, Seed};

/// Maximum number of draws of a size. A size that exceeds the end of the file is drawn again. After
/// the last draw, the smallest size is used.
const MAX_DRAWS: u32 = 10_000;

/// Random numbers and counts that all files of a job share.
pub(super) struct Draw {
    offset: Rng,
    sizes: [Rng; 3],
    order: [Rng; 3],
    zone: Rng,
    /// Number of requests up to and including the next random request.
    until_random: u64,
    /// Bytes of the requests in the current zone, summed over all files.
    pub zone_bytes: u64,
}

impl Draw {
    pub fn new(seed: Seed, number: u32) -> Draw {
        let stream = |what: &str| Rng::stream(seed, &format!("fio.{number}.{what}"));
        Draw {
            offset: stream("offset"),
            sizes: ["read", "write", "trim"].map(|d| stream(&format!("size.{d}"))),
            order: ["read", "write", "trim"].map(|d| stream(&format!("order.{d}"))),
            zone: stream("zone"),
            until_random: 1,
            zone_bytes: 0,
        }
    }

    /// Starts the same random numbers again, but keeps the count of requests up to the next random
    /// request.
    pub fn repeat(&mut self, seed: Seed, number: u32) {
        *self = Draw { until_random: self.until_random, ..Draw::new(seed, number) };
    }
}

/// Progress of a job through a file.
pub(super) struct Cursor {
    /// `true` if nothing is left for this pass.
    pub done: bool,
    span: JobSpan,
    /// Byte of the file from which offsets count: the first byte of the job or of the current zone.
    base: u64,
    zones: Option<Zones>,

    /// End of the last request by direction, as a byte of the file.
    position: [u64; 3],
    /// Start of the last request by direction; `None` before the first request. The start of the
    /// last write is also `None` after a trim that repeats the block of the last trim, so that both
    /// trims count as pairs.
    start: [Option<u64>; 3],
    map: Option<BlockMap>,
    law: Option<Sampler>,
    permutation: Option<Permutation>,
    /// Number of blocks drawn from the permutation.
    permuted: u64,
}

/// An offset from the job's start in the file.
struct Offset {
    at: u64,
    /// `true` if the request counts as random.
    random: bool,
    /// `true` if the map does not mark the request, because the request is sequential or
    /// deliberately repeats another request.
    unmapped: bool,
}

impl Cursor {
    pub fn new(o: &Options, span: &JobSpan, seed: Seed, number: u32, file: usize) -> Cursor {
        let zones = o.zoning.zones();
        let blocks = (span.length / o.smallest()).max(1);
        let mapped = zones.map_or(blocks, |zones| (zones.range / o.smallest()).max(1));
        let stream = |what: &str| Rng::stream(seed, &format!("fio.{number}.{what}.{file}"));
        let random = o.pattern.random;
        let uniform = o.distribution == Distribution::Random;
        let permuted = random && uniform && o.generator == Generator::Lfsr;
        Cursor {
            done: false,
            base: span.offset,
            zones,
            position: [span.offset; 3],
            start: [None; 3],
            map: o.keeps_map().then(|| BlockMap::new(mapped)),
            law: if random { Sampler::new(&o.distribution, blocks, stream("law")) } else { None },
            permutation: permuted.then(|| Permutation::new(mapped, &mut stream("lfsr"))),
            permuted: 0,
            span: span.clone(),
        }
    }

    /// Starts the next pass. The sampler of a distribution continues with its random numbers.
    pub fn rewind(&mut self) {
        self.done = false;
        self.base = self.span.offset;
        self.reset();
    }

    fn reset(&mut self) {
        self.position = [self.base; 3];
        self.start = [None; 3];
        if let Some(map) = &mut self.map {
            map.reset();
        }
        self.permuted = 0;
    }

    /// Returns `true` if the last trim was followed by its write.
    pub fn pair_done(&self) -> bool {
        self.start[1] == self.start[2]
    }

    /// Returns the first byte in the file and the length of the next request in direction `dir`.
    ///
    /// Returns `None` if no request is left.
    pub fn next(&mut self, o: &Options, dir: usize, draw: &mut Draw) -> Option<(u64, u64)> {
        if let Some(zones) = self.zones {
            self.choose_zone(zones, dir, draw);
        }
        let offset = self.offset(o, dir, draw)?;
        if offset.at >= self.span.length {
            return None;
        }
        let at = self.base.checked_add(offset.at)?;
        if o.pattern.trim_then_write() && o.pattern.random && dir == 2 && self.start[2] == Some(at)
        {
            self.start[1] = None; // a trim of the same block begins a new pair
        }
        let mut bytes = self.size(o, dir, at, &offset, draw)?;
        if at.checked_add(bytes)? > self.span.file_bytes {
            return None;
        }
        if let Some(map) = &mut self.map
            && !offset.unmapped
        {
            let block = o.sizes[dir].0;
            let blocks = map.mark((at - self.base) / block, bytes.div_ceil(block));
            bytes = bytes.min(blocks * block);
        }
        self.start[dir] = Some(at);
        self.position[dir] = at + bytes;
        draw.zone_bytes = draw.zone_bytes.saturating_add(bytes);
        Some((at, bytes))
    }

    /// Moves to the next zone after `zonesize` bytes of requests in this zone.
    ///
    /// If the end of this zone comes earlier, moves back to its start (fio 3.33, `io_u.c`:
    /// `setup_strided_zone_mode`).
    fn choose_zone(&mut self, zones: Zones, dir: usize, draw: &mut Draw) {
        if draw.zone_bytes >= zones.size {
            draw.zone_bytes = 0;
            let next = self.base.saturating_add(zones.range).saturating_add(zones.skip);
            self.base = if next >= self.span.file_bytes { self.span.offset } else { next };
            self.position[dir] = self.base;
        }
        if self.position[dir] >= self.base.saturating_add(zones.range) {
            self.position[dir] = self.base;
        }
        if draw.zone_bytes % zones.range == 0 {
            self.reset();
        }
    }

    fn offset(&mut self, o: &Options, dir: usize, draw: &mut Draw) -> Option<Offset> {
        draw.until_random -= 1;
        let turn = draw.until_random == 0;
        if turn {
            draw.until_random = o.random_every;
        }
        if o.pattern.random && o.pattern.trim_then_write() && dir == 1 {
            return Some(Offset { at: self.start[2]? - self.base, random: true, unmapped: true });
        }
        if !turn {
            return match o.sequencer {
                Sequencer::Sequential => self.sequential_or_random(o, dir, draw),
                Sequencer::Identical => {
                    let at = self.start[dir].map_or(0, |start| start.saturating_sub(self.base));
                    Some(Offset { at, random: false, unmapped: true })
                }
            };
        }
        if !o.pattern.random {
            let at = self.sequential(o, dir)?;
            return Some(Offset { at, random: false, unmapped: true });
        }
        let share = o.percent_random[dir];
        if share == 100 || draw.order[dir].below(100) < u64::from(share) {
            let at = self.random(o, dir, draw)?;
            return Some(Offset { at, random: true, unmapped: false });
        }
        self.sequential_or_random(o, dir, draw)
    }

    fn sequential_or_random(&mut self, o: &Options, dir: usize, draw: &mut Draw) -> Option<Offset> {
        let at = self.sequential(o, dir).or_else(|| self.random(o, dir, draw))?;
        Some(Offset { at, random: false, unmapped: true })
    }

    /// Returns the offset behind the last request, plus the hole of `rw=write:8k`.
    ///
    /// Returns `None` at the end of the file.
    fn sequential(&mut self, o: &Options, dir: usize) -> Option<u64> {
        let (first, length, whole) = (self.base, self.span.length, self.span.file_bytes);
        let position = &mut self.position[dir];
        if *position >= self.span.offset + length && o.time_based && o.files_in_turn() == 1 {
            *position = first;
        }
        if *position >= whole {
            return None;
        }
        // the offset at which a job that goes backwards begins
        let top = if whole > length { length } else { whole };
        if *position == first && first > 0 && o.hole < 0 {
            *position = top;
        }
        let mut at = position.wrapping_sub(first);
        if at != 0 && o.hole != 0 {
            at = at.wrapping_add_signed(o.hole);
            if at >= whole {
                at = if o.hole > 0 { first } else { top.wrapping_add_signed(o.hole) };
            }
        }
        Some(at)
    }

    fn random(&mut self, o: &Options, dir: usize, draw: &mut Draw) -> Option<u64> {
        let block = self.random_block(o, dir, draw).or_else(|| {
            if !o.time_based {
                return None;
            }
            self.reset();
            self.random_block(o, dir, draw)
        })?;
        block.checked_mul(o.alignment(dir))
    }

    fn random_block(&mut self, o: &Options, dir: usize, draw: &mut Draw) -> Option<u64> {
        if let Some(law) = &mut self.law {
            return Some(law.draw());
        }
        let blocks = self.random_blocks(o, dir);
        if blocks == 0 {
            return None;
        }
        if let Distribution::Zoned { absolute, zones } = &o.distribution
            && !zones[dir].is_empty()
        {
            let (first, count) = zone(&zones[dir], *absolute, blocks, o.alignment(dir), draw);
            return Some(first + if count > 0 { draw.offset.below(count) } else { 0 });
        }
        if let Some(permutation) = &self.permutation {
            self.permuted += 1;
            return permutation.at(self.permuted - 1);
        }
        let block = draw.offset.below(blocks);
        match &self.map {
            Some(map) if map.used(block) => map.next_free(block),
            _ => Some(block),
        }
    }

    /// Returns the number of blocks at which a random request can begin.
    fn random_blocks(&self, o: &Options, dir: usize) -> u64 {
        let align = o.alignment(dir);
        let last = o.sizes[dir].0.saturating_sub(align);
        let bytes = self.span.length.min(self.span.file_bytes);
        self.zones.map_or(bytes, |zones| zones.range).saturating_sub(last) / align
    }

    fn fits(&self, at: u64, bytes: u64) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.span.offset + self.span.length)
    }

    fn size(
        &self,
        o: &Options,
        dir: usize,
        at: u64,
        offset: &Offset,
        draw: &mut Draw,
    ) -> Option<u64> {
        if o.pattern.random && o.pattern.trim_then_write() && dir == 1 {
            return self.start[2].map(|start| self.position[2] - start);
        }
        let kind = match o.sizes_by_order {
            true if offset.random => 1,
            true => 0,
            false => dir,
        };
        let (low, high) = o.sizes[kind];
        if low == high {
            return Some(low);
        }
        if !self.fits(at, low) {
            return None;
        }
        for _ in 0..MAX_DRAWS {
            let bytes = self.drawn_size(o, kind, at, draw);
            if bytes > 0 && self.fits(at, bytes) {
                return Some(bytes);
            }
        }
        Some(low)
    }

    fn drawn_size(&self, o: &Options, kind: usize, at: u64, draw: &mut Draw) -> u64 {
        let (low, high) = o.sizes[kind];
        let rng = &mut draw.sizes[kind];
        let mut bytes = 0;
        if o.split[kind].is_empty() {
            bytes = low + rng.below(high);
        } else {
            let drawn = rng.below(100);
            let mut up_to = 0;
            for share in o.split[kind].iter().filter(|s| s.percent > 0) {
                bytes = share.bytes;
                up_to += u64::from(share.percent);
                if drawn < up_to && self.fits(at, bytes) {
                    break;
                }
            }
        }
        if !o.sizes_unaligned {
            bytes -= bytes % low;
        }
        bytes.min(high)
    }
}

fn percent_of(whole: u64, percent: u64) -> u64 {
    (u128::from(whole) * u128::from(percent) / 100) as u64
}

/// Draws a zone by its share of the requests, and returns its first block and its number of blocks.
fn zone(zones: &[Zone], absolute: bool, blocks: u64, align: u64, draw: &mut Draw) -> (u64, u64) {
    let drawn = draw.zone.below(100);
    let (mut access, mut before) = (0, 0);
    for zone in zones {
        access += u64::from(zone.access);
        if drawn < access {
            return if absolute {
                (before / align, (before + zone.size) / align - before / align)
            } else {
                (percent_of(blocks, before), percent_of(blocks, zone.size))
            };
        }
        before += zone.size;
    }
    (0, blocks)
}

impl Options {
    /// Returns the number of files of the job, from `nrfiles` or `filename`.
    fn files_in_turn(&self) -> usize {
        if self.filenames.is_empty() { self.files as usize } else { self.filenames.len() }
    }
}
