//! NVMe over TCP: the wire of the NVMe/TCP Transport Specification, revision 1.1.
//!
//! Sections without a document's name are of that specification.
pub mod pdu;
