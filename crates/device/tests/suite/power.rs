//! States of low power: the times for which commands wait, by hand.

use flashatlas_device::{Cmd, Device, DriveConfig, POWER_STATES, Registry, Reply, Ssd};
use flashatlas_types::{ConfigError, Dur, Lba, Ps, Seed, Tag};

const STATES: [&str; 6] = [
    "power.ps3_after=1ms",
    "power.ps3_entry=2ms",
    "power.ps3_exit=3ms",
    "power.ps4_after=10ms",
    "power.ps4_entry=20ms",
    "power.ps4_exit=40ms",
];

fn loaded(settings: &[&str]) -> Result<DriveConfig, ConfigError> {
    let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings)
}

/// Returns a drive on which a read of blank units takes 7 us.
fn drive(states: &[&str]) -> Ssd {
    let plain = ["host.command_time=7us", "host.link_rate=0", "memory.dram_latency=0"];
    loaded(&[&plain, states].concat()).unwrap().build(Seed(1)).unwrap()
}

/// Sends a read at each of these times, in microseconds after the end of the read before. Returns
/// the microseconds that each read takes.
fn reads(drive: &mut Ssd, rests: &[u64]) -> Vec<u64> {
    let mut end = Ps::ZERO;
    let each = rests.iter().map(|&rest| {
        let at = end.after(Dur::from_us(rest));
        drive.advance(at, &mut Vec::new());
        let read = Cmd::Read { lba: Lba(0), sectors: 4 };
        drive.submit(at, Tag(0), read, &mut Reply::default()).unwrap();
        end = drive.advance_to_completion(Ps::MAX, &mut Vec::new());
        end.since(at).0 / 1_000_000
    });
    each.collect()
}

#[test]
fn a_command_waits_until_the_drive_has_entered_and_left_its_state() {
    // too short for PS3; at its begin, amid the entry, in it; amid the entry to PS4, in it
    let rests = [500, 1_000, 2_000, 5_000, 9_999, 10_000, 25_000, 50_000];
    let waits = [0, 2_000 + 3_000, 1_000 + 3_000, 3_000, 3_000, 60_000, 45_000, 40_000];
    let mut woken = drive(&STATES);
    assert_eq!(reads(&mut woken, &rests), waits.map(|wait| wait + 7));
    assert_eq!(reads(&mut drive(&[]), &rests), [7; 8]);
    // rests of 1, 2, 5 and 9.999 ms, and of 10 ms three times, less the first millisecond of each
    let ps3 = Dur::from_us(1_000 + 4_000 + 8_999 + 3 * 9_000);
    let ps4 = Dur::from_us(15_000 + 40_000);
    assert_eq!(woken.power_states().unwrap().counts, [(7, ps3), (3, ps4)]);
    assert_eq!(POWER_STATES, ["ps3", "ps4"]);
}

/// The second read comes 1 ms after the first, while the drive leaves PS3 for 2 ms more.
#[test]
fn a_command_waits_while_the_drive_wakes_up_for_another() {
    let mut drive = drive(&STATES);
    let begin = Ps::ZERO.after(Dur::from_us(5_000));
    for (tag, at) in [(0, begin), (1, begin.after(Dur::from_us(1_000)))] {
        let read = Cmd::Read { lba: Lba(0), sectors: 4 };
        drive.advance(at, &mut Vec::new());
        drive.submit(at, Tag(tag), read, &mut Reply::default()).unwrap();
    }
    let mut done = Vec::new();
    drive.advance(Ps::MAX, &mut done);
    assert_eq!(
        done.iter().map(|d| d.at.since(begin)).collect::<Vec<_>>(),
        [Dur::from_us(3_007); 2]
    );
}

#[test]
fn states_that_contradict_each_other_are_refused_by_name() {
    for (settings, why) in [
        (&["power.ps3_exit=3ms"][..], "never enters PS3"),
        (&["power.ps4_mw=3"], "never enters PS4"),
        (&["power.ps3_after=1ms", "power.ps3_entry=2ms", "power.ps4_after=2ms"], "before it has"),
    ] {
        let error = loaded(settings).unwrap_err().to_string();
        assert!(error.contains(why), "{settings:?}: {error}");
    }
}
