//! NVMe over TCP: the wire of the NVMe/TCP Transport Specification, revision 1.1.
//!
//! Section numbers without a document refer to this specification.
//!
//! - [`pdu`] has the PDUs as bytes.
//! - [`Connection`] is the controller's side of one connection, without I/O.
//! - [`door`] has TCP listeners, and the [`door::Target`] that they serve.
//! - [`initiator`] is a host, for tests.
//!
//! ```
//! use flashatlas_nvme::{
//!     Durable, Identity, Media, MediaError, MediaShape, NamespaceNames, Nqn, Settings, Subsystem,
//! };
//! use flashatlas_nvme_tcp::door::{Door, Listener, Options, SubsystemTarget};
//! use flashatlas_nvme_tcp::initiator::{self, Controller, Host};
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//!
//! /// Media in memory.
//! struct Ram(Mutex<Vec<u8>>);
//!
//! impl Media for &Ram {
//!     fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
//!         let bytes = self.0.lock().map_err(|_| MediaError::Other)?;
//!         out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
//!         Ok(())
//!     }
//!     fn write(&mut self, offset: u64, data: &[u8], _fua: bool) -> Result<(), MediaError> {
//!         let mut bytes = self.0.lock().map_err(|_| MediaError::Other)?;
//!         bytes[offset as usize..][..data.len()].copy_from_slice(data);
//!         Ok(())
//!     }
//!     fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
//!         self.write(offset, &vec![0; bytes as usize], false)
//!     }
//!     fn flush(&mut self) -> Result<(), MediaError> {
//!         Ok(())
//!     }
//! }
//!
//! let name = "nqn.2026-11.example:drive";
//! let identity = Identity {
//!     serial: "1".into(),
//!     model: "FlashAtlas".into(),
//!     firmware: "1".into(),
//!     nqn: Nqn::new(name)?,
//!     namespace: NamespaceNames::default(),
//! };
//! let shape = MediaShape::sectors(2048, 8);
//! let subsystem = Subsystem::new(Settings::default(), shape, Durable::new(identity)?);
//! let ram = Ram(Mutex::new(vec![0; 1 << 20]));
//! let target = Arc::new(SubsystemTarget::new(subsystem, ram, |_record| ()));
//! let listener = Listener { address: ([127, 0, 0, 1], 0).into(), target };
//! let door = Door::open(&[listener], Options::default())?;
//!
//! let host = Host { nqn: "nqn.2026-11.example:host".into(), id: [1; 16] };
//! let options = initiator::Options::default();
//! let mut controller = Controller::enabled(door.addresses()[0], name, &host, &options)?;
//! let mut queue = controller.add_queue()?;
//! queue.write(8, 512, vec![7; 4096])?;
//! assert_eq!(queue.read(15, 1, 512)?, vec![7; 512]);
//!
//! drop((queue, controller));
//! assert!(door.close(Duration::from_secs(10)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
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
