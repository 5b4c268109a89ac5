//! The way of a command through its controller.

use crate::command::{admin, fabrics};
use crate::controller::Then;
use crate::discovery;
use crate::errors::{Refused, invalid};
use crate::features::{Features, SetResult, id as feature};
use crate::identify::{self, Identified};
use crate::logs::{self, Answer, Logs};
use crate::nvm;
use crate::properties::{Shutdown, ShutdownKind, offset};
use crate::support::{self, Kind};
use crate::work::Work;
use crate::{
    CommandId, Completion, ControllerId, Entry, NamespaceId, Place, QueueId, Sgl, Status, Step,
    Subsystem,
};
use flashatlas_types::SeededBug;

/// Refusal of a command, or the next step of the command.
type Outcome = Result<Next, Refused>;

/// Next step of a command.
enum Next {
    /// Completion, with the value that it returns.
    Done(u64),
    /// Wait for an event.
    Held,
    /// Work for the media. With `after_all`, it begins after all commands in flight.
    Io { work: Work, then: Then, after_all: bool },
}

/// Direction of the data of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    None,
    FromHost,
    ToHost,
}

impl Direction {
    /// Returns the direction in the opcode (Base, Figure 91). No command here has two directions.
    const fn of(opcode: u8) -> Direction {
        match opcode & 3 {
            1 => Direction::FromHost,
            2 => Direction::ToHost,
            _ => Direction::None,
        }
    }
}

impl Subsystem {
    /// Returns the number of bytes that the transport must bring from the host for a command,
    /// before [`Subsystem::begin`]. The number is at most the largest transfer in the settings.
    ///
    /// # Errors
    /// Returns the completion if the command is refused before it begins.
    pub fn wants(&mut self, place: Place, entry: &Entry) -> Result<u32, Completion> {
        let checked = self.check(place, entry);
        match checked {
            Ok(bytes) if Direction::of(entry.opcode()) == Direction::FromHost => Ok(bytes as u32),
            Ok(_) => Ok(0),
            Err(refused) => Err(self.refuse_any(place, entry, refused)),
        }
    }

    /// Takes a command from a queue, with its `data` from the host.
    ///
    /// If the command is complete immediately, `out` receives the bytes that it returns.
    pub fn begin(&mut self, place: Place, entry: &Entry, data: &[u8], out: &mut Vec<u8>) -> Step {
        out.clear();
        self.activity.command(place.queue, entry);
        let next = self.check(place, entry).and_then(|bytes| {
            let from_host = Direction::of(entry.opcode()) == Direction::FromHost;
            if from_host && (data.len() as u64) < bytes {
                return Err(Status::DATA_TRANSFER_ERROR.into());
            }
            match (entry.opcode(), place.queue) {
                (fabrics::OPCODE, _) => self.fabrics(place, entry),
                (_, QueueId::ADMIN) => self.admin(place.controller, entry, out),
                _ => self.nvm(place.controller, entry, data),
            }
        });
        match next {
            Ok(Next::Done(value)) => Step::Done(Completion::value(entry.id(), value)),
            Ok(Next::Held) => Step::Held,
            Ok(Next::Io { work, then, after_all }) => {
                self.io(place, entry, (work, then), after_all)
            }
            Err(refused) => {
                out.clear();
                Step::Done(self.refuse_any(place, entry, refused))
            }
        }
    }

    /// Checks the fields that all commands have, and returns the number of bytes to transfer.
    fn check(&self, place: Place, entry: &Entry) -> Result<u64, Refused> {
        let controller = self.controllers.get(&place.controller).ok_or(Status::SEQUENCE_ERROR)?;
        if !controller.queues.contains_key(&place.queue) {
            return Err(Status::SEQUENCE_ERROR.into());
        }
        if controller.knows(place.queue, entry.id()) {
            return Err(Status::COMMAND_ID_CONFLICT.at(0, 16));
        }
        if entry.fuse() != 0 {
            return Err(invalid(0, 8)); // no fused commands (FUSES)
        }
        let opcode = entry.opcode();
        if opcode == fabrics::OPCODE {
            support::check(Kind::Fabrics, entry.fabrics_type(), self.discovery)
                .map_err(|status| status.at(1, 0))?;
            return Ok(0);
        }
        controller.check_ready()?;
        let kind = if place.queue == QueueId::ADMIN { Kind::Admin } else { Kind::Io };
        support::check(kind, opcode, self.discovery).map_err(|status| status.at(0, 0))?;
        let bytes = match kind {
            Kind::Io => nvm::bytes(entry, Some(nvm::namespace(entry, &self.namespaces)?)),
            _ => admin_bytes(entry),
        };
        if bytes > 0 {
            self.check_pointer(entry, bytes)?;
        }
        Ok(bytes)
    }

    /// Checks the data pointer of a command that transfers data (Base 4.3.2).
    fn check_pointer(&self, entry: &Entry, bytes: u64) -> Result<(), Refused> {
        if entry.data_pointer_kind() != 1 {
            return Err(invalid(0, 14));
        }
        let sgl = entry.sgl();
        let in_capsule = Direction::of(entry.opcode()) == Direction::FromHost;
        match sgl.kind {
            Sgl::TRANSPORT => {}
            Sgl::IN_CAPSULE if in_capsule => {}
            _ => return Err(Status::SGL_TYPE_INVALID.at(9, 24)),
        }
        if bytes > self.settings.largest_transfer() {
            return Err(invalid(12, 0));
        }
        if u64::from(sgl.length) < bytes {
            return Err(Status::SGL_LENGTH_INVALID.at(8, 0));
        }
        Ok(())
    }

    /// Returns the completion of a refused command. A refused Fabrics command makes no entry in the
    /// error log.
    fn refuse_any(&mut self, place: Place, entry: &Entry, refused: Refused) -> Completion {
        if entry.opcode() == fabrics::OPCODE {
            return Completion::new(entry.id(), refused.status);
        }
        self.refuse(place, entry, refused)
    }

    fn fabrics(&mut self, place: Place, entry: &Entry) -> Outcome {
        let id = place.controller;
        let eight_bytes = entry.at(10) & 7 == 1;
        match entry.fabrics_type() {
            // Connect creates a queue, but this queue already exists
            fabrics::CONNECT => Err(Status::SEQUENCE_ERROR.into()),
            fabrics::DISCONNECT => self.disconnect(place, entry),
            // properties are accessed only through the admin queue
            _ if place.queue != QueueId::ADMIN => Err(invalid(0, 0)),
            _ if entry.at(10) & 7 > 1 => Err(invalid(10, 0)),
            fabrics::PROPERTY_GET => {
                let controller = self.controllers.get(&id).ok_or(Status::SEQUENCE_ERROR)?;
                controller.properties.get(entry.at(11), eight_bytes).map(Next::Done)
            }
            _ if entry.at(11) != offset::CONFIGURATION || eight_bytes => Err(invalid(11, 0)),
            _ => self.configure(id, entry.at(12)),
        }
    }

    fn disconnect(&mut self, place: Place, entry: &Entry) -> Outcome {
        let controller =
            self.controllers.get_mut(&place.controller).ok_or(Status::SEQUENCE_ERROR)?;
        if place.queue == QueueId::ADMIN {
            return Err(Status::INVALID_QUEUE_TYPE.into());
        }
        if entry.at(10) as u16 != 0 {
            return Err(Status::INCOMPATIBLE_FORMAT.into());
        }
        if controller.is_busy(place.queue) {
            return Err(Status::CONTROLLER_BUSY.into());
        }
        controller.queues.remove(&place.queue);
        Ok(Next::Done(0))
    }

    /// Writes Controller Configuration: enables, resets or shuts down (Base 3.1.4.5, 3.6.2, 3.7.2).
    fn configure(&mut self, id: ControllerId, value: u32) -> Outcome {
        let controller = self.controllers.get_mut(&id).ok_or(Status::SEQUENCE_ERROR)?;
        let asked = controller.properties.configure(value)?;
        if asked.reset {
            let features = Features::new(&self.durable.saved, controller.asked_keep_alive);
            controller.reset(features);
        }
        if asked.enable {
            controller.settle();
            self.changed |= !self.durable.in_use && !self.discovery;
            self.durable.in_use = !self.discovery && !SeededBug::UseNotNoted.is_active();
        }
        match asked.shutdown {
            Some(ShutdownKind::Normal) if !self.discovery => {
                controller.properties.shutdown = Shutdown::Running;
                let work = nvm::flush_unless(SeededBug::ShutdownWithoutFlush);
                let then = Then::Shutdown;
                Ok(Next::Io { work, then, after_all: true })
            }
            // an abrupt shutdown, or a discovery service: nothing is flushed
            Some(_) => {
                self.shut_down(id);
                Ok(Next::Done(0))
            }
            None => Ok(Next::Done(0)),
        }
    }

    /// Ends a shutdown. The drive is no longer in use when no controller is in use.
    pub(crate) fn shut_down(&mut self, id: ControllerId) {
        if let Some(controller) = self.controllers.get_mut(&id) {
            controller.properties.shutdown = Shutdown::Done;
        }
        let used = self.controllers.values().any(|one| one.check_ready().is_ok());
        self.changed |= !self.discovery;
        self.durable.in_use &= used || SeededBug::UseStaysNoted.is_active();
    }

    fn admin(&mut self, id: ControllerId, entry: &Entry, out: &mut Vec<u8>) -> Outcome {
        match entry.opcode() {
            admin::IDENTIFY => {
                support::check(Kind::Identify, entry.at(10) as u8, self.discovery)
                    .map_err(|status| status.at(10, 0))?;
                let identified = Identified {
                    discovery: self.discovery,
                    controller: id,
                    identity: &self.durable.identity,
                    namespaces: &self.namespaces,
                    settings: &self.settings,
                };
                *out = identified.answer(entry)?;
                Ok(Next::Done(0))
            }
            admin::GET_LOG_PAGE => self.log_page(id, entry, out),
            admin::GET_FEATURES | admin::SET_FEATURES => {
                support::check(Kind::Feature, entry.at(10) as u8, self.discovery)
                    .map_err(|status| status.at(10, 0))?;
                self.feature(id, entry, out)
            }
            _ if entry.nsid() != NamespaceId::NONE => Err(invalid(1, 0)),
            admin::ASYNC_EVENT_REQUEST => {
                let controller = self.controllers.get_mut(&id).ok_or(Status::SEQUENCE_ERROR)?;
                controller.events.request(entry.id())?;
                Ok(Next::Held)
            }
            admin::ABORT => Ok(Next::Done(self.abort(id, entry))),
            // Keep Alive: the command has no effect but its arrival
            _ => Ok(Next::Done(0)),
        }
    }

    /// Aborts a request for events, and nothing else (Base 5.1.1). Returns 1 if nothing is aborted.
    fn abort(&mut self, id: ControllerId, entry: &Entry) -> u64 {
        let (queue, command) = (entry.at(10) as u16, CommandId((entry.at(10) >> 16) as u16));
        let Some(controller) = self.controllers.get_mut(&id) else { return 1 };
        if queue != QueueId::ADMIN.0 || !controller.events.abort(command) {
            return 1;
        }
        controller.outbox.push(Completion::new(command, Status::ABORT_REQUESTED));
        0
    }

    fn log_page(&mut self, id: ControllerId, entry: &Entry, out: &mut Vec<u8>) -> Outcome {
        let log = entry.at(10) as u8;
        support::check(Kind::Log, log, self.discovery).map_err(|status| status.at(10, 0))?;
        let controller = self.controllers.get(&id).ok_or(Status::SEQUENCE_ERROR)?;
        let discovery_page = || discovery::page(self.generation, &self.entries, controller.reached);
        let logs = Logs {
            discovery: self.discovery,
            errors: &controller.errors,
            changed: &controller.changed,
            firmware: &self.durable.identity.firmware,
            discovery_page: &discovery_page,
        };
        match logs.answer(entry)? {
            Answer::Data(data) => *out = data,
            Answer::Health(log) => {
                let (work, then) = (Work::Health, Then::Log(log));
                return Ok(Next::Io { work, then, after_all: false });
            }
        }
        self.log_was_read(id, log, entry.at(10) >> 15 & 1 != 0);
        Ok(Next::Done(0))
    }

    /// Clears the events of a log that was read, unless `retain` is set.
    pub(crate) fn log_was_read(&mut self, id: ControllerId, log: u8, retain: bool) {
        if retain {
            return;
        }
        if let Some(controller) = self.controllers.get_mut(&id) {
            controller.events.read(log);
            if log == logs::id::CHANGED {
                controller.changed.clear();
            }
        }
    }

    fn feature(&mut self, id: ControllerId, entry: &Entry, out: &mut Vec<u8>) -> Outcome {
        let controller = self.controllers.get(&id).ok_or(Status::SEQUENCE_ERROR)?;
        let limits = self.limits(controller);
        let mut features = controller.features;
        if entry.opcode() == admin::GET_FEATURES {
            let got = features.get(entry, &limits, &self.durable.saved)?;
            out.extend(got.data.into_iter().flatten());
            return Ok(Next::Done(got.value.into()));
        }
        let before = self.durable.saved;
        let set = features.set(entry, &limits, &mut self.durable.saved)?;
        self.changed |= self.durable.saved != before && !SeededBug::SaveTooLate.is_active();
        if let Some(controller) = self.controllers.get_mut(&id) {
            controller.features = features;
            // a threshold may lie on the other side of the temperature now
            controller.watch(self.vitals);
        }
        match set {
            SetResult::Set(value) => Ok(Next::Done(value.into())),
            SetResult::CacheOff { save } => {
                // writes in flight still go to the cache, and the flush follows them
                let work = nvm::flush_unless(SeededBug::SwitchWithoutFlush);
                let after_all = !SeededBug::SwitchOvertakes.is_active();
                Ok(Next::Io { work, then: Then::CacheOff { save }, after_all })
            }
        }
    }

    fn nvm(&mut self, id: ControllerId, entry: &Entry, data: &[u8]) -> Outcome {
        let controller = self.controllers.get(&id).ok_or(Status::SEQUENCE_ERROR)?;
        let namespace = nvm::namespace(entry, &self.namespaces)?;
        let through = namespace.shape.volatile_cache && controller.features.writes_through();
        let (work, then) = nvm::work(entry, namespace, through, data)?;
        Ok(Next::Io { work, then, after_all: false })
    }
}

/// Returns the number of bytes that an admin command transfers.
fn admin_bytes(entry: &Entry) -> u64 {
    match entry.opcode() {
        admin::IDENTIFY => identify::BYTES as u64,
        admin::GET_LOG_PAGE => logs::bytes(entry),
        // Other selects and the identifier of 64 bits are refused, with any buffer.
        admin::GET_FEATURES
            if entry.at(10) as u8 == feature::HOST_ID
                && entry.at(10) >> 8 & 7 < 3
                && entry.at(11) & 1 != 0 =>
        {
            16
        }
        _ => 0,
    }
}
