//! Tests of a server that is killed or whose drive loses power, and of the next server on its
//! image.
//!
//! Flushed data is there, and every sector holds the data of one of its writes.

use crate::sectors::Sectors;
use crate::{Still, drives, drives_on, plan, powered_on};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_serve::{Clock, CutMode, Memory, Refused, ServeError, ServeSpec, Server};
use flashatlas_types::{Ps, Rng, Seed};
use std::path::Path;

/// End of a session.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Killed,
    PowerCut,
    Orderly,
}

/// Uses the drive of `plan` for `count` sessions on one disk.
///
/// Returns the number of commands that made something durable, or an error message.
fn sessions(plan: &ServeSpec, rng: &mut Rng, count: u64) -> Result<u64, String> {
    let disk = Memory::default();
    let mut sectors: Option<Sectors> = None;
    for session in 0..count {
        let end = [End::Killed, End::PowerCut, End::Orderly][rng.below(3) as usize];
        let mut plan = plan.clone();
        plan.cut_after = (end == End::PowerCut).then(|| rng.below(200));
        let modes = [CutMode::Prefix, CutMode::Torn, CutMode::Subset];
        plan.cut_mode = modes[rng.below(3) as usize];
        plan.seed = session; // another subset each time
        let wrong = |why| format!("session {session}, {end:?}: {why}");
        let server = match powered_on(&plan, disk.clone()) {
            Err(ServeError::PowerLost) => continue,
            begun => begun.map_err(|e| wrong(e.to_string()))?,
        };
        let sectors = sectors.get_or_insert_with(|| Sectors::blank(&server));
        match sectors.found(&server) {
            // the power may fail in a read, because a read that loads a map page may write another
            // map page
            Err(Refused::PowerLost) => continue,
            found => sectors.are(found.map_err(|e| wrong(e.to_string()))?),
        }
        for _ in 0..rng.below(120) {
            match sectors.command(&server, rng, |_| Ok(())) {
                Err(Refused::PowerLost) => break,
                done => done.map_err(|e| wrong(e.to_string()))?,
            }
        }
        if end == End::Orderly {
            let ended = server.end();
            if let Some(why) = ended.complaint {
                return Err(wrong(why));
            }
            let record = &ended.record.expect("there is one")["record"];
            assert_eq!(record["oracle"]["violations"], 0, "{record}");
            sectors.flushed();
        }
    }
    Ok(sectors.map_or(0, |sectors| sectors.durable))
}

#[test]
fn nothing_that_was_flushed_is_lost_on_any_drive() {
    let folder = tempfile::tempdir().unwrap();
    let mut durable = 0;
    let mut refused = Vec::new();
    let image = folder.path().join("drive.img");
    // the drive is on one die and on four, because a failure interrupts each of the four at another
    // point
    let on_each = drives().into_iter().zip(drives_on("lanes"));
    for (number, ((name, config), (_, on_four))) in on_each.enumerate() {
        let plan_of = |config| plan(config, &image);
        if config.drives() > 1 {
            let error = Server::begin(&plan_of(&config), Still::default()).map(drop).unwrap_err();
            assert!(
                error.to_string().contains("the state of a served drive supports only one drive"),
                "{name}: {error}"
            );
            assert!(!image.exists(), "nothing was made");
            continue;
        }
        if config.shape().unit_sectors * 512 < config.layout().unwrap().unit_bytes {
            let error = Server::begin(&plan_of(&config), Still::default()).map(drop).unwrap_err();
            assert!(error.to_string().contains("must be whole mapping units"), "{error}");
            assert!(!image.exists(), "nothing was made");
            refused.push(name);
            continue;
        }
        for seed in 0..10 / one_in().min(10) as u64 {
            let config = if (seed + number as u64) % 2 == 0 { &on_four } else { &config };
            let mut rng = Rng::stream(Seed(seed), &name);
            durable += sessions(&plan_of(config), &mut rng, 12)
                .unwrap_or_else(|e| panic!("{name} seed {seed}: {e}"));
        }
    }
    assert!(refused.iter().all(|name| name.contains("hard")) && refused.len() <= 4, "{refused:?}");
    assert!(durable > 1000, "only {durable} writes and FLUSHes were acknowledged");
}

#[test]
fn a_drive_that_ignores_flushes_is_found_out() {
    let (name, config) = drives().into_iter().find(|(name, _)| name == "-/page:demand").unwrap();
    let found = (0..20).find_map(|seed| {
        let plan = ServeSpec { ignore_flush: true, ..plan(&config, Path::new("in memory")) };
        sessions(&plan, &mut Rng::stream(Seed(seed), &name), 12).err()
    });
    assert!(
        found.expect("the drive loses data that it acknowledged as durable").contains("not one of")
    );
}

/// A clock that always shows the same second.
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
    drop(server); // releases the image
    let server = Server::begin(&plan, At(3)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(server.write(&unit(&server), 0, true), Err(Refused::PowerLost));
    assert_eq!(server.gone(), Some(Refused::PowerLost));
}
