//! Costs that must not grow: the time of a request for several sizes of the write cache, numbers of
//! commands in flight, and numbers of dies.

use crate::{Host, longer, now};
use flashatlas_device::{Ssd, Storage};
use flashatlas_host::STANDARD;
use flashatlas_types::{Lpn, Seed};

/// Cost of 4 KiB requests at random addresses: nanoseconds a request, flash operations a second,
/// and WAF.
struct Cost {
    ns: f64,
    flash_ops_a_second: f64,
    waf: f64,
}

/// Returns a host with a drive in the steady state of random writes. The drive has `dies` dies,
/// with `blocks` blocks of 256 pages of 4 KiB in total, and 12.7 % over-provisioning.
fn aged(dies: u32, blocks: u32, extra: &[String]) -> Host {
    let channels = dies.min(8);
    let ways = dies.div_ceil(channels).min(64);
    let mut settings: Vec<String> = [
        "drive.planes=1",
        "drive.frame_planes=1",
        "drive.page_bytes=4KiB",
        "drive.pages=256",
        "drive.over_provisioning=0.1455",
        "map.unit=4KiB",
        "nand.endurance=1000000",
        "timing.t_read=75us",
        "timing.t_read_upper=75us",
        "timing.t_program=750us",
        "timing.t_erase=3800us",
        "timing.channel_rate=333MB",
        "timing.suspend=none",
        "timing.cache_read=false",
    ]
    .map(str::to_owned)
    .to_vec();
    settings.extend([
        format!("drive.channels={channels}"),
        format!("drive.ways={ways}"),
        format!("drive.dies={}", dies / (channels * ways)),
        format!("drive.blocks={}", blocks / dies),
    ]);
    settings.extend_from_slice(extra);
    let drive = STANDARD.load("tlc-nvme-1tb", None, &settings).and_then(|c| c.build(Seed(1)));
    let mut host = Host::filled(drive.unwrap_or_else(|e| panic!("{e}")));
    host.age();
    host
}

/// Returns the number of reads, programs and erases so far.
pub fn flash_ops(drive: &Ssd) -> u64 {
    let c = &drive.medium().counters;
    [&c.reads, &c.programs, &c.erases].iter().map(|by_cause| by_cause.iter().sum::<u64>()).sum()
}

fn measured(host: &mut Host, requests: u64, writes: u64, depth: usize) -> Cost {
    let requests = longer(requests);
    // prefetch for the next requests, as runs do
    let mut ahead = [(false, Lpn(0)); 16];
    let mut play = |host: &mut Host, count: u64| {
        for _ in 0..count / ahead.len() as u64 {
            for coming in &mut ahead {
                *coming = (host.percent() < writes, host.any_page());
            }
            host.expect(&ahead);
            ahead.iter().for_each(|&(write, lpn)| host.request_page(lpn, write, depth));
        }
    };
    play(host, requests / 4);
    host.drive.reset_counters();
    let begin = now();
    play(host, requests);
    let seconds = begin.elapsed().as_secs_f64();
    let programs: u64 = host.drive.medium().counters.programs.iter().sum();
    Cost {
        ns: 1e9 * seconds / requests as f64,
        flash_ops_a_second: flash_ops(&host.drive) as f64 / seconds,
        waf: programs as f64 * 100.0 / (writes.max(1) * requests) as f64,
    }
}

fn row(what: &str, cost: &Cost, first: &mut Option<f64>) {
    let first = *first.get_or_insert(cost.ns);
    println!(
        "{what:<38} {:>6.0} ns a request   {:.2} of the first   {:>5.0} k flash operations/s   \
         WAF {:.2}",
        cost.ns,
        cost.ns / first,
        cost.flash_ops_a_second / 1e3,
        cost.waf
    );
}

pub fn print() {
    let mut first = None;
    for mib in [1, 16, 256, 1024] {
        let mut host = aged(8, 16 * 1024, &[format!("cache.bytes={mib}MiB")]);
        let cost = measured(&mut host, 400_000, 100, 16);
        row(&format!("writes, {mib} MiB of write cache"), &cost, &mut first);
    }
    for (name, writes) in [("writes", 100), ("reads", 0)] {
        let mut first = None;
        for depth in [1, 16, 256, 4096, 65536] {
            let mut host = aged(8, 16 * 1024, &["cache.bytes=16MiB".into()]);
            let cost = measured(&mut host, 400_000, writes, depth);
            row(&format!("{name}, {depth} in flight"), &cost, &mut first);
        }
    }
    for (name, writes) in [("writes", 100), ("reads", 0)] {
        let mut first = None;
        for dies in [1, 8, 64, 512] {
            let mut host = aged(dies, 16 * 1024, &["cache.bytes=16MiB".into()]);
            let cost = measured(&mut host, 400_000, writes, 256);
            row(&format!("{name}, {dies} dies"), &cost, &mut first);
        }
    }
}

/// Prints the flash operations a second of the event engine: writes that collect, reads, and both.
pub fn engine() {
    for (name, writes) in [("collecting writes", 100), ("30 % writes", 30), ("reads", 0)] {
        let mut host = aged(8, 16 * 1024, &["cache.bytes=16MiB".into()]);
        let cost = measured(&mut host, 3_000_000, writes, 16);
        row(&format!("{name}, 16 in flight"), &cost, &mut None);
    }
}
