//! An NVMe controller without transport, clock, thread or file: commands and buffers go in,
//! completions come out.
//!
//! A [`Subsystem`] has controllers, one for each association with a host, and a namespace. The
//! subsystem decides the effect of a command, and the media carry out the command without the
//! subsystem ([`IoCommand`]). So a server locks the subsystem only for moments, even if the media
//! are slow.
//!
//! The sources are NVM Express Base Specification 2.1 ("Base") and NVM Command Set Specification
//! 1.1 ("NVM"). One table ([`support`]) lists what is supported and what is refused. `docs/NVME.md`
//! is made from this table.
//!
//! ```
//! use flashatlas_nvme::{
//!     Connect, CommandId, ControllerId, Durable, Entry, Identity, MediaShape, NamespaceNames, Nqn,
//!     QueueId, Settings, Status, Step, Subsystem, fabrics, offset,
//! };
//!
//! let nqn = Nqn::new("nqn.2026-11.example:drive")?;
//! let identity = Identity {
//!     serial: "1".into(),
//!     model: "FlashAtlas".into(),
//!     firmware: "1".into(),
//!     nqn: nqn.clone(),
//!     namespace: NamespaceNames::default(),
//! };
//! let shape = MediaShape::sectors(2048, 8);
//! let mut subsystem = Subsystem::new(Settings::default(), shape, Durable::new(identity)?);
//!
//! let connect = Connect {
//!     queue: QueueId::ADMIN,
//!     entries: 32,
//!     deletes_queues: false,
//!     without_flow_control: false,
//!     keep_alive: 0,
//!     host_id: [1; 16],
//!     controller: ControllerId::DYNAMIC,
//!     subsystem: nqn,
//!     host: Nqn::new("nqn.2026-11.example:host")?,
//! };
//! let (entry, data) = connect.write(CommandId(0));
//! let connected = subsystem.connect(&entry, &data).expect("it is admitted");
//!
//! let get = Entry::property_get(CommandId(1), offset::STATUS, false);
//! let step = subsystem.begin(connected.place, &get, &[], &mut Vec::new());
//! let Step::Done(completion) = step else { panic!("it needs no media") };
//! assert_eq!((completion.status, completion.result), (Status::SUCCESS, 0)); // not ready yet
//! # Ok::<(), flashatlas_nvme::IdentityError>(())
//! ```

mod activity;
mod bytes;
mod command;
mod connect;
mod controller;
mod discovery;
mod dispatch;
pub mod drive;
mod durable;
mod errors;
mod events;
mod features;
mod identify;
mod identity;
mod ids;
mod logs;
mod media;
mod nvm;
mod properties;
mod service;
mod settings;
pub mod slots;
mod status;
mod subsystem;
pub mod support;
mod work;

pub use activity::Activity;
pub use command::{Completion, Entry, Sgl, admin, fabrics, io};
pub use connect::{CONNECT_BYTES, Connect, Connected};
pub use discovery::{AddressFamily, DiscoveryEntry};
pub use durable::{Durable, DurableError, Saved, Totals};
pub use features::id as feature;
pub use identity::{DISCOVERY_NQN, Identity, IdentityError, Namespace, NamespaceNames, Nqn};
pub use ids::{CommandId, ControllerId, NamespaceId, Place, QueueId};
pub use logs::{amplification_markdown, id as log};
pub use media::{Health, Later, Media, MediaError, MediaShape, Vitals};
pub use properties::offset;
pub use settings::Settings;
pub use status::Status;
pub use subsystem::{Finished, Lost, Step, Subsystem};
pub use work::{IoCommand, IoResult, Submitted, Ticket};
