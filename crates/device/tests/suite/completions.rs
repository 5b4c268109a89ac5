//! A host that waits for completions gets the same results as a host that steps from event to
//! event.

use flashatlas_device::{Cmd, Device, Done, Registry, Reply, Ssd};
use flashatlas_types::{Dur, Lba, Ps, Rng, Seed, Tag};

/// Steps from event to event until commands complete, but not beyond `until`.
fn by_events(drive: &mut Ssd, until: Ps, done: &mut Vec<Done>) -> Ps {
    while let Some(at) = drive.next_event().filter(|&at| at <= until) {
        drive.advance(at, done);
        if !done.is_empty() {
            return at;
        }
    }
    drive.advance(until, done);
    until
}

#[test]
fn a_drive_stops_at_the_instant_of_the_first_completion() {
    let config = Registry::DRIVES.load("tiny", None, &[]).unwrap();
    let build = || config.build(Seed(1)).unwrap();
    let (mut one, mut other, mut rng) = (build(), build(), Rng::stream(Seed(1), "completions"));
    let (mut now, mut reply, mut sectors) = (Ps::ZERO, Reply::default(), one.sectors());
    let (mut in_flight, mut together, mut limited) = (0, 0, 0);
    sectors -= 16;
    for number in 0..20_000 {
        while in_flight > rng.below(8) as usize {
            // the limits range from too short for any event to longer than all events
            let until = now.after(Dur(1 << rng.below(40)));
            let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
            let at = by_events(&mut one, until, &mut of_one);
            assert_eq!(other.advance_to_completion(until, &mut of_other), at);
            assert_eq!((&of_one, one.next_event()), (&of_other, other.next_event()));
            assert!(of_one.iter().all(|done| done.at == at), "each completes at that instant");
            (together, limited) =
                (together.max(of_one.len()), limited + usize::from(of_one.is_empty()));
            (now, in_flight) = (at, in_flight - of_one.len());
        }
        let (lba, count) = (Lba(rng.below(sectors)), 1 + rng.below(16) as u32);
        let cmd = match rng.below(8) {
            0..4 => Cmd::Read { lba, sectors: count },
            4..7 => Cmd::Write { lba, sectors: count, fua: false, content: number, data: None },
            _ => Cmd::Flush,
        };
        for drive in [&mut one, &mut other] {
            drive.submit(now, Tag(number), cmd, &mut reply).unwrap();
        }
        in_flight += 1;
    }
    assert!(together > 1 && limited > 100, "{together} at one instant, {limited} times none");
    // without a limit, the drive runs to the last event, even if no command is left to complete
    let rest = |drive: &mut Ssd| {
        let mut done = Vec::new();
        while drive.next_event().is_some() {
            drive.advance_to_completion(Ps::MAX, &mut done);
        }
        done
    };
    assert_eq!(rest(&mut one), rest(&mut other));
    assert!(!one.is_busy() && !other.is_busy());
}
