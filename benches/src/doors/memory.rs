//! The floor: the door and the controller core over memory.

use crate::load::Failed;
use flashatlas_nvme::{
    Durable, Identity, Media, MediaError, MediaShape, NamespaceNames, Nqn, Settings, Subsystem,
};
use flashatlas_nvme_tcp::door::{Door, Listener, Options, SubsystemTarget};
use std::io::Read;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

const NQN: &str = "nqn.2026-11.example:memory";

/// Bytes in memory.
struct Memory(RwLock<Vec<u8>>);

impl Media for &Memory {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), MediaError> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], _fua: bool) -> Result<(), MediaError> {
        let mut bytes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn trim(&mut self, _offset: u64, _bytes: u64) -> Result<(), MediaError> {
        Err(MediaError::Other)
    }

    fn flush(&mut self) -> Result<(), MediaError> {
        Ok(())
    }

    fn is_free(&mut self) -> bool {
        true
    }
}

/// Serves memory of this size at a free port of 127.0.0.1 until standard input ends.
pub fn serve(bytes: u64) -> Result<(), Failed> {
    let identity = Identity {
        serial: "1".into(),
        model: "memory".into(),
        firmware: "1".into(),
        nqn: Nqn::new(NQN)?,
        namespace: NamespaceNames::default(),
    };
    let shape = MediaShape::sectors(bytes / 512, 8);
    let subsystem = Subsystem::new(Settings::default(), shape, Durable::new(identity)?);
    let memory = Memory(RwLock::new(vec![0; usize::try_from(bytes)?]));
    let target = Arc::new(SubsystemTarget::new(subsystem, memory, |_| ()));
    let listener = Listener { address: ([127, 0, 0, 1], 0).into(), target };
    let door = Door::open(&[listener], Options::default())?;
    println!("{} {NQN}", door.addresses()[0]);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    door.close(Duration::from_secs(1));
    Ok(())
}
