//! Tests with random calls of a host in random order. No call panics, every completed command was
//! submitted before, every rule holds, and reads return the written data.

use crate::hosted::{Hosted, SECTOR, command, create, reply, write};
use flashatlas_capi::abi::*;
use flashatlas_capi::calls::*;
use flashatlas_types::{Rng, Seed};
use std::collections::BTreeMap;

const DRIVES: &[&[&str]] = &[
    &[],
    &["cache.mode=write-through", "ftl.idle_free=8", "ftl.idle_valid=0.9"],
    &["ftl.scheme=mast", "ftl.log_blocks=8"],
    &["map.store=dftl", "layers=hpb-host", "hpb.region=16KiB", "hpb.subregion=8KiB"],
    &[
        "layers=hard",
        "hard.superpage=4KiB",
        "hard.page=2KiB",
        "hard.segment=6",
        "hard.ring=8",
        "hard.low_water=3",
        "hard.reserve=0.4",
    ],
];

/// A host, and the results that it may expect.
struct Host {
    drive: Hosted,
    rng: Rng,
    now: u64,
    sectors: u64,
    in_flight: BTreeMap<u64, u64>,
    /// Content of each sector until the power fails, or `None` if the content is not known.
    holds: BTreeMap<u64, Option<u8>>,
    power_failed: bool,
    refused: u32,
}

impl Host {
    fn new(settings: &[&str], seed: u64) -> Host {
        let settings = [&["nand.data=ram", "host.queue_depth=4"][..], settings].concat();
        let drive = create("tiny", &settings, seed).unwrap_or_else(|e| panic!("{e}"));
        let sectors = drive.geometry().sectors;
        Host {
            drive,
            rng: Rng::stream(Seed(seed), "host"),
            now: 0,
            sectors,
            in_flight: BTreeMap::new(),
            holds: BTreeMap::new(),
            power_failed: false,
            refused: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Returns `true` if a call succeeded. A call may be refused because its time is in the drive's
    /// past.
    fn came_to(&mut self, outcome: Result<(), (FaCode, String)>) -> bool {
        match outcome {
            Ok(()) => true,
            Err((code, text)) => {
                let expected = [
                    FaCode::FA_ERR_ARGUMENT,
                    FaCode::FA_ERR_RANGE,
                    FaCode::FA_ERR_QUEUE_FULL,
                    FaCode::FA_ERR_TIME,
                    FaCode::FA_ERR_POWER_OFF,
                    FaCode::FA_ERR_POWER_LOST,
                    FaCode::FA_ERR_BUSY,
                ];
                assert!(expected.contains(&code), "{code:?}: {text}");
                self.refused += 1;
                if code == FaCode::FA_ERR_POWER_LOST {
                    self.lost();
                }
                false
            }
        }
    }

    /// Notes that the power has failed, so the content of the sectors is not known any more.
    fn lost(&mut self) {
        self.power_failed = true;
        self.holds.clear();
    }

    fn submit(&mut self) {
        let tag = self.below(5);
        let lba = self.below(self.sectors + 1);
        let count = 1 + self.below(10);
        let byte = self.below(256) as u8;
        let data = vec![byte; count as usize * SECTOR];
        let mut room = vec![0; data.len()];
        let range = lba..lba + count;
        match self.below(8) {
            0..3 => {
                let fua = u32::from(self.below(8) == 0);
                let one = FaCommand { fua, ..write(lba, &data) };
                let outcome = self.drive.submit(self.now, tag, &one, None);
                if self.came_to(outcome) {
                    self.in_flight.insert(tag, self.now);
                    self.holds.extend(range.map(|at| (at, Some(byte))));
                }
            }
            3..6 => {
                let one = command(FaOp::FA_OP_READ, lba, count as u32);
                let mut place = reply(&mut room, &mut []);
                let outcome = self.drive.submit(self.now, tag, &one, Some(&mut place));
                if !self.came_to(outcome) {
                    return;
                }
                self.in_flight.insert(tag, self.now);
                for (at, bytes) in range.zip(room.chunks(SECTOR)) {
                    let unknown = if self.power_failed { None } else { Some(0) };
                    if let Some(byte) = *self.holds.get(&at).unwrap_or(&unknown) {
                        assert!(bytes.iter().all(|&b| b == byte), "sector {at}: {}", bytes[0]);
                    }
                }
            }
            6 => {
                let one = command(FaOp::FA_OP_TRIM, lba, count as u32);
                let outcome = self.drive.submit(self.now, tag, &one, None);
                if self.came_to(outcome) {
                    self.in_flight.insert(tag, self.now);
                    // the mapping unit of the topmost layer decides which sectors are trimmed
                    self.holds.extend(range.map(|at| (at, None)));
                }
            }
            _ => {
                let one = command(FaOp::FA_OP_FLUSH, 0, 0);
                let outcome = self.drive.submit(self.now, tag, &one, None);
                if self.came_to(outcome) {
                    self.in_flight.insert(tag, self.now);
                }
            }
        }
    }

    fn advance(&mut self, until: u64) {
        let done = match self.drive.advance(until) {
            Ok(done) => done,
            // the power may fail here, because a layer may write while time passes
            Err(error) => {
                assert_eq!(error.0, FaCode::FA_ERR_POWER_LOST, "{}", error.1);
                self.came_to(Err(error));
                return;
            }
        };
        for (tag, at) in done {
            let since = self.in_flight.remove(&tag).expect("the command was in flight");
            assert!(at >= since && at <= until, "tag {tag} of {since}: {at}, until {until}");
            self.now = self.now.max(at);
        }
    }

    fn step(&mut self) {
        let on = self.drive.0;
        match self.below(40) {
            0..22 => self.submit(),
            22..30 => {
                let at = self.drive.next_event();
                if at != FA_NEVER {
                    self.advance(at);
                    self.now = self.now.max(at);
                }
            }
            30 => self.advance(FA_NEVER),
            31..34 => self.now += self.below(3_000_000_000),
            34 => {
                let until = self.now + self.below(50_000_000_000);
                // SAFETY: it is a drive
                let outcome = self.drive.outcome(unsafe { fa_idle(on, self.now, until) });
                if self.came_to(outcome) {
                    self.now = until;
                }
            }
            35 if self.below(6) == 0 => {
                // SAFETY: it is a drive
                let outcome = self.drive.outcome(unsafe { fa_fill(on) });
                if self.came_to(outcome) {
                    self.holds = (0..self.sectors).map(|at| (at, Some(0))).collect();
                }
            }
            36 if self.below(3) == 0 => {
                let operations = self.below(30);
                // SAFETY: it is a drive
                let outcome = self.drive.outcome(unsafe { fa_power_cut_after(on, operations) });
                self.came_to(outcome);
            }
            37 if self.below(3) == 0 => {
                let outcome = self.drive.power_cut(self.now);
                if self.came_to(outcome) {
                    self.lost();
                }
            }
            38 => {
                self.advance(FA_NEVER);
                match self.drive.power_on(self.now) {
                    Ok(ready) => {
                        self.in_flight.clear();
                        self.now = ready;
                        self.drive.check();
                    }
                    Err(error) => {
                        self.came_to(Err(error));
                    }
                }
            }
            _ => self.now = self.now.saturating_sub(self.below(1_000_000)),
        }
    }
}

#[test]
fn any_calls_in_any_order_are_answered() {
    let (mut refused, mut cuts) = (0, 0);
    for settings in DRIVES {
        for seed in 0..40 {
            let mut host = Host::new(settings, seed);
            for step in 0..1200 {
                let outcome =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.step()));
                assert!(outcome.is_ok(), "{settings:?}, seed {seed}, step {step}");
            }
            refused += host.refused;
            cuts += u32::from(host.power_failed);
        }
    }
    assert!(refused > 1000 && cuts > 30, "{refused} refused, {cuts} with a power failure");
}
