//! A drive that is served as an NVMe drive over TCP (`python/flashatlas/serving/door.py`).

use crate::{InputError, PowerLost, guarded, to_python};
use flashatlas_nvme::support::Kind;
use flashatlas_nvme::{
    AddressFamily, DISCOVERY_NQN, DiscoveryEntry, Health, Later, Media, MediaError, Nqn, Settings,
    Subsystem, Vitals,
};
use flashatlas_nvme_tcp::door::{Bound, Door, DoorError, Options, SubsystemTarget, Switch};
use flashatlas_serve::{
    NvmeSpec, Refused, ServeError, ServeSpec, Server, Wall, durable, environment, media_shape,
    on_file, with_plugins,
};
use flashatlas_sim::{Parts, RunError};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time that hosts have at the end until they are cut off.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits for the end of the process. A drive without power answers nothing.
fn fall_silent() -> ! {
    loop {
        std::thread::park();
    }
}

/// Ticket of a command during which the power failed. The wait for this command never ends, but the
/// thread that submitted it goes on, because that thread serves all connections.
const NEVER: Later = Later(u64::MAX);

fn or_never(taken: Result<Option<Later>, MediaError>) -> Result<Option<Later>, MediaError> {
    match taken {
        Err(MediaError::PowerLost) => Ok(Some(NEVER)),
        taken => taken,
    }
}

/// A served drive that falls silent when its power fails.
struct Powered(Arc<Server<Wall>>);

impl Powered {
    fn answer<T>(
        &self,
        work: impl FnOnce(&mut &Server<Wall>) -> Result<T, MediaError>,
    ) -> Result<T, MediaError> {
        match work(&mut &*self.0) {
            Err(MediaError::PowerLost) => fall_silent(),
            answer => answer,
        }
    }
}

impl Media for &Powered {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        self.answer(|server| Media::read(server, offset, out))
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError> {
        self.answer(|server| Media::write(server, offset, data, fua))
    }

    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        self.answer(|server| Media::trim(server, offset, bytes))
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        self.answer(|server| Media::flush(server))
    }

    fn is_free(&mut self) -> bool {
        (&*self.0).is_free()
    }

    fn submit_read(&mut self, offset: u64, out: &mut [u8]) -> Result<Option<Later>, MediaError> {
        or_never((&*self.0).submit_read(offset, out))
    }

    fn submit_write(&mut self, offset: u64, data: &[u8]) -> Result<Option<Later>, MediaError> {
        or_never((&*self.0).submit_write(offset, data))
    }

    fn wait(&mut self, later: Later) -> Result<(), MediaError> {
        if later == NEVER {
            fall_silent();
        }
        self.answer(|server| Media::wait(server, later))
    }

    fn is_complete(&mut self, later: Later) -> bool {
        later != NEVER && (&*self.0).is_complete(later)
    }

    fn waited_for(&mut self, commands: usize) {
        (&*self.0).waited_for(commands);
    }

    fn health(&mut self) -> Health {
        (&*self.0).health()
    }

    fn vitals(&mut self) -> Vitals {
        (&*self.0).vitals()
    }
}

/// Media of the discovery service, which has no namespace.
struct Nothing;

impl Media for &Nothing {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), MediaError> {
        Err(MediaError::Other)
    }

    fn write(&mut self, _: u64, _: &[u8], _: bool) -> Result<(), MediaError> {
        Err(MediaError::Other)
    }

    fn trim(&mut self, _: u64, _: u64) -> Result<(), MediaError> {
        Err(MediaError::Other)
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        Err(MediaError::Other)
    }
}

/// A drive behind an NVMe controller, and the TCP port at which hosts find it.
#[pyclass(frozen)]
pub struct NvmeServer {
    server: Arc<Server<Wall>>,
    plan: ServeSpec,
    parts: Parts,
    target: Arc<SubsystemTarget<Powered>>,
    /// The door; `None` after serving has ended.
    door: Mutex<Option<Door>>,
    address: SocketAddr,
    nqn: Nqn,
}

fn unusable(error: impl std::fmt::Display) -> ServeError {
    ServeError::Run(RunError::Unusable(error.to_string()))
}

/// Returns the settings of the controller for a drive that takes `depth` commands at the same time.
///
/// # Errors
/// Returns an error if the name of a host is not valid.
fn settings(spec: &NvmeSpec, depth: usize) -> Result<Settings, ServeError> {
    let hosts: Result<Vec<Nqn>, _> = spec.allow.iter().map(|name| Nqn::new(name)).collect();
    let hosts = hosts.map_err(|error| RunError::option("allow", error.why))?;
    Ok(Settings {
        fetch_window: u16::try_from(depth).unwrap_or(u16::MAX),
        hosts: (!hosts.is_empty()).then_some(hosts),
        ..Settings::default()
    })
}

fn entry(address: SocketAddr, nqn: &Nqn, settings: &Settings) -> DiscoveryEntry {
    DiscoveryEntry {
        family: AddressFamily::of(address.ip()),
        address: address.ip().to_string(),
        service: address.port().to_string(),
        port: 1,
        nqn: nqn.clone(),
        admin_entries: settings.admin_entries,
    }
}

fn begin(plan: ServeSpec, spec: &NvmeSpec) -> Result<NvmeServer, ServeError> {
    let parts = with_plugins(&plan.plugins).map_err(unusable)?;
    // a drive whose port is in use is not powered on
    let refused = |error: DoorError| RunError::option("nvme", error.to_string());
    let bound = Bound::to(&[spec.address], spec.network).map_err(refused)?;
    let clock = Wall::since(Instant::now());
    let server = Server::begin_on(&plan, &environment(&parts, &plan), on_file(&plan), clock)?;
    let settings = settings(spec, server.queue_depth())?;
    let durable = durable(&server, &plan.drive, spec)?;
    let nqn = durable.identity.nqn.clone();
    let mut subsystem = Subsystem::new(settings.clone(), media_shape(&server), durable);
    if let Some(record) = subsystem.durable_changed() {
        server.keep(&record.to_bytes()).map_err(unusable)?;
    }
    let server = Arc::new(server);
    let keeper = Arc::clone(&server);
    let keep = move |record: &_| {
        // the host must not treat a record as durable that is not durable
        let kept = keeper.keep(&flashatlas_nvme::Durable::to_bytes(record));
        kept.unwrap_or_else(|_| fall_silent());
    };
    let target = Arc::new(SubsystemTarget::new(subsystem, Powered(Arc::clone(&server)), keep));
    let discovery = Subsystem::discovery(settings.clone(), Vec::new());
    let discovery = Arc::new(SubsystemTarget::new(discovery, Nothing, |_| ()));
    let switch = Switch::new(vec![
        (nqn.as_str().to_owned(), Arc::clone(&target) as _),
        (DISCOVERY_NQN.to_owned(), Arc::clone(&discovery) as _),
    ]);
    let poll = Duration::from_nanos(spec.poll_ns);
    let options =
        Options { network: spec.network, threads: spec.threads, poll, ..Options::default() };
    let door = Door::serve(bound, vec![Arc::new(switch)], options).map_err(refused)?;
    let address = door.addresses()[0];
    discovery.update(|service| service.set_entries(vec![entry(address, &nqn, &settings)]));
    Ok(NvmeServer { server, plan, parts, target, door: Mutex::new(Some(door)), address, nqn })
}

#[pymethods]
impl NvmeServer {
    /// Powers the drive of a plan on (the JSON of a `ServeSpec`), and opens the port.
    #[new]
    fn new(py: Python<'_>, plan: &str) -> PyResult<NvmeServer> {
        let plan: ServeSpec = serde_json::from_str(plan)
            .map_err(|e| InputError::new_err(format!("the plan cannot be read: {e}")))?;
        let Some(spec) = plan.nvme.clone() else {
            return Err(InputError::new_err("the plan has no key `nvme`"));
        };
        let begun = guarded(py, None, |_| Ok(begin(plan, &spec)))?;
        begun.map_err(|error| match error {
            ServeError::Run(error) => to_python(&error),
            ServeError::Image(..) => InputError::new_err(error.to_string()),
            ServeError::PowerLost => PowerLost::new_err(error.to_string()),
        })
    }

    /// Returns the address, the TCP port, and the name of the subsystem.
    fn place(&self) -> (String, u16, &str) {
        (self.address.ip().to_string(), self.address.port(), self.nqn.as_str())
    }

    /// Returns the numbers of damaged frames of the image, and of blocks with a damaged record.
    fn damage(&self) -> (Vec<u32>, Vec<u32>) {
        let found = self.server.found();
        let blocks = found.damaged_blocks.iter().map(|block| block.number());
        (found.damaged.iter().map(|frame| frame.0).collect(), blocks.collect())
    }

    /// Returns the state of the drive (JSON), or `None` if nothing is served any more.
    fn look(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.server.look().ok().map(|seen| seen.to_string()))
    }

    /// Returns the reason why nothing is served any more, or `None` while the drive is served.
    ///
    /// The first value is `True` if the power has failed.
    fn gone(&self, py: Python<'_>) -> Option<(bool, String)> {
        let gone = py.detach(|| self.server.gone());
        gone.map(|why| (why == Refused::PowerLost, why.to_string()))
    }

    /// Lets the power fail in the next flash operation.
    fn cut(&self) {
        self.server.cut();
    }

    /// Returns the number of associations so far, and the number of present associations.
    fn associations(&self, py: Python<'_>) -> (u64, usize) {
        py.detach(|| self.target.update(|s| (s.activity().associations, s.controllers().count())))
    }

    /// Closes the port, makes everything durable, and switches the power off.
    ///
    /// Returns the record with its tables (JSON) and a message about an error; each may be `None`.
    fn end(&self, py: Python<'_>) -> PyResult<(Option<String>, Option<String>)> {
        let ended = guarded(py, None, |_| {
            let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
            door.map(|door| door.close(PATIENCE));
            let health = (&*self.server).health();
            let last = self.target.update(|subsystem| subsystem.power_off(&health)).to_bytes();
            Ok(self.server.end_keeping(&environment(&self.parts, &self.plan), &last))
        })?;
        let record = ended.record.map(|mut record| {
            record["record"]["served"]["nvme"] = self.target.update(|subsystem| facts(subsystem));
            record.to_string()
        });
        Ok((record, ended.complaint))
    }
}

/// Returns the activity of hosts, for the record.
fn facts(subsystem: &Subsystem) -> Value {
    let activity = subsystem.activity();
    let commands =
        |kind| Value::Object(activity.commands(kind).map(counted).collect::<Map<_, _>>());
    json!({
        "hosts": activity.hosts.iter().map(Nqn::as_str).collect::<Vec<_>>(),
        "associations": activity.associations,
        "commands": {
            "admin": commands(Kind::Admin),
            "fabrics": commands(Kind::Fabrics),
            "io": commands(Kind::Io),
        },
    })
}

fn counted((name, count): (String, u64)) -> (String, Value) {
    (name, count.into())
}
