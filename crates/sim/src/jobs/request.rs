//! A request of a job, or of the file system under it, on its way to the drive and back.

use flashatlas_types::Request;
use flashatlas_workload::fio::Direction;

/// A request between its job and its completion.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub job: usize,
    pub kind: RequestKind,
    pub request: Request,
    pub bytes: u64,
    /// The file of the job and the byte in it, of data.
    pub place: (u32, u64),
    /// The job waits for it.
    pub call: bool,
}

/// Purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestKind {
    /// Data of a job.
    Data(Direction),
    Fsync,
    Fdatasync,
    /// The fsync at the end of a pass, which fio does not count.
    EndSync,
    /// A part of a transaction of the file system, for whichever jobs wait for it.
    Journal,
}
