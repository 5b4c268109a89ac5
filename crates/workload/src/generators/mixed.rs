//! Sequential streams and random requests, of several sizes.

use super::GeneratorDef;
use super::common::{Pattern, Slots, range_sectors, source, whole_sectors, with_common};
use flashatlas_types::quantity::quantity;
use flashatlas_types::{ConfigError, Param, Params, Rng, Text};

const SIZES: Param<Text> = Param::text(
    "sizes",
    "sizes of requests, such as 4KiB/64KiB, or with weights 4KiB*3/64KiB; each size is a multiple \
     of 512 bytes, and every request is aligned to its size",
)
.or("4KiB");

const SEQUENTIAL: Param<f64> =
    Param::ratio("sequential", 0.0, 1.0, "share of the requests that continue a sequential stream")
        .or("0.5");

const STREAMS: Param<u64> = Param::int(
    "streams",
    1,
    MAX_STREAMS,
    "number of sequential streams; each stream runs repeatedly through an equal part of the range, \
     and the streams use the sizes in turn",
)
.or("1");

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "mixed",
    summary: "sequential streams among random requests, of several sizes",
    params: &with_common::<3, 9>([SIZES.def, SEQUENTIAL.def, STREAMS.def]),
    serial: false,
    build: |params, capacity, seed| {
        source(Mixed::new(params, range_sectors(params, capacity))?, params, seed)
    },
};

const MAX_STREAMS: u64 = 65_536;
const MAX_SIZES: usize = 64;
const MAX_WEIGHT: u64 = 1_000_000;

struct Mixed {
    /// Sizes of random requests, each with the sum of the weights up to and including its own
    /// weight.
    sizes: Vec<(Slots, u64)>,
    streams: Vec<Stream>,
    sequential: f64,
}

struct Stream {
    /// First sector of the stream's part of the range.
    base: u64,
    slots: Slots,
    next: u64,
}

impl Mixed {
    fn new(params: &Params, range: u64) -> Result<Mixed, ConfigError> {
        let mut sizes = Vec::new();
        let mut total = 0;
        for (sectors, weight) in parse_sizes(params.get(SIZES))? {
            total += weight;
            sizes.push((Slots::within("sizes", sectors, range)?, total));
        }
        let count = params.get(STREAMS);
        let part = range / count;
        let mut streams = Vec::new();
        for (i, (size, _)) in (0..count).zip(sizes.iter().cycle()) {
            let sectors = u64::from(size.sectors);
            // the part may start at an unaligned sector: the stream begins at the next aligned
            // sector
            let base = (i * part).next_multiple_of(sectors);
            let room = ((i + 1) * part).saturating_sub(base);
            streams.push(Stream {
                base,
                slots: Slots::within("streams", size.sectors, room)?,
                next: 0,
            });
        }
        Ok(Mixed { sizes, streams, sequential: params.get(SEQUENTIAL) })
    }
}

/// Returns the sectors and the weight of every size in a text such as `4KiB*3/64KiB`.
fn parse_sizes(text: &str) -> Result<Vec<(u32, u64)>, ConfigError> {
    let sizes = text.split('/').map(|item| {
        let (size, weight) = item.split_once('*').unwrap_or((item, "1"));
        let bytes = quantity(size, false).map_err(|why| ConfigError::new("sizes", why))?;
        let weight =
            weight.trim().parse().ok().filter(|w| (1..=MAX_WEIGHT).contains(w)).ok_or_else(
                || {
                    ConfigError::new(
                        "sizes",
                        format!(
                            "`{weight}` is not a weight: write a whole number from 1 to \
                             {MAX_WEIGHT}"
                        ),
                    )
                },
            )?;
        Ok((whole_sectors("sizes", bytes)?, weight))
    });
    let sizes: Vec<_> = sizes.take(MAX_SIZES + 1).collect::<Result<_, ConfigError>>()?;
    if sizes.len() > MAX_SIZES {
        return Err(ConfigError::new("sizes", format!("the list has more than {MAX_SIZES} sizes")));
    }
    Ok(sizes)
}

impl Pattern for Mixed {
    fn next(&mut self, rng: &mut Rng) -> (u64, u32) {
        if rng.unit() < self.sequential {
            let chosen = rng.below(self.streams.len() as u64) as usize;
            let stream = &mut self.streams[chosen];
            let (offset, sectors) = stream.slots.place(stream.next);
            stream.next = (stream.next + 1) % stream.slots.count;
            (stream.base + offset, sectors)
        } else {
            let total = self.sizes[self.sizes.len() - 1].1;
            let draw = rng.below(total);
            let chosen = self.sizes.partition_point(|&(_, up_to)| up_to <= draw);
            let slots = self.sizes[chosen].0;
            slots.place(rng.below(slots.count))
        }
    }
}
