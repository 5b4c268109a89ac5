//! A drive that is used through the C functions, with helpers for the tests.

use flashatlas_capi::abi::*;
use flashatlas_capi::calls::*;
use serde_json::Value;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Bytes of a sector.
pub const SECTOR: usize = FA_SECTOR_BYTES as usize;

/// A drive that is freed when this value is dropped.
pub struct Hosted(pub *mut FaDrive);

impl Drop for Hosted {
    fn drop(&mut self) {
        // SAFETY: the drive is not used any more
        unsafe { fa_drive_free(self.0) };
    }
}

/// Returns a command whose other fields are zero.
pub fn command(op: FaOp, lba: u64, sectors: u32) -> FaCommand {
    FaCommand {
        op: op as u32,
        fua: 0,
        lba,
        sectors,
        namespace_id: 0,
        stream: 0,
        placement: 0,
        zone_command: 0,
        reserved: 0,
        content: 0,
        data: null(),
        data_bytes: 0,
        more: [0; 4],
    }
}

/// Returns a reply with these buffers for its result.
pub fn reply(data: &mut [u8], stamps: &mut [u32]) -> FaReply {
    FaReply {
        data: if data.is_empty() { null_mut() } else { data.as_mut_ptr().cast::<c_void>() },
        data_room: data.len(),
        data_bytes: 0,
        stamps: if stamps.is_empty() { null_mut() } else { stamps.as_mut_ptr() },
        stamp_room: stamps.len(),
        stamp_count: 0,
    }
}

/// Makes a drive, or returns the reason why it cannot be made.
pub fn create(preset: &str, settings: &[&str], seed: u64) -> Result<Hosted, String> {
    create_of(Some(preset), None, settings, seed)
}

/// Makes a drive from the text of a drive file, or returns the reason why it cannot be made.
pub fn create_of(
    preset: Option<&str>,
    toml: Option<&str>,
    settings: &[&str],
    seed: u64,
) -> Result<Hosted, String> {
    let text = |text: &str| CString::new(text).unwrap();
    let (preset, toml) = (preset.map(text), toml.map(text));
    let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |text| text.as_ptr());
    let settings: Vec<CString> = settings.iter().map(|s| text(s)).collect();
    let pointers: Vec<*const c_char> = settings.iter().map(|s| s.as_ptr()).collect();
    let mut why: [c_char; 512] = [0; 512];
    // SAFETY: strings end with a zero, and buffers are as long as is said
    let made = unsafe {
        fa_drive_create(
            pointer(&preset),
            pointer(&toml),
            pointers.as_ptr(),
            pointers.len(),
            seed,
            why.as_mut_ptr(),
            why.len(),
        )
    };
    // SAFETY: it ends with a zero
    let why = unsafe { CStr::from_ptr(why.as_ptr()) }.to_str().unwrap().to_owned();
    if made.is_null() { Err(why) } else { Ok(Hosted(made)) }
}

impl Hosted {
    /// Returns `Ok` if a call succeeded, otherwise its code and its error text.
    pub fn outcome(&self, code: c_int) -> Result<(), (FaCode, String)> {
        use FaCode::*;
        let codes = [
            FA_ERR_ARGUMENT,
            FA_ERR_RANGE,
            FA_ERR_UNSUPPORTED,
            FA_ERR_QUEUE_FULL,
            FA_ERR_TIME,
            FA_ERR_POWER_OFF,
            FA_ERR_POWER_LOST,
            FA_ERR_UNREADABLE,
            FA_ERR_FAILED,
            FA_ERR_BUSY,
            FA_ERR_CHECK,
            FA_ERR_PANIC,
        ];
        if code == FA_SUCCESS as c_int {
            return Ok(());
        }
        // SAFETY: it is a drive, and the text ends with a zero
        let text = unsafe { CStr::from_ptr(fa_drive_error(self.0)) }.to_str().unwrap().to_owned();
        Err((*codes.iter().find(|&&c| c as c_int == code).expect("a code"), text))
    }

    /// Submits a command. The buffers of the command and of the reply belong to the caller.
    pub fn submit(
        &self,
        now: u64,
        tag: u64,
        command: &FaCommand,
        reply: Option<&mut FaReply>,
    ) -> Result<(), (FaCode, String)> {
        let place = reply.map_or(null_mut(), std::ptr::from_mut);
        // SAFETY: it is a drive, and the buffers are as long as they say
        self.outcome(unsafe { fa_submit(self.0, now, tag, command, place) })
    }

    /// Returns the time of the next event.
    pub fn next_event(&self) -> u64 {
        let mut at = 0;
        // SAFETY: it is a drive
        self.outcome(unsafe { fa_next_event(self.0, &mut at) }).unwrap();
        at
    }

    /// Returns the tags and times of the commands that are complete by `until`.
    pub fn advance(&self, until: u64) -> Result<Vec<(u64, u64)>, (FaCode, String)> {
        let mut found = Vec::new();
        loop {
            let mut done = [FaDone { tag: 0, at_ps: 0 }; 3];
            let mut count = 0;
            // SAFETY: it is a drive, and `done` has room for three
            let code = unsafe { fa_advance(self.0, until, done.as_mut_ptr(), 3, &mut count) };
            found.extend(done[..count].iter().map(|done| (done.tag, done.at_ps)));
            self.outcome(code)?;
            if count < 3 {
                return Ok(found);
            }
        }
    }

    /// Submits a command, waits for it, and returns the time at which it was complete.
    pub fn carry_out(&self, now: u64, command: &FaCommand, reply: Option<&mut FaReply>) -> u64 {
        self.submit(now, 77, command, reply).unwrap_or_else(|(code, e)| panic!("{code:?}: {e}"));
        let done = self.advance(FA_NEVER).unwrap();
        assert_eq!(done.iter().map(|d| d.0).collect::<Vec<_>>(), [77]);
        done[0].1
    }

    /// Writes bytes at a sector, and returns the time at which the write was complete.
    pub fn write(&self, now: u64, lba: u64, data: &[u8]) -> u64 {
        self.carry_out(now, &write(lba, data), None)
    }

    /// Reads `sectors` sectors, and sets `now` to the time at which the read was complete.
    pub fn read(&self, now: &mut u64, lba: u64, sectors: usize) -> Vec<u8> {
        let mut data = vec![0xEE; sectors * SECTOR];
        let mut reply = reply(&mut data, &mut []);
        *now =
            self.carry_out(*now, &command(FaOp::FA_OP_READ, lba, sectors as u32), Some(&mut reply));
        assert_eq!(reply.data_bytes, data.len());
        data
    }

    /// Sends a FLUSH, and returns the time at which it was complete.
    pub fn flush(&self, now: u64) -> u64 {
        self.carry_out(now, &command(FaOp::FA_OP_FLUSH, 0, 0), None)
    }

    /// Cuts the power at a time.
    pub fn power_cut(&self, now: u64) -> Result<(), (FaCode, String)> {
        // SAFETY: it is a drive
        self.outcome(unsafe { fa_power_cut(self.0, now) })
    }

    /// Switches the power on. Returns the time from which on the drive accepts commands.
    pub fn power_on(&self, now: u64) -> Result<u64, (FaCode, String)> {
        let mut ready = 0;
        // SAFETY: it is a drive
        self.outcome(unsafe { fa_power_on(self.0, now, &mut ready) }).map(|()| ready)
    }

    /// Checks that every rule holds.
    pub fn check(&self) {
        // SAFETY: it is a drive
        self.outcome(unsafe { fa_check(self.0) }).unwrap();
    }

    /// Returns the record.
    pub fn record(&self) -> Value {
        let mut text = null_mut();
        // SAFETY: it is a drive; the text ends with a zero, and is freed once
        unsafe {
            self.outcome(fa_record_json(self.0, &mut text)).unwrap();
            let found = serde_json::from_str(CStr::from_ptr(text).to_str().unwrap()).unwrap();
            fa_string_free(text);
            found
        }
    }

    /// Returns the shape that the host sees.
    pub fn geometry(&self) -> FaGeometry {
        let mut geometry = FaGeometry::default();
        // SAFETY: it is a drive
        self.outcome(unsafe { fa_drive_geometry(self.0, &mut geometry) }).unwrap();
        geometry
    }
}

/// Returns a write of these bytes.
pub fn write(lba: u64, data: &[u8]) -> FaCommand {
    FaCommand {
        data: data.as_ptr().cast(),
        data_bytes: data.len(),
        ..command(FaOp::FA_OP_WRITE, lba, (data.len() / SECTOR) as u32)
    }
}
