//! I/O commands of the NVM Command Set (NVM 3).

use crate::command::io;
use crate::controller::Then;
use crate::errors::{Refused, invalid};
use crate::identity::Namespace;
use crate::work::Work;
use crate::{Entry, NamespaceId, Status};
use flashatlas_types::SeededBug;

/// Force Unit Access, in command dword 12.
const FUA: u32 = 1 << 30;
/// Protection Information field (PRINFO), in command dword 12.
const PROTECTION: u32 = 0xF << 26;
/// Storage tag check (STC), in command dword 12.
const STORAGE_TAG: u32 = 1 << 24;
/// Deallocate (DEAC) of Write Zeroes, in command dword 12.
const DEALLOCATE: u32 = 1 << 25;
/// Namespace zeroes (NSZ) of Write Zeroes, in command dword 12.
const NAMESPACE_ZEROES: u32 = 1 << 23;
/// Directive type (DTYPE) of Write, in command dword 12.
const DIRECTIVE: u32 = 0xF << 20;

/// Returns the number of bytes that a command transfers from the host or to it.
pub(crate) fn bytes(entry: &Entry, namespace: Option<&Namespace>) -> u64 {
    match entry.opcode() {
        io::WRITE | io::READ | io::COMPARE => {
            let block = namespace.map_or(0, |namespace| namespace.shape.block_bytes);
            u64::from(entry.blocks()) * u64::from(block)
        }
        io::DATASET_MANAGEMENT => (u64::from(entry.at(10) & 0xFF) + 1) * RANGE as u64,
        _ => 0,
    }
}

/// Bytes of a range of Dataset Management (NVM 3.3.3).
const RANGE: usize = 16;

/// Returns the namespace of a command.
pub(crate) fn namespace<'a>(
    entry: &Entry,
    namespaces: &'a [Namespace],
) -> Result<&'a Namespace, Refused> {
    let nsid = entry.nsid();
    if nsid == NamespaceId::ALL {
        let all = entry.opcode() == io::FLUSH;
        // the only namespace is all namespaces
        return namespaces.first().filter(|_| all).ok_or(invalid(1, 0));
    }
    let namespace = (nsid.0 as usize).checked_sub(1).and_then(|index| namespaces.get(index));
    namespace.ok_or(Status::INVALID_NAMESPACE.at(1, 0))
}

/// Returns the work of a supported command, and the step that follows.
///
/// With `through`, writes are durable when they complete.
pub(crate) fn work(
    entry: &Entry,
    namespace: &Namespace,
    through: bool,
    data: &[u8],
) -> Result<(Work, Then), Refused> {
    let shape = &namespace.shape;
    let first_durable = entry.at(12) & FUA != 0;
    let fua = through || first_durable && !SeededBug::FuaNotPassed.is_active();
    let first_durable = first_durable && !SeededBug::ReadFuaIgnored.is_active();
    let opcode = entry.opcode();
    match opcode {
        io::FLUSH => return Ok((flush_unless(SeededBug::FlushNotPassed), Then::Nothing)),
        io::DATASET_MANAGEMENT => return deallocate(entry, namespace, through, data),
        _ => {}
    }
    check_options(entry, namespace)?;
    let (offset, bytes) = range(namespace, entry.first_block(), entry.blocks())?;
    Ok(match opcode {
        io::READ => {
            (Work::Read { offset, bytes, first_durable }, Then::Read { bytes, command: true })
        }
        io::COMPARE => {
            (Work::Compare { offset, bytes, first_durable }, Then::Read { bytes, command: true })
        }
        io::VERIFY => {
            (Work::Verify { offset, bytes, first_durable }, Then::Read { bytes, command: false })
        }
        io::WRITE => (Work::Write { offset, bytes, fua }, Then::Write { bytes }),
        _ => {
            let unit = u64::from(shape.unit_blocks) * u64::from(shape.block_bytes);
            // old data must not replace the zeros after a power failure
            let trim = entry.at(12) & DEALLOCATE != 0 && shape.trims_survive
                || SeededBug::ZeroesForgotten.is_active();
            (Work::Zero { offset, bytes, unit, trim, durable: fua }, Then::Nothing)
        }
    })
}

/// Returns the work of a flush, or nothing to do if `bug` is active.
pub(crate) fn flush_unless(bug: SeededBug) -> Work {
    if bug.is_active() { Work::Trim { ranges: Vec::new(), durable: false } } else { Work::Flush }
}

/// Checks the options of a command that names one range of blocks.
///
/// Limited Retry is ignored, because reads are not retried. Hints of dataset management are
/// ignored, too.
fn check_options(entry: &Entry, namespace: &Namespace) -> Result<(), Refused> {
    let options = entry.at(12);
    if options & PROTECTION != 0 {
        // the namespace has no metadata, and so no protection information
        return Err(Status::INVALID_PROTECTION.at(12, 26));
    }
    if options & STORAGE_TAG != 0 {
        return Err(invalid(12, 24));
    }
    match entry.opcode() {
        io::WRITE if options & DIRECTIVE != 0 => Err(invalid(12, 20)),
        io::WRITE_ZEROES if options & DEALLOCATE != 0 && !namespace.shape.trims_survive => {
            Err(invalid(12, 25)) // DLFEAT reports this
        }
        io::WRITE_ZEROES if options & NAMESPACE_ZEROES != 0 => Err(invalid(12, 23)),
        _ => Ok(()),
    }
}

/// Returns a range in bytes if it lies in the namespace.
fn range(namespace: &Namespace, first: u64, blocks: u32) -> Result<(u64, u64), Refused> {
    let shape = &namespace.shape;
    let end = first.checked_add(blocks.into()).filter(|&end| end <= shape.blocks);
    end.ok_or(Status::LBA_OUT_OF_RANGE.at(10, 0))?;
    let block = u64::from(shape.block_bytes);
    Ok((first * block, u64::from(blocks) * block))
}

/// Returns the work of Dataset Management (NVM 3.3.3).
///
/// Every range is checked before any range is trimmed. Nothing is done without the Deallocate
/// attribute: hints about future reads and writes change nothing.
fn deallocate(
    entry: &Entry,
    namespace: &Namespace,
    through: bool,
    data: &[u8],
) -> Result<(Work, Then), Refused> {
    let wanted = (entry.at(10) as usize & 0xFF) + 1;
    let data = data.get(..wanted * RANGE).ok_or(Status::SGL_LENGTH_INVALID)?;
    let mut ranges = Vec::new();
    for one in data.chunks_exact(RANGE) {
        let word = |at: usize| u32::from_le_bytes([one[at], one[at + 1], one[at + 2], one[at + 3]]);
        let first = u64::from(word(8)) | u64::from(word(12)) << 32;
        let (offset, bytes) = range(namespace, first, word(4))?;
        if bytes > 0 {
            ranges.push((offset, bytes));
        }
    }
    if entry.at(11) & 1 << 2 == 0 {
        ranges.clear();
    }
    let durable = through && !SeededBug::TrimNotDurable.is_active();
    Ok((Work::Trim { ranges, durable }, Then::Nothing))
}
