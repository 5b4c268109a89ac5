//! Identify data structures (Base 5.1.13, NVM 4.1.5).

use crate::bytes::Page;
use crate::errors::{self, Refused, invalid};
use crate::events;
use crate::features::{CRITICAL_KELVINS, WARNING_KELVINS, supported_events};
use crate::identity::{DISCOVERY_NQN, Identity, Namespace};
use crate::properties::VERSION;
use crate::support::{Field, capabilities};
use crate::{ControllerId, Entry, NamespaceId, Settings, Status};

/// Bytes of every Identify data structure.
pub(crate) const BYTES: usize = 4096;
/// Command set identifier of the NVM Command Set.
const NVM: u32 = 0;

/// Subject of an Identify command.
pub(crate) struct Identified<'a> {
    pub discovery: bool,
    pub controller: ControllerId,
    pub identity: &'a Identity,
    pub namespaces: &'a [Namespace],
    pub settings: &'a Settings,
}

impl Identified<'_> {
    /// Returns the data structure that a command asks for; the structure must be supported.
    pub fn answer(&self, entry: &Entry) -> Result<Vec<u8>, Refused> {
        let (cns, csi) = (entry.at(10) as u8, entry.at(11) >> 24);
        if matches!(cns, 0x05..=0x07) && csi != NVM {
            return Err(invalid(11, 24));
        }
        match cns {
            0x00 | 0x05 => {
                let namespace = self.namespace(entry)?;
                // CNS 05h of the NVM Command Set has protection information and limits that are
                // all 0 here
                Ok(if cns == 0 { namespace_page(namespace) } else { vec![0; BYTES] })
            }
            0x01 => Ok(self.controller_page()),
            0x02 | 0x07 => self.active(entry),
            0x03 => Ok(descriptors(self.namespace(entry)?)),
            0x06 => Ok(vec![0; BYTES]), // no limits of Verify, Write Zeroes and Dataset Management
            0x08 => {
                let namespace = self.namespace(entry)?;
                let mut page = Page::new(BYTES);
                page.u8(0, u8::from(!namespace.shape.volatile_cache) << 5).u8(1, 1);
                page.u8(14, 1); // ready
                Ok(page.take())
            }
            // one combination: the NVM Command Set
            _ => Ok(Page::new(BYTES).u64(0, 1).take()),
        }
    }

    /// Returns the namespace of a command. Each command of this kind takes valid identifiers only.
    fn namespace(&self, entry: &Entry) -> Result<&Namespace, Refused> {
        let nsid = entry.nsid().0 as usize;
        let namespace = nsid.checked_sub(1).and_then(|index| self.namespaces.get(index));
        namespace.ok_or(Status::INVALID_NAMESPACE.at(1, 0))
    }

    /// Returns the list of active namespaces (Base 5.1.13.2.2, 5.1.13.2.7).
    fn active(&self, entry: &Entry) -> Result<Vec<u8>, Refused> {
        let after = entry.nsid();
        if after.0 >= NamespaceId::ALL.0 - 1 {
            return Err(Status::INVALID_NAMESPACE.at(1, 0));
        }
        let mut page = Page::new(BYTES);
        let all = 1..=self.namespaces.len() as u32;
        for (at, nsid) in (0..BYTES).step_by(4).zip(all.filter(|&nsid| nsid > after.0)) {
            page.u32(at, nsid);
        }
        Ok(page.take())
    }

    /// Returns Identify Controller (Base 5.1.13.2.1).
    fn controller_page(&self) -> Vec<u8> {
        let (settings, discovery) = (self.settings, self.discovery);
        let mut page = Page::new(BYTES);
        page.ascii(4, 20, &self.identity.serial)
            .ascii(24, 40, &self.identity.model)
            .ascii(64, 8, &self.identity.firmware)
            .u8(77, settings.transfer_pages_log2) // MDTS
            .u16(78, self.controller.0)
            .u32(80, VERSION)
            .u32(92, supported_events(discovery) & !0xFF) // OAES: critical warnings have no bit
            .u8(111, if discovery { 2 } else { 1 }) // CNTRLTYPE
            .u8(259, events::REQUESTS as u8 - 1) // AERL
            .u8(261, capabilities(Field::Lpa, discovery) as u8 | EXTENDED_DATA)
            .u16(320, 1) // KAS: 100 ms
            .u16(514, settings.entries)
            .u32(536, SGLS);
        if discovery {
            let direct = 1;
            page.u32(96, TRAFFIC_KEEP_ALIVE).text(768, 256, DISCOVERY_NQN).u8(1806, direct);
            return page.take();
        }
        let volatile = self.namespaces.iter().any(|namespace| namespace.shape.volatile_cache);
        page.u8(76, 1 << 1) // CMIC: several controllers
            .u32(96, TRAFFIC_KEEP_ALIVE | 1) // CTRATT: host identifiers of 128 bits
            .u8(102, 1) // BPCAP: no boot partitions
            .u8(258, 3) // ACL: at least four, as recommended; each completes immediately
            .u8(260, 1 << 1 | 1) // FRMW: one firmware slot, read only
            .u8(262, errors::ENTRIES as u8 - 1) // ELPE
            .u16(266, WARNING_KELVINS)
            .u16(268, CRITICAL_KELVINS)
            .u8(319, 0xFF) // FWUG: no restriction
            .u8(512, 0x66) // SQES: 64 bytes
            .u8(513, 0x44) // CQES: 16 bytes
            .u32(516, self.namespaces.len() as u32) // NN
            .u16(520, capabilities(Field::Oncs, discovery) | SAVE_AND_SELECT)
            .u8(525, u8::from(volatile) | FLUSH_OF_ALL)
            // AWUN, AWUPF: one block. A write that does not lie in one unit may be cut by a power
            // failure between two of its blocks; NAWUPF has the promise for units.
            .u16(526, 0)
            .u16(528, 0)
            .text(768, 256, self.identity.nqn.as_str())
            .u32(1792, (64 + settings.capsule_data) / 16) // IOCCSZ
            .u32(1796, 1) // IORCSZ: 16 bytes
            .u8(1803, 1) // MSDBD: one descriptor
            .u16(1804, capabilities(Field::Ofcs, discovery));
        page.take()
    }
}

/// Bit of LPA: offsets and long lengths in Get Log Page.
const EXTENDED_DATA: u8 = 1 << 2;
/// Bit of CTRATT: each command is a sign of life.
const TRAFFIC_KEEP_ALIVE: u32 = 1 << 6;
/// Bit of ONCS: Save of Set Features, and Select of Get Features.
const SAVE_AND_SELECT: u16 = 1 << 4;
/// Field of VWC: Flush takes NSID FFFFFFFFh.
const FLUSH_OF_ALL: u8 = 3 << 1;
/// SGLS: any alignment, lengths beyond the data, offsets, and transport data blocks.
const SGLS: u32 = 1 | 1 << 18 | 1 << 20 | 1 << 21;

/// Returns Identify Namespace of the NVM Command Set (NVM 4.1.5.1).
fn namespace_page(namespace: &Namespace) -> Vec<u8> {
    let shape = &namespace.shape;
    let mut page = Page::new(BYTES);
    // after a power failure a trimmed unit may hold its old data again, so nothing is promised
    let zeros_and_deallocate = 1 | 1 << 3;
    page.u64(0, shape.blocks)
        .u64(8, shape.blocks)
        .u64(16, shape.blocks)
        .u8(30, 1) // NMIC: shared by controllers
        .u8(33, if shape.trims_survive { zeros_and_deallocate } else { 0 })
        .u128(48, shape.bytes().into())
        .put(104, namespace.names.nguid)
        .put(120, namespace.names.eui64)
        .u32(128, shape.block_bytes.trailing_zeros() << 16); // LBAF0
    if shape.unit_blocks > 1 {
        // R2 of docs/RELIABILITY.md, which holds for every scheme: after a power failure a unit has
        // its old or its new content and no mixture. So a write inside a unit is atomic, and the
        // units are the boundaries (NVM 2.1.4). Compare and Write is not fused: ACWU is 0.
        let last = u16::try_from(shape.unit_blocks - 1).unwrap_or(u16::MAX);
        let (atomic, optimal) = (1 << 1, 1 << 4);
        page.u8(24, atomic | optimal) // NSFEAT
            .u16(34, last) // NAWUN
            .u16(36, last) // NAWUPF
            .u16(40, last) // NABSN
            .u16(44, last) // NABSPF
            .u16(64, last) // NPWG: smaller writes are read, changed and written
            .u16(66, last) // NPWA
            .u16(68, last) // NPDG: a trim does not change units that it covers only in part
            .u16(70, last); // NPDA
    }
    page.take()
}

/// Returns the Namespace Identification Descriptor list (Base 5.1.13.2.3).
fn descriptors(namespace: &Namespace) -> Vec<u8> {
    let names = &namespace.names;
    let mut page = Page::new(BYTES);
    let mut at = 0;
    if names.eui64 != [0; 8] {
        page.u8(at, 1).u8(at + 1, 8).put(at + 4, names.eui64);
        at += 12;
    }
    if names.nguid != [0; 16] {
        page.u8(at, 2).u8(at + 1, 16).put(at + 4, names.nguid);
        at += 20;
    }
    page.u8(at, 4).u8(at + 1, 1).u8(at + 4, NVM as u8);
    page.take()
}
