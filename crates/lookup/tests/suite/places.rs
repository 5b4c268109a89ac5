//! Tests that no two items have the same place, in many layouts. The items are every set of both
//! tables, every row of the block tables and every word of the bit map.

use flashatlas_dram::{Device, PRESETS};
use flashatlas_lookup::hashes::STANDARD;
use flashatlas_lookup::probe::{POLICIES, Places};
use flashatlas_lookup::study::settings;
use flashatlas_lookup::tables::TableShape;
use flashatlas_types::{Params, Rng, Seed};
use std::collections::BTreeMap;

/// For each row of a bank, the kind of its items and the number of its bursts in use.
type Rows = BTreeMap<(u8, u32), (&'static str, u32)>;

fn take(rows: &mut Rows, device: &Device, what: &'static str, bank: u8, row: u32, bursts: u32) {
    let (owner, taken) = rows.entry((bank, row)).or_insert((what, 0));
    assert_eq!(*owner, what, "bank {bank}, row {row}");
    *taken += bursts;
    assert!(
        *taken * device.burst_bytes() <= device.row_bytes(),
        "{what}: bank {bank}, row {row} holds more than a row"
    );
}

fn occupancy(params: &Params, shape: &TableShape, device: &Device) -> Option<()> {
    let places = Places::from_params(params, shape, device, true).ok()?;
    let mut rows = Rows::new();
    for set in 0..shape.sets() + shape.secondary_sets {
        let what = if set < shape.sets() { "primary" } else { "secondary" };
        let (bank, row) = places.set(set);
        for stripe in 0..places.spread {
            take(&mut rows, device, what, (bank + stripe) as u8, row, places.bursts(stripe).into());
        }
        let ways = (0..shape.ways).map(|way| places.way(way));
        for (stripe, burst) in ways {
            assert!(
                stripe < places.spread && burst < places.bursts(stripe),
                "a way lies outside of its set"
            );
        }
    }
    // items that share a burst are counted together
    let items = |linear: &flashatlas_lookup::probe::Linear, count: u64, bits: u32| {
        let together = u64::from((device.burst_bytes() * 8 / bits).max(1));
        let at = |item| linear.access(item, false, false);
        (0..count)
            .step_by(together as usize)
            .map(at)
            .map(|a| (a.bank, a.row, u32::from(a.bursts)))
            .collect::<Vec<_>>()
    };
    let pages = u64::from(shape.block_tables) * u64::from(shape.rows);
    for (bank, row, bursts) in items(&places.block_tables, pages, shape.block_row_bits()) {
        take(&mut rows, device, "block tables", bank, row, bursts);
    }
    for (bank, row, bursts) in items(&places.starts, 1 << shape.la_bits, 1) {
        take(&mut rows, device, "beginnings", bank, row, bursts);
    }
    let (banks, height) =
        rows.keys().fold((0, 0), |(b, r), &(bank, row)| (b.max(bank), r.max(row)));
    assert!(u32::from(banks) < places.banks && height < device.rows);
    Some(())
}

#[test]
fn everything_has_a_place_of_its_own() {
    let mut rng = Rng::stream(Seed(1), "places");
    let mut tried = 0;
    for _ in 0..3000 {
        let mut pick = |of: &[&str]| of[rng.below(of.len() as u64) as usize].to_owned();
        let policy = POLICIES[pick(&["0", "1", "2", "3"]).parse::<usize>().unwrap()].name;
        let given = [
            format!("lookup.policy={policy}"),
            format!("lookup.banks={}", pick(&["1", "2", "3", "4", "6", "8"])),
            format!("lookup.spread={}", pick(&["0", "1", "2", "3", "4"])),
            format!("lookup.set_to_bank={}", pick(&["low", "high", "xor"])),
            format!("lookup.secondary={}", pick(&["shared", "apart"])),
            format!("lookup.block_tables={}", pick(&["shared", "apart"])),
        ];
        let preset = pick(&["0", "3"]).parse::<usize>().unwrap();
        let shape = TableShape {
            set_bits: pick(&["0", "3", "6", "7"]).parse().unwrap(),
            ways: pick(&["1", "3", "4", "8", "16"]).parse().unwrap(),
            secondary_sets: pick(&["1", "5", "60", "128"]).parse().unwrap(),
            la_bits: pick(&["9", "13", "16"]).parse().unwrap(),
            block_tables: pick(&["3", "40"]).parse().unwrap(),
            rows: pick(&["8", "100"]).parse().unwrap(),
            dense: true,
        };
        let shape = TableShape { secondary_sets: shape.secondary_sets.min(shape.sets()), ..shape };
        tried += usize::from(
            occupancy(&settings(STANDARD, &given).unwrap(), &shape, &PRESETS[preset].device)
                .is_some(),
        );
    }
    assert!(tried > 1000, "{tried} layouts were possible");
}
