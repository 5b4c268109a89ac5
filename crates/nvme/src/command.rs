//! Commands as hosts write them, and their completions.

use crate::{CommandId, NamespaceId, Status};

/// Opcodes of admin commands (Base 3.1.3.4).
pub mod admin {
    #![allow(missing_docs)]
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0A;
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0C;
    pub const KEEP_ALIVE: u8 = 0x18;
}

/// Opcodes of I/O commands (Base 3.1.3.4, NVM 3).
pub mod io {
    #![allow(missing_docs)]
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const COMPARE: u8 = 0x05;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    pub const VERIFY: u8 = 0x0C;
}

/// The opcode of all Fabrics commands, and their types (Base 6).
pub mod fabrics {
    #![allow(missing_docs)]
    pub const OPCODE: u8 = 0x7F;
    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
    pub const DISCONNECT: u8 = 0x08;
}

/// A submission queue entry: a command of 64 bytes (Base 4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub [u8; 64]);

impl Entry {
    /// Makes a command with this opcode and identifier. Its other fields are 0.
    pub const fn new(opcode: u8, id: CommandId) -> Entry {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        bytes[2] = id.0 as u8;
        bytes[3] = (id.0 >> 8) as u8;
        Entry(bytes)
    }

    /// Returns the same command for this namespace.
    #[must_use]
    pub fn namespace(mut self, nsid: NamespaceId) -> Entry {
        self.0[4..8].copy_from_slice(&nsid.0.to_le_bytes());
        self
    }

    /// Returns the same command with a value in the command dword of this number, 0 to 15.
    ///
    /// # Panics
    /// Panics if there is no such dword.
    #[must_use]
    pub fn dword(mut self, number: usize, value: u32) -> Entry {
        self.0[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// Returns the same command with one descriptor for its data: a transport data block of this
    /// length (Base 4.3.2).
    #[must_use]
    pub fn transport_data(mut self, bytes: u32) -> Entry {
        self.0[1] |= 0x40;
        self.0[32..36].copy_from_slice(&bytes.to_le_bytes());
        self.0[39] = Sgl::TRANSPORT;
        self
    }

    /// Makes a Property Get command.
    pub fn property_get(id: CommandId, offset: u32, eight_bytes: bool) -> Entry {
        let mut entry =
            Entry::new(fabrics::OPCODE, id).dword(10, u32::from(eight_bytes)).dword(11, offset);
        entry.0[4] = fabrics::PROPERTY_GET;
        entry
    }

    /// Makes a Property Set command for a property of four bytes.
    pub fn property_set(id: CommandId, offset: u32, value: u32) -> Entry {
        let mut entry = Entry::new(fabrics::OPCODE, id).dword(11, offset).dword(12, value);
        entry.0[4] = fabrics::PROPERTY_SET;
        entry
    }

    /// Returns the opcode (OPC).
    pub const fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Returns the fused operation field (FUSE): 0 for a command that is not fused.
    pub const fn fuse(&self) -> u8 {
        self.0[1] & 3
    }

    /// Returns the kind of data pointer (PSDT): 1 for one scatter-gather descriptor.
    pub const fn data_pointer_kind(&self) -> u8 {
        self.0[1] >> 6
    }

    /// Returns the command identifier (CID).
    pub const fn id(&self) -> CommandId {
        CommandId(u16::from_le_bytes([self.0[2], self.0[3]]))
    }

    /// Returns the namespace identifier (NSID).
    pub fn nsid(&self) -> NamespaceId {
        NamespaceId(self.at(1))
    }

    /// Returns the type of a Fabrics command (FCTYPE).
    pub const fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    /// Returns the descriptor of the data (SGL1).
    pub fn sgl(&self) -> Sgl {
        Sgl { kind: self.0[39], length: self.at(8) }
    }

    /// Returns the command dword of this number, 0 to 15.
    ///
    /// # Panics
    /// Panics if there is no such dword.
    pub fn at(&self, number: usize) -> u32 {
        let at = number * 4;
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Returns the command dwords 10 and 11 as one number, the first block of most I/O commands.
    pub fn first_block(&self) -> u64 {
        u64::from(self.at(10)) | u64::from(self.at(11)) << 32
    }

    /// Returns the number of blocks; the field in the command counts from 0.
    pub fn blocks(&self) -> u32 {
        (self.at(12) & 0xFFFF) + 1
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "opcode {:02x}h, id {}, nsid {}, dwords 10 to 15",
            self.opcode(),
            self.id(),
            self.nsid()
        )?;
        (10..16).try_for_each(|number| write!(f, " {:x}h", self.at(number)))
    }
}

/// Type and length of a scatter-gather descriptor (Base 4.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sgl {
    /// Descriptor type in the upper half, sub type in the lower.
    pub kind: u8,
    /// Bytes of the data block.
    pub length: u32,
}

impl Sgl {
    /// A data block with an offset: data inside the command capsule.
    pub const IN_CAPSULE: u8 = 0x01;
    /// A transport data block: the transport carries the data.
    pub const TRANSPORT: u8 = 0x5A;
}

/// A completion queue entry, without the fields that the transport adds (Base 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The command.
    pub id: CommandId,
    /// Dwords 0 and 1: the value that the command returns beside data.
    pub result: u64,
    /// The status.
    pub status: Status,
}

impl Completion {
    /// Makes the completion of a command.
    pub const fn new(id: CommandId, status: Status) -> Completion {
        Completion { id, result: 0, status }
    }

    /// Makes the completion of a successful command that returns a value.
    pub const fn value(id: CommandId, result: u64) -> Completion {
        Completion { id, result, status: Status::SUCCESS }
    }

    /// Returns the 16 bytes. The transport provides the head of the submission queue (SQHD).
    pub fn to_bytes(&self, submission_head: u16) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.result.to_le_bytes());
        bytes[8..10].copy_from_slice(&submission_head.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.id.0.to_le_bytes());
        bytes[14..].copy_from_slice(&self.status.to_bits().to_le_bytes());
        bytes
    }
}
