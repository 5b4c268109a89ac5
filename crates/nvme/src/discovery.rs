//! Discovery log (Base 5.1.12.3.1).

use crate::bytes::Page;
use crate::{ControllerId, Nqn};
use std::net::IpAddr;

/// Family of a transport address (ADRFAM).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressFamily {
    /// IPv4.
    V4 = 1,
    /// IPv6.
    V6 = 2,
}

/// Entry of the discovery log: a port at which a subsystem is found, over TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveryEntry {
    /// Family of the address.
    pub family: AddressFamily,
    /// Address, as text. An unspecified address (`0.0.0.0`, `::`) stands for the address at which
    /// the host has reached the service.
    pub address: String,
    /// TCP port, as text.
    pub service: String,
    /// Number of the port in the subsystem.
    pub port: u16,
    /// Name of the subsystem.
    pub nqn: Nqn,
    /// Largest admin queue, in entries.
    pub admin_entries: u16,
}

impl AddressFamily {
    /// Returns the family of an address.
    pub const fn of(address: IpAddr) -> AddressFamily {
        if address.is_ipv4() { AddressFamily::V4 } else { AddressFamily::V6 }
    }
}

impl DiscoveryEntry {
    /// Returns the family and the address for a host that has reached the service at an address.
    fn place(&self, reached: Option<IpAddr>) -> (AddressFamily, String) {
        let given = self.address.parse::<IpAddr>();
        match reached.filter(|_| given.is_ok_and(|address| address.is_unspecified())) {
            Some(at) => (AddressFamily::of(at), at.to_string()),
            None => (self.family, self.address.clone()),
        }
    }
}

/// Returns the log page for a host that has reached the service at this address.
pub(crate) fn page(
    generation: u64,
    entries: &[DiscoveryEntry],
    reached: Option<IpAddr>,
) -> Vec<u8> {
    let mut page = Page::new(1024 * (1 + entries.len()));
    page.u64(0, generation).u64(8, entries.len() as u64);
    for (at, entry) in (1024..).step_by(1024).zip(entries) {
        let (family, address) = entry.place(reached);
        page.u8(at, 3) // TCP
            .u8(at + 1, family as u8)
            .u8(at + 2, 2) // a subsystem with namespaces
            .u8(at + 3, 1 << 2) // flow control of submission queues can be switched off
            .u16(at + 4, entry.port)
            .u16(at + 6, ControllerId::DYNAMIC.0)
            .u16(at + 8, entry.admin_entries)
            .ascii(at + 32, 32, &entry.service)
            .text(at + 256, 256, entry.nqn.as_str())
            .ascii(at + 512, 256, &address);
    }
    page.take()
}
