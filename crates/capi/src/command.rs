//! Checks of a host's commands. It is an error to set a field that the drive would ignore.

use crate::abi::{FaCode, FaCommand, FaOp, FaReply};
use flashatlas_device::{Cmd, DeviceShape, Reply};
use flashatlas_types::{HostOp, Lba, SECTOR_BYTES};

/// Reason why a call was refused.
#[derive(Debug)]
pub struct Refusal {
    /// The code, which is for programs.
    pub code: FaCode,
    /// The text, which is for people. It is one sentence without a full stop.
    pub text: String,
}

/// Returns a refusal with a code and a text.
pub fn refuse(code: FaCode, text: impl Into<String>) -> Refusal {
    Refusal { code, text: text.into() }
}

fn argument(text: impl Into<String>) -> Refusal {
    refuse(FaCode::FA_ERR_ARGUMENT, text)
}

/// Returns the operation of a command.
pub fn op_of(command: &FaCommand) -> Result<HostOp, Refusal> {
    let ops = [
        (FaOp::FA_OP_READ, HostOp::Read),
        (FaOp::FA_OP_WRITE, HostOp::Write),
        (FaOp::FA_OP_FLUSH, HostOp::Flush),
        (FaOp::FA_OP_TRIM, HostOp::Trim),
    ];
    let known = ops.iter().find(|(number, _)| *number as u32 == command.op);
    known.map(|&(_, op)| op).ok_or_else(|| {
        argument(format!(
            "`op` is {}, but must be 1 (read), 2 (write), 3 (flush) or 4 (trim)",
            command.op
        ))
    })
}

/// Returns an error if the command sets a field that is not supported yet.
fn only_supported(command: &FaCommand) -> Result<(), Refusal> {
    let fields = [
        ("namespace_id", command.namespace_id),
        ("stream", command.stream),
        ("placement", command.placement),
        ("zone_command", command.zone_command),
    ];
    if let Some((name, value)) = fields.into_iter().find(|&(_, value)| value != 0) {
        let why = format!("`{name}` is {value}, but is not supported yet and must be 0");
        return Err(refuse(FaCode::FA_ERR_UNSUPPORTED, why));
    }
    if command.reserved != 0 || command.more != [0; 4] {
        let why = "`reserved` or `more` is not 0: set the whole command to zero first";
        return Err(refuse(FaCode::FA_ERR_UNSUPPORTED, why));
    }
    Ok(())
}

/// Returns an error if the command sets a field that belongs to other operations.
fn only_own_fields(command: &FaCommand, op: HostOp) -> Result<(), Refusal> {
    let strange = |name: &str, on: &str| {
        Err(argument(format!("`{name}` is given with a {}, but belongs to {on}", op.name())))
    };
    if command.fua > 1 {
        return Err(argument(format!("`fua` is {}, but must be 0 or 1", command.fua)));
    }
    if op != HostOp::Write {
        if command.fua != 0 {
            return strange("fua", "writes");
        }
        if command.content != 0 {
            return strange("content", "writes");
        }
        if !command.data.is_null() || command.data_bytes != 0 {
            return strange("data", "writes (the data of a read goes to the reply)");
        }
    }
    if op == HostOp::Flush && (command.lba != 0 || command.sectors != 0) {
        return strange("lba or sectors", "the other commands");
    }
    Ok(())
}

/// Returns the bytes of a write, or `Ok(None)` if the drive stores stamps.
///
/// # Safety
/// `data` of the command is null or has as many bytes as the command says.
unsafe fn data_of(command: &FaCommand, keeps_bytes: bool) -> Result<Option<&[u8]>, Refusal> {
    let needed = command.sectors as usize * SECTOR_BYTES as usize;
    match (keeps_bytes, command.data.is_null()) {
        (false, true) if command.data_bytes == 0 => Ok(None),
        (false, _) => Err(refuse(
            FaCode::FA_ERR_UNSUPPORTED,
            "`data` is given, but the drive keeps stamps, not bytes: make the drive with \
             nand.data=ram",
        )),
        (true, true) => {
            Err(argument("`data` is null, but the drive keeps the bytes of its writes"))
        }
        (true, false) if command.data_bytes != needed => Err(argument(format!(
            "`data_bytes` is {}, but {} sectors have {needed} bytes",
            command.data_bytes, command.sectors
        ))),
        // SAFETY: as the caller promises
        (true, false) => {
            Ok(Some(unsafe { std::slice::from_raw_parts(command.data.cast(), command.data_bytes) }))
        }
    }
}

/// Checks a command, and returns it as a command of a device.
///
/// # Errors
/// Returns a sentence that names the rule that the command breaks.
///
/// # Safety
/// `data` of the command is null or has as many bytes as the command says.
pub unsafe fn checked<'a>(
    command: &'a FaCommand,
    shape: &DeviceShape,
    keeps_bytes: bool,
    next_content: u64,
) -> Result<Cmd<'a>, Refusal> {
    let op = op_of(command)?;
    only_supported(command)?;
    only_own_fields(command, op)?;
    let (lba, sectors) = (Lba(command.lba), command.sectors);
    if op != HostOp::Flush && shape.accepts(&Cmd::Read { lba, sectors }).is_err() {
        let why = match sectors {
            0 => "`sectors` is 0: the range is empty".to_owned(),
            _ => format!(
                "{sectors} sectors from lba {} on end beyond the drive, which has {} sectors",
                lba.0, shape.sectors
            ),
        };
        return Err(refuse(FaCode::FA_ERR_RANGE, why));
    }
    Ok(match op {
        HostOp::Read => Cmd::Read { lba, sectors },
        HostOp::Trim => Cmd::Trim { lba, sectors },
        HostOp::Flush => Cmd::Flush,
        HostOp::Write => Cmd::Write {
            lba,
            sectors,
            fua: command.fua == 1,
            content: if command.content == 0 { next_content } else { command.content },
            // SAFETY: as the caller promises
            data: unsafe { data_of(command, keeps_bytes)? },
        },
    })
}

/// Returns an error unless the buffers of a reply have room for the result of the command.
pub fn has_room(
    reply: &FaReply,
    cmd: &Cmd<'_>,
    shape: &DeviceShape,
    keeps_bytes: bool,
) -> Result<(), Refusal> {
    let Cmd::Read { lba, sectors } = *cmd else {
        let wanted = !reply.data.is_null() || !reply.stamps.is_null();
        let why = "only a read puts something into `data` and `stamps` of the reply";
        return if wanted { Err(argument(why)) } else { Ok(()) };
    };
    if !reply.data.is_null() {
        if !keeps_bytes {
            let why = "`data` of the reply is given, but the drive keeps stamps, not bytes: make \
                       the drive with nand.data=ram";
            return Err(refuse(FaCode::FA_ERR_UNSUPPORTED, why));
        }
        let needed = sectors as usize * SECTOR_BYTES as usize;
        if reply.data_room < needed {
            let room = reply.data_room;
            return Err(argument(format!(
                "`data_room` is {room}, but the read returns {needed} bytes"
            )));
        }
    }
    if !reply.stamps.is_null() {
        let unit = u64::from(shape.unit_sectors);
        let units = (lba.0 + u64::from(sectors)).div_ceil(unit) - lba.0 / unit;
        let room = reply.stamp_room;
        if (room as u64) < units {
            return Err(argument(format!(
                "`stamp_room` is {room}, but the read has {units} stamps"
            )));
        }
    }
    Ok(())
}

/// Writes the result of a read to the buffers of `place`.
///
/// # Safety
/// `has_room` returned `Ok` for `place`, and the buffers of `place` have the room that it states.
pub unsafe fn put(place: &mut FaReply, reply: &Reply) {
    if !place.data.is_null() {
        assert!(reply.bytes.len() <= place.data_room, "a read returned more than its range");
        // SAFETY: as the caller promises
        unsafe { place.data.cast::<u8>().copy_from(reply.bytes.as_ptr(), reply.bytes.len()) };
        place.data_bytes = reply.bytes.len();
    }
    if !place.stamps.is_null() {
        assert!(reply.stamps.len() <= place.stamp_room, "a read returned more than its range");
        for (i, stamp) in reply.stamps.iter().enumerate() {
            // SAFETY: as the caller promises
            unsafe { place.stamps.add(i).write(stamp.0) };
        }
        place.stamp_count = reply.stamps.len();
    }
}
