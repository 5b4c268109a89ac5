//! Fatal transport errors: the status in a TermReq PDU (sections 3.5.1, 3.6.2.4, 3.6.2.5).

use std::fmt;

/// Fatal Error Status (FES) of a TermReq PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum FatalStatus {
    /// A field of the PDU header has an invalid value; the information is the field's offset.
    InvalidHeaderField = 1,
    /// The PDU was not expected at this point of the protocol.
    SequenceError = 2,
    /// The header digest is wrong; the information is the digest that was received.
    HeaderDigest = 3,
    /// A data PDU lies outside the range of its R2T or its buffer.
    OutOfRange = 4,
    /// An H2CData PDU is longer than MAXH2CDATA, or an R2T PDU exceeds MAXR2T.
    LimitExceeded = 5,
    /// A parameter is not supported; the information is the field's offset.
    UnsupportedParameter = 6,
}

impl FatalStatus {
    const ALL: [FatalStatus; 6] = [
        FatalStatus::InvalidHeaderField,
        FatalStatus::SequenceError,
        FatalStatus::HeaderDigest,
        FatalStatus::OutOfRange,
        FatalStatus::LimitExceeded,
        FatalStatus::UnsupportedParameter,
    ];

    /// Returns the status with the code `fes`; `None` if the code is reserved.
    pub fn from_code(fes: u16) -> Option<FatalStatus> {
        FatalStatus::ALL.into_iter().find(|&status| status as u16 == fes)
    }
}

/// A fatal transport error, as the side that found it reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Fatal Error Status (FES).
    pub status: FatalStatus,
    /// Fatal Error Information (FEI): an offset, a digest, or 0, depending on the status.
    pub information: u32,
}

impl Fault {
    /// A PDU that was not expected at this point of the protocol.
    pub const SEQUENCE: Fault = Fault { status: FatalStatus::SequenceError, information: 0 };
    /// Data outside the range of its R2T.
    pub const OUT_OF_RANGE: Fault = Fault { status: FatalStatus::OutOfRange, information: 0 };
    /// More data in one PDU, or more R2T PDUs, than the receiver announced.
    pub const LIMIT: Fault = Fault { status: FatalStatus::LimitExceeded, information: 0 };

    /// Returns the fault of an invalid field at `offset` bytes from the start of the header.
    pub const fn field(offset: u32) -> Fault {
        Fault { status: FatalStatus::InvalidHeaderField, information: offset }
    }

    /// Returns the fault of an unsupported parameter at `offset` bytes from the header's start.
    pub const fn unsupported(offset: u32) -> Fault {
        Fault { status: FatalStatus::UnsupportedParameter, information: offset }
    }

    /// Returns the fault of a header whose digest `received` is wrong.
    pub const fn header_digest(received: u32) -> Fault {
        Fault { status: FatalStatus::HeaderDigest, information: received }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.information;
        match self.status {
            FatalStatus::InvalidHeaderField => write!(f, "invalid PDU header field at byte {at}"),
            FatalStatus::SequenceError => write!(f, "PDU sequence error"),
            FatalStatus::HeaderDigest => write!(f, "wrong header digest {at:08x}h"),
            FatalStatus::OutOfRange => write!(f, "data transfer out of range"),
            FatalStatus::LimitExceeded => write!(f, "data transfer or R2T limit exceeded"),
            FatalStatus::UnsupportedParameter => write!(f, "unsupported parameter at byte {at}"),
        }
    }
}

impl std::error::Error for Fault {}
