//! Recording of a workload that went through a controller once.

use super::home::SlotWrite;
use super::host::{Answer, Host, Noted};
use super::model::{Model, Totals, never_back, totals};
use super::step::{Blocks, Step};
use super::units::{BLOCK, Units, extend, tags};
use crate::media::{DriveChange, Media, take_journals};
use crate::recording::blank;
use crate::{Failure, guarded};
use flashatlas_device::{Contents, DriveConfig};
use flashatlas_nvme::drive::{Drive, shape};
use flashatlas_nvme::{CommandId, Entry, Media as _, MediaShape, Status, admin, feature, io};

/// Maximum number of commands that the host has in flight.
const IN_FLIGHT_MAX: usize = 4;
/// Content number of the first write of a workload.
const CONTENT: u64 = 1 << 20;
/// Force Unit Access, and Deallocate of Write Zeroes, in command dword 12.
const FUA: u32 = 1 << 30;
const DEAC: u32 = 1 << 25;
/// Save of Set Features, in command dword 10.
const SAVE: u32 = 1 << 31;

/// An event of a recording.
#[derive(Clone, Debug)]
pub enum Event {
    /// The host submitted a step.
    Submitted(u32, Step),
    /// A medium changed.
    Changed(DriveChange),
    /// The controller's record went into its home.
    Kept(SlotWrite),
    /// A step was completed, with the totals that it showed to the host.
    Completed(u32, Option<Totals>),
}

/// A workload that ran with the power on.
pub struct Recording {
    /// The media when the workload began.
    pub base: Media,
    /// The model when the workload began.
    pub model: Model,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Contents for the digests that the drive's layers store.
    pub contents: Vec<Contents>,
}

/// A step that is not complete.
struct Waiting {
    id: CommandId,
    number: u32,
    step: Step,
}

/// A workload that runs.
struct Runner {
    host: Host,
    model: Model,
    events: Vec<Event>,
    shape: MediaShape,
    waiting: Vec<Waiting>,
    enabled: bool,
    numbers: u32,
    /// `true` if the next journals are taken from the last drive to the first.
    backwards: bool,
}

/// Notes the changes of the media, or a write to the home of the record.
fn note(events: &mut Vec<Event>, backwards: &mut bool, drive: &mut Drive, noted: Noted) {
    match noted {
        Noted::Media => {
            let mut changes = Vec::new();
            take_journals(&mut drive.stack, *backwards, &mut changes);
            *backwards = !*backwards;
            events.extend(changes.into_iter().map(Event::Changed));
        }
        Noted::Record(write) => events.push(Event::Kept(write)),
    }
}

/// Fills every block with the content of [`super::units::before`], and makes it durable.
fn fill(drive: &mut Drive, shape: &MediaShape) -> Result<(), Failure> {
    let failed = |error| Failure::new("R5", format!("filling: {error:?}"));
    let unit = shape.unit_blocks;
    for first in (0..shape.blocks as u32).step_by(unit as usize) {
        let mut bytes = Vec::new();
        (first..first + unit).for_each(|lba| extend(&mut bytes, super::units::before(lba)));
        drive.write(u64::from(first) * BLOCK as u64, &bytes, false).map_err(failed)?;
    }
    drive.flush().map_err(failed)
}

impl Recording {
    /// Runs `steps` on a new drive that keeps bytes; with `filled`, every block is written
    /// beforehand.
    ///
    /// # Errors
    /// Returns an error if a step has a wrong result while the power is on.
    pub fn make(config: &DriveConfig, steps: &[Step], filled: bool) -> Result<Recording, Failure> {
        guarded(|| Recording::try_make(config, steps, filled))
    }

    fn try_make(config: &DriveConfig, steps: &[Step], filled: bool) -> Result<Recording, Failure> {
        let (mut base, stack, mut changes) = blank(config)?;
        let shape = shape(&stack);
        let mut drive = Drive::new(stack, CONTENT);
        if filled {
            fill(&mut drive, &shape)?;
            take_journals(&mut drive.stack, false, &mut changes);
            changes.clear();
            base = Media::of(&drive.stack);
        }
        let units = Units::new(
            shape.blocks as u32 / shape.unit_blocks,
            shape.unit_blocks,
            filled,
            !shape.trims_survive,
        );
        let model = Model::new(units);
        let mut events: Vec<Event> = changes.into_iter().map(Event::Changed).collect();
        let (mut now, mut backwards) = (model.clone(), false);
        now.submitted(0, Step::PowerOn);
        events.push(Event::Submitted(0, Step::PowerOn));
        let mut noted = |drive: &mut Drive, what| note(&mut events, &mut backwards, drive, what);
        let host = Host::power_on(drive, now.home.clone(), &mut noted)?;
        events.push(Event::Completed(0, None));
        now.completed(0, None);
        let (waiting, enabled, numbers) = (Vec::new(), false, 1);
        let mut runner =
            Runner { host, model: now, events, shape, waiting, enabled, numbers, backwards };
        for &step in steps {
            runner.step(step)?;
        }
        runner.settle()?;
        runner.compare()?;
        let Runner { host, events, .. } = runner;
        let mut stack = host.drive.stack;
        stack.top().check().map_err(|v| Failure::new("R5", format!("power on: {v}")))?;
        Ok(Recording { base, model, events, contents: stack.contents() })
    }
}

impl Runner {
    fn begin(&mut self, step: Step) -> u32 {
        let number = self.numbers;
        self.numbers += 1;
        self.events.push(Event::Submitted(number, step));
        self.model.submitted(number, step);
        number
    }

    fn end(&mut self, number: u32, seen: Option<Totals>) {
        self.events.push(Event::Completed(number, seen));
        self.model.completed(number, seen.as_ref());
    }

    /// Carries out everything that is in flight.
    fn settle(&mut self) -> Result<(), Failure> {
        while self.host.ready() > 0 {
            self.carry_out(0)?;
        }
        Ok(())
    }

    /// Lets the media carry out command number `n`.
    fn carry_out(&mut self, n: usize) -> Result<(), Failure> {
        let (events, backwards) = (&mut self.events, &mut self.backwards);
        let answer =
            self.host.carry_out(n, &mut |drive, what| note(events, backwards, drive, what));
        answer.map_or(Ok(()), |answer| self.answered(answer))
    }

    /// Checks an answer of the controller, and ends its step.
    fn answered(&mut self, (completion, out): Answer) -> Result<(), Failure> {
        let at = self.waiting.iter().position(|waiting| waiting.id == completion.id);
        let Waiting { number, step, .. } = self.waiting.swap_remove(at.expect("it was submitted"));
        let expected = match step {
            Step::Compare { differs: true, .. } => Status::COMPARE_FAILURE.with_more(),
            _ => Status::SUCCESS,
        };
        let promise = if matches!(step, Step::Compare { .. }) { "N8" } else { "R5" };
        Failure::unless(completion.status == expected, promise, || {
            format!("power on, {step}: {:?}, not {expected:?}", completion.status)
        })?;
        let mut seen = None;
        match step {
            Step::Read { blocks, .. } => {
                let (held, newest) = (tags(&out), self.model.units.newest(blocks));
                Failure::unless(held == newest, "R6", || {
                    format!("power on, {step}: {held:x?}, not {newest:x?}")
                })?;
            }
            Step::Smart => {
                let totals = totals(&out);
                never_back(&self.model.seen, &totals)?;
                seen = Some(totals);
            }
            _ => {}
        }
        self.end(number, seen);
        Ok(())
    }

    /// Carries out a step of the workload, after everything that the host must do before it.
    fn step(&mut self, step: Step) -> Result<(), Failure> {
        if let Step::CarryOut(n) = step {
            let ready = self.host.ready();
            return if ready > 0 { self.carry_out(usize::from(n) % ready) } else { Ok(()) };
        }
        if step == Step::Shutdown && !self.enabled {
            return Ok(());
        }
        if step == Step::Reset {
            self.reset();
            return Ok(());
        }
        self.enable()?;
        let unit = self.shape.unit_blocks;
        let must_wait = |runner: &Runner| {
            runner.waiting.iter().any(|other| {
                let switches = |step| matches!(step, Step::Cache { .. });
                other.step.overlaps(step, unit) || switches(other.step) && switches(step)
            })
        };
        while self.host.ready() > 0 && (self.host.ready() >= IN_FLIGHT_MAX || must_wait(self)) {
            self.carry_out(0)?;
        }
        if let Step::Zeroes { deallocate: true, .. } = step
            && !self.shape.trims_survive
        {
            return self.refused(step);
        }
        let (entry, data) = self.command(step);
        let number = self.begin(step);
        if step == Step::Shutdown {
            let (events, backwards) = (&mut self.events, &mut self.backwards);
            self.host.shut_down(&mut |drive, what| note(events, backwards, drive, what));
            self.waiting.push(Waiting { id: self.host.last_id(), number, step });
            self.enabled = false;
            return self.settle();
        }
        self.waiting.push(Waiting { id: entry.id(), number, step });
        let (events, backwards) = (&mut self.events, &mut self.backwards);
        let mut noted = |drive: &mut Drive, what| note(events, backwards, drive, what);
        match self.host.submit(&entry, &data, &mut noted) {
            Some(answer) => self.answered(answer),
            None => Ok(()),
        }
    }

    /// Checks that the controller refuses Deallocate of Write Zeroes on a drive that forgets trims.
    fn refused(&mut self, step: Step) -> Result<(), Failure> {
        let (entry, data) = self.command(step);
        let (events, backwards) = (&mut self.events, &mut self.backwards);
        let mut noted = |drive: &mut Drive, what| note(events, backwards, drive, what);
        let answer = self.host.submit(&entry, &data, &mut noted);
        let refused =
            answer.is_some_and(|answer| answer.0.status == Status::INVALID_FIELD.with_more());
        Failure::unless(refused, "N4", || format!("{step} is not refused, but trims are forgotten"))
    }

    fn reset(&mut self) {
        let number = self.begin(Step::Reset);
        let (events, backwards) = (&mut self.events, &mut self.backwards);
        self.host.reset(&mut |drive, what| note(events, backwards, drive, what));
        self.waiting.clear();
        self.enabled = false;
        self.end(number, None);
    }

    /// Enables the controller if it is not enabled. After a shutdown, resets it first.
    fn enable(&mut self) -> Result<(), Failure> {
        if self.enabled {
            return Ok(());
        }
        if self.host.is_shut_down() {
            self.reset();
        }
        self.settle()?;
        let number = self.begin(Step::Enable);
        let (events, backwards) = (&mut self.events, &mut self.backwards);
        self.host.enable(&mut |drive, what| note(events, backwards, drive, what))?;
        self.enabled = true;
        self.end(number, None);
        Ok(())
    }

    /// Returns the command of a step, with its data.
    fn command(&mut self, step: Step) -> (Entry, Vec<u8>) {
        let host = &mut self.host;
        let fua_bit = |fua| if fua { FUA } else { 0 };
        let bytes_of = |tags: Vec<u32>| {
            let mut bytes = Vec::new();
            tags.into_iter().for_each(|tag| extend(&mut bytes, tag));
            bytes
        };
        let options = |entry: Entry, more: u32| entry.dword(12, entry.at(12) | more);
        let transfers = |blocks: Blocks| blocks.count as usize * BLOCK;
        match step {
            Step::Write { blocks, fua } => {
                let data = bytes_of(self.model.units.next_write(blocks));
                let entry = host.io(io::WRITE, blocks.first, blocks.count, data.len());
                (options(entry, fua_bit(fua)), data)
            }
            Step::Zeroes { blocks, fua, deallocate } => {
                let entry = host.io(io::WRITE_ZEROES, blocks.first, blocks.count, 0);
                let more = fua_bit(fua) | if deallocate { DEAC } else { 0 };
                (options(entry, more), Vec::new())
            }
            Step::Deallocate { ranges } => {
                let data: Vec<u8> = ranges.into_iter().flat_map(range).collect();
                let entry = host.io(io::DATASET_MANAGEMENT, ranges.len() as u32 - 1, 0, data.len());
                (entry.dword(11, 1 << 2), data)
            }
            Step::Read { blocks, fua } => {
                let entry = host.io(io::READ, blocks.first, blocks.count, transfers(blocks));
                (options(entry, fua_bit(fua)), Vec::new())
            }
            Step::Compare { blocks, fua, differs } => {
                let mut data = bytes_of(self.model.units.newest(blocks));
                if let Some(last) = data.last_mut().filter(|_| differs) {
                    *last ^= 1;
                }
                let entry = host.io(io::COMPARE, blocks.first, blocks.count, data.len());
                (options(entry, fua_bit(fua)), data)
            }
            Step::Flush => (host.io(io::FLUSH, 0, 0, 0), Vec::new()),
            Step::Cache { on, save } => {
                let cache = u32::from(feature::WRITE_CACHE) | if save { SAVE } else { 0 };
                let entry = host.admin(admin::SET_FEATURES).dword(10, cache).dword(11, on.into());
                (entry, Vec::new())
            }
            Step::Threshold(kelvins) => {
                let threshold = u32::from(feature::TEMPERATURE) | SAVE;
                let entry = host.admin(admin::SET_FEATURES).dword(10, threshold);
                (entry.dword(11, kelvins.into()), Vec::new())
            }
            Step::Smart => (host.smart(), Vec::new()),
            // the host makes these commands itself
            Step::PowerOn | Step::Enable | Step::Shutdown | Step::Reset | Step::CarryOut(_) => {
                (host.admin(admin::KEEP_ALIVE), Vec::new())
            }
        }
    }

    /// Compares everything with the model.
    fn compare(&mut self) -> Result<(), Failure> {
        self.enable()?;
        let all = Blocks { first: 0, count: self.shape.blocks as u32 };
        let held = tags(&self.host.read_all(all.count)?);
        Failure::unless(held == self.model.units.newest(all), "R6", || {
            "power on: the drive does not hold the data that was written last".into()
        })
    }
}

/// Returns a range of Dataset Management (NVM 3.3.3).
fn range(blocks: Blocks) -> [u8; 16] {
    let mut range = [0; 16];
    range[4..8].copy_from_slice(&blocks.count.to_le_bytes());
    range[8..12].copy_from_slice(&blocks.first.to_le_bytes());
    range
}
