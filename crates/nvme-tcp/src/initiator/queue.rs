//! A queue of a host: commands out, completions in, and the data of both.

use super::socket::{Message, Socket};
use super::{HostError, Options};
use crate::pdu::{
    C2hData, COMPLETION_BYTES, ENTRY_BYTES, Fault, H2cData, Pdu, R2t, put_u16, u16_at,
};
use crate::status::TRANSIENT_TRANSPORT_ERROR;
use std::collections::HashMap;
use std::net::SocketAddr;

/// The data of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// There is none.
    None,
    /// The host sends these bytes, in the capsule if they fit.
    Send(Vec<u8>),
    /// The host has room for this many bytes.
    Receive(u32),
}

/// A command that is complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completed {
    /// The completion queue entry. If a success flag took its place, all fields except the
    /// identifier are zero.
    pub completion: [u8; COMPLETION_BYTES],
    /// The data that was received.
    pub data: Vec<u8>,
    /// A success flag took the place of the completion (section 3.3.2.1).
    pub by_flag: bool,
}

impl Completed {
    /// Returns dwords 0 and 1.
    pub fn result(&self) -> u64 {
        u64::from_le_bytes(self.completion[..8].try_into().expect("8 bytes"))
    }

    /// Returns the status, above a phase tag of 0.
    pub fn status(&self) -> u16 {
        u16_at(&self.completion, 14) & !1
    }

    /// Returns the head of the submission queue (SQHD).
    pub fn head(&self) -> u16 {
        u16_at(&self.completion, 8)
    }
}

/// A command that is not complete.
struct Exchange {
    send: Vec<u8>,
    /// Bytes that R2T PDUs have asked for.
    asked: usize,
    received: Vec<u8>,
    room: usize,
    /// The last data PDU has arrived.
    is_last: bool,
    is_intact: bool,
}

/// A queue of a host.
pub struct QueuePair {
    socket: Socket,
    options: Options,
    next_id: u16,
    open: HashMap<u16, Exchange>,
    done: HashMap<u16, Completed>,
}

impl QueuePair {
    /// Returns a connection for a queue, before its Connect command.
    ///
    /// # Errors
    /// Returns an error if the controller does not answer as it should.
    pub fn open(address: SocketAddr, options: &Options) -> Result<QueuePair, HostError> {
        let socket = Socket::open(address, options)?;
        let (open, done) = (HashMap::new(), HashMap::new());
        Ok(QueuePair { socket, options: *options, next_id: 0, open, done })
    }

    /// Returns the connection, for PDUs that no correct host sends.
    pub fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Submits a command, whose identifier and descriptor are filled in. Returns the identifier.
    ///
    /// # Errors
    /// Returns an error if the connection is gone.
    pub fn submit(&mut self, mut entry: [u8; ENTRY_BYTES], data: Data) -> Result<u16, HostError> {
        while self.open.contains_key(&self.next_id) || self.done.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1); // fewer commands than identifiers
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let (send, room) = match data {
            Data::None => (Vec::new(), 0),
            Data::Send(bytes) => (bytes, 0),
            Data::Receive(room) => (Vec::new(), room as usize),
        };
        let inside = !send.is_empty() && send.len() <= self.options.capsule_data;
        entry[1] |= 0x40; // one descriptor for the data
        put_u16(&mut entry, 2, id);
        entry[24..32].fill(0);
        entry[32..36].copy_from_slice(&((send.len() + room) as u32).to_le_bytes());
        entry[39] = if inside { 0x01 } else { 0x5a };
        self.socket.send(&Pdu::CapsuleCmd(entry), if inside { &send } else { &[] })?;
        let send = if inside { Vec::new() } else { send };
        let (asked, received, is_last, is_intact) = (0, Vec::new(), false, true);
        self.open.insert(id, Exchange { send, asked, received, room, is_last, is_intact });
        Ok(id)
    }

    /// Waits for the completion of a command, and serves the other commands in the meantime.
    ///
    /// # Errors
    /// Returns an error if the connection ends, or the controller breaks the protocol.
    pub fn wait(&mut self, id: u16) -> Result<Completed, HostError> {
        loop {
            if let Some(done) = self.done.remove(&id) {
                return Ok(done);
            }
            self.advance()?;
        }
    }

    /// Waits for the completion of any command, and returns its identifier, too.
    ///
    /// # Errors
    /// Returns an error as [`QueuePair::wait`] does.
    pub fn wait_any(&mut self) -> Result<(u16, Completed), HostError> {
        loop {
            let id = self.done.keys().next().copied();
            if let Some(found) = id.and_then(|id| self.done.remove_entry(&id)) {
                return Ok(found);
            }
            self.advance()?;
        }
    }

    /// Receives a PDU, and handles it.
    fn advance(&mut self) -> Result<(), HostError> {
        let Message { pdu, data, is_intact } = self.socket.receive()?;
        let taken = match pdu {
            Pdu::C2hTermReq(term) => return Err(HostError::Terminated(term)),
            Pdu::R2t(r2t) => self.serve(r2t)?,
            Pdu::C2hData(pdu) => self.take_data(pdu, &data, is_intact),
            Pdu::CapsuleResp(completion) => self.complete(completion, false),
            _ => Err(Fault::SEQUENCE),
        };
        taken.map_err(|fault| self.socket.fault(fault))
    }

    /// Executes a command.
    ///
    /// # Errors
    /// Returns an error as [`QueuePair::wait`] does, or the status if the command fails.
    pub fn execute(
        &mut self,
        entry: [u8; ENTRY_BYTES],
        data: Data,
    ) -> Result<Completed, HostError> {
        let id = self.submit(entry, data)?;
        let done = self.wait(id)?;
        if done.status() == 0 { Ok(done) } else { Err(HostError::Status(done.status())) }
    }

    fn serve(&mut self, r2t: R2t) -> Result<Result<(), Fault>, HostError> {
        let R2t { command, tag, offset, length } = r2t;
        let Some(exchange) = self.open.get_mut(&command) else { return Ok(Err(Fault::field(8))) };
        let (start, end) = (offset as usize, offset as usize + length as usize);
        if start != exchange.asked {
            return Ok(Err(Fault::SEQUENCE));
        }
        if end > exchange.send.len() {
            return Ok(Err(Fault::OUT_OF_RANGE));
        }
        exchange.asked = end;
        let mut offset = start;
        for part in exchange.send[start..end].chunks(self.socket.max_data()) {
            let last = offset + part.len() == end;
            let (at, length) = (offset as u32, part.len() as u32);
            let pdu = H2cData { command, tag, offset: at, length, last };
            self.socket.send(&Pdu::H2cData(pdu), part)?;
            offset += part.len();
        }
        Ok(Ok(()))
    }

    fn take_data(&mut self, pdu: C2hData, data: &[u8], is_intact: bool) -> Result<(), Fault> {
        let exchange = self.open.get_mut(&pdu.command).ok_or(Fault::field(8))?;
        if exchange.is_last || pdu.offset as usize != exchange.received.len() {
            return Err(Fault::SEQUENCE);
        }
        if exchange.received.len() + data.len() > exchange.room {
            return Err(Fault::OUT_OF_RANGE);
        }
        exchange.received.extend_from_slice(data);
        exchange.is_last = pdu.last;
        exchange.is_intact &= is_intact;
        if pdu.success {
            let mut completion = [0; COMPLETION_BYTES];
            put_u16(&mut completion, 12, pdu.command);
            return self.complete(completion, true);
        }
        Ok(())
    }

    fn complete(
        &mut self,
        mut completion: [u8; COMPLETION_BYTES],
        by_flag: bool,
    ) -> Result<(), Fault> {
        let id = u16_at(&completion, 12);
        let exchange = self.open.remove(&id).ok_or(Fault::field(8))?;
        let Exchange { received: data, is_last, is_intact, .. } = exchange;
        if !data.is_empty() && !is_last {
            return Err(Fault::SEQUENCE);
        }
        if !is_intact {
            put_u16(&mut completion, 14, TRANSIENT_TRANSPORT_ERROR); // section 3.5.2
        }
        self.done.insert(id, Completed { completion, data, by_flag });
        Ok(())
    }
}
