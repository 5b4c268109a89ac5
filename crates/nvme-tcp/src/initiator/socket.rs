//! One connection of a host: PDUs out and in, or any bytes out.

use super::{HostError, Options};
use crate::clock::now;
use crate::pdu::{Decoder, Direction, Fault, Framing, IcReq, IcResp, Pdu, Piece};
use std::hint::spin_loop;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

/// Bytes that are received at a time.
const INPUT: usize = 64 << 10;

/// A PDU that was received whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The header.
    pub pdu: Pdu,
    /// The data.
    pub data: Vec<u8>,
    /// The data digest is right, or not in use.
    pub is_intact: bool,
}

/// One connection of a host.
pub struct Socket {
    stream: TcpStream,
    /// Framing of PDUs to the controller.
    framing: Framing,
    decoder: Decoder,
    /// Room for the bytes that one read of the stream returns.
    input: Box<[u8]>,
    /// Part of `input` that was received and is not decoded.
    left: Range<usize>,
    /// Maximum number of bytes of data in an H2CData PDU.
    max_data: usize,
    /// Time that an answer is looked for again and again, if it is not slept for.
    polls: Option<Duration>,
}

/// Reads bytes from a stream. Looks for them again and again, and does not sleep meanwhile.
///
/// # Errors
/// Returns an error if the connection is gone, or if no byte comes in `patience`.
pub fn poll_read(
    stream: &mut TcpStream,
    input: &mut [u8],
    patience: Duration,
) -> io::Result<usize> {
    let until = now() + patience;
    stream.set_nonblocking(true)?;
    let bytes = loop {
        match stream.read(input) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && now() < until => spin_loop(),
            bytes => break bytes,
        }
    };
    stream.set_nonblocking(false)?;
    bytes
}

impl Socket {
    /// Returns a connection without ICReq.
    ///
    /// # Errors
    /// Returns an error if the controller does not listen.
    pub fn raw(address: SocketAddr, options: &Options) -> Result<Socket, HostError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(options.patience))?;
        stream.set_write_timeout(Some(options.patience))?;
        Ok(Socket {
            stream,
            framing: Framing::default(),
            decoder: Decoder::new(Direction::ToHost),
            input: vec![0; INPUT].into_boxed_slice(),
            left: 0..0,
            max_data: 0,
            polls: options.polls.then_some(options.patience),
        })
    }

    /// Returns a connection whose sides exchanged ICReq and ICResp.
    ///
    /// # Errors
    /// Returns an error if the controller does not answer as it should.
    pub fn open(address: SocketAddr, options: &Options) -> Result<Socket, HostError> {
        let mut socket = Socket::raw(address, options)?;
        let Options { alignment, digests, max_r2t, .. } = *options;
        socket.send(&Pdu::IcReq(IcReq { alignment, digests, max_r2t }), &[])?;
        let Pdu::IcResp(answer) = socket.receive()?.pdu else {
            return Err(HostError::Fault(Fault::SEQUENCE));
        };
        // The controller enables no digest that the host did not ask for (section 3.3.1.1).
        if answer.digests.and(digests) != answer.digests {
            return Err(HostError::Fault(Fault::field(11)));
        }
        socket.begin(options, &answer);
        Ok(socket)
    }

    /// Sets the framing of the next PDUs, as ICReq and ICResp say.
    fn begin(&mut self, options: &Options, answer: &IcResp) {
        let digests = answer.digests;
        self.framing = Framing { digests, alignment: answer.alignment };
        self.decoder.set_framing(Framing { digests, alignment: options.alignment });
        self.max_data = answer.max_data as usize;
    }

    /// Returns the framing of PDUs to the controller.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the maximum number of bytes of data in an H2CData PDU (MAXH2CDATA).
    pub fn max_data(&self) -> usize {
        self.max_data
    }

    /// Sends a PDU.
    ///
    /// # Errors
    /// Returns an error if the connection is gone.
    ///
    /// # Panics
    /// Panics if the PDU cannot carry this data.
    pub fn send(&mut self, pdu: &Pdu, data: &[u8]) -> Result<(), HostError> {
        let bytes = pdu.encode(data, &self.framing);
        self.send_bytes(&bytes)
    }

    /// Sends any bytes.
    ///
    /// # Errors
    /// Returns an error if the connection is gone.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), HostError> {
        self.stream.write_all(bytes).map_err(HostError::from)
    }

    /// Waits for the next PDU.
    ///
    /// # Errors
    /// Returns an error if the connection is gone, if no PDU comes in time, or if the PDU breaks
    /// the protocol. For a broken protocol, the host sends an H2CTermReq (section 3.5.1).
    pub fn receive(&mut self) -> Result<Message, HostError> {
        let mut message: Option<Message> = None;
        loop {
            let mut left = &self.input[self.left.clone()];
            let piece = self.decoder.next(&mut left);
            let done = match (piece, &mut message) {
                (Ok(Some(Piece::Header(pdu, frame))), message) => {
                    let data = Vec::with_capacity(frame.data_bytes().min(1 << 20));
                    *message = Some(Message { pdu, data, is_intact: true });
                    frame.data_bytes() == 0
                }
                (Ok(Some(Piece::Data(bytes))), Some(message)) => {
                    message.data.extend_from_slice(bytes);
                    false
                }
                (Ok(Some(Piece::End { intact })), Some(message)) => {
                    message.is_intact = intact;
                    true
                }
                (Ok(Some(_)), None) => unreachable!("a PDU begins with its header"),
                (Ok(None), _) => {
                    self.fill()?;
                    continue;
                }
                (Err(fault), _) => return Err(self.fault(fault)),
            };
            self.left.start = self.left.end - left.len();
            if done {
                return Ok(message.take().expect("a PDU begins with its header"));
            }
        }
    }

    /// Reads some bytes. All bytes that were received before are already decoded.
    fn fill(&mut self) -> Result<(), HostError> {
        let bytes = match self.polls {
            None => self.stream.read(&mut self.input),
            Some(patience) => poll_read(&mut self.stream, &mut self.input, patience),
        }?;
        self.left = 0..bytes;
        if bytes == 0 { Err(HostError::Closed) } else { Ok(()) }
    }

    /// Terminates the connection because of a fault of the controller.
    pub(super) fn fault(&mut self, fault: Fault) -> HostError {
        let term = Pdu::H2cTermReq(fault.into()).encode(self.decoder.header(), &self.framing);
        let _ = self.stream.write_all(&term); // the connection is of no use any more
        HostError::Fault(fault)
    }
}
