//! Environments for learning, in which Python makes the decisions of a run.
//!
//! `python/flashatlas/gym.py` is the Python side. The run has a thread of its own. At each
//! decision, this thread sends an observation and waits for an answer. The decision is which block
//! to collect, into which stream a page goes, or whether a map page stays in memory.
//! [`Episode::step`] sends the answer and waits for the next question, without the interpreter's
//! lock.

use crate::environment::environment;
use crate::{InputError, PartError, to_python};
use flashatlas_ftl::MemoryUse;
use flashatlas_ftl::caching::{CachePolicy, CachePolicyDef, MapAccess};
use flashatlas_ftl::classifiers::{Classifier, ClassifierDef, Collected, Page, Stream, Streams};
use flashatlas_ftl::victims::{Candidates, LaneShape, Moment, VictimDef, VictimPolicy};
use flashatlas_sim::{Environment, Outcome, RunError, RunSpec, run};
use flashatlas_types::{LocalBlock, PartFault, StreamId, TiVec};
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Number of candidate blocks in an observation.
const CANDIDATES: usize = 8;

/// Number of features of each candidate block in an observation.
///
/// The features are the share of valid slots, the age since the block was closed, the age since it
/// last changed, and the difference of its erases from the mean.
const FEATURES: usize = 4;

/// Number of streams in which pages are placed.
const STREAMS: u32 = 4;

/// Message from the run: a question, or the end of the run.
enum Message {
    Question { observation: Vec<f32>, choices: u32, reward: f32 },
    End { outcome: Box<Result<Outcome, RunError>>, reward: f32 },
}

/// The run's end of the channels for questions and answers.
struct Link {
    ask: SyncSender<Message>,
    answers: Receiver<u32>,
    reward: f32,
}

impl Link {
    /// Returns the answer to a question; ends the run if the episode was closed.
    fn ask(&mut self, observation: Vec<f32>, choices: u32) -> u32 {
        let reward = std::mem::take(&mut self.reward);
        let asked = self.ask.send(Message::Question { observation, choices, reward });
        match asked.ok().and_then(|()| heard(&self.answers).ok()) {
            Some(answer) => answer.min(choices - 1),
            None => PartFault::raise("environment", "the episode was closed"),
        }
    }
}

/// Number of polls of an empty channel before a thread goes to sleep.
///
/// In most cases the other thread answers within microseconds, which is faster than waking a
/// thread.
const LOOKS: u32 = 1000;

/// Returns the next message from a channel.
fn heard<T>(channel: &Receiver<T>) -> Result<T, RecvError> {
    for _ in 0..LOOKS {
        match channel.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
        }
    }
    channel.recv()
}

type Shared = Arc<Mutex<Link>>;

/// Returns an age as a number from 0 to 1: its base-2 logarithm, limited to 16, divided by 16.
fn age(pages: u64) -> f32 {
    ((pages + 1) as f32).log2().min(16.0) / 16.0
}

/// Victim policy that asks for the block to collect, among the blocks of a lane with the fewest
/// valid slots.
struct Asking {
    link: Shared,
    /// For each closed block, the clocks at which it closed and last changed.
    closed: TiVec<LocalBlock, Option<(u64, u64)>>,
}

impl VictimPolicy for Asking {
    fn closed(&mut self, block: LocalBlock, _: u32, at: Moment) {
        self.closed[block] = Some((at.clock, at.clock));
    }

    fn invalidated(&mut self, block: LocalBlock, _: u32, at: Moment) {
        if let Some((_, changed)) = &mut self.closed[block] {
            *changed = at.clock;
        }
    }

    fn removed(&mut self, block: LocalBlock) {
        self.closed[block] = None;
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        let frees = |&(block, _): &(LocalBlock, (u64, u64))| lane.valid[block] < lane.slots;
        let known = self.closed.iter_enumerated().filter_map(|(block, at)| Some((block, (*at)?)));
        let mut all: Vec<(LocalBlock, (u64, u64))> = known.filter(frees).collect();
        all.sort_unstable_by_key(|&(block, (closed, _))| (lane.valid[block], closed, block));
        all.truncate(CANDIDATES);
        if all.is_empty() {
            return None;
        }
        let mean = lane.erases.iter().map(|&e| f64::from(e)).sum::<f64>();
        let mean = (mean / lane.erases.len() as f64) as f32;
        let mut observation = vec![1.0; CANDIDATES * FEATURES];
        for (&(block, (closed, changed)), features) in
            all.iter().zip(observation.chunks_mut(FEATURES))
        {
            features[0] = lane.valid[block] as f32 / lane.slots as f32;
            features[1] = age(lane.at.clock - closed);
            features[2] = age(lane.at.clock - changed);
            features[3] = ((lane.erases[block] as f32 - mean) / 16.0).clamp(-1.0, 1.0);
        }
        let mut link = self.link.lock().expect("one thread runs");
        let choice = link.ask(observation, all.len() as u32);
        let block = all[choice as usize].0;
        link.reward -= lane.valid[block] as f32 / lane.slots as f32;
        Some(block)
    }
}

/// Classifier that asks into which stream a page written by the host goes.
struct Placing {
    link: Shared,
    pages: u32,
}

impl Classifier for Placing {
    fn written(&mut self, page: &Page) -> StreamId {
        let seen = page.age.map_or(1.0, age);
        let from = match page.from {
            Some(Stream::Host(n)) => (n.number() + 1) as f32 / STREAMS as f32,
            Some(Stream::Collection(n)) => -((n.number() + 1) as f32) / STREAMS as f32,
            None => 0.0,
        };
        let place = page.lpn.0 as f32 / self.pages as f32;
        let known = f32::from(page.age.is_some());
        let mut link = self.link.lock().expect("one thread runs");
        StreamId::new(link.ask(vec![seen, known, from, place], STREAMS))
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        match page.from {
            Some(Stream::Host(n) | Stream::Collection(n)) => n.min(StreamId::new(STREAMS - 1)),
            None => StreamId::new(0),
        }
    }

    fn erased(&mut self, block: &Collected) {
        let mut link = self.link.lock().expect("one thread runs");
        link.reward -= block.valid as f32 / block.slots as f32;
    }

    fn memory(&self) -> Vec<MemoryUse> {
        Vec::new()
    }
}

/// Number of hits that gives a reward of 1.
const HITS: f32 = 16.0;

/// Cache policy that asks whether a missed map page stays in memory if another page must leave.
struct Admitting {
    link: Shared,
    /// Clock of the last miss of each map page, and the number of its misses.
    missed: Vec<Option<(u64, u32)>>,
    /// Clock of the last hit of each map page.
    used: Vec<Option<u64>>,
}

impl CachePolicy for Admitting {
    fn used(&mut self, access: &MapAccess) {
        self.used[access.page as usize] = Some(access.clock);
        self.link.lock().expect("one thread runs").reward += 1.0 / HITS;
    }

    fn missed(&mut self, access: &MapAccess, _: &mut Vec<u32>) -> bool {
        let page = access.page as usize;
        let (before, times) = self.missed[page].map_or((None, 0), |(at, n)| (Some(at), n));
        self.missed[page] = Some((access.clock, times + 1));
        if access.room || access.change {
            return true;
        }
        let since = |at: Option<u64>| at.map_or(1.0, |at| age(access.clock - at));
        let observation = vec![
            since(before),
            since(self.used[page]),
            age(times.into()),
            page as f32 / self.missed.len() as f32,
        ];
        self.link.lock().expect("one thread runs").ask(observation, 2) == 1
    }
}

/// A run that is carried out question by question.
#[pyclass]
pub struct Episode {
    answers: Option<SyncSender<u32>>,
    messages: Mutex<Receiver<Message>>,
    thread: Option<JoinHandle<()>>,
    /// `true` if the message about the run's end has arrived.
    ended: bool,
}

/// Observation, number of choices, reward, and, at the end of the run, the record (JSON).
type Step = (Option<Vec<f32>>, u32, f32, Option<String>);

#[pymethods]
impl Episode {
    /// Begins a run (JSON of a `RunSpec`).
    ///
    /// `kind` is `collection`, `placement` or `admission`.
    #[new]
    fn new(kind: &str, spec: &str) -> PyResult<Episode> {
        let mut spec: RunSpec = serde_json::from_str(spec).map_err(|e| {
            InputError::new_err(format!("the run specification cannot be read: {e}"))
        })?;
        let (ask, messages) = sync_channel(1);
        let (answers, hear) = sync_channel(1);
        let end = ask.clone();
        let link: Shared = Arc::new(Mutex::new(Link { ask, answers: hear, reward: 0.0 }));
        let last = link.clone();
        let registry = *environment().registry;
        // definitions are never freed, so each episode leaks a definition of some hundred bytes
        let added = match kind {
            "collection" => {
                spec.set.push("ftl.victim=environment".into());
                registry.with(&*Box::leak(Box::new(collection(link))))
            }
            "placement" => {
                spec.set.push("ftl.classifier=environment".into());
                registry.with(&*Box::leak(Box::new(placement(link))))
            }
            "admission" => {
                spec.set.push("map.policy=environment".into());
                registry.with(&*Box::leak(Box::new(admission(link))))
            }
            other => {
                return Err(InputError::new_err(format!("the environment `{other}` is not known")));
            }
        };
        let registry = added.map_err(|e| InputError::new_err(e.to_string()))?;
        let thread = std::thread::spawn(move || {
            let environment = Environment { registry: &registry, ..environment() };
            let outcome = Box::new(run(&spec, &environment, &mut |_| true));
            let reward = last.lock().map_or(0.0, |link| link.reward);
            // if the episode was closed, nothing receives the message
            let _ = end.send(Message::End { outcome, reward });
        });
        let messages = Mutex::new(messages);
        Ok(Episode { answers: Some(answers), messages, thread: Some(thread), ended: false })
    }

    /// Returns the first question.
    fn begin(&mut self, py: Python<'_>) -> PyResult<Step> {
        self.next(py)
    }

    /// Answers the current question, and returns the next question.
    fn step(&mut self, py: Python<'_>, answer: u32) -> PyResult<Step> {
        let sent = self.answers.as_ref().and_then(|answers| answers.send(answer).ok());
        if sent.is_none() {
            return Err(PartError::new_err("the episode is over: reset the environment"));
        }
        self.next(py)
    }

    /// Ends the run at its next question.
    fn close(&mut self, py: Python<'_>) {
        self.answers = None;
        let (thread, ended) = (self.thread.take(), self.ended);
        py.detach(|| {
            if let Some(thread) = thread.filter(|_| !ended) {
                // the leaked definition keeps the channel open, so the loop ends only at
                // `Message::End`
                let messages = self.messages.lock().expect("one at a time");
                while let Ok(Message::Question { .. }) = messages.recv() {}
                let _ = thread.join();
            }
        });
    }
}

impl Episode {
    fn next(&mut self, py: Python<'_>) -> PyResult<Step> {
        let received = py.detach(|| heard(&self.messages.lock().expect("one at a time")));
        match received {
            Ok(Message::Question { observation, choices, reward }) => {
                Ok((Some(observation), choices, reward, None))
            }
            Ok(Message::End { outcome, reward }) => {
                (self.answers, self.ended) = (None, true);
                let outcome = outcome.map_err(|e| to_python(&e))?;
                Ok((None, 0, reward, Some(outcome.record.to_string())))
            }
            Err(_) => Err(PartError::new_err("the run of the episode ended in a panic")),
        }
    }
}

impl Drop for Episode {
    fn drop(&mut self) {
        // the run ends at its next question, because it gets no answer
        self.answers = None;
    }
}

fn collection(link: Shared) -> VictimDef {
    VictimDef {
        name: "environment",
        summary: "asks which block is collected",
        paper: "none",
        params: &[],
        build: Box::leak(Box::new(move |_: &_, lane: LaneShape, _| {
            let closed = lane.per_block(None);
            Box::new(Asking { link: link.clone(), closed }) as Box<dyn VictimPolicy>
        })),
        steady: None,
    }
}

fn admission(link: Shared) -> CachePolicyDef {
    CachePolicyDef {
        name: "environment",
        summary: "asks whether a map page stays in memory",
        paper: "none",
        params: &[],
        build: Box::leak(Box::new(move |_: &_, pages: u32| {
            let (missed, used) = (vec![None; pages as usize], vec![None; pages as usize]);
            Box::new(Admitting { link: link.clone(), missed, used }) as Box<dyn CachePolicy>
        })),
    }
}

fn placement(link: Shared) -> ClassifierDef {
    ClassifierDef {
        name: "environment",
        summary: "asks into which stream a page is written",
        paper: "none",
        params: &[],
        streams: Some(Streams { host: STREAMS, collection: STREAMS }),
        history: true,
        build: Box::leak(Box::new(move |_: &_, pages: u32, _| {
            Box::new(Placing { link: link.clone(), pages }) as Box<dyn Classifier>
        })),
    }
}
