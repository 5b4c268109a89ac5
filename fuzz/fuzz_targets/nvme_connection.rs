//! A connection of NVMe/TCP with a host that does anything. The host sends correct and wrong PDUs,
//! data for R2T PDUs, and rubbish, and it may stop reading. The first byte chooses digests and flow
//! control. Each step is four of the bytes after it.
#![no_main]

use flashatlas_nvme_tcp::pdu::{
    Decoder, Digests, Direction, Framing, H2cData, IcReq, Pdu, Piece, R2t,
};
use flashatlas_nvme_tcp::{Connection, Limits, Phase, QueueShape};

const LIMITS: Limits = Limits {
    entries: 4,
    capsule_data: 512,
    transfer: 4096,
    data: 8192,
    h2c_data: 1024,
    c2h_data: 1024,
    r2t: 2048,
    r2ts: 2,
};

struct Host {
    connection: Connection,
    framing: Framing,
    decoder: Decoder,
    r2ts: Vec<R2t>,
    /// Commands that the connection handed over, and the room for their data.
    begun: Vec<(u16, u32)>,
}

impl Host {
    fn send(&mut self, pdu: &Pdu, data: &[u8]) {
        let _ = self.connection.receive(&pdu.encode(data, &self.framing));
    }

    /// Takes some of the output, which the host must be able to decode.
    fn take(&mut self, most: usize) {
        let bytes: Vec<u8> = self.connection.output().flatten().copied().take(most).collect();
        self.connection.sent(bytes.len());
        let mut left = &bytes[..];
        while let Some(piece) = self.decoder.next(&mut left).expect("a PDU of the controller") {
            match piece {
                Piece::Header(Pdu::R2t(r2t), _) => self.r2ts.push(r2t),
                Piece::End { intact } => assert!(intact),
                Piece::Header(..) | Piece::Data(_) => {}
            }
        }
    }

    fn begin(&mut self) {
        while let Some(command) = self.connection.next_command() {
            assert!(command.data.len() <= 8192 && command.room <= LIMITS.transfer);
            self.begun.push((command.id(), command.room));
        }
        assert!(self.connection.outstanding() <= LIMITS.entries.into());
    }

    fn complete(&mut self, choice: usize, status: u8) {
        if self.begun.is_empty() {
            return;
        }
        let (id, room) = self.begun.swap_remove(choice % self.begun.len());
        let mut completion = [0; 16];
        completion[12..14].copy_from_slice(&id.to_le_bytes());
        completion[14] = status & !1;
        self.connection.complete(completion, vec![status; room as usize]);
    }
}

/// Returns an entry whose opcode, identifier, descriptor and length come from the input.
fn entry(a: u8, b: u8, c: u8) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[2]) = (a & 0x7f, 0x40, b & 7);
    entry[32..36].copy_from_slice(&(u32::from(c) * 32).to_le_bytes());
    entry[39] = [0x5a, 0x01, 0x00, 0x5a][usize::from(b >> 6)];
    entry
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [choice, steps @ ..] = data else { return };
    let digests = Digests { header: choice & 1 != 0, data: choice & 2 != 0 };
    let mut host = Host {
        connection: Connection::new(LIMITS),
        framing: Framing::default(),
        decoder: Decoder::new(Direction::ToHost),
        r2ts: Vec::new(),
        begun: Vec::new(),
    };
    if choice & 8 == 0 {
        host.send(
            &Pdu::IcReq(IcReq { digests, max_r2t: u32::from(choice >> 4), ..IcReq::default() }),
            &[],
        );
        host.take(usize::MAX);
        host.framing.digests = digests;
        host.decoder.set_framing(host.framing);
        let flow_control = choice & 4 != 0;
        host.connection.establish(QueueShape { entries: 4, admin: false, flow_control });
    }
    for step in steps.chunks_exact(4) {
        let &[what, a, b, c] = step else { unreachable!("chunks of 4") };
        match what % 8 {
            0 => host.send(&Pdu::CapsuleCmd(entry(a, b, c)), &[]),
            1 => host.send(&Pdu::CapsuleCmd(entry(1, b | 0x40, c)), &vec![a; usize::from(c) * 32]),
            2 if !host.r2ts.is_empty() => {
                let r2t = host.r2ts.remove(usize::from(a) % host.r2ts.len());
                let end = r2t.offset + r2t.length;
                // in order, except for the change that `b` chooses
                for offset in (r2t.offset..end).step_by(1024) {
                    let length = 1024.min(end - offset);
                    let pdu = H2cData {
                        command: r2t.command ^ u16::from(b & 1),
                        tag: r2t.tag ^ u16::from(b >> 1 & 1),
                        offset: offset ^ u32::from(b & 4),
                        length,
                        last: (offset + length == end) ^ (b & 8 != 0),
                    };
                    host.send(&Pdu::H2cData(pdu), &vec![c; length as usize]);
                }
            }
            3 => host.complete(a.into(), b),
            4 => host.take(usize::from(a) * 64),
            5 => host.begin(),
            6 => {
                let _ = host.connection.receive(&step[1..]);
            }
            _ => {
                host.begin();
                host.take(usize::MAX);
            }
        }
    }
    // If the host reads and the controller completes commands, the connection comes to an end: sent
    // output makes room for waiting commands, and each command is completed once.
    for _ in 0..4 * LIMITS.entries {
        host.begin();
        host.complete(0, 0);
        host.take(usize::MAX);
    }
    assert!(!host.connection.has_output() && !host.connection.has_command());
    if let Phase::Over(_) = host.connection.phase() {
        assert!(!host.connection.wants_input() && host.connection.outstanding() == 0);
    }
});
