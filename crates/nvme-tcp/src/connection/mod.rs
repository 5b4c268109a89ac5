//! The controller's side of one connection: bytes in, bytes out. A connection is one queue
//! (NVMe/TCP Transport Specification, section 3.2).
//!
//! There is no I/O here and no clock. The owner of the connection passes on the bytes that it
//! [receives](Connection::receive), carries out the [commands](Connection::next_command),
//! [completes](Connection::complete) them, and sends the [output](Connection::output).
//!
//! [`Limits::memory`] bounds the memory of a connection. A host that sends commands beyond
//! its queue is cut off. A command whose data finds no room waits for the commands before it. While
//! a host does not read, nothing is read from this host either ([`Connection::wants_input`]).

mod output;
mod transfer;

use crate::command::{self, Command, FABRICS, Way};
use crate::limits::{ADMIN_CAPSULE_DATA, Limits};
use crate::pdu::{
    C2hData, COMPLETION_BYTES, Decoder, Direction, ENTRY_BYTES, Fault, Framing, H2cData, IcReq,
    IcResp, Kind, Pdu, Piece, R2t, TermReq, at, put_u16, u16_at,
};
use crate::status::{self, Status};
use bytes::Bytes;
use output::Output;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use transfer::Transfer;

/// Reason why a connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The host broke the protocol. The output ends with a C2HTermReq that reports the fault.
    Fault(Fault),
    /// The host sent an H2CTermReq. The value is `None` if the length of the PDU is wrong. Even
    /// then, there is no answer (section 3.5.1).
    Terminated(Option<TermReq>),
}

/// Position of a connection in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The host has not sent its ICReq.
    New,
    /// The host may send a Connect command.
    Initialised,
    /// The queue exists.
    Established,
    /// No PDU is accepted any more.
    Over(End),
}

/// Shape of the queue that a successful Connect command creates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueShape {
    /// Entries of the submission queue: SQSIZE + 1.
    pub entries: u16,
    /// The queue is the admin queue.
    pub admin: bool,
    /// The head of the submission queue is reported (SQHD). Without it, a read may succeed
    /// without a response (section 3.3.2.1).
    pub flow_control: bool,
}

/// A command that is not complete.
enum Outstanding {
    /// A command that waits for room for its data, with the direction and size of the data.
    Waiting(Way, [u8; ENTRY_BYTES]),
    /// A command whose data the host sends.
    Arriving(Transfer),
    /// A command that waits for the owner.
    Ready,
    /// A command that the owner carries out.
    Handed,
}

struct Slot {
    stage: Outstanding,
    /// Bytes of room that are taken for its data.
    reserved: u32,
}

/// Destination of the data of the PDU that is being received.
enum Sink {
    Nowhere,
    Capsule { entry: [u8; ENTRY_BYTES], data: Vec<u8> },
    Transfer { id: u16 },
}

/// The controller's side of one connection.
pub struct Connection {
    limits: Limits,
    phase: Phase,
    decoder: Decoder,
    sink: Sink,
    /// Framing of PDUs to the host.
    framing: Framing,
    /// Maximum number of outstanding R2T PDUs of a command.
    r2ts: u32,
    shape: QueueShape,
    /// Head of the submission queue (SQHD).
    head: u16,
    /// `true` until Connect is completed. Its completion may report that flow control is off.
    connecting: bool,
    slots: FxHashMap<u16, Slot>,
    /// Commands that wait for room, in order.
    waiting: VecDeque<u16>,
    /// Commands that the owner may carry out.
    ready: VecDeque<Command>,
    /// Transfer tags of R2T PDUs that are outstanding, and their commands.
    tags: FxHashMap<u16, u16>,
    next_tag: u16,
    /// The host sent commands beyond the size of its queue.
    is_overrun: bool,
    /// Bytes of room for data.
    room: u32,
    output: Output,
}

impl Connection {
    /// Returns a connection that waits for the host's ICReq.
    ///
    /// # Panics
    /// Panics if the limits do not fit together: a length is 0 or no multiple of 4, `data` is
    /// below `transfer`, or a queue has fewer than 2 entries.
    pub fn new(limits: Limits) -> Connection {
        limits.check();
        Connection {
            limits,
            phase: Phase::New,
            decoder: Decoder::new(Direction::ToController),
            sink: Sink::Nowhere,
            framing: Framing::default(),
            r2ts: 1,
            // One command at a time until the queue exists: the host waits for its Connect.
            shape: QueueShape { entries: 1, admin: true, flow_control: true },
            head: 0,
            connecting: false,
            slots: FxHashMap::default(),
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            tags: FxHashMap::default(),
            next_tag: 0,
            is_overrun: false,
            room: limits.data,
            output: Output::default(),
        }
    }

    /// Returns the position in the connection's life.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns `true` if the connection is over because the host sent commands beyond the size of
    /// its queue. The association of the connection then ends (Base Specification, 3.3.2.5 and
    /// 3.3.2.6).
    pub fn is_overrun(&self) -> bool {
        self.is_overrun
    }

    /// Returns whether bytes should be received: the connection is not over, and the host reads
    /// the responses that it gets.
    pub fn wants_input(&self) -> bool {
        !self.is_over() && self.output.control() < Limits::CONTROL
    }

    /// Receives bytes that the host sent. The bound of memory holds for pieces of at most 64 KiB.
    ///
    /// # Errors
    /// Returns the reason why the connection is over. The output that is left should still be
    /// sent.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        if let Phase::Over(end) = self.phase {
            return Err(end);
        }
        // Each turn takes at least one byte, or ends a PDU.
        loop {
            let done = match self.decoder.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(piece)) => self.take(piece),
                Err(fault) => {
                    let term = self.decoder.header().first() == Some(&(Kind::H2cTermReq as u8));
                    Err(if term { End::Terminated(None) } else { End::Fault(fault) })
                }
            };
            if let Err(end) = done {
                self.end(end);
                return Err(end);
            }
        }
    }

    fn take(&mut self, piece: Piece<'_>) -> Result<(), End> {
        match piece {
            Piece::Header(Pdu::H2cTermReq(term), _) => Err(End::Terminated(Some(term))),
            Piece::Header(pdu, frame) => {
                let done = match (self.phase, pdu) {
                    (Phase::New, Pdu::IcReq(request)) => {
                        self.initialise(&request);
                        Ok(())
                    }
                    // The ICReq comes first and once (section 3.1).
                    (Phase::New, _) | (_, Pdu::IcReq(_)) => Err(Fault::SEQUENCE),
                    (_, Pdu::CapsuleCmd(entry)) => self.begin(entry, frame.data_bytes()),
                    (_, Pdu::H2cData(pdu)) => self.begin_data(&pdu),
                    _ => unreachable!("the decoder refuses PDUs of the other direction"),
                };
                done.map_err(End::Fault)
            }
            Piece::Data(bytes) => {
                match &mut self.sink {
                    Sink::Nowhere => {}
                    Sink::Capsule { data, .. } => data.extend_from_slice(bytes),
                    Sink::Transfer { id } => transfer(&mut self.slots, *id).append(bytes),
                }
                Ok(())
            }
            Piece::End { intact } => {
                match std::mem::replace(&mut self.sink, Sink::Nowhere) {
                    Sink::Nowhere => {}
                    Sink::Capsule { entry, data } => {
                        self.arrived(command::id(&entry), entry, intact.then_some(data));
                    }
                    Sink::Transfer { id } => self.end_data(id, intact),
                }
                Ok(())
            }
        }
    }

    fn end(&mut self, end: End) {
        self.phase = Phase::Over(end);
        if let End::Fault(fault) = end {
            let term = Pdu::C2hTermReq(fault.into()).encode(self.decoder.header(), &self.framing);
            self.output.push(&term);
        }
        // Data that has not arrived never arrives. Commands that are ready are not carried out.
        self.sink = Sink::Nowhere;
        self.waiting.clear();
        self.ready.clear();
        self.tags.clear();
        self.slots.retain(|_, slot| matches!(slot.stage, Outstanding::Handed));
    }

    fn initialise(&mut self, request: &IcReq) {
        let digests = request.digests; // both are supported
        let max_data = self.limits.h2c_data;
        let answer = IcResp { alignment: Framing::default().alignment, digests, max_data };
        self.output.push(&Pdu::IcResp(answer).encode(&[], &Framing::default()));
        self.framing = Framing { digests, alignment: request.alignment };
        // MAXR2T is one less than the number
        self.r2ts = request.max_r2t.saturating_add(1).min(self.limits.r2ts);
        self.phase = Phase::Initialised;
        self.decoder.set_framing(Framing { digests, alignment: answer.alignment });
    }

    /// Creates the queue, because the Connect command succeeds. The owner completes the command
    /// next.
    ///
    /// # Panics
    /// Panics if the queue exists, or is larger than the limits allow.
    pub fn establish(&mut self, shape: QueueShape) {
        if self.is_over() {
            return;
        }
        assert_eq!(self.phase, Phase::Initialised, "a queue is established once");
        assert!((2..=self.limits.entries).contains(&shape.entries), "{shape:?}");
        (self.shape, self.phase, self.connecting) = (shape, Phase::Established, true);
    }

    /// Begins a command whose capsule carries `inside` bytes of data.
    fn begin(&mut self, entry: [u8; ENTRY_BYTES], inside: usize) -> Result<(), Fault> {
        let small = self.shape.admin || entry[0] == FABRICS;
        let most = if small { ADMIN_CAPSULE_DATA } else { self.limits.capsule_data };
        if inside > most as usize {
            return Err(Fault::field(4)); // PLEN
        }
        // A host leaves one entry of its queue free, to tell a full queue from an empty queue. Some
        // hosts fill the last entry, too. No host needs more commands.
        if self.slots.len() >= usize::from(self.shape.entries) {
            self.is_overrun = self.phase == Phase::Established;
            return Err(Fault::SEQUENCE);
        }
        let id = command::id(&entry);
        if self.slots.contains_key(&id) {
            self.refuse(id, status::COMMAND_ID_CONFLICT);
            return Ok(());
        }
        match command::way(&entry, inside, &self.limits) {
            Err(status) => self.refuse(id, status),
            Ok(way) => {
                let waits = !matches!(way, Way::Capsule);
                let stage =
                    if waits { Outstanding::Waiting(way, entry) } else { Outstanding::Ready };
                self.slots.insert(id, Slot { stage, reserved: 0 });
                if waits {
                    self.waiting.push_back(id);
                    self.admit();
                } else if inside > 0 {
                    self.sink = Sink::Capsule { entry, data: Vec::with_capacity(inside) };
                } else {
                    self.ready.push_back(Command { entry, data: Vec::new(), room: 0 });
                }
            }
        }
        Ok(())
    }

    /// Admits commands, in order, while there is room for their data.
    fn admit(&mut self) {
        while let Some(&id) = self.waiting.front() {
            let slot = self.slots.get_mut(&id).expect("a command that waits");
            let Outstanding::Waiting(way, entry) = slot.stage else { unreachable!("it waits") };
            let (Way::FromHost(bytes) | Way::ToHost(bytes)) = way else {
                unreachable!("a command without data does not wait")
            };
            if bytes > self.room {
                return;
            }
            self.room -= bytes;
            slot.reserved = bytes;
            self.waiting.pop_front();
            if matches!(way, Way::FromHost(_)) {
                slot.stage = Outstanding::Arriving(Transfer::new(entry, bytes));
                self.ask(id);
            } else {
                slot.stage = Outstanding::Ready;
                self.ready.push_back(Command { entry, data: Vec::new(), room: bytes });
            }
        }
    }

    /// Asks for data of a command, with at most the number of outstanding R2T PDUs that the host
    /// supports.
    fn ask(&mut self, id: u16) {
        loop {
            let tag = self.free_tag();
            let transfer = transfer(&mut self.slots, id);
            let Some((offset, length)) = transfer.ask(tag, self.limits.r2t, self.r2ts) else {
                return;
            };
            self.tags.insert(tag, id);
            let pdu = Pdu::R2t(R2t { command: id, tag, offset, length });
            self.output.push(&pdu.encode(&[], &self.framing));
        }
    }

    /// Returns a transfer tag that is not in use. Tags are used in turn, so that a late H2CData
    /// PDU does not meet the next R2T.
    fn free_tag(&mut self) -> u16 {
        // A tag is always free: at most entries × r2ts tags are in use, fewer than there are tags.
        while self.tags.contains_key(&self.next_tag) {
            self.next_tag = self.next_tag.wrapping_add(1);
        }
        let tag = self.next_tag;
        self.next_tag = tag.wrapping_add(1);
        tag
    }

    fn begin_data(&mut self, pdu: &H2cData) -> Result<(), Fault> {
        if pdu.length > self.limits.h2c_data {
            return Err(Fault::LIMIT);
        }
        let &id = self.tags.get(&pdu.tag).ok_or(Fault::field(at::TAG))?;
        if id != pdu.command {
            return Err(Fault::field(at::COMMAND));
        }
        transfer(&mut self.slots, id).check(pdu)?;
        self.sink = Sink::Transfer { id };
        Ok(())
    }

    fn end_data(&mut self, id: u16, intact: bool) {
        let now = transfer(&mut self.slots, id);
        if let Some(tag) = now.end(intact) {
            self.tags.remove(&tag);
        }
        if !now.is_complete() {
            self.ask(id);
            return;
        }
        let slot = self.slots.get_mut(&id).expect("a command whose data arrives");
        let stage = std::mem::replace(&mut slot.stage, Outstanding::Ready);
        let Outstanding::Arriving(transfer) = stage else { unreachable!("its data arrives") };
        self.arrived(id, transfer.entry, transfer.into_data());
    }

    /// Hands over a command whose data has arrived. `data` is `None` if the data was damaged on the
    /// way. Damaged data fails the command, not the connection (section 3.5.2).
    fn arrived(&mut self, id: u16, entry: [u8; ENTRY_BYTES], data: Option<Vec<u8>>) {
        match data {
            Some(data) => self.ready.push_back(Command { entry, data, room: 0 }),
            None => {
                let slot = self.slots.remove(&id).expect("a command whose data arrived");
                self.refuse(id, status::TRANSIENT_TRANSPORT_ERROR);
                self.room += slot.reserved;
                self.admit();
            }
        }
    }

    /// Returns whether [`Connection::next_command`] has a command.
    pub fn has_command(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns a command that can be carried out.
    pub fn next_command(&mut self) -> Option<Command> {
        let command = self.ready.pop_front()?;
        let slot = self.slots.get_mut(&command.id()).expect("a command that is ready");
        slot.stage = Outstanding::Handed;
        Some(command)
    }

    /// Completes a command. Sends its data, if the command has data and succeeds, and then
    /// `completion` with the head of the submission queue.
    ///
    /// # Panics
    /// Panics if no such command was handed over, if the data is longer than the room that the
    /// host has, or is no multiple of 4 bytes.
    pub fn complete(&mut self, mut completion: [u8; COMPLETION_BYTES], data: Vec<u8>) {
        let id = u16_at(&completion, 12);
        let slot = self.slots.remove(&id).expect("a command that is outstanding");
        assert!(matches!(slot.stage, Outstanding::Handed), "command {id} was not handed over");
        if self.is_over() {
            return;
        }
        let plain = completion[..8] == [0; 8] && completion[14..] == [0; 2];
        let failed = u16_at(&completion, 14) & !1 != 0;
        let data = if failed { Vec::new() } else { data };
        let length = u32::try_from(data.len()).expect("data of less than 4 GiB");
        assert!(length == 0 || length <= slot.reserved, "{length} bytes for {}", slot.reserved);
        assert!(length % 4 == 0, "{length} bytes are not whole dwords");
        let head = self.advance();
        let success = plain && length > 0 && !self.shape.flow_control;
        self.send_data(id, data.into(), success);
        if !success {
            put_u16(&mut completion, 8, head);
            self.output.push(&Pdu::CapsuleResp(completion).encode(&[], &self.framing));
        }
        // Data to be sent keeps its room until it is sent.
        self.room += slot.reserved - length;
        self.admit();
    }

    /// Forgets a command that has no completion, because its controller was reset.
    ///
    /// # Panics
    /// Panics if no such command was handed over.
    pub fn forget(&mut self, id: u16) {
        let slot = self.slots.remove(&id).expect("a command that is outstanding");
        assert!(matches!(slot.stage, Outstanding::Handed), "command {id} was not handed over");
        if !self.is_over() {
            self.advance();
            self.room += slot.reserved;
            self.admit();
        }
    }

    fn send_data(&mut self, id: u16, mut left: Bytes, success: bool) {
        let total = left.len();
        let mut offset = 0;
        while !left.is_empty() {
            let part = left.split_to(left.len().min(self.limits.c2h_data as usize));
            let (length, last) = (part.len() as u32, left.is_empty());
            let pdu = C2hData { command: id, offset, length, last, success: last && success };
            offset += length;
            self.output.push(&Pdu::C2hData(pdu).encode_header(part.len(), &self.framing));
            let digest = self.framing.digests.data.then(|| crc32c::crc32c(&part).to_le_bytes());
            self.output.push_data(part, if last { total as u32 } else { 0 });
            if let Some(digest) = digest {
                self.output.push(&digest);
            }
        }
    }

    /// Completes a command that never reaches the owner.
    fn refuse(&mut self, id: u16, status: Status) {
        let mut completion = status::completion(id, status);
        let head = self.advance();
        put_u16(&mut completion, 8, head);
        self.output.push(&Pdu::CapsuleResp(completion).encode(&[], &self.framing));
    }

    /// Takes one entry off the submission queue, and returns its new head. An entry is free again
    /// when its command is complete: so the queue bounds the commands that are outstanding.
    fn advance(&mut self) -> u16 {
        let connecting = std::mem::take(&mut self.connecting);
        if !self.shape.flow_control {
            // The completion of Connect reports this; in later completions the field is reserved.
            return if connecting { 0xffff } else { 0 };
        }
        self.head = (self.head + 1) % self.shape.entries;
        self.head
    }

    /// Returns the bytes to send, in order and in parts.
    pub fn output(&self) -> impl Iterator<Item = &[u8]> {
        self.output.parts()
    }

    /// Returns whether there are bytes to send.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Removes `bytes` bytes of the output, because they were sent.
    ///
    /// # Panics
    /// Panics if the output has fewer bytes.
    pub fn sent(&mut self, bytes: usize) {
        self.room += self.output.take(bytes);
        if !self.is_over() {
            self.admit();
        }
    }

    /// Returns the number of commands that are not complete.
    pub fn outstanding(&self) -> usize {
        self.slots.len()
    }

    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }
}

/// Returns the transfer of a command whose data arrives.
fn transfer(slots: &mut FxHashMap<u16, Slot>, id: u16) -> &mut Transfer {
    match slots.get_mut(&id).map(|slot| &mut slot.stage) {
        Some(Outstanding::Arriving(transfer)) => transfer,
        _ => unreachable!("command {id} does not wait for data"),
    }
}
