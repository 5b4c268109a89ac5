//! Requests of ext4 to a drive for fsync and fdatasync: data in place, then the journal (jbd2,
//! `data=ordered`, `barrier=1`).
//!
//! A call for which metadata must be durable commits a transaction. The transaction consists of one
//! write of a descriptor block and the metadata blocks to the journal, a FLUSH, the commit block,
//! and a FLUSH. If the drive has FUA, the commit block is written with FUA, and no FLUSH follows
//! (`fs/jbd2/commit.c`: the commit block is written with preflush and FUA). Any other call sends a
//! FLUSH only.
//!
//! Metadata must be durable when blocks were allocated: by an append, or by the first write to a
//! preallocated file. After an fsync it must also be durable when the file's time of modification
//! has changed. This time changes at most once a tick of the kernel's clock (`fs/ext4/fsync.c`). An
//! fdatasync disregards that time.
//!
//! The journal is a ring of blocks. When a transaction does not fit the free part, a checkpoint
//! writes the metadata blocks home, each once. Then a FLUSH and a write of the journal's superblock
//! free the ring. All requests of a call follow each other, and each request waits for the request
//! before it.
//!
//! The model assumes that each call has a transaction of its own, which no other work joins. The
//! file system is as large as the drive. The metadata blocks of a file stay the same; their number
//! is `metadata_blocks` (by default three: the inode table block, a block bitmap and a group
//! descriptor).

use flashatlas_types::{
    ConfigError, Dur, HostOp, Lba, Param, ParamDef, Params, Ps, Request, SECTOR_BYTES,
};
use std::collections::BTreeSet;

/// The parameter `block_size`.
pub const BLOCK_SIZE: Param<u64> = Param::bytes(
    "block_size",
    1024,
    64 << 10,
    "bytes of a block of the file system (mkfs.ext4 -b)",
)
.or("4KiB");

const JOURNAL_SIZE: Param<u64> = Param::bytes(
    "journal_size",
    1 << 20,
    1 << 36,
    "bytes of the journal, at the end of the drive (mkfs.ext4 -J size=; mkfs.ext4 chooses 128 MiB \
     for 32 GiB and more)",
)
.or("128MiB");

const METADATA_BLOCKS: Param<u32> = Param::int(
    "metadata_blocks",
    1,
    200,
    "metadata blocks of a transaction: inode table, block bitmap, group descriptor",
)
.or("3");

const FUA: Param<bool> = Param::flag(
    "fua",
    "true: the commit block is written with FUA; false: a FLUSH follows the commit block (Linux \
     uses no FUA on SATA: libata.fua=0)",
)
.or("false");

const HZ: Param<u64> = Param::int(
    "hz",
    24,
    10_000,
    "ticks of the kernel's clock in a second; the time of modification changes at most once in a \
     tick",
)
.or("250");

/// Parameters of the file system, named as mkfs.ext4 and mount name them.
pub const PARAMS: [ParamDef; 5] =
    [BLOCK_SIZE.def, JOURNAL_SIZE.def, METADATA_BLOCKS.def, FUA.def, HZ.def];

/// The file system on a drive.
#[derive(Clone, Debug)]
pub struct Ext4 {
    block_sectors: u64,
    metadata_blocks: u32,
    fua: bool,
    tick: Dur,
    /// First sector of the journal.
    journal: u64,
    /// Number of blocks of the journal; block 0 is its superblock.
    journal_blocks: u64,
    /// Block of the journal that is written next.
    next: u64,
    /// Number of free blocks in the journal.
    free: u64,
    /// First sector of the homes of metadata blocks.
    homes: u64,
    /// Numbers of the homes whose metadata block has a newer version in the journal.
    dirty: BTreeSet<u64>,
    commits: u64,
    checkpoints: u64,
}

impl Ext4 {
    /// Returns a file system with `files` files on a drive of `capacity_sectors` sectors. Each file
    /// has its own metadata blocks.
    ///
    /// # Errors
    /// Returns an error if the block size is no power of two, or if the drive has no room for the
    /// journal and the metadata.
    pub fn new(params: &Params, capacity_sectors: u64, files: u64) -> Result<Ext4, ConfigError> {
        let sector = u64::from(SECTOR_BYTES);
        let block = params.get(BLOCK_SIZE);
        if !block.is_power_of_two() {
            return Err(ConfigError::new(
                "block_size",
                format!("{block} bytes are not a power of two"),
            ));
        }
        let journal_blocks = params.get(JOURNAL_SIZE) / block;
        let metadata_blocks = params.get(METADATA_BLOCKS);
        let block_sectors = block / sector;
        let needed = (journal_blocks + files * u64::from(metadata_blocks)) * block_sectors;
        let end = capacity_sectors / block_sectors * block_sectors;
        if needed >= end {
            let why = format!(
                "the journal of {} bytes and the metadata do not fit the drive of {} bytes",
                params.get(JOURNAL_SIZE),
                capacity_sectors * sector
            );
            return Err(ConfigError::new("journal_size", why));
        }
        Ok(Ext4 {
            block_sectors,
            metadata_blocks,
            fua: params.get(FUA),
            tick: Dur(1_000_000_000_000 / params.get(HZ)),
            journal: end - journal_blocks * block_sectors,
            journal_blocks,
            next: 1,
            free: journal_blocks - 1,
            homes: end - needed,
            dirty: BTreeSet::new(),
            commits: 0,
            checkpoints: 0,
        })
    }

    /// Returns the number of sectors that files may use: all before the metadata and the journal.
    pub fn data_sectors(&self) -> u64 {
        self.homes
    }

    /// Returns the number of the tick of the kernel's clock at `now`.
    pub fn tick(&self, now: Ps) -> u64 {
        now.0 / self.tick.0
    }

    /// Returns the number of transactions committed, and the number of checkpoints.
    pub fn counts(&self) -> (u64, u64) {
        (self.commits, self.checkpoints)
    }

    /// Appends the requests of a call for which the metadata of `files` must be durable. The caller
    /// has already written the data.
    pub fn commit(&mut self, files: &[u64], out: &mut Vec<Request>) {
        let homes =
            files.iter().flat_map(|f| (0..u64::from(self.metadata_blocks)).map(move |b| (f, b)));
        let homes: BTreeSet<u64> =
            homes.map(|(f, b)| f * u64::from(self.metadata_blocks) + b).collect();
        let blocks = homes.len() as u64 + 2;
        if blocks > self.free {
            self.checkpoint(out);
        }
        self.commits += 1;
        // descriptor and metadata are one run of blocks; the end of the ring cuts the run in two
        self.append(blocks - 1, false, out);
        out.push(FLUSH);
        self.append(1, self.fua, out);
        if !self.fua {
            out.push(FLUSH);
        }
        self.dirty.extend(homes);
    }

    /// Appends the request of a call for which no metadata must be durable.
    pub fn flush(&self, out: &mut Vec<Request>) {
        out.push(FLUSH);
    }

    /// Writes `blocks` blocks to the journal.
    fn append(&mut self, blocks: u64, fua: bool, out: &mut Vec<Request>) {
        let mut left = blocks;
        while left > 0 {
            let run = left.min(self.journal_blocks - self.next);
            out.push(self.write(self.journal + self.next * self.block_sectors, run, fua));
            self.next += run;
            if self.next == self.journal_blocks {
                self.next = 1;
            }
            left -= run;
        }
        self.free -= blocks;
    }

    /// Writes the metadata blocks to their homes, and frees the journal.
    fn checkpoint(&mut self, out: &mut Vec<Request>) {
        self.checkpoints += 1;
        let homes = std::mem::take(&mut self.dirty);
        out.extend(
            homes.iter().map(|home| self.write(self.homes + home * self.block_sectors, 1, false)),
        );
        out.push(FLUSH);
        out.push(self.write(self.journal, 1, self.fua));
        if !self.fua {
            out.push(FLUSH);
        }
        self.free = self.journal_blocks - 1;
    }

    fn write(&self, sector: u64, blocks: u64, fua: bool) -> Request {
        // a transaction has a few hundred blocks at most
        let sectors = (blocks * self.block_sectors) as u32;
        Request { at: Ps::ZERO, op: HostOp::Write, lba: Lba(sector), sectors, fua }
    }
}

/// A FLUSH.
pub const FLUSH: Request =
    Request { at: Ps::ZERO, op: HostOp::Flush, lba: Lba(0), sectors: 0, fua: false };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse;

    fn ext4(settings: &str) -> Ext4 {
        let params = parse(settings, "ext4", &PARAMS).unwrap();
        Ext4::new(&params, 1 << 20, 1).unwrap()
    }

    fn words(requests: &[Request]) -> String {
        let word = |r: &Request| match r.op {
            HostOp::Flush => "F".to_owned(),
            _ => format!("W{}@{}{}", r.sectors / 8, r.lba.0 / 8, if r.fua { "!" } else { "" }),
        };
        requests.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// 2^20 sectors are 131,072 blocks: the journal of 256 blocks begins at 130,816, the metadata
    /// before it at 130,813.
    #[test]
    fn a_commit_is_descriptor_and_metadata_flush_commit_block_flush() {
        let mut fs = ext4("journal_size=1MiB");
        let mut out = Vec::new();
        fs.commit(&[0], &mut out);
        assert_eq!(words(&out), "W4@130817 F W1@130821 F");
        out.clear();
        fs.commit(&[0], &mut out);
        assert_eq!(words(&out), "W4@130822 F W1@130826 F");
        assert_eq!(fs.data_sectors(), 130_813 * 8);
    }

    #[test]
    fn fua_saves_the_second_flush() {
        let mut out = Vec::new();
        ext4("journal_size=1MiB,fua=true,metadata_blocks=1").commit(&[0], &mut out);
        assert_eq!(words(&out), "W2@130817 F W1@130819!");
    }

    /// 255 blocks of ring hold 51 transactions of five; the next one begins with a checkpoint. The
    /// ring has gone round to its first block by then.
    #[test]
    fn a_full_journal_is_checkpointed() {
        let mut fs = ext4("journal_size=1MiB");
        let mut out = Vec::new();
        for _ in 0..51 {
            out.clear();
            fs.commit(&[0], &mut out);
        }
        assert_eq!(words(&out), "W4@131067 F W1@131071 F");
        out.clear();
        fs.commit(&[0], &mut out);
        assert_eq!(
            words(&out),
            "W1@130813 W1@130814 W1@130815 F W1@130816 F W4@130817 F W1@130821 F"
        );
        assert_eq!(fs.counts(), (52, 1));
    }

    /// 42 transactions of six blocks leave three of 255 blocks free. The next transaction
    /// checkpoints, and the end of the ring cuts its run in two.
    #[test]
    fn a_run_goes_round_the_ring() {
        let mut fs = ext4("journal_size=1MiB,metadata_blocks=4");
        let mut out = Vec::new();
        for _ in 0..43 {
            out.clear();
            fs.commit(&[0], &mut out);
        }
        assert!(words(&out).ends_with("F W3@131069 W2@130817 F W1@130819 F"), "{}", words(&out));
    }

    #[test]
    fn a_drive_needs_room_for_the_journal() {
        let params = parse("", "ext4", &PARAMS).unwrap();
        assert!(
            Ext4::new(&params, 1 << 18, 1)
                .unwrap_err()
                .to_string()
                .contains("do not fit the drive")
        );
    }
}
