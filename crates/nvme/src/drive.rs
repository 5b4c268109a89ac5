//! A simulated drive as media.

use crate::{Health, Media, MediaError, MediaShape};
use flashatlas_device::smart::FlashHealth;
use flashatlas_device::{Cmd, Reply, Stack, SubmitError};
use flashatlas_nand::Counters;
use flashatlas_types::{Cause, FtlError, Lba, MediumError, Ps, SECTOR_BYTES, Tag};

/// Returns the shape of a drive as media.
///
/// The cache is volatile, whatever the controller of the drive caches: a write counts as lost until
/// FLUSH or FUA protects it.
pub fn shape(stack: &Stack) -> MediaShape {
    MediaShape {
        trims_survive: !stack.top().forgets_trims(),
        ..MediaShape::sectors(stack.shape().sectors, stack.unit_sectors())
    }
}

/// Returns the health of a drive that has had power for `powered`, and whose hosts have written
/// `host_bytes` bytes.
pub fn health(stack: &Stack, powered: Ps, host_bytes: u64) -> Health {
    let counters = stack.flash_counters();
    let page = u64::from(stack.ssd().medium().layout().geometry.page_bytes);
    let FlashHealth { percentage_used, available_spare, read_only } = FlashHealth::of(stack.ssd());
    Health {
        percentage_used,
        available_spare,
        read_only,
        powered,
        host_bytes,
        programmed: Cause::ALL.map(|cause| counters.programs[cause as usize] * page),
        erases: Counters::total(&counters.erases),
        ..Health::default()
    }
}

/// A drive with real bytes (`nand.data = "ram"`), on which commands take no time.
pub struct Drive {
    /// The drive.
    pub stack: Stack,
    /// Content number of the next write.
    content: u64,
    host_bytes: u64,
    reply: Reply,
}

impl Drive {
    /// Makes media of a drive that keeps bytes. Writes get content numbers from `content` on.
    pub fn new(mut stack: Stack, content: u64) -> Drive {
        stack.set_instant(true);
        Drive { stack, content, host_bytes: 0, reply: Reply::default() }
    }

    fn submit(&mut self, cmd: Cmd<'_>) -> Result<(), MediaError> {
        self.stack.submit(Ps::ZERO, Tag(0), cmd, &mut self.reply).map_err(|e| of_error(&e))
    }
}

/// Returns the error of media for an error of a drive that has power.
fn of_error(error: &SubmitError) -> MediaError {
    match error {
        SubmitError::ReadOnly => MediaError::ReadOnly,
        SubmitError::Ftl(FtlError::NoSpace { .. }) => MediaError::OutOfSpace,
        SubmitError::Ftl(FtlError::Medium(
            MediumError::Unreadable(_) | MediumError::Damaged(_),
        )) => MediaError::Unreadable,
        _ => MediaError::Other,
    }
}

/// Returns the first sector and the number of sectors of a range in bytes.
fn sectors(offset: u64, bytes: usize) -> (Lba, u32) {
    let sector = u64::from(SECTOR_BYTES);
    (Lba(offset / sector), (bytes as u64 / sector) as u32)
}

impl Media for Drive {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        let (lba, sectors) = sectors(offset, out.len());
        self.submit(Cmd::Read { lba, sectors })?;
        out.copy_from_slice(&self.reply.bytes);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError> {
        let (lba, sectors) = sectors(offset, data.len());
        let content = self.content;
        self.content += 1;
        self.host_bytes += data.len() as u64;
        self.submit(Cmd::Write { lba, sectors, fua, content, data: Some(data) })
    }

    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        let (lba, sectors) = sectors(offset, bytes as usize);
        self.submit(Cmd::Trim { lba, sectors })
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        self.submit(Cmd::Flush)
    }

    fn health(&mut self) -> Health {
        health(&self.stack, Ps::ZERO, self.host_bytes)
    }
}
