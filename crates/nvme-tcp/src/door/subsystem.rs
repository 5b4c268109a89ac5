//! A [`Subsystem`] of the controller core, with its media, as a target.

use super::target::{Connected, Lost, Queue, Reply, Target, Waits, Work};
use crate::command::Command;
use crate::connection::QueueShape;
use crate::limits::Limits;
use crate::pdu::COMPLETION_BYTES;
use flashatlas_nvme::{
    self as nvme, CommandId, Completion, ControllerId, Durable, Entry, IoCommand, IoResult, Media,
    Place, QueueId, Step, Submitted, Subsystem, fabrics, offset,
};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Keeps the durable record of a subsystem; may wait.
type Keep = dyn Fn(&Durable) + Send + Sync;

/// A command that is complete, and the way back to its host.
type Answer = (Reply, Completion, Vec<u8>);

/// A subsystem and its media.
///
/// The subsystem is locked for moments, while it decides. Media calls and the keeping of the
/// durable record are [`Work`].
pub struct SubsystemTarget<M>(Arc<Shared<M>>);

struct Shared<M> {
    state: Mutex<State>,
    media: M,
    keep: Box<Keep>,
    /// Held while a record is kept, so that an old one never follows a new one.
    keeping: Mutex<()>,
    /// Commands on the media that hosts wait for.
    waits: Waits,
}

struct State {
    subsystem: Subsystem,
    /// The connection of each queue. A queue that was deleted has none, even if its host has made
    /// another one of the same place since.
    connections: HashMap<Place, u64>,
    /// Connections so far.
    connected: u64,
    /// The commands that are not complete.
    replies: HashMap<(Place, CommandId), Reply>,
    /// The newest record that is to be kept.
    record: Option<Durable>,
}

impl<M> SubsystemTarget<M>
where
    M: Send + Sync + 'static,
    for<'a> &'a M: Media,
{
    /// Returns the target. `keep` stores the durable record: it is called before the completion of
    /// the command that changed the record is sent.
    pub fn new(
        subsystem: Subsystem,
        media: M,
        keep: impl Fn(&Durable) + Send + Sync + 'static,
    ) -> SubsystemTarget<M> {
        let state = State {
            subsystem,
            connections: HashMap::new(),
            connected: 0,
            replies: HashMap::new(),
            record: None,
        };
        SubsystemTarget(Arc::new(Shared {
            state: Mutex::new(state),
            media,
            keep: Box::new(keep),
            keeping: Mutex::new(()),
            waits: Waits::default(),
        }))
    }

    /// Returns what `change` does with the subsystem. Hosts hear of it if it is an event.
    pub fn update<T>(&self, change: impl FnOnce(&mut Subsystem) -> T) -> T {
        let mut state = self.0.lock();
        let result = change(&mut state.subsystem);
        let (answers, must_keep) = state.settle();
        drop(state);
        self.0.send(answers, must_keep);
        result
    }
}

impl<M> Target for SubsystemTarget<M>
where
    M: Send + Sync + 'static,
    for<'a> &'a M: Media,
{
    fn limits(&self) -> Limits {
        let state = self.0.lock();
        let settings = state.subsystem.settings();
        let transfer = 4096 << settings.transfer_pages_log2;
        Limits {
            entries: settings.entries.max(settings.admin_entries),
            capsule_data: settings.capsule_data,
            transfer,
            data: transfer.max(Limits::DEFAULT.data),
            ..Limits::DEFAULT
        }
    }

    fn connect(
        &self,
        command: &Command,
        at: SocketAddr,
    ) -> Result<Connected, [u8; COMPLETION_BYTES]> {
        let mut state = self.0.lock();
        let connected = state
            .subsystem
            .connect(&Entry(command.entry), &command.data)
            .map_err(|refused| refused.to_bytes(0))?;
        let nvme::Connected { place, entries, flow_control, completion } = connected;
        // an IPv4 host of a listener for IPv6 has an IPv4 address, too
        state.subsystem.set_reached(place.controller, at.ip().to_canonical());
        state.connected += 1;
        let connection = state.connected;
        state.connections.insert(place, connection);
        Ok(Connected {
            completion: completion.to_bytes(0),
            association: place.controller.0.into(),
            shape: QueueShape {
                entries: u16::try_from(entries).expect("no more than the settings say"),
                admin: place.queue == QueueId::ADMIN,
                flow_control,
            },
            window: state.subsystem.settings().fetch_window.into(),
            queue: Arc::new(SubsystemQueue { shared: Arc::clone(&self.0), place, connection }),
        })
    }
}

impl<M> Shared<M>
where
    M: Send + Sync + 'static,
    for<'a> &'a M: Media,
{
    /// Locks the state. It stays whole if a thread panics: its methods change it at their end.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the work of a command on the media.
    fn work(self: &Arc<Self>, command: IoCommand, data: Vec<u8>) -> Work {
        let shared = Arc::clone(self);
        let is_quick = command.is_small() && (&shared.media).is_free();
        let work = Work::new(move || {
            let mut out = Vec::new();
            let mut media = &shared.media;
            media.waited_for(shared.waits.commands());
            if !is_quick {
                let result = command.carry_out(&mut media, &data, &mut out);
                return shared.finish(result, out);
            }
            match command.submit(&mut media, &data, &mut out) {
                Submitted::Done(result) => shared.finish(result, out),
                Submitted::Later(later) => {
                    let asked = Arc::clone(&shared);
                    let wait = Work::new(move || {
                        let result = command.complete(&mut &shared.media, later, &mut out);
                        shared.finish(result, out)
                    });
                    vec![wait.ready_when(move || (&asked.media).is_complete(later))]
                }
            }
        });
        if is_quick { work.quick() } else { work }
    }

    /// Finishes a command, and returns the work of those that waited for it.
    fn finish(self: &Arc<Self>, result: IoResult, mut out: Vec<u8>) -> Vec<Work> {
        let mut state = self.lock();
        let finished = state.subsystem.finish(result, &mut out);
        let mut answers = Vec::new();
        if let Some((place, completion)) = finished.completion {
            let reply = state.replies.remove(&(place, completion.id));
            answers.extend(reply.map(|reply| (reply, completion, out)));
        }
        let (events, must_keep) = state.settle();
        drop(state);
        answers.extend(events);
        // Commands that waited for others have no data: they flush.
        let next = finished.released.into_iter();
        let works = next.map(|command| self.work(command, Vec::new()));
        works.chain(self.deliver(answers, must_keep)).collect()
    }

    /// Sends answers, or returns the work that does so if a record is to be kept first, which may
    /// wait.
    fn deliver(self: &Arc<Self>, answers: Vec<Answer>, must_keep: bool) -> Option<Work> {
        if !must_keep || answers.is_empty() {
            self.send(answers, false);
            return None;
        }
        let shared = Arc::clone(self);
        Some(Work::new(move || {
            shared.send(answers, true);
            Vec::new()
        }))
    }

    /// Sends answers, once the record that they depend on is kept.
    fn send(&self, answers: Vec<Answer>, must_keep: bool) {
        if must_keep {
            let keeping = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have kept it in the meantime, with its own changes.
            let record = self.lock().record.take();
            if let Some(record) = record {
                (self.keep)(&record);
            }
            drop(keeping);
        }
        for (reply, completion, data) in answers {
            reply.send(completion.to_bytes(0), data);
        }
    }
}

impl State {
    /// Returns the commands that events complete, and whether a record is to be kept first.
    fn settle(&mut self) -> (Vec<Answer>, bool) {
        let mut answers = Vec::new();
        let controllers: Vec<_> = self.subsystem.controllers().collect();
        for controller in controllers {
            let admin = Place { controller, queue: QueueId::ADMIN };
            for completion in self.subsystem.take_completions(controller) {
                let reply = self.replies.remove(&(admin, completion.id));
                answers.extend(reply.map(|reply| (reply, completion, Vec::new())));
            }
        }
        if let Some(record) = self.subsystem.durable_changed() {
            self.record = Some(record);
        }
        (answers, self.record.is_some())
    }

    /// Forgets a queue and its commands.
    fn end_queue(&mut self, place: Place) {
        self.connections.remove(&place);
        self.replies.retain(|(other, _), _| *other != place);
    }

    /// Forgets what a reset of a controller takes: all commands, and the I/O queues.
    fn reset(&mut self, controller: ControllerId) {
        self.replies.retain(|(place, _), _| place.controller != controller);
        self.connections
            .retain(|place, _| place.controller != controller || place.queue == QueueId::ADMIN);
    }
}

/// A queue of a controller of the subsystem.
struct SubsystemQueue<M> {
    shared: Arc<Shared<M>>,
    place: Place,
    /// Number of the connection, unique for the target.
    connection: u64,
}

impl<M> SubsystemQueue<M> {
    /// Returns whether the queue exists, and is the one that this connection made.
    fn is_in(&self, state: &State) -> bool {
        state.connections.get(&self.place) == Some(&self.connection)
            && state.subsystem.queue_entries(self.place).is_some()
    }
}

impl<M> Queue for SubsystemQueue<M>
where
    M: Send + Sync + 'static,
    for<'a> &'a M: Media,
{
    fn begin(&self, command: Command, mut reply: Reply) -> Vec<Work> {
        let entry = Entry(command.entry);
        let mut state = self.shared.lock();
        if !self.is_in(&state) {
            return Vec::new(); // the connection is about to be closed
        }
        let mut out = Vec::new();
        let step = state.subsystem.begin(self.place, &entry, &command.data, &mut out);
        let refused = matches!(&step, Step::Done(completion) if !completion.status.is_success());
        if is_reset(&entry) && !refused {
            state.reset(self.place.controller);
        }
        let (mut answers, mut works) = (Vec::new(), Vec::new());
        match step {
            Step::Done(completion) => answers.push((reply, completion, out)),
            Step::Held => {
                state.replies.insert((self.place, entry.id()), reply);
            }
            Step::Io(io) => {
                reply.count(self.shared.waits.one());
                state.replies.insert((self.place, entry.id()), reply);
                works.push(self.shared.work(io, command.data));
            }
        }
        let (events, must_keep) = state.settle();
        drop(state);
        answers.extend(events);
        works.extend(self.shared.deliver(answers, must_keep));
        works
    }

    fn is_alive(&self) -> bool {
        self.is_in(&self.shared.lock())
    }

    fn keep_alive(&self) -> Option<Duration> {
        let state = self.shared.lock();
        let timeout = state.subsystem.keep_alive(self.place.controller);
        timeout.filter(|_| self.is_in(&state)).map(|millis| Duration::from_millis(millis.into()))
    }

    fn expire(&self) {
        let mut state = self.shared.lock();
        if self.is_in(&state) {
            state.subsystem.expire(self.place.controller);
        }
    }

    fn overrun(&self) {
        let mut state = self.shared.lock();
        if self.is_in(&state) {
            state.subsystem.overrun(self.place);
        }
    }

    fn lost(&self) -> Lost {
        let mut state = self.shared.lock();
        let Place { controller, .. } = self.place;
        if !self.is_in(&state) {
            // A reset or a Disconnect deleted the queue, or the association is over.
            if state.connections.get(&self.place) == Some(&self.connection) {
                state.end_queue(self.place);
            }
            let admin = Place { controller, queue: QueueId::ADMIN };
            let is_over = state.subsystem.queue_entries(admin).is_none();
            return if is_over { Lost::Association } else { Lost::Queue };
        }
        match state.subsystem.lost(self.place) {
            nvme::Lost::Queue => {
                state.end_queue(self.place);
                Lost::Queue
            }
            nvme::Lost::Association => {
                state.connections.retain(|place, _| place.controller != controller);
                state.replies.retain(|(place, _), _| place.controller != controller);
                Lost::Association
            }
        }
    }
}

/// Returns whether the command, if it succeeds, disables the controller (CC.EN).
fn is_reset(entry: &Entry) -> bool {
    entry.opcode() == fabrics::OPCODE
        && entry.fabrics_type() == fabrics::PROPERTY_SET
        && entry.at(11) == offset::CONFIGURATION
        && entry.at(12) & 1 == 0
}
