//! A door: TCP listeners through which hosts reach a [`Target`].
//!
//! A connection is a task of its own: a host that does not read blocks itself alone. The media
//! calls of commands run on a pool of threads, as they may wait for simulated time.
//!
//! A door listens on loopback addresses, unless it is told otherwise. There is no authentication
//! and no encryption: [`Options::allow`] compares the name that a host gives itself.

mod association;
mod poller;
mod session;
mod subsystem;
mod switch;
mod target;

pub use subsystem::SubsystemTarget;
pub use switch::Switch;
pub use target::{Connected, Lost, Queue, Reply, Target, Work};

use association::Associations;
use poller::Poller;
use session::Session;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc, watch};

/// TCP port of NVMe over Fabrics (section 3.1).
pub const PORT: u16 = 4420;
/// TCP port of discovery controllers (section 3.1).
pub const DISCOVERY_PORT: u16 = 8009;

/// Settings of a door.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Names of the hosts (host NQN) that may connect; `None` for all.
    pub allow: Option<Vec<String>>,
    /// Addresses that are not loopback may be listened on.
    pub network: bool,
    /// Time from the TCP connection to the end of the Connect command.
    pub setup: Duration,
    /// Time that a host has to close a connection after an error.
    pub linger: Duration,
    /// Connections at a time; further ones are closed immediately. Each takes the memory that the
    /// limits of its target say.
    pub connections: usize,
    /// Threads for media calls.
    pub threads: usize,
    /// Time after a command or an answer in which the door looks for the next one without sleeping.
    /// It takes a processor meanwhile; zero for never.
    pub poll: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            allow: None,
            network: false,
            setup: Duration::from_secs(10),
            linger: Duration::from_secs(30), // section 3.5.1
            connections: 256,
            threads: 32,
            poll: Duration::ZERO,
        }
    }
}

/// An address, and the target that hosts find there. Listeners that share a target share its
/// associations.
#[derive(Clone)]
pub struct Listener {
    /// The address. Port 0 is any free port.
    pub address: SocketAddr,
    /// The target.
    pub target: Arc<dyn Target>,
}

/// Reason why a door does not open.
#[derive(Debug)]
pub enum DoorError {
    /// The address is not loopback, and [`Options::network`] is off.
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// The threads cannot be started.
    Threads(io::Error),
}

impl fmt::Display for DoorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DoorError::NotLoopback(address) => {
                write!(
                    f,
                    "the address {address} is open to the network; only loopback addresses are \
                     allowed"
                )
            }
            DoorError::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            DoorError::Threads(error) => write!(f, "cannot start threads: {error}"),
        }
    }
}

impl std::error::Error for DoorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DoorError::NotLoopback(_) => None,
            DoorError::Listen(_, error) | DoorError::Threads(error) => Some(error),
        }
    }
}

/// Addresses that are listened on. Hosts that connect wait until [`Door::serve`].
pub struct Bound(Vec<std::net::TcpListener>);

impl Bound {
    /// Listens on the addresses. Those that are not loopback must be allowed
    /// ([`Options::network`]).
    ///
    /// # Errors
    /// Returns an error if an address is not allowed or cannot be listened on.
    pub fn to(addresses: &[SocketAddr], network: bool) -> Result<Bound, DoorError> {
        let outside = addresses.iter().find(|one| !one.ip().is_loopback());
        if let Some(&outside) = outside.filter(|_| !network) {
            return Err(DoorError::NotLoopback(outside));
        }
        let listen = |&address: &SocketAddr| {
            let listener = std::net::TcpListener::bind(address);
            listener
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                .map_err(|error| DoorError::Listen(address, error))
        };
        addresses.iter().map(listen).collect::<Result<_, _>>().map(Bound)
    }
}

/// State that all connections of a door share.
struct Shared {
    options: Options,
    associations: Associations,
    poller: Poller,
    /// The door is closing.
    closing: watch::Sender<bool>,
}

/// Listeners that are open. They close when the door is dropped.
pub struct Door {
    /// There until the door closes.
    runtime: Option<Runtime>,
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    /// Ends when all connections have ended.
    alive: mpsc::Receiver<()>,
}

impl Door {
    /// Opens the listeners, and serves them until the door is closed.
    ///
    /// # Errors
    /// Returns an error if an address is not allowed or cannot be listened on.
    pub fn open(listeners: &[Listener], options: Options) -> Result<Door, DoorError> {
        let addresses: Vec<SocketAddr> = listeners.iter().map(|one| one.address).collect();
        let targets = listeners.iter().map(|one| Arc::clone(&one.target)).collect();
        Door::serve(Bound::to(&addresses, options.network)?, targets, options)
    }

    /// Serves a target at each address that is listened on, until the door is closed.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be started.
    ///
    /// # Panics
    /// Panics unless there is one target for each address.
    pub fn serve(
        bound: Bound,
        targets: Vec<Arc<dyn Target>>,
        options: Options,
    ) -> Result<Door, DoorError> {
        assert_eq!(bound.0.len(), targets.len(), "a target for each address");
        // One thread has all connections: with a second one, each event would wake both.
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(options.threads.max(1))
            .thread_name("nvme-tcp")
            .enable_io()
            .enable_time()
            .build()
            .map_err(DoorError::Threads)?;
        let places = Arc::new(Semaphore::new(options.connections));
        let closing = watch::Sender::new(false);
        let poller = Poller::new(options.poll);
        let associations = Associations::default();
        let shared = Arc::new(Shared { options, associations, poller, closing });
        let (token, alive) = mpsc::channel(1);
        let mut addresses = Vec::new();
        let entered = runtime.enter();
        let poll = Arc::clone(&shared);
        runtime.spawn(async move { poll.poller.run().await });
        for (listener, target) in bound.0.into_iter().zip(targets) {
            addresses.push(listener.local_addr().map_err(DoorError::Threads)?);
            let entrance = Entrance {
                listener: TcpListener::from_std(listener).map_err(DoorError::Threads)?,
                target,
                shared: Arc::clone(&shared),
                places: Arc::clone(&places),
                token: token.clone(),
            };
            runtime.spawn(entrance.accept());
        }
        drop(entered);
        Ok(Door { runtime: Some(runtime), addresses, shared, alive })
    }

    /// Returns the addresses, in the order of the listeners, with the ports that were chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Closes the door: commands that were begun are completed, then the connections are closed.
    /// Returns whether all of this was done within `patience`.
    pub fn close(mut self, patience: Duration) -> bool {
        self.shared.closing.send_replace(true);
        let Some(runtime) = self.runtime.take() else { return true };
        let all = runtime
            .block_on(async { tokio::time::timeout(patience, self.alive.recv()).await.is_ok() });
        runtime.shutdown_timeout(if all { patience } else { Duration::ZERO });
        all
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.shared.closing.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// One listener.
struct Entrance {
    listener: TcpListener,
    target: Arc<dyn Target>,
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    token: mpsc::Sender<()>,
}

impl Entrance {
    /// Accepts connections until the door closes.
    async fn accept(self) {
        let mut closing = self.shared.closing.subscribe();
        loop {
            let accepted = tokio::select! {
                _ = closing.wait_for(|&closing| closing) => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.serve(stream),
                // No descriptor is free, or the host has gone already: others may get in later.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    fn serve(&self, stream: TcpStream) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
        let (Ok(()), Ok(address)) = (stream.set_nodelay(true), stream.local_addr()) else {
            return; // the host has gone already
        };
        let (shared, target) = (Arc::clone(&self.shared), Arc::clone(&self.target));
        let session = Session::new(shared, target, stream, address);
        let token = self.token.clone();
        tokio::spawn(async move {
            session.run().await;
            drop((place, token));
        });
    }
}
