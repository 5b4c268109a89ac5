//! A request of a job.

/// Direction of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
}

impl Direction {
    /// All directions, in the order of their indices.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// Returns `read`, `write` or `trim`.
    pub const fn name(self) -> &'static str {
        ["read", "write", "trim"][self as usize]
    }
}

/// A read, write or trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRequest {
    /// Direction of the request.
    pub direction: Direction,
    /// Number of the file among the files of the job.
    pub file: u32,
    /// First byte in the file.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}
