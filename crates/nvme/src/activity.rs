//! Activity of hosts since the power came on.

use crate::support::{Kind, rows};
use crate::{Entry, Nqn, QueueId, command::fabrics};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts whose names are kept.
const HOSTS: usize = 64;

/// Activity of the hosts of a subsystem since the power came on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Names of the hosts that connected, at most 64.
    pub hosts: BTreeSet<Nqn>,
    /// Associations of hosts with controllers.
    pub associations: u64,
    admin: BTreeMap<u8, u64>,
    fabrics: BTreeMap<u8, u64>,
    io: BTreeMap<u8, u64>,
}

impl Activity {
    /// Counts an association of a host.
    pub(crate) fn associated(&mut self, host: &Nqn) {
        self.associations += 1;
        if self.hosts.len() < HOSTS {
            self.hosts.insert(host.clone());
        }
    }

    /// Counts a command.
    pub(crate) fn command(&mut self, queue: QueueId, entry: &Entry) {
        let (table, code) = match entry.opcode() {
            fabrics::OPCODE => (&mut self.fabrics, entry.fabrics_type()),
            opcode if queue == QueueId::ADMIN => (&mut self.admin, opcode),
            opcode => (&mut self.io, opcode),
        };
        *table.entry(code).or_default() += 1;
    }

    /// Returns the number of commands of each code of this kind. Each item has the name of the
    /// code, or the number of the code if the specification has no name.
    ///
    /// # Panics
    /// Panics if this kind is no kind of command.
    pub fn commands(&self, kind: Kind) -> impl Iterator<Item = (String, u64)> + '_ {
        let table = match kind {
            Kind::Admin => &self.admin,
            Kind::Fabrics => &self.fabrics,
            Kind::Io => &self.io,
            Kind::Feature | Kind::Log | Kind::Identify => panic!("{kind:?} is a kind of command"),
        };
        table.iter().map(move |(&code, &count)| {
            let row = rows(kind).iter().find(|row| row.code == code);
            (row.map_or_else(|| format!("{code:02X}h"), |row| row.name.to_owned()), count)
        })
    }
}
