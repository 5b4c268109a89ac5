//! Media: the storage of a namespace.

use flashatlas_types::plan::Cause;
use flashatlas_types::{Ps, SECTOR_BYTES};

/// Reason why media do not carry out an operation.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediaError {
    /// The flash has no room for the data.
    OutOfSpace,
    /// The media are worn out and take no writes any more.
    ReadOnly,
    /// Data in the range cannot be read.
    Unreadable,
    /// The power has failed: nothing is carried out any more.
    PowerLost,
    /// The media cannot go on for another reason.
    Other,
}

/// Identifier of a command that media have accepted and not completed.
#[must_use = "the command completes after a wait"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Later(pub u64);

/// Shape of media, and promises that hold as long as the media live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaShape {
    /// Number of logical blocks.
    pub blocks: u64,
    /// Bytes of a logical block: a power of two of at least 512.
    pub block_bytes: u32,
    /// Logical blocks of a mapping unit. After a power failure, each unit has the old or the new
    /// content of a write that covers it.
    pub unit_blocks: u32,
    /// `true` if trimmed units read as zeros after a power failure, too.
    pub trims_survive: bool,
    /// `true` if completed writes may be lost in a power failure, unless FLUSH or FUA protects
    /// them.
    pub volatile_cache: bool,
}

impl MediaShape {
    /// Returns the capacity in bytes.
    ///
    /// # Panics
    /// Panics if the media have 2^64 bytes or more.
    pub fn bytes(&self) -> u64 {
        self.blocks.checked_mul(self.block_bytes.into()).expect("less than 2^64 bytes")
    }

    /// Returns a sector shape: blocks of [`SECTOR_BYTES`], with a cache that a power failure
    /// empties.
    pub const fn sectors(blocks: u64, unit_blocks: u32) -> MediaShape {
        MediaShape {
            blocks,
            block_bytes: SECTOR_BYTES,
            unit_blocks,
            trims_survive: true,
            volatile_cache: true,
        }
    }
}

/// Part of the health that critical warnings are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vitals {
    /// Composite temperature in kelvins.
    pub kelvins: u16,
    /// Percentage of the spare blocks that are left, 0 to 100.
    pub available_spare: u8,
    /// `true` if the media take no writes any more.
    pub read_only: bool,
}

/// Health of media at one instant, for the log pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// Composite temperature in kelvins.
    pub kelvins: u16,
    /// Percentage of the endurance that is used; may be more than 100.
    pub percentage_used: u32,
    /// Percentage of the spare blocks that are left, 0 to 100.
    pub available_spare: u8,
    /// `true` if the media take no writes any more.
    pub read_only: bool,
    /// Simulated time since the power came on.
    pub powered: Ps,
    /// Bytes that hosts have written.
    pub host_bytes: u64,
    /// Bytes that were programmed, by [`Cause`], in the order of [`Cause::ALL`].
    pub programmed: [u64; Cause::ALL.len()],
    /// Erased blocks.
    pub erases: u64,
}

impl Default for Health {
    /// Returns the health of new media at 25 °C. Simulated media without a temperature report this
    /// value.
    fn default() -> Health {
        Health {
            kelvins: 298,
            percentage_used: 0,
            available_spare: 100,
            read_only: false,
            powered: Ps::ZERO,
            host_bytes: 0,
            programmed: [0; Cause::ALL.len()],
            erases: 0,
        }
    }
}

impl Health {
    /// Returns the part that critical warnings are about.
    pub const fn vitals(&self) -> Vitals {
        let Health { kelvins, available_spare, read_only, .. } = *self;
        Vitals { kelvins, available_spare, read_only }
    }
}

/// Media with real bytes. The methods may wait: nothing in the controller is locked meanwhile.
///
/// Media that many threads share implement the trait for a shared reference, as `std::io::Read`
/// does for `&File`. Offsets and lengths are multiples of a block inside the media.
pub trait Media {
    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if a part cannot be read.
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError>;

    /// Writes `data` at `offset`. With `fua`, the data is durable when the method returns.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if the data is not written. The content of the range is unknown.
    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError>;

    /// Trims the units that lie in the range as a whole. These units then read as zeros until they
    /// are written. If trims do not survive, the units read as zeros only until the power fails.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if the range is not trimmed.
    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError>;

    /// Makes every change so far durable.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if some change may not be durable.
    fn flush(&mut self) -> Result<(), MediaError>;

    /// Returns `true` if the media would accept a small read or write now without a wait for
    /// another command. A transport then needs another thread only to wait for the completion.
    fn is_free(&mut self) -> bool {
        false
    }

    /// Accepts a read as [`Media::read`] does, without the wait for its completion. Returns the
    /// command to wait for, or `None` if the read is complete. `out` already has the bytes.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if a part cannot be read.
    fn submit_read(&mut self, offset: u64, out: &mut [u8]) -> Result<Option<Later>, MediaError> {
        self.read(offset, out).map(|()| None)
    }

    /// Accepts a write without FUA as [`Media::write`] does, without the wait for its completion.
    /// Returns the command to wait for, or `None` if the write is complete.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if the data is not written. The content of the range is unknown.
    fn submit_write(&mut self, offset: u64, data: &[u8]) -> Result<Option<Later>, MediaError> {
        self.write(offset, data, false).map(|()| None)
    }

    /// Waits for the completion of a command that the media have accepted.
    ///
    /// # Errors
    /// Returns a [`MediaError`] if the command does not complete.
    fn wait(&mut self, _later: Later) -> Result<(), MediaError> {
        Ok(())
    }

    /// Returns `true` if [`Media::wait`] would return immediately. A transport may ask again and
    /// again instead of a wait.
    fn is_complete(&mut self, _later: Later) -> bool {
        false
    }

    /// Tells the media the number of commands that hosts wait for. The method is called before each
    /// command is carried out, and the number includes this command.
    fn waited_for(&mut self, _commands: usize) {}

    /// Returns the health now.
    fn health(&mut self) -> Health {
        Health::default()
    }

    /// Returns the part of the health that critical warnings are about. The method is called after
    /// every command that changes the media, so it should take little time.
    fn vitals(&mut self) -> Vitals {
        self.health().vitals()
    }
}
