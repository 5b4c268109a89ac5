//! The rest of an image: time passes while the drive is switched off.

use crate::ages::{CLOCK, lane_record};
use crate::disk::{Disk, locked};
use crate::error::ImageError;
use crate::frame::word;
use crate::header::{Header, read_text};
use crate::look::with_drive_of;
use crate::parts::{STANDARD_PARTS, environment};
use crate::places::{LANE_BYTES, Places};
use crate::spec::{ServeError, ServeSpec};
use flashatlas_nand::params::NVM_BYTES;
use flashatlas_sim::RunError;
use flashatlas_types::LaneId;
use std::io;

/// Lets an image rest for some seconds: its clock goes on, and the next mount finds the effects of
/// this time. Returns the clock, in seconds.
///
/// `plan` names the image. Without `plan.drive`, the drive comes from the header of the image.
///
/// # Errors
/// Returns a [`ServeError`] if the file is not an image of this drive, if a server has it open, or
/// if the record of the clock is damaged.
pub fn age(plan: &ServeSpec, seconds: u32) -> Result<u32, ServeError> {
    let path = plan.image.as_deref().expect("the plan names an image");
    let failed = |error: ImageError| ServeError::Image(path.to_path_buf(), error);
    if !path.exists() {
        return Err(failed(io::Error::from(io::ErrorKind::NotFound).into()));
    }
    let file = locked(path).map_err(failed)?;
    let header = Header::read(&file).map_err(failed)?;
    let (text, version) = read_text(&file).map_err(failed)?;
    let plan = with_drive_of(header, plan);
    let env = environment(&STANDARD_PARTS, &plan);
    let config = env.registry.load(&plan.drive, plan.drive_toml.as_deref(), &plan.set);
    let config = config.map_err(RunError::from)?;
    let layout = config.layout().map_err(RunError::from)?;
    let places = Places::of(&layout, config.params.get(NVM_BYTES), text.len());
    let io = |error: io::Error| failed(error.into());
    places.must_be_whole(file.length().map_err(io)?, version).map_err(failed)?;
    let place = places.lane(LaneId::new(0));
    let mut record = [0; LANE_BYTES];
    file.read_at(&mut record, place).map_err(io)?;
    if word(&record, 0) != crc32c::crc32c(&record[4..]) {
        let why = "the record of its clock does not match its checksum".to_owned();
        return Err(failed(ImageError::Foreign(why)));
    }
    let clock = word(&record, CLOCK).saturating_add(seconds);
    file.write_at(&lane_record(word(&record, 4), clock), place).map_err(io)?;
    file.sync().map_err(io)?;
    Ok(clock)
}
