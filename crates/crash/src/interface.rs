//! Interface through which the host's commands reach a drive.

use crate::workloads::{SEQUENCES, WORKLOADS, Workload};
use crate::{CrashError, Fault, Faults, nvme};

/// Name of the workload with every short sequence of operations on a blank drive.
pub const ALL_SEQUENCES: &str = "all";

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// The host's commands go to the drive, or to the layer at the top.
    Device,
    /// The host's commands go through an NVMe controller.
    Nvme,
}

/// Every interface with its name and a one-line description, in the order of [`Interface`].
const INTERFACES: [(Interface, &str, &str); 2] = [
    (
        Interface::Device,
        "device",
        "the host's commands go to the drive, or to the layer at the top",
    ),
    (
        Interface::Nvme,
        "nvme",
        "the host's commands go through an NVMe controller, which also has a record to keep",
    ),
];

/// Faults behind an NVMe controller: the ways in which a power failure leaves an operation half
/// done without a loss of durable data.
const BEHIND_NVME: [Fault; 5] =
    [Fault::TornGarbage, Fault::TornPart, Fault::TornOnce, Fault::TornErase, Fault::NvmLines];

impl Interface {
    /// Returns all interfaces.
    pub fn all() -> impl Iterator<Item = Interface> {
        INTERFACES.iter().map(|interface| interface.0)
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        INTERFACES[self as usize].1
    }

    /// Returns the description, in one line.
    pub const fn summary(self) -> &'static str {
        INTERFACES[self as usize].2
    }

    /// Returns the interface of a name.
    ///
    /// # Errors
    /// Returns an error for an unknown name; the error lists the names that exist.
    pub fn parse(name: &str) -> Result<Interface, CrashError> {
        let known = Interface::all().find(|interface| interface.name() == name);
        let names = Interface::all().map(Interface::name);
        known.ok_or_else(|| CrashError::unknown("interface", name, names))
    }

    /// Parses names of faults like [`Faults::parse`]. `all` means every fault that is tried through
    /// this interface.
    ///
    /// # Errors
    /// Returns an error for an unknown name, and for a fault that is not tried through this
    /// interface.
    pub fn faults(self, text: &str) -> Result<Faults, CrashError> {
        let faults = Faults::parse(text)?;
        if self == Interface::Device {
            return Ok(faults);
        }
        let here = BEHIND_NVME.into_iter().fold(Faults::NONE, Faults::with);
        for name in text.split(',').map(str::trim).filter(|&name| name != "all") {
            let other = Fault::all().find(|&fault| fault.name() == name && !here.has(fault));
            if other.is_some() {
                let names = BEHIND_NVME.map(Fault::name).into_iter().chain(["all", "none"]);
                return Err(CrashError::unknown("fault behind an NVMe controller", name, names));
            }
        }
        Ok(faults.and(here))
    }

    /// Returns the workloads, by name.
    pub(crate) fn tasks(self) -> Vec<Task> {
        match self {
            Interface::Device => {
                let named = WORKLOADS.iter().map(Task::Commands);
                named.chain([Task::Sequences]).collect()
            }
            Interface::Nvme => nvme::WORKLOADS.iter().map(Task::Nvme).collect(),
        }
    }
}

/// Work on a drive.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// A workload of the drive's own commands.
    Commands(&'static Workload),
    /// All short sequences of the drive's own commands.
    Sequences,
    /// A workload of commands of an NVMe host.
    Nvme(&'static nvme::workloads::Workload),
}

impl Task {
    /// Returns the workload of a name, through any interface.
    ///
    /// # Errors
    /// Returns an error for an unknown name; the error lists the names that exist.
    pub fn named(name: &str) -> Result<Task, CrashError> {
        let all: Vec<Task> = Interface::all().flat_map(Interface::tasks).collect();
        let known = all.iter().find(|task| task.name() == name).copied();
        known.ok_or_else(|| CrashError::unknown("workload", name, all.iter().map(|t| t.name())))
    }

    /// Returns the interface of the workload.
    pub const fn interface(self) -> Interface {
        match self {
            Task::Commands(_) | Task::Sequences => Interface::Device,
            Task::Nvme(_) => Interface::Nvme,
        }
    }

    /// Returns the name of the workload.
    pub const fn name(self) -> &'static str {
        match self {
            Task::Commands(workload) => workload.name,
            Task::Sequences => ALL_SEQUENCES,
            Task::Nvme(workload) => workload.name,
        }
    }

    /// Returns `true` if every unit is written before the workload begins.
    pub const fn filled(self) -> bool {
        match self {
            Task::Commands(workload) => workload.filled,
            Task::Sequences => false,
            Task::Nvme(workload) => workload.filled,
        }
    }

    /// Returns `true` if the drive has the smallest over-provisioning that its scheme accepts.
    pub const fn tight(self) -> bool {
        matches!(self, Task::Commands(workload) if workload.tight)
    }

    /// Returns `true` if this is a workload of its own, and not a set of sequences.
    pub const fn is_one(self) -> bool {
        !matches!(self, Task::Sequences)
    }

    /// Returns an error if the workload has no such seed.
    pub fn has_seed(self, seed: u64) -> Result<(), CrashError> {
        match self {
            Task::Sequences if seed >= SEQUENCES => {
                Err(CrashError::Sequence { number: seed, all: SEQUENCES })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_stands_at_its_number_and_every_workload_has_a_name_of_its_own() {
        assert!(Interface::all().enumerate().all(|(i, interface)| interface as usize == i));
        let mut names: Vec<&str> =
            Interface::all().flat_map(Interface::tasks).map(Task::name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_fault_that_is_not_tried_through_an_interface_is_refused_by_name() {
        let refused = Interface::Nvme.faults("torn-erase,program-failure").unwrap_err().to_string();
        assert!(
            refused.contains("`program-failure`") && refused.contains("nvm-lines"),
            "{refused}"
        );
        let all = Interface::Nvme.faults("all").unwrap();
        assert!(all.has(Fault::TornOnce) && !all.has(Fault::PairedPages));
        assert_eq!(Interface::Device.faults("all").unwrap(), Faults::ALL);
        assert!(Interface::parse("nmve").unwrap_err().to_string().contains("`nvme`"));
    }
}
