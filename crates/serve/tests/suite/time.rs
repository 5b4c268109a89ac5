//! Tests of the times at which replies are sent.

use crate::Still;
use flashatlas_serve::{Clock, ServeSpec, Server};
use flashatlas_types::Ps;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn plan(time: serde_json::Value) -> ServeSpec {
    let set = ["timing.t_read=50us", "timing.t_read_upper=50us", "cache.mode=write-through"];
    serde_json::from_value(json!({ "drive": "tiny", "set": set, "time": time })).unwrap()
}

/// Returns the latency of one read in picoseconds of the clock, and in nanoseconds of simulated
/// time.
fn read_takes(slower: f64) -> (u64, f64) {
    let clock = Arc::new(Still::default());
    let server =
        Server::begin(&plan(json!({ "real": slower })), Shared(Arc::clone(&clock))).unwrap();
    server.write(&[7; 2048], 0, false).unwrap();
    let begin = clock.now();
    let mut out = [0; 2048];
    server.read(&mut out, 0).unwrap();
    assert_eq!(out, [7; 2048]);
    let took = clock.now().since(begin).0;
    let record = server.end().record.unwrap()["record"].clone();
    assert_eq!(record["served"]["late_ns"]["count"], 2);
    (took, record["latency_ns"]["read"]["mean"].as_f64().unwrap())
}

struct Shared(Arc<Still>);

impl Clock for Shared {
    fn now(&self) -> Ps {
        self.0.now()
    }

    fn sleep_until(&self, at: Ps) {
        std::thread::sleep(Duration::from_micros(20)); // meanwhile other threads can use the drive
        self.0.sleep_until(at);
    }
}

#[test]
fn a_reply_comes_when_the_drive_would_answer_or_so_many_times_later() {
    for slower in [1.0, 20.0] {
        let (took, simulated_ns) = read_takes(slower);
        assert!(simulated_ns > 50_000.0, "a page is sensed in 50 us: {simulated_ns} ns");
        let ratio = took as f64 / (simulated_ns * 1000.0 * slower);
        assert!(
            (0.999..1.001).contains(&ratio),
            "{took} ps, {simulated_ns} ns, {slower} times slower"
        );
    }
}

/// Nearly all room is gone, so each page of 2 KiB takes a millisecond. A client that waits for each
/// reply gets the second one a millisecond after the first, and so on.
#[test]
fn a_client_gets_the_delays_of_throttled_writes_in_real_time() {
    let took = |more: &[&str]| {
        let mut spec = plan(json!({ "real": 1.0 }));
        spec.set.extend(more.iter().map(|&setting| setting.to_owned()));
        let clock = Arc::new(Still::default());
        let server = Server::begin(&spec, Shared(Arc::clone(&clock))).unwrap();
        for page in 0..10 {
            server.write(&[7; 2048], 2048 * page, false).unwrap();
        }
        (clock.now().0 / 1_000_000, server.end().record.unwrap()["record"]["controller"].clone())
    };
    let (plain, throttled) =
        (took(&[]), took(&["ftl.throttle_from=1000000", "ftl.throttle_rate=2048000"]));
    assert!(plain.0 < 4_000 && plain.1.get("throttled_writes").is_none(), "{plain:?}");
    assert!((9_000..9_500).contains(&throttled.0) && throttled.1["throttled_writes"] == 9);
}

/// A clock that always sleeps longer than requested.
struct Sleepy(Still);

impl Clock for Sleepy {
    fn now(&self) -> Ps {
        self.0.now()
    }

    fn sleep_until(&self, at: Ps) {
        if at > self.now() {
            self.0.sleep_until(Ps(at.0 + 70_000_000));
        }
    }
}

#[test]
fn the_record_says_how_late_a_reply_was() {
    let clock = Arc::new(Sleepy(Still::default()));
    let server = Server::begin(&plan(json!({ "real": 1.0 })), Arc::clone(&clock)).unwrap();
    server.write(&[7; 2048], 0, false).unwrap();
    let took = clock.now().0 as f64 / 1000.0;
    let record = server.end().record.unwrap()["record"].clone();
    let late = record["served"]["late_ns"]["max"].as_f64().unwrap();
    let simulated = record["latency_ns"]["write"]["mean"].as_f64().unwrap();
    assert!(
        late > 3000.0 && (late / (took - simulated) - 1.0).abs() < 0.001,
        "{late} ns: {record}"
    );
}

fn notes(record: &serde_json::Value, code: &str) -> Vec<serde_json::Value> {
    let all = record["approximations"].as_array().unwrap().iter();
    all.filter(|note| note["code"] == code).cloned().collect()
}

/// A page is sensed in 50 us, and each sleep is 70 us too long.
///
/// So a client measures more than twice the drive's latency, and a note reports this.
#[test]
fn late_replies_are_a_note_with_both_times() {
    let clock = Arc::new(Sleepy(Still::default()));
    let server = Server::begin(&plan(json!({ "real": 1.0 })), Arc::clone(&clock)).unwrap();
    server.write(&[7; 2048], 0, false).unwrap();
    server.read(&mut [0; 2048], 0).unwrap();
    let seen = server.look().unwrap();
    let record = server.end().record.unwrap()["record"].clone();
    let found = notes(&record, "replies-late");
    assert_eq!(found.len(), 1, "{record}");
    let values = &found[0]["values"];
    let drive_us = (record["latency_ns"]["read"]["p99"].as_f64().unwrap() / 1e3).round();
    assert_eq!((&values["op"], values["drive"].as_f64()), (&json!("read"), Some(drive_us)));
    let late_us = (record["served"]["late_ns"]["p99"].as_f64().unwrap() / 1e3).round();
    assert!(late_us >= 70.0 && values["p99"].as_f64() == Some(late_us), "{values}");
    assert_eq!(seen["notes"][0]["text"], found[0]["text"], "the live view has the note, too");
    assert!(seen["notes"][0]["advice"].as_str().unwrap().contains("--time 10"));
    assert_eq!(seen["late_ns"], record["served"]["late_ns"]);

    let on_time = Server::begin(&plan(json!({ "real": 1.0 })), Still::default()).unwrap();
    on_time.write(&[7; 2048], 0, false).unwrap();
    assert_eq!(on_time.look().unwrap()["notes"], json!([]));
    let record = on_time.end().record.unwrap()["record"].clone();
    assert_eq!(notes(&record, "replies-late").len(), 0);
}

/// A client waits for each reply, so commands do not arrive faster than the drive completes them.
///
/// So no backlog is reported, even if the last command takes nearly the whole run.
#[test]
fn one_flush_is_no_host_that_outruns_the_drive() {
    for time in [json!("none"), json!({ "real": 1.0 })] {
        let server = Server::begin(&plan(time), Still::default()).unwrap();
        // the final FLUSH waits until the write is programmed, and this wait is nearly the whole
        // run
        server.write(&[7; 2048], 0, false).unwrap();
        let record = server.end().record.unwrap()["record"].clone();
        let reasons = record["steadiness"]["reasons"].as_array().unwrap();
        assert!(reasons.iter().all(|reason| reason["code"] != "backlog"), "{reasons:?}");
    }
}

#[test]
fn at_once_no_time_passes_for_the_client_and_depths_are_those_of_the_clients() {
    let server = Arc::new(Server::begin(&plan(json!("none")), Still::default()).unwrap());
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                for number in 0..500u64 {
                    let at = (thread * 500 + number) % (server.bytes() / 2048) * 2048;
                    server.write(&[thread as u8; 2048], at, false).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let record = server.end().record.unwrap()["record"].clone();
    assert_eq!(record["conservation"]["submitted"], 2001, "2,000 writes and the FLUSH at the end");
    assert_eq!(record["oracle"]["violations"], 0);
    assert!(record["trace"]["format"] == "served" && record["waf"].as_f64().unwrap() > 0.99);
}

/// Every client gets the reply to its own command.
///
/// The drive reuses a tag as soon as its command is complete. At that time, the client that waits
/// for the reply may still be asleep.
#[test]
fn many_clients_in_real_time_all_have_their_replies() {
    let clock = Arc::new(Still::default());
    let server = Server::begin(&plan(json!({ "real": 1.0 })), Shared(clock)).unwrap();
    let server = Arc::new(server);
    let threads: Vec<_> = (0..6u64)
        .map(|thread| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                for number in 0..300u64 {
                    let at = (thread * 40 + number % 40) * 2048;
                    server.write(&[thread as u8 + 1; 2048], at, number % 7 == 0).unwrap();
                    let mut out = [0; 2048];
                    server.read(&mut out, at).unwrap();
                    assert_eq!(out, [thread as u8 + 1; 2048]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let record = server.end().record.unwrap()["record"].clone();
    assert_eq!(record["served"]["late_ns"]["count"], 6 * 600);
    assert_eq!(record["oracle"]["violations"], 0);
}
