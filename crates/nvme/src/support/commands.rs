//! Rows of commands.

use super::{CONTENT, CONTROLLER, Field, NAMESPACE, Row, both, no, yes};
use crate::command::{admin, fabrics, io};

pub static ADMIN: &[Row] = &[
    no(0x00, "Delete I/O Submission Queue", "Base 5.2.4", "queues of Fabrics end with Disconnect"),
    no(0x01, "Create I/O Submission Queue", "Base 5.2.2", "queues of Fabrics begin with Connect"),
    both(admin::GET_LOG_PAGE, "Get Log Page", "Base 5.1.12", "").effects(CONTROLLER),
    no(0x04, "Delete I/O Completion Queue", "Base 5.2.3", "queues of Fabrics end with Disconnect"),
    no(0x05, "Create I/O Completion Queue", "Base 5.2.1", "queues of Fabrics begin with Connect"),
    both(admin::IDENTIFY, "Identify", "Base 5.1.13", "").effects(CONTROLLER),
    yes(
        admin::ABORT,
        "Abort",
        "Base 5.1.1",
        "aborts Asynchronous Event Requests; what the media carry out goes on",
    )
    .effects(CONTROLLER),
    both(admin::SET_FEATURES, "Set Features", "Base 5.1.25", "").effects(CONTROLLER),
    both(admin::GET_FEATURES, "Get Features", "Base 5.1.11", "").effects(CONTROLLER),
    both(admin::ASYNC_EVENT_REQUEST, "Asynchronous Event Request", "Base 5.1.2", "")
        .effects(CONTROLLER),
    no(0x0D, "Namespace Management", "Base 5.1.21", "there is one namespace, the drive"),
    no(0x10, "Firmware Commit", "Base 5.1.8", "the firmware is the simulator"),
    no(0x11, "Firmware Image Download", "Base 5.1.9", "the firmware is the simulator"),
    no(0x14, "Device Self-test", "Base 5.1.5", "`flashatlas crash` tests"),
    no(0x15, "Namespace Attachment", "Base 5.1.20", "there is one namespace, the drive"),
    both(admin::KEEP_ALIVE, "Keep Alive", "Base 5.1.14", "the transport has the clock")
        .effects(CONTROLLER),
    no(0x19, "Directive Send", "Base 5.1.7", "no streams yet"),
    no(0x1A, "Directive Receive", "Base 5.1.6", "no streams yet"),
    no(0x1C, "Virtualization Management", "Base 5.2.6", "of PCI Express"),
    no(0x1D, "NVMe-MI Send", "Base 5.1.19", "no management endpoint"),
    no(0x1E, "NVMe-MI Receive", "Base 5.1.18", "no management endpoint"),
    no(0x20, "Capacity Management", "Base 5.1.3", "no endurance groups yet"),
    no(0x24, "Lockdown", "Base 5.1.15", "optional"),
    no(0x7C, "Doorbell Buffer Config", "Base 5.2.5", "of PCI Express"),
    no(0x80, "Format NVM", "Base 5.1.10", "a new image is a formatted drive"),
    no(0x81, "Security Send", "Base 5.1.24", "optional"),
    no(0x82, "Security Receive", "Base 5.1.23", "optional"),
    no(0x84, "Sanitize", "Base 5.1.22", "optional"),
    no(0x86, "Get LBA Status", "NVM 4.2.1", "optional"),
];

pub static FABRICS: &[Row] = &[
    both(fabrics::PROPERTY_SET, "Property Set", "Base 6.6", ""),
    both(fabrics::CONNECT, "Connect", "Base 6.3", "dynamic controllers only"),
    both(fabrics::PROPERTY_GET, "Property Get", "Base 6.5", ""),
    no(0x05, "Authentication Send", "Base 6.2", "no authentication"),
    no(0x06, "Authentication Receive", "Base 6.1", "no authentication"),
    yes(fabrics::DISCONNECT, "Disconnect", "Base 6.4", "").bit(Field::Ofcs, 0),
];

pub static IO: &[Row] = &[
    yes(io::FLUSH, "Flush", "Base 7.2", "also with NSID FFFFFFFFh").effects(NAMESPACE),
    yes(io::WRITE, "Write", "NVM 3.3.6", "FUA; no protection information, no directives")
        .effects(CONTENT | NAMESPACE),
    yes(io::READ, "Read", "NVM 3.3.4", "FUA makes the cache durable first").effects(NAMESPACE),
    no(0x04, "Write Uncorrectable", "NVM 3.3.7", "faults of the flash are injected below the host"),
    yes(io::COMPARE, "Compare", "NVM 3.3.1", "not fused with Write")
        .effects(NAMESPACE)
        .bit(Field::Oncs, 0),
    yes(
        io::WRITE_ZEROES,
        "Write Zeroes",
        "NVM 3.3.8",
        "FUA; DEAC where trims survive a power failure",
    )
    .effects(CONTENT | NAMESPACE)
    .bit(Field::Oncs, 3),
    yes(
        io::DATASET_MANAGEMENT,
        "Dataset Management",
        "NVM 3.3.3",
        "deallocates; other hints are accepted",
    )
    .effects(CONTENT | NAMESPACE)
    .bit(Field::Oncs, 2),
    yes(io::VERIFY, "Verify", "NVM 3.3.5", "").effects(NAMESPACE).bit(Field::Oncs, 7),
    no(0x0D, "Reservation Register", "Base 7.6", "no reservations"),
    no(0x0E, "Reservation Report", "Base 7.8", "no reservations"),
    no(0x11, "Reservation Acquire", "Base 7.5", "no reservations"),
    no(0x12, "I/O Management Receive", "Base 7.3", "no data placement yet"),
    no(0x15, "Reservation Release", "Base 7.7", "no reservations"),
    no(0x18, "Cancel", "Base 7.1", "optional"),
    no(0x19, "Copy", "NVM 3.3.2", "no copies inside the drive yet"),
    no(0x1D, "I/O Management Send", "Base 7.4", "no data placement yet"),
];
