//! Hosts over loopback: reads return the written data, under every setting of the connection.

use crate::memory_target::{BLOCK, BYTES, Memory, NQN, Served, eventually, host, quick};
use crate::wire::pattern;
use flashatlas_nvme_tcp::initiator::{Controller, Data, HostError, Options};
use flashatlas_nvme_tcp::pdu::{Alignment, Digests};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Sizes around each limit: capsule, PDU, R2T and transfer.
const SIZES: [usize; 9] =
    [512, 4096, 4608, 8192, 64 << 10, 128 << 10, (128 << 10) + 512, (512 << 10) + 512, 1 << 20];

fn settings() -> Vec<Options> {
    let mut all = Vec::new();
    for (header, data) in [(false, false), (true, false), (false, true), (true, true)] {
        for (alignment, max_r2t, capsule_data) in [(0, 0, 8192), (31, 7, 0), (6, 1, 4096)] {
            all.push(Options {
                digests: Digests { header, data },
                alignment: Alignment::from_field(alignment).expect("at most 31"),
                max_r2t,
                capsule_data,
                without_flow_control: alignment == 31,
                ..Options::default()
            });
        }
    }
    all
}

#[test]
fn data_comes_back_under_every_setting() {
    let served = Served::standard();
    for (turn, options) in settings().into_iter().enumerate() {
        let mut controller = served.connect(&options).expect("a controller");
        let mut queue = controller.add_queue().expect("a queue");
        for (step, size) in SIZES.into_iter().enumerate() {
            let first = ((turn * 31 + step * 7) % 64) as u64;
            let data: Vec<u8> =
                pattern(size).iter().map(|byte| byte ^ (turn * 16 + step) as u8).collect();
            queue.write(first, BLOCK, data.clone()).expect("a write");
            let start = first as usize * BLOCK as usize;
            let stored = served.memory.blocks.lock().unwrap()[start..start + size].to_vec();
            assert!(stored == data, "{options:?}: {size} bytes were written wrongly");
            let back = queue.read(first, size as u32 / BLOCK, BLOCK).expect("a read");
            assert!(back == data, "{options:?}: {size} bytes came back wrongly");
        }
        queue.flush().expect("a flush");
    }
}

#[test]
fn a_read_without_flow_control_succeeds_by_flag() {
    let served = Served::standard();
    for without_flow_control in [false, true] {
        let options = Options { without_flow_control, ..Options::default() };
        let mut controller = served.connect(&options).expect("a controller");
        let mut queue = controller.add_queue().expect("a queue");
        let id = queue.submit_read(0, 1, BLOCK).expect("submitted");
        assert_eq!(queue.wait(id).expect("a read").by_flag, without_flow_control);
    }
}

#[test]
fn identify_and_log_pages_come_over_the_admin_queue() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    assert_eq!(controller.identify(0x1c, 0).expect("identify"), vec![0x1c; 4096]);
    let error = controller.log_page(0x02, 512).expect_err("there are no logs");
    assert!(matches!(error, HostError::Status(0x8002)), "{error}");
    controller.keep_alive().expect("keep alive");
}

#[test]
fn a_full_queue_completes_in_any_order() {
    let served = Served::standard();
    let options = Options { entries: 128, ..Options::default() };
    let mut controller = served.connect(&options).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    let part = 64 << 10;
    let ids: Vec<u16> = (0..127u64)
        .map(|i| {
            let data = vec![i as u8; part];
            queue.submit_write(i % 100 * 128, BLOCK, data).expect("submitted")
        })
        .collect();
    let heads: Vec<u16> = ids
        .iter()
        .rev()
        .map(|&id| {
            let done = queue.wait(id).expect("a write");
            assert_eq!(done.status(), 0);
            done.head()
        })
        .collect();
    // Connect took one entry: the head has come round to where it began.
    assert!(heads.contains(&0) && heads.contains(&127), "{heads:?}");
    assert_eq!(queue.read(99 * 128, 128, BLOCK).expect("a read"), vec![99; part]);
}

#[test]
fn hosts_and_queues_work_in_parallel() {
    let served = Served::standard();
    let (hosts, queues, turns) = (3, 3, 40);
    let share = BYTES / (hosts * queues);
    std::thread::scope(|scope| {
        for h in 0..hosts {
            let options = Options {
                digests: Digests { header: h == 1, data: h >= 1 },
                capsule_data: 4096 * h,
                ..Options::default()
            };
            let mut controller = served.connect(&options).expect("a controller");
            let mut all: Vec<_> =
                (0..queues).map(|_| controller.add_queue().expect("a queue")).collect();
            scope.spawn(move || {
                std::thread::scope(|scope| {
                    for (q, queue) in all.iter_mut().enumerate() {
                        scope.spawn(move || {
                            let start = (h * queues + q) * share / BLOCK as usize;
                            for turn in 0..turns {
                                let size = BLOCK as usize * (1 + (turn * 37 + q * 11 + h) % 300);
                                let data = vec![(h * 64 + q * 16 + turn % 16) as u8; size];
                                let at = (start + turn) as u64;
                                let write = queue.submit_write(at, BLOCK, data.clone());
                                queue.wait(write.expect("submitted")).expect("a write");
                                let back = queue.read(at, size as u32 / BLOCK, BLOCK);
                                assert!(back.expect("a read") == data, "{h}, {q}: {size} bytes");
                            }
                        });
                    }
                });
                drop(controller);
            });
        }
    });
    eventually("all associations end", || served.memory.associations() == 0);
}

#[test]
fn commands_that_fail_do_so_with_their_status() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queue = controller.add_queue().expect("a queue");
    let blocks = BYTES as u64 / u64::from(BLOCK);
    let beyond = queue.read(blocks, 1, BLOCK).expect_err("there is no such block");
    assert!(matches!(beyond, HostError::Status(0x8100)), "{beyond}");
    let large = queue.read(0, 2049, BLOCK).expect_err("more than 1 MiB");
    assert!(matches!(large, HostError::Status(0x8004)), "Invalid Field: {large}");
    queue.flush().expect("the connection goes on");
}

#[test]
fn an_event_completes_its_request_later() {
    let served = Served::standard();
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut request = [0; 64];
    request[0] = 0x0c;
    let id = controller.admin.submit(request, Data::None).expect("submitted");
    controller.keep_alive().expect("other commands go on");
    let mut happen = [0; 64];
    happen[0] = 0xc0;
    controller.admin.execute(happen, Data::None).expect("the event");
    assert_eq!(controller.admin.wait(id).expect("an event").result(), 0x77);
}

#[test]
fn the_window_bounds_the_commands_that_are_begun() {
    let memory = Memory::with(3, true);
    let served = Served::new(memory, quick());
    let mut controller = served.connect(&Options::default()).expect("a controller");
    let mut queues = [controller.add_queue().expect("a"), controller.add_queue().expect("b")];
    served.memory.close_gate(true);
    let mut ids = Vec::new();
    for turn in 0..10 {
        for queue in &mut queues {
            ids.push(queue.submit_read(turn, 1, BLOCK).expect("submitted"));
        }
    }
    eventually("the window is full", || served.memory.working() == 3);
    served.memory.close_gate(false);
    for (turn, id) in ids.into_iter().enumerate() {
        queues[turn % 2].wait(id).expect("a read");
    }
    assert_eq!(served.memory.most_working.load(Ordering::SeqCst), 3);
}

#[test]
fn a_host_that_does_not_read_blocks_itself_alone() {
    let served = Served::standard();
    let options = Options { entries: 128, ..Options::default() };
    let mut controller = served.connect(&options).expect("a controller");
    let mut deaf = controller.add_queue().expect("a queue");
    // 100 MiB, of which the controller stores 4 and the sockets some more.
    for _ in 0..100 {
        deaf.submit_read(0, 2048, BLOCK).expect("submitted");
    }
    let mut other = served.connect(&Options::default()).expect("another controller");
    let mut queue = other.add_queue().expect("a queue");
    for turn in 0..100 {
        queue.write(turn, BLOCK, vec![turn as u8; 8192]).expect("a write");
    }
    controller.keep_alive().expect("the admin queue of the same host goes on, too");
    // The commands of the first host complete when it reads.
    for id in 0..100 {
        let done = deaf.wait(id + 1).expect("a read");
        assert_eq!(done.data.len(), 1 << 20);
    }
}

#[test]
fn a_controller_is_enabled_before_it_has_queues() {
    let served = Served::standard();
    let mut controller =
        Controller::connect(served.address, NQN, &host(), &Options::default()).expect("connected");
    let error = controller.add_queue().err().expect("the controller is not enabled");
    assert!(matches!(error, HostError::Status(_)), "{error}");
    controller.enable().expect("enabled");
    controller.add_queue().expect("a queue").flush().expect("a flush");
}

#[test]
fn commands_before_connect_are_refused() {
    let served = Served::standard();
    let address = served.address;
    let mut queue = flashatlas_nvme_tcp::initiator::QueuePair::open(address, &Options::default())
        .expect("a connection");
    let error = queue.flush().expect_err("there is no queue");
    assert!(matches!(error, HostError::Status(0x18)), "Command Sequence Error: {error}");
    let patience = Duration::from_secs(5);
    assert!(served.door.close(patience), "a connection without a queue closes, too");
}
