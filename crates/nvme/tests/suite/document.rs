//! Comparison of `docs/NVME.md` with the table in the code. FLASHATLAS_WRITE=1 writes the page.

use flashatlas_nvme::{amplification_markdown, support};

const HEAD: &str = "\
# The NVMe controller

The crate `nvme` is a controller core: commands and buffers go in, completions come out. This page
lists the supported and the refused commands. The code has the same table
(`crates/nvme/src/support/mod.rs`), and a test writes this page.

The sources are NVM Express Base Specification 2.1 (\"Base\") and NVM Command Set Specification 1.1
(\"NVM\"). An unsupported command or code gets the status of the specification:

- Invalid Command Opcode for a command;
- Invalid Log Page for a log page;
- Invalid Field in Command for a Fabrics command, a feature or an Identify data structure.

A code that no table has is refused in the same way.

## What is there

";

const TAIL: &str = "\
## Readings

Where the specification leaves a choice or contradicts itself, the controller does this:

- Controllers are dynamic: they keep no state from earlier associations. Saved features belong to
  the subsystem, and every new controller begins with these values.
- A Connect command for a queue that exists is a Command Sequence Error (Base 3.3.2.3, 6.3), not an
  Invalid Queue Identifier (Base, Figure 545).
- An association goes on if the connection of an I/O queue is lost, even if the host did not say
  that it deletes queues (Base 3.1.2): Linux closes its I/O queues before it shuts down.
- The volatile write cache is switched for one controller. The switch to off flushes everything. Its
  flush and its completion come after the commands that were in flight.
- A controller is not ready while the media carry out commands from before a reset, or of an
  association that has ended. A late write could undo a newer write.
- A write that lies in one mapping unit is atomic, also in a power failure (R2 in
  [RELIABILITY.md](RELIABILITY.md)). NAWUPF and NABSPF report this. AWUPF is one block, because a
  write over two units may be cut between them.
- Write Zeroes trims only where trims survive a power failure. Elsewhere it writes zeros, and DEAC
  is refused.
- Totals of the SMART log are at most 32 MiB ahead of the durable record. The totals that a host
  reads in the log are in the record before the command completes.
- Refused commands make entries in the error log, but refused Fabrics commands do not.

## Log page C0h: write amplification by cause

The page has 512 bytes. Numbers are little-endian, and bytes that the table does not name are zeros.

";

#[test]
fn the_document_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/NVME.md");
    let text = format!("{HEAD}{}{TAIL}{}", support::markdown(), amplification_markdown());
    if flashatlas_fixtures::written::is_asked_for() {
        std::fs::write(path, &text).expect("it can be written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "docs/NVME.md differs from the table in the code: FLASHATLAS_WRITE=1 cargo test --release \
         -p flashatlas-nvme document"
    );
}

#[test]
fn codes_are_in_order_and_each_is_there_once() {
    for kind in support::Kind::ALL {
        let codes: Vec<u8> = support::rows(kind).iter().map(|row| row.code).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{kind:?}: {codes:x?}");
    }
}
