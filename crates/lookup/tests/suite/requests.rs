//! Requests of a study: drawn at random, and made of host addresses.

use flashatlas_lookup::study::{
    Address, Addressing, DrawnFiles, DrawnSets, Gathered, LookupRequest, StudyError,
};
use flashatlas_types::Seed;
use std::collections::HashSet;

fn gathered(
    limit: Option<u64>,
    draw: impl FnOnce(&mut Gathered) -> Result<(), StudyError>,
) -> Result<Vec<LookupRequest>, String> {
    let mut all = Gathered::new(limit).map_err(|error| error.to_string())?;
    draw(&mut all).map_err(|error| error.to_string())?;
    Ok(all.asks().to_vec())
}

const FILES: DrawnFiles = DrawnFiles { files: 16, stride: 4, again: 0.2, known: 0.3, lookups: 50 };

#[test]
fn files_have_distinct_addresses_until_all_are_known() {
    let draw = |files: DrawnFiles, limit| {
        gathered(limit, |all| files.draw(6, Seed(1), all, Gathered::push))
    };
    let asks = draw(FILES, None).unwrap();
    let distinct: HashSet<u32> = asks
        .iter()
        .map(|ask| match ask {
            LookupRequest::Pages(la, 1) => *la,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(distinct, (0..64).step_by(4).collect(), "every multiple of four below 2^6");
    assert!(asks.len() > 16 + 50, "known files come in between");
    assert_eq!(draw(FILES, Some(9)).unwrap(), asks[..9], "a limit cuts, and changes nothing else");
    let refused = |files| draw(files, None).unwrap_err();
    assert_eq!(
        refused(DrawnFiles { files: 17, ..FILES }),
        "17 files do not fit: addresses of 6 bits (lookup.la_bits) have only 16 multiples of 4"
    );
    assert_eq!(
        refused(DrawnFiles { stride: 0, ..FILES }),
        "stride = 0 is too small; give at least 1"
    );
    assert_eq!(
        refused(DrawnFiles { again: 1.0, ..FILES }),
        "again = 1 is out of range; give a share from 0 to 0.999"
    );
}

#[test]
fn a_skew_prefers_every_fourth_set() {
    let draw = |sets, skew| {
        let drawn = DrawnSets { lookups: 2000, repeat: 0.0, skew };
        gathered(None, |all| drawn.draw(sets, Seed(1), all, Gathered::push))
    };
    let fourths = |asks: Vec<LookupRequest>| {
        asks.iter().filter(|ask| matches!(ask, LookupRequest::Set(set) if set % 4 == 0)).count()
    };
    assert_eq!(fourths(draw(64, Some(1.0)).unwrap()), 2000);
    assert_eq!(fourths(draw(64, Some(0.0)).unwrap()), 0);
    assert!((400..600).contains(&fourths(draw(64, None).unwrap())), "a quarter of the sets");
    assert_eq!(
        draw(2, Some(0.5)).unwrap_err(),
        "skew needs at least four sets, but the table has 2 (lookup.sets)"
    );
}

#[test]
fn addresses_are_cut_numbered_or_taken_as_they_are() {
    let sectors = [(0, 0), (0, 8), (0, 8 << 4), (1, 0), (0, 15)];
    let of = |address| {
        let mut addressing = Addressing::new(address, 8, 4).unwrap();
        let all: Result<Vec<u32>, String> = (sectors.iter())
            .map(|&(device, sector)| addressing.of(device, sector).map_err(|e| e.to_string()))
            .collect();
        (all, addressing.aliases)
    };
    // sector 8·2^4 of device 0, and sector 0 of device 1, have the lowest bits of sector 0
    assert_eq!(of(Address::LowBits), (Ok(vec![0, 1, 0, 0, 1]), 2));
    assert_eq!(of(Address::Dense), (Ok(vec![0, 1, 2, 3, 1]), 0));
    let wide = of(Address::Exact).0.unwrap_err();
    assert!(wide.contains("address 16 (in units of 8 sectors) is wider"), "{wide}");
    let mut few = Addressing::new(Address::Dense, 8, 1).unwrap();
    let third = [0, 8, 16].map(|sector| few.of(0, sector).map_err(|error| error.to_string()));
    assert!(third[2].as_ref().unwrap_err().contains("more than 2 distinct addresses"));
    assert_eq!(Addressing::new(Address::Exact, 8, 31).unwrap().capacity(), Ok(1 << 43));
}
