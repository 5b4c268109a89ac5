//! A door that looks for events again and again while one is likely to come.

use crate::controller_core::Drive;
use crate::memory_target::{BLOCK, eventually, quick};
use flashatlas_nvme_tcp::door;
use flashatlas_nvme_tcp::initiator::{Controller, Options, QueuePair};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Returns a drive whose reads complete later, and a host with a queue.
fn later(poll: Duration) -> (Drive, Controller, QueuePair) {
    let drive = Drive::behind(door::Options { poll, ..quick() });
    let mut controller = drive.connect(&Options::default());
    let queue = controller.add_queue().expect("a queue");
    drive.ram.is_free.store(true, Ordering::SeqCst);
    drive.ram.is_later.store(true, Ordering::SeqCst);
    (drive, controller, queue)
}

#[test]
fn the_thread_of_the_connections_completes_reads_while_it_polls() {
    let (drive, mut controller, mut queue) = later(Duration::from_secs(600));
    let first = queue.submit_read(8, 1, BLOCK).expect("submitted");
    let second = queue.submit_read(16, 1, BLOCK).expect("submitted");
    eventually("both are asked for again", || drive.ram.asked.lock().unwrap().len() > 100);
    controller.keep_alive().expect("other connections go on");
    assert!(drive.ram.waits.lock().unwrap().is_empty(), "nothing waits");
    drive.ram.is_complete.store(true, Ordering::SeqCst);
    for read in [first, second] {
        assert_eq!(queue.wait(read).expect("a read").status(), 0);
    }
    let asked = drive.ram.asked.lock().unwrap().clone();
    let waits = drive.ram.waits.lock().unwrap().clone();
    assert!(asked.iter().all(|&thread| thread == asked[0]), "one thread asks");
    assert_eq!(waits, [asked[0]; 2], "the same thread completes both");
}

#[test]
fn threads_of_the_pool_wait_for_reads_that_take_longer() {
    let (drive, _controller, mut queue) = later(Duration::from_millis(5));
    let read = queue.submit_read(8, 1, BLOCK).expect("submitted");
    assert_eq!(queue.wait(read).expect("a read").status(), 0);
    let asked = drive.ram.asked.lock().unwrap().clone();
    let waits = drive.ram.waits.lock().unwrap().clone();
    assert!(!asked.is_empty() && waits.len() == 1, "{} questions", asked.len());
    assert_ne!(waits[0], asked[0], "another thread waits");
}

#[test]
fn a_door_that_does_not_poll_asks_nothing() {
    let (drive, _controller, mut queue) = later(Duration::ZERO);
    let read = queue.submit_read(8, 1, BLOCK).expect("submitted");
    assert_eq!(queue.wait(read).expect("a read").status(), 0);
    assert!(drive.ram.asked.lock().unwrap().is_empty());
    assert_eq!(drive.ram.waits.lock().unwrap().len(), 1);
}

#[test]
fn a_door_that_polls_completes_what_it_began_before_it_closes() {
    let (drive, controller, mut queue) = later(Duration::from_millis(200));
    let read = queue.submit_read(8, 1, BLOCK).expect("submitted");
    eventually("it is asked for", || !drive.ram.asked.lock().unwrap().is_empty());
    let closing = std::thread::spawn(move || drive.close());
    assert_eq!(queue.wait(read).expect("a read").status(), 0);
    drop((queue, controller));
    assert!(closing.join().expect("no panic"), "the door closes in time");
}
