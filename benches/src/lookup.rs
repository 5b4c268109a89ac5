//! Timed lookups beside the floor: the same random addresses looked up in the same tables, with no timing. And Fig. 8's shape:
//! 700,873 files, inserted one by one, looked up in between.

use flashatlas_lookup::study::{Ask, Study, settings};
use flashatlas_types::{Rng, Seed};

const ENTRIES: u32 = 1 << 20;
const LOOKUPS: u64 = 8_000_000;

fn study(given: &[&str], expected: u64) -> Study {
    let given: Vec<String> = given.iter().map(|&s| s.to_owned()).collect();
    settings(&given).and_then(|params| Study::new(&params, expected)).unwrap_or_else(|e| panic!("{e}"))
}

fn addresses(limit: u32) -> impl Iterator<Item = u32> {
    let mut rng = Rng::stream(Seed(1), "lookups");
    (0..LOOKUPS).map(move |_| rng.below(limit.into()) as u32)
}

/// Millions of lookups a second without and with timing.
fn rates(given: &[&str]) -> (f64, f64) {
    let mut study = study(given, LOOKUPS);
    for la in 0..ENTRIES {
        study.ask(Ask::Pages(la, 1)).unwrap_or_else(|e| panic!("{e}"));
    }
    let begin = super::now();
    let found = addresses(ENTRIES).filter(|&la| study.tables().lookup(la, &mut ()).is_some()).count();
    let floor = LOOKUPS as f64 / begin.elapsed().as_secs_f64() / 1e6;
    assert_eq!(found as u64, LOOKUPS);
    let begin = super::now();
    let mut asks = Vec::new();
    for la in addresses(ENTRIES) {
        asks.push(Ask::Pages(la, 1));
        if asks.len() == 1024 {
            study.ask_all(&asks).unwrap_or_else(|e| panic!("{e}"));
            asks.clear();
        }
    }
    (floor, LOOKUPS as f64 / begin.elapsed().as_secs_f64() / 1e6)
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
        let (floor, timed) = rates(given);
        println!(
            "lookups of 2^20 entries, {name:<24} floor {floor:>5.1} M/s, timed {timed:>5.1} M/s (goal 5): {:.2} of the floor (goal 0.4)",
            timed / floor
        );
    }
}
