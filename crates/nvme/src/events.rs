//! Asynchronous events (Base 5.1.2).

use crate::{CommandId, Completion, Status};
use std::collections::VecDeque;

/// Maximum number of Asynchronous Event Requests that wait at the same time. The specification
/// recommends at least four.
pub(crate) const REQUESTS: usize = 4;
/// Maximum number of events that wait for a request. Equal events count as one event.
const PENDING: usize = 16;

/// An event, as dword 0 of a completion has it (Base, Figure 147).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    /// Type: 0 error, 1 SMART, 2 notice.
    kind: u8,
    info: u8,
    /// Log page whose reading clears the event.
    log: u8,
}

impl Event {
    /// An error that no completion reports (Base, Figure 149: persistent internal error).
    pub const INTERNAL_ERROR: Event = Event { kind: 0, info: 3, log: 0x01 };
    /// The attributes of a namespace have changed (Base, Figure 151).
    pub const NAMESPACE_CHANGED: Event = Event { kind: 2, info: 0, log: 0x04 };
    /// The discovery log has changed (Base, Figure 151).
    pub const DISCOVERY_CHANGED: Event = Event { kind: 2, info: 0xF0, log: 0x70 };

    /// Returns the event of a critical warning bit (Base, Figure 150).
    pub const fn warning(bit: u8) -> Event {
        let info = match bit {
            0 => 2,
            1 => 1,
            _ => 0,
        };
        Event { kind: 1, info, log: 0x02 }
    }

    const fn result(self) -> u64 {
        self.kind as u64 | (self.info as u64) << 8 | (self.log as u64) << 16
    }
}

/// Requests of a host that wait, and events that wait for a request.
#[derive(Default)]
pub(crate) struct Events {
    requests: VecDeque<CommandId>,
    pending: VecDeque<Event>,
    /// Types whose event was reported, and whose log page was not read since.
    masked: [bool; 3],
}

impl Events {
    /// Keeps a request.
    pub fn request(&mut self, id: CommandId) -> Result<(), Status> {
        if self.requests.len() == REQUESTS {
            return Err(Status::EVENT_LIMIT_EXCEEDED);
        }
        self.requests.push_back(id);
        Ok(())
    }

    /// Returns `true` if the request waits.
    pub fn has(&self, id: CommandId) -> bool {
        self.requests.contains(&id)
    }

    /// Drops a request, and returns `true` if the request waited.
    pub fn abort(&mut self, id: CommandId) -> bool {
        let waited = self.has(id);
        self.requests.retain(|&other| other != id);
        waited
    }

    /// Notes an event.
    pub fn raise(&mut self, event: Event) {
        if !self.pending.contains(&event) && self.pending.len() < PENDING {
            self.pending.push_back(event);
        }
    }

    /// Clears the events of a log page that was read.
    pub fn read(&mut self, log: u8) {
        self.pending.retain(|event| event.log != log);
        match log {
            0x01 => self.masked[0] = false,
            0x02 => self.masked[1] = false,
            0x04 | 0x70 => self.masked[2] = false,
            _ => {}
        }
    }

    /// Returns the completion of a request if there is an event to report.
    pub fn report(&mut self) -> Option<Completion> {
        if self.requests.is_empty() {
            return None;
        }
        let at = self.pending.iter().position(|event| !self.masked[usize::from(event.kind)])?;
        let event = self.pending.remove(at)?;
        self.masked[usize::from(event.kind)] = true;
        Some(Completion::value(self.requests.pop_front()?, event.result()))
    }
}
