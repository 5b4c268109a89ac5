//! A served drive as the media of an NVMe controller, and the state of the controller in its image.

use crate::clock::Clock;
use crate::server::Server;
use crate::spec::{NvmeSpec, Refused, ServeError};
use flashatlas_device::smart::available_spare;
use flashatlas_nvme::{
    Durable, Health, Identity, IdentityError, Later, Media, MediaError, MediaShape, NamespaceNames,
    Nqn, Vitals, drive,
};
use flashatlas_sim::{Live, RunError};
use flashatlas_types::SECTOR_BYTES;

/// Bytes of the model number.
const MODEL_MAX: usize = 40;

/// Answers as [`Server`] does, from any number of threads.
impl<C: Clock> Media for &Server<C> {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        Server::read(self, out, offset).map_err(of_refused)
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), MediaError> {
        Server::write(self, data, offset, fua).map_err(of_refused)
    }

    fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        Server::trim(self, offset, bytes, false).map_err(of_refused)
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        Server::flush(self).map_err(of_refused)
    }

    fn is_free(&mut self) -> bool {
        Server::is_free(self)
    }

    fn submit_read(&mut self, offset: u64, out: &mut [u8]) -> Result<Option<Later>, MediaError> {
        Server::submit_read(self, out, offset).map(|ticket| ticket.map(Later)).map_err(of_refused)
    }

    fn submit_write(&mut self, offset: u64, data: &[u8]) -> Result<Option<Later>, MediaError> {
        Server::submit_write(self, data, offset).map(|ticket| ticket.map(Later)).map_err(of_refused)
    }

    fn wait(&mut self, later: Later) -> Result<(), MediaError> {
        Server::wait(self, later.0).map_err(of_refused)
    }

    fn is_complete(&mut self, later: Later) -> bool {
        Server::is_complete(self, later.0)
    }

    fn waited_for(&mut self, commands: usize) {
        Server::waited_for(self, commands);
    }

    /// Returns the health of the drive; a drive that is not served any more takes no writes.
    fn health(&mut self) -> Health {
        let stopped = || Health { read_only: true, ..Health::default() };
        let health = |live: &mut Live, written| {
            let powered = live.now();
            drive::health(live.drive(), powered, written)
        };
        self.seen(health).unwrap_or_else(|_| stopped())
    }

    fn vitals(&mut self) -> Vitals {
        let usual = Health::default().vitals();
        let spare = |live: &mut Live, _| {
            let drive = live.drive().ssd();
            Vitals {
                available_spare: available_spare(drive.medium()),
                read_only: drive.is_read_only(),
                ..usual
            }
        };
        self.seen(spare).unwrap_or(Vitals { read_only: true, ..usual })
    }
}

fn of_refused(refused: Refused) -> MediaError {
    match refused {
        Refused::NoSpace(_) => MediaError::OutOfSpace,
        Refused::ReadOnly(_) => MediaError::ReadOnly,
        Refused::Unreadable(_) => MediaError::Unreadable,
        Refused::PowerLost => MediaError::PowerLost,
        Refused::Range(_) | Refused::Failed(_) => MediaError::Other,
    }
}

/// Returns the shape of a served drive as a namespace.
///
/// The cache is volatile, whatever the controller's write cache does: changes of the medium wait in
/// the server until they must be durable.
pub fn media_shape<C: Clock>(server: &Server<C>) -> MediaShape {
    MediaShape {
        blocks: server.sectors(),
        block_bytes: SECTOR_BYTES,
        unit_blocks: server.unit_bytes() / SECTOR_BYTES,
        trims_survive: server.keeps_trims(),
        volatile_cache: true,
    }
}

/// Returns the state of the controller that the image keeps, or the state of a new controller.
/// `drive` is the name of the drive.
///
/// # Errors
/// Returns an error if a name in the plan is not valid, or if the state in the image cannot be
/// used.
pub fn durable<C: Clock>(
    server: &Server<C>,
    drive: &str,
    spec: &NvmeSpec,
) -> Result<Durable, ServeError> {
    let unusable = |why: String| ServeError::Run(RunError::Unusable(why));
    let mut durable = match server.kept().map_err(|why| unusable(why.to_string()))? {
        Some(record) => Durable::from_bytes(&record).map_err(|why| unusable(why.to_string()))?,
        None => new(drive, &spec.fresh).map_err(|why| unusable(why.to_string()))?,
    };
    if let Some(nqn) = &spec.nqn {
        let named = Nqn::new(nqn);
        durable.identity.nqn = named.map_err(|error| RunError::option("nqn", error.why))?;
    }
    durable.identity.firmware = env!("CARGO_PKG_VERSION").into();
    Ok(durable)
}

/// Returns the state of a new controller, whose names are made from `fresh`.
fn new(drive: &str, fresh: &[u8; 16]) -> Result<Durable, IdentityError> {
    let hex: String = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
    let model: String = format!("FlashAtlas {drive}")
        .chars()
        .map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
        .take(MODEL_MAX)
        .collect();
    let [a, b, c, d, e] = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    let mut namespace = NamespaceNames { nguid: *fresh, ..NamespaceNames::default() };
    namespace.eui64.copy_from_slice(&fresh[8..]);
    // names that nobody has registered (IEEE: locally administered, not of a group)
    for first in [&mut namespace.nguid[8], &mut namespace.eui64[0]] {
        *first = *first & !1 | 2;
    }
    Durable::new(Identity {
        serial: hex[..20].into(),
        model,
        firmware: String::new(),
        // Base 4.7: a name that is made from a UUID
        nqn: Nqn::new(&format!("nqn.2014-08.org.nvmexpress:uuid:{a}-{b}-{c}-{d}-{e}"))?,
        namespace,
    })
}
