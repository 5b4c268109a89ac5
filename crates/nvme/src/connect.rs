//! The Connect command (Base 6.3).

use crate::command::fabrics;
use crate::identity::Nqn;
use crate::{Completion, ControllerId, Entry, QueueId, Status};

/// Bytes of the data of Connect.
pub const CONNECT_BYTES: usize = 1024;

/// A refused Connect: the status, and the parameter at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Invalid {
    status: Status,
    /// Dword 0 of the completion (Base, Figure 548).
    result: u32,
}

impl Invalid {
    /// Refuses a field of the command at this byte.
    pub const fn command(byte: u16) -> Invalid {
        Invalid { status: Status::CONNECT_INVALID, result: byte as u32 }
    }

    /// Refuses a field of the data at this byte.
    pub const fn data(byte: u16) -> Invalid {
        Invalid { status: Status::CONNECT_INVALID, result: byte as u32 | 1 << 16 }
    }

    /// Returns the completion.
    pub fn completion(self, entry: &Entry) -> Completion {
        Completion { id: entry.id(), result: self.result.into(), status: self.status }
    }
}

impl From<Status> for Invalid {
    fn from(status: Status) -> Invalid {
        Invalid { status, result: 0 }
    }
}

/// A Connect command, with its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connect {
    /// Queue to create.
    pub queue: QueueId,
    /// Entries of the queue.
    pub entries: u32,
    /// `true` if the host deletes I/O queues one by one.
    pub deletes_queues: bool,
    /// `true` if the host asks for no flow control of the submission queue.
    pub without_flow_control: bool,
    /// Keep alive timeout in milliseconds; 0 for none.
    pub keep_alive: u32,
    /// Host identifier.
    pub host_id: [u8; 16],
    /// Controller that is asked for.
    pub controller: ControllerId,
    /// Name of the subsystem.
    pub subsystem: Nqn,
    /// Name of the host.
    pub host: Nqn,
}

impl Connect {
    /// Returns `true` if the entry is a Connect command.
    pub fn is_one(entry: &Entry) -> bool {
        entry.opcode() == fabrics::OPCODE && entry.fabrics_type() == fabrics::CONNECT
    }

    /// Reads a Connect command. A server of several subsystems finds the right subsystem by its
    /// name.
    ///
    /// # Errors
    /// Returns the completion that refuses the command.
    pub fn read(entry: &Entry, data: &[u8]) -> Result<Connect, Completion> {
        Connect::parse(entry, data).map_err(|invalid| invalid.completion(entry))
    }

    fn parse(entry: &Entry, data: &[u8]) -> Result<Connect, Invalid> {
        if !Connect::is_one(entry) {
            return Err(Status::SEQUENCE_ERROR.into());
        }
        let record_format = entry.at(10) as u16;
        if record_format != 0 {
            return Err(Status::INCOMPATIBLE_FORMAT.into());
        }
        let data = data.get(..CONNECT_BYTES).ok_or(Status::SGL_LENGTH_INVALID)?;
        let attributes = entry.at(11) >> 16;
        let mut host_id = [0; 16];
        host_id.copy_from_slice(&data[..16]);
        Ok(Connect {
            queue: QueueId((entry.at(10) >> 16) as u16),
            entries: (entry.at(11) & 0xFFFF) + 1,
            deletes_queues: attributes & 1 << 3 != 0,
            without_flow_control: attributes & 1 << 2 != 0,
            keep_alive: entry.at(12),
            host_id,
            controller: ControllerId(u16::from_le_bytes([data[16], data[17]])),
            subsystem: Nqn::from_field(&data[256..512]).ok_or(Invalid::data(256))?,
            host: Nqn::from_field(&data[512..768]).ok_or(Invalid::data(512))?,
        })
    }

    /// Returns the command with this identifier, and its data.
    pub fn write(&self, id: crate::CommandId) -> (Entry, Vec<u8>) {
        let attributes =
            u32::from(self.deletes_queues) << 3 | u32::from(self.without_flow_control) << 2;
        let mut entry = Entry::new(fabrics::OPCODE, id)
            .transport_data(CONNECT_BYTES as u32)
            .dword(10, u32::from(self.queue.0) << 16)
            .dword(11, (self.entries.saturating_sub(1) & 0xFFFF) | attributes << 16)
            .dword(12, self.keep_alive);
        entry.0[4] = fabrics::CONNECT;
        let mut page = crate::bytes::Page::new(CONNECT_BYTES);
        page.put(0, self.host_id)
            .u16(16, self.controller.0)
            .text(256, 256, self.subsystem.as_str())
            .text(512, 256, self.host.as_str());
        (entry, page.take())
    }
}

/// An established queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connected {
    /// Queue at its controller.
    pub place: crate::Place,
    /// Entries of the queue. At most one command less is in the queue at the same time.
    pub entries: u32,
    /// `false` if the transport answers with FFFFh for the head of the submission queue, and uses
    /// no flow control.
    pub flow_control: bool,
    /// Completion of the Connect command.
    pub completion: Completion,
}
