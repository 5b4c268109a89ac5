//! A decoder of the stream of PDUs that one side sends. It stores one header and no data.

use super::fault::Fault;
use super::frame::{COMMON_BYTES, DIGEST_BYTES, Direction, Frame, HEADER_BYTES_MAX, Kind};
use super::init::Framing;
use super::le::u32_at;
use super::{Pdu, TERM_DATA_MAX};

/// A part of a PDU, in the order header, data (in pieces of any size), end.
#[derive(PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// The header. The receiver checks it before it takes the data.
    Header(Pdu, Frame),
    /// Some of the data, at least 1 byte.
    Data(&'a [u8]),
    /// The end of a PDU that had data.
    End {
        /// The data digest is right, or not in use.
        intact: bool,
    },
}

enum State {
    Header,
    Padding { left: usize, frame: Frame },
    Data { left: usize, crc: u32, frame: Frame },
    Digest { have: usize, crc: u32 },
}

/// Decoder of PDUs in one direction.
pub struct Decoder {
    direction: Direction,
    framing: Framing,
    state: State,
    header: [u8; HEADER_BYTES_MAX],
    /// Bytes of `header` that have arrived; 0 between two headers.
    have: usize,
    /// Bytes of the header of the last PDU.
    whole: usize,
    digest: [u8; DIGEST_BYTES],
}

impl Decoder {
    /// Returns a decoder for PDUs that travel in `direction`, without digests.
    pub fn new(direction: Direction) -> Decoder {
        Decoder {
            direction,
            framing: Framing::default(),
            state: State::Header,
            header: [0; HEADER_BYTES_MAX],
            have: 0,
            whole: 0,
            digest: [0; DIGEST_BYTES],
        }
    }

    /// Sets the framing of the next PDUs, after ICReq and ICResp were exchanged.
    ///
    /// # Panics
    /// Panics in the middle of a PDU.
    pub fn set_framing(&mut self, framing: Framing) {
        assert!(matches!(self.state, State::Header) && self.have == 0, "in the middle of a PDU");
        self.framing = framing;
    }

    /// Returns the header of the PDU that is being processed, as far as it has arrived: the data
    /// of a TermReq (section 3.5.1).
    pub fn header(&self) -> &[u8] {
        let end = if self.have > 0 { self.have } else { self.whole };
        &self.header[..end.min(TERM_DATA_MAX)]
    }

    /// Takes bytes off the front of `bytes` and returns the next piece; `None` if all bytes are
    /// taken and the piece is not complete.
    ///
    /// # Errors
    /// Returns the fault of a header that cannot be accepted. No call may follow an error.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, Fault> {
        // Each turn takes bytes or moves to the next state: at most four turns a piece.
        loop {
            match self.state {
                State::Header => return self.next_of_header(bytes),
                State::Padding { left, frame } => {
                    let left = left - take(bytes, left).len();
                    if left > 0 {
                        self.state = State::Padding { left, frame };
                        return Ok(None);
                    }
                    self.state = State::Data { left: frame.data_bytes(), crc: 0, frame };
                }
                State::Data { left: 0, crc, frame } => {
                    if !frame.has_data_digest() {
                        self.state = State::Header;
                        return Ok(Some(Piece::End { intact: true }));
                    }
                    self.state = State::Digest { have: 0, crc };
                }
                State::Data { left, crc, frame } => {
                    let data = take(bytes, left);
                    if data.is_empty() {
                        return Ok(None);
                    }
                    let crc =
                        if frame.has_data_digest() { crc32c::crc32c_append(crc, data) } else { 0 };
                    self.state = State::Data { left: left - data.len(), crc, frame };
                    return Ok(Some(Piece::Data(data)));
                }
                State::Digest { have, crc } => {
                    let part = take(bytes, DIGEST_BYTES - have);
                    let have = have + part.len();
                    self.digest[have - part.len()..have].copy_from_slice(part);
                    if have < DIGEST_BYTES {
                        self.state = State::Digest { have, crc };
                        return Ok(None);
                    }
                    self.state = State::Header;
                    return Ok(Some(Piece::End { intact: u32::from_le_bytes(self.digest) == crc }));
                }
            }
        }
    }

    fn next_of_header<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, Fault> {
        if self.have < COMMON_BYTES && !self.fill(bytes, COMMON_BYTES) {
            return Ok(None);
        }
        let common = self.common();
        let kind = Frame::begin(&common, self.direction, &self.framing)?;
        // A PDU without a digest is refused as soon as its lengths are known.
        let digest = self.digest_bytes(kind);
        if digest == 0 {
            Frame::decode(&common, self.direction, &self.framing)?;
        }
        let length = kind.header_bytes();
        if !self.fill(bytes, length + digest) {
            return Ok(None);
        }
        if digest > 0 {
            let received = u32_at(&self.header, length);
            if crc32c::crc32c(&self.header[..length]) != received {
                return Err(Fault::header_digest(received));
            }
        }
        let frame = Frame::decode(&common, self.direction, &self.framing)?;
        let pdu = Pdu::decode(&frame, &self.header[..length])?;
        (self.have, self.whole) = (0, length);
        if frame.data_bytes() > 0 {
            self.state = State::Padding { left: frame.padding(), frame };
        }
        Ok(Some(Piece::Header(pdu, frame)))
    }

    fn common(&self) -> [u8; COMMON_BYTES] {
        self.header[..COMMON_BYTES].try_into().expect("the first bytes of the header")
    }

    fn digest_bytes(&self, kind: Kind) -> usize {
        let digested = self.framing.digests.header && kind.is_framed();
        if digested { DIGEST_BYTES } else { 0 }
    }

    /// Fills the header up to `end` bytes, and returns whether they are all there.
    fn fill(&mut self, bytes: &mut &[u8], end: usize) -> bool {
        let part = take(bytes, end - self.have);
        self.header[self.have..self.have + part.len()].copy_from_slice(part);
        self.have += part.len();
        self.have == end
    }
}

/// Takes at most `most` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (front, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    front
}
