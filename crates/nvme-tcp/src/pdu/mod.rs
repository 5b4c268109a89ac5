//! The PDUs of NVMe/TCP as bytes (NVMe/TCP Transport Specification 1.1, section 3.6.2).
//!
//! A [`Pdu`] is a typed header. Its data, if it has any, is not a part of the [`Pdu`]: [`Frame`]
//! has the place of the data. [`Decoder`] reads PDUs from a stream of bytes without storing their
//! data.

mod data;
mod decoder;
mod fault;
mod frame;
mod init;
mod le;

pub use data::{C2hData, H2cData, R2t};
pub use decoder::{Decoder, Piece};
pub use fault::{FatalStatus, Fault};
pub use frame::{
    COMMON_BYTES, DIGEST_BYTES, Direction, Frame, HEADER_BYTES_MAX, Kind, TERM_DATA_MAX,
};
pub use init::{Alignment, Digests, Framing, IcReq, IcResp};

#[allow(unused_imports)]
pub(crate) use data::at;
#[allow(unused_imports)]
pub(crate) use le::{put_u16, u16_at, u32_at};

use le::put_u32;

/// Bytes of a submission queue entry.
pub const ENTRY_BYTES: usize = 64;
/// Bytes of a completion queue entry.
pub const COMPLETION_BYTES: usize = 16;

/// A request to terminate the connection (sections 3.6.2.4 and 3.6.2.5). Its data is the header
/// that was being processed, at most [`TERM_DATA_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TermReq {
    /// Fatal Error Status (FES); codes above 6 are reserved.
    pub status: u16,
    /// Fatal Error Information (FEI).
    pub information: u32,
}

impl TermReq {
    /// Returns the fault that is reported; `None` if its status is reserved.
    pub fn fault(&self) -> Option<Fault> {
        let status = FatalStatus::from_code(self.status)?;
        Some(Fault { status, information: self.information })
    }
}

impl From<Fault> for TermReq {
    fn from(fault: Fault) -> TermReq {
        TermReq { status: fault.status as u16, information: fault.information }
    }
}

/// The header of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pdu {
    /// Initialize Connection Request.
    IcReq(IcReq),
    /// Initialize Connection Response.
    IcResp(IcResp),
    /// Host to Controller Terminate Connection Request.
    H2cTermReq(TermReq),
    /// Controller to Host Terminate Connection Request.
    C2hTermReq(TermReq),
    /// Command Capsule: a submission queue entry (section 3.6.2.6).
    CapsuleCmd([u8; ENTRY_BYTES]),
    /// Response Capsule: a completion queue entry (section 3.6.2.7).
    CapsuleResp([u8; COMPLETION_BYTES]),
    /// Host to Controller Data.
    H2cData(H2cData),
    /// Controller to Host Data.
    C2hData(C2hData),
    /// Ready to Transfer.
    R2t(R2t),
}

impl Pdu {
    /// Returns the type.
    pub fn kind(&self) -> Kind {
        match self {
            Pdu::IcReq(_) => Kind::IcReq,
            Pdu::IcResp(_) => Kind::IcResp,
            Pdu::H2cTermReq(_) => Kind::H2cTermReq,
            Pdu::C2hTermReq(_) => Kind::C2hTermReq,
            Pdu::CapsuleCmd(_) => Kind::CapsuleCmd,
            Pdu::CapsuleResp(_) => Kind::CapsuleResp,
            Pdu::H2cData(_) => Kind::H2cData,
            Pdu::C2hData(_) => Kind::C2hData,
            Pdu::R2t(_) => Kind::R2t,
        }
    }

    /// Decodes `header`, the bytes up to the padding or the data. `frame` was decoded from the same
    /// bytes.
    ///
    /// # Errors
    /// Returns the fault of the first field with an invalid value.
    ///
    /// # Panics
    /// Panics if `header` is shorter than the header length in `frame`.
    pub fn decode(frame: &Frame, header: &[u8]) -> Result<Pdu, Fault> {
        let term = |header| TermReq { status: u16_at(header, 8), information: u32_at(header, 10) };
        Ok(match frame.kind() {
            Kind::IcReq => Pdu::IcReq(IcReq::decode(header)?),
            Kind::IcResp => Pdu::IcResp(IcResp::decode(header)?),
            Kind::H2cTermReq => Pdu::H2cTermReq(term(header)),
            Kind::C2hTermReq => Pdu::C2hTermReq(term(header)),
            Kind::CapsuleCmd => Pdu::CapsuleCmd(array(header)),
            Kind::CapsuleResp => Pdu::CapsuleResp(array(header)),
            Kind::H2cData => Pdu::H2cData(H2cData::decode(frame, header)?),
            Kind::C2hData => Pdu::C2hData(C2hData::decode(frame, header)?),
            Kind::R2t => Pdu::R2t(R2t::decode(header)?),
        })
    }

    /// Returns the bytes before the data of a PDU with `data` bytes: header, header digest and
    /// padding.
    ///
    /// # Panics
    /// Panics if the type carries no data and `data` is above 0, or if `data` differs from the
    /// length in the header.
    pub fn encode_header(&self, data: usize, framing: &Framing) -> Vec<u8> {
        let flags = match self {
            Pdu::H2cData(pdu) => pdu.flags(),
            Pdu::C2hData(pdu) => pdu.flags(),
            _ => 0,
        };
        let frame = Frame::of(self.kind(), flags, data, framing);
        let mut bytes = vec![0; frame.header_bytes() + frame.padding()];
        bytes[..COMMON_BYTES].copy_from_slice(&frame.encode());
        let header = &mut bytes[..self.kind().header_bytes()];
        match self {
            Pdu::IcReq(pdu) => pdu.encode(header),
            Pdu::IcResp(pdu) => pdu.encode(header),
            Pdu::H2cTermReq(term) | Pdu::C2hTermReq(term) => {
                put_u16(header, 8, term.status);
                put_u32(header, 10, term.information);
            }
            Pdu::CapsuleCmd(entry) => header[8..].copy_from_slice(entry),
            Pdu::CapsuleResp(entry) => header[8..].copy_from_slice(entry),
            Pdu::H2cData(pdu) => pdu.encode(header),
            Pdu::C2hData(pdu) => pdu.encode(header),
            Pdu::R2t(pdu) => pdu.encode(header),
        }
        let announced = match self {
            Pdu::H2cData(pdu) => Some(pdu.length),
            Pdu::C2hData(pdu) => Some(pdu.length),
            _ => None,
        };
        assert!(announced.is_none_or(|length| length as usize == data), "{self:?} with {data}");
        if frame.has_header_digest() {
            let end = self.kind().header_bytes();
            let digest = crc32c::crc32c(&bytes[..end]);
            put_u32(&mut bytes, end, digest);
        }
        bytes
    }

    /// Returns the bytes of the PDU with its data and digests.
    ///
    /// # Panics
    /// Panics as [`Pdu::encode_header`] does.
    pub fn encode(&self, data: &[u8], framing: &Framing) -> Vec<u8> {
        let mut bytes = self.encode_header(data.len(), framing);
        bytes.extend_from_slice(data);
        let digested = matches!(self.kind(), Kind::CapsuleCmd | Kind::H2cData | Kind::C2hData);
        if digested && framing.digests.data && !data.is_empty() {
            bytes.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
        }
        bytes
    }
}

fn array<const N: usize>(header: &[u8]) -> [u8; N] {
    header[COMMON_BYTES..COMMON_BYTES + N].try_into().expect("a slice of this length")
}
