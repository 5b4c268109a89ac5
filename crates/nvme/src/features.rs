//! Features (Base 4.4, 5.1.11, 5.1.25).

use crate::durable::Saved;
use crate::errors::{Refused, invalid};
use crate::{Entry, NamespaceId, Status};
use flashatlas_types::SeededBug;

/// Warning Composite Temperature Threshold (WCTEMP) in kelvins: 70 °C.
pub(crate) const WARNING_KELVINS: u16 = 343;
/// Critical Composite Temperature Threshold (CCTEMP) in kelvins: 80 °C.
pub(crate) const CRITICAL_KELVINS: u16 = 353;
/// Granularity of the keep alive timeout in milliseconds (KAS: one unit of 100 ms).
pub(crate) const KEEP_ALIVE_STEP: u32 = 100;

/// Identifiers of the supported features.
pub mod id {
    #![allow(missing_docs)]
    pub const ARBITRATION: u8 = 0x01;
    pub const POWER: u8 = 0x02;
    pub const TEMPERATURE: u8 = 0x04;
    pub const ERROR_RECOVERY: u8 = 0x05;
    pub const WRITE_CACHE: u8 = 0x06;
    pub const QUEUES: u8 = 0x07;
    pub const WRITE_ATOMICITY: u8 = 0x0A;
    pub const EVENTS: u8 = 0x0B;
    pub const KEEP_ALIVE: u8 = 0x0F;
    pub const COMMAND_SETS: u8 = 0x19;
    pub const HOST_ID: u8 = 0x81;
}

/// Current values of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Features {
    workload_hint: u8,
    pub over: u16,
    pub under: u16,
    pub cache: bool,
    /// `true` while the cache is being switched off.
    pub switching: bool,
    /// Number of I/O queues that were allocated to the host on its request.
    pub queues: Option<u16>,
    /// `true` if the host does without AWUN and NAWUN (DN). Writes are as atomic as before.
    disable_normal: bool,
    pub events: u32,
    pub keep_alive: u32,
}

/// Abilities of a controller, which decide the values of its features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub discovery: bool,
    /// `true` if the media have a volatile write cache.
    pub cache: bool,
    pub queues: u16,
    pub namespaces: u32,
    /// `true` if the host has created I/O queues.
    pub has_queues: bool,
    pub host_id: [u8; 16],
}

/// Result of Set Features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetResult {
    /// The value is set; dword 0 of the completion.
    Set(u32),
    /// The cache must be flushed first.
    CacheOff { save: bool },
}

/// Result of Get Features.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Got {
    pub value: u32,
    pub data: Option<[u8; 16]>,
}

/// Returns `true` if a Set Features command saves this feature.
const fn is_saveable(feature: u8) -> bool {
    matches!(feature, id::TEMPERATURE | id::WRITE_CACHE)
}

/// Returns `true` if a Set Features command changes this feature.
const fn is_changeable(feature: u8) -> bool {
    matches!(
        feature,
        id::POWER
            | id::TEMPERATURE
            | id::WRITE_CACHE
            | id::QUEUES
            | id::WRITE_ATOMICITY
            | id::EVENTS
            | id::KEEP_ALIVE
    )
}

impl Features {
    /// Returns the values after a reset: the saved values, or the defaults. `keep_alive` is the
    /// timeout of the Connect command.
    pub fn new(saved: &Saved, keep_alive: u32) -> Features {
        Features {
            workload_hint: 0,
            over: saved.over.unwrap_or(WARNING_KELVINS),
            under: saved.under.unwrap_or(0),
            cache: saved.cache.unwrap_or(true),
            switching: false,
            queues: None,
            disable_normal: false,
            events: 0,
            keep_alive: rounded(keep_alive),
        }
    }

    /// Returns `true` if a write must be durable when it completes.
    pub fn writes_through(&self) -> bool {
        !self.cache && !SeededBug::CacheOffIgnored.is_active()
            || self.switching && !SeededBug::SwitchTooLate.is_active()
    }

    /// Answers Get Features for a supported feature.
    pub fn get(&self, entry: &Entry, limits: &Limits, saved: &Saved) -> Result<Got, Refused> {
        let feature = entry.at(10) as u8;
        let nsid = entry.nsid();
        let valid = (1..=limits.namespaces).contains(&nsid.0);
        match feature {
            id::ERROR_RECOVERY if !valid => return Err(Status::INVALID_NAMESPACE.at(1, 0)),
            id::WRITE_CACHE if !limits.cache => return Err(invalid(10, 0)),
            _ if !valid && nsid != NamespaceId::NONE && nsid != NamespaceId::ALL => {
                return Err(Status::INVALID_NAMESPACE.at(1, 0));
            }
            _ => {}
        }
        let of = match entry.at(10) >> 8 & 7 {
            0 => *self,
            1 => Features::new(&Saved::default(), 0),
            2 => Features::new(saved, 0),
            3 => {
                let value = u32::from(is_saveable(feature))
                    | u32::from(feature == id::ERROR_RECOVERY) << 1
                    | u32::from(is_changeable(feature)) << 2;
                return Ok(Got { value, data: None });
            }
            _ => return Err(invalid(10, 8)),
        };
        let mut got = Got::default();
        got.value = match feature {
            id::POWER => u32::from(of.workload_hint) << 5,
            id::TEMPERATURE => match entry.at(11) >> 16 & 0x3F {
                0x00 => of.over.into(),
                0x10 => of.under.into(),
                _ => return Err(invalid(11, 16)),
            },
            id::WRITE_CACHE => of.cache.into(),
            id::QUEUES => queues_value(of.queues.unwrap_or(limits.queues)),
            id::WRITE_ATOMICITY => of.disable_normal.into(),
            id::EVENTS => of.events,
            id::KEEP_ALIVE => of.keep_alive,
            id::HOST_ID if entry.at(11) & 1 == 0 => return Err(invalid(11, 0)),
            id::HOST_ID => {
                got.data = Some(limits.host_id);
                0
            }
            _ => 0,
        };
        Ok(got)
    }

    /// Answers Set Features for a supported feature.
    pub fn set(
        &mut self,
        entry: &Entry,
        limits: &Limits,
        saved: &mut Saved,
    ) -> Result<SetResult, Refused> {
        let (feature, save) = (entry.at(10) as u8, entry.at(10) >> 31 != 0);
        let value = entry.at(11);
        check_namespace(feature, entry.nsid(), limits)?;
        if save && !is_saveable(feature) {
            return Err(Status::NOT_SAVEABLE.at(10, 31));
        }
        match feature {
            id::POWER if value & 0x1F != 0 => return Err(invalid(11, 0)),
            id::POWER => self.workload_hint = (value >> 5 & 7) as u8,
            id::TEMPERATURE => self.set_temperature(value, save.then_some(saved))?,
            id::WRITE_CACHE if !limits.cache => return Err(invalid(10, 0)),
            // one switch at a time, because the order of two switches would be unknown
            id::WRITE_CACHE if self.switching => return Err(Status::SEQUENCE_ERROR.into()),
            id::WRITE_CACHE if value & 1 == 0 && self.cache => {
                self.switching = true;
                return Ok(SetResult::CacheOff { save });
            }
            id::WRITE_CACHE => {
                self.cache = value & 1 != 0;
                if save {
                    saved.cache = Some(self.cache);
                }
            }
            id::QUEUES => return self.set_queues(value, limits).map(SetResult::Set),
            id::WRITE_ATOMICITY => self.disable_normal = value & 1 != 0,
            id::EVENTS => {
                if value & !supported_events(limits.discovery) != 0 {
                    return Err(invalid(11, 0));
                }
                self.events = value;
            }
            id::KEEP_ALIVE => self.keep_alive = rounded(value),
            id::COMMAND_SETS if value & 0x1FF != 0 => {
                return Err(Status::COMBINATION_REJECTED.at(11, 0));
            }
            id::COMMAND_SETS => {}
            id::HOST_ID => return Err(Status::SEQUENCE_ERROR.into()),
            // features without a changeable value: the value is 0
            _ if value != 0 => return Err(Status::NOT_CHANGEABLE.at(11, 0)),
            _ => {}
        }
        Ok(SetResult::Set(0))
    }

    fn set_temperature(&mut self, value: u32, saved: Option<&mut Saved>) -> Result<(), Refused> {
        if value >> 22 & 7 != 0 {
            return Err(invalid(11, 22)); // no hysteresis
        }
        let all_sensors = 0xF;
        if value >> 16 & 0xF != 0 && value >> 16 & 0xF != all_sensors {
            return Err(invalid(11, 16));
        }
        let kelvins = value as u16;
        let saved = match (value >> 20 & 3, saved) {
            (0, saved) => {
                self.over = kelvins;
                saved.map(|saved| &mut saved.over)
            }
            (1, saved) => {
                self.under = kelvins;
                saved.map(|saved| &mut saved.under)
            }
            _ => return Err(invalid(11, 20)),
        };
        if let Some(saved) = saved {
            *saved = Some(kelvins);
        }
        Ok(())
    }

    fn set_queues(&mut self, value: u32, limits: &Limits) -> Result<u32, Refused> {
        if limits.has_queues {
            return Err(Status::SEQUENCE_ERROR.into());
        }
        let (submission, completion) = (value as u16, (value >> 16) as u16);
        if submission == u16::MAX || completion == u16::MAX {
            return Err(invalid(11, if submission == u16::MAX { 0 } else { 16 }));
        }
        // the number of allocated queues stays until a reset
        let pairs = submission.min(completion) + 1;
        let got = *self.queues.get_or_insert(pairs.min(limits.queues));
        Ok(queues_value(got))
    }
}

/// Returns the events that a controller reports if the host asks for them (OAES, and the critical
/// warnings).
pub(crate) const fn supported_events(discovery: bool) -> u32 {
    if discovery { 1 << 31 } else { 1 << 8 | 0x3F }
}

/// Checks the namespace of Set Features against the scope of the feature (Base 4.4).
fn check_namespace(feature: u8, nsid: NamespaceId, limits: &Limits) -> Result<(), Refused> {
    let valid = (1..=limits.namespaces).contains(&nsid.0);
    let none = nsid == NamespaceId::NONE;
    match (feature == id::ERROR_RECOVERY, valid) {
        _ if nsid == NamespaceId::ALL => Ok(()),
        (true, true) => Ok(()),
        (false, true) => Err(Status::NOT_NAMESPACE_SPECIFIC.at(1, 0)),
        (false, false) if none => Ok(()),
        (_, false) => Err(Status::INVALID_NAMESPACE.at(1, 0)),
    }
}

/// Returns the value of the feature: the numbers of queues of both kinds, counted from 0.
fn queues_value(queues: u16) -> u32 {
    let last = u32::from(queues - 1);
    last | last << 16
}

/// Returns a keep alive timeout, rounded up to the granularity.
fn rounded(timeout: u32) -> u32 {
    timeout.checked_next_multiple_of(KEEP_ALIVE_STEP).unwrap_or(u32::MAX / 100 * 100)
}
