//! Rows of features, log pages and Identify data structures.

use super::{CONTROLLER, Field, NAMESPACE, Row, both, discovery, no, yes};

pub static FEATURES: &[Row] = &[
    yes(
        0x01,
        "Arbitration",
        "Base 5.1.25.1.1",
        "round robin, one command at a time; cannot be changed",
    )
    .effects(CONTROLLER),
    yes(0x02, "Power Management", "Base 5.1.25.1.2", "one power state; the workload hint is kept")
        .effects(CONTROLLER),
    no(0x03, "LBA Range Type", "NVM 4.1.3.1", "optional"),
    yes(0x04, "Temperature Threshold", "Base 5.1.25.1.3", "composite temperature; saveable")
        .effects(CONTROLLER),
    yes(0x05, "Error Recovery", "NVM 4.1.3.2", "reads are not retried; cannot be changed")
        .effects(NAMESPACE),
    yes(0x06, "Volatile Write Cache", "Base 5.1.25.1.4", "if the media have one; saveable")
        .effects(CONTROLLER),
    yes(0x07, "Number of Queues", "Base 5.1.25.2.1", "").effects(CONTROLLER),
    yes(
        0x0A,
        "Write Atomicity Normal",
        "NVM 4.1.3.3",
        "the value is kept; writes stay as atomic as AWUN and NAWUN say",
    )
    .effects(CONTROLLER),
    both(0x0B, "Asynchronous Event Configuration", "Base 5.1.25.1.5", "").effects(CONTROLLER),
    no(0x0C, "Autonomous Power State Transition", "Base 5.1.25.1.6", "one power state"),
    no(0x0D, "Host Memory Buffer", "Base 5.1.25.2.4", "of PCI Express"),
    no(0x0E, "Timestamp", "Base 5.1.25.1.7", "no clock"),
    both(0x0F, "Keep Alive Timer", "Base 5.1.25.1.8", "").effects(CONTROLLER),
    no(
        0x10,
        "Host Controlled Thermal Management",
        "Base 5.1.25.1.9",
        "no temperature is simulated",
    ),
    no(0x11, "Non-Operational Power State Config", "Base 5.1.25.1.10", "one power state"),
    no(0x16, "Host Behavior Support", "Base 5.1.25.1.14", "nothing to switch on"),
    yes(0x19, "I/O Command Set Profile", "Base 5.1.25.1.17", "one command set; cannot be changed")
        .effects(CONTROLLER),
    no(0x1D, "Flexible Data Placement", "Base 5.1.25.1.20", "no data placement yet"),
    no(0x80, "Software Progress Marker", "Base 5.1.25.1.27", "nothing boots from the drive"),
    yes(0x81, "Host Identifier", "Base 5.1.25.1.28", "the value from Connect; cannot be changed")
        .effects(CONTROLLER),
    no(0x84, "Namespace Write Protection Config", "Base 5.1.25.1.31", "optional"),
];

pub static LOGS: &[Row] = &[
    both(0x00, "Supported Log Pages", "Base 5.1.12.1.1", "").bit(Field::Lpa, 5),
    yes(0x01, "Error Information", "Base 5.1.12.1.2", "64 entries"),
    yes(
        0x02,
        "SMART / Health Information",
        "Base 5.1.12.1.3",
        "of the controller; busy time is not counted",
    ),
    yes(0x03, "Firmware Slot Information", "Base 5.1.12.1.4", "one slot, read only"),
    yes(0x04, "Changed Attached Namespace List", "Base 5.1.12.1.5", ""),
    both(0x05, "Commands Supported and Effects", "Base 5.1.12.1.6", "").bit(Field::Lpa, 1),
    no(0x06, "Device Self-test", "Base 5.1.12.1.7", "no self-test"),
    no(0x07, "Telemetry Host-Initiated", "Base 5.1.12.1.8", "the run record has more"),
    no(0x08, "Telemetry Controller-Initiated", "Base 5.1.12.1.9", "the run record has more"),
    no(0x09, "Endurance Group Information", "Base 5.1.12.1.10", "no endurance groups yet"),
    no(0x0C, "Asymmetric Namespace Access", "Base 5.1.12.1.13", "all paths are alike"),
    no(0x0D, "Persistent Event", "Base 5.1.12.1.14", "optional"),
    both(0x12, "Feature Identifiers Supported and Effects", "Base 5.1.12.1.18", "")
        .bit(Field::Lpa, 5),
    both(0x13, "NVMe-MI Commands Supported and Effects", "Base 5.1.12.1.19", "none are supported")
        .bit(Field::Lpa, 5),
    no(0x20, "FDP Configurations", "Base 5.1.12.1.28", "no data placement yet"),
    discovery(0x70, "Discovery", "Base 5.1.12.3.1", ""),
    no(0x71, "Host Discovery", "Base 5.1.12.3.2", "of central discovery controllers"),
    no(0x80, "Reservation Notification", "Base 5.1.12.1.32", "no reservations"),
    no(0x81, "Sanitize Status", "Base 5.1.12.1.33", "no Sanitize"),
    yes(0xC0, "Write amplification by cause", "vendor specific", "layout below"),
];

pub static IDENTIFY: &[Row] = &[
    yes(0x00, "Identify Namespace", "NVM 4.1.5.1", ""),
    both(0x01, "Identify Controller", "Base 5.1.13.2.1", ""),
    yes(0x02, "Active Namespace ID list", "Base 5.1.13.2.2", ""),
    yes(0x03, "Namespace Identification Descriptor list", "Base 5.1.13.2.3", ""),
    no(0x04, "NVM Set List", "Base 5.1.13.2.4", "no NVM sets"),
    yes(
        0x05,
        "I/O Command Set specific Identify Namespace",
        "Base 5.1.13.2.5",
        "of the NVM Command Set",
    ),
    yes(
        0x06,
        "I/O Command Set specific Identify Controller",
        "Base 5.1.13.2.6",
        "of the NVM Command Set",
    ),
    yes(
        0x07,
        "I/O Command Set specific Active Namespace ID list",
        "Base 5.1.13.2.7",
        "of the NVM Command Set",
    ),
    yes(0x08, "I/O Command Set Independent Identify Namespace", "Base 5.1.13.2.8", ""),
    no(0x10, "Allocated Namespace ID list", "Base 5.1.13.2.9", "of Namespace Management"),
    no(0x13, "Controller list", "Base 5.1.13.2.12", "of Namespace Management"),
    no(0x17, "UUID List", "Base 5.1.13.2.14", "optional"),
    no(0x18, "Domain List", "Base 5.1.13.2.15", "one domain"),
    no(0x19, "Endurance Group List", "Base 5.1.13.2.16", "no endurance groups yet"),
    yes(0x1C, "Identify I/O Command Set", "Base 5.1.13.2.19", ""),
];
