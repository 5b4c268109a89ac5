//! Ends of connections: by the host, by the door, by time, and in the middle of everything.

use crate::memory_target::{BLOCK, Memory, MemoryTarget, NQN, Served, eventually, host, quick};
use crate::wire::pattern;
use flashatlas_nvme_tcp::door::{self, Door, DoorError, Listener};
use flashatlas_nvme_tcp::initiator::{Controller, Host, HostError, Options, QueuePair, Socket};
use flashatlas_nvme_tcp::pdu::{Digests, FatalStatus, Fault, H2cData, Pdu};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Checks that the controller closes the connection, without an answer.
fn closes(socket: &mut Socket, what: &str) {
    match socket.receive() {
        Err(HostError::Closed) => {}
        other => panic!("{what}: {other:?}"),
    }
}

/// Checks that the controller terminates the connection with this fault, and closes it.
fn terminates(socket: &mut Socket, fault: Fault) {
    match socket.receive().map(|message| message.pdu) {
        Ok(Pdu::C2hTermReq(term)) => assert_eq!(term.fault(), Some(fault)),
        other => panic!("{fault}: {other:?}"),
    }
    closes(socket, "after C2HTermReq");
}

fn entry(opcode: u8, id: u16) -> [u8; 64] {
    crate::wire::entry(opcode, id)
}

#[test]
fn a_half_open_connection_is_closed() {
    let setup = Duration::from_millis(500);
    let served = Served::new(Memory::new(), door::Options { setup, ..quick() });
    let options = Options::default();
    let mut silent = Socket::raw(served.address, &options).expect("connected");
    let mut part = Socket::raw(served.address, &options).expect("connected");
    part.send_bytes(&[0, 0, 128]).expect("sent");
    let mut without_connect = Socket::open(served.address, &options).expect("an ICResp");
    closes(&mut silent, "no ICReq");
    closes(&mut part, "a part of an ICReq");
    closes(&mut without_connect, "no Connect");

    // The time ends with Connect.
    let mut controller = served.connect(&options).expect("a controller");
    std::thread::sleep(setup * 2);
    controller.keep_alive().expect("the connection is open");
}

#[test]
fn rubbish_is_refused_and_others_go_on() {
    let served = Served::standard();
    let options = Options::default();
    let mut controller = served.connect(&options).expect("a controller");
    let mut socket = Socket::raw(served.address, &options).expect("connected");
    socket.send_bytes(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    terminates(&mut socket, Fault::field(0));

    let mut socket = Socket::raw(served.address, &options).expect("connected");
    socket.send(&Pdu::CapsuleCmd(entry(0, 0)), &[]).expect("sent");
    terminates(&mut socket, Fault::SEQUENCE);
    controller.keep_alive().expect("other connections go on");
}

#[test]
fn a_flood_is_cut_off() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    served.memory.close_gate(true);
    for id in 0..33 {
        queue.socket().send(&Pdu::CapsuleCmd(entry(0, 100 + id)), &[]).expect("sent");
    }
    terminates(queue.socket(), Fault::SEQUENCE);
    served.memory.close_gate(false);
    eventually("the association ends", || served.memory.associations() == 0);
    assert!(controller.keep_alive().is_err(), "the admin queue is lost, too");
}

#[test]
fn a_damaged_header_ends_the_connection() {
    let served = Served::standard();
    let digests = Digests { header: true, data: true };
    let options = Options { digests, ..Options::default() };
    let mut controller = served.connect(&options).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    let mut bytes = Pdu::CapsuleCmd(entry(0, 9)).encode(&[], &queue.socket().framing());
    bytes[20] ^= 1;
    queue.socket().send_bytes(&bytes).expect("sent");
    let digest = u32::from_le_bytes(bytes[72..76].try_into().expect("4 bytes"));
    let status = FatalStatus::HeaderDigest;
    terminates(queue.socket(), Fault { status, information: digest });
}

#[test]
fn data_that_nobody_asked_for_ends_the_connection() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    let pdu = H2cData { command: 0, tag: 0, offset: 0, length: 4, last: true };
    queue.socket().send(&Pdu::H2cData(pdu), &[0; 4]).expect("sent");
    terminates(queue.socket(), Fault::field(10));
}

#[test]
fn a_host_that_is_killed_in_a_write_leaves_no_trace() {
    let served = Served::standard();
    let options = Options { capsule_data: 0, ..Options::default() };
    let mut controller = served.connect(&options).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    queue.write(0, BLOCK, pattern(64 << 10)).expect("a write");

    // The host sends 4 KiB of 64 KiB, and no more.
    queue.submit_write(0, BLOCK, vec![0xff; 64 << 10]).expect("submitted");
    let Pdu::R2t(r2t) = queue.socket().receive().expect("an R2T").pdu else { panic!("an R2T") };
    let (command, tag) = (r2t.command, r2t.tag);
    let pdu = H2cData { command, tag, offset: 0, length: 8192, last: false };
    let bytes = Pdu::H2cData(pdu).encode(&[0xff; 8192], &queue.socket().framing());
    queue.socket().send_bytes(&bytes[..4120]).expect("sent");
    drop((queue, controller));
    eventually("both queues are lost", || served.memory.lost.load(Ordering::SeqCst) == 2);

    let mut controller = served.connect(&options).expect("the host connects again");
    let mut queue = controller.add_queue().expect("a queue");
    assert!(queue.read(0, 128, BLOCK).expect("a read") == pattern(64 << 10));
}

#[test]
fn a_host_that_is_killed_while_its_commands_run_frees_its_places() {
    let memory = Memory::with(2, true);
    let served = Served::new(memory, quick());
    served.memory.close_gate(true);
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    for turn in 0..8 {
        queue.submit_write(turn, BLOCK, vec![1; 512]).expect("submitted");
    }
    eventually("the window is full", || served.memory.working() == 2);
    drop((queue, controller));
    eventually("the association ends", || served.memory.associations() == 0);
    served.memory.close_gate(false);
    eventually("the commands end", || served.memory.working() == 0);
    // Commands that have not begun never begin.
    let blocks = served.memory.blocks.lock().unwrap()[..8 * 512].to_vec();
    assert_eq!(blocks.iter().filter(|&&byte| byte == 1).count(), 2 * 512);
}

#[test]
fn the_end_of_the_admin_queue_closes_the_others() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    queue.flush().expect("a flush");
    drop(controller);
    closes(queue.socket(), "an I/O queue without its admin queue");
}

#[test]
fn the_end_of_an_io_queue_may_leave_the_others() {
    for strict in [true, false] {
        let served = Served::new(Memory::with(32, strict), quick());
        let mut controller = served.connect(&Options::default()).expect("a controller");
        let mut first = controller.add_queue().expect("a queue");
        let second = controller.add_queue().expect("a queue");
        first.flush().expect("a flush");
        drop(second);
        eventually("a queue is lost", || served.memory.lost.load(Ordering::SeqCst) > 0);
        if strict {
            closes(first.socket(), "a queue of the same association");
            assert!(controller.keep_alive().is_err());
        } else {
            first.flush().expect("the first queue goes on");
            controller.keep_alive().expect("the admin queue goes on");
        }
    }
}

#[test]
fn a_reset_deletes_the_io_queues_and_new_ones_come() {
    let served = Served::new(Memory::with(32, false), quick());
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    queue.write(3, BLOCK, vec![9; 512]).expect("a write");
    controller.disable().expect("a reset");
    closes(queue.socket(), "a queue of a controller that was reset");
    controller.enable().expect("enabled again");
    let mut queue = controller.add_queue().expect("a new queue");
    assert_eq!(queue.read(3, 1, BLOCK).expect("a read"), vec![9; 512]);
}

#[test]
fn disconnect_is_answered_and_closes_the_queue() {
    let served = Served::new(Memory::with(32, false), quick());
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    assert_eq!(queue.disconnect().expect("an answer").status(), 0);
    closes(queue.socket(), "a queue that was disconnected");
    controller.add_queue().expect("another").flush().expect("a flush");
}

#[test]
fn a_host_that_falls_silent_is_expired() {
    let served = Served::standard();
    let keep_alive = Duration::from_millis(1500);
    let options = Options { keep_alive, ..Options::default() };
    let mut controller = served.connect(&options).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    // Commands of any queue keep the association alive.
    for _ in 0..6 {
        std::thread::sleep(keep_alive / 4);
        queue.flush().expect("a flush");
    }
    assert!(!served.memory.expired.load(Ordering::SeqCst));
    closes(queue.socket(), "an I/O queue of a silent host");
    closes(controller.admin.socket(), "the admin queue of a silent host");
    assert!(served.memory.expired.load(Ordering::SeqCst));
    served.connect(&options).expect("the host may connect again");
}

#[test]
fn only_hosts_on_the_list_connect() {
    let allow = Some(vec![host().nqn]);
    let served = Served::new(Memory::new(), door::Options { allow, ..quick() });
    let options = Options::default();
    served.connect(&options).expect("a host on the list");
    for nqn in ["nqn.2014-08.org.example:hos", "nqn.2014-08.org.example:host2", ""] {
        let stranger = Host { nqn: nqn.into(), id: [1; 16] };
        let refused = Controller::connect(served.address, NQN, &stranger, &options);
        match refused.err() {
            // Connect Invalid Host, Do Not Retry
            Some(HostError::Status(status)) => assert_eq!(status, 1 << 15 | 1 << 9 | 0x84 << 1),
            other => panic!("{nqn}: {other:?}"),
        }
    }
}

#[test]
fn a_door_opens_on_loopback_unless_told_otherwise() {
    let target = Arc::new(MemoryTarget(Arc::new(Memory::new())));
    let address = SocketAddr::from(([0, 0, 0, 0], 0));
    let listeners = [Listener { address, target }];
    let refused = Door::open(&listeners, quick()).err().expect("no network");
    assert!(matches!(refused, DoorError::NotLoopback(_)), "{refused}");
    let open = Door::open(&listeners, door::Options { network: true, ..quick() });
    assert!(open.is_ok());
}

#[test]
fn connections_beyond_the_bound_are_closed_at_once() {
    let served = Served::new(Memory::new(), door::Options { connections: 2, ..quick() });
    let options = Options::default();
    let mut controller = served.connect(&options).expect("a controller");
    let queue = controller.add_queue().expect("a queue");
    let third = QueuePair::open(served.address, &options).err().expect("a third connection");
    assert!(matches!(third, HostError::Closed), "{third}");
    drop((queue, controller));
    eventually("a place is free again", || QueuePair::open(served.address, &options).is_ok());
}

#[test]
fn a_door_that_closes_completes_what_was_begun() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    let mut request = [0; 64];
    request[0] = 0x0c; // an event that never happens keeps nobody waiting
    controller.admin.submit(request, flashatlas_nvme_tcp::initiator::Data::None).expect("sent");
    served.memory.close_gate(true);
    let id = queue.submit_write(5, BLOCK, vec![3; 512]).expect("submitted");
    eventually("the write is begun", || served.memory.working() == 1);
    let Served { memory, door, address } = served;
    let closing = std::thread::spawn(move || door.close(Duration::from_secs(10)));
    std::thread::sleep(Duration::from_millis(50));
    assert!(Socket::open(address, &Options::default()).is_err(), "no host can connect any more");
    memory.close_gate(false);
    assert_eq!(queue.wait(id).expect("a write").status(), 0);
    closes(queue.socket(), "a door that closes");
    closes(controller.admin.socket(), "a door that closes");
    drop((queue, controller));
    assert!(closing.join().expect("no panic"), "every command was complete in time");
    assert_eq!(memory.blocks.lock().unwrap()[5 * 512], 3);
}
