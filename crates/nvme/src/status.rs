//! Status of a command (Base 4.2.3).

/// Status field of a completion, without the phase tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status {
    /// Status code type (SCT).
    pub kind: u8,
    /// Status code (SC).
    pub code: u8,
    /// Do not retry (DNR): the same command would fail again.
    pub do_not_retry: bool,
    /// More (M): the error log has an entry about the command.
    pub more: bool,
}

/// Makes the status of a command whose retry is useless.
const fn never(kind: u8, code: u8) -> Status {
    Status { kind, code, do_not_retry: true, more: false }
}

/// Makes the status of a command whose retry may succeed.
const fn retry(kind: u8, code: u8) -> Status {
    Status { kind, code, do_not_retry: false, more: false }
}

/// Status code type of generic status (Base 4.2.3.1).
const GENERIC: u8 = 0;
/// Status code type of command specific status (Base 4.2.3.2).
const SPECIFIC: u8 = 1;
/// Status code type of media and data integrity errors (Base 4.2.3.3).
const MEDIA: u8 = 2;

impl Status {
    /// Successful completion.
    pub const SUCCESS: Status = retry(GENERIC, 0x00);
    /// Invalid Command Opcode.
    pub const INVALID_OPCODE: Status = never(GENERIC, 0x01);
    /// Invalid Field in Command.
    pub const INVALID_FIELD: Status = never(GENERIC, 0x02);
    /// Command ID Conflict.
    pub const COMMAND_ID_CONFLICT: Status = never(GENERIC, 0x03);
    /// Data Transfer Error: the transport did not bring the data.
    pub const DATA_TRANSFER_ERROR: Status = retry(GENERIC, 0x04);
    /// Internal Error.
    pub const INTERNAL_ERROR: Status = retry(GENERIC, 0x06);
    /// Command Abort Requested.
    pub const ABORT_REQUESTED: Status = retry(GENERIC, 0x07);
    /// Invalid Namespace or Format.
    pub const INVALID_NAMESPACE: Status = never(GENERIC, 0x0B);
    /// Command Sequence Error. A retry after the missing step may succeed.
    pub const SEQUENCE_ERROR: Status = retry(GENERIC, 0x0C);
    /// Data SGL Length Invalid.
    pub const SGL_LENGTH_INVALID: Status = never(GENERIC, 0x0F);
    /// SGL Descriptor Type Invalid.
    pub const SGL_TYPE_INVALID: Status = never(GENERIC, 0x11);
    /// Keep Alive Timer Expired: in the error log only.
    pub const KEEP_ALIVE_EXPIRED: Status = retry(GENERIC, 0x19);
    /// Namespace is Write Protected: the media are worn out.
    pub const WRITE_PROTECTED: Status = never(GENERIC, 0x20);
    /// LBA Out of Range.
    pub const LBA_OUT_OF_RANGE: Status = never(GENERIC, 0x80);
    /// Capacity Exceeded: the flash has no room.
    pub const CAPACITY_EXCEEDED: Status = never(GENERIC, 0x81);

    /// Asynchronous Event Request Limit Exceeded.
    pub const EVENT_LIMIT_EXCEEDED: Status = retry(SPECIFIC, 0x05);
    /// Invalid Log Page.
    pub const INVALID_LOG_PAGE: Status = never(SPECIFIC, 0x09);
    /// Feature Identifier Not Saveable.
    pub const NOT_SAVEABLE: Status = never(SPECIFIC, 0x0D);
    /// Feature Not Changeable.
    pub const NOT_CHANGEABLE: Status = never(SPECIFIC, 0x0E);
    /// Feature Not Namespace Specific.
    pub const NOT_NAMESPACE_SPECIFIC: Status = never(SPECIFIC, 0x0F);
    /// I/O Command Set Not Supported, of Get Log Page.
    pub const COMMAND_SET_NOT_SUPPORTED: Status = never(SPECIFIC, 0x29);
    /// I/O Command Set Combination Rejected, of Set Features.
    pub const COMBINATION_REJECTED: Status = never(SPECIFIC, 0x2B);

    /// Incompatible Format, of Connect and Disconnect.
    pub const INCOMPATIBLE_FORMAT: Status = never(SPECIFIC, 0x80);
    /// Controller Busy, of Connect and Disconnect.
    pub const CONTROLLER_BUSY: Status = retry(SPECIFIC, 0x81);
    /// Connect Invalid Parameters.
    pub const CONNECT_INVALID: Status = never(SPECIFIC, 0x82);
    /// Connect Invalid Host.
    pub const CONNECT_INVALID_HOST: Status = never(SPECIFIC, 0x84);
    /// Invalid Queue Type, of Disconnect.
    pub const INVALID_QUEUE_TYPE: Status = never(SPECIFIC, 0x85);

    /// Invalid Protection Information (Base, Figure 104).
    pub const INVALID_PROTECTION: Status = never(SPECIFIC, 0x81);

    /// Write Fault: the data could not be committed to the media.
    pub const WRITE_FAULT: Status = retry(MEDIA, 0x80);
    /// Unrecovered Read Error.
    pub const UNRECOVERED_READ: Status = never(MEDIA, 0x81);
    /// Compare Failure.
    pub const COMPARE_FAILURE: Status = never(MEDIA, 0x85);

    /// Returns `true` if the command succeeded.
    pub const fn is_success(self) -> bool {
        self.kind == GENERIC && self.code == 0
    }

    /// Returns the same status with the More bit.
    #[must_use]
    pub const fn with_more(self) -> Status {
        Status { more: true, ..self }
    }

    /// Returns the 16 bits of the last word of a completion: the status field above the phase tag,
    /// which is 0 (Base 4.2.1).
    pub const fn to_bits(self) -> u16 {
        (self.code as u16) << 1
            | (self.kind as u16 & 7) << 9
            | (self.more as u16) << 14
            | (self.do_not_retry as u16) << 15
    }

    /// Returns the status of the last word of a completion.
    pub const fn from_bits(bits: u16) -> Status {
        Status {
            kind: (bits >> 9) as u8 & 7,
            code: (bits >> 1) as u8,
            more: bits & 1 << 14 != 0,
            do_not_retry: bits & 1 << 15 != 0,
        }
    }
}
