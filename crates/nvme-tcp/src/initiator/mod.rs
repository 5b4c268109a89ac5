//! A host over blocking sockets, for tests and fuzzing: it checks what the controller sends, and
//! can break every rule itself.

mod controller;
mod queue;
mod socket;

pub use controller::{Controller, Host};
pub use queue::{Completed, Data, QueuePair};
pub use socket::{Message, Socket, poll_read};

use crate::pdu::{Alignment, Digests, Fault, TermReq};
use std::fmt;
use std::io;
use std::time::Duration;

/// Settings of a host's connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The digests that the host asks for.
    pub digests: Digests,
    /// Alignment of data on the way to the host (HPDA).
    pub alignment: Alignment,
    /// Outstanding R2T PDUs of a command that the host supports, counted from 0 (MAXR2T).
    pub max_r2t: u32,
    /// Maximum number of bytes of data that the host puts into a capsule.
    pub capsule_data: usize,
    /// Entries of a queue; an admin queue has at most 32.
    pub entries: u16,
    /// The host asks for queues without flow control.
    pub without_flow_control: bool,
    /// Keep alive timeout; zero for none.
    pub keep_alive: Duration,
    /// Time that the host waits for an answer.
    pub patience: Duration,
    /// The host looks for an answer again and again, and does not sleep meanwhile.
    pub polls: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            digests: Digests::default(),
            alignment: Alignment::default(),
            max_r2t: 0,
            capsule_data: 4096,
            entries: 32,
            without_flow_control: false,
            keep_alive: Duration::ZERO,
            patience: Duration::from_secs(20),
            polls: false,
        }
    }
}

/// Reason why a host got no answer, or a bad answer.
#[derive(Debug)]
pub enum HostError {
    /// The socket failed, or the controller did not answer in time.
    Io(io::Error),
    /// The controller closed the connection.
    Closed,
    /// The controller terminated the connection.
    Terminated(TermReq),
    /// The controller broke the protocol.
    Fault(Fault),
    /// A command failed with this status, above a phase tag of 0.
    Status(u16),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::Io(error) => write!(f, "the connection failed: {error}"),
            HostError::Closed => write!(f, "the controller closed the connection"),
            HostError::Terminated(term) => match term.fault() {
                Some(fault) => write!(f, "the controller terminated the connection: {fault}"),
                None => write!(f, "the controller terminated the connection: {term:?}"),
            },
            HostError::Fault(fault) => write!(f, "the controller broke the protocol: {fault}"),
            HostError::Status(status) => {
                write!(f, "status code type {}, code {:02x}h", status >> 9 & 7, status >> 1 & 0xff)
            }
        }
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HostError::Io(error) => Some(error),
            HostError::Fault(fault) => Some(fault),
            HostError::Closed | HostError::Terminated(_) | HostError::Status(_) => None,
        }
    }
}

impl From<io::Error> for HostError {
    fn from(error: io::Error) -> HostError {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => HostError::Closed,
            _ => HostError::Io(error),
        }
    }
}
