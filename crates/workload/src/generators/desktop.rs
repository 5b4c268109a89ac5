//! Load of a desktop: small hot pages (metadata, logs, databases of applications) among files that
//! are written from one end to the other.
//!
//! The hot part is at the start of the range; pages in it are chosen by Zipf's law with exponent 1.
//! A file is a run of requests at a place chosen at random; the next file begins when the run ends.
//! This is a model, not a recording: the numbers are parameters.

use super::GeneratorDef;
use super::common::{Pattern, SIZE, Slots, range_sectors, source, whole_sectors, with_common};
use flashatlas_types::{ConfigError, Param, Params, Rng, SECTOR_BYTES};

const HOT_BYTES: Param<u64> =
    Param::bytes("hot_bytes", 512, 1 << 40, "bytes of the hot part, at the start of the range")
        .or("4MiB");

const HOT_SHARE: Param<f64> =
    Param::ratio("hot_share", 0.0, 1.0, "share of the requests that go to the hot part").or("0.7");

const FILE_SIZE: Param<u64> =
    Param::bytes("file_size", 512, 1 << 30, "bytes of a request to a file").or("64KiB");

const FILE_REQUESTS: Param<u64> =
    Param::int("file_requests", 1, 1 << 30, "number of requests that write a file").or("16");

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "desktop",
    summary: "writes to small hot pages, by rank, between files that are written in order at \
              random places",
    params: &with_common::<5, 11>([
        SIZE.def,
        HOT_BYTES.def,
        HOT_SHARE.def,
        FILE_SIZE.def,
        FILE_REQUESTS.def,
    ]),
    serial: false,
    build: |params, capacity, seed| {
        source(Desktop::new(params, range_sectors(params, capacity))?, params, seed)
    },
};

struct Desktop {
    hot: Slots,
    hot_share: f64,
    files: Slots,
    /// First sector of the part of the files.
    base: u64,
    file_requests: u64,
    /// Slot of the next request to the file that is being written.
    next: u64,
    /// Number of requests left to the file that is being written.
    left: u64,
}

impl Desktop {
    fn new(params: &Params, range: u64) -> Result<Desktop, ConfigError> {
        let hot_sectors = params.get(HOT_BYTES) / u64::from(SECTOR_BYTES);
        let small = whole_sectors(SIZE.key(), params.get(SIZE))?;
        let large = whole_sectors(FILE_SIZE.key(), params.get(FILE_SIZE))?;
        let hot = Slots::within(HOT_BYTES.key(), small, hot_sectors.min(range))?;
        let base = hot_sectors.next_multiple_of(u64::from(large));
        let files = Slots::within(FILE_SIZE.key(), large, range.saturating_sub(base))?;
        let file_requests = params.get(FILE_REQUESTS).min(files.count);
        let hot_share = params.get(HOT_SHARE);
        Ok(Desktop { hot, hot_share, files, base, file_requests, next: 0, left: 0 })
    }
}

impl Pattern for Desktop {
    fn next(&mut self, rng: &mut Rng) -> (u64, u32) {
        if rng.unit() < self.hot_share {
            // ranks 1 to n with densities 1 / rank: n to the power of a uniform number
            let rank = (self.hot.count as f64).powf(rng.unit()) as u64;
            return self.hot.place(rank.saturating_sub(1).min(self.hot.count - 1));
        }
        if self.left == 0 {
            self.next = rng.below(self.files.count - self.file_requests + 1);
            self.left = self.file_requests;
        }
        let (sector, sectors) = self.files.place(self.next);
        (self.next, self.left) = (self.next + 1, self.left - 1);
        (self.base + sector, sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::Seed;

    /// By Zipf's law with exponent 1, each doubling of the rank gets the same share of the requests
    /// to hot pages. So the ranks up to the square root of their number get half of these requests.
    #[test]
    fn hot_pages_follow_their_ranks_and_files_their_order() {
        let params = crate::generator_by_name("desktop").unwrap();
        let params = crate::settings::parse("file_requests=4", "desktop", params.params).unwrap();
        let mut pattern = Desktop::new(&params, 1 << 20).unwrap();
        let mut rng = Rng::stream(Seed(1), "desktop");
        let requests: Vec<(u64, u32)> = (0..40_000).map(|_| pattern.next(&mut rng)).collect();
        let (hot, files): (Vec<_>, Vec<_>) = requests.into_iter().partition(|r| r.1 == 8);
        let share = hot.len() as f64 / 40_000.0;
        assert!((share - 0.7).abs() < 0.01, "{share}");
        assert!(hot.iter().all(|r| r.0 < 8192), "4 MiB");
        // 1024 pages of 4 KiB: half of the writes go to ranks below 32, the first 31 pages
        let first = hot.iter().filter(|r| r.0 / 8 < 31).count() as f64 / hot.len() as f64;
        assert!((first - 0.5).abs() < 0.02, "{first}");
        for file in files.chunks_exact(4) {
            assert!(file.windows(2).all(|w| w[1].0 == w[0].0 + 128), "{file:?}");
            assert!(file[0].0 >= 8192 && file[0].1 == 128);
        }
    }
}
