//! The flash medium: the content of its cells, and the allowed operations with their effects.
//!
//! [`Medium`] carries out each operation immediately and has no notion of time. A scheme uses the
//! medium through [`Flash`]. Every call of [`Flash`] changes the medium and adds operations to the
//! [`flashatlas_types::Plan`] of the request.
//!
//! ```
//! use flashatlas_nand::{Flash, Medium, Rules, Unit};
//! use flashatlas_types::{
//!     AllocationOrder, Cause, Cell, FrameId, Geometry, Layout, Lpn, Plan, Seed, Span, Stamp,
//! };
//! use std::sync::Arc;
//!
//! let geometry = Geometry {
//!     channels: 1, ways: 1, dies: 1, planes: 1, blocks: 4, pages: 8,
//!     page_bytes: 2048, spare_bytes: 64, cell: Cell::Slc,
//! };
//! let order = AllocationOrder::parse("CWDP").unwrap();
//! let layout = Layout::new(geometry, Span::ONE, 2048, order, 16).unwrap();
//! let mut medium = Medium::new(Arc::new(layout), Rules::PLAIN, 0, Seed(1)).unwrap();
//! let unit = Unit { lpn: Lpn(7), stamp: Stamp::whole(1, 0), bytes: None };
//! let mut plan = Plan::default();
//! let mut flash = Flash { medium: &mut medium, plan: &mut plan };
//! let (place, _) = flash.program(FrameId(0), [&unit].into_iter(), Cause::Host, &[]).unwrap();
//! assert_eq!(medium.lpn(place).unwrap(), Lpn(7));
//! medium.check().unwrap();
//! ```

mod by_mode;
mod copyback;
pub mod counters;
pub mod errors;
pub mod faults;
pub mod flash;
mod gang;
pub mod image;
mod in_order;
pub mod medium;
pub mod nvm;
pub mod oob;
pub mod params;
mod parity;
mod parts;
pub mod rules;
pub mod spares;
mod steps;

pub use counters::Counters;
pub use errors::{ErrorCounters, ErrorRules};
pub use faults::Torn;
pub use flash::{Flash, ReadPart};
pub use image::Image;
pub use medium::{Change, Contents, Cut, FrameState, Medium, Spare, Unit};
pub use medium::{MAP_HEADER_BYTES, MapContent, MapForm, MapOfBase};
pub use nvm::{Nvm, NvmCounters};
pub use oob::{Oob, OobError, OobRole};
pub use params::PARAMS;
pub use rules::{ProgramOrder, Rules};
pub use steps::SteppedProgram;
