//! Error log of a controller (Base 5.1.12.1.2).

use crate::bytes::Page;
use crate::{CommandId, Entry, NamespaceId, QueueId, Status};
use std::collections::VecDeque;

/// Entries that the log keeps.
pub(crate) const ENTRIES: usize = 64;
/// Bytes of an entry.
const ENTRY: usize = 64;

/// A refusal: the status, and the field of the command at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub status: Status,
    /// Byte of the command, and bit in it.
    pub place: Option<(u8, u8)>,
}

impl From<Status> for Refused {
    fn from(status: Status) -> Refused {
        Refused { status, place: None }
    }
}

/// Returns the refusal of a field that begins at this bit of a command dword.
pub(crate) const fn invalid(dword: u8, bit: u8) -> Refused {
    Status::INVALID_FIELD.at(dword, bit)
}

impl Status {
    /// Returns the refusal with this status, for a field that begins at this bit of a command
    /// dword.
    pub(crate) const fn at(self, dword: u8, bit: u8) -> Refused {
        Refused { status: self, place: Some((dword * 4 + bit / 8, bit % 8)) }
    }
}

/// An entry of the log.
struct Logged {
    count: u64,
    queue: QueueId,
    id: CommandId,
    status: Status,
    place: Option<(u8, u8)>,
    block: u64,
    nsid: NamespaceId,
    opcode: u8,
}

/// The log, newest entry first.
#[derive(Default)]
pub(crate) struct ErrorLog(VecDeque<Logged>);

impl ErrorLog {
    /// Notes a failed command. `count` is the number of the error over the life of the drive.
    pub fn command(&mut self, count: u64, queue: QueueId, entry: &Entry, refused: Refused) {
        let block = if queue == QueueId::ADMIN { 0 } else { entry.first_block() };
        self.push(Logged {
            count,
            queue,
            id: entry.id(),
            status: refused.status.with_more(),
            place: refused.place,
            block,
            nsid: entry.nsid(),
            opcode: entry.opcode(),
        });
    }

    /// Notes an error that belongs to no command.
    pub fn event(&mut self, count: u64, status: Status) {
        let (queue, id) = (QueueId::NONE, CommandId::NONE);
        let nsid = NamespaceId::NONE;
        self.push(Logged { count, queue, id, status, place: None, block: 0, nsid, opcode: 0 });
    }

    fn push(&mut self, logged: Logged) {
        self.0.truncate(ENTRIES - 1);
        self.0.push_front(logged);
    }

    /// Returns the log page.
    pub fn page(&self) -> Vec<u8> {
        let mut page = Page::new(ENTRIES * ENTRY);
        for (at, logged) in (0..).step_by(ENTRY).zip(&self.0) {
            let place = match logged.place {
                Some((byte, bit)) => u16::from(byte) | u16::from(bit) << 8,
                None => 0xFFFF,
            };
            page.u64(at, logged.count)
                .u16(at + 8, logged.queue.0)
                .u16(at + 10, logged.id.0)
                .u16(at + 12, logged.status.to_bits())
                .u16(at + 14, place)
                .u64(at + 16, logged.block)
                .u32(at + 24, logged.nsid.0)
                .u8(at + 31, logged.opcode)
                .u8(at + 63, 1);
        }
        page.take()
    }
}
