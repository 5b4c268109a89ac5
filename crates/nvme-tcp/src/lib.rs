//! NVMe over TCP: the wire of the NVMe/TCP Transport Specification, revision 1.1.
//!
//! Sections without a document's name are of that specification.
//!
//! - [`pdu`] has the PDUs as bytes.
//! - [`Connection`] is the controller's side of one connection, without I/O.
//! - [`door`] has TCP listeners, and what they serve: a [`door::Target`].
//! - [`initiator`] is a host, for tests.

mod command;
mod connection;
pub mod door;
pub mod initiator;
mod limits;
pub mod pdu;
pub mod status;

pub use command::Command;
pub use connection::{Connection, End, Phase, QueueShape};
pub use limits::{ADMIN_CAPSULE_DATA, CONNECTION_BYTES, Limits};
