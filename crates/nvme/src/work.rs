//! Commands that need the media, carried out without the controller.

use crate::{ControllerId, Health, Later, Media, MediaError, Status, Vitals};
use flashatlas_types::SeededBug;

/// Maximum number of bytes of a small read or write.
const SMALL: u64 = 64 << 10;
/// Bytes that zeroing, comparing and verifying take at a time.
const PIECE: usize = 1 << 16;

/// Identifier of a command in flight, unique while its subsystem lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    pub(crate) controller: ControllerId,
    pub(crate) number: u64,
}

/// Work of a command on the media. Ranges are bytes inside the namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// With `first_durable`, the content of the cache is made durable before the read (FUA of a
    /// read).
    Read {
        offset: u64,
        bytes: u64,
        first_durable: bool,
    },
    Write {
        offset: u64,
        bytes: u64,
        fua: bool,
    },
    Zero {
        offset: u64,
        bytes: u64,
        unit: u64,
        trim: bool,
        durable: bool,
    },
    Trim {
        ranges: Vec<(u64, u64)>,
        durable: bool,
    },
    Compare {
        offset: u64,
        bytes: u64,
        first_durable: bool,
    },
    Verify {
        offset: u64,
        bytes: u64,
        first_durable: bool,
    },
    Flush,
    Health,
}

/// A command that is decided and waits for the media.
///
/// [`IoCommand::carry_out`] needs no controller. Its result goes to
/// [`crate::Subsystem::finish`].
#[must_use = "the host waits for its completion"]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoCommand {
    pub(crate) ticket: Ticket,
    pub(crate) work: Work,
}

/// Result of a command on the media.
#[must_use = "the host waits for its completion"]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoResult {
    pub(crate) ticket: Ticket,
    pub(crate) outcome: Result<Option<Box<Health>>, Failure>,
    /// Vitals after a command that changes the media.
    pub(crate) vitals: Option<Vitals>,
}

/// A small command that the media have accepted.
#[derive(Debug)]
pub enum Submitted {
    /// The command is complete.
    Done(IoResult),
    /// The command completes later: [`IoCommand::complete`] waits for the completion.
    Later(Later),
}

/// Reason why work on the media failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    Media {
        error: MediaError,
        writes: bool,
    },
    Mismatch,
    /// The transport handed over less data than the command transfers.
    Data,
}

impl Failure {
    pub const fn status(self) -> Status {
        match self {
            Failure::Mismatch => Status::COMPARE_FAILURE,
            Failure::Data => Status::DATA_TRANSFER_ERROR,
            Failure::Media { error: MediaError::OutOfSpace, .. } => Status::CAPACITY_EXCEEDED,
            Failure::Media { error: MediaError::ReadOnly, .. } => Status::WRITE_PROTECTED,
            Failure::Media { error: MediaError::Unreadable, .. } => Status::UNRECOVERED_READ,
            Failure::Media { error: MediaError::Other, writes: true } => Status::WRITE_FAULT,
            Failure::Media { .. } => Status::INTERNAL_ERROR,
        }
    }
}

impl IoCommand {
    /// Returns the identifier of the command. A transport may remember the command by it.
    pub const fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns `true` for a read or write of at most 64 KiB that makes nothing durable. Media that
    /// are free accept it without a wait ([`Media::is_free`]).
    pub fn is_small(&self) -> bool {
        match self.work {
            Work::Read { bytes, first_durable: durable, .. }
            | Work::Write { bytes, fua: durable, .. } => bytes <= SMALL && !durable,
            _ => false,
        }
    }

    /// Hands the command to the media, without a wait for its completion if the command is small.
    /// The arguments are the same as for [`IoCommand::carry_out`].
    pub fn submit<M: Media + ?Sized>(
        &self,
        media: &mut M,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Submitted {
        if !self.is_small() {
            return Submitted::Done(self.carry_out(media, data, out));
        }
        out.clear();
        let writes = self.work.changes();
        let taken = match self.work {
            Work::Read { offset, bytes, .. } => {
                out.resize(bytes as usize, 0);
                media.submit_read(offset, out)
            }
            Work::Write { offset, bytes, .. } => match data.get(..bytes as usize) {
                Some(data) => media.submit_write(offset, data),
                None => return Submitted::Done(self.result(media, Err(Failure::Data), out)),
            },
            _ => unreachable!("no other command is small"),
        };
        match taken {
            Ok(Some(later)) => Submitted::Later(later),
            Ok(None) => Submitted::Done(self.result(media, Ok(None), out)),
            Err(error) => {
                let failure = Failure::Media { error, writes };
                Submitted::Done(self.result(media, Err(failure), out))
            }
        }
    }

    /// Waits for a command that the media have accepted. `out` is the buffer from
    /// [`IoCommand::submit`].
    pub fn complete<M: Media + ?Sized>(
        &self,
        media: &mut M,
        later: Later,
        out: &mut Vec<u8>,
    ) -> IoResult {
        let writes = self.work.changes();
        let waited = media.wait(later).map(|()| None);
        self.result(media, waited.map_err(|error| Failure::Media { error, writes }), out)
    }

    /// Carries the command out; may wait as long as the media do.
    ///
    /// `data` has the bytes from the host that [`crate::Subsystem::begin`] got. `out` receives the
    /// bytes that the command returns; the earlier content of `out` is lost.
    pub fn carry_out<M: Media + ?Sized>(
        &self,
        media: &mut M,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> IoResult {
        out.clear();
        let outcome = self.work.carry_out(media, data, out);
        self.result(media, outcome, out)
    }

    fn result<M: Media + ?Sized>(
        &self,
        media: &mut M,
        outcome: Result<Option<Box<Health>>, Failure>,
        out: &mut Vec<u8>,
    ) -> IoResult {
        if outcome.is_err() {
            out.clear();
        }
        let vitals = self.work.changes().then(|| media.vitals());
        IoResult { ticket: self.ticket, outcome, vitals }
    }
}

impl Work {
    /// Returns `true` if the work changes the media, or makes changes durable.
    pub const fn changes(&self) -> bool {
        matches!(self, Work::Write { .. } | Work::Zero { .. } | Work::Trim { .. } | Work::Flush)
    }

    fn carry_out<M: Media + ?Sized>(
        &self,
        media: &mut M,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Health>>, Failure> {
        let writes = self.changes();
        let failed = |error| Failure::Media { error, writes };
        if let Work::Read { first_durable: true, .. }
        | Work::Compare { first_durable: true, .. }
        | Work::Verify { first_durable: true, .. } = self
        {
            media.flush().map_err(|error| Failure::Media { error, writes: true })?;
        }
        match *self {
            Work::Read { offset, bytes, .. } => {
                out.resize(bytes as usize, 0);
                media.read(offset, out).map_err(failed)?;
            }
            Work::Write { offset, bytes, fua } => {
                let data = data.get(..bytes as usize).ok_or(Failure::Data)?;
                if SeededBug::UnitInPieces.is_active() {
                    for (at, block) in (offset..).step_by(512).zip(data.chunks(512)) {
                        media.write(at, block, fua).map_err(failed)?;
                    }
                } else {
                    media.write(offset, data, fua).map_err(failed)?;
                }
            }
            Work::Zero { offset, bytes, unit, trim, durable } => {
                zero(media, offset..offset + bytes, trim.then_some(unit), durable)
                    .map_err(failed)?;
            }
            Work::Trim { ref ranges, durable } => {
                for &(offset, bytes) in ranges {
                    media.trim(offset, bytes).map_err(failed)?;
                }
                if durable {
                    media.flush().map_err(failed)?;
                }
            }
            Work::Compare { offset, bytes, .. } => {
                let data = data.get(..bytes as usize).ok_or(Failure::Data)?;
                compare(media, offset, data)?;
            }
            Work::Verify { offset, bytes, .. } => {
                verify(media, offset, bytes).map_err(failed)?;
            }
            Work::Flush => media.flush().map_err(failed)?,
            Work::Health => return Ok(Some(Box::new(media.health()))),
        }
        Ok(None)
    }
}

/// Makes a range read as zeros. If `unit` is given, the units that lie in the range as a whole are
/// trimmed. Zeros are written elsewhere.
fn zero<M: Media + ?Sized>(
    media: &mut M,
    range: std::ops::Range<u64>,
    unit: Option<u64>,
    durable: bool,
) -> Result<(), MediaError> {
    let write = |media: &mut M, mut from: u64, to: u64| {
        while from < to {
            let bytes = (to - from).min(PIECE as u64);
            media.write(from, &ZEROS[..bytes as usize], durable)?;
            from += bytes;
        }
        Ok(())
    };
    if let Some(unit) = unit {
        let (first, last) = (range.start.next_multiple_of(unit), range.end / unit * unit);
        if first < last {
            write(media, range.start, first)?;
            media.trim(first, last - first)?;
            write(media, last, range.end)?;
            let durable = durable && !SeededBug::ZeroesNotDurable.is_active();
            return if durable { media.flush() } else { Ok(()) };
        }
    }
    write(media, range.start, range.end)
}

static ZEROS: [u8; PIECE] = [0; PIECE];

fn compare<M: Media + ?Sized>(media: &mut M, offset: u64, data: &[u8]) -> Result<(), Failure> {
    let data = if SeededBug::CompareFirstBlock.is_active() { &data[..512] } else { data };
    let mut held = vec![0; data.len().min(PIECE)];
    let mut at = offset;
    for expected in data.chunks(PIECE) {
        let held = &mut held[..expected.len()];
        media.read(at, held).map_err(|error| Failure::Media { error, writes: false })?;
        if held != expected {
            return Err(Failure::Mismatch);
        }
        at += expected.len() as u64;
    }
    Ok(())
}

fn verify<M: Media + ?Sized>(media: &mut M, offset: u64, bytes: u64) -> Result<(), MediaError> {
    let mut held = vec![0; PIECE.min(bytes as usize)];
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let piece = (end - at).min(PIECE as u64);
        media.read(at, &mut held[..piece as usize])?;
        at += piece;
    }
    Ok(())
}
