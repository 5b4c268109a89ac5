//! Tests of the results that a host gets: geometry, bytes, times and counters. They are the same in
//! every run.

use crate::hosted::{Hosted, SECTOR, command, create, create_of, reply, write};
use flashatlas_capi::abi::*;
use flashatlas_capi::calls::*;
use flashatlas_device::{Cmd, Reply};
use flashatlas_types::{Lba, Ps, Seed, Tag};

fn tiny(settings: &[&str], seed: u64) -> Hosted {
    create("tiny", settings, seed).unwrap_or_else(|e| panic!("{e}"))
}

/// 2 channels x 2 ways x 32 blocks x 8 pages of 2 KiB, with 60 % over-provisioning, are 640 units.
#[test]
fn the_geometry_is_that_of_the_drive_file() {
    let found = tiny(&["host.queue_depth=5"], 1).geometry();
    let expected = FaGeometry {
        sectors: 640 * 4,
        unit_bytes: 2048,
        queue_depth: 5,
        keeps_bytes: 0,
        reserved: 0,
    };
    assert_eq!(found, expected);
    assert_eq!(tiny(&["nand.data=ram"], 1).geometry().keeps_bytes, 1);
    let toml = "[drive]\nbase = \"tiny\"\nblocks = 16\n";
    let half = create_of(None, Some(toml), &["drive.over_provisioning=1.0"], 1).unwrap();
    assert_eq!(half.geometry().sectors, 2 * 2 * 16 * 8 / 2 * 4);
}

#[test]
fn bytes_come_back_as_they_were_written_across_units_and_after_a_trim() {
    let drive = tiny(&["nand.data=ram"], 1);
    // the 6 sectors from sector 3 on are a part of unit 0, the whole unit 1 and a part of unit 2
    let data: Vec<u8> = (0..6 * SECTOR).map(|i| (i % 253) as u8).collect();
    let mut now = drive.write(0, 3, &data);
    let mut expected = vec![0; 12 * SECTOR];
    expected[3 * SECTOR..9 * SECTOR].copy_from_slice(&data);
    assert_eq!(drive.read(&mut now, 0, 12), expected);
    now = drive.carry_out(now, &command(FaOp::FA_OP_TRIM, 2, 8), None);
    // only unit 1 lies completely inside the range
    expected[4 * SECTOR..8 * SECTOR].fill(0);
    assert_eq!(drive.read(&mut now, 0, 12), expected);
    drive.check();
}

/// The stamp of a unit changes with each write, and is 0 if the unit was never written.
#[test]
fn stamps_stand_for_bytes_where_none_are_kept() {
    let drive = tiny(&[], 1);
    let stamps = |now: &mut u64| {
        let mut stamps = [9; 2];
        let mut place = reply(&mut [], &mut stamps);
        *now = drive.carry_out(*now, &command(FaOp::FA_OP_READ, 3, 2), Some(&mut place));
        assert_eq!(place.stamp_count, 2);
        stamps
    };
    let mut now = 0;
    let mut whole = command(FaOp::FA_OP_WRITE, 4, 4);
    assert_eq!(stamps(&mut now), [0, 0]);
    now = drive.carry_out(now, &whole, None);
    let [none, first] = stamps(&mut now);
    now = drive.carry_out(now, &whole, None);
    let [_, second] = stamps(&mut now);
    assert!(none == 0 && first != 0 && second != 0 && first != second);
    // if the host gives two writes the same content number, their stamps are equal
    whole.content = 5;
    now = drive.carry_out(now, &whole, None);
    let named = stamps(&mut now);
    now = drive.carry_out(now, &whole, None);
    assert_eq!(stamps(&mut now), named);
    assert_ne!(named[1], second);
}

/// The read takes 25 us in the cells, and 51.2 us for 4 sectors of 512 bytes on a channel of 40
/// MB/s. Commands, the map in DRAM and the host link of this drive take no time.
#[test]
fn a_read_of_flash_takes_what_the_drive_file_says() {
    let drive = tiny(&["cache.mode=write-through", "timing.t_command=0"], 1);
    let now = drive.carry_out(0, &command(FaOp::FA_OP_WRITE, 0, 4), None);
    let took = drive.carry_out(now, &command(FaOp::FA_OP_READ, 0, 4), None) - now;
    assert_eq!(took, 76_200_000);
}

/// The same commands are sent through the C interface and directly to the device.
#[test]
fn the_drive_is_the_device_that_the_rest_of_the_project_runs() {
    let hpb = ["hpb.region=16KiB", "hpb.subregion=8KiB"];
    let settings = ["layers=hpb-host", "map.store=dftl", hpb[0], hpb[1]];
    let mut load = Load::new(&settings, 9);
    (0..2000).for_each(|_| load.step());
    let config = flashatlas_host::STANDARD.load("tiny", None, &settings.map(str::to_owned));
    let mut device = config.unwrap().build_stack(Seed(9)).unwrap();
    let (mut now, mut state, mut next, mut log) = (Ps::ZERO, 9u64, 0, Vec::new());
    let mut done = Vec::new();
    for _ in 0..2000 {
        while next < log.len() as u64 + 4 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let (lba, sectors) = (Lba((state >> 33) % 640 * 4), 4);
            let cmd = match state >> 63 {
                0 => Cmd::Read { lba, sectors },
                _ => Cmd::Write { lba, sectors, fua: false, content: next, data: None },
            };
            device.submit(now, Tag(next), cmd, &mut Reply::default()).unwrap();
            next += 1;
        }
        now = device.next_event().unwrap();
        device.advance(now, &mut done);
        log.extend(done.drain(..).map(|d| (d.tag.0, d.at.0)));
    }
    assert!(log.len() > 500);
    assert_eq!(load.log, log);
    let trajectory = device.ssd().trajectory();
    let found = &load.drive.record()["since_power_on"]["trajectory"];
    assert_eq!(found["operations"], trajectory.operations());
    assert_eq!(found["hash"], format!("{:016x}", trajectory.hash()));
}

/// Commands overlap, so two reads of two dies on two channels take less time together than in turn.
#[test]
fn commands_in_flight_share_the_drive() {
    let drive = tiny(&["cache.mode=write-through"], 1);
    let mut now = 0;
    for lba in [0, 4] {
        now = drive.carry_out(now, &command(FaOp::FA_OP_WRITE, lba, 4), None);
    }
    let alone = drive.carry_out(now, &command(FaOp::FA_OP_READ, 0, 4), None) - now;
    now += alone;
    for tag in [1, 2] {
        drive.submit(now, tag, &command(FaOp::FA_OP_READ, 4 * (tag - 1), 4), None).unwrap();
    }
    let done = drive.advance(FA_NEVER).unwrap();
    assert_eq!(done.len(), 2);
    assert!(done[1].1 - now < 2 * alone, "{done:?}, one alone {alone} ps");
}

/// A command that completes before a later submission waits until `fa_advance` is called.
///
/// `fa_advance` fetches such commands in order, each with its own time, and at most `room` of them.
#[test]
fn completions_wait_until_they_are_fetched() {
    let drive = tiny(&[], 1);
    for tag in 0..5 {
        drive.submit(tag * 1_000_000_000, tag, &command(FaOp::FA_OP_READ, 0, 4), None).unwrap();
    }
    assert!(drive.next_event() < 1_000_000_000);
    // four commands have completed by now, but only the first completed before this time
    assert_eq!(drive.advance(1_000_000_000 - 1).unwrap().len(), 1);
    let (mut one, mut count) = ([FaDone { tag: 0, at_ps: 0 }; 2], 9);
    // SAFETY: `done` has room for two
    let code = unsafe { fa_advance(drive.0, FA_NEVER, one.as_mut_ptr(), 2, &mut count) };
    drive.outcome(code).unwrap();
    assert_eq!((count, one.map(|d| d.tag)), (2, [1, 2]));
    let rest = drive.advance(FA_NEVER).unwrap();
    assert_eq!(rest.iter().map(|d| d.0).collect::<Vec<_>>(), [3, 4]);
    assert!((4_000_000_000..5_000_000_000).contains(&rest[1].1));
    assert_eq!(drive.next_event(), FA_NEVER);
}

/// A host with four commands in flight. Completed commands are added to `log`.
struct Load {
    drive: Hosted,
    now: u64,
    state: u64,
    next: u64,
    log: Vec<(u64, u64)>,
}

impl Load {
    fn new(settings: &[&str], seed: u64) -> Load {
        let drive = tiny(settings, seed);
        Load { drive, now: 0, state: seed, next: 0, log: Vec::new() }
    }

    fn step(&mut self) {
        while self.next < self.log.len() as u64 + 4 {
            self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let op = if self.state >> 63 == 0 { FaOp::FA_OP_READ } else { FaOp::FA_OP_WRITE };
            let command = command(op, (self.state >> 33) % 640 * 4, 4);
            self.drive.submit(self.now, self.next, &command, None).unwrap();
            self.next += 1;
        }
        self.now = self.drive.next_event();
        self.log.extend(self.drive.advance(self.now).unwrap());
    }
}

#[test]
fn two_drives_in_turn_do_what_each_does_alone() {
    let settings: [(&[&str], u64); 2] = [(&["ftl.victim=random"], 3), (&["ftl.streams=2"], 4)];
    let alone = settings.map(|(settings, seed)| {
        let mut load = Load::new(settings, seed);
        (0..9000).for_each(|_| load.step());
        (load.drive.record(), load.log)
    });
    let mut both = settings.map(|(settings, seed)| Load::new(settings, seed));
    for _ in 0..9000 {
        both.iter_mut().for_each(Load::step);
    }
    for (load, (record, log)) in both.iter().zip(&alone) {
        assert!(log.len() > 1000, "{} commands", log.len());
        assert!(record["nand"]["erases"].as_object().is_some_and(|e| !e.is_empty()), "{record}");
        assert_eq!(&load.log, log);
        assert_eq!(&load.drive.record(), record);
        load.drive.check();
    }
    assert_ne!(alone[0].1, alone[1].1, "the two loads are the same: they prove nothing");
}

/// With write-through, a write of a unit is one program. A write of half a unit is also one
/// program.
#[test]
fn the_record_counts_commands_and_flash_and_begins_anew() {
    let drive = tiny(&["cache.mode=write-through"], 1);
    let mut now = 0;
    for unit in 0..10 {
        now = drive.carry_out(now, &command(FaOp::FA_OP_WRITE, unit * 4, 4), None);
    }
    for unit in 10..20 {
        now = drive.carry_out(now, &command(FaOp::FA_OP_WRITE, unit * 4, 2), None);
    }
    let record = drive.record();
    assert_eq!(record["schema"], "flashatlas.drive/1");
    assert_eq!(record["config"]["cache.mode"], "write-through");
    assert_eq!(record["now_ps"], now);
    let writes = &record["commands"]["write"];
    assert_eq!(writes["submitted"], 20);
    assert_eq!(writes["bytes"], 10 * 2048 + 10 * 1024);
    assert_eq!(writes["completed"], 20);
    assert!(writes["latency_ns"]["p99"].as_f64() >= writes["latency_ns"]["p50"].as_f64());
    assert!(record["commands"]["read"].get("latency_ns").is_none());
    assert_eq!(record["nand"]["programs"]["host"], 20);
    // 20 pages of 2 KiB are programmed for 30 KiB of writes
    assert_eq!(record["waf"].as_f64(), Some(40.0 / 30.0));
    // SAFETY: it is a drive
    drive.outcome(unsafe { fa_reset_counters(drive.0) }).unwrap();
    let record = drive.record();
    assert_eq!(record["commands"]["write"]["submitted"], 0);
    assert!(record.get("waf").is_none());
}

#[test]
fn a_full_drive_holds_every_unit_and_collects_when_it_is_written_on() {
    let drive = tiny(&["nand.data=ram"], 1);
    let mut now = drive.write(0, 0, &[7; 2048]);
    // SAFETY: it is a drive
    drive.outcome(unsafe { fa_fill(drive.0) }).unwrap();
    // the fill overwrites older data, including data in the write cache
    assert_eq!(drive.read(&mut now, 0, 4), [0; 2048]);
    let mut stamps = [0; 640];
    let mut place = reply(&mut [], &mut stamps);
    let all = command(FaOp::FA_OP_READ, 0, 2560);
    now = drive.carry_out(now, &all, Some(&mut place));
    assert!(stamps.iter().all(|&stamp| stamp != 0));
    let data = [5; 2048];
    for round in 0..1500 {
        now = drive.carry_out(now, &write(round * 37 % 640 * 4, &data), None);
    }
    // SAFETY: it is a drive
    drive.outcome(unsafe { fa_idle(drive.0, now, now + 1_000_000_000_000) }).unwrap();
    assert!(drive.record()["since_power_on"]["blocks_collected"]["foreground"].as_u64() > Some(0));
    drive.check();
}
