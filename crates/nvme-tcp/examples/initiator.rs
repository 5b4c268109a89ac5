//! A host that takes its commands from the lines of standard input, for tests in other languages.
//!
//! ```text
//! cargo run --release -p flashatlas-nvme-tcp --example initiator -- 127.0.0.1:4420 NQN HOSTNQN 1
//! ```
//!
//! The last argument is the first byte of the host's identifier. The program connects an admin
//! queue and an I/O queue, and prints `ok`. Each later line of input is a command. The program
//! answers each command with one line: `ok` with the bytes that the command returns as hexadecimal
//! digits, `status` with the status code type and code as four digits, or `gone` with a reason if
//! the connection has failed. Blocks have 512 bytes.

use flashatlas_nvme_tcp::initiator::{Controller, Data, Host, HostError, Options, QueuePair};
use std::io::{BufRead, Write};
use std::net::SocketAddr;

/// Bytes of a logical block.
const BLOCK: u32 = 512;
/// Offset of the property Controller Configuration.
const CONFIGURATION: u32 = 0x14;
/// Configuration of a controller that is enabled and asked for a normal shutdown.
const SHUT_DOWN: u64 = 1 | 1 << 14 | 6 << 16 | 4 << 20;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, subsystem, nqn, id] = &arguments[..] else {
        return Err("give ADDRESS:PORT, NQN, HOSTNQN and a number for the host".into());
    };
    let address: SocketAddr = address.parse()?;
    let host = Host { nqn: nqn.clone(), id: [id.parse()?; 16] };
    let connected = Controller::enabled(address, subsystem, &host, &Options::default())
        .and_then(|mut controller| controller.add_queue().map(|queue| (controller, queue)));
    let (mut controller, mut queue) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            say(&answer(Err(error)))?;
            return Ok(());
        }
    };
    say("ok")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        say(&answer(carry_out(&mut controller, &mut queue, &words)?))?;
    }
    Ok(())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn answer(done: Result<Vec<u8>, HostError>) -> String {
    match done {
        Ok(data) if data.is_empty() => "ok".into(),
        Ok(data) => {
            let digits: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("ok {digits}")
        }
        Err(HostError::Status(status)) => {
            format!("status {:02x}{:02x}", status >> 9 & 7, status >> 1 & 0xFF)
        }
        Err(error) => format!("gone {error}"),
    }
}

/// Carries out a command.
///
/// # Errors
/// Returns an error if the words are no command. The inner error is the answer of the controller.
fn carry_out(
    controller: &mut Controller,
    queue: &mut QueuePair,
    words: &[&str],
) -> Result<Result<Vec<u8>, HostError>, Failed> {
    let number = |word: &str| word.parse::<u64>();
    Ok(match words {
        ["read", first, blocks] => queue.read(number(first)?, number(blocks)? as u32, BLOCK),
        ["write", first, data] => io(queue, range(0x01, number(first)?, 0, false), bytes(data)?),
        ["fua", first, data] => io(queue, range(0x01, number(first)?, 0, true), bytes(data)?),
        ["compare", first, data] => io(queue, range(0x05, number(first)?, 0, false), bytes(data)?),
        ["zeroes", first, blocks] => {
            let entry = range(0x08, number(first)?, number(blocks)? as u32, false);
            io(queue, entry, Vec::new())
        }
        ["trim", first, blocks] => {
            let mut entry = range(0x09, 0, 0, false);
            entry[44] = 1 << 2; // deallocate
            let mut ranges = vec![0; 4];
            ranges.extend((number(blocks)? as u32).to_le_bytes());
            ranges.extend(number(first)?.to_le_bytes());
            executed(queue, entry, Data::Send(ranges))
        }
        ["flush"] => queue.flush().map(|()| Vec::new()),
        ["identify", structure, namespace] => {
            controller.identify(structure.parse()?, namespace.parse()?)
        }
        ["log", log, length] => controller.log_page(log.parse()?, length.parse()?),
        ["shutdown"] => controller.set_property(CONFIGURATION, SHUT_DOWN).map(|()| Vec::new()),
        _ => return Err(format!("{}: no such command", words.join(" ")).into()),
    })
}

/// Returns the entry of a command for blocks of namespace 1.
fn range(opcode: u8, first: u64, blocks: u32, fua: bool) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[4]) = (opcode, 1);
    entry[40..48].copy_from_slice(&first.to_le_bytes());
    let control = blocks.saturating_sub(1) | u32::from(fua) << 30;
    if opcode != 0x09 {
        entry[48..52].copy_from_slice(&control.to_le_bytes());
    }
    entry
}

/// Carries out a command for a range of blocks. If there is data, its length gives the number of
/// blocks.
fn io(queue: &mut QueuePair, mut entry: [u8; 64], data: Vec<u8>) -> Result<Vec<u8>, HostError> {
    if data.is_empty() {
        return executed(queue, entry, Data::None);
    }
    let blocks = (data.len() as u32 / BLOCK) as u16;
    entry[48..50].copy_from_slice(&(blocks - 1).to_le_bytes());
    executed(queue, entry, Data::Send(data))
}

fn executed(queue: &mut QueuePair, entry: [u8; 64], data: Data) -> Result<Vec<u8>, HostError> {
    queue.execute(entry, data).map(|completed| completed.data)
}

/// Returns bytes that are written as hexadecimal digits.
fn bytes(digits: &str) -> Result<Vec<u8>, Failed> {
    let at = |index: usize| Ok(u8::from_str_radix(&digits[index..index + 2], 16)?);
    (0..digits.len() / 2 * 2).step_by(2).map(at).collect()
}
