//! Tests that compare aged drives with an array of bytes. Clients write, trim and read any sectors.
//!
//! Collection moves pages of the precondition, which have no bytes, together with pages that
//! clients wrote.

use crate::aged::preconditioned;
use crate::sectors::SECTOR;
use crate::{Still, drives_on, plan, powered_on};
use flashatlas_device::DriveConfig;
use flashatlas_fixtures::proofs::one_in;
use flashatlas_serve::{Memory, Refused, ServeSpec, Server};
use flashatlas_sim::Precondition;
use flashatlas_types::{Rng, Seed};
use serde_json::Value;
use tempfile::tempdir;

/// Bytes that are written, as a multiple of the flash's size. They suffice to collect every block
/// several times.
const TIMES: u64 = 4;

/// Least average number of erases of a block that the test must reach.
const ERASES: u64 = 3;

/// Variant of a test: with or without an image on disk, and with or without FLUSH and FUA.
#[derive(Clone, Copy, Debug)]
struct Kept {
    on_disk: bool,
    flushes: bool,
}

const KEPT: [Kept; 3] = [
    Kept { on_disk: true, flushes: false },
    Kept { on_disk: true, flushes: true },
    Kept { on_disk: false, flushes: false },
];

/// A client, with the expected value of each byte of its drive.
struct Client {
    expected: Vec<u8>,
    /// Sectors of units that were trimmed and not written since. After a mount, they may hold old
    /// data.
    trimmed: Vec<bool>,
    unit: usize,
    writes: u64,
    rng: Rng,
}

impl Client {
    /// Returns a client of a drive whose bytes are all zeros.
    fn of(server: &Server<Still>) -> Client {
        let bytes = server.bytes() as usize;
        Client {
            expected: vec![0; bytes],
            trimmed: vec![false; bytes / SECTOR],
            unit: server.unit_bytes() as usize,
            writes: 0,
            rng: Rng::stream(Seed(7), "aged.client"),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.rng.below(end as u64) as usize
    }

    fn write(
        &mut self,
        server: &Server<Still>,
        at: usize,
        bytes: usize,
        fua: bool,
    ) -> Result<(), Refused> {
        self.writes += 1;
        // no two writes write the same bytes, so a stale page differs from the right page
        let data: Vec<u8> = self.writes.to_le_bytes().into_iter().cycle().take(bytes).collect();
        self.expected[at..at + bytes].copy_from_slice(&data);
        self.trimmed[at / SECTOR..(at + bytes) / SECTOR].fill(false);
        server.write(&data, at as u64, fua)
    }

    fn trim(&mut self, server: &Server<Still>, at: usize, bytes: usize) -> Result<(), Refused> {
        let first = at.next_multiple_of(self.unit);
        let end = (at + bytes) / self.unit * self.unit;
        if first < end {
            self.expected[first..end].fill(0);
            self.trimmed[first / SECTOR..end / SECTOR].fill(true);
        }
        server.trim(at as u64, bytes as u64, false)
    }

    fn read(&self, server: &Server<Still>, at: usize, bytes: usize) -> Result<(), Refused> {
        let mut found = vec![0xee; bytes];
        server.read(&mut found, at as u64)?;
        let wrong = found.iter().zip(&self.expected[at..]).position(|(found, held)| found != held);
        match wrong {
            Some(wrong) => Err(Refused::Failed(format!("byte {} is another", at + wrong))),
            None => Ok(()),
        }
    }

    fn reads_all(&self, server: &Server<Still>) -> Result<(), Refused> {
        self.read(server, 0, self.expected.len())
    }

    /// Writes a number of bytes, in commands of up to three units that begin anywhere.
    fn play(&mut self, server: &Server<Still>, bytes: u64, flushes: bool) -> Result<(), Refused> {
        let (sectors, mut left) = (self.trimmed.len(), bytes as i64);
        while left > 0 {
            let at = self.below(sectors);
            let most = 3 * self.unit / SECTOR;
            let length = (1 + self.below(most)).min(sectors - at);
            let (at, length) = (at * SECTOR, length * SECTOR);
            match self.rng.below(10) {
                0 => self.trim(server, at, length)?,
                1 | 2 => self.read(server, at, length)?,
                op => {
                    self.write(server, at, length, flushes && op == 3)?;
                    left -= length as i64;
                }
            }
            if flushes && self.rng.below(50) == 0 {
                server.flush()?;
            }
        }
        Ok(())
    }

    /// Writes all trimmed sectors, so that a mount can find only one content for each.
    fn write_trimmed(&mut self, server: &Server<Still>) -> Result<(), Refused> {
        for at in 0..self.trimmed.len() {
            if self.trimmed[at] {
                self.write(server, at * SECTOR, SECTOR, false)?;
            }
        }
        Ok(())
    }
}

/// Ends the serving of a drive, and returns its record.
fn ended(server: &Server<Still>) -> Result<Value, Refused> {
    let ended = server.end();
    match ended.complaint {
        Some(why) => Err(Refused::Failed(why)),
        None => Ok(ended.record.expect("a drive that did not fail has a record")["record"].clone()),
    }
}

fn erases(record: &Value) -> u64 {
    let by_cause = record["nand"]["erases"].as_object().expect("erases by cause");
    by_cause.values().filter_map(Value::as_u64).sum()
}

/// Serves a drive. If it is on disk, mounts and serves it a second time. Returns the average number
/// of erases of a block.
fn serve(config: &DriveConfig, plan: &ServeSpec, kept: Kept) -> Result<u64, String> {
    let said = |why: Refused| why.to_string();
    let disk = Memory::default();
    let server = if kept.on_disk {
        powered_on(plan, disk.clone())
    } else {
        Server::begin(plan, Still::default())
    };
    let server = server.map_err(|e| e.to_string())?;
    let layout = config.layout().expect("it was built");
    let flash = u64::from(layout.slots()) * u64::from(layout.unit_bytes);
    let mut client = Client::of(&server);
    let half = TIMES * flash / 2;
    client.play(&server, half, kept.flushes).map_err(said)?;
    client.reads_all(&server).map_err(said)?;
    let mut count = 0;
    let server = if kept.on_disk {
        client.write_trimmed(&server).map_err(said)?;
        count += erases(&ended(&server).map_err(said)?);
        let mounted =
            ServeSpec { checkpoint: None, precondition: Precondition::None, ..plan.clone() };
        powered_on(&mounted, disk).map_err(|e| e.to_string())?
    } else {
        server
    };
    client.reads_all(&server).map_err(said)?;
    client.play(&server, half, kept.flushes).map_err(said)?;
    client.reads_all(&server).map_err(said)?;
    let record = ended(&server).map_err(said)?;
    assert_eq!(record["oracle"]["violations"], 0);
    Ok((count + erases(&record)) / u64::from(layout.blocks()))
}

/// Tests every scheme and store, blank, filled and steady, with and without a write cache, on one
/// die and on four, in an image and in memory only.
#[test]
fn aged_drives_hold_what_clients_wrote() {
    let (mut served, mut steady, mut number) = (0, 0, 0);
    let all = one_in() == 1;
    let (mut few, mut wrong) = (Vec::new(), Vec::new());
    for geometry in ["mini", "square", "lanes"] {
        for (name, config) in drives_on(geometry).iter().filter(|(_, c)| c.layers().is_empty()) {
            for how in ["none", "fill", "steady"] {
                let folder = tempdir().unwrap();
                let has_state = config.scheme().steady_state(&config.scheme_config()).is_ok();
                if how == "steady" && !has_state {
                    continue;
                }
                let aged = match how {
                    "none" => plan(config, &folder.path().join("unused")),
                    how => preconditioned(config, folder.path(), how)
                        .unwrap_or_else(|e| panic!("{geometry}, {name}, {how}: {e}")),
                };
                let aged = ServeSpec { image: None, ..aged };
                for kept in KEPT {
                    number += 1;
                    // without flushes, changes wait longest in memory
                    let always = how != "none" && kept.on_disk && !kept.flushes;
                    if !all && number % (if always { 3 } else { 24 }) != 0 {
                        continue;
                    }
                    let which = format!("{geometry}, {name}, {how}, {kept:?}");
                    match serve(config, &aged, kept) {
                        Ok(erases) if erases < ERASES => few.push(format!("{which}: {erases}")),
                        Ok(_) => {}
                        // a checkpoint can only hold map pages of equal length
                        Err(why) if why.contains("pages in ascending slots") => continue,
                        Err(why) => wrong.push(format!("{which}: {why}")),
                    }
                    served += 1;
                    steady += u32::from(how == "steady");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {served}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(few.is_empty(), "blocks were collected too seldom:\n{}", few.join("\n"));
    let least = if all { (300, 30) } else { (40, 4) };
    assert!(served > least.0 && steady > least.1, "{served}, {steady}");
}
