//! Several targets behind one listener. Hosts tell the targets apart by name.

use super::target::{Connected, Target};
use crate::command::Command;
use crate::limits::Limits;
use crate::pdu::COMPLETION_BYTES;
use std::net::SocketAddr;
use std::sync::Arc;

/// Position of the subsystem's name in the data of Connect (Base Specification, 6.3).
const SUBSYSTEM_NQN: std::ops::Range<usize> = 256..512;

/// Targets with the names of their subsystems, mostly a subsystem and a discovery service.
pub struct Switch {
    targets: Vec<(String, Arc<dyn Target>)>,
}

impl Switch {
    /// Returns a switch between these targets. The first one refuses the names that nobody has, and
    /// its limits hold for all.
    ///
    /// # Panics
    /// Panics without a target.
    pub fn new(targets: Vec<(String, Arc<dyn Target>)>) -> Switch {
        assert!(!targets.is_empty(), "a switch has targets");
        Switch { targets }
    }
}

impl Target for Switch {
    fn limits(&self) -> Limits {
        self.targets[0].1.limits()
    }

    fn connect(
        &self,
        command: &Command,
        address: SocketAddr,
    ) -> Result<Connected, [u8; COMPLETION_BYTES]> {
        let name = text(command.data.get(SUBSYSTEM_NQN).unwrap_or_default());
        let found = self.targets.iter().position(|(nqn, _)| nqn.as_bytes() == name);
        let at = found.unwrap_or(0);
        let mut connected = self.targets[at].1.connect(command, address)?;
        // The numbers of a target are identifiers of controllers, which have 16 bits.
        connected.association |= (at as u64) << 32;
        Ok(connected)
    }
}

/// Returns the text of a field that zeros fill up.
pub(super) fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    &field[..end]
}
