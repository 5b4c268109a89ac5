//! Targets of a door: an NVM subsystem or a discovery service, without a transport.

use crate::command::Command;
use crate::connection::QueueShape;
use crate::limits::Limits;
use crate::pdu::COMPLETION_BYTES;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

/// A subsystem or discovery service that hosts connect to. Calls come from many threads, and none
/// may wait: a command that waits is [`Work`].
pub trait Target: Send + Sync + 'static {
    /// Returns the bounds of its connections.
    fn limits(&self) -> Limits;

    /// Carries out the first command of a connection, which ought to be Connect. The host has
    /// connected to the address `at`.
    ///
    /// # Errors
    /// Returns the completion that refuses the command. The host may try again.
    fn connect(
        &self,
        command: &Command,
        at: SocketAddr,
    ) -> Result<Connected, [u8; COMPLETION_BYTES]>;
}

/// A queue that a Connect command created.
pub struct Connected {
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The completion of the command. The connection fills in the head of the queue.
    pub completion: [u8; COMPLETION_BYTES],
    /// The association of the host with a controller, unique for the target. An admin queue begins
    /// it, an I/O queue joins it.
    pub association: u64,
    /// Size and kind of the queue.
    pub shape: QueueShape,
    /// I/O commands of the association that are begun and not complete, at most.
    pub window: usize,
}

/// Extent of what ends with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Its queue.
    Queue,
    /// The association, and so the connections of its other queues.
    Association,
}

/// A queue of a controller.
pub trait Queue: Send + Sync + 'static {
    /// Begins a command, and returns the work that is to be done for it or for commands that
    /// waited for it. The reply may be sent immediately, by the work, or later.
    fn begin(&self, command: Command, reply: Reply) -> Vec<Work>;

    /// Returns whether the queue still exists: a reset of its controller deletes an I/O queue. It
    /// is asked after each command of the admin queue, and after Fabrics commands of its own.
    fn is_alive(&self) -> bool;

    /// Returns the keep alive timeout of the association, if it is in force. Every command of the
    /// host starts it anew.
    fn keep_alive(&self) -> Option<Duration>;

    /// Ends the association, as its keep alive timeout has passed.
    fn expire(&self);

    /// Hears that the host has sent commands beyond the size of the queue. The controller stops,
    /// and its association is over (Base Specification, 3.3.2.5 and 3.3.2.6).
    fn overrun(&self);

    /// Ends the queue, whose connection is gone. A host that leaves closes its I/O queues first.
    /// After that it shuts its controller down over the admin queue.
    fn lost(&self) -> Lost;
}

/// Work of commands. If it waits, as media do, a thread of the door's pool does it.
pub struct Work {
    done: Box<dyn FnOnce() -> Vec<Work> + Send>,
    is_quick: bool,
    is_ready: Option<Box<dyn Fn() -> bool + Send>>,
}

impl Work {
    /// Returns work that `done` does. What it returns is to be done next.
    pub fn new(done: impl FnOnce() -> Vec<Work> + Send + 'static) -> Work {
        Work { done: Box::new(done), is_quick: false, is_ready: None }
    }

    /// Returns the same work for the connection's own task, as it waits for nothing: a change of
    /// threads takes longer than a small read.
    #[must_use]
    pub fn quick(self) -> Work {
        Work { is_quick: true, ..self }
    }

    /// Returns the same work for the connection's own task from the moment at which `is_ready` says
    /// that it waits for nothing. It may be asked again and again, and it must not wait.
    #[must_use]
    pub fn ready_when(self, is_ready: impl Fn() -> bool + Send + 'static) -> Work {
        Work { is_ready: Some(Box::new(is_ready)), ..self }
    }

    /// Returns `true` if the work can tell when it waits for nothing.
    pub(super) fn can_tell(&self) -> bool {
        self.is_ready.is_some()
    }

    /// Returns `true` if the work can tell that it waits for nothing now.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.as_ref().is_some_and(|is_ready| is_ready())
    }

    pub(super) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// Does the work, and returns what is to be done next.
    pub fn run(self) -> Vec<Work> {
        (self.done)()
    }
}

/// Number of commands that hosts wait for.
#[derive(Clone, Default)]
pub(super) struct Waits(Arc<AtomicUsize>);

impl Waits {
    /// Counts a command until the result is dropped.
    pub fn one(&self) -> Wait {
        self.0.fetch_add(1, Ordering::Relaxed);
        Wait(Waits::clone(self))
    }

    /// Returns the number of commands.
    pub fn commands(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A command that a host waits for.
pub(super) struct Wait(Waits);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Outcome of a command, on its way to the connection.
pub(super) struct Answer {
    /// The command (CID).
    pub id: u16,
    /// Completion and data; `None` if the controller has forgotten the command in a reset.
    pub outcome: Option<([u8; COMPLETION_BYTES], Vec<u8>)>,
    /// The command is one that completes soon: not an Asynchronous Event Request.
    pub is_awaited: bool,
    /// The place in the window. It becomes free when the answer is with the connection.
    pub place: Option<OwnedSemaphorePermit>,
    /// The target counts the command until the answer is with the connection.
    pub wait: Option<Wait>,
}

/// The way back to the connection of one command. A reply that is dropped says that the controller
/// has forgotten the command, as a reset makes it do: it has no completion.
pub struct Reply {
    id: u16,
    is_awaited: bool,
    /// Sender of the answer. The channel holds at most one answer for each command of the queue.
    answers: UnboundedSender<Answer>,
    place: Option<OwnedSemaphorePermit>,
    wait: Option<Wait>,
    is_sent: bool,
}

impl Reply {
    pub(super) fn new(
        id: u16,
        is_awaited: bool,
        answers: UnboundedSender<Answer>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Reply {
        Reply { id, is_awaited, answers, place, wait: None, is_sent: false }
    }

    /// Lets the target count the command until its answer is with the connection.
    pub(super) fn count(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    /// Returns the identifier of the command (CID).
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Completes the command. Nothing happens if its connection is gone.
    ///
    /// # Panics
    /// Panics if the completion is of another command.
    pub fn send(mut self, completion: [u8; COMPLETION_BYTES], data: Vec<u8>) {
        let id = u16::from_le_bytes([completion[12], completion[13]]);
        assert_eq!(id, self.id, "the completion is of this command");
        self.answer(Some((completion, data)));
    }

    fn answer(&mut self, outcome: Option<([u8; COMPLETION_BYTES], Vec<u8>)>) {
        self.is_sent = true;
        let Reply { id, is_awaited, .. } = *self;
        let (place, wait) = (self.place.take(), self.wait.take());
        // If the connection is gone, the host has lost the command with it.
        let _ = self.answers.send(Answer { id, outcome, is_awaited, place, wait });
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_sent {
            self.answer(None);
        }
    }
}
