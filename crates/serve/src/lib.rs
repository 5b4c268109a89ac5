//! A drive with real bytes, for servers of block devices. Commands use byte ranges, and the bytes
//! are in memory or in an image file. The drive has the times of the simulated drive, and its power
//! can fail.
//!
//! The plug-in of an NBD server calls [`Server`] from any number of threads. The NBD server handles
//! the socket, and the plug-in passes a [`Clock`] to [`Server`].

mod aged;
mod ages;
mod clock;
mod disk;
mod error;
mod frame;
mod header;
mod image;
mod kept;
mod look;
mod mark;
mod mount;
mod notes;
mod nvme;
mod parts;
mod places;
mod power;
mod record;
mod recorder;
mod records;
mod rest;
mod server;
mod spec;
mod state;
mod sync;

pub use clock::{Clock, Wall};
pub use disk::{Disk, Memory, Open, on_file};
pub use error::ImageError;
pub use flashatlas_plugin::NOTES as PLUGIN_NOTES;
pub use image::{Found, Image};
pub use look::{check, info};
pub use mark::Verify;
pub use notes::NOTES;
pub use nvme::{durable, media_shape};
pub use parts::{STANDARD_PARTS, environment, library, with_plugins};
pub use rest::age;
pub use server::{Ended, Server};
pub use spec::{CutMode, NvmeSpec, Refused, ServeError, ServeSpec, Time};
