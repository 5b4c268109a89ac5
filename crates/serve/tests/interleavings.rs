//! Client threads on one server, which run in orders that shuttle chooses. The tests check that
//! some order of the commands explains the replies. They also check that a power failure loses no
//! data that was durable for any client.
//!
//! `cargo test --release -p flashatlas-serve --features interleavings --test interleavings`

use flashatlas_fixtures::proofs::one_in;
use flashatlas_serve::{Clock, Disk, Memory, Open, STANDARD_PARTS, ServeSpec, Server, environment};
use flashatlas_types::Ps;
use serde_json::json;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{JoinHandle, spawn, yield_now};
use shuttle::{Config, Runner};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A clock that advances only when a thread sleeps. Meanwhile other threads can run.
#[derive(Default)]
struct Sleeping(AtomicU64);

impl Clock for Sleeping {
    fn now(&self) -> Ps {
        Ps(self.0.load(SeqCst))
    }

    fn sleep_until(&self, at: Ps) {
        yield_now();
        self.0.fetch_max(at.0, SeqCst);
    }
}

type Served = Arc<Server<Sleeping>>;

const UNIT: usize = 2048;
const TIMES: [&str; 2] = ["none", "real"];

fn powered_on(time: &str, disk: Memory) -> Served {
    let time = if time == "real" { json!({ "real": 1.0 }) } else { json!(time) };
    let set = ["drive.blocks=16", "drive.logical_pages=200", "cache.bytes=16KiB"];
    let plan = json!({ "drive": "tiny", "set": set, "time": time, "image": "in memory" });
    let plan: ServeSpec = serde_json::from_value(plan).expect("a plan");
    let open: Open<'_> = Box::new(move || Ok(Box::new(disk) as Box<dyn Disk>));
    let env = environment(&STANDARD_PARTS, &plan);
    let server = Server::begin_on(&plan, &env, Some(open), Sleeping::default());
    Arc::new(server.unwrap_or_else(|e| panic!("{e}")))
}

/// Returns the byte that fills a unit, or `None` if the unit cannot be read.
fn held(server: &Server<Sleeping>, unit: u64) -> Option<u8> {
    let mut out = [0; UNIT];
    server.read(&mut out, unit * UNIT as u64).ok()?;
    assert!(out.iter().all(|&byte| byte == out[0]), "a mixture of two writes");
    Some(out[0])
}

fn write(server: &Server<Sleeping>, unit: u64, version: u8, fua: bool) -> bool {
    server.write(&[version; UNIT], unit * UNIT as u64, fua).is_ok()
}

/// Runs `run` with many orders of its threads: random orders, and orders that seldom switch
/// threads.
fn in_many_orders(run: impl Fn() + Copy + Send + Sync + 'static) {
    let count = 5000 / one_in().min(10) as usize;
    let config = || {
        let mut config = Config::new();
        config.stack_size = 1 << 20; // a mount needs more than the default
        config
    };
    Runner::new(RandomScheduler::new_from_seed(1, count), config()).run(run);
    Runner::new(PctScheduler::new_from_seed(1, 3, count), config()).run(run);
}

/// A command of a client, with the byte that it wrote or read, and when it was sent and answered.
#[derive(Clone, Copy, Debug)]
struct Command {
    sent: u64,
    answered: u64,
    value: u8,
    is_write: bool,
}

/// Returns `true` if some order of the commands explains all reads of a unit that now holds `now`.
///
/// In this order, a command that was answered before another command was sent comes before the
/// other.
fn linearizable(left: &[Command], now: u8) -> bool {
    let first = left.iter().map(|command| command.answered).min();
    left.is_empty()
        || left.iter().enumerate().filter(|(_, c)| Some(c.sent) <= first).any(|(at, command)| {
            let mut rest = left.to_vec();
            rest.remove(at);
            if command.is_write {
                linearizable(&rest, command.value)
            } else {
                command.value == now && linearizable(&rest, now)
            }
        })
}

#[test]
fn the_checker_sees_what_no_order_explains() {
    let command = |sent, answered, value, is_write| Command { sent, answered, value, is_write };
    let beside = [command(0, 3, 1, true), command(1, 2, 0, false)];
    assert!(linearizable(&beside, 0));
    let after = [command(0, 1, 1, true), command(2, 3, 0, false)];
    assert!(!linearizable(&after, 0), "an old version, after the new one was acknowledged");
}

#[test]
fn replies_are_those_of_some_order() {
    in_many_orders(|| {
        for time in TIMES {
            let server = powered_on(time, Memory::default());
            let clock = Arc::new(AtomicU64::new(0));
            let history = Arc::new(Mutex::new(Vec::new()));
            let client = |number: u8| {
                let (server, clock, history) =
                    (Arc::clone(&server), Arc::clone(&clock), Arc::clone(&history));
                spawn(move || {
                    for turn in 0..2 {
                        let (version, is_write) = (1 + 2 * number + turn, (number + turn) % 2 == 0);
                        let sent = clock.fetch_add(1, SeqCst);
                        let value = if is_write {
                            write(&server, 0, version, turn > 0).then_some(version)
                        } else {
                            held(&server, 0)
                        };
                        let answered = clock.fetch_add(1, SeqCst);
                        let value = value.expect("nothing failed");
                        history.lock().unwrap().push(Command { sent, answered, value, is_write });
                    }
                })
            };
            joined((0..3).map(client).collect());
            let history = history.lock().unwrap();
            assert!(history.len() == 6 && linearizable(&history, 0), "{time}: {history:?}");
        }
    });
}

fn joined(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
}

/// Checks durability. Some clients write, each to its own units; others send FLUSHes. `last` runs
/// at some time.
///
/// A write must be there afterwards if it had FUA. It must also be there if it was acknowledged
/// before a FLUSH was sent and that FLUSH was acknowledged.
fn durable(last: impl Fn(&Server<Sleeping>) + Copy + Send + Sync + 'static) {
    in_many_orders(move || {
        for time in TIMES {
            let disk = Memory::default();
            let server = powered_on(time, disk.clone());
            let [acknowledged, promised] = [(); 2].map(|()| Arc::new(Mutex::new([0u8; 2])));
            let writer = |unit: usize| {
                let (server, acknowledged, promised) =
                    (Arc::clone(&server), Arc::clone(&acknowledged), Arc::clone(&promised));
                spawn(move || {
                    for version in 1..=3 {
                        let fua = version == 2 && unit == 1;
                        if !write(&server, unit as u64, version, fua) {
                            return;
                        }
                        acknowledged.lock().unwrap()[unit] = version;
                        if fua {
                            let mut promised = promised.lock().unwrap();
                            promised[unit] = promised[unit].max(version);
                        }
                    }
                })
            };
            let flusher = || {
                let (server, acknowledged, promised) =
                    (Arc::clone(&server), Arc::clone(&acknowledged), Arc::clone(&promised));
                spawn(move || {
                    for _ in 0..2 {
                        let before = *acknowledged.lock().unwrap();
                        if server.flush().is_err() {
                            return;
                        }
                        let mut promised = promised.lock().unwrap();
                        for (promised, before) in promised.iter_mut().zip(before) {
                            *promised = before.max(*promised);
                        }
                    }
                })
            };
            let ender = {
                let server = Arc::clone(&server);
                spawn(move || last(&server))
            };
            joined(vec![writer(0), writer(1), flusher(), flusher(), ender]);
            drop(server);
            let (again, promised) = (powered_on("none", disk), *promised.lock().unwrap());
            for (unit, least) in promised.into_iter().enumerate() {
                let found = held(&again, unit as u64).expect("nothing fails");
                assert!(found >= least, "{time}: unit {unit} holds {found}, promised {promised:?}");
            }
        }
    });
}

#[test]
fn what_any_client_flushed_is_there_after_a_power_failure() {
    durable(Server::cut);
}

#[test]
fn what_any_client_flushed_is_there_after_an_end_beside_them() {
    durable(|server| drop(server.end()));
}

#[test]
fn an_end_makes_durable_what_was_acknowledged_before_it() {
    in_many_orders(|| {
        let disk = Memory::default();
        let server = powered_on("none", disk.clone());
        let acknowledged = Arc::new(AtomicU64::new(0));
        let writer = {
            let (server, acknowledged) = (Arc::clone(&server), Arc::clone(&acknowledged));
            spawn(move || {
                let done = (1..=3).take_while(|&version| write(&server, 0, version, false));
                done.for_each(|version| acknowledged.store(version.into(), SeqCst));
            })
        };
        yield_now();
        let before = acknowledged.load(SeqCst);
        assert_eq!(server.end().complaint, None);
        joined(vec![writer]);
        drop(server);
        let found = held(&powered_on("none", disk), 0).expect("nothing fails");
        assert!(u64::from(found) >= before, "{found}, acknowledged {before}");
    });
}
