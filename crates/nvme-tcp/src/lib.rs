//! NVMe over TCP: the wire of the NVMe/TCP Transport Specification, revision 1.1.
//!
//! Sections without a document's name are of that specification.
//!
//! - [`pdu`] has the PDUs as bytes.
//! - [`Connection`] is the controller's side of one connection, without I/O.

mod command;
mod connection;
mod limits;
pub mod pdu;
pub mod status;

pub use command::Command;
pub use connection::{Connection, End, Phase, QueueShape};
pub use limits::{ADMIN_CAPSULE_DATA, CONNECTION_BYTES, Limits};
