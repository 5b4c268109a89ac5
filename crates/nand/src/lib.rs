//! The flash medium: what the cells hold, which operations are legal, and what each leaves behind.
//!
//! [`Medium`] acts at once and keeps no time. [`Flash`] is how a scheme reaches it: every call
//! changes the medium and writes one operation into the [`flashatlas_types::Plan`] of the request.

pub mod counters;
pub mod faults;
pub mod flash;
pub mod image;
pub mod journal;
pub mod medium;
pub mod nvm;
pub mod oob;
pub mod params;
mod power;
pub mod rules;
pub mod spares;

pub use counters::Counters;
pub use faults::Torn;
pub use flash::{Flash, ReadPart};
pub use image::Image;
pub use journal::Change;
pub use medium::{FrameState, Medium, Unit};
pub use nvm::{Nvm, NvmCounters};
pub use oob::{Oob, OobError, OobRole};
pub use params::PARAMS;
pub use rules::{ProgramOrder, Rules};
