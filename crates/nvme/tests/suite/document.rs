//! `docs/NVME.md` is what the code says. FLASHATLAS_WRITE=1 writes the page.

use flashatlas_nvme::{amplification_markdown, support};

const HEAD: &str = "\
# The NVMe controller

The crate `nvme` is a controller core: commands and buffers go in, completions come out. This page
lists what is there and what is refused. The code has the same table
(`crates/nvme/src/support/mod.rs`), and a test writes this page.

The sources are NVM Express Base Specification 2.1 (\"Base\") and NVM Command Set Specification 1.1
(\"NVM\"). A command that asks for what is not there gets the status that the specification gives:

- Invalid Command Opcode for a command;
- Invalid Log Page for a log page;
- Invalid Field in Command for a Fabrics command, a feature or an Identify data structure.

A code that no table has is refused in the same way.

## What is there

";

const TAIL: &str = "\
## Log page C0h: write amplification by cause

The page has 512 bytes. Numbers are little-endian, and bytes that the table does not name are zeros.

";

#[test]
fn the_document_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/NVME.md");
    let text = format!("{HEAD}{}{TAIL}{}", support::markdown(), amplification_markdown());
    if std::env::var_os("FLASHATLAS_WRITE").is_some() {
        std::fs::write(path, &text).expect("it can be written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "docs/NVME.md is not what the code says: FLASHATLAS_WRITE=1 cargo test --release -p \
         flashatlas-nvme document"
    );
}

#[test]
fn codes_are_in_order_and_each_is_there_once() {
    for kind in support::Kind::ALL {
        let codes: Vec<u8> = support::rows(kind).iter().map(|row| row.code).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{kind:?}: {codes:x?}");
    }
}
