//! An association of a host with a controller: its admin queue and its I/O queues.

use super::queue::{Completed, Data, QueuePair};
use super::{HostError, Options};
use crate::pdu::{ENTRY_BYTES, put_u16};
use std::net::SocketAddr;

/// The names of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Qualified name (host NQN).
    pub nqn: String,
    /// Identifier (HOSTID).
    pub id: [u8; 16],
}

/// Properties of a controller, by their offsets (Base Specification, 3.1.4).
mod property {
    pub const CAPABILITIES: u32 = 0x00;
    pub const CONFIGURATION: u32 = 0x14;
    pub const STATUS: u32 = 0x1c;
    pub const READY_TIMEOUTS: u32 = 0x68;
}

/// Capability of a controller that becomes ready with its media (CAP.CRMS). Such a controller has
/// `property::READY_TIMEOUTS`.
const READY_WITH_MEDIA: u64 = 1 << 59;

/// Configuration of a controller that is enabled: entries of 64 and 16 bytes, the NVM command
/// set.
const ENABLED: u64 = 1 | 6 << 16 | 4 << 20;
/// Entries of an admin queue that every controller takes (Base Specification, 5.1.12.3.1).
const ADMIN_ENTRIES: u16 = 32;
/// Number of reads of the status before the host gives up.
const READY_TRIES: usize = 1000;

/// An association of a host with a controller.
pub struct Controller {
    /// The admin queue.
    pub admin: QueuePair,
    address: SocketAddr,
    subsystem: String,
    host: Host,
    options: Options,
    id: u16,
    queues: u16,
}

impl Controller {
    /// Connects an admin queue to the subsystem of this name.
    ///
    /// # Errors
    /// Returns an error if the connection or the command fails.
    pub fn connect(
        address: SocketAddr,
        subsystem: &str,
        host: &Host,
        options: &Options,
    ) -> Result<Controller, HostError> {
        let mut controller = Controller {
            admin: QueuePair::open(address, options)?,
            address,
            subsystem: subsystem.into(),
            host: host.clone(),
            options: *options,
            id: 0xffff, // any controller
            queues: 0,
        };
        let (entry, data) = controller.connect_command(0);
        controller.id = controller.admin.execute(entry, Data::Send(data))?.result() as u16;
        Ok(controller)
    }

    /// Connects an admin queue, reads the properties that Linux reads first, and enables the
    /// controller.
    ///
    /// # Errors
    /// Returns an error if a command fails, or the controller does not become ready.
    pub fn enabled(
        address: SocketAddr,
        subsystem: &str,
        host: &Host,
        options: &Options,
    ) -> Result<Controller, HostError> {
        let mut controller = Controller::connect(address, subsystem, host, options)?;
        let capabilities = controller.property(property::CAPABILITIES, true)?;
        if capabilities & READY_WITH_MEDIA != 0 {
            controller.property(property::READY_TIMEOUTS, false)?;
        }
        controller.enable()?;
        Ok(controller)
    }

    /// Enables the controller, and waits until it is ready.
    ///
    /// # Errors
    /// Returns an error if a command fails, or the controller does not become ready.
    pub fn enable(&mut self) -> Result<(), HostError> {
        self.set_property(property::CONFIGURATION, ENABLED)?;
        for _ in 0..READY_TRIES {
            if self.property(property::STATUS, false)? & 1 == 1 {
                return Ok(());
            }
        }
        Err(HostError::Io(std::io::ErrorKind::TimedOut.into()))
    }

    /// Resets the controller: its I/O queues are deleted.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn disable(&mut self) -> Result<(), HostError> {
        self.set_property(property::CONFIGURATION, ENABLED & !1)
    }

    /// Returns the identifier of the controller (CNTLID).
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Connects an I/O queue.
    ///
    /// # Errors
    /// Returns an error if the connection or the command fails.
    pub fn add_queue(&mut self) -> Result<QueuePair, HostError> {
        self.queues += 1;
        let mut queue = QueuePair::open(self.address, &self.options)?;
        let (entry, data) = self.connect_command(self.queues);
        queue.execute(entry, Data::Send(data))?;
        Ok(queue)
    }

    /// Returns the Connect command for a queue, and its data (Base Specification, 6.3).
    pub fn connect_command(&self, queue: u16) -> ([u8; ENTRY_BYTES], Vec<u8>) {
        let mut entry = fabrics(0x01);
        put_u16(&mut entry, 42, queue);
        let entries = self.options.entries;
        let entries = if queue == 0 { entries.min(ADMIN_ENTRIES) } else { entries };
        put_u16(&mut entry, 44, entries - 1);
        entry[46] = u8::from(self.options.without_flow_control) << 2;
        let keep_alive = if queue == 0 { self.options.keep_alive.as_millis() as u32 } else { 0 };
        entry[48..52].copy_from_slice(&keep_alive.to_le_bytes());
        let mut data = vec![0; 1024];
        data[..16].copy_from_slice(&self.host.id);
        put_u16(&mut data, 16, self.id);
        data[256..][..self.subsystem.len()].copy_from_slice(self.subsystem.as_bytes());
        data[512..][..self.host.nqn.len()].copy_from_slice(self.host.nqn.as_bytes());
        (entry, data)
    }

    /// Returns a property of 8 bytes if `is_long`, else of 4 bytes.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn property(&mut self, offset: u32, is_long: bool) -> Result<u64, HostError> {
        let mut entry = fabrics(0x04);
        entry[40] = u8::from(is_long);
        entry[44..48].copy_from_slice(&offset.to_le_bytes());
        Ok(self.admin.execute(entry, Data::None)?.result())
    }

    /// Sets a property of 4 bytes.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn set_property(&mut self, offset: u32, value: u64) -> Result<(), HostError> {
        let mut entry = fabrics(0x00);
        entry[44..48].copy_from_slice(&offset.to_le_bytes());
        entry[48..56].copy_from_slice(&value.to_le_bytes());
        self.admin.execute(entry, Data::None).map(|_| ())
    }

    /// Sends a Keep Alive command.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn keep_alive(&mut self) -> Result<(), HostError> {
        self.admin.execute(command(0x18, 0), Data::None).map(|_| ())
    }

    /// Returns the 4 KiB of an Identify command.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn identify(&mut self, structure: u8, namespace: u32) -> Result<Vec<u8>, HostError> {
        let mut entry = command(0x06, namespace);
        entry[40] = structure;
        Ok(self.admin.execute(entry, Data::Receive(4096))?.data)
    }

    /// Returns bytes of a log page from its start (Base Specification, 5.1.12).
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn log_page(&mut self, log: u8, bytes: u32) -> Result<Vec<u8>, HostError> {
        let mut entry = command(0x02, 0xffff_ffff);
        let dwords = bytes / 4 - 1;
        entry[40] = log;
        put_u16(&mut entry, 42, dwords as u16);
        put_u16(&mut entry, 44, (dwords >> 16) as u16);
        Ok(self.admin.execute(entry, Data::Receive(bytes))?.data)
    }
}

/// Returns a Fabrics command.
fn fabrics(kind: u8) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    (entry[0], entry[4]) = (0x7f, kind);
    entry
}

/// Returns a command for a namespace, whose other fields are 0.
fn command(opcode: u8, namespace: u32) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    entry[0] = opcode;
    entry[4..8].copy_from_slice(&namespace.to_le_bytes());
    entry
}

/// Commands of the NVM command set. Blocks are counted from 0 in the entries, not here.
impl QueuePair {
    /// Returns the entry of a command for a range of blocks of namespace 1.
    fn range(opcode: u8, first: u64, blocks: u32) -> [u8; ENTRY_BYTES] {
        let mut entry = command(opcode, 1);
        entry[40..48].copy_from_slice(&first.to_le_bytes());
        put_u16(&mut entry, 48, (blocks - 1) as u16);
        entry
    }

    /// Submits a read of `blocks` blocks of `block` bytes, and returns its identifier.
    ///
    /// # Errors
    /// Returns an error if the connection is gone.
    pub fn submit_read(&mut self, first: u64, blocks: u32, block: u32) -> Result<u16, HostError> {
        self.submit(Self::range(0x02, first, blocks), Data::Receive(blocks * block))
    }

    /// Submits a write of whole blocks, and returns its identifier.
    ///
    /// # Errors
    /// Returns an error if the connection is gone.
    pub fn submit_write(
        &mut self,
        first: u64,
        block: u32,
        data: Vec<u8>,
    ) -> Result<u16, HostError> {
        let blocks = data.len() as u32 / block;
        self.submit(Self::range(0x01, first, blocks), Data::Send(data))
    }

    /// Reads `blocks` blocks of `block` bytes.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn read(&mut self, first: u64, blocks: u32, block: u32) -> Result<Vec<u8>, HostError> {
        let entry = Self::range(0x02, first, blocks);
        Ok(self.execute(entry, Data::Receive(blocks * block))?.data)
    }

    /// Writes whole blocks.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn write(&mut self, first: u64, block: u32, data: Vec<u8>) -> Result<(), HostError> {
        let blocks = data.len() as u32 / block;
        self.execute(Self::range(0x01, first, blocks), Data::Send(data)).map(|_| ())
    }

    /// Flushes the namespace.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn flush(&mut self) -> Result<(), HostError> {
        self.execute(command(0x00, 1), Data::None).map(|_| ())
    }

    /// Deletes the queue with a Disconnect command.
    ///
    /// # Errors
    /// Returns an error if the command fails.
    pub fn disconnect(&mut self) -> Result<Completed, HostError> {
        self.execute(fabrics(0x08), Data::None)
    }
}
