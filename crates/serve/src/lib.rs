//! A drive with real bytes, for servers of block devices: commands by byte ranges, bytes in memory
//! or in an image file, times of the simulated drive, power failures.
//!
//! The binding of an NBD server calls [`Server`] from any number of threads. The binding has the
//! socket, and gives the server a [`Clock`].

mod aged;
mod disk;
mod error;
mod frame;
mod header;
mod image;
mod look;
mod mark;
mod mount;
mod notes;
mod parts;
mod places;
mod power;
mod record;
mod recorder;
mod server;
mod spec;
mod state;
mod sync;

pub use disk::{Disk, Memory, Open, on_file};
pub use error::ImageError;
pub use flashatlas_plugin::NOTES as PLUGIN_NOTES;
pub use image::{Found, Image, Verify};
pub use look::{check, info};
pub use notes::NOTES;
pub use parts::{STANDARD_PARTS, environment, library, with_plugins};
pub use server::{Clock, Ended, Server};
pub use spec::{CutMode, Refused, ServeError, ServeSpec, Time};
