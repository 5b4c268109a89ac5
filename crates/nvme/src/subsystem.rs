//! A subsystem: its controllers, and everything that they share.

use crate::activity::Activity;
use crate::connect::{Connect, Connected, Invalid};
use crate::controller::{Controller, InFlight, Then};
use crate::discovery::DiscoveryEntry;
use crate::durable::{Durable, Totals};
use crate::errors::Refused;
use crate::events::Event;
use crate::features::{Features, Limits};
use crate::identity::{Namespace, Nqn};
use crate::logs;
use crate::properties::Properties;
use crate::settings::Settings;
use crate::work::{Failure, IoCommand, IoResult, Ticket, Work};
use crate::{
    Completion, ControllerId, Entry, Health, MediaError, MediaShape, NamespaceId, Place, QueueId,
    Status, Vitals,
};
use flashatlas_types::{Ps, SeededBug};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum lead of the totals over the durable record, in units of 512 bytes: 32 MiB.
const TOTALS_LAG: u64 = 1 << 16;

/// Result of a command that was accepted.
#[must_use = "the host waits for its completion"]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The command is complete.
    Done(Completion),
    /// The media must carry out the command.
    Io(IoCommand),
    /// The command waits. [`Subsystem::finish`] hands it out as an [`IoCommand`], or
    /// [`Subsystem::take_completions`] completes it.
    Held,
}

/// Result of a command that the media have carried out.
#[must_use = "the host waits for its completion"]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Finished {
    /// Completion, and the queue that it goes to. `None` if nobody waits for it any more.
    pub completion: Option<(Place, Completion)>,
    /// Commands that waited for this command: the media must carry them out now.
    pub released: Vec<IoCommand>,
}

/// Part of an association that a transport has lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The queue. The other queues go on.
    Queue,
    /// The association. The connections of its other queues must be closed.
    Association,
}

/// A subsystem with its controllers, or a discovery service.
///
/// No method waits. A server keeps the subsystem in a lock, and does not hold the lock while the
/// media work.
pub struct Subsystem {
    pub(crate) settings: Settings,
    pub(crate) discovery: bool,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) durable: Durable,
    pub(crate) controllers: BTreeMap<ControllerId, Controller>,
    pub(crate) entries: Vec<DiscoveryEntry>,
    pub(crate) generation: u64,
    /// Commands of ended associations that the media still carry out. A new controller is not ready
    /// before these commands are done, because they could undo its writes.
    orphans: BTreeSet<u64>,
    next_controller: u16,
    next_ticket: u64,
    /// `true` if the durable record must be written.
    pub(crate) changed: bool,
    /// Totals in the record that was written last.
    written: Totals,
    /// Simulated time with power, as far as it is known.
    powered: Ps,
    /// Vitals of the media, as far as they are known.
    pub(crate) vitals: Vitals,
    pub(crate) activity: Activity,
}

impl Subsystem {
    /// Powers on a subsystem with one namespace. `durable` is the record from before the power went
    /// off, or a new record.
    ///
    /// # Panics
    /// Panics if the shape of the media or the settings are out of range.
    pub fn new(settings: Settings, shape: MediaShape, mut durable: Durable) -> Subsystem {
        settings.check();
        let block = shape.block_bytes;
        assert!(
            block.is_power_of_two() && (512..=1 << 16).contains(&block),
            "blocks of {block} bytes are not supported"
        );
        assert!(shape.blocks > 0 && shape.unit_blocks > 0 && shape.bytes() > 0, "{shape:?}");
        durable.power_on();
        let namespaces = vec![Namespace { names: durable.identity.namespace, shape }];
        Subsystem::with(settings, false, namespaces, durable, Vec::new())
    }

    pub(crate) fn with(
        settings: Settings,
        discovery: bool,
        namespaces: Vec<Namespace>,
        durable: Durable,
        entries: Vec<DiscoveryEntry>,
    ) -> Subsystem {
        Subsystem {
            settings,
            discovery,
            namespaces,
            written: durable.totals,
            durable,
            controllers: BTreeMap::new(),
            entries,
            generation: 1,
            orphans: BTreeSet::new(),
            next_controller: 0,
            next_ticket: 0,
            changed: !discovery,
            powered: Ps::ZERO,
            vitals: Health::default().vitals(),
            activity: Activity::default(),
        }
    }

    /// Returns the name of the subsystem.
    pub fn nqn(&self) -> &Nqn {
        &self.durable.identity.nqn
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the controllers that have an association, in order.
    pub fn controllers(&self) -> impl Iterator<Item = ControllerId> + '_ {
        self.controllers.keys().copied()
    }

    /// Creates a queue. For an admin queue, also creates the association with a controller (Base
    /// 6.3).
    ///
    /// # Errors
    /// Returns the completion that refuses the command. Connect never adds to the error log.
    pub fn connect(&mut self, entry: &Entry, data: &[u8]) -> Result<Connected, Completion> {
        let connect = Connect::read(entry, data)?;
        let entries = connect.entries;
        let flow_control = !connect.without_flow_control;
        let controller =
            self.establish(connect).map_err(|invalid: Invalid| invalid.completion(entry))?;
        let queue = QueueId((entry.at(10) >> 16) as u16);
        let completion = Completion::value(entry.id(), controller.0.into());
        Ok(Connected { place: Place { controller, queue }, entries, flow_control, completion })
    }

    fn establish(&mut self, connect: Connect) -> Result<ControllerId, Invalid> {
        if connect.subsystem != *self.nqn() {
            return Err(Invalid::data(256));
        }
        if !self.settings.admits(&connect.host) {
            return Err(Status::CONNECT_INVALID_HOST.into());
        }
        let largest = match connect.queue {
            QueueId::ADMIN => self.settings.admin_entries,
            _ => self.settings.entries,
        };
        if connect.entries < 2 || connect.entries > largest.into() {
            return Err(Invalid::command(44));
        }
        if connect.queue == QueueId::ADMIN { self.associate(connect) } else { self.add(&connect) }
    }

    /// Allocates a controller. Dynamic controllers have no state from earlier associations except
    /// the saved features, which belong to the subsystem here.
    fn associate(&mut self, connect: Connect) -> Result<ControllerId, Invalid> {
        if connect.controller != ControllerId::DYNAMIC {
            return Err(Invalid::data(16));
        }
        if self.controllers.len() >= usize::from(self.settings.controllers) {
            return Err(Status::CONTROLLER_BUSY.into());
        }
        // there are fewer controllers than identifiers, so one identifier is free
        let free = |id: &ControllerId| !self.controllers.contains_key(id);
        let ids = (0..ControllerId::RESERVED)
            .map(|step| self.next_controller.wrapping_add(step) % ControllerId::RESERVED);
        let id = ids.map(ControllerId).find(free).ok_or(Status::CONTROLLER_BUSY)?;
        self.next_controller = (id.0 + 1) % ControllerId::RESERVED;
        let properties = Properties::new(self.discovery, self.settings.entries);
        let mut features = Features::new(&self.durable.saved, connect.keep_alive);
        if self.discovery && connect.keep_alive > 0 {
            features.events = 1 << 31; // Base 3.1.3.3.1
        }
        let Connect { host, host_id, entries, keep_alive, .. } = connect;
        self.activity.associated(&host);
        let mut controller = Controller::new(id, (host, host_id), keep_alive, properties, features);
        controller.queues.insert(QueueId::ADMIN, entries);
        controller.wait_for(&self.orphans);
        self.controllers.insert(id, controller);
        Ok(id)
    }

    /// Adds an I/O queue to an association.
    fn add(&mut self, connect: &Connect) -> Result<ControllerId, Invalid> {
        let most = self.settings.queues;
        let controller = self.controllers.get_mut(&connect.controller);
        let controller = controller.filter(|_| !self.discovery).ok_or(Invalid::data(16))?;
        if connect.host != controller.host {
            return Err(Invalid::data(512));
        }
        if connect.host_id != [0; 16] && connect.host_id != controller.host_id {
            return Err(Invalid::data(0));
        }
        if connect.queue.0 > controller.features.queues.unwrap_or(most) {
            return Err(Invalid::command(42));
        }
        if controller.check_ready().is_err() || !controller.properties.queue_entries_fit() {
            return Err(Invalid::command(42));
        }
        if controller.queues.contains_key(&connect.queue) {
            return Err(Status::SEQUENCE_ERROR.into());
        }
        controller.queues.insert(connect.queue, connect.entries);
        Ok(controller.id)
    }

    /// Ends a queue whose connection is lost. The loss of the admin queue ends the association
    /// (Base 3.1.2, 3.3.2.4).
    ///
    /// The association goes on without an I/O queue, even if the host has not announced that it
    /// deletes queues: Linux closes its I/O queues before it shuts the controller down.
    pub fn lost(&mut self, place: Place) -> Lost {
        match self.controllers.get_mut(&place.controller) {
            Some(controller) if place.queue != QueueId::ADMIN => {
                controller.end_queue(place.queue);
                return Lost::Queue;
            }
            _ => drop(self.end(place.controller)),
        }
        Lost::Association
    }

    fn end(&mut self, controller: ControllerId) -> Option<Controller> {
        let ended = self.controllers.remove(&controller)?;
        self.orphans.extend(ended.orphans());
        Some(ended)
    }

    /// Returns `true` if the transport may fetch another command of this controller, from any of
    /// its queues.
    ///
    /// The effect of a command is decided when the command is fetched (ADR 0005). The window bounds
    /// the number of fetched commands that are not complete. Asynchronous Event Requests take no
    /// place in the window.
    pub fn may_fetch(&self, controller: ControllerId) -> bool {
        let window = usize::from(self.settings.fetch_window);
        self.controllers.get(&controller).is_some_and(|one| one.in_flight() < window)
    }

    /// Returns the entries of a queue, or `None` if it does not exist.
    pub fn queue_entries(&self, place: Place) -> Option<u32> {
        self.controllers.get(&place.controller)?.queues.get(&place.queue).copied()
    }

    /// Returns the keep alive timeout in milliseconds while it is active (Base 3.9.2).
    ///
    /// Every command of the host starts the timeout anew (Base 3.9.4). The transport has the clock.
    pub fn keep_alive(&self, controller: ControllerId) -> Option<u32> {
        let one = self.controllers.get(&controller)?;
        let timeout = one.features.keep_alive;
        (timeout > 0 && one.check_ready().is_ok()).then_some(timeout)
    }

    /// Ends an association whose keep alive timeout has passed (Base 3.9.5). The transport closes
    /// its connections.
    pub fn expire(&mut self, controller: ControllerId) {
        if let Some(mut one) = self.end(controller) {
            let count = self.count_error();
            one.errors.event(count, Status::KEEP_ALIVE_EXPIRED);
        }
    }

    /// Ends the association of a queue whose host has sent commands beyond its size. The transport
    /// closes its connections.
    ///
    /// The controller stops with the Controller Fatal Status (CSTS.CFS; Base 3.3.2.5 and 3.3.2.6).
    /// No host reads this status here, because a dynamic controller ends with its association.
    pub fn overrun(&mut self, place: Place) {
        drop(self.end(place.controller));
    }

    /// Returns completions that answer no call: events, and aborted requests. They go to the admin
    /// queue of the controller.
    pub fn take_completions(&mut self, controller: ControllerId) -> Vec<Completion> {
        let Some(one) = self.controllers.get_mut(&controller) else { return Vec::new() };
        let mut taken = std::mem::take(&mut one.outbox);
        if one.check_ready().is_ok() {
            taken.extend(std::iter::from_fn(|| one.events.report()));
        }
        taken
    }

    /// Returns the durable record if it must be written before the completion of the last command
    /// is sent.
    ///
    /// The record is written at power-on, when a controller is enabled, and after a saved feature,
    /// a shutdown and an entry of the error log. It is also written after every 32 MiB of reads and
    /// writes, so that a power failure takes at most 32 MiB from the totals. When a host reads
    /// SMART, the record is written, so that no total falls below the value that the host saw.
    pub fn durable_changed(&mut self) -> Option<Durable> {
        let (now, before) = (&self.durable.totals, &self.written);
        let moved = now.units_read - before.units_read + now.units_written - before.units_written;
        if !self.changed && moved < TOTALS_LAG {
            return None;
        }
        self.changed = false;
        self.written = self.kept_totals();
        Some(Durable { totals: self.written, ..self.durable.clone() })
    }

    /// Returns the totals for a record that is written now.
    fn kept_totals(&self) -> Totals {
        let powered_ms = self.durable.powered_ms(self.powered);
        Totals { powered_ms, ..self.durable.totals }
    }

    /// Switches the power off in order, with everything durable, and returns the record to keep. No
    /// command may be in flight.
    pub fn power_off(&mut self, health: &Health) -> Durable {
        self.observe(health);
        self.durable.in_use = false;
        self.changed = true;
        self.durable_changed().expect("the durable state has changed")
    }

    /// Returns the activity of hosts since the power came on.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Reports the health of the media to the hosts: each new critical warning becomes an event.
    pub fn observe(&mut self, health: &Health) {
        self.powered = health.powered;
        self.durable.totals.percentage_used =
            self.durable.totals.percentage_used.max(health.percentage_used);
        self.watch(health.vitals());
    }

    /// Raises the events of critical warnings, if the vitals have changed.
    fn watch(&mut self, vitals: Vitals) {
        if self.vitals != vitals {
            self.vitals = vitals;
            self.controllers.values_mut().for_each(|one| one.watch(vitals));
        }
    }

    /// Changes the size of the namespace, and tells the hosts.
    ///
    /// # Panics
    /// Panics if there is no such namespace.
    pub fn resize(&mut self, nsid: NamespaceId, blocks: u64) {
        self.namespaces[nsid.0 as usize - 1].shape.blocks = blocks;
        for controller in self.controllers.values_mut() {
            controller.note_changed(nsid);
            if controller.features.events & 1 << 8 != 0 {
                controller.events.raise(Event::NAMESPACE_CHANGED);
            }
        }
    }

    /// Finishes a command that the media have carried out. `out` has the bytes that it returns.
    pub fn finish(&mut self, result: IoResult, out: &mut Vec<u8>) -> Finished {
        let mut finished = Finished::default();
        if let Some(vitals) = result.vitals {
            self.watch(vitals);
        }
        let Ticket { controller: id, number } = result.ticket;
        if self.orphans.remove(&number) {
            for controller in self.controllers.values_mut() {
                let nobody = controller.done(number, &mut finished.released);
                debug_assert!(nobody.is_none(), "a command is finished once");
            }
        }
        let Some(controller) = self.controllers.get_mut(&id) else {
            out.clear();
            return finished;
        };
        let Some(InFlight { queue, entry, then }) = controller.done(number, &mut finished.released)
        else {
            out.clear();
            return finished;
        };
        let outcome = match result.outcome {
            Ok(health) => self.succeeded(id, then, health.as_deref(), out),
            Err(failure) => {
                self.failed(id, then, failure);
                Err(failure.status().into())
            }
        };
        let completion = match outcome {
            Ok(()) => Completion::new(entry.id(), Status::SUCCESS),
            Err(refused) => self.refuse(Place { controller: id, queue }, &entry, refused),
        };
        finished.completion = Some((Place { controller: id, queue }, completion));
        finished
    }

    fn succeeded(
        &mut self,
        id: ControllerId,
        then: Then,
        health: Option<&Health>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let totals = &mut self.durable.totals;
        let units = |bytes: u64| bytes / 512;
        match then {
            Then::Read { bytes, command } => {
                totals.units_read += units(bytes);
                totals.reads += u64::from(command);
            }
            Then::Write { bytes } => {
                totals.units_written += units(bytes);
                totals.writes += 1;
            }
            Then::Nothing => {}
            Then::CacheOff { save } => {
                if save {
                    self.durable.saved.cache = Some(false);
                    self.changed = true;
                }
                if let Some(controller) = self.controllers.get_mut(&id) {
                    controller.features.cache = false;
                    controller.features.switching = false;
                }
            }
            Then::Shutdown => self.shut_down(id),
            Then::Log(log) => {
                let health = health.ok_or(Status::INTERNAL_ERROR)?;
                self.observe(health);
                if let Some(controller) = self.controllers.get(&id) {
                    *out = log.make(&self.durable, &controller.features, health);
                }
                // no total that a host has seen falls in a power failure
                self.changed |= log.log == logs::id::SMART
                    && self.kept_totals() != self.written
                    && !SeededBug::SeenNotKept.is_active();
                self.log_was_read(id, log.log, log.retain);
            }
        }
        Ok(())
    }

    /// Handles a failure: the cache is not switched, and hosts get an event if the media cannot go
    /// on.
    fn failed(&mut self, id: ControllerId, then: Then, failure: Failure) {
        if matches!(failure, Failure::Media { error: MediaError::Unreadable, .. }) {
            self.durable.totals.media_errors += 1;
        }
        if let Some(controller) = self.controllers.get_mut(&id) {
            match then {
                Then::CacheOff { .. } => controller.features.switching = false,
                Then::Shutdown => controller.properties.fatal = true,
                _ => {}
            }
        }
        let stopped = matches!(
            failure,
            Failure::Media { error: MediaError::PowerLost | MediaError::Other, .. }
        );
        if stopped {
            for controller in self.controllers.values_mut() {
                controller.events.raise(Event::INTERNAL_ERROR);
            }
        }
    }

    /// Counts an error, and returns its number.
    pub(crate) fn count_error(&mut self) -> u64 {
        self.durable.totals.errors = self.durable.totals.errors.wrapping_add(1).max(1);
        self.changed = true;
        self.durable.totals.errors
    }

    /// Returns the completion of a refused command, and notes it in the error log.
    pub(crate) fn refuse(&mut self, place: Place, entry: &Entry, refused: Refused) -> Completion {
        let count = self.count_error();
        let mut completion = Completion::new(entry.id(), refused.status);
        if let Some(controller) = self.controllers.get_mut(&place.controller) {
            controller.errors.command(count, place.queue, entry, refused);
            completion.status = completion.status.with_more();
        }
        completion
    }

    /// Returns the limits of a controller's features.
    pub(crate) fn limits(&self, controller: &Controller) -> Limits {
        Limits {
            discovery: self.discovery,
            cache: self.namespaces.iter().any(|one| one.shape.volatile_cache),
            queues: self.settings.queues,
            namespaces: self.namespaces.len() as u32,
            has_queues: controller.queues.len() > 1,
            host_id: controller.host_id,
        }
    }

    /// Makes a command for the media, and keeps the step that follows. With `after_all`, the
    /// command waits for all commands in flight.
    pub(crate) fn io(
        &mut self,
        place: Place,
        entry: &Entry,
        (work, then): (Work, Then),
        after_all: bool,
    ) -> Step {
        self.next_ticket += 1;
        let ticket = Ticket { controller: place.controller, number: self.next_ticket };
        let in_flight = InFlight { queue: place.queue, entry: *entry, then };
        let Some(controller) = self.controllers.get_mut(&place.controller) else {
            return Step::Done(Completion::new(entry.id(), Status::SEQUENCE_ERROR));
        };
        match controller.take_in(IoCommand { ticket, work }, in_flight, after_all) {
            Some(command) => Step::Io(command),
            None => Step::Held,
        }
    }
}
