//! The controller core behind a door, with media in memory.

use crate::memory_target::{BLOCK, eventually, host, quick};
use crate::wire::pattern;
use flashatlas_nvme::{
    AddressFamily, DISCOVERY_NQN, DiscoveryEntry, Durable, Identity, Later, Media, MediaError,
    MediaShape, NamespaceNames, Nqn, Settings, Subsystem,
};
use flashatlas_nvme_tcp::door::{self, Door, Listener, SubsystemTarget, Switch};
use flashatlas_nvme_tcp::initiator::{Completed, Controller, Data, HostError, Options, QueuePair};
use flashatlas_nvme_tcp::pdu::{Framing, Pdu};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

const NQN: &str = "nqn.2014-08.org.example:drive";
const BYTES: usize = 4 << 20;

/// An operation on the media, or a write of the durable record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Done {
    Write { fua: bool },
    Flush,
    Keep,
}

/// Media in memory, which wait while the gate is closed.
#[derive(Default)]
pub(crate) struct Ram {
    bytes: Mutex<Vec<u8>>,
    done: Mutex<Vec<Done>>,
    is_closed: Mutex<bool>,
    changed: Condvar,
    waiting: Mutex<usize>,
    pub(crate) is_free: AtomicBool,
    keeps_at_gate: AtomicBool,
    /// `true` if free media accept reads immediately, and complete them at the gate.
    pub(crate) is_later: AtomicBool,
    /// `true` if the reads that wait are complete.
    pub(crate) is_complete: AtomicBool,
    /// The thread of each question whether a read is complete, and of each wait.
    pub(crate) asked: Mutex<Vec<ThreadId>>,
    pub(crate) waits: Mutex<Vec<ThreadId>>,
    /// The thread of each read of free media, and the commands that hosts waited for.
    reads: Mutex<Vec<(ThreadId, usize)>>,
    waited_for: AtomicUsize,
}

impl Ram {
    fn pass(&self) {
        *self.waiting.lock().unwrap() += 1;
        let mut closed = self.is_closed.lock().unwrap();
        while *closed {
            closed = self.changed.wait(closed).unwrap();
        }
        *self.waiting.lock().unwrap() -= 1;
    }

    fn close(&self, closed: bool) {
        *self.is_closed.lock().unwrap() = closed;
        self.changed.notify_all();
    }

    fn note(&self, done: Done) {
        self.done.lock().unwrap().push(done);
    }
}

/// Media that the test looks into.
#[derive(Clone)]
struct Shared(Arc<Ram>);

impl Media for &Shared {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        if !self.0.is_later.load(Ordering::SeqCst) {
            self.0.pass();
        }
        let start = offset as usize;
        if self.0.is_free.load(Ordering::SeqCst) {
            assert_ne!(start, BYTES - 512, "the test asks for this panic");
            let waited_for = self.0.waited_for.load(Ordering::SeqCst);
            self.0.reads.lock().unwrap().push((std::thread::current().id(), waited_for));
        }
        out.copy_from_slice(&self.0.bytes.lock().unwrap()[start..start + out.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError> {
        self.0.pass();
        let start = offset as usize;
        self.0.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        self.0.note(Done::Write { fua });
        Ok(())
    }

    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        let start = offset as usize;
        self.0.bytes.lock().unwrap()[start..start + bytes as usize].fill(0);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        self.0.note(Done::Flush);
        Ok(())
    }

    fn submit_read(&mut self, offset: u64, out: &mut [u8]) -> Result<Option<Later>, MediaError> {
        if offset == BYTES as u64 - 1024 {
            return Err(MediaError::Unreadable);
        }
        self.read(offset, out)?;
        Ok(self.0.is_later.load(Ordering::SeqCst).then_some(Later(offset)))
    }

    fn is_complete(&mut self, _: Later) -> bool {
        self.0.asked.lock().unwrap().push(std::thread::current().id());
        self.0.is_complete.load(Ordering::SeqCst)
    }

    fn wait(&mut self, later: Later) -> Result<(), MediaError> {
        self.0.waits.lock().unwrap().push(std::thread::current().id());
        self.0.pass();
        if later.0 == 512 { Err(MediaError::Unreadable) } else { Ok(()) }
    }

    fn is_free(&mut self) -> bool {
        self.0.is_free.load(Ordering::SeqCst)
    }

    fn waited_for(&mut self, commands: usize) {
        self.0.waited_for.store(commands, Ordering::SeqCst);
    }
}

pub(crate) struct Drive {
    pub(crate) ram: Arc<Ram>,
    target: Arc<SubsystemTarget<Shared>>,
    door: Door,
    address: SocketAddr,
}

fn nqn(name: &str) -> Nqn {
    Nqn::new(name).expect("a name")
}

impl Drive {
    fn new() -> Drive {
        Drive::behind(quick())
    }

    /// Returns a drive behind a door with these options.
    pub(crate) fn behind(options: door::Options) -> Drive {
        let ram = Arc::new(Ram { bytes: Mutex::new(vec![0; BYTES]), ..Ram::default() });
        let identity = Identity {
            serial: "S1".into(),
            model: "FlashAtlas".into(),
            firmware: "1".into(),
            nqn: nqn(NQN),
            namespace: NamespaceNames::default(),
        };
        let shape = MediaShape::sectors(BYTES as u64 / 512, 8);
        let durable = Durable::new(identity).expect("an identity");
        let subsystem = Subsystem::new(Settings::default(), shape, durable);
        let kept = Arc::clone(&ram);
        let keep = move |_: &Durable| {
            if kept.keeps_at_gate.load(Ordering::SeqCst) {
                kept.pass();
            }
            kept.note(Done::Keep);
        };
        let target = Arc::new(SubsystemTarget::new(subsystem, Shared(Arc::clone(&ram)), keep));

        let entry = DiscoveryEntry {
            family: AddressFamily::V4,
            address: "127.0.0.1".into(),
            service: "4420".into(),
            port: 1,
            nqn: nqn(NQN),
            admin_entries: 32,
        };
        let discovery = Subsystem::discovery(Settings::default(), vec![entry]);
        let nothing = Shared(Arc::new(Ram::default()));
        let discovery = SubsystemTarget::new(discovery, nothing, |_| {});
        let switch = Switch::new(vec![
            (NQN.into(), Arc::clone(&target) as _),
            (DISCOVERY_NQN.into(), Arc::new(discovery)),
        ]);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener { address, target: Arc::new(switch) };
        let door = Door::open(&[listener], options).expect("a door");
        let address = door.addresses()[0];
        Drive { ram, target, door, address }
    }

    /// Closes the door, and returns whether all connections ended in time.
    pub(crate) fn close(self) -> bool {
        self.door.close(Duration::from_secs(20))
    }

    pub(crate) fn connect(&self, options: &Options) -> Controller {
        Controller::enabled(self.address, NQN, &host(), options).expect("a controller")
    }
}

/// Returns an admin command with these dwords 10 and 11.
fn admin(opcode: u8, dword_10: u32, dword_11: u32) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[0] = opcode;
    entry[40..44].copy_from_slice(&dword_10.to_le_bytes());
    entry[44..48].copy_from_slice(&dword_11.to_le_bytes());
    entry
}

fn execute(controller: &mut Controller, entry: [u8; 64]) -> Result<Completed, HostError> {
    controller.admin.execute(entry, Data::None)
}

#[test]
fn a_host_discovers_a_drive_and_uses_it() {
    let drive = Drive::new();
    let options = Options { without_flow_control: true, ..Options::default() };
    let mut discovery =
        Controller::enabled(drive.address, DISCOVERY_NQN, &host(), &options).expect("discovery");
    let log = discovery.log_page(0x70, 2048).expect("the log");
    assert_eq!(log[8], 1, "one record");
    let name = &log[1024 + 256..];
    assert!(name.starts_with(NQN.as_bytes()) && name[NQN.len()] == 0);

    let mut controller = drive.connect(&options);
    let identify = controller.identify(0x01, 0).expect("the controller");
    assert_eq!(&identify[4..24], b"S1                  ");
    let namespace = controller.identify(0x00, 1).expect("the namespace");
    assert_eq!(namespace[..8], (BYTES as u64 / 512).to_le_bytes());
    let mut queue = controller.add_queue().expect("a queue");
    for (first, size) in [(0, 512), (7, 4096), (8, 64 << 10), (100, 1 << 20)] {
        let data = pattern(size);
        queue.write(first, BLOCK, data.clone()).expect("a write");
        assert!(queue.read(first, size as u32 / BLOCK, BLOCK).expect("a read") == data);
    }
    queue.flush().expect("a flush");
    assert_eq!(drive.ram.done.lock().unwrap().last(), Some(&Done::Flush));
    let smart = controller.log_page(0x02, 512).expect("the health log");
    assert_eq!(u64::from_le_bytes(smart[80..88].try_into().expect("8 bytes")), 4, "writes");
}

/// Returns the bytes of a read of these blocks, with this identifier.
fn read_capsule(id: u16, first: u64, blocks: u16) -> Vec<u8> {
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[4], entry[39]) = (0x02, 0x40, 1, 0x5a);
    entry[2..4].copy_from_slice(&id.to_le_bytes());
    entry[32..36].copy_from_slice(&(u32::from(blocks) * BLOCK).to_le_bytes());
    entry[40..48].copy_from_slice(&first.to_le_bytes());
    entry[48..50].copy_from_slice(&(blocks - 1).to_le_bytes());
    Pdu::CapsuleCmd(entry).encode(&[], &Framing::default())
}

/// Returns the identifiers of `count` reads, in the order of their completions.
fn completed(queue: &mut QueuePair, count: usize) -> Vec<u16> {
    let mut ids = Vec::new();
    while ids.len() < count {
        if let Pdu::CapsuleResp(entry) = queue.socket().receive().expect("a PDU").pdu {
            assert_eq!(entry[14..], [0; 2], "status");
            ids.push(u16::from_le_bytes([entry[12], entry[13]]));
        }
    }
    ids
}

#[test]
fn small_reads_of_free_media_need_no_thread_and_their_depth_is_what_hosts_wait_for() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    drive.ram.is_free.store(true, Ordering::SeqCst);
    let all: Vec<u8> = (0..8).flat_map(|id| read_capsule(100 + id, id.into(), 8)).collect();
    queue.socket().send_bytes(&all).expect("sent");
    // one thread carries out the reads, so they complete in order
    assert_eq!(completed(&mut queue, 8), (100..108).collect::<Vec<_>>());
    let reads = std::mem::take(&mut *drive.ram.reads.lock().unwrap());
    assert!(reads.iter().all(|&(thread, _)| thread == reads[0].0), "{reads:?}");
    assert_eq!(reads.iter().map(|read| read.1).collect::<Vec<_>>(), [8; 8]);

    // A command that is not small goes to the pool.
    queue.socket().send_bytes(&read_capsule(1, 0, 256)).expect("sent");
    assert_eq!(completed(&mut queue, 1), [1]);
    let large = drive.ram.reads.lock().unwrap()[0];
    assert_eq!((large.0 == reads[0].0, large.1), (false, 1));
}

#[test]
fn reads_that_complete_later_are_taken_where_they_arrive_and_wait_elsewhere() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    queue.write(8, BLOCK, pattern(512)).expect("a write");
    drive.ram.is_free.store(true, Ordering::SeqCst);
    drive.ram.is_later.store(true, Ordering::SeqCst);
    drive.ram.close(true);
    let good = queue.submit_read(8, 1, BLOCK).expect("submitted");
    let bad = queue.submit_read(1, 1, BLOCK).expect("submitted");
    eventually("both wait", || *drive.ram.waiting.lock().unwrap() == 2);
    let reads = drive.ram.reads.lock().unwrap().clone();
    assert!(reads.len() == 2 && reads[0].0 == reads[1].0, "one thread submitted both: {reads:?}");
    controller.keep_alive().expect("other commands go on");
    drive.ram.close(false);
    assert!(queue.wait(good).expect("a read").data == pattern(512));
    let failed = queue.wait(bad).expect("an answer");
    // Unrecovered Read Error, with an entry in the error log
    assert_eq!((failed.status() >> 1 & 0x7ff, failed.data.len()), (0x281, 0));
}

#[test]
fn a_record_that_cannot_be_kept_keeps_no_other_connection_waiting() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    let mut other = drive.connect(&Options::default());
    other.identify(0x01, 0).expect("the record of the power-on is kept");
    drive.ram.is_free.store(true, Ordering::SeqCst);
    // The read fails when it is submitted, and makes an entry in the error log, so the durable
    // record must be kept.
    drive.ram.keeps_at_gate.store(true, Ordering::SeqCst);
    drive.ram.close(true);
    let failed = queue.submit_read(BYTES as u64 / 512 - 2, 1, BLOCK).expect("submitted");
    eventually("the record waits", || *drive.ram.waiting.lock().unwrap() == 1);
    other.keep_alive().expect("the other host goes on");
    drive.ram.close(false);
    assert_eq!(queue.wait(failed).expect("an answer").status() >> 1 & 0x7ff, 0x281);
}

#[test]
fn a_panic_of_free_media_ends_one_command() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    drive.ram.is_free.store(true, Ordering::SeqCst);
    let last = BYTES as u64 / 512 - 1;
    queue.socket().send_bytes(&read_capsule(1, last, 1)).expect("sent");
    queue.socket().send_bytes(&read_capsule(2, 0, 1)).expect("sent");
    assert_eq!(completed(&mut queue, 1), [2], "the connection goes on");
    controller.keep_alive().expect("the association goes on, too");
}

#[test]
fn a_discovery_service_at_every_address_lists_the_one_that_the_host_has_reached() {
    let entry = DiscoveryEntry {
        family: AddressFamily::V6,
        address: "0.0.0.0".into(),
        service: "4420".into(),
        port: 1,
        nqn: nqn(NQN),
        admin_entries: 32,
    };
    let discovery = Subsystem::discovery(Settings::default(), vec![entry]);
    let target = SubsystemTarget::new(discovery, Shared(Arc::new(Ram::default())), |_| {});
    let listener = Listener { address: ([0, 0, 0, 0], 0).into(), target: Arc::new(target) };
    let options = door::Options { network: true, ..quick() };
    let door = Door::open(&[listener], options).expect("a door");
    for last in [1, 2] {
        let at = SocketAddr::from(([127, 0, 0, last], door.addresses()[0].port()));
        let mut controller =
            Controller::enabled(at, DISCOVERY_NQN, &host(), &Options::default()).expect("there");
        let log = controller.log_page(0x70, 2048).expect("the log");
        assert_eq!((log[8], log[1025]), (1, 1), "one record, IPv4");
        assert_eq!(log[1024 + 512..][..16], *format!("127.0.0.{last}       ").as_bytes());
    }
}

#[test]
fn a_flood_ends_the_association_and_no_other() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut other = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    drive.ram.close(true);
    let all: Vec<u8> = (0..33).flat_map(|id| read_capsule(100 + id, 0, 8)).collect();
    queue.socket().send_bytes(&all).expect("sent");
    let left = || drive.target.update(|subsystem| subsystem.controllers().count());
    eventually("the association ends", || left() == 1);
    assert!(controller.keep_alive().is_err(), "the admin queue is lost, too");
    other.keep_alive().expect("the other host goes on");
    drive.ram.close(false);
}

#[test]
fn names_that_nobody_has_are_refused() {
    let drive = Drive::new();
    let name = "nqn.2014-08.org.example:other";
    let refused = Controller::connect(drive.address, name, &host(), &Options::default());
    match refused.err() {
        // Connect Invalid Parameters, Do Not Retry
        Some(HostError::Status(status)) => assert_eq!(status, 1 << 15 | 1 << 9 | 0x82 << 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_durable_record_is_kept_before_the_answer() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    controller.identify(0x01, 0).expect("the first command keeps the record of the power-on");
    drive.ram.done.lock().unwrap().clear();
    // Set Features of the volatile cache, saved, which flushes.
    execute(&mut controller, admin(0x09, 0x06 | 1 << 31, 0)).expect("the cache is off");
    assert_eq!(*drive.ram.done.lock().unwrap(), [Done::Flush, Done::Keep]);
    drive.ram.done.lock().unwrap().clear();
    // A command that is complete immediately: it is refused, which makes an entry in the error log.
    controller.log_page(0x7e, 512).expect_err("there is no such log");
    assert_eq!(*drive.ram.done.lock().unwrap(), [Done::Keep]);
}

#[test]
fn the_switch_of_the_cache_waits_for_the_writes_before_it() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    controller.keep_alive().expect("the controller answers");
    drive.ram.done.lock().unwrap().clear();
    drive.ram.close(true);
    let write = queue.submit_write(0, BLOCK, pattern(4096)).expect("submitted");
    eventually("the write waits", || *drive.ram.waiting.lock().unwrap() == 1);
    let switch = controller.admin.submit(admin(0x09, 0x06, 0), Data::None).expect("submitted");
    std::thread::sleep(Duration::from_millis(30));
    assert!(drive.ram.done.lock().unwrap().is_empty(), "nothing is flushed before the write");
    drive.ram.close(false);
    assert_eq!(queue.wait(write).expect("a write").status(), 0);
    assert_eq!(controller.admin.wait(switch).expect("the switch").status(), 0);
    let done = drive.ram.done.lock().unwrap().clone();
    assert_eq!(done[..2], [Done::Write { fua: false }, Done::Flush], "{done:?}");
    // From here on a write is durable when it completes.
    queue.write(0, BLOCK, pattern(512)).expect("a write");
    assert_eq!(drive.ram.done.lock().unwrap().last(), Some(&Done::Write { fua: true }));
}

#[test]
fn a_new_size_completes_an_event_request() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    execute(&mut controller, admin(0x09, 0x0b, 1 << 8)).expect("namespace notices");
    let event = controller.admin.submit(admin(0x0c, 0, 0), Data::None).expect("submitted");
    controller.identify(0x01, 0).expect("other commands go on");
    drive.target.update(|subsystem| subsystem.resize(flashatlas_nvme::NamespaceId(1), 4096));
    let event = controller.admin.wait(event).expect("an event").result();
    assert_eq!(event & 0xff_ff07, 0x04_0002, "a notice: Namespace Attribute Changed, log 04h");
}

#[test]
fn a_reset_forgets_commands_and_their_identifiers_are_free() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options { entries: 4, ..Options::default() });
    let mut queue = controller.add_queue().expect("a queue");
    queue.flush().expect("a flush");
    // Requests for events are outstanding when the controller is reset. If the reset did not drop
    // these requests, the queue of 4 entries would soon be full.
    for turn in 0..4 {
        for _ in 0..2 {
            controller.admin.submit(admin(0x0c, 0, 0), Data::None).expect("submitted");
        }
        controller.disable().expect("a reset");
        assert!(queue.flush().is_err(), "turn {turn}: the queue is gone");
        controller.enable().expect("enabled again");
        queue = controller.add_queue().expect("a new queue");
        queue.flush().expect("a flush");
    }
}

#[test]
fn a_shutdown_flushes_and_is_answered() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    queue.write(0, BLOCK, pattern(512)).expect("a write");
    drive.ram.done.lock().unwrap().clear();
    // CC with a normal shutdown notification (SHN 01b).
    controller.set_property(0x14, 1 | 1 << 14 | 6 << 16 | 4 << 20).expect("a shutdown");
    let mut status = 0;
    for _ in 0..1000 {
        status = controller.property(0x1c, false).expect("the status");
        if status >> 2 & 3 == 2 {
            break;
        }
    }
    assert_eq!(status >> 2 & 3, 2, "shutdown processing is complete");
    assert!(drive.ram.done.lock().unwrap().contains(&Done::Flush));
    drop((queue, controller));
    assert!(drive.door.close(Duration::from_secs(10)), "no command is left");
}

#[test]
fn a_host_that_leaves_shuts_down_after_its_io_queues_are_closed() {
    let drive = Drive::new();
    let mut controller = drive.connect(&Options::default());
    let mut queue = controller.add_queue().expect("a queue");
    queue.write(0, BLOCK, pattern(512)).expect("a write");
    drive.ram.done.lock().unwrap().clear();
    drop(queue);
    controller.set_property(0x14, 1 | 1 << 14 | 6 << 16 | 4 << 20).expect("a shutdown");
    eventually("the flush", || drive.ram.done.lock().unwrap().contains(&Done::Flush));
    drop(controller);
    let none = || drive.target.update(|subsystem| subsystem.controllers().count()) == 0;
    eventually("the association ends", none);
}

#[test]
fn a_host_that_comes_back_finds_its_data() {
    let drive = Drive::new();
    for turn in 0..5u8 {
        let mut controller = drive.connect(&Options::default());
        let mut queue = controller.add_queue().expect("a queue");
        if turn > 0 {
            assert_eq!(queue.read(0, 1, BLOCK).expect("a read"), vec![turn - 1; 512]);
        }
        queue.write(0, BLOCK, vec![turn; 512]).expect("a write");
    }
    let none = || drive.target.update(|subsystem| subsystem.controllers().count()) == 0;
    eventually("all associations end", none);
}

#[test]
fn a_silent_host_loses_its_association() {
    let drive = Drive::new();
    let options = Options { keep_alive: Duration::from_secs(1), ..Options::default() };
    let mut controller = drive.connect(&options);
    let queue = controller.add_queue().expect("a queue");
    let none = || drive.target.update(|subsystem| subsystem.controllers().count()) == 0;
    assert!(!none());
    eventually("the association ends", none);
    drop(queue);
    assert!(controller.keep_alive().is_err(), "the connection of the admin queue is closed");
}
