//! A subsystem in memory: one namespace, and as much of a controller as a connection needs.

use flashatlas_nvme_tcp::door::{
    Connected, Door, Listener, Lost, Options, Queue, Reply, Target, Work,
};
use flashatlas_nvme_tcp::initiator::{self, Controller, Host, HostError};
use flashatlas_nvme_tcp::status;
use flashatlas_nvme_tcp::{Command, Limits, QueueShape};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

pub const NQN: &str = "nqn.2014-08.org.example:memory";
pub const BLOCK: u32 = 512;
/// Bytes of the namespace.
pub const BYTES: usize = 8 << 20;

/// An association, while it lasts.
#[derive(Default)]
struct Association {
    enabled: bool,
    keep_alive: Option<Duration>,
    queues: Vec<u16>,
    events: Vec<Reply>,
}

#[derive(Default)]
struct State {
    next: u64,
    associations: BTreeMap<u64, Association>,
}

/// A subsystem in memory.
pub struct Memory {
    pub blocks: Mutex<Vec<u8>>,
    state: Mutex<State>,
    /// Media calls wait while this is closed.
    gate: (Mutex<bool>, Condvar),
    working: AtomicUsize,
    /// Largest number of media calls at a time so far.
    pub most_working: AtomicUsize,
    /// Queues that were lost.
    pub lost: AtomicUsize,
    pub expired: AtomicBool,
    window: usize,
    strict: bool,
}

impl Memory {
    pub fn new() -> Memory {
        Memory::with(32, true)
    }

    /// Returns a subsystem with this window; with `strict`, the loss of an I/O queue ends its
    /// association.
    pub fn with(window: usize, strict: bool) -> Memory {
        Memory {
            blocks: Mutex::new(vec![0; BYTES]),
            state: Mutex::default(),
            gate: (Mutex::new(false), Condvar::new()),
            working: AtomicUsize::new(0),
            most_working: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            expired: AtomicBool::new(false),
            window,
            strict,
        }
    }

    /// Closes or opens the gate, so that media calls wait or go on.
    pub fn close_gate(&self, closed: bool) {
        *self.gate.0.lock().unwrap() = closed;
        self.gate.1.notify_all();
    }

    pub fn associations(&self) -> usize {
        self.state.lock().unwrap().associations.len()
    }

    /// Returns the media calls that wait or run.
    pub fn working(&self) -> usize {
        self.working.load(Ordering::SeqCst)
    }

    fn wait_for_gate(&self) {
        let mut closed = self.gate.0.lock().unwrap();
        while *closed {
            closed = self.gate.1.wait(closed).unwrap();
        }
    }

    /// Carries out a command on the blocks.
    fn carry_out(&self, command: &Command) -> Result<Vec<u8>, u16> {
        let number = |at: usize| {
            u64::from_le_bytes(command.entry[at..at + 8].try_into().expect("8 bytes")) as usize
        };
        let now = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_working.fetch_max(now, Ordering::SeqCst);
        self.wait_for_gate();
        let start = number(40) * BLOCK as usize;
        let length = (number(48) % 0x10000 + 1) * BLOCK as usize;
        let mut blocks = self.blocks.lock().unwrap();
        let done = match command.entry[0] {
            0x00 => Ok(Vec::new()),
            _ if start + length > BYTES => Err(1 << 15 | 0x80 << 1), // LBA Out of Range
            0x01 if command.data.len() == length => {
                blocks[start..start + length].copy_from_slice(&command.data);
                Ok(Vec::new())
            }
            0x02 if command.room as usize == length => Ok(blocks[start..start + length].to_vec()),
            0x01 | 0x02 => Err(status::SGL_LENGTH_INVALID),
            _ => Err(1 << 15 | 0x01 << 1), // Invalid Command Opcode
        };
        self.working.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn property_set(&self, association: u64, entry: &[u8; 64]) {
        if entry[44] != 0x14 {
            return;
        }
        let mut state = self.state.lock().unwrap();
        if let Some(one) = state.associations.get_mut(&association) {
            one.enabled = entry[48] & 1 == 1;
            if !one.enabled {
                one.queues.retain(|&queue| queue == 0);
            }
        }
    }

    fn update<T>(&self, association: u64, f: impl FnOnce(&mut Association) -> T) -> Option<T> {
        self.state.lock().unwrap().associations.get_mut(&association).map(f)
    }
}

fn completed(command: &Command, result: u64, status: u16) -> [u8; 16] {
    let mut completion = status::completion(command.id(), status);
    completion[..8].copy_from_slice(&result.to_le_bytes());
    completion
}

/// The subsystem as a target.
pub struct MemoryTarget(pub Arc<Memory>);

impl Target for MemoryTarget {
    fn limits(&self) -> Limits {
        Limits::DEFAULT
    }

    fn connect(&self, command: &Command, _: SocketAddr) -> Result<Connected, [u8; 16]> {
        let entry = &command.entry;
        let word = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let refused = |status| Err(completed(command, 0, status));
        if (entry[0], entry[4]) != (0x7f, 0x01) {
            return refused(0x0c << 1); // Command Sequence Error
        }
        if command.data.len() != 1024 || !command.data[256..].starts_with(NQN.as_bytes()) {
            return refused(status::CONNECT_INVALID_PARAMETERS);
        }
        let queue = word(entry, 42);
        let mut state = self.0.state.lock().unwrap();
        let association = if queue == 0 {
            state.next += 1;
            let next = state.next;
            let millis = u32::from_le_bytes(entry[48..52].try_into().expect("4 bytes"));
            let keep_alive = (millis > 0).then(|| Duration::from_millis(millis.into()));
            let new = Association { keep_alive, queues: vec![0], ..Association::default() };
            state.associations.insert(next, new);
            next
        } else {
            let association = word(&command.data, 16).into();
            match state.associations.get_mut(&association) {
                Some(one) if one.enabled => one.queues.push(queue),
                _ => return refused(status::CONNECT_INVALID_PARAMETERS),
            }
            association
        };
        let shape = QueueShape {
            entries: word(entry, 44) + 1,
            admin: queue == 0,
            flow_control: entry[46] & 4 == 0,
        };
        let memory = Arc::clone(&self.0);
        Ok(Connected {
            queue: Arc::new(MemoryQueue { memory, association, queue }),
            completion: completed(command, association, 0),
            association,
            shape,
            window: self.0.window,
        })
    }
}

struct MemoryQueue {
    memory: Arc<Memory>,
    association: u64,
    queue: u16,
}

impl MemoryQueue {
    fn admin(&self, command: &Command, reply: Reply) {
        let (memory, association) = (&self.memory, self.association);
        let entry = &command.entry;
        let answer = match (entry[0], entry[4]) {
            (0x7f, 0x00) => {
                memory.property_set(association, entry);
                Ok((0, Vec::new()))
            }
            (0x7f, 0x04) => {
                let enabled = memory.update(association, |one| one.enabled).unwrap_or(false);
                Ok((u64::from(enabled), Vec::new()))
            }
            (0x06, _) => Ok((0, vec![entry[40]; command.room as usize])),
            (0x18, _) => Ok((0, Vec::new())),
            (0x0c, _) => {
                memory.update(association, |one| one.events.push(reply));
                return;
            }
            // A command of the vendor: an event happens.
            (0xc0, _) => {
                let events = memory.update(association, |one| std::mem::take(&mut one.events));
                for event in events.unwrap_or_default() {
                    let mut completion = status::completion(event.id(), 0);
                    completion[0] = 0x77;
                    event.send(completion, Vec::new());
                }
                Ok((0, Vec::new()))
            }
            _ => Err(1 << 15 | 0x01 << 1),
        };
        match answer {
            Ok((result, data)) => reply.send(completed(command, result, 0), data),
            Err(status) => reply.send(completed(command, 0, status), Vec::new()),
        }
    }
}

impl Queue for MemoryQueue {
    fn begin(&self, command: Command, reply: Reply) -> Vec<Work> {
        if self.queue == 0 {
            self.admin(&command, reply);
            return Vec::new();
        }
        if command.entry[0] == 0x7f {
            self.memory.update(self.association, |one| one.queues.retain(|&q| q != self.queue));
            reply.send(completed(&command, 0, 0), Vec::new());
            return Vec::new();
        }
        let memory = Arc::clone(&self.memory);
        let work = move || {
            match memory.carry_out(&command) {
                Ok(data) => reply.send(completed(&command, 0, 0), data),
                Err(status) => reply.send(completed(&command, 0, status), Vec::new()),
            }
            Vec::new()
        };
        vec![Work::new(work)]
    }

    fn is_alive(&self) -> bool {
        let alive = |one: &mut Association| one.queues.contains(&self.queue);
        self.memory.update(self.association, alive).unwrap_or(false)
    }

    fn keep_alive(&self) -> Option<Duration> {
        self.memory.update(self.association, |one| one.keep_alive).flatten()
    }

    fn expire(&self) {
        self.memory.expired.store(true, Ordering::SeqCst);
    }

    fn overrun(&self) {
        self.memory.state.lock().unwrap().associations.remove(&self.association);
    }

    fn lost(&self) -> Lost {
        self.memory.lost.fetch_add(1, Ordering::SeqCst);
        if self.queue != 0 && !self.memory.strict {
            return Lost::Queue;
        }
        self.memory.state.lock().unwrap().associations.remove(&self.association);
        Lost::Association
    }
}

/// A door to a subsystem in memory.
pub struct Served {
    pub memory: Arc<Memory>,
    pub door: Door,
    pub address: SocketAddr,
}

impl Served {
    pub fn new(memory: Memory, options: Options) -> Served {
        let memory = Arc::new(memory);
        let target = Arc::new(MemoryTarget(Arc::clone(&memory)));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let door = Door::open(&[Listener { address, target }], options).expect("a door");
        let address = door.addresses()[0];
        Served { memory, door, address }
    }

    pub fn standard() -> Served {
        Served::new(Memory::new(), quick())
    }

    pub fn connect(&self, options: &initiator::Options) -> Result<Controller, HostError> {
        Controller::enabled(self.address, NQN, &host(), options)
    }
}

/// Returns options whose times do not keep a test waiting.
pub fn quick() -> Options {
    Options { linger: Duration::from_secs(2), ..Options::default() }
}

pub fn host() -> Host {
    Host { nqn: "nqn.2014-08.org.example:host".into(), id: [7; 16] }
}

/// Waits until `holds` returns `true`, for at most some seconds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}: never");
}
