//! A host with its connection to a controller, and the drive behind the controller.

use super::home::{Home, SlotWrite};
use crate::Failure;
use flashatlas_nvme::drive::{Drive, shape};
use flashatlas_nvme::{
    CommandId, Completion, Connect, ControllerId, Durable, Entry, Identity, IoCommand, NamespaceId,
    NamespaceNames, Nqn, Place, QueueId, Settings, Status, Step as Next, Subsystem, admin, offset,
};

/// Configuration that Linux writes: enabled, entries of 64 and 16 bytes.
const ENABLE: u32 = 0x0046_0001;
/// Request for a normal shutdown in the same property (CC.SHN).
const SHUT_DOWN: u32 = 1 << 14;
/// Maximum number of commands that a host has in flight, and number of entries of its queues.
const ENTRIES: u32 = 32;

/// A command that the media must carry out, and its data.
type Ready = (IoCommand, Vec<u8>);

/// A completion with the data that the command returns.
pub type Answer = (Completion, Vec<u8>);

/// Event between a command and its completion.
pub enum Noted {
    /// The media carry a command out.
    Media,
    /// The controller's record goes into its home.
    Record(SlotWrite),
}

/// Listener to events on the drive and in the home of the record.
pub type Notes<'a> = &'a mut dyn FnMut(&mut Drive, Noted);

/// A host, its controller and the drive.
pub struct Host {
    /// The drive.
    pub drive: Drive,
    /// The home of the controller's record.
    pub home: Home,
    subsystem: Subsystem,
    admin: Place,
    io: Option<Place>,
    last: u16,
    ready: Vec<Ready>,
    /// `true` if the controller was shut down, and must be reset before it is enabled.
    shut_down: bool,
}

fn name(of: &str) -> Nqn {
    Nqn::new(&format!("nqn.2026-11.example:{of}")).expect("a name")
}

/// Returns the record of a controller that never had power.
fn new_record() -> Durable {
    let identity = Identity {
        serial: "1".into(),
        model: "FlashAtlas".into(),
        firmware: "1".into(),
        nqn: name("drive"),
        namespace: NamespaceNames { eui64: [2; 8], nguid: [4; 16] },
    };
    Durable::new(identity).expect("the texts are short")
}

/// Returns a request for an association or a queue.
fn asks(queue: QueueId, controller: ControllerId) -> Connect {
    Connect {
        queue,
        entries: ENTRIES,
        deletes_queues: false,
        without_flow_control: false,
        keep_alive: 0,
        host_id: [1; 16],
        controller,
        subsystem: name("drive"),
        host: name("host"),
    }
}

impl Host {
    /// Switches the controller on over a drive that has power, with the record in its home, and
    /// connects the host.
    ///
    /// # Errors
    /// Returns the failure that the record cannot be used.
    pub fn power_on(drive: Drive, home: Home, notes: Notes<'_>) -> Result<Host, Failure> {
        let record = home.record().map_or_else(|| Ok(new_record()), Durable::from_bytes);
        let record = record.map_err(|error| Failure::new("N6", error.to_string()))?;
        let mut subsystem = Subsystem::new(Settings::default(), shape(&drive.stack), record);
        let (entry, data) = asks(QueueId::ADMIN, ControllerId::DYNAMIC).write(CommandId(0));
        let connected = subsystem.connect(&entry, &data);
        let admin = connected.map_err(|refused| unexpected("connect", &refused))?.place;
        let (ready, last) = (Vec::new(), 0);
        let mut host =
            Host { drive, home, subsystem, admin, io: None, last, ready, shut_down: false };
        host.keep(notes);
        Ok(host)
    }

    /// Keeps the record of the controller if it has changed, as a door does before it sends a
    /// completion.
    fn keep(&mut self, notes: Notes<'_>) {
        if let Some(record) = self.subsystem.durable_changed() {
            let write = self.home.keeping(&record.to_bytes());
            self.home.write(&write);
            notes(&mut self.drive, Noted::Record(write));
        }
    }

    /// Returns an identifier that no command in flight has.
    fn id(&mut self) -> CommandId {
        self.last = (self.last + 1) % 0xFFFF;
        CommandId(self.last)
    }

    /// Returns an admin command of this opcode.
    pub fn admin(&mut self, opcode: u8) -> Entry {
        Entry::new(opcode, self.id())
    }

    /// Returns an I/O command that names a range of blocks, and transfers `bytes`.
    pub fn io(&mut self, opcode: u8, first: u32, count: u32, bytes: usize) -> Entry {
        let entry = Entry::new(opcode, self.id()).namespace(NamespaceId(1));
        let entry = entry.dword(10, first).dword(12, count.saturating_sub(1));
        if bytes > 0 { entry.transport_data(bytes as u32) } else { entry }
    }

    /// Returns the queue of a command.
    ///
    /// # Panics
    /// Panics if the command is for the I/O queue, and the controller is not enabled.
    fn place(&self, entry: &Entry) -> Place {
        if entry.nsid() == NamespaceId(1) {
            self.io.expect("the controller is enabled")
        } else {
            self.admin
        }
    }

    /// Submits a command. Returns its answer, or `None` if the media must carry the command out, or
    /// if it waits for other commands.
    pub fn submit(&mut self, entry: &Entry, data: &[u8], notes: Notes<'_>) -> Option<Answer> {
        let mut out = Vec::new();
        let next = self.subsystem.begin(self.place(entry), entry, data, &mut out);
        self.keep(notes);
        match next {
            Next::Done(completion) => return Some((completion, out)),
            Next::Io(command) => self.ready.push((command, data.to_vec())),
            Next::Held => {}
        }
        None
    }

    /// Returns the number of commands that the media could carry out now.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Lets the media carry out command number `n` of the commands that could be carried out.
    /// Returns the answer if the host waits for an answer.
    pub fn carry_out(&mut self, n: usize, notes: Notes<'_>) -> Option<Answer> {
        let (command, data) = self.ready.remove(n);
        let mut out = Vec::new();
        let result = command.carry_out(&mut self.drive, &data, &mut out);
        notes(&mut self.drive, Noted::Media);
        let finished = self.subsystem.finish(result, &mut out);
        self.ready.extend(finished.released.into_iter().map(|command| (command, Vec::new())));
        self.keep(notes);
        finished.completion.map(|(_, completion)| (completion, out))
    }

    /// Submits a command and lets the media carry it out. Nothing else may be in flight.
    ///
    /// # Panics
    /// Panics if something else is in flight.
    pub fn run(&mut self, entry: &Entry, data: &[u8], notes: Notes<'_>) -> Answer {
        assert!(self.ready.is_empty(), "commands are in flight");
        match self.submit(entry, data, notes) {
            Some(answer) => answer,
            None => self.carry_out(0, notes).expect("the host waits for the command"),
        }
    }

    /// Runs a command as [`Host::run`] does, and returns the data of its answer.
    ///
    /// # Errors
    /// Returns a failure of `promise` if the command does not succeed.
    pub fn must(
        &mut self,
        entry: &Entry,
        data: &[u8],
        promise: &'static str,
        notes: Notes<'_>,
    ) -> Result<Answer, Failure> {
        let answer = self.run(entry, data, notes);
        Failure::unless(answer.0.status == Status::SUCCESS, promise, || {
            format!("{entry:?}: {:?}", answer.0.status)
        })?;
        Ok(answer)
    }

    fn set_configuration(&mut self, value: u32, notes: Notes<'_>) -> Option<Answer> {
        let entry = Entry::property_set(self.id(), offset::CONFIGURATION, value);
        self.submit(&entry, &[], notes)
    }

    /// Returns `true` if the controller must be reset before it is enabled.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// Enables the controller and makes an I/O queue.
    ///
    /// # Errors
    /// Returns the failure that the controller does not become ready.
    pub fn enable(&mut self, notes: Notes<'_>) -> Result<(), Failure> {
        while !self.ready.is_empty() {
            self.carry_out(0, notes);
        }
        let answer = self.set_configuration(ENABLE, notes).expect("the command needs no media");
        Failure::unless(answer.0.status == Status::SUCCESS, "R5", || {
            format!("enable: {:?}", answer.0.status)
        })?;
        let (entry, data) = asks(QueueId(1), self.admin.controller).write(self.id());
        let connected = self.subsystem.connect(&entry, &data);
        self.io = Some(connected.map_err(|refused| unexpected("connect", &refused))?.place);
        Ok(())
    }

    /// Resets the controller. The media may still carry out the commands in flight.
    pub fn reset(&mut self, notes: Notes<'_>) {
        self.set_configuration(0, notes).expect("the command needs no media");
        (self.io, self.shut_down) = (None, false);
    }

    /// Asks for a normal shutdown. The shutdown completes when the media have carried out all
    /// commands.
    pub fn shut_down(&mut self, notes: Notes<'_>) {
        let answer = self.set_configuration(ENABLE | SHUT_DOWN, notes);
        debug_assert!(answer.is_none(), "a shutdown flushes");
        (self.io, self.shut_down) = (None, true);
    }

    /// Returns the identifier of the command that was submitted last.
    pub fn last_id(&self) -> CommandId {
        CommandId(self.last)
    }

    /// Returns the value of a feature: the current value with `select` 0, the saved value with 2.
    ///
    /// # Errors
    /// Returns the failure that the command does not succeed.
    pub fn feature(&mut self, feature: u8, select: u32) -> Result<u64, Failure> {
        let entry = self.admin(admin::GET_FEATURES).dword(10, u32::from(feature) | select << 8);
        Ok(self.must(&entry, &[], "N6", &mut |_, _| {})?.0.result)
    }

    /// Returns a command that asks for the SMART log.
    pub fn smart(&mut self) -> Entry {
        const DWORDS: u32 = 512 / 4;
        self.admin(admin::GET_LOG_PAGE)
            .dword(10, u32::from(flashatlas_nvme::log::SMART) | (DWORDS - 1) << 16)
            .transport_data(512)
    }

    /// Returns the bytes of all blocks, as the controller reads them.
    ///
    /// # Errors
    /// Returns the failure that a read does not succeed.
    pub fn read_all(&mut self, blocks: u32) -> Result<Vec<u8>, Failure> {
        const MOST: u32 = 1024;
        let mut all = Vec::new();
        for first in (0..blocks).step_by(MOST as usize) {
            let count = MOST.min(blocks - first);
            let read = self.io(flashatlas_nvme::io::READ, first, count, count as usize * 512);
            all.extend(self.must(&read, &[], "N2", &mut |_, _| {})?.1);
        }
        Ok(all)
    }
}

fn unexpected(what: &str, refused: &Completion) -> Failure {
    Failure::new("R5", format!("{what}: {:?}", refused.status))
}
