//! The tables of `docs/SUPPORT.md`: each pair in them is built, or refused by the named key.

use flashatlas_crash::CrashError;
use flashatlas_crash::subject::{GEOMETRIES, Subject, drive, subjects};
use flashatlas_host::STANDARD;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/SUPPORT.md");

const SLC_TIMES: [&str; 2] = ["timing.t_read_slc=20us", "timing.t_program_slc=75us"];

const PARITY: [&str; 7] = [
    "drive.channels=2",
    "drive.ways=2",
    "drive.frame_channels=2",
    "drive.frame_ways=2",
    "ecc.parity=die",
    "errors.unreadable=1000",
    "cache.bytes=64KiB",
];

const MLC_PARITY: [&str; PARITY.len() + 1] = {
    let [a, b, c, d, e, f, g] = PARITY;
    ["drive.cell=mlc", a, b, c, d, e, f, g]
};

const STEPS: &[&str] = &[
    "drive.cell=qlc",
    "drive.program_unit=word-line",
    "drive.spare_bytes=128",
    "cache.bytes=128KiB",
    "ftl.program_steps=2",
    "timing.t_program_first=500us",
    "timing.t_program_second=900us",
];

const FLUSH_COPIES: [&str; STEPS.len() + 2] = {
    let mut all = ["ftl.flush=slc"; STEPS.len() + 2];
    let mut at = 0;
    while at < STEPS.len() {
        all[at] = STEPS[at];
        at += 1;
    }
    all[at] = "ftl.flush_blocks=1";
    all
};

/// Returns the settings of a part. Blocks have 16 pages, which are whole word lines of MLC and QLC.
fn part(name: &str) -> Vec<String> {
    let own: &[&str] = match name {
        "qlc" => &["drive.cell=qlc", "timing.t_read_top=90us", "timing.t_program_top=900us"],
        "word line" => &["drive.cell=mlc", "drive.program_unit=word-line", "drive.spare_bytes=128"],
        "static" => &["drive.cell=mlc", "ftl.slc=static", "ftl.slc_static=1"],
        "dynamic" => &["drive.cell=mlc", "ftl.slc=dynamic"],
        "hybrid" => &["drive.cell=mlc", "ftl.slc=hybrid", "ftl.slc_static=1"],
        "shadow" => &["drive.cell=mlc", "drive.page_order=shadow"],
        "skip" => &["drive.cell=mlc", "ftl.lower_pages=skip"],
        "backup" => &["drive.cell=mlc", "ftl.lower_pages=backup"],
        "plp" => &["drive.cell=mlc", "nand.plp_bytes=1MiB"],
        "steps" => STEPS,
        "flush copies" => &FLUSH_COPIES,
        "copyback" => &["drive.cell=mlc", "ftl.copyback=same-plane"],
        "planes" => &["drive.planes=2", "timing.plane_reads=independent"],
        "errors" => &["drive.cell=tlc", "errors.model=tlc-72l", "ecc.codeword=1KiB"],
        "parity" => &MLC_PARITY,
        "throttle" => &["drive.cell=mlc", "ftl.throttle_from=4", "ftl.throttle_rate=1MB"],
        other => panic!("no part is called {other}"),
    };
    let slc = own.iter().any(|s| s.starts_with("ftl.slc=") || *s == "ftl.flush=slc");
    let times = SLC_TIMES.iter().filter(|_| slc);
    own.iter().chain(times).map(|&setting| setting.to_owned()).collect()
}

/// Returns the settings of a column that is no part of a registry.
fn setting(name: &str) -> &'static [&'static str] {
    match name {
        "cells of one bit" => &["drive.cell=slc"],
        "nand.program_order = any" => &["nand.program_order=any"],
        "frames over several planes" => &["drive.planes=2", "drive.frame_planes=2"],
        "frames over several dies" => &["drive.channels=2", "drive.frame_channels=2"],
        "ftl.gc_mode = single" => &["ftl.gc_mode=single"],
        "ftl.gc_pace = even" => &["ftl.gc_pace=even"],
        "ftl.gc_pace = paced" => &["ftl.gc_pace=paced"],
        "ftl.streams = 2" => &["ftl.streams=2"],
        "a classifier" => &["ftl.streams=2", "ftl.classifier=dac"],
        "ftl.wear_static" => &["ftl.wear_static=true"],
        "nand.spare_blocks" => &["nand.spare_blocks=2"],
        "errors.model" => &["errors.model=tlc-72l", "ecc.codeword=1KiB"],
        "ftl.lower_pages = skip" => &["ftl.lower_pages=skip"],
        "steps" => STEPS,
        "ftl.copyback = same-plane" => &["ftl.copyback=same-plane"],
        "ecc.parity = die" => &PARITY,
        other => panic!("no setting is called {other}"),
    }
}

/// Returns the stack of a column, with the settings of the part and of the column.
fn stack(all: &[Subject], column: &str, of_part: &[String]) -> Subject {
    let plain = |s: &&Subject| s.scheme_variant == 0 && s.store_variant == 0;
    let alone = |s: &&Subject| plain(s) && s.layers.is_empty();
    let is_page = |s: &Subject| s.scheme.name == "page";
    let mut found = all.iter().filter(alone).find(|s| s.scheme.name == column);
    found = found.or_else(|| all.iter().filter(alone).find(|s| s.store == column));
    let under = |s: &&Subject| plain(s) && s.layers.len() == 1 && s.layers[0].name == column;
    found = found.or_else(|| all.iter().find(under));
    let of_column = if found.is_some() { &[][..] } else { setting(column) };
    let page = all.iter().filter(alone).find(|s| is_page(s) && s.store == "dram");
    let mut stack = found.or(page).expect("page mapping is a scheme").clone();
    stack.more = of_part.iter().cloned().chain(of_column.iter().map(|&s| s.to_owned())).collect();
    // a unit of these schemes is a whole frame
    let whole = !is_page(&stack) && of_part.iter().any(|s| s.ends_with("word-line"));
    stack.more.extend(whole.then(|| "map.unit=4KiB".to_owned()));
    // three dies hold data
    let parity = !is_page(&stack) && of_part.iter().any(|s| s == "ecc.parity=die");
    stack.more.extend(parity.then(|| "map.unit=6KiB".to_owned()));
    stack
}

/// Returns "yes", or the error.
fn answer(stack: &Subject) -> String {
    let square = GEOMETRIES.iter().find(|g| g.name == "square").expect("it is one");
    match drive(stack, square, false) {
        Ok(_) => "yes".to_owned(),
        Err(CrashError::NoDrive { last: Some(why), .. }) => why.to_string(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_tables_of_what_combines_are_true() {
    let all = subjects(&STANDARD);
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('|').split('|');
        inner.map(|cell| cell.trim().replace('`', "")).collect()
    };
    let (mut columns, mut seen, mut pairs) = (Vec::new(), BTreeSet::new(), 0);
    let mut wrong = Vec::new();
    for line in PAGE.lines() {
        if !line.starts_with('|') {
            columns.clear();
            continue;
        }
        let row = cells(line);
        if columns.is_empty() {
            columns = row;
            seen.extend(columns.iter().cloned());
            continue;
        }
        if row[0].starts_with('-') || columns[1] == "Settings" {
            continue;
        }
        let of_part = part(&row[0]);
        for (column, expected) in columns.iter().zip(&row).skip(1) {
            let found = answer(&stack(&all, column, &of_part));
            pairs += 1;
            let is_right = match expected.as_str() {
                "yes" => found == "yes",
                key => found.contains(key),
            };
            if !is_right {
                wrong.push(format!("{} with {column}: {found}, not {expected}", row[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(pairs > 100, "{pairs} pairs");
    let schemes = STANDARD.ftl.schemes.iter().map(|def| def.name);
    let stores = STANDARD.ftl.stores.iter().map(|def| def.name);
    let layers = STANDARD.layers.iter().map(|def| def.name);
    for name in schemes.chain(stores).chain(layers) {
        assert!(seen.contains(name), "docs/SUPPORT.md has no column for {name}");
    }
}
