//! A server that is killed, or whose drive loses its power, and one that comes after it on the same
//! image: what was flushed is there, every sector is one that was written, and nothing else.

use crate::{Still, drives, plan};
use flashatlas_serve::{Clock, CutMode, Plan, Refused, ServeError, Server};
use flashatlas_testing::proofs::one_in;
use flashatlas_types::{Ps, Rng, Seed};

const SECTOR: usize = 512;

/// What sectors may hold: numbers of writes, 0 for zeros; the last is what they hold now.
struct Model(Vec<Vec<u64>>);

impl Model {
    fn flushed(&mut self) {
        for versions in &mut self.0 {
            versions.drain(..versions.len() - 1);
        }
    }
}

/// A sector as write `number` leaves it.
fn sector(number: u64, at: usize) -> Vec<u8> {
    match number {
        0 => vec![0; SECTOR],
        _ => (0..SECTOR / 16)
            .flat_map(|_| [number.to_le_bytes(), (at as u64).to_le_bytes()].concat())
            .collect(),
    }
}

/// How a session ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Killed,
    PowerCut,
    Orderly,
}

/// Use the drive of `plan` for some sessions. Returns what is wrong, and how many writes were
/// acknowledged as durable.
fn sessions(plan: &Plan, rng: &mut Rng, count: u64) -> Result<u64, String> {
    let mut model: Option<Model> = None;
    let (mut number, mut durable) = (0, 0);
    for session in 0..count {
        let end = [End::Killed, End::PowerCut, End::Orderly][rng.below(3) as usize];
        let mut plan = plan.clone();
        plan.cut_after = (end == End::PowerCut).then(|| rng.below(200));
        let modes = [CutMode::Prefix, CutMode::Torn, CutMode::Subset];
        let has_layers = plan.set.iter().any(|s| s.starts_with("layers=") && s != "layers=");
        plan.cut_mode = modes[rng.below(3 - u64::from(has_layers)) as usize];
        plan.seed = session; // another subset each time
        let server = match Server::begin(&plan, Still::default()) {
            Err(ServeError::PowerLost) => continue,
            begun => begun.map_err(|e| format!("session {session}: {e}"))?,
        };
        let sectors = (server.bytes() as usize) / SECTOR;
        let mut all = vec![0; server.bytes() as usize];
        match server.read(&mut all, 0) {
            // a read that loads a map page may write another one
            Err(Refused::PowerLost) => continue,
            read => read.map_err(|e| format!("session {session}: {e}"))?,
        };
        let () = ();
        let held = model.get_or_insert_with(|| Model(vec![vec![0]; sectors]));
        for (at, versions) in held.0.iter_mut().enumerate() {
            let found = &all[at * SECTOR..(at + 1) * SECTOR];
            let version = versions.iter().rev().find(|&&n| sector(n, at) == found);
            let version = *version.ok_or_else(|| {
                let number = u64::from_le_bytes(found[..8].try_into().expect("eight"));
                format!(
                    "session {session}: sector {at} holds write {number}, not one of {versions:?}"
                )
            })?;
            *versions = vec![version];
        }
        for _ in 0..rng.below(120) {
            number += 1;
            let at = rng.below(sectors as u64) as usize;
            let most = if rng.below(8) == 0 { 40 } else { 6 };
            let length = (1 + rng.below(most) as usize).min(sectors - at);
            let offset = (at * SECTOR) as u64;
            let bytes: Vec<u8> = (at..at + length).flat_map(|at| sector(number, at)).collect();
            // while a command is under way, what it writes may be there already
            let (op, fua) = (rng.below(10), rng.below(6) == 0);
            let writes = match op {
                0..=5 => Some(number),
                6 => Some(0),
                _ => None,
            };
            if let Some(version) = writes {
                held.0[at..at + length].iter_mut().for_each(|v| v.push(version));
            }
            let done = match op {
                0..=5 => server.write(&bytes, offset, fua),
                6 => server.zero(offset, bytes.len() as u64, rng.below(2) == 0, fua),
                7 => server.flush(),
                _ => {
                    let mut out = vec![0; bytes.len()];
                    server.read(&mut out, offset).and_then(|()| {
                        let right = (at..at + length)
                            .flat_map(|at| sector(*held.0[at].last().expect("one"), at));
                        match right.eq(out) {
                            true => Ok(()),
                            false => Err(Refused::Failed(format!("sectors {at}+{length}: wrong"))),
                        }
                    })
                }
            };
            match done {
                Ok(()) if op == 7 => {
                    durable += 1;
                    held.flushed();
                }
                Ok(()) if fua && op < 6 => {
                    durable += 1;
                    held.0[at..at + length].iter_mut().for_each(|v| drop(v.drain(..v.len() - 1)));
                }
                // zeros with FUA are flushed with everything else
                Ok(()) if fua && op == 6 => held.flushed(),
                Ok(()) => {}
                Err(Refused::PowerLost) => break,
                Err(why) => return Err(format!("session {session}, {end:?}: {why}")),
            }
        }
        if end == End::Orderly {
            let ended = server.end();
            if let Some(why) = ended.complaint {
                return Err(format!("session {session} ends: {why}"));
            }
            let record = &ended.record.expect("there is one")["record"];
            assert_eq!(record["oracle"]["violations"], 0, "{record}");
            held.flushed();
        }
    }
    Ok(durable)
}

#[test]
fn nothing_that_was_flushed_is_lost_on_any_drive() {
    let folder = tempfile::tempdir().unwrap();
    let mut durable = 0;
    let mut refused = Vec::new();
    for (name, config) in drives() {
        let plan = plan(&config, &folder.path().join("drive.img"));
        if config.drives() > 1 {
            let error = Server::begin(&plan, Still::default()).map(drop).unwrap_err();
            assert!(error.to_string().contains("what is served has one"), "{name}: {error}");
            assert!(!folder.path().join("drive.img").exists(), "nothing was made");
            continue;
        }
        if config.shape().unit_sectors * 512 < config.layout().unwrap().unit_bytes {
            let error = Server::begin(&plan, Still::default()).map(drop).unwrap_err();
            assert!(error.to_string().contains("must be whole mapping units"), "{error}");
            assert!(!folder.path().join("drive.img").exists(), "nothing was made");
            refused.push(name);
            continue;
        }
        for seed in 0..10 / one_in().min(10) as u64 {
            let mut rng = Rng::stream(Seed(seed), &name);
            durable +=
                sessions(&plan, &mut rng, 12).unwrap_or_else(|e| panic!("{name} seed {seed}: {e}"));
            std::fs::remove_file(folder.path().join("drive.img")).unwrap();
        }
    }
    assert!(refused.iter().all(|name| name.contains("hard")) && refused.len() <= 4, "{refused:?}");
    assert!(durable > 1000, "only {durable} writes and FLUSHes were acknowledged");
}

#[test]
fn a_drive_that_ignores_flushes_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let (name, config) = drives().into_iter().find(|(name, _)| name == "-/page:demand").unwrap();
    let found = (0..20).find_map(|seed| {
        let image = folder.path().join(format!("{seed}.img"));
        let plan = Plan { ignore_flush: true, ..plan(&config, &image) };
        sessions(&plan, &mut Rng::stream(Seed(seed), &name), 12).err()
    });
    assert!(found.expect("it loses what it said was durable").contains("not one of"));
}

/// A clock that is at some second.
struct At(u64);

impl Clock for At {
    fn now(&self) -> Ps {
        Ps(self.0 * 1_000_000_000_000)
    }

    fn sleep_until(&self, _: Ps) {}
}

#[test]
fn the_power_fails_when_its_time_has_come_or_somebody_says_so() {
    let (_, config) = drives().into_iter().next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan(&config, &folder.path().join("drive.img"));
    let unit = |server: &Server<At>| vec![1; server.unit_bytes() as usize];
    plan.cut_at = Some(3.0);
    let server = Server::begin(&plan, At(2)).unwrap_or_else(|e| panic!("{e}"));
    server.write(&unit(&server), 0, true).unwrap();
    server.cut();
    assert_eq!(server.write(&unit(&server), 0, true), Err(Refused::PowerLost));
    drop(server); // it has the image
    let server = Server::begin(&plan, At(3)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(server.write(&unit(&server), 0, true), Err(Refused::PowerLost));
    assert_eq!(server.gone(), Some(Refused::PowerLost));
}
