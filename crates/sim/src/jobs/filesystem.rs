//! A file system between jobs and drive.
//!
//! The file system decides which calls of fsync and fdatasync must commit a transaction, and which
//! calls share a transaction. [`Ext4`] makes the requests of a transaction.
//!
//! Data goes to the drive when a job writes it, as with `direct=1`. The first write to a block of a
//! file allocates the block (or converts a preallocated block), so the next sync must commit. Later
//! writes overwrite the block. While a transaction is being committed, further calls wait, and all
//! of them share the next transaction.

use super::request::RequestKind;
use crate::RunError;
use crate::notes::EXT4_ORDERED;
use fixedbitset::FixedBitSet;
use flashatlas_fio::Layout;
use flashatlas_types::{Lba, Note, Param, ParamDef, Ps, Request, SECTOR_BYTES, Text};
use flashatlas_workload::ext4::BLOCK_SIZE;
use flashatlas_workload::ext4::{self, Ext4};
use flashatlas_workload::settings_of;
use std::collections::{BTreeMap, VecDeque};

const FILES: Param<Text> = Param::choice(
    "files",
    &["new", "written"],
    "state of the files: the first write to a block allocates the block (`new`), or all blocks are \
     allocated, so every write overwrites (`written`)",
)
.or("new");

const PARAMS: [ParamDef; 6] = [
    ext4::PARAMS[0],
    ext4::PARAMS[1],
    ext4::PARAMS[2],
    ext4::PARAMS[3],
    ext4::PARAMS[4],
    FILES.def,
];

/// A call that waits for a transaction.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub job: usize,
    pub kind: RequestKind,
    pub since: Ps,
    pub files: Vec<u64>,
}

/// State of a file since its last commit.
#[derive(Clone, Copy, Default, Debug)]
struct File {
    allocated: bool,
    /// Tick of the last write.
    written: Option<u64>,
    /// Tick of the last write that a transaction covers.
    committed: Option<u64>,
}

/// The file system of a run.
pub(super) struct FileSystem {
    ext4: Ext4,
    /// Numbers of the files, by the byte of the drive at which they begin.
    numbers: BTreeMap<u64, u64>,
    files: Vec<File>,
    /// Blocks of the drive that were allocated to files; `None` if all blocks were.
    allocated: Option<FixedBitSet>,
    block_bytes: u64,
    /// The calls whose transaction is being committed, and the transaction's unsent requests.
    committing: Option<(Vec<Member>, VecDeque<Request>)>,
    waiting: Vec<Member>,
}

impl FileSystem {
    /// Returns the file system that `text` describes.
    ///
    /// The jobs are laid out as `layout` on a drive of `capacity` sectors.
    ///
    /// # Errors
    /// Returns an error for a file system other than ext4, for unknown parameters, and for a drive
    /// that is too small.
    pub fn new(text: &str, layout: &Layout, capacity: u64) -> Result<FileSystem, RunError> {
        let params = settings_of(text, &["ext4"], "filesystem", &PARAMS)?;
        let starts = layout.jobs.iter().flat_map(|job| &job.files).map(|file| file.start);
        let mut numbers = BTreeMap::new();
        for start in starts {
            let next = numbers.len() as u64;
            numbers.entry(start).or_insert(next);
        }
        let ext4 = Ext4::new(&params, capacity, numbers.len() as u64)?;
        let block_bytes = params.get(BLOCK_SIZE);
        let blocks = (capacity * u64::from(SECTOR_BYTES)).div_ceil(block_bytes);
        Ok(FileSystem {
            files: vec![File::default(); numbers.len()],
            allocated: (params.get(FILES) == "new")
                .then(|| FixedBitSet::with_capacity(blocks as usize)),
            ext4,
            numbers,
            block_bytes,
            committing: None,
            waiting: Vec::new(),
        })
    }

    /// Returns the bytes that files may use.
    pub fn data_bytes(&self) -> u64 {
        self.ext4.data_sectors() * u64::from(SECTOR_BYTES)
    }

    /// Notes a job's write to the file that begins at `start`, and returns the file's number.
    pub fn wrote(&mut self, start: u64, lba: Lba, sectors: u32, now: Ps) -> u64 {
        let number = self.numbers[&start];
        let file = &mut self.files[number as usize];
        file.written = Some(self.ext4.tick(now));
        if let Some(allocated) = &mut self.allocated {
            let sector = u64::from(SECTOR_BYTES);
            let first = lba.0 * sector / self.block_bytes;
            let end = ((lba.0 + u64::from(sectors)) * sector).div_ceil(self.block_bytes);
            for block in first..end {
                file.allocated |= !allocated.put(block as usize);
            }
        }
        number
    }

    /// Returns `true` if a call must commit a transaction.
    pub fn must_commit(&self, member: &Member) -> bool {
        let needs = |file: &File| {
            file.allocated
                || (member.kind != RequestKind::Fdatasync && file.written != file.committed)
        };
        member.files.iter().any(|&f| needs(&self.files[f as usize]))
    }

    /// Commits a call, and returns the first request of its transaction.
    ///
    /// Returns `None` if the call waits for another transaction.
    pub fn commit(&mut self, member: Member) -> Option<Request> {
        self.waiting.push(member);
        if self.committing.is_some() { None } else { self.begin() }
    }

    /// Begins a transaction for all calls that wait.
    fn begin(&mut self) -> Option<Request> {
        let members = std::mem::take(&mut self.waiting);
        if members.is_empty() {
            return None;
        }
        let files: Vec<u64> = members.iter().flat_map(|m| m.files.iter().copied()).collect();
        for &number in &files {
            let file = &mut self.files[number as usize];
            (file.allocated, file.committed) = (false, file.written);
        }
        let mut requests = Vec::new();
        self.ext4.commit(&files, &mut requests);
        let mut rest = VecDeque::from(requests);
        let first = rest.pop_front();
        self.committing = Some((members, rest));
        first
    }

    /// Notes that a request of the transaction is complete.
    ///
    /// Returns the next request, which belongs to this or the following transaction, and the calls
    /// whose transaction is complete.
    pub fn proceed(&mut self) -> (Option<Request>, Vec<Member>) {
        let (_, rest) = self.committing.as_mut().expect("a transaction is being committed");
        if let Some(next) = rest.pop_front() {
            return (Some(next), Vec::new());
        }
        let (members, _) = self.committing.take().expect("just seen");
        (self.begin(), members)
    }

    /// Returns a note with the counts of transactions and checkpoints.
    pub fn summary(&self) -> Note {
        let (commits, checkpoints) = self.ext4.counts();
        EXT4_ORDERED.with([("transactions", commits.into()), ("checkpoints", checkpoints.into())])
    }
}
