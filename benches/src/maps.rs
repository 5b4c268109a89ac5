//! Map stores on a hot-cold load: requests a second, compared with the map in DRAM. 95 % of the
//! requests go to 1 % of a 4 GiB drive. Half of all requests are writes, and all requests are
//! timed.

use super::{Host, drive};
use flashatlas_device::Storage;
use flashatlas_host::STANDARD;
use flashatlas_types::Lpn;

const REQUESTS: u64 = 400_000;
const DEPTH: usize = 32;

/// Returns the requests a second, and the hit ratio of the map cache.
fn rate(store: &str, extra: &[&str]) -> (f64, f64) {
    let store = format!("map.store={store}");
    let settings: Vec<&str> = [store.as_str()].into_iter().chain(extra.iter().copied()).collect();
    let mut host = Host::filled(drive(4, &settings));
    let units = host.expected.len() as u64;
    let play = |host: &mut Host| {
        for n in 0..REQUESTS {
            let within = if host.rng.below(20) > 0 { units / 100 } else { units };
            let lpn = Lpn(host.rng.below(within) as u32);
            host.request_page(lpn, n % 2 == 0, DEPTH);
        }
    };
    play(&mut host);
    host.drive.reset_counters();
    let begin = super::now();
    play(&mut host);
    let rate = REQUESTS as f64 / begin.elapsed().as_secs_f64();
    let map = host.drive.ftl_report().map;
    let all = map.lookups + map.update_hits + map.update_misses;
    (rate, (map.hits + map.update_hits) as f64 / all as f64)
}

pub fn print() {
    // enough for the hot entries in every store
    let cache = "map.cache_bytes=512KiB";
    let mut yardstick = 0.0;
    // do not measure the first drive of the process, which waits for memory
    rate("dram", &[]);
    for def in STANDARD.ftl.stores.iter() {
        let extra: &[&str] = match def.name {
            "dram" | "lpmt" => &[],
            "nvm-hybrid" => &["nvm.bytes=8MiB"],
            _ => &[cache],
        };
        let (rate, hits) = rate(def.name, extra);
        yardstick = if def.name == "dram" { rate } else { yardstick };
        println!(
            "{:<12} hot and cold reads and writes {:>8.0} k requests/s   hit ratio {hits:.3}   \
             {:.2} of dram (goal for dftl 0.5)",
            def.name,
            rate / 1e3,
            rate / yardstick
        );
    }
}
