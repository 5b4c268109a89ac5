//! A run whose requests come from outside: a drive that is served to real programs.
//!
//! The requests arrive one by one, with their bytes. Everything else is as in other runs: the
//! oracle compares the stamp of every unit that is read, the metrics see every command, and the run
//! ends with a record and its tables.

use crate::checkpoint::{Checkpoint, CheckpointError, Header, on_flash};
use crate::metrics::{Findings, Pace, Start};
use crate::oracle::Oracle;
use crate::player::Player;
use crate::player::rest::held_or_lost;
use crate::precondition::failed;
use crate::run::{Source, finish};
use crate::{AddedPart, Environment, Outcome, Precondition, Progress, RunError, RunSpec};
use flashatlas_device::params::QUEUE_DEPTH;
use flashatlas_device::{DeviceShape, DriveConfig, Stack};
use flashatlas_nand::Medium;
use flashatlas_nand::image::Image;
use flashatlas_types::{HostOp, Lpn, Note, PartFault, Ps, Request, Seed, Stamp, drawn_streams};
use flashatlas_workload::Account;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::io::Read;

/// Store of a drive's flash while the drive is off; `E` is its error.
pub trait Kept<E> {
    /// Writes the kept content to a blank medium, and returns `true` if there was content.
    ///
    /// `on_flash` contains the parameters that decide the places of pages on flash. If the result
    /// is `true`, the drive is mounted as after a power failure.
    ///
    /// # Errors
    /// Returns an error if the kept content is of another drive.
    fn lay_out(
        &mut self,
        config: &DriveConfig,
        medium: &mut Medium,
        on_flash: &Map<String, Value>,
    ) -> Result<bool, E>;

    /// Handles a failed mount; `medium` is in the state in which the mount has left it.
    ///
    /// # Errors
    /// Returns the error to report instead of the mount's own error.
    fn mount_failed(&mut self, medium: &mut Medium) -> Result<(), E>;
}

/// Origin of a checkpoint, for the record of a drive that begins with the checkpoint's content.
#[derive(Clone, Debug)]
pub struct Made(Header);

/// Reads the content of the flash from a checkpoint, and the origin of the checkpoint.
///
/// # Errors
/// Returns the errors of [`crate::checkpoint::load`].
pub fn checkpointed(
    config: &DriveConfig,
    added: &[AddedPart],
    input: &mut dyn Read,
) -> Result<(Image, Made), CheckpointError> {
    let checkpoint = Checkpoint::read(input, config)?;
    checkpoint.must_have(added)?;
    let made = Made(checkpoint.header.clone());
    Ok((checkpoint.written_down(config)?.0, made))
}

/// A drive whose requests come from outside.
pub struct Live {
    spec: RunSpec,
    config: DriveConfig,
    player: Player,
    /// Content number of the next write, above every content number on the drive.
    content: u64,
    awaited: Awaited,
    /// Header of the checkpoint that the drive began with, if one was given.
    origin: Option<Header>,
}

/// Commands whose completion somebody waits for. A tag is used again as soon as its command is
/// complete; a ticket is never used again.
#[derive(Default)]
struct Awaited {
    /// For each tag, the ticket of its command, or 0 if nobody waits for the command.
    tickets: Vec<u64>,
    last: u64,
    /// Completion times that nobody has asked for yet, by the ticket of the command.
    done: FxHashMap<u64, Ps>,
}

impl Awaited {
    fn submitted(&mut self, tag: u32, waits: bool) -> u64 {
        self.last += u64::from(waits);
        let ticket = if waits { self.last } else { 0 };
        let least = self.tickets.len().max(tag as usize + 1);
        self.tickets.resize(least, 0);
        self.tickets[tag as usize] = ticket;
        ticket
    }

    fn complete(&mut self, tag: u32, at: Ps) {
        let ticket = self.tickets[tag as usize];
        if ticket > 0 {
            self.done.insert(ticket, at);
        }
    }
}

impl Live {
    /// Powers a drive on, with the `kept` content of its flash.
    ///
    /// # Errors
    /// Returns an error if the configuration describes no drive, if `kept` returns an error, or if
    /// the medium cannot be mounted.
    pub fn begin<E: From<RunError>>(
        spec: &RunSpec,
        env: &Environment<'_>,
        kept: &mut impl Kept<E>,
    ) -> Result<Live, E> {
        drawn_streams(); // drop the streams of an earlier run on this thread
        let config = env
            .registry
            .load(&spec.drive, spec.drive_toml.as_deref(), &spec.set)
            .map_err(RunError::from)?;
        config.single_drive("the state of a served drive").map_err(RunError::from)?;
        let mut medium = config.build(Seed(spec.seed)).map_err(RunError::from)?.into_medium();
        let laid_out = kept.lay_out(&config, &mut medium, &on_flash(&config))?;
        let mut drive = config.build_stack(Seed(spec.seed)).map_err(RunError::from)?;
        let (units, unit_sectors) = (drive.shape().units(), drive.unit_sectors());
        let mut oracle = Oracle::new(units, unit_sectors);
        let mut content = 1;
        if laid_out {
            medium.keep_journal(); // the journal records the changes of the mount, too
            if let Err(error) = drive.remount([medium], &config, Seed(spec.seed)) {
                kept.mount_failed(drive.ssd_mut().faults())?;
                return Err(failed(0, error).into());
            }
            drive.top().check().map_err(RunError::Broken)?;
            let held: Result<Vec<Stamp>, RunError> =
                (0..units).map(|unit| held_or_lost(&drive, Lpn(unit))).collect();
            oracle = Oracle::expecting(held?, unit_sectors);
            // one program contains at most 2^16 writes
            content += drive.ssd().medium().sequence() << 16;
        }
        let start = Start { timed: true, pace: Pace::Clients, interval: spec.interval()? };
        let mut player = Player::new(drive, oracle, env.metrics, start);
        player.start_measuring();
        let (spec, awaited) = (spec.clone(), Awaited::default());
        Ok(Live { spec, config, player, content, awaited, origin: None })
    }

    /// Notes for the record how the content of the flash was made.
    ///
    /// `precondition` is the state that was asked for. The record gets the header in `made` only if
    /// `precondition` is a checkpoint.
    pub fn began_as(&mut self, precondition: Precondition, made: Made) {
        let given = matches!(precondition, Precondition::Checkpoint(_));
        self.spec.precondition = precondition;
        self.origin = given.then_some(made.0);
    }

    /// Returns the shape of the drive: the capacity and units that it exports.
    pub fn shape(&self) -> DeviceShape {
        self.player.drive.shape()
    }

    /// Returns the drive's configuration.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Returns the drive, to inspect it or to inject faults.
    pub fn drive(&mut self) -> &mut Stack {
        &mut self.player.drive
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Ps {
        self.player.now
    }

    /// Returns the number of commands that the drive accepts at the same time.
    pub fn queue_depth(&self) -> usize {
        self.config.params.get(QUEUE_DEPTH) as usize
    }

    /// Returns the number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.player.in_flight()
    }

    /// Returns the metrics' findings so far.
    pub fn look(&mut self) -> Findings {
        self.player.look()
    }

    /// Returns the time of the next event, or `None` if there is none.
    pub fn next_event(&self) -> Option<Ps> {
        self.player.drive.next_event()
    }

    /// Simulates the drive up to `until`; if no command is in flight, it may do background work.
    ///
    /// If `until` has already passed, time stands still.
    ///
    /// # Errors
    /// Returns an error if the drive cannot go on.
    pub fn advance(&mut self, until: Ps) -> Result<(), RunError> {
        let until = until.max(self.player.now);
        let awaited = &mut self.awaited;
        self.player.advance(until, |tag, at| awaited.complete(tag, at))
    }

    /// Lets time pass until at most `in_flight` commands are in flight.
    ///
    /// # Errors
    /// Returns an error if commands are in flight and no event is left.
    pub fn wait_for(&mut self, in_flight: usize) -> Result<(), RunError> {
        let awaited = &mut self.awaited;
        while self.player.in_flight() > in_flight {
            self.player.advance_to_completion(Ps::MAX, |tag, at| awaited.complete(tag, at))?;
        }
        Ok(())
    }

    /// Hands a request to the drive now; `data` are the bytes of a write.
    ///
    /// Returns the ticket of the request, or 0 if nobody `waits` for the request. Also returns the
    /// bytes of a read if the drive keeps bytes.
    ///
    /// # Errors
    /// Returns an error for a request that the drive refuses, and if the drive cannot go on.
    pub fn submit(
        &mut self,
        request: &Request,
        data: Option<&[u8]>,
        waits: bool,
    ) -> Result<(u64, &[u8]), RunError> {
        let number = self.content;
        self.content += u64::from(request.op == HostOp::Write);
        let now = self.player.now;
        let tag = self.player.submit(request, now, number, data)?;
        Ok((self.awaited.submitted(tag, waits), self.player.bytes_read()))
    }

    /// Returns the completion time of a ticket's command if it is complete.
    pub fn completion(&self, ticket: u64) -> Option<Ps> {
        self.awaited.done.get(&ticket).copied()
    }

    /// Returns the completion time of a ticket's command if it is complete, and drops the ticket.
    pub fn completed(&mut self, ticket: u64) -> Option<Ps> {
        self.awaited.done.remove(&ticket)
    }

    /// Returns the error that commands are in flight and no event is left.
    pub fn stalled(&self) -> RunError {
        self.player.stalled()
    }

    /// Waits until all commands are complete, checks every unit once more, and makes the record.
    ///
    /// `extra` are notes from the program that sent the requests.
    ///
    /// # Errors
    /// Returns an error if a rule is broken or the drive cannot go on; there is no record then.
    pub fn finish(
        mut self,
        env: &Environment<'_>,
        path: &str,
        extra: Vec<Note>,
    ) -> Result<Outcome, RunError> {
        self.wait_for(0)?;
        let Live { spec, config, player, origin, .. } = self;
        let source = Source {
            path,
            format: "served",
            digest: None,
            named: &[],
            account: Account::default(),
            origin,
            packed: None,
            parts: Vec::new(),
        };
        let mut quiet = |_: Progress| true;
        PartFault::catching(|| finish(&spec, &config, player, source, extra, env, &mut quiet))
            .unwrap_or_else(|fault| Err(fault.into()))
    }
}
