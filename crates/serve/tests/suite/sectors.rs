//! Versions that each sector of a served drive may hold after clients wrote and the power or the
//! host failed.

use crate::Still;
use flashatlas_serve::{Refused, Server};
use flashatlas_types::Rng;

pub const SECTOR: usize = 512;

/// Returns the content of a sector after write `number`. Number 0 stands for zeros.
fn sector(number: u64, at: usize) -> Vec<u8> {
    match number {
        0 => vec![0; SECTOR],
        _ => (0..SECTOR / 16)
            .flat_map(|_| [number.to_le_bytes(), (at as u64).to_le_bytes()].concat())
            .collect(),
    }
}

/// Numbers of the writes that each sector may hold. The last number is the present content.
pub struct Sectors {
    versions: Vec<Vec<u64>>,
    writes: u64,
    /// Number of answered commands that made something durable.
    pub durable: u64,
}

impl Sectors {
    /// Returns the sectors of a new drive.
    pub fn blank(server: &Server<Still>) -> Sectors {
        let sectors = server.bytes() as usize / SECTOR;
        Sectors { versions: vec![vec![0]; sectors], writes: 0, durable: 0 }
    }

    /// Returns, for a drive just powered on, the number of the write that each sector holds.
    ///
    /// Returns an error if a sector holds a write that it may not hold.
    pub fn found(&self, server: &Server<Still>) -> Result<Vec<u64>, Refused> {
        let mut all = vec![0; server.bytes() as usize];
        server.read(&mut all, 0)?;
        let held = self.versions.iter().zip(all.chunks_exact(SECTOR)).enumerate();
        held.map(|(at, (versions, found))| {
            let version = versions.iter().rev().find(|&&n| sector(n, at) == found);
            version.copied().ok_or_else(|| {
                let number = u64::from_le_bytes(found[..8].try_into().expect("eight"));
                let why = format!("sector {at} holds write {number}, not one of {versions:?}");
                Refused::Failed(why)
            })
        })
        .collect()
    }

    /// Notes that each sector holds exactly the write in `found` from now on.
    pub fn are(&mut self, found: Vec<u64>) {
        self.versions = found.into_iter().map(|version| vec![version]).collect();
    }

    /// Notes that everything was made durable.
    pub fn flushed(&mut self) {
        self.made_durable(0, self.versions.len());
    }

    fn made_durable(&mut self, at: usize, length: usize) {
        for versions in &mut self.versions[at..at + length] {
            versions.drain(..versions.len() - 1);
        }
    }

    /// Sends a command of a client. `meanwhile` is called with the versions that the sectors may
    /// hold until the command is answered.
    pub fn command(
        &mut self,
        server: &Server<Still>,
        rng: &mut Rng,
        meanwhile: impl FnOnce(&Sectors) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.writes += 1;
        let sectors = self.versions.len();
        let at = rng.below(sectors as u64) as usize;
        let most = if rng.below(8) == 0 { 40 } else { 6 };
        let length = (1 + rng.below(most) as usize).min(sectors - at);
        let (offset, bytes) = ((at * SECTOR) as u64, length * SECTOR);
        let (op, fua) = (rng.below(10), rng.below(6) == 0);
        let writes = match op {
            0..=5 => Some(self.writes),
            6 => Some(0),
            _ => None,
        };
        if let Some(version) = writes {
            self.versions[at..at + length].iter_mut().for_each(|v| v.push(version));
        }
        let now = |at: usize| sector(*self.versions[at].last().expect("one"), at);
        let right: Vec<u8> = (at..at + length).flat_map(now).collect();
        match op {
            0..=5 => server.write(&right, offset, fua)?,
            6 => server.zero(offset, bytes as u64, rng.below(2) == 0, fua)?,
            7 => server.flush()?,
            _ => {
                let mut out = vec![0; bytes];
                server.read(&mut out, offset)?;
                if out != right {
                    return Err(Refused::Failed(format!("sectors {at}+{length}: wrong")));
                }
            }
        }
        meanwhile(self)?;
        match (op, fua) {
            (0..=5, true) => self.made_durable(at, length),
            // a write of zeros with FUA flushes everything else, too
            (6, true) | (7, _) => self.flushed(),
            _ => return Ok(()),
        }
        self.durable += 1;
        Ok(())
    }
}
