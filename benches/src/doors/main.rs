//! Clients of served drives, and a door over memory, for `benches/doors.py`.
//!
//! ```text
//! doors memory BYTES                        serve memory over NVMe/TCP until standard input ends
//! doors fill nvme ADDRESS:PORT NQN BYTES    write every byte once
//! doors read nvme ADDRESS:PORT NQN BYTES DEPTH SECONDS [polls]
//! doors fill nbd ADDRESS:PORT BYTES         the same over NBD
//! doors read nbd ADDRESS:PORT BYTES DEPTH SECONDS [polls]
//! ```
//!
//! `memory` prints an address and a name. `read` reads 4 KiB at random addresses with DEPTH reads
//! in flight. It prints a JSON object with the number of reads, the reads a second, and percentiles
//! of their latencies in microseconds. A client that `polls` does not sleep while it waits.

mod load;
mod memory;
mod nbd;
mod nvme;

use load::{Client, Failed};
use std::time::Instant;

/// Returns the time. Benchmarks may read the clock; the simulator may not.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

const USAGE: &str = "give memory BYTES, or fill or read with nvme ADDRESS:PORT NQN or \
                     nbd ADDRESS:PORT, BYTES and, to read, DEPTH, SECONDS and maybe polls";

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["memory", bytes] => memory::serve(bytes.parse()?),
        [what, "nvme", address, name, ref of @ ..] => {
            carry_out(nvme::Host::connect(address.parse()?, name, polls(of))?, what, of)
        }
        [what, "nbd", address, ref of @ ..] => {
            carry_out(nbd::Nbd::connect(address, polls(of))?, what, of)
        }
        _ => Err(USAGE.into()),
    }
}

/// Returns `true` if the client is not to sleep while it waits.
fn polls(words: &[&str]) -> bool {
    words.last() == Some(&"polls")
}

fn carry_out(mut client: impl Client, what: &str, of: &[&str]) -> Result<(), Failed> {
    match (what, of) {
        ("fill", [bytes]) => load::fill(&mut client, bytes.parse()?),
        ("read", [bytes, depth, seconds] | [bytes, depth, seconds, "polls"]) => {
            let (bytes, depth, seconds) = (bytes.parse()?, depth.parse()?, seconds.parse()?);
            println!("{}", load::read(&mut client, bytes, depth, seconds)?);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
