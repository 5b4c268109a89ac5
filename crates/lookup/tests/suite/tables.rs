//! Tests that compare the tables with a dictionary, and tests of packed bits and refused
//! operations.

use flashatlas_lookup::hashes::Hash;
use flashatlas_lookup::tables::{BlockTables, Location, Lpmt, Pn, TableShape, Tables};
use flashatlas_lookup::{Extents, LookupError};
use flashatlas_types::{Rng, Seed};
use std::collections::BTreeMap;

/// A hash function that returns the address modulo a number, so that a test can set the length of
/// chains.
struct Modulo(u32);

impl Hash for Modulo {
    fn key(&self, la: u32) -> u32 {
        la % self.0
    }
}

fn shape(dense: bool) -> TableShape {
    TableShape {
        set_bits: 3,
        ways: 4,
        secondary_sets: 8,
        la_bits: 8,
        block_tables: 16,
        rows: 8,
        dense,
    }
}

fn tables(shape: &TableShape, keys: u32) -> Tables {
    Tables::new(shape, Box::new(Modulo(keys)))
}

/// The pages of each file, by the file's address.
type Dictionary = BTreeMap<u32, Vec<Pn>>;

fn same(tables: &Tables, files: &Dictionary, addresses: u32) {
    tables.check().unwrap_or_else(|v| panic!("{v}"));
    for la in 0..addresses {
        let hit = tables.lookup(la, &mut ());
        let mut found = Vec::new();
        let mut next = hit.map(|h| h.pn);
        while let Some(pn) = next {
            found.push(pn);
            next = tables.next_page(pn, &mut ());
        }
        assert_eq!(found, files.get(&la).cloned().unwrap_or_default(), "address {la}");
        assert!(hit.is_none_or(|hit| hit.single == (found.len() == 1)), "S of address {la}");
    }
}

/// Returns a random free page, or `None` if none was found in 20 attempts.
fn free_page(tables: &Tables, rng: &mut Rng) -> Option<Pn> {
    (0..20).map(|_| rng.below(16 * 8) as Pn).find(|&pn| !tables.blocks.is_valid(pn))
}

fn against_a_dictionary(dense: bool, keys: u32, seed: u64) -> u64 {
    let mut rng = Rng::stream(Seed(seed), "dictionary");
    let mut tables = tables(&shape(dense), keys);
    let mut files = Dictionary::new();
    let mut overflows = 0;
    for step in 0..3000 {
        let la = rng.below(48) as u32;
        let Some(pn) = free_page(&tables, &mut rng) else {
            if files.remove(&la).is_some() {
                tables.delete(la, &mut (), |_| {}).unwrap();
            }
            continue;
        };
        let known = files.get(&la).cloned();
        match rng.below(10) {
            0..3 => match (tables.insert(la, pn, &mut ()), &known) {
                (Err(e), Some(_)) => assert_eq!(e, LookupError::Exists { la }),
                (Ok(_), None) => drop(files.insert(la, vec![pn])),
                (Err(LookupError::Overflow { .. }), None) => overflows += 1,
                (other, known) => panic!("inserting {la}, {known:?}: {other:?}"),
            },
            3..5 => {
                if let Some(pages) = &known {
                    tables.extend(*pages.last().unwrap(), pn, &mut ()).unwrap();
                    files.get_mut(&la).unwrap().push(pn);
                }
            }
            5 => match (tables.shrink(la, &mut ()), known) {
                (Ok(freed), Some(mut pages)) => {
                    assert_eq!(Some(freed), pages.pop());
                    if pages.is_empty() {
                        drop(files.remove(&la))
                    } else {
                        drop(files.insert(la, pages))
                    }
                }
                (Err(e), None) => assert_eq!(e, LookupError::Missing { la }),
                (other, known) => panic!("shrinking {la}, {known:?}: {other:?}"),
            },
            6 => {
                let mut freed = Vec::new();
                let deleted = tables.delete(la, &mut (), |pn| freed.push(pn));
                assert_eq!(deleted.is_ok(), known.is_some());
                assert_eq!(freed, files.remove(&la).unwrap_or_default());
            }
            7 => {
                if let Some(pages) = files.get_mut(&la) {
                    let i = rng.below(pages.len() as u64) as usize;
                    tables.relocate(pages[i], pn, &mut ()).unwrap();
                    pages[i] = pn;
                }
            }
            8 => {
                // the file is split before a page; the rest gets an address at which no file begins
                let rest = 48 + rng.below(40) as u32;
                if let Some(pages) =
                    known.filter(|pages| pages.len() > 1 && !files.contains_key(&rest))
                {
                    let at = 1 + rng.below(pages.len() as u64 - 1) as usize;
                    match tables.split(pages[at], rest, &mut ()) {
                        Ok(_) => {
                            files.insert(la, pages[..at].to_vec());
                            files.insert(rest, pages[at..].to_vec());
                        }
                        Err(LookupError::Overflow { .. }) => overflows += 1,
                        Err(e) => panic!("{e}"),
                    }
                }
            }
            _ => {
                // another file is appended
                let other = rng.below(88) as u32;
                if let (Some(pages), Some(more)) =
                    (known, files.get(&other).filter(|_| other != la).cloned())
                {
                    tables.join(*pages.last().unwrap(), more[0], &mut ()).unwrap();
                    files.remove(&other);
                    files.insert(la, [pages, more].concat());
                }
            }
        }
        if step % 10 == 0 {
            same(&tables, &files, 88);
        }
    }
    same(&tables, &files, 88);
    overflows
}

#[test]
fn tables_are_a_dictionary() {
    for seed in 0..6 {
        for dense in [false, true] {
            against_a_dictionary(dense, 8, seed);
            against_a_dictionary(dense, 3, seed);
        }
    }
}

#[test]
fn chains_that_are_filled_hold_anything_and_others_overflow() {
    // there are one key and 36 places; after a deletion, the chain's last entry moves to the empty
    // place
    let overflows: u64 = (0..4).map(|seed| against_a_dictionary(true, 1, seed)).sum();
    assert!(overflows > 0, "48 + 40 addresses, 36 places");
    let fill = |dense: bool| {
        let mut tables = tables(&shape(dense), 1);
        for la in 0..36 {
            tables.insert(la, la, &mut ()).unwrap();
        }
        // one entry is left in each of the nine sets
        let kept = |la: u32| la % 4 == 0;
        (0..36).filter(|&la| !kept(la)).for_each(|la| tables.delete(la, &mut (), |_| {}).unwrap());
        tables.check().unwrap();
        tables.lpmt.secondary_used
    };
    assert_eq!(fill(false), 8, "eight secondary sets with an entry each");
    assert_eq!(fill(true), 2, "nine entries in three sets");
}

#[test]
fn what_is_refused_changes_nothing() {
    let shape = shape(true);
    let mut tables = tables(&shape, 1);
    tables.insert(5, 9, &mut ()).unwrap();
    let row = |pn, why| Err(LookupError::Row { pn, why });
    assert_eq!(tables.insert(256, 1, &mut ()), Err(LookupError::Wide { la: 256, bits: 8 }));
    assert_eq!(tables.insert(6, 9, &mut ()).map(drop), row(9, "already holds a page"));
    assert_eq!(
        tables.insert(6, 16 * 8, &mut ()).map(drop),
        row(128, "lies beyond the block tables")
    );
    assert_eq!(tables.extend(8, 10, &mut ()), row(8, "holds no page"));
    tables.extend(9, 10, &mut ()).unwrap();
    assert_eq!(tables.extend(9, 11, &mut ()), row(9, "is not the last page of its file"));
    assert_eq!(tables.split(9, 7, &mut ()).map(drop), row(9, "is the first page of its file"));
    assert_eq!(tables.relocate(11, 12, &mut ()), row(11, "holds no page"));
    assert_eq!(tables.join(10, 9, &mut ()), row(9, "cannot follow its own file"));
    assert_eq!(tables.join(10, 10, &mut ()), row(10, "is not the first of its file"));
    for la in 100..135 {
        tables.insert(la, la - 80, &mut ()).unwrap();
    }
    // the chain is full with 4 + 8 x 4 entries
    assert_eq!(tables.insert(200, 80, &mut ()), Err(LookupError::Overflow { la: 200, sets: 8 }));
    assert_eq!(tables.split(10, 200, &mut ()), Err(LookupError::Overflow { la: 200, sets: 8 }));
    tables.check().unwrap();
    assert_eq!(tables.lookup(5, &mut ()).map(|h| (h.pn, h.single)), Some((9, false)));
    assert!(tables.lookup(200, &mut ()).is_none());
}

#[test]
fn entries_and_rows_bit_by_bit() {
    // by the paper's widths, an entry has 20 + 20 + 2 bits (Table II)
    let paper = TableShape::PAPER;
    assert_eq!([paper.entry_bits(), paper.pn_bits(), paper.location_bits()], [42, 20, 21]);
    assert_eq!(
        paper.block_row_bits(),
        3 + 21 + 20,
        "PPid is wide enough for the place of an entry"
    );
    // a primary set has 8 entries, V and 17 bits of NSid; a secondary set also has 18 bits of PSid
    let lpmt = ((8 * 42 + 18) + (8 * 42 + 18 + 18)) * (1 << 17) / 8;
    assert_eq!(paper.packed_bytes(), (lpmt, (4096 * (256 * 44 + 9)) / 8));

    // small widths: 4 bits of address, 1 + 3 bits of page, two sets of two ways; the bits below
    // were written by hand
    let shape = TableShape {
        set_bits: 1,
        ways: 2,
        secondary_sets: 2,
        la_bits: 4,
        block_tables: 2,
        rows: 8,
        dense: false,
    };
    let mut tables = Tables::new(&shape, Box::new(Modulo(1)));
    tables.insert(0b1001, 0b0_010, &mut ()).unwrap();
    tables.insert(0b0110, 0b1_001, &mut ()).unwrap();
    tables.extend(0b1_001, 0b1_011, &mut ()).unwrap();
    tables.insert(0b0111, 0b0_000, &mut ()).unwrap();
    // from the lowest bit on: LA 1001, PN 0010, V, S; LA 0110, PN 1001, V, no S; V and NSid 0
    let set_0: u32 =
        0b1001 | 0b0010 << 4 | 0b11 << 8 | (0b0110 | 0b1001 << 4 | 0b01 << 8) << 10 | 0b01 << 20;
    assert_eq!(tables.lpmt.pack(0), set_0.to_le_bytes()[..3]);
    // the secondary set: LA 0111, PN 0000, V, S; an empty way; no NSid; PSid 00, which is primary
    // set 0
    let set_2: u32 = 0b0111 | 0b11 << 8;
    assert_eq!(tables.lpmt.pack(2), set_2.to_le_bytes()[..3]);
    let unpacked = Lpmt::unpack(&shape, false, &tables.lpmt.pack(0)).unwrap();
    assert_eq!(unpacked.ways, [Some((0b1001, 0b0010, true)), Some((0b0110, 0b1001, false))]);
    assert_eq!((unpacked.next, unpacked.previous), (Some(2), None));
    assert_eq!(Lpmt::unpack(&shape, true, &tables.lpmt.pack(2)).unwrap().previous, Some(0));
    assert_eq!(Lpmt::unpack(&shape, false, &tables.lpmt.pack(0)[..2]), None);
    // a row is V, F, L, then PPid of 4 bits, which is a page or a place (3 bits: table, set, way),
    // then NPid
    let row = |v_f_l: u32, ppid: u32, npid: u32| {
        (v_f_l | ppid << 3 | npid << 7).to_le_bytes()[..2].to_vec()
    };
    assert_eq!(
        tables.blocks.pack(0b1_001),
        row(0b011, 0b0_0_1, 0b1011),
        "first: table 0, set 0, way 1"
    );
    assert_eq!(tables.blocks.pack(0b1_011), row(0b101, 0b1001, 0), "last, after page 1001");
    assert_eq!(
        tables.blocks.pack(0b0_000),
        row(0b111, 0b1_0_0, 0),
        "only page: table 1, set 0, way 0"
    );
    assert_eq!(tables.blocks.pack(0b0_111), [0, 0], "free");
}

#[test]
fn rows_are_given_out_table_by_table() {
    let shape = TableShape { block_tables: 2, rows: 4, ..shape(true) };
    let mut tables = tables(&shape, 8);
    let take = |tables: &mut Tables, la: u32| {
        let pn = tables.blocks.allocate()?;
        tables.insert(la, pn, &mut ()).unwrap();
        Some(pn)
    };
    assert_eq!(
        (0..8).map(|la| take(&mut tables, la)).collect::<Vec<_>>(),
        (0..8).map(Some).collect::<Vec<_>>()
    );
    assert_eq!(take(&mut tables, 8), None, "every row is valid");
    tables.delete(1, &mut (), |_| {}).unwrap();
    assert_eq!(take(&mut tables, 8), None, "a row is free, and no table is empty");
    [0, 2, 3].into_iter().for_each(|la| tables.delete(la, &mut (), |_| {}).unwrap());
    assert_eq!((tables.blocks.write_pointer(0), tables.blocks.valid_rows(0)), (4, 0));
    assert_eq!(take(&mut tables, 9), Some(0), "the first table is erased, and filled again");
    let blocks: &BlockTables = &tables.blocks;
    assert_eq!([blocks.write_pointer(0), blocks.write_pointer(1)], [1, 4]);
    assert_eq!(blocks.location(0), tables.lookup(9, &mut ()).map(|hit| hit.at));
    assert_eq!(blocks.location(4).map(|Location { way, .. }| way < 4), Some(true));
}

/// The extents are used as a drive's map. Pages are written in runs and alone, trimmed and moved.
/// Blocks of eight pages are erased when they contain no valid page.
#[test]
fn extents_are_a_map() {
    for (seed, window) in [(1, 1), (2, 2), (3, 8), (4, 64), (5, 8), (6, 4)] {
        let mut rng = Rng::stream(Seed(seed), "extents");
        let shape = TableShape {
            la_bits: 7,
            secondary_sets: 32,
            set_bits: 5,
            block_tables: 40,
            ..shape(true)
        };
        shape.holds_any(100).unwrap();
        let mut extents = Extents::new(tables(&shape, 1 + seed as u32 * 3), 100, window);
        let mut map: BTreeMap<u32, Pn> = BTreeMap::new();
        for step in 0..4000 {
            let la = rng.below(100) as u32;
            match rng.below(8) {
                0 => {
                    let old = extents.write(la, None, true, &mut ());
                    assert_eq!(old, map.remove(&la));
                }
                1..3 => {
                    if let Some(&old) = map.get(&la) {
                        let new = extents.tables.blocks.allocate().unwrap();
                        extents.relocate(old, new, &mut ()).unwrap();
                        map.insert(la, new);
                    }
                }
                _ => {
                    for la in la..(la + 1 + rng.below(12) as u32).min(100) {
                        let new = extents.tables.blocks.allocate().unwrap();
                        assert_eq!(
                            extents.write(la, Some(new), true, &mut ()),
                            map.insert(la, new)
                        );
                    }
                }
            }
            if step % 20 == 0 {
                extents.check().unwrap_or_else(|v| panic!("{v}"));
                (0..100).for_each(|la| {
                    assert_eq!(extents.lookup(la, &mut ()), map.get(&la).copied(), "page {la}")
                });
            }
        }
        assert_eq!(window > 1, extents.counts.continued > 300, "{:?}", extents.counts);
        let entries = extents.tables.lpmt.used[0] + extents.tables.lpmt.used[1];
        assert_eq!(
            window == 1,
            entries == map.len() as u64,
            "{entries} extents of {} pages",
            map.len()
        );
    }
}
