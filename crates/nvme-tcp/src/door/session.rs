//! The task of one connection: it moves bytes between the socket, the connection and the target.

use super::Shared;
use super::association::{Association, News};
use super::poller::run;
use super::switch::text;
use super::target::{Answer, Lost, Queue, Reply, Target, Work};
use crate::clock::now;
use crate::command::{Command, FABRICS};
use crate::connection::{Connection, End};
use crate::status;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// Bytes that are received at a time.
const INPUT: usize = 64 << 10;
/// Parts that are sent at a time.
const PARTS: usize = 128;
/// Commands whose answers are sent together, if they are there together.
const TOGETHER: usize = 8;
/// Opcode of the Asynchronous Event Request command.
const EVENT_REQUEST: u8 = 0x0c;
/// Position of the host's name in the data of Connect (Base Specification, 6.3).
const HOST_NQN: std::ops::Range<usize> = 512..768;

/// The queue that a connection has, once Connect succeeded.
struct Joined {
    queue: Arc<dyn Queue>,
    association: Arc<Association>,
    key: (usize, u64),
    is_admin: bool,
}

/// Reason why a session ends.
#[derive(PartialEq, Eq, Debug)]
enum Why {
    /// The host closed the connection, or the network broke.
    Gone,
    /// The protocol was broken, or the host said so.
    Over(End),
    /// Connect did not come in time, the keep alive timeout passed, or the queue was deleted.
    Ended,
    /// The door closes.
    Closing,
}

/// Event that woke a session.
enum Wake {
    Closing,
    News(News),
    Answer(Answer),
    Place(OwnedSemaphorePermit),
    Socket,
    Time,
}

/// The task of one connection.
pub(super) struct Session {
    shared: Arc<Shared>,
    target: Arc<dyn Target>,
    stream: TcpStream,
    /// Address to which the host has connected.
    address: SocketAddr,
    connection: Connection,
    joined: Option<Joined>,
    sender: UnboundedSender<Answer>,
    answers: UnboundedReceiver<Answer>,
    /// Commands that are begun and will complete soon.
    awaited: usize,
    /// Connect succeeds before then, or never.
    setup_until: Instant,
    input: Box<[u8]>,
}

impl Session {
    pub fn new(
        shared: Arc<Shared>,
        target: Arc<dyn Target>,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Session {
        let (sender, answers) = unbounded_channel();
        Session {
            connection: Connection::new(target.limits()),
            setup_until: now() + shared.options.setup,
            shared,
            target,
            stream,
            address,
            joined: None,
            sender,
            answers,
            awaited: 0,
            input: vec![0; INPUT].into_boxed_slice(),
        }
    }

    /// Serves the connection until it ends.
    pub async fn run(mut self) {
        let why = self.serve().await;
        match why {
            Why::Closing => self.finish_commands().await,
            Why::Ended => {
                self.complete_answers(); // that of a Disconnect command, for one
            }
            Why::Gone | Why::Over(_) => {}
        }
        if let Some(joined) = &self.joined {
            joined.association.end_commands(self.awaited);
            if self.connection.is_overrun() {
                joined.queue.overrun();
            }
        }
        if let Some(Joined { queue, association, key, is_admin }) = self.joined.take()
            && (queue.lost() == Lost::Association || is_admin)
        {
            self.shared.associations.end(key, &association);
        }
        if why != Why::Gone {
            let _ = timeout(self.shared.options.linger, self.part()).await;
        }
    }

    async fn serve(&mut self) -> Why {
        let mut closing = self.shared.closing.subscribe();
        let mut news: Option<watch::Receiver<News>> = None;
        loop {
            if news.is_none() {
                news = self.joined.as_ref().map(|joined| joined.association.news());
            }
            let deadline = self.deadline();
            // In this order: what ends the session comes before what a busy host keeps ready.
            let wake = tokio::select! {
                biased;
                _ = closing.wait_for(|&closing| closing) => Wake::Closing,
                () = sleep_until(deadline) => Wake::Time,
                latest = next_news(&mut news) => Wake::News(latest),
                Some(answer) = self.answers.recv() => Wake::Answer(answer),
                place = next_place(&self.joined, &self.connection) => Wake::Place(place),
                () = ready(&self.stream, &self.connection) => Wake::Socket,
            };
            let over = match wake {
                Wake::Closing => Err(Why::Closing),
                Wake::News(news) => self.check_alive(news),
                // Room for data, or a place in the window, may have become free.
                Wake::Answer(answer) => {
                    self.complete(answer);
                    self.begin()
                }
                Wake::Place(place) => {
                    let works = self.begin_next(Some(place));
                    self.carry_out(works).and_then(|()| self.begin())
                }
                Wake::Socket => self.exchange(),
                Wake::Time => self.check_time(),
            };
            if let Err(why) = over {
                return why;
            }
        }
    }

    /// Returns the end of the time for Connect, or of the keep alive timeout.
    fn deadline(&self) -> Instant {
        let far = now() + Duration::from_secs(3600);
        match &self.joined {
            None => self.setup_until,
            Some(joined) if joined.is_admin => {
                let timeout = joined.queue.keep_alive();
                timeout.map_or(far, |timeout| joined.association.last_command() + timeout)
            }
            Some(_) => far,
        }
    }

    fn check_time(&mut self) -> Result<(), Why> {
        if self.deadline() > now() {
            return Ok(()); // another queue of the host had a command
        }
        if let Some(joined) = &self.joined {
            joined.queue.expire();
        }
        Err(Why::Ended)
    }

    fn check_alive(&mut self, news: News) -> Result<(), Why> {
        if *self.shared.closing.borrow() {
            return Err(Why::Closing); // the association is over because of that
        }
        let alive = self.joined.as_ref().is_none_or(|joined| joined.queue.is_alive());
        if news.is_over || !alive { Err(Why::Ended) } else { Ok(()) }
    }

    /// Sends and receives what the socket takes and has.
    fn exchange(&mut self) -> Result<(), Why> {
        self.send()?;
        if self.connection.wants_input() {
            match self.stream.try_read(&mut self.input) {
                Ok(0) => return Err(Why::Gone),
                Ok(bytes) => {
                    self.connection.receive(&self.input[..bytes]).map_err(Why::Over)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Why::Gone),
            }
        }
        self.begin()
    }

    /// Begins the commands that are there, and completes those whose answers are there, until
    /// nothing is left that need not wait. Sends the answers.
    fn begin(&mut self) -> Result<(), Why> {
        loop {
            let mut works = Vec::new();
            while let Some(place) = self.place() {
                works.append(&mut self.begin_next(place));
            }
            self.carry_out(works)?;
            if !self.complete_answers() {
                return self.send();
            }
        }
    }

    /// Returns a place for the next command, if there is one that may begin. Commands of an I/O
    /// queue need a place in the window.
    fn place(&self) -> Option<Option<OwnedSemaphorePermit>> {
        if !self.connection.has_command() {
            return None;
        }
        let Some(joined) = self.joined.as_ref().filter(|joined| !joined.is_admin) else {
            return Some(None);
        };
        Arc::clone(&joined.association.window).try_acquire_owned().ok().map(Some)
    }

    /// Does the work that waits for nothing, and gives the rest to the pool of threads. Sends the
    /// first answers before the last commands are done, so that the host can go on meanwhile.
    fn carry_out(&mut self, works: Vec<Work>) -> Result<(), Why> {
        let mut left = VecDeque::from(works);
        let mut done = 0;
        while let Some(work) = left.pop_front() {
            if !work.is_quick() {
                self.shared.poller.take(work);
                continue;
            }
            left.extend(run(work));
            done += 1;
            if done % TOGETHER == 0 {
                self.complete_answers();
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Why> {
        while self.connection.has_output() {
            let parts: Vec<IoSlice<'_>> =
                self.connection.output().take(PARTS).map(IoSlice::new).collect();
            match self.stream.try_write_vectored(&parts) {
                Ok(bytes) => self.connection.sent(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Why::Gone),
            }
        }
        Ok(())
    }

    /// Begins a command, and returns its work.
    fn begin_next(&mut self, place: Option<OwnedSemaphorePermit>) -> Vec<Work> {
        let Some(command) = self.connection.next_command() else { return Vec::new() };
        let Some(joined) = &self.joined else {
            self.connect(&command);
            return Vec::new();
        };
        joined.association.note_command();
        let is_awaited = !(joined.is_admin && command.entry[0] == EVENT_REQUEST);
        if is_awaited {
            self.awaited += 1;
            joined.association.begin_command();
        }
        if !joined.is_admin {
            self.shared.poller.stir();
        }
        let (id, answers) = (command.id(), self.sender.clone());
        let is_fabrics = command.entry[0] == FABRICS;
        let works = joined.queue.begin(command, Reply::new(id, is_awaited, answers, place));
        if is_fabrics && !joined.is_admin {
            joined.association.note_admin_command(); // a Disconnect deletes the queue
        }
        works
    }

    fn connect(&mut self, command: &Command) {
        let refused = |status| Err(status::completion(command.id(), status));
        let connected = if self.is_allowed(&command.data) {
            self.target.connect(command, self.address)
        } else {
            refused(status::CONNECT_INVALID_HOST)
        };
        let connected = match connected {
            Ok(connected) => connected,
            Err(completion) => return self.connection.complete(completion, Vec::new()),
        };
        let key = (Arc::as_ptr(&self.target).cast::<()>() as usize, connected.association);
        let is_admin = connected.shape.admin;
        let association = if is_admin {
            Some(self.shared.associations.begin(key, connected.window))
        } else {
            self.shared.associations.find(key)
        };
        let Some(association) = association else {
            // The host's admin queue has gone in the meantime.
            connected.queue.lost();
            return self.connection.complete(
                status::completion(command.id(), status::CONNECT_INVALID_PARAMETERS),
                Vec::new(),
            );
        };
        association.note_command();
        self.connection.establish(connected.shape);
        self.connection.complete(connected.completion, Vec::new());
        self.joined = Some(Joined { queue: connected.queue, association, key, is_admin });
    }

    /// Returns whether the name that the host gives itself is on the list.
    fn is_allowed(&self, data: &[u8]) -> bool {
        let Some(allow) = &self.shared.options.allow else { return true };
        let name = text(data.get(HOST_NQN).unwrap_or_default());
        allow.iter().any(|one| one.as_bytes() == name)
    }

    fn complete(&mut self, answer: Answer) {
        let Answer { id, outcome, is_awaited, place, wait } = answer;
        match outcome {
            Some((completion, data)) => self.connection.complete(completion, data),
            None => self.connection.forget(id),
        }
        drop((place, wait));
        if let Some(joined) = &self.joined {
            if is_awaited {
                self.awaited -= 1;
                joined.association.end_commands(1);
            }
            if joined.is_admin {
                joined.association.note_admin_command();
            } else {
                self.shared.poller.stir();
            }
        }
    }

    /// Completes the commands whose answers are there, and returns `true` if there was one.
    fn complete_answers(&mut self) -> bool {
        let mut was_one = false;
        while let Ok(answer) = self.answers.try_recv() {
            self.complete(answer);
            was_one = true;
        }
        was_one
    }

    /// Completes the commands that are begun, and waits until the host's other queues have done so:
    /// the association may be over as soon as one of its connections ends.
    async fn finish_commands(&mut self) {
        let Some(joined) = &self.joined else { return };
        let mut awaited = joined.association.awaited();
        loop {
            let answer = tokio::select! {
                Some(answer) = self.answers.recv() => answer,
                _ = awaited.wait_for(|&awaited| awaited == 0) => return,
            };
            self.complete(answer);
            if self.send().is_err() {
                return; // the host has gone
            }
        }
    }

    /// Sends what is left, and waits until the host closes the connection: it would lose the last
    /// bytes if the socket were closed with input unread.
    async fn part(&mut self) -> io::Result<()> {
        while self.connection.has_output() {
            self.stream.writable().await?;
            if self.send().is_err() {
                return Ok(());
            }
        }
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut self.input) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits for news of the association; for ever without one.
async fn next_news(news: &mut Option<watch::Receiver<News>>) -> News {
    let Some(news) = news else { return std::future::pending().await };
    match news.changed().await {
        Ok(()) => *news.borrow_and_update(),
        Err(_) => News { is_over: true, ..News::default() },
    }
}

/// Waits for a place in the window, if an I/O command waits; for ever otherwise.
async fn next_place(joined: &Option<Joined>, connection: &Connection) -> OwnedSemaphorePermit {
    match joined {
        Some(joined) if !joined.is_admin && connection.has_command() => {
            let window = Arc::clone(&joined.association.window);
            window.acquire_owned().await.expect("the window is never closed")
        }
        _ => std::future::pending().await,
    }
}

/// Waits until the socket has or takes bytes that the connection wants or has.
async fn ready(stream: &TcpStream, connection: &Connection) {
    let interest = match (connection.wants_input(), connection.has_output()) {
        (true, true) => Interest::READABLE | Interest::WRITABLE,
        (true, false) => Interest::READABLE,
        (false, true) => Interest::WRITABLE,
        (false, false) => return std::future::pending().await,
    };
    // An error shows itself when the socket is used.
    let _ = stream.ready(interest).await;
}
