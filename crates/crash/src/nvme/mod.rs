//! Power failures of a drive behind an NVMe controller.
//!
//! The host's commands go through the controller core (`flashatlas_nvme`), with several in flight,
//! and the media carry them out in an order that the workload gives. At each operation on flash and
//! NVM, and at each write of the controller's record, the power fails. The drive is mounted, the
//! controller reads its record, and a host checks everything through commands.
//!
//! Contents are bytes here. The model follows the commands and their completions, so an error of
//! the controller cannot mislead the model.

mod cuts;
mod home;
mod host;
mod model;
pub mod recording;
pub mod step;
mod units;
mod verify;
pub mod workloads;

pub use recording::Recording;
pub use step::{Blocks, Step};
pub use verify::Verifier;
pub use workloads::WORKLOADS;
