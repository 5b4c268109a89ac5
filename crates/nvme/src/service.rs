//! The discovery service: a subsystem that lists others.

use crate::discovery::DiscoveryEntry;
use crate::durable::Durable;
use crate::events::Event;
use crate::identity::{DISCOVERY_NQN, Identity, NamespaceNames, Nqn};
use crate::settings::Settings;
use crate::{ControllerId, Subsystem};
use std::net::IpAddr;

impl Subsystem {
    /// Makes a discovery service that lists these entries.
    ///
    /// # Panics
    /// Panics if the settings are out of range.
    pub fn discovery(settings: Settings, entries: Vec<DiscoveryEntry>) -> Subsystem {
        settings.check();
        let identity = Identity {
            serial: String::new(),
            model: String::new(),
            firmware: String::new(),
            nqn: Nqn::new(DISCOVERY_NQN).expect("the discovery NQN is a valid name"),
            namespace: NamespaceNames::default(),
        };
        let durable = Durable::new(identity).expect("no text is too long");
        Subsystem::with(settings, true, Vec::new(), durable, entries)
    }

    /// Replaces the entries of the discovery log, and tells the hosts.
    pub fn set_entries(&mut self, entries: Vec<DiscoveryEntry>) {
        self.entries = entries;
        self.generation += 1;
        for controller in self.controllers.values_mut() {
            if controller.features.events & 1 << 31 != 0 {
                controller.events.raise(Event::DISCOVERY_CHANGED);
            }
        }
    }

    /// Notes the address at which a host has reached a controller, for the discovery log.
    pub fn set_reached(&mut self, controller: ControllerId, at: IpAddr) {
        if let Some(controller) = self.controllers.get_mut(&controller) {
            controller.reached = Some(at);
        }
    }
}
