//! The link between host and drive. Each message about the map is encoded in a wire format
//! ([`crate::wire`]), and the receiver gets the message that was decoded from these bytes.
//!
//! A format encodes only a part of the messages. The other messages use JEDEC's format. With every
//! format, READ BUFFER and WRITE BUFFER are among the other messages. With the paper's format,
//! notices that name more than one group, regions to be dropped, or a reset are among them, too.
//! Reads without entries and responses without a notice are not encoded, because they are the same
//! for every drive.

use crate::wire::jedec::{HpbRead, NOTICE_MAX, Operation, READ_ID_MAX, ReadBuffer, WriteBuffer};
use crate::wire::{Cdb, ReadFlags, WireError, jedec, paper, samsung};
use flashatlas_device::hpb::{NO_ENTRY, Notice, Protect, Terms};
use flashatlas_types::{ConfigError, Lpn, Param, Params, Text};
use smallvec::SmallVec;

/// The parameter `hpb.wire`.
pub(super) const WIRE: Param<Text> = Param::choice(
    "hpb.wire",
    &["jedec", "samsung", "paper", "off"],
    "the format in which each command with map entries is encoded and decoded: JEDEC's HPB 2.0, \
     Samsung's driver of 2018, or the paper's (entries of 4 bytes, and the only format with \
     entries in responses); `off`: nothing is encoded",
)
.or("jedec");

/// Number of blocks of the longest HPB READ.
const BLOCKS_MAX: u64 = 255;
/// The number of a drive's only logical unit.
const LUN: u8 = 0;
/// Task tag of responses, which the link does not use.
const TASK_TAG: u8 = 0;
/// Value for a missing entry, in entries of 4 bytes.
const NO_SHORT_ENTRY: u32 = u32::MAX;

/// A wire format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WireFormat {
    Off,
    Paper,
    Samsung,
    Jedec,
}

impl WireFormat {
    /// Returns the wire format that `hpb.wire` names.
    pub fn parse(params: &Params) -> WireFormat {
        match params.get(WIRE) {
            "off" => WireFormat::Off,
            "paper" => WireFormat::Paper,
            "samsung" => WireFormat::Samsung,
            _ => WireFormat::Jedec,
        }
    }

    /// Returns an error unless this format can encode the messages between host and drive.
    ///
    /// Reads have entries for at most `pages` pages.
    ///
    /// # Errors
    /// Returns an error that names the key that contradicts the format.
    pub fn fits(self, terms: &Terms, pages: u64) -> Result<(), ConfigError> {
        let no = |key, why: &str| Err(ConfigError::new(key, why));
        match self {
            WireFormat::Off => Ok(()),
            WireFormat::Paper if terms.protect == Protect::Tagged => no(
                "hpb.wire",
                "the format `paper` has entries of 4 bytes, but entries of hpb.protect = tagged \
                 have 8 bytes; use hpb.protect = plain or encrypted, or another format",
            ),
            WireFormat::Samsung | WireFormat::Jedec if terms.piggyback => no(
                "hpb.wire",
                "only the format `paper` has entries in responses (hpb.update = piggyback); use \
                 hpb.wire = paper or off",
            ),
            WireFormat::Jedec if pages > BLOCKS_MAX => no(
                "hpb.max_read",
                "an HPB READ names at most 255 pages; give fewer, or use another hpb.wire",
            ),
            _ => Ok(()),
        }
    }
}

/// Both ends of the link.
pub(super) struct Link {
    format: WireFormat,
    entry_bytes: usize,
    subregions: u32,
    /// Number of the last read whose entries were sent ahead.
    read_id: u8,
    /// Data of the current command.
    data: Vec<u8>,
    /// Entries that arrived with a read.
    entries: Vec<u64>,
    /// Number of encoded commands.
    pub commands: u64,
    /// Number of bytes of commands, data and responses.
    pub bytes: u64,
}

impl Link {
    pub fn new(format: WireFormat, terms: &Terms) -> Link {
        Link {
            format,
            entry_bytes: terms.protect.entry_bytes() as usize,
            subregions: terms.subregions,
            read_id: 0,
            data: Vec::new(),
            entries: Vec::new(),
            commands: 0,
            bytes: 0,
        }
    }

    /// Carries a command over the link: counts the encoded command and decodes it.
    fn carry<T>(&mut self, cdb: &Cdb, decode: impl Fn(&[u8]) -> Result<T, WireError>) -> T {
        self.commands += 1;
        self.bytes += cdb.len() as u64;
        decoded(decode(cdb))
    }

    /// Carries a read of consecutive pages from `first` on, with an entry for each.
    ///
    /// Returns the entries that the drive receives.
    pub fn read<'a>(&'a mut self, first: Lpn, entries: &'a [u64]) -> &'a [u64] {
        let flags = ReadFlags::default();
        self.entries.clear();
        match self.format {
            WireFormat::Off => return entries,
            WireFormat::Jedec => self.read_by_jedec(first, entries),
            WireFormat::Samsung => {
                for (lba, &entry) in (first.0..).zip(entries) {
                    let sent = samsung::Read16 { flags, lba, entry };
                    let read = self.carry(&sent.encode(), samsung::Read16::decode);
                    self.entries.push(read.entry);
                }
            }
            WireFormat::Paper => {
                for (lba, &entry) in (first.0..).zip(entries) {
                    let (lba, entry) = (lba.into(), Some(shorten(entry)));
                    let sent = paper::Read16 { flags, entry, lba, blocks: 1, group: 0 };
                    let read = self.carry(&sent.encode(), paper::Read16::decode);
                    self.entries.push(read.entry.map_or(NO_ENTRY, lengthen));
                }
            }
        }
        &self.entries
    }

    /// Carries the first entry with the read. If the read has several entries, sends all of them
    /// ahead.
    fn read_by_jedec(&mut self, first: Lpn, entries: &[u64]) {
        let (flags, lba) = (ReadFlags::default(), first.0);
        let blocks = entries.len() as u8;
        let mut sent = HpbRead { flags, lba, entry: entries[0], blocks, read_id: 0 };
        if entries.len() > 1 {
            self.read_id = self.read_id % READ_ID_MAX + 1;
            sent.read_id = self.read_id;
            let bytes = size_of_val(entries) as u16;
            let ahead = WriteBuffer::Prefetch { lba, read_id: self.read_id, bytes };
            self.carry(&ahead.encode(), WriteBuffer::decode);
            self.send_entries(entries, size_of::<u64>());
            self.entries.extend(unpack(&self.data, size_of::<u64>()));
        }
        let read = self.carry(&sent.encode(), HpbRead::decode);
        if read.read_id == 0 {
            self.entries.push(read.entry);
        }
    }

    /// Carries the request for a subregion. Returns the subregion that the drive receives.
    pub fn fetch(&mut self, subregion: u32, pages: u32) -> u32 {
        if self.format == WireFormat::Off {
            return subregion;
        }
        let (region, of_region) = self.split(subregion);
        let bytes = pages * self.entry_bytes as u32;
        let sent = ReadBuffer { region, subregion: of_region, bytes };
        let read = self.carry(&sent.encode(), ReadBuffer::decode);
        self.join(read.region, read.subregion)
    }

    /// Returns the entries of a subregion as the host receives them.
    pub fn fetched(&mut self, mut entries: Vec<u64>) -> Vec<u64> {
        if self.format != WireFormat::Off {
            self.send_entries(&entries, self.entry_bytes);
            entries.clear();
            entries.extend(unpack(&self.data, self.entry_bytes));
        }
        entries
    }

    /// Carries the return of a region. Returns the region that the drive receives.
    pub fn give_back(&mut self, region: u32) -> u32 {
        if self.format == WireFormat::Off {
            return region;
        }
        let sent = WriteBuffer::Inactivate(region as u16);
        match self.carry(&sent.encode(), WriteBuffer::decode) {
            WriteBuffer::Inactivate(region) => region.into(),
            other => panic!("{sent:?} arrived as {other:?}"),
        }
    }

    /// Returns the notice in a response as the host receives it.
    pub fn notice(&mut self, mut notice: Box<Notice>) -> Box<Notice> {
        match self.format {
            WireFormat::Off => {}
            WireFormat::Paper => *notice = self.notice_by_paper(&notice),
            WireFormat::Samsung | WireFormat::Jedec => {
                assert!(
                    notice.pairs.is_empty(),
                    "the format {:?} has no entries in responses",
                    self.format
                );
                *notice = self.sense(&notice);
            }
        }
        notice
    }

    /// Carries a response UPIU with one group and entries.
    ///
    /// If the notice contains more than that, it is also carried in sense data.
    fn notice_by_paper(&mut self, notice: &Notice) -> Notice {
        let mut pairs = std::mem::take(&mut self.data);
        pairs.clear();
        for &(lpn, entry) in &notice.pairs {
            pairs.extend(lpn.0.to_be_bytes());
            pairs.extend(shorten(entry).to_be_bytes());
        }
        let plain = !notice.reset && notice.inactive.is_empty() && notice.active.len() <= 1;
        let group = notice.active.first().copied().filter(|_| plain);
        let sent = paper::Response::good(LUN, TASK_TAG, group, &pairs);
        let mut bytes = vec![0; sent.length()];
        decoded(sent.encode(&mut bytes));
        self.bytes += bytes.len() as u64;
        let response = decoded(paper::Response::decode(&bytes));
        let mut arrived = if plain { Notice::default() } else { self.sense(notice) };
        arrived.active.extend(response.dirty_group);
        arrived.pairs.extend(response.pairs().map(|(lpn, entry)| (Lpn(lpn), lengthen(entry))));
        self.data = pairs;
        arrived
    }

    /// Carries a notice as sense data.
    fn sense(&mut self, notice: &Notice) -> Notice {
        let operation = if notice.reset { Operation::DeviceReset } else { Operation::RegionUpdate };
        let active: SmallVec<[(u16, u16); NOTICE_MAX]> =
            notice.active.iter().map(|&s| self.split(s)).collect();
        let inactive: SmallVec<[u16; NOTICE_MAX]> =
            notice.inactive.iter().map(|&region| region as u16).collect();
        let bytes = jedec::Notice::new(operation, LUN, &active, &inactive).encode();
        self.bytes += bytes.len() as u64;
        let arrived = decoded(jedec::Notice::decode(&bytes));
        Notice {
            reset: arrived.operation == Operation::DeviceReset,
            active: arrived.active().iter().map(|&(r, s)| self.join(r, s)).collect(),
            inactive: arrived.inactive().iter().map(|&region| region.into()).collect(),
            pairs: Vec::new(),
        }
    }

    fn split(&self, subregion: u32) -> (u16, u16) {
        ((subregion / self.subregions) as u16, (subregion % self.subregions) as u16)
    }

    fn join(&self, region: u16, subregion: u16) -> u32 {
        u32::from(region) * self.subregions + u32::from(subregion)
    }

    /// Sends entries of `width` bytes.
    fn send_entries(&mut self, entries: &[u64], width: usize) {
        self.data.clear();
        for entry in entries {
            self.data.extend_from_slice(&entry.to_be_bytes()[size_of::<u64>() - width..]);
        }
        self.bytes += self.data.len() as u64;
    }
}

/// Returns the entries of `width` bytes in `data`.
fn unpack(data: &[u8], width: usize) -> impl Iterator<Item = u64> + '_ {
    data.chunks_exact(width).map(|bytes| match *bytes {
        [a, b, c, d] => lengthen(u32::from_be_bytes([a, b, c, d])),
        _ => u64::from_be_bytes(bytes.try_into().expect("eight bytes")),
    })
}

/// Returns the decoded value. An error is a panic, because the link itself encoded the bytes.
fn decoded<T>(result: Result<T, WireError>) -> T {
    result.unwrap_or_else(|error| panic!("the encoded bytes do not match the format: {error}"))
}

/// Returns an entry as 4 bytes.
fn shorten(entry: u64) -> u32 {
    entry as u32
}

/// Returns the entry that is encoded in 4 bytes.
fn lengthen(entry: u32) -> u64 {
    if entry == NO_SHORT_ENTRY { NO_ENTRY } else { entry.into() }
}
