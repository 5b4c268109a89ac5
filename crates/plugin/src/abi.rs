//! The C ABI, as `flashatlas_plugin.h` has it: that file is made of this one.

use std::ffi::{c_char, c_void};

/// The version of this interface: a plug-in of another one is refused.
pub const FA_ABI_VERSION: u32 = 1;

/// No page: the answer to a lookup of a page that nobody wrote, or that was trimmed.
pub const FA_NOWHERE: u32 = 0xFFFF_FFFF;

/// No block: the answer of a victim policy that has none to offer.
pub const FA_NO_BLOCK: u32 = 0xFFFF_FFFF;

/// From a policy or a classifier: it cannot answer, and its callback `fault` says why.
pub const FA_FAULT: u32 = 0xFFFF_FFFE;

/// No stream: a page that nobody wrote, or one written before the drive was switched on.
pub const FA_NO_STREAM: i32 = -1;

/// No age: as `FA_NO_STREAM`.
pub const FA_NO_AGE: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// What a call came to. What is not `FA_OK` goes up to FlashAtlas as it is, unless the plug-in
/// knows an answer to it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "plug-ins answer with these")]
pub enum FaStatus {
    /// Done.
    FA_OK = 0,
    /// From the plug-in: no block can be freed.
    FA_NO_SPACE = 1,
    /// The page cannot be read: it is torn, or it is erased.
    FA_UNREADABLE = 2,
    /// The program failed, and no spare block took its place: this block takes no more programs.
    FA_PROGRAM_FAILED = 3,
    /// The erase failed: the block is bad from now on.
    FA_ERASE_FAILED = 4,
    /// There is no power any more: answer with this at once.
    FA_POWER_LOST = 5,
    /// The call breaks a rule of flash, or of this interface: the run ends with an error that says
    /// which.
    FA_REFUSED = 6,
    /// From the plug-in: `fail` of the host was told why.
    FA_FAILED = 7,
}

/// The kinds of parts.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaKind {
    /// `ops` is a `fa_victim`.
    FA_VICTIM = 1,
    /// `ops` is a `fa_classifier`.
    FA_CLASSIFIER = 2,
    /// `ops` is a `fa_ftl`.
    FA_FTL = 3,
    /// `ops` is a `fa_store`.
    FA_STORE = 4,
}

/// The type of a parameter.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaType {
    /// A whole number from `low` to `high`.
    FA_WHOLE = 1,
    /// Bytes from `low` to `high`: `4096`, `16KiB`.
    FA_BYTES = 2,
    /// A number from `low` to `high`.
    FA_REAL = 3,
    /// `true` or `false`.
    FA_FLAG = 4,
    /// A time, given in picoseconds: `25us`.
    FA_TIME = 5,
}

/// A parameter that a part declares.
#[repr(C)]
pub struct FaParam {
    /// Its name in drive files and settings, such as `ftl.my_window`.
    pub key: *const c_char,
    /// Its type.
    pub kind: u32,
    /// The smallest value; of `FA_FLAG` and `FA_TIME` of no meaning.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The default as it would be written.
    pub fallback: *const c_char,
    /// What it means, with its unit: one line.
    pub doc: *const c_char,
}

/// The value of a parameter, in the order in which they were declared.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaValue {
    /// Whole numbers, bytes, picoseconds, and 0 or 1.
    pub whole: u64,
    /// Numbers.
    pub real: f64,
}

/// A part of a plug-in.
#[repr(C)]
pub struct FaPart {
    /// What it is: a `fa_kind`.
    pub kind: u32,
    /// The name by which it is chosen.
    pub name: *const c_char,
    /// One line.
    pub summary: *const c_char,
    /// Where it is described.
    pub paper: *const c_char,
    /// Its parameters.
    pub params: *const FaParam,
    /// How many.
    pub param_count: u32,
    /// Its callbacks, by its kind.
    pub ops: *const c_void,
}

/// What a plug-in is: `const fa_plugin *flashatlas_plugin(void)` answers with it.
#[repr(C)]
pub struct FaPlugin {
    /// `FA_ABI_VERSION`.
    pub abi_version: u32,
    /// Its name.
    pub name: *const c_char,
    /// Its version.
    pub version: *const c_char,
    /// Its parts.
    pub parts: *const FaPart,
    /// How many.
    pub part_count: u32,
}

/// When something happened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaMoment {
    /// Slots programmed on the drive so far.
    pub clock: u64,
    /// Simulated time of the command, in picoseconds.
    pub now_ps: u64,
}

/// What a victim policy may know when it picks: one lane, its blocks numbered from 0.
#[repr(C)]
pub struct FaCandidates {
    /// Valid slots by block; of meaning for closed ones.
    pub valid: *const u32,
    /// Erases by block.
    pub erases: *const u32,
    /// Blocks of the lane.
    pub blocks: u32,
    /// Slots of a block.
    pub slots: u32,
    /// When.
    pub at: FaMoment,
}

/// A victim policy: which closed block of a lane is collected next. One is made for each lane.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaVictim {
    /// Make one for a lane of so many blocks of so many slots. `seed` is its own.
    pub create: Option<
        unsafe extern "C" fn(
            values: *const FaValue,
            blocks: u32,
            slots: u32,
            seed: u64,
        ) -> *mut c_void,
    >,
    /// It is not needed any more.
    pub destroy: Option<unsafe extern "C" fn(policy: *mut c_void)>,
    /// A block was filled, or closed early, with so many valid slots.
    pub closed:
        Option<unsafe extern "C" fn(policy: *mut c_void, block: u32, valid: u32, at: FaMoment)>,
    /// A closed block lost a valid slot; so many are left. May be absent.
    pub invalidated:
        Option<unsafe extern "C" fn(policy: *mut c_void, block: u32, valid: u32, at: FaMoment)>,
    /// A closed block is no candidate any more.
    pub removed: Option<unsafe extern "C" fn(policy: *mut c_void, block: u32)>,
    /// The closed block to collect next, or `FA_NO_BLOCK` where none has an invalid slot.
    pub pick: Option<unsafe extern "C" fn(policy: *mut c_void, lane: *const FaCandidates) -> u32>,
    /// Why the answer is `FA_FAULT`. May be absent.
    pub fault: Option<unsafe extern "C" fn(policy: *mut c_void) -> *const c_char>,
}

/// A page that a classifier sorts.
#[repr(C)]
pub struct FaSorted {
    /// The logical page.
    pub lpn: u32,
    /// Pages that the host wrote before.
    pub clock: u64,
    /// Pages that the host wrote since it last wrote this one, this one included; `FA_NO_AGE`.
    pub age: u64,
    /// The stream of the block that holds this version; `FA_NO_STREAM`.
    pub stream: i32,
    /// Whether that is a stream of collection.
    pub collected: bool,
}

/// A block that was collected.
#[repr(C)]
pub struct FaCollected {
    /// The stream that wrote it; `FA_NO_STREAM`.
    pub stream: i32,
    /// Whether that is a stream of collection.
    pub collected: bool,
    /// Pages that the host wrote since the block was opened.
    pub age: u64,
    /// Slots that were valid when it was picked.
    pub valid: u32,
    /// Slots of a block.
    pub slots: u32,
}

/// A classifier: into which stream a page is written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaClassifier {
    /// Streams of host writes; 0 in both: as many as `ftl.streams` says.
    pub host_streams: u32,
    /// Streams of collection.
    pub collection_streams: u32,
    /// Whether ages and streams are wanted, which takes tables of the drive.
    pub history: bool,
    /// Make one for so many logical pages and streams.
    pub create: Option<
        unsafe extern "C" fn(values: *const FaValue, pages: u32, streams: u32) -> *mut c_void,
    >,
    /// It is not needed any more.
    pub destroy: Option<unsafe extern "C" fn(classifier: *mut c_void)>,
    /// The stream of a page that the host writes.
    pub written:
        Option<unsafe extern "C" fn(classifier: *mut c_void, page: *const FaSorted) -> u32>,
    /// The stream of a page that collection moves.
    pub moved: Option<unsafe extern "C" fn(classifier: *mut c_void, page: *const FaSorted) -> u32>,
    /// A block was collected and is erased. May be absent; needs `history`.
    pub erased: Option<unsafe extern "C" fn(classifier: *mut c_void, block: *const FaCollected)>,
    /// Bytes of its tables in the drive. May be absent.
    pub memory: Option<unsafe extern "C" fn(classifier: *mut c_void) -> u64>,
    /// Why an answer is `FA_FAULT`. May be absent.
    pub fault: Option<unsafe extern "C" fn(classifier: *mut c_void) -> *const c_char>,
}

/// What a page of flash is, as its spare area says.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaState {
    /// Ready to be programmed.
    FA_ERASED = 0,
    /// Holds a logical page.
    FA_DATA = 1,
    /// Holds bytes of the plug-in's own.
    FA_OWN = 2,
    /// Was being programmed when the power failed, or could be read and cannot any more: a drive
    /// cannot tell the two apart.
    FA_TORN = 3,
}

/// The spare area of a page.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaSpare {
    /// A `fa_state`.
    pub state: u32,
    /// Of `FA_DATA`: the logical page.
    pub lpn: u32,
    /// Of `FA_DATA` and `FA_OWN`: the number of its program. A larger one is newer.
    pub sequence: u64,
}

/// The drive of a plug-in's FTL. Pages of flash are numbered from 0, block by block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaShape {
    /// Blocks of flash.
    pub blocks: u32,
    /// Pages of a block.
    pub pages: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Logical pages that the drive exports.
    pub logical_pages: u32,
    /// Blocks that share a die: `block / blocks_per_lane` is its lane.
    pub blocks_per_lane: u32,
}

/// Where a table is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaMemory {
    /// On-chip static memory.
    FA_SRAM = 0,
    /// Dynamic memory beside the controller.
    FA_DRAM = 1,
}

/// A table of an FTL in the drive's memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaTable {
    /// What it is.
    pub name: *const c_char,
    /// A `fa_memory`.
    pub memory: u32,
    /// Its bytes in the drive.
    pub bytes: u64,
}

/// What a map store works with during a call.
#[repr(C)]
pub struct FaMap {
    /// Of FlashAtlas.
    pub context: *mut c_void,
    /// Accesses to a table in memory (a `fa_memory`), of so many bytes each, after those before:
    /// what the call costs. Those that `set` makes during a mount cost nothing.
    pub access: unsafe extern "C" fn(
        map: *const FaMap,
        memory: u32,
        accesses: u32,
        bytes: u32,
        write: bool,
    ),
}

/// A map store: where the logical-to-physical map of page mapping is, in memory, and what a lookup
/// costs. FlashAtlas keeps the truth beside it, and an answer that differs ends the run with an
/// error that names the page. Nothing of the map is on flash: a mount finds where pages are by
/// their spare areas and tells them by `set`, in ascending order. A map with pages on flash is a
/// whole FTL here, or a store in Rust.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaStore {
    /// Make an empty one, for so many logical pages, on a drive with so many pages of flash.
    pub create:
        Option<unsafe extern "C" fn(values: *const FaValue, pages: u32, slots: u32) -> *mut c_void>,
    /// It is not needed any more.
    pub destroy: Option<unsafe extern "C" fn(store: *mut c_void)>,
    /// Where a logical page is, or `FA_NOWHERE`.
    pub get: Option<unsafe extern "C" fn(store: *mut c_void, map: *const FaMap, lpn: u32) -> u32>,
    /// A logical page is somewhere else now, or `FA_NOWHERE` after a trim. Answers where it was.
    pub set: Option<
        unsafe extern "C" fn(store: *mut c_void, map: *const FaMap, lpn: u32, page: u32) -> u32,
    >,
    /// As `set`, because collection moved the page. May be absent: then it is `set`.
    pub moved: Option<
        unsafe extern "C" fn(store: *mut c_void, map: *const FaMap, lpn: u32, page: u32) -> u32,
    >,
    /// Tables in the drive's memory, as of a `fa_ftl`. May be absent.
    pub tables:
        Option<unsafe extern "C" fn(store: *mut c_void, tables: *mut FaTable, room: u32) -> u32>,
}

/// What an FTL works with: the same for as long as the drive is on. Every call acts at once, and is
/// an operation that takes time in the simulation: by itself it waits for the one before it, as
/// firmware does that does one thing after the other; `after` says otherwise.
#[repr(C)]
pub struct FaHost {
    /// Of FlashAtlas.
    pub context: *mut c_void,
    /// Read bytes of a page: one operation of the flash, which transfers the whole page, however
    /// few are wanted. Of a page of data the first 32 bytes say whose it is, for `program`, and the
    /// others are 0. A page that is erased or torn is `FA_UNREADABLE`; `spare` tells which.
    pub read: unsafe extern "C" fn(
        host: *const FaHost,
        page: u32,
        offset: u32,
        bytes: u32,
        buffer: *mut c_void,
    ) -> FaStatus,
    /// Program a page, once after each erase and in ascending order in its block (pages may be left
    /// out), with a page of bytes. A block in which a program failed takes no more programs and no
    /// erase; `is_bad` says so once an erase has been refused.
    /// Where they begin as `data` of `write` does, they stand for that data, which is then the
    /// newest version of its logical page; where they were read from a page of data, they are a
    /// copy of it; all others are bytes of the plug-in's own.
    pub program:
        unsafe extern "C" fn(host: *const FaHost, page: u32, data: *const c_void) -> FaStatus,
    /// Read a page and program it, whatever it holds, into another. A copy of the newest version is
    /// the newest version from then on.
    pub copy: unsafe extern "C" fn(host: *const FaHost, from: u32, to: u32) -> FaStatus,
    /// Erase a block.
    pub erase: unsafe extern "C" fn(host: *const FaHost, block: u32) -> FaStatus,
    /// Read the spare area of a page. While mounting it takes the time of a read; later a drive
    /// would know what it asks, and it is free.
    pub spare:
        unsafe extern "C" fn(host: *const FaHost, page: u32, spare: *mut FaSpare) -> FaStatus,
    /// Whether a block is bad.
    pub is_bad: unsafe extern "C" fn(host: *const FaHost, block: u32) -> bool,
    /// Erases of a block.
    pub erases: unsafe extern "C" fn(host: *const FaHost, block: u32) -> u32,
    /// Accesses to a table in memory (a `fa_memory`), of so many bytes each.
    pub access: unsafe extern "C" fn(
        host: *const FaHost,
        memory: u32,
        accesses: u32,
        bytes: u32,
        write: bool,
    ),
    /// The number of the last operation.
    pub last: unsafe extern "C" fn(host: *const FaHost) -> u64,
    /// What the next operation waits for, instead of the one before it: numbers of operations, 0
    /// for none. Data waits for its arrival besides, and an erase for the programs and copies that
    /// superseded pages of its block.
    pub after: unsafe extern "C" fn(host: *const FaHost, operations: *const u64, count: u32),
    /// Simulated time, in picoseconds.
    pub now: unsafe extern "C" fn(host: *const FaHost) -> u64,
    /// Why the plug-in answers `FA_FAILED`.
    pub fail: unsafe extern "C" fn(host: *const FaHost, why: *const c_char),
    /// Zeroed memory that is accounted for: what is not released when `destroy` returns is named as
    /// leaked. Of no other use: `malloc` does as well. Null: there is none.
    pub allocate: unsafe extern "C" fn(host: *const FaHost, bytes: u64) -> *mut c_void,
    /// Give back what `allocate` gave.
    pub release: unsafe extern "C" fn(host: *const FaHost, memory: *mut c_void),
}

/// An FTL whole. Its calls get the host of the drive, which may be used during a call and not
/// between two, and answer with a `fa_status`. FlashAtlas keeps a map of its own beside: an answer
/// of `locate` that is not the newest version, an erase that loses one, a page programmed twice or
/// out of order end the run with an error that names the callback, the page and the block.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaFtl {
    /// Whether trims do not outlive a power failure.
    pub forgets_trims: bool,
    /// Whether the spare areas of data say all that a mount needs: a FUA write then needs no
    /// `flush`.
    pub recovers_from_spare_areas: bool,
    /// Whether a drive of this shape can work: 0, or why not in `why`, which has room for so many
    /// bytes. May be absent.
    pub fits: Option<
        unsafe extern "C" fn(
            shape: *const FaShape,
            values: *const FaValue,
            why: *mut c_char,
            room: u32,
        ) -> i32,
    >,
    /// Switch the drive on: make the tables of what is on flash, which may be erased, or what a
    /// power failure left. Null: `fail` says why, or the power is lost again. Afterwards FlashAtlas
    /// asks `locate` for every page once, at no cost; a place that cannot be read counts as lost.
    pub mount: Option<
        unsafe extern "C" fn(
            host: *const FaHost,
            shape: *const FaShape,
            values: *const FaValue,
        ) -> *mut c_void,
    >,
    /// The drive is gone. The host may be used for `release` alone.
    pub destroy: Option<unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost)>,
    /// Where the newest version of a logical page is, or `FA_NOWHERE`.
    pub locate: Option<
        unsafe extern "C" fn(
            ftl: *mut c_void,
            host: *const FaHost,
            lpn: u32,
            page: *mut u32,
        ) -> u32,
    >,
    /// Write a logical page: `data` must be programmed when this returns; the last program of it
    /// counts. What cannot be answered is handed up as it came (`FA_UNREADABLE` of a copy, say).
    pub write: Option<
        unsafe extern "C" fn(
            ftl: *mut c_void,
            host: *const FaHost,
            lpn: u32,
            data: *const c_void,
        ) -> u32,
    >,
    /// Forget a logical page.
    pub trim: Option<unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost, lpn: u32) -> u32>,
    /// Make everything that was written and trimmed outlive a power failure. May be absent.
    pub flush: Option<unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost) -> u32>,
    /// Do a small piece of work while the host is idle; `worked` says whether there was any. May be
    /// absent.
    pub idle: Option<
        unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost, worked: *mut bool) -> u32,
    >,
    /// Tables in the drive's memory: fill in at most so many, and answer how many there are. May be
    /// absent.
    pub tables:
        Option<unsafe extern "C" fn(ftl: *mut c_void, tables: *mut FaTable, room: u32) -> u32>,
}
