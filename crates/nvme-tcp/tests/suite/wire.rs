//! A host's side of a [`Connection`], without I/O.

use crate::{Received, decode};
use flashatlas_nvme_tcp::pdu::{
    Alignment, C2hData, Digests, Direction, Framing, H2cData, IcReq, Pdu, R2t,
};
use flashatlas_nvme_tcp::{Command, Connection, End, Limits, QueueShape};

/// Bounds that small tests reach.
pub const SMALL: Limits = Limits {
    entries: 8,
    capsule_data: 4096,
    transfer: 64 << 10,
    data: 128 << 10,
    h2c_data: 4096,
    c2h_data: 8192,
    r2t: 16 << 10,
    r2ts: 2,
};

pub const IO: QueueShape = QueueShape { entries: 8, admin: false, flow_control: true };

pub const FLUSH: u8 = 0x00;
pub const WRITE: u8 = 0x01;
pub const READ: u8 = 0x02;

/// Returns an entry without data.
pub fn entry(opcode: u8, id: u16) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[1]) = (opcode, 0x40);
    entry[2..4].copy_from_slice(&id.to_le_bytes());
    entry[39] = 0x5a;
    entry
}

/// Returns an entry whose data travels in PDUs of its own.
pub fn with_buffer(opcode: u8, id: u16, bytes: u32) -> [u8; 64] {
    let mut entry = entry(opcode, id);
    entry[32..36].copy_from_slice(&bytes.to_le_bytes());
    entry
}

/// Returns an entry whose data is in the capsule.
pub fn with_capsule(opcode: u8, id: u16, bytes: u32) -> [u8; 64] {
    let mut entry = with_buffer(opcode, id, bytes);
    entry[39] = 0x01;
    entry
}

/// Returns the entry of a Connect command for a queue of `entries` entries.
pub fn connect(id: u16, queue: u16, entries: u16) -> [u8; 64] {
    let mut connect = with_capsule(0x7f, id, 1024);
    connect[4] = 0x01;
    connect[42..44].copy_from_slice(&queue.to_le_bytes());
    connect[44..46].copy_from_slice(&(entries - 1).to_le_bytes());
    connect
}

/// Returns the completion of a command that succeeded.
pub fn done(id: u16) -> [u8; 16] {
    let mut completion = [0; 16];
    completion[12..14].copy_from_slice(&id.to_le_bytes());
    completion
}

/// Content of a response: command, status above a phase tag of 0, and head of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    pub id: u16,
    pub status: u16,
    pub head: u16,
}

pub struct Wire {
    pub connection: Connection,
    /// Framing of PDUs to the controller.
    pub framing: Framing,
    /// Framing of PDUs to the host.
    to_host: Framing,
}

impl Wire {
    pub fn new(limits: Limits) -> Wire {
        let (framing, to_host) = (Framing::default(), Framing::default());
        Wire { connection: Connection::new(limits), framing, to_host }
    }

    /// Returns a connection whose sides exchanged ICReq and ICResp.
    pub fn initialised(limits: Limits, request: IcReq) -> Wire {
        let mut wire = Wire::new(limits);
        wire.send(Pdu::IcReq(request), &[]).expect("an ICReq");
        let answer = match wire.replies().as_slice() {
            [Received { pdu: Pdu::IcResp(answer), .. }] => *answer,
            other => panic!("{other:?}"),
        };
        assert_eq!(answer.digests, request.digests);
        assert_eq!(answer.max_data, limits.h2c_data);
        wire.framing = Framing { digests: answer.digests, alignment: answer.alignment };
        wire.to_host = Framing { digests: answer.digests, alignment: request.alignment };
        wire
    }

    /// Returns a connection with a queue, whose head is 1 after the Connect command.
    pub fn established(limits: Limits, request: IcReq, shape: QueueShape) -> Wire {
        let mut wire = Wire::initialised(limits, request);
        wire.send(Pdu::CapsuleCmd(connect(9, 1, shape.entries)), &[7; 1024]).expect("Connect");
        let command = wire.next();
        assert_eq!((command.id(), command.data.len()), (9, 1024));
        wire.connection.establish(shape);
        wire.connection.complete(done(9), Vec::new());
        let head = if shape.flow_control { 1 } else { 0xffff };
        assert_eq!(wire.responses(), [Response { id: 9, status: 0, head }]);
        wire
    }

    /// Returns a connection for I/O with small bounds.
    pub fn io() -> Wire {
        Wire::established(SMALL, IcReq::default(), IO)
    }

    /// Returns a connection for I/O with both digests and the largest padding.
    pub fn digested() -> Wire {
        let digests = Digests { header: true, data: true };
        let alignment = Alignment::from_field(Alignment::MAX).expect("the largest");
        Wire::established(SMALL, IcReq { digests, alignment, max_r2t: 0 }, IO)
    }

    pub fn send(&mut self, pdu: Pdu, data: &[u8]) -> Result<(), End> {
        let bytes = pdu.encode(data, &self.framing);
        self.connection.receive(&bytes)
    }

    pub fn command(&mut self, entry: [u8; 64], data: &[u8]) {
        self.send(Pdu::CapsuleCmd(entry), data).expect("a command");
    }

    /// Sends data that an R2T asked for, in one PDU.
    pub fn data(&mut self, r2t: R2t, offset: u32, data: &[u8], last: bool) -> Result<(), End> {
        let (command, tag) = (r2t.command, r2t.tag);
        let pdu = H2cData { command, tag, offset, length: data.len() as u32, last };
        self.send(Pdu::H2cData(pdu), data)
    }

    /// Serves an R2T with PDUs of the largest size.
    pub fn serve(&mut self, r2t: R2t, whole: &[u8]) {
        let end = r2t.offset + r2t.length;
        for offset in (r2t.offset..end).step_by(4096) {
            let next = end.min(offset + 4096);
            let part = &whole[offset as usize..next as usize];
            self.data(r2t, offset, part, next == end).expect("the data asked for");
        }
    }

    pub fn next(&mut self) -> Command {
        self.connection.next_command().expect("a command")
    }

    /// Takes all of the output, in small steps.
    pub fn replies(&mut self) -> Vec<Received> {
        let bytes: Vec<u8> = self.connection.output().flatten().copied().collect();
        for part in bytes.chunks(1000) {
            self.connection.sent(part.len());
        }
        decode(Direction::ToHost, self.to_host, &bytes, 777).expect("PDUs of the controller")
    }

    /// Takes all of the output, which is R2T PDUs.
    pub fn r2ts(&mut self) -> Vec<R2t> {
        let all = self.replies();
        all.iter()
            .map(|one| if let Pdu::R2t(r2t) = one.pdu { r2t } else { panic!("{one:?}") })
            .collect()
    }

    /// Takes all of the output, which is responses.
    pub fn responses(&mut self) -> Vec<Response> {
        self.replies().iter().map(response).collect()
    }

    /// Takes all of the output: the data PDUs of one read, and its response if there is one.
    pub fn read(&mut self) -> (Vec<C2hData>, Vec<u8>, Option<Response>) {
        let (mut pdus, mut whole, mut end) = (Vec::new(), Vec::new(), None);
        for one in self.replies() {
            assert!(end.is_none() && one.intact, "{one:?}");
            if let Pdu::C2hData(pdu) = one.pdu {
                pdus.push(pdu);
                whole.extend_from_slice(&one.data);
            } else {
                end = Some(response(&one));
            }
        }
        (pdus, whole, end)
    }
}

fn response(received: &Received) -> Response {
    let Pdu::CapsuleResp(entry) = received.pdu else { panic!("{received:?}") };
    let word = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
    Response { id: word(12), status: word(14), head: word(8) }
}

/// Returns bytes that differ from place to place.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8).collect()
}
