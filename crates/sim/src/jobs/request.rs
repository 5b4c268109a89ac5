//! A request of a job, or of the file system under it, on its way to the drive and back.

use flashatlas_fio::Direction;
use flashatlas_types::Request;

/// A request between its job and its completion.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub job: usize,
    pub kind: RequestKind,
    pub request: Request,
    pub bytes: u64,
    /// For data, the number of the job's file and the byte offset in this file.
    pub place: (u32, u64),
    /// `true` if the job waits for the request, as for a system call.
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
    /// A part of a transaction of the file system, for all jobs that wait for the transaction.
    Journal,
}
