//! The common header of PDUs (section 3.6.2.1), and the places of a PDU's parts: header, header
//! digest, padding, data and data digest (section 2, figure 3).

use super::fault::Fault;
use super::init::Framing;

/// Bytes of the common header.
pub const COMMON_BYTES: usize = 8;
/// Bytes of the longest header, with its digest.
pub const HEADER_BYTES_MAX: usize = 128 + DIGEST_BYTES;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// Maximum number of bytes of data in a TermReq PDU (section 3.5.1).
pub const TERM_DATA_MAX: usize = 128;

const FLAG_HEADER_DIGEST: u8 = 1 << 0;
const FLAG_DATA_DIGEST: u8 = 1 << 1;
pub(super) const FLAG_LAST: u8 = 1 << 2;
pub(super) const FLAG_SUCCESS: u8 = 1 << 3;

/// Offsets of the fields of the common header, for [`Fault::field`].
pub(super) mod at {
    pub const KIND: u32 = 0;
    pub const FLAGS: u32 = 1;
    pub const HEADER_LENGTH: u32 = 2;
    pub const DATA_OFFSET: u32 = 3;
    pub const LENGTH: u32 = 4;
}

/// The direction of a PDU: bit 0 of the opcode (figure 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the host to the controller (H2C).
    ToController,
    /// From the controller to the host (C2H).
    ToHost,
}

/// The type of a PDU, with its opcode (figure 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Initialize Connection Request.
    IcReq = 0x00,
    /// Initialize Connection Response.
    IcResp = 0x01,
    /// Host to Controller Terminate Connection Request.
    H2cTermReq = 0x02,
    /// Controller to Host Terminate Connection Request.
    C2hTermReq = 0x03,
    /// Command Capsule.
    CapsuleCmd = 0x04,
    /// Response Capsule.
    CapsuleResp = 0x05,
    /// Host to Controller Data.
    H2cData = 0x06,
    /// Controller to Host Data.
    C2hData = 0x07,
    /// Ready to Transfer.
    R2t = 0x09,
}

impl Kind {
    /// All types, in the order of their opcodes.
    pub const ALL: [Kind; 9] = [
        Kind::IcReq,
        Kind::IcResp,
        Kind::H2cTermReq,
        Kind::C2hTermReq,
        Kind::CapsuleCmd,
        Kind::CapsuleResp,
        Kind::H2cData,
        Kind::C2hData,
        Kind::R2t,
    ];

    /// Returns the type with this opcode; `None` if the opcode is reserved.
    pub fn from_opcode(opcode: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| kind as u8 == opcode)
    }

    /// Returns the direction in which PDUs of this type travel.
    pub fn direction(self) -> Direction {
        if self as u8 & 1 == 0 { Direction::ToController } else { Direction::ToHost }
    }

    /// Returns the length of the header in bytes, without its digest (HLEN).
    pub fn header_bytes(self) -> usize {
        match self {
            Kind::IcReq | Kind::IcResp => 128,
            Kind::CapsuleCmd => 72,
            Kind::H2cTermReq
            | Kind::C2hTermReq
            | Kind::CapsuleResp
            | Kind::H2cData
            | Kind::C2hData
            | Kind::R2t => 24,
        }
    }

    /// Returns whether digests and alignment apply to PDUs of this type (section 3.3.1.1).
    pub(super) fn is_framed(self) -> bool {
        !matches!(self, Kind::IcReq | Kind::IcResp | Kind::H2cTermReq | Kind::C2hTermReq)
    }

    fn is_termination(self) -> bool {
        matches!(self, Kind::H2cTermReq | Kind::C2hTermReq)
    }

    fn may_carry_data(self) -> bool {
        matches!(self, Kind::CapsuleCmd | Kind::H2cData | Kind::C2hData)
    }
}

/// A PDU's type, its flags, and the places of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    kind: Kind,
    flags: u8,
    header_digest: bool,
    padding: u8,
    data: u32,
    data_digest: bool,
}

impl Frame {
    /// Returns the frame of a PDU with `data` bytes of data.
    ///
    /// # Panics
    /// Panics if the type carries no data and `data` is above 0, if a TermReq has more than
    /// [`TERM_DATA_MAX`] bytes, or if the PDU is too long for its length field.
    pub(super) fn of(kind: Kind, flags: u8, data: usize, framing: &Framing) -> Frame {
        if kind.is_termination() {
            assert!(data <= TERM_DATA_MAX, "{data} bytes of data in a {kind:?}");
        } else {
            assert!(data == 0 || kind.may_carry_data(), "{data} bytes of data in a {kind:?}");
        }
        let header_digest = kind.is_framed() && framing.digests.header;
        let carries = kind.is_framed() && data > 0;
        let header = kind.header_bytes() + if header_digest { DIGEST_BYTES } else { 0 };
        let padding = if carries { framing.alignment.padding(header) } else { 0 };
        let frame = Frame {
            kind,
            flags,
            header_digest,
            padding,
            data: u32::try_from(data).expect("data of less than 4 GiB"),
            data_digest: carries && framing.digests.data,
        };
        assert!(u32::try_from(frame.length()).is_ok(), "a PDU of {} bytes", frame.length());
        frame
    }

    /// Checks the fields without which the header cannot be received: type, direction, the flag
    /// of the header digest, and the length of the header. Returns the type.
    ///
    /// The other fields are checked in [`Frame::decode`], after the header digest. So a damaged
    /// header is reported as damaged.
    pub(super) fn begin(
        common: &[u8; COMMON_BYTES],
        expected: Direction,
        framing: &Framing,
    ) -> Result<Kind, Fault> {
        // An opcode in the wrong direction is a fatal transport error (section 3.3).
        let kind = Kind::from_opcode(common[0])
            .filter(|kind| kind.direction() == expected)
            .ok_or(Fault::field(at::KIND))?;
        let digest = common[1] & FLAG_HEADER_DIGEST != 0;
        if kind.is_framed() && digest != framing.digests.header {
            return Err(Fault::field(at::FLAGS));
        }
        if usize::from(common[2]) != kind.header_bytes() {
            return Err(Fault::field(at::HEADER_LENGTH));
        }
        Ok(kind)
    }

    /// Returns the frame that the common header describes. Every length is checked here, before
    /// anything is allocated.
    ///
    /// # Errors
    /// Returns the fault with the lowest offset: type, flags, header length, data offset, length.
    /// Reserved bits are ignored.
    pub fn decode(
        common: &[u8; COMMON_BYTES],
        expected: Direction,
        framing: &Framing,
    ) -> Result<Frame, Fault> {
        let kind = Frame::begin(common, expected, framing)?;
        let [_, flags, _, offset, length @ ..] = *common;
        let length = u32::from_le_bytes(length) as usize;
        let header_digest = kind.is_framed() && framing.digests.header;
        let header = kind.header_bytes() + if header_digest { DIGEST_BYTES } else { 0 };
        let mut frame =
            Frame { kind, flags, header_digest, padding: 0, data: 0, data_digest: false };
        if kind.is_termination() {
            let data = length.checked_sub(header).filter(|&data| data <= TERM_DATA_MAX);
            frame.data = data.ok_or(Fault::field(at::LENGTH))? as u32;
            return Ok(frame);
        }
        if length == header && !matches!(kind, Kind::H2cData | Kind::C2hData) {
            return Ok(frame); // PDO and DDGSTF have no meaning without data
        }
        if !kind.may_carry_data() {
            return Err(Fault::field(at::LENGTH));
        }
        frame.data_digest = flags & FLAG_DATA_DIGEST != 0;
        if frame.data_digest != framing.digests.data {
            return Err(Fault::field(at::FLAGS));
        }
        let offset = usize::from(offset);
        let Some(padding) =
            offset.checked_sub(header).filter(|_| offset % framing.alignment.bytes() == 0)
        else {
            return Err(Fault::field(at::DATA_OFFSET));
        };
        let digest = if frame.data_digest { DIGEST_BYTES } else { 0 };
        let data = length.checked_sub(offset + digest).filter(|&data| data > 0);
        frame.padding = padding as u8; // the offset is a byte
        frame.data = data.ok_or(Fault::field(at::LENGTH))? as u32;
        Ok(frame)
    }

    /// Returns the common header.
    pub(super) fn encode(&self) -> [u8; COMMON_BYTES] {
        let digests =
            flag(self.header_digest, FLAG_HEADER_DIGEST) | flag(self.data_digest, FLAG_DATA_DIGEST);
        let offset = if self.data > 0 && self.kind.is_framed() {
            self.header_bytes() + usize::from(self.padding)
        } else {
            0 // reserved
        };
        let length = u32::try_from(self.length()).expect("checked when the frame was made");
        let [a, b, c, d] = length.to_le_bytes();
        let header = self.kind.header_bytes() as u8; // at most 128
        [self.kind as u8, self.flags | digests, header, offset as u8, a, b, c, d]
    }

    /// Returns the type.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether a digest follows the header.
    pub fn has_header_digest(&self) -> bool {
        self.header_digest
    }

    /// Returns whether a digest follows the data.
    pub fn has_data_digest(&self) -> bool {
        self.data_digest
    }

    /// Returns the length of the header in bytes, with its digest.
    pub fn header_bytes(&self) -> usize {
        self.kind.header_bytes() + if self.header_digest { DIGEST_BYTES } else { 0 }
    }

    /// Returns the bytes between the header and the data.
    pub fn padding(&self) -> usize {
        usize::from(self.padding)
    }

    /// Returns the bytes of data.
    pub fn data_bytes(&self) -> usize {
        self.data as usize
    }

    /// Returns the length of the PDU in bytes (PLEN).
    pub fn length(&self) -> usize {
        let digest = if self.data_digest { DIGEST_BYTES } else { 0 };
        self.header_bytes() + self.padding() + self.data_bytes() + digest
    }
}

/// Returns the flag if it is set, or 0.
pub(super) fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}
