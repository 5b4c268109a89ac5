//! ICReq and ICResp, in which the two sides announce their framing of PDUs (sections 3.6.2.2 and
//! 3.6.2.3).

use super::fault::Fault;
use super::le::{put_u32, u16_at, u32_at};

/// Offsets of the fields, for [`Fault::field`].
mod at {
    pub const VERSION: u32 = 8;
    pub const ALIGNMENT: u32 = 10;
    pub const LIMIT: u32 = 12;
}

/// The digests of a connection, both CRC32C (section 3.3.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digests {
    /// A digest follows each header.
    pub header: bool,
    /// A digest follows the data of each PDU that has data.
    pub data: bool,
}

impl Digests {
    fn decode(bits: u8) -> Digests {
        Digests { header: bits & 1 != 0, data: bits & 2 != 0 }
    }

    fn encode(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }

    /// Returns the digests that both sides enabled.
    #[must_use]
    pub fn and(self, other: Digests) -> Digests {
        Digests { header: self.header && other.header, data: self.data && other.data }
    }
}

/// Alignment of the data from the start of its PDU, 4 to 128 bytes (HPDA, CPDA).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alignment(u8);

impl Alignment {
    /// The largest value of the field. The field counts dwords from 0.
    pub const MAX: u8 = 31;

    /// Returns the alignment for the value of the field; `None` above [`Alignment::MAX`].
    pub fn from_field(value: u8) -> Option<Alignment> {
        (value <= Alignment::MAX).then_some(Alignment(value))
    }

    /// Returns the value of the field: dwords, counted from 0.
    pub fn field(self) -> u8 {
        self.0
    }

    /// Returns the alignment in bytes.
    pub fn bytes(self) -> usize {
        (usize::from(self.0) + 1) * 4
    }

    /// Returns the bytes of padding after `header` bytes; below 128.
    pub(super) fn padding(self, header: usize) -> u8 {
        (header.next_multiple_of(self.bytes()) - header) as u8
    }
}

/// Framing of the PDUs of one direction. The default (no digests, 4 bytes) holds until ICReq and
/// ICResp are exchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Framing {
    /// The digests, the same in both directions.
    pub digests: Digests,
    /// The alignment that the receiver asked for.
    pub alignment: Alignment,
}

/// Initialize Connection Request: the first PDU of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IcReq {
    /// Alignment of data on the way to the host (HPDA).
    pub alignment: Alignment,
    /// The digests that the host asks for.
    pub digests: Digests,
    /// Outstanding R2T PDUs of a command that the host supports, counted from 0 (MAXR2T).
    pub max_r2t: u32,
}

impl IcReq {
    pub(super) fn decode(header: &[u8]) -> Result<IcReq, Fault> {
        let (alignment, digests) = decode_shared(header)?;
        Ok(IcReq { alignment, digests, max_r2t: u32_at(header, 12) })
    }

    pub(super) fn encode(&self, header: &mut [u8]) {
        encode_shared(header, self.alignment, self.digests, self.max_r2t);
    }
}

/// Initialize Connection Response: the first PDU of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcResp {
    /// Alignment of data on the way to the controller (CPDA).
    pub alignment: Alignment,
    /// The digests that are in use from here on.
    pub digests: Digests,
    /// Maximum number of bytes of data in an H2CData PDU; a multiple of 4 (MAXH2CDATA).
    pub max_data: u32,
}

impl IcResp {
    pub(super) fn decode(header: &[u8]) -> Result<IcResp, Fault> {
        let (alignment, digests) = decode_shared(header)?;
        let max_data = u32_at(header, 12);
        if max_data == 0 || max_data % 4 != 0 {
            return Err(Fault::field(at::LIMIT));
        }
        Ok(IcResp { alignment, digests, max_data })
    }

    pub(super) fn encode(&self, header: &mut [u8]) {
        encode_shared(header, self.alignment, self.digests, self.max_data);
    }
}

/// Returns the fields that both PDUs have at the same offsets. A version of the format other than 0
/// is an unsupported parameter (section 3.1).
fn decode_shared(header: &[u8]) -> Result<(Alignment, Digests), Fault> {
    if u16_at(header, 8) != 0 {
        return Err(Fault::unsupported(at::VERSION));
    }
    let alignment = Alignment::from_field(header[10]).ok_or(Fault::field(at::ALIGNMENT))?;
    Ok((alignment, Digests::decode(header[11])))
}

fn encode_shared(header: &mut [u8], alignment: Alignment, digests: Digests, limit: u32) {
    header[10] = alignment.field();
    header[11] = digests.encode();
    put_u32(header, 12, limit);
}
