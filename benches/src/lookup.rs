//! Timed lookups, compared with two floors. The floors look up the same random addresses in the
//! same tables without timing. In the first floor, the processor can overlap lookups; in the
//! second, each lookup waits for the result of the previous lookup.

use crate::longer;
use flashatlas_lookup::hashes::STANDARD;
use flashatlas_lookup::study::{LookupRequest, Study, settings};
use flashatlas_types::{Rng, Seed};

const ENTRIES: u32 = 1 << 20;
const LOOKUPS: u64 = 8_000_000;

fn study(given: &[&str]) -> Study {
    let given: Vec<String> = given.iter().map(|&s| s.to_owned()).collect();
    settings(STANDARD, &given)
        .and_then(|params| Study::new(STANDARD, &params))
        .unwrap_or_else(|e| panic!("{e}"))
}

fn addresses(limit: u32) -> impl Iterator<Item = u32> {
    let mut rng = Rng::stream(Seed(1), "lookups");
    (0..longer(LOOKUPS)).map(move |_| rng.below(limit.into()) as u32)
}

/// Returns millions of lookups a second: overlapped without timing, one by one without timing, and
/// with timing.
fn rates(given: &[&str]) -> [f64; 3] {
    let mut study = study(given);
    for la in 0..ENTRIES {
        study.ask(LookupRequest::Pages(la, 1)).unwrap_or_else(|e| panic!("{e}"));
    }
    let begin = super::now();
    let pages = addresses(ENTRIES)
        .map(|la| study.tables().lookup(la, &mut ()).expect("it was inserted").pn);
    std::hint::black_box(pages.fold(0, u32::wrapping_add));
    let at_once = longer(LOOKUPS) as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let begin = super::now();
    let mut answer = 0;
    for la in addresses(ENTRIES) {
        // no page has this number, but the processor must wait for the answer to compare it
        let la = la ^ u32::from(answer == u32::MAX);
        answer = study.tables().lookup(la, &mut ()).expect("it was inserted").pn;
        answer = std::hint::black_box(answer);
    }
    let in_turn = longer(LOOKUPS) as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let begin = super::now();
    let mut asks = Vec::new();
    for la in addresses(ENTRIES) {
        asks.push(LookupRequest::Pages(la, 1));
        if asks.len() == 1024 {
            study.ask_all(&asks).unwrap_or_else(|e| panic!("{e}"));
            asks.clear();
        }
    }
    [at_once, in_turn, longer(LOOKUPS) as f64 / begin.elapsed().as_secs_f64() / 1e6]
}

pub fn print() {
    for (name, given) in [
        ("dynamic", &[][..]),
        ("dynamic, no constraints", &["dram.constraints=none"]),
        ("dynamic, one by one", &["lookup.probe=abcd"]),
        ("set-mod", &["lookup.policy=set-mod"]),
        ("single", &["lookup.policy=single"]),
        ("ddr4-2400, mixer", &["dram.preset=ddr4-2400", "lookup.hash=mixer"]),
    ] {
        let [at_once, in_turn, timed] = rates(given);
        println!(
            "lookups of 2^20 entries, {name:<24} timed {timed:>5.1} M/s (goal 5): {:.2} of the \
             floor together ({at_once:.1} M/s; goal 0.4), {:.2} of it one by one \
             ({in_turn:.1} M/s)",
            timed / at_once,
            timed / in_turn
        );
    }
}
