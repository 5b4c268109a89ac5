//! A controller: the association with one host, its queues, properties and commands in flight.

use crate::errors::ErrorLog;
use crate::events::{Event, Events};
use crate::features::Features;
use crate::logs::{self, HealthLog};
use crate::properties::{Properties, Shutdown};
use crate::{
    CommandId, Completion, ControllerId, Entry, IoCommand, NamespaceId, Nqn, QueueId, Status,
    Vitals,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Namespaces that the changed namespace list holds (Base 5.1.12.1.5).
pub(crate) const CHANGED: usize = 1024;

/// Step of a command that follows when the media have carried it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// Count a read of this many bytes; `command` is `true` for a host read command.
    Read { bytes: u64, command: bool },
    /// Count a write of this many bytes.
    Write { bytes: u64 },
    /// Nothing: the command changes data, and no total counts it.
    Nothing,
    /// Switch the volatile write cache off, and save the new value if `save` is set.
    CacheOff { save: bool },
    /// Shut the controller down.
    Shutdown,
    /// Make a log page of the health.
    Log(HealthLog),
}

/// A command that the media carry out.
pub(crate) struct InFlight {
    pub queue: QueueId,
    pub entry: Entry,
    pub then: Then,
}

/// A command that waits until other commands are complete.
struct Waiting {
    after: BTreeSet<u64>,
    command: IoCommand,
}

/// A controller.
pub(crate) struct Controller {
    pub id: ControllerId,
    pub host: Nqn,
    pub host_id: [u8; 16],
    /// Keep alive timeout that Connect asked for, in milliseconds.
    pub asked_keep_alive: u32,
    pub properties: Properties,
    /// Entries of each queue.
    pub queues: BTreeMap<QueueId, u32>,
    pub features: Features,
    pub errors: ErrorLog,
    pub events: Events,
    /// Critical warnings that hold now and whose events the host has asked for.
    pub warnings: u8,
    pub changed: BTreeSet<NamespaceId>,
    /// Address at which the host has reached the controller.
    pub reached: Option<IpAddr>,
    /// Completions that answer no call: events, and aborted requests.
    pub outbox: Vec<Completion>,
    in_flight: BTreeMap<u64, InFlight>,
    /// Commands from before a reset that the media still carry out. Nobody waits for these
    /// commands, and the controller is not ready before they are done.
    stopping: BTreeSet<u64>,
    waiting: Vec<Waiting>,
}

impl Controller {
    pub fn new(
        id: ControllerId,
        (host, host_id): (Nqn, [u8; 16]),
        asked_keep_alive: u32,
        properties: Properties,
        features: Features,
    ) -> Controller {
        Controller {
            id,
            host,
            host_id,
            asked_keep_alive,
            properties,
            queues: BTreeMap::new(),
            features,
            errors: ErrorLog::default(),
            events: Events::default(),
            warnings: 0,
            changed: BTreeSet::new(),
            reached: None,
            outbox: Vec::new(),
            in_flight: BTreeMap::new(),
            stopping: BTreeSet::new(),
            waiting: Vec::new(),
        }
    }

    /// Returns the number of commands that the media carry out.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len() + self.stopping.len()
    }

    /// Returns `true` if this identifier belongs to a command that is not complete.
    pub fn knows(&self, queue: QueueId, id: CommandId) -> bool {
        let same = |other: &InFlight| other.queue == queue && other.entry.id() == id;
        self.in_flight.values().any(same) || (queue == QueueId::ADMIN && self.events.has(id))
    }

    /// Returns `true` if commands of this queue are not complete.
    pub fn is_busy(&self, queue: QueueId) -> bool {
        self.in_flight.values().any(|other| other.queue == queue)
    }

    /// Accepts a command, and returns it if it need not wait for other commands.
    ///
    /// With `all`, the command waits for every command that is in flight.
    pub fn take_in(
        &mut self,
        command: IoCommand,
        in_flight: InFlight,
        all: bool,
    ) -> Option<IoCommand> {
        let mut after = BTreeSet::new();
        if all {
            after.extend(self.in_flight.keys().chain(&self.stopping).copied());
        }
        self.in_flight.insert(command.ticket.number, in_flight);
        if after.is_empty() {
            return Some(command);
        }
        self.waiting.push(Waiting { after, command });
        None
    }

    /// Returns the command of a ticket if a host still waits for it. Appends to `released` the
    /// commands that waited only for this command.
    pub fn done(&mut self, number: u64, released: &mut Vec<IoCommand>) -> Option<InFlight> {
        self.stopping.remove(&number);
        for waiting in &mut self.waiting {
            waiting.after.remove(&number);
        }
        let free = self.waiting.extract_if(.., |waiting| waiting.after.is_empty());
        released.extend(free.map(|waiting| waiting.command));
        self.settle();
        self.in_flight.remove(&number)
    }

    /// Updates CSTS.RDY: a controller becomes ready when the media have no older command in flight.
    pub fn settle(&mut self) {
        self.properties.settle(self.stopping.is_empty());
    }

    /// Delays the ready state of the controller until commands of ended associations are done.
    pub fn wait_for(&mut self, orphans: &BTreeSet<u64>) {
        self.stopping.extend(orphans);
    }

    /// Ends a queue. Nobody waits for the commands of this queue any more.
    pub fn end_queue(&mut self, queue: QueueId) {
        self.queues.remove(&queue);
        self.in_flight.retain(|&number, other| {
            let stays = other.queue != queue;
            if !stays {
                self.stopping.insert(number);
            }
            stays
        });
    }

    /// Returns the commands that the media still carry out when the association ends.
    pub fn orphans(&self) -> impl Iterator<Item = u64> + '_ {
        let waiting = |number: &u64| {
            self.waiting.iter().any(|waiting| waiting.command.ticket.number == *number)
        };
        self.in_flight.keys().chain(&self.stopping).copied().filter(move |one| !waiting(one))
    }

    /// Clears the state that a controller level reset clears (Base 3.7.2). `features` are the
    /// values after the reset.
    pub fn reset(&mut self, features: Features) {
        // commands that wait for other commands never began, so they are dropped
        let waiting = self.waiting.drain(..).map(|waiting| waiting.command.ticket.number);
        let never_began: BTreeSet<u64> = waiting.collect();
        let began = std::mem::take(&mut self.in_flight).into_keys();
        self.stopping.extend(began.filter(|number| !never_began.contains(number)));
        self.queues.retain(|&queue, _| queue == QueueId::ADMIN);
        self.features = features;
        self.errors = ErrorLog::default();
        self.events = Events::default();
        self.warnings = 0;
        self.changed.clear();
        self.outbox.clear();
        self.settle();
    }

    /// Checks that the controller processes all commands now, and not only Fabrics commands.
    pub fn check_ready(&self) -> Result<(), Status> {
        let properties = &self.properties;
        let ready = properties.is_ready() && properties.shutdown == Shutdown::None;
        if ready && !properties.fatal { Ok(()) } else { Err(Status::SEQUENCE_ERROR) }
    }

    /// Raises an event for each critical warning that is new and that the host asks for.
    pub fn watch(&mut self, vitals: Vitals) {
        let asked = self.features.events as u8;
        let warnings = logs::warnings(&self.features, vitals) & asked;
        for bit in (0..8).filter(|bit| warnings & !self.warnings & 1 << bit != 0) {
            self.events.raise(Event::warning(bit));
        }
        // a warning that the host has not asked for is reported once the host asks for it
        self.warnings = warnings;
    }

    /// Notes a changed namespace, for the log page.
    pub fn note_changed(&mut self, nsid: NamespaceId) {
        if self.changed.len() < CHANGED {
            self.changed.insert(nsid);
        }
    }
}
