//! The C ABI. `flashatlas_plugin.h` is generated from this file.

use std::ffi::{c_char, c_void};

/// The version of this interface. Plug-ins of another version are refused.
pub const FA_ABI_VERSION: u32 = 1;

/// No page: the answer to a lookup of a page that was never written or was trimmed.
pub const FA_NOWHERE: u32 = 0xFFFF_FFFF;

/// No block: the answer of a victim policy if no block can be collected.
pub const FA_NO_BLOCK: u32 = 0xFFFF_FFFF;

/// The answer of a policy or a classifier that has failed. Its callback `fault` returns the reason.
pub const FA_FAULT: u32 = 0xFFFF_FFFE;

/// No stream: the page was never written, or was written before the drive was switched on.
pub const FA_NO_STREAM: i32 = -1;

/// No age, in the same cases as `FA_NO_STREAM`.
pub const FA_NO_AGE: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// Result of a call. If a call of a plug-in returns another result than `FA_OK` and the plug-in
/// cannot handle it, the plug-in must return this result unchanged to FlashAtlas.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "plug-ins return these values")]
pub enum FaStatus {
    /// The call succeeded.
    FA_OK = 0,
    /// The plug-in cannot free any block.
    FA_NO_SPACE = 1,
    /// The page cannot be read, because it is torn or erased.
    FA_UNREADABLE = 2,
    /// The program failed, and no spare block is left. The block cannot be programmed any more.
    FA_PROGRAM_FAILED = 3,
    /// The erase failed. The block is bad from now on.
    FA_ERASE_FAILED = 4,
    /// The power has failed. The callback must return this result immediately.
    FA_POWER_LOST = 5,
    /// The call breaks a rule of flash or of this interface. The run ends with an error that names
    /// the rule.
    FA_REFUSED = 6,
    /// The plug-in failed. It has passed the reason to `fail` of the host.
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
    /// A number of bytes from `low` to `high`, such as `4096` or `16KiB`.
    FA_BYTES = 2,
    /// A number from `low` to `high`.
    FA_REAL = 3,
    /// `true` or `false`.
    FA_FLAG = 4,
    /// A time, such as `25us`. Its value is in picoseconds.
    FA_TIME = 5,
}

/// A parameter that a part declares.
#[repr(C)]
pub struct FaParam {
    /// Name of the parameter in drive files and settings, such as `ftl.my_window`.
    pub key: *const c_char,
    /// Type of the parameter.
    pub kind: u32,
    /// The smallest value; ignored for `FA_FLAG` and `FA_TIME`.
    pub low: f64,
    /// The largest value; ignored for `FA_FLAG` and `FA_TIME`.
    pub high: f64,
    /// The default, written as in a setting.
    pub fallback: *const c_char,
    /// Meaning of the parameter, with its unit, in one line.
    pub doc: *const c_char,
}

/// Value of a parameter. Arrays of values have the order in which the parameters were declared.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaValue {
    /// The value of a whole number, of a number of bytes, of a time (in picoseconds) or of a flag
    /// (0 or 1).
    pub whole: u64,
    /// The value as a number.
    pub real: f64,
}

/// A part of a plug-in.
#[repr(C)]
pub struct FaPart {
    /// Kind of the part: a `fa_kind`.
    pub kind: u32,
    /// The name with which drive files select the part.
    pub name: *const c_char,
    /// A summary of one line.
    pub summary: *const c_char,
    /// The paper that describes the part, or `none`.
    pub paper: *const c_char,
    /// Parameters of the part.
    pub params: *const FaParam,
    /// Number of parameters.
    pub param_count: u32,
    /// Callbacks of the part. Their type depends on the kind of the part.
    pub ops: *const c_void,
}

/// A plug-in. The library's function `const fa_plugin *flashatlas_plugin(void)` returns a pointer
/// to this.
#[repr(C)]
pub struct FaPlugin {
    /// `FA_ABI_VERSION`.
    pub abi_version: u32,
    /// Name of the plug-in.
    pub name: *const c_char,
    /// Version of the plug-in.
    pub version: *const c_char,
    /// Parts of the plug-in.
    pub parts: *const FaPart,
    /// Number of parts.
    pub part_count: u32,
}

/// Time of an event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaMoment {
    /// Number of slots that were programmed on the drive so far.
    pub clock: u64,
    /// Simulated time of the command, in picoseconds.
    pub now_ps: u64,
}

/// Lane from which a victim policy picks a block. The blocks of a lane are numbered from 0.
#[repr(C)]
pub struct FaCandidates {
    /// Number of valid slots of each block. Only the numbers of closed blocks are meaningful.
    pub valid: *const u32,
    /// Number of erases of each block.
    pub erases: *const u32,
    /// Number of blocks of the lane.
    pub blocks: u32,
    /// Slots of a block.
    pub slots: u32,
    /// The present time.
    pub at: FaMoment,
}

/// A victim policy. It picks the closed block of a lane that is collected next. Each lane has its
/// own policy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaVictim {
    /// Makes a policy for a lane of `blocks` blocks of `slots` slots each. Each policy gets a
    /// different `seed`.
    pub create: Option<
        unsafe extern "C" fn(
            values: *const FaValue,
            blocks: u32,
            slots: u32,
            seed: u64,
        ) -> *mut c_void,
    >,
    /// Frees a policy that is not needed any more.
    pub destroy: Option<unsafe extern "C" fn(policy: *mut c_void)>,
    /// Reports that a block was filled or closed early. It has `valid` valid slots.
    pub closed:
        Option<unsafe extern "C" fn(policy: *mut c_void, block: u32, valid: u32, at: FaMoment)>,
    /// Reports that a closed block lost a valid slot and has `valid` left. May be null.
    pub invalidated:
        Option<unsafe extern "C" fn(policy: *mut c_void, block: u32, valid: u32, at: FaMoment)>,
    /// Reports that a closed block is not a candidate any more.
    pub removed: Option<unsafe extern "C" fn(policy: *mut c_void, block: u32)>,
    /// Returns the closed block to collect next, or `FA_NO_BLOCK` if no closed block has an invalid
    /// slot.
    pub pick: Option<unsafe extern "C" fn(policy: *mut c_void, lane: *const FaCandidates) -> u32>,
    /// Returns the reason for the answer `FA_FAULT`. May be null.
    pub fault: Option<unsafe extern "C" fn(policy: *mut c_void) -> *const c_char>,
}

/// A page for which a classifier chooses the stream.
#[repr(C)]
pub struct FaSorted {
    /// The logical page.
    pub lpn: u32,
    /// Number of pages that the host wrote before this one.
    pub clock: u64,
    /// Number of pages that the host wrote since it last wrote this page, this page included; or
    /// `FA_NO_AGE`.
    pub age: u64,
    /// The stream of the block that holds the page's present version, or `FA_NO_STREAM`.
    pub stream: i32,
    /// True if `stream` is a stream of collection.
    pub collected: bool,
}

/// A block that was collected.
#[repr(C)]
pub struct FaCollected {
    /// The stream that wrote the block, or `FA_NO_STREAM`.
    pub stream: i32,
    /// True if `stream` is a stream of collection.
    pub collected: bool,
    /// Number of pages that the host wrote since the block was opened.
    pub age: u64,
    /// Number of slots that were valid when the block was picked.
    pub valid: u32,
    /// Slots of a block.
    pub slots: u32,
}

/// A classifier. It chooses the stream into which a page is written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaClassifier {
    /// Number of streams of host writes. If both numbers are 0, the parameter `ftl.streams` is used
    /// for both.
    pub host_streams: u32,
    /// Number of streams of collection.
    pub collection_streams: u32,
    /// True if the classifier needs the ages and streams of pages. The drive then has tables for
    /// them.
    pub history: bool,
    /// Makes a classifier for `pages` logical pages and `streams` streams.
    pub create: Option<
        unsafe extern "C" fn(values: *const FaValue, pages: u32, streams: u32) -> *mut c_void,
    >,
    /// Frees a classifier that is not needed any more.
    pub destroy: Option<unsafe extern "C" fn(classifier: *mut c_void)>,
    /// Returns the stream of a page that the host writes.
    pub written:
        Option<unsafe extern "C" fn(classifier: *mut c_void, page: *const FaSorted) -> u32>,
    /// Returns the stream of a page that collection moves.
    pub moved: Option<unsafe extern "C" fn(classifier: *mut c_void, page: *const FaSorted) -> u32>,
    /// Reports that a block was collected and is erased. May be null. Needs `history`.
    pub erased: Option<unsafe extern "C" fn(classifier: *mut c_void, block: *const FaCollected)>,
    /// Returns the bytes of the classifier's tables in the drive. May be null.
    pub memory: Option<unsafe extern "C" fn(classifier: *mut c_void) -> u64>,
    /// Returns the reason for the answer `FA_FAULT`. May be null.
    pub fault: Option<unsafe extern "C" fn(classifier: *mut c_void) -> *const c_char>,
}

/// State of a page of flash, as its spare area shows it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaState {
    /// The page is ready to be programmed.
    FA_ERASED = 0,
    /// The page holds a logical page.
    FA_DATA = 1,
    /// The page holds the plug-in's own bytes.
    FA_OWN = 2,
    /// The page cannot be read, because the power failed during its program or because it was
    /// damaged later. A drive cannot distinguish these cases.
    FA_TORN = 3,
}

/// The spare area of a page.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaSpare {
    /// A `fa_state`.
    pub state: u32,
    /// The logical page, for `FA_DATA`.
    pub lpn: u32,
    /// The number of the page's program, for `FA_DATA` and `FA_OWN`. A newer program has a larger
    /// number.
    pub sequence: u64,
}

/// The drive on which a plug-in's FTL runs. Pages of flash are numbered from 0, block by block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaShape {
    /// Number of blocks of flash.
    pub blocks: u32,
    /// Pages of a block.
    pub pages: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Number of logical pages that the drive exports.
    pub logical_pages: u32,
    /// Number of blocks in a lane. The blocks of a lane share a die. The lane of a block is `block
    /// / blocks_per_lane`.
    pub blocks_per_lane: u32,
}

/// Kind of memory for a table.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaMemory {
    /// On-chip static memory.
    FA_SRAM = 0,
    /// Dynamic memory outside the controller.
    FA_DRAM = 1,
}

/// A table of an FTL in the drive's memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaTable {
    /// Name of the table.
    pub name: *const c_char,
    /// A `fa_memory`.
    pub memory: u32,
    /// Bytes of the table in the drive.
    pub bytes: u64,
}

/// Functions for a map store during a call.
#[repr(C)]
pub struct FaMap {
    /// Pointer of FlashAtlas' own.
    pub context: *mut c_void,
    /// Adds `accesses` accesses of `bytes` bytes each to a table. `memory` is the table's
    /// `fa_memory`. The accesses come after earlier ones.
    ///
    /// Only the accesses of a callback take time. During a mount, the accesses of `set` take no
    /// time.
    pub access: unsafe extern "C" fn(
        map: *const FaMap,
        memory: u32,
        accesses: u32,
        bytes: u32,
        write: bool,
    ),
}

/// A map store: the logical-to-physical map of page mapping in memory, and the time of its lookups.
///
/// FlashAtlas also keeps its own map. An answer of the store that differs from this map ends the
/// run with an error that names the page. The store has no data on flash. A mount finds pages by
/// their spare areas, and calls `set` for each page in ascending order. For a map with pages on
/// flash, write a whole FTL (`fa_ftl`), or a store in Rust.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaStore {
    /// Makes an empty map for `pages` logical pages, on a drive with `slots` pages of flash.
    pub create:
        Option<unsafe extern "C" fn(values: *const FaValue, pages: u32, slots: u32) -> *mut c_void>,
    /// Frees a map that is not needed any more.
    pub destroy: Option<unsafe extern "C" fn(store: *mut c_void)>,
    /// Returns the place of a logical page, or `FA_NOWHERE`.
    pub get: Option<unsafe extern "C" fn(store: *mut c_void, map: *const FaMap, lpn: u32) -> u32>,
    /// Sets the place of a logical page, or `FA_NOWHERE` after a trim. Returns the place before.
    pub set: Option<
        unsafe extern "C" fn(store: *mut c_void, map: *const FaMap, lpn: u32, page: u32) -> u32,
    >,
    /// Sets the place of a page that collection moved, like `set`. If this is null, `set` is
    /// called.
    pub moved: Option<
        unsafe extern "C" fn(store: *mut c_void, map: *const FaMap, lpn: u32, page: u32) -> u32,
    >,
    /// Fills in the tables in the drive's memory, like `tables` of a `fa_ftl`. May be null.
    pub tables:
        Option<unsafe extern "C" fn(store: *mut c_void, tables: *mut FaTable, room: u32) -> u32>,
}

/// Functions for an FTL. The pointers do not change while the drive is on.
///
/// Every call takes effect immediately, and adds an operation that takes time in the simulation. An
/// operation waits for the previous one, as in firmware with a single thread, unless `after` was
/// called.
#[repr(C)]
pub struct FaHost {
    /// Pointer of FlashAtlas' own.
    pub context: *mut c_void,
    /// Reads bytes of a page.
    ///
    /// This is one flash operation. It transfers the whole page, even if the call needs few bytes.
    /// The first 32 bytes of a data page are a token for `program`, and the other bytes are 0. The
    /// result for an erased or a torn page is `FA_UNREADABLE`. The function `spare` distinguishes
    /// the two.
    pub read: unsafe extern "C" fn(
        host: *const FaHost,
        page: u32,
        offset: u32,
        bytes: u32,
        buffer: *mut c_void,
    ) -> FaStatus,
    /// Programs a page with a page of bytes.
    ///
    /// A page is programmed at most once after each erase. The pages of a block are programmed in
    /// ascending order, and pages may be skipped. If the bytes begin like `data` of `write`, they
    /// stand for this data, which is then the newest version of its logical page. If they were read
    /// from a data page, they are a copy of that page. All other bytes are the plug-in's own bytes.
    /// If a program fails, every later program and erase of the block fails, too. `is_bad` returns
    /// true for the block after an erase has failed.
    pub program:
        unsafe extern "C" fn(host: *const FaHost, page: u32, data: *const c_void) -> FaStatus,
    /// Reads a page of any kind and programs its content into another page.
    ///
    /// A copy of the newest version is the newest version from then on.
    pub copy: unsafe extern "C" fn(host: *const FaHost, from: u32, to: u32) -> FaStatus,
    /// Erases a block.
    pub erase: unsafe extern "C" fn(host: *const FaHost, block: u32) -> FaStatus,
    /// Reads the spare area of a page.
    ///
    /// During a mount, this takes the time of a read. Later it takes no time, because a drive would
    /// have the answer in memory.
    pub spare:
        unsafe extern "C" fn(host: *const FaHost, page: u32, spare: *mut FaSpare) -> FaStatus,
    /// Returns true if a block is bad.
    pub is_bad: unsafe extern "C" fn(host: *const FaHost, block: u32) -> bool,
    /// Returns the number of erases of a block.
    pub erases: unsafe extern "C" fn(host: *const FaHost, block: u32) -> u32,
    /// Adds `accesses` accesses of `bytes` bytes each to a table. `memory` is the table's
    /// `fa_memory`.
    pub access: unsafe extern "C" fn(
        host: *const FaHost,
        memory: u32,
        accesses: u32,
        bytes: u32,
        write: bool,
    ),
    /// Returns the number of the last operation.
    pub last: unsafe extern "C" fn(host: *const FaHost) -> u64,
    /// Sets the operations for which the next operation waits, instead of the operation before it.
    ///
    /// 0 stands for no operation. A program of data also waits until the data has arrived. An erase
    /// also waits for the programs and copies that superseded pages of its block.
    pub after: unsafe extern "C" fn(host: *const FaHost, operations: *const u64, count: u32),
    /// Returns the simulated time, in picoseconds.
    pub now: unsafe extern "C" fn(host: *const FaHost) -> u64,
    /// Sets the reason for which the plug-in returns `FA_FAILED`.
    pub fail: unsafe extern "C" fn(host: *const FaHost, why: *const c_char),
    /// Returns zeroed memory, or null if there is not enough.
    ///
    /// FlashAtlas reports memory that was not released when `destroy` returns as leaked. Apart from
    /// this report and the zeros, the function is like `malloc`, which may be used as well.
    pub allocate: unsafe extern "C" fn(host: *const FaHost, bytes: u64) -> *mut c_void,
    /// Releases memory that `allocate` returned.
    pub release: unsafe extern "C" fn(host: *const FaHost, memory: *mut c_void),
}

/// A whole FTL.
///
/// Its callbacks get the host of the drive and return a `fa_status`. The host may be used during a
/// call, but not between two calls. FlashAtlas also keeps its own map. The run ends with an error
/// if `locate` does not find the place of the newest version, if an erase destroys a newest
/// version, or if a page is programmed twice or out of order. The error names the callback, the
/// page and the block.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaFtl {
    /// True if trims are lost in a power failure.
    pub forgets_trims: bool,
    /// True if the spare areas of data contain everything that a mount needs. A FUA write then
    /// needs no `flush`.
    pub recovers_from_spare_areas: bool,
    /// Returns 0 if the FTL can run on a drive of this shape. May be null.
    ///
    /// For any other answer, it writes the reason to `why`, which has room for `room` bytes.
    pub fits: Option<
        unsafe extern "C" fn(
            shape: *const FaShape,
            values: *const FaValue,
            why: *mut c_char,
            room: u32,
        ) -> i32,
    >,
    /// Switches the drive on: builds the tables from the flash. The flash may be erased, or in the
    /// state after a power failure.
    ///
    /// Returns null if the mount failed. In that case it has called `fail` with the reason, or the
    /// power has failed again. After a mount, FlashAtlas calls `locate` once for every page, which
    /// takes no simulated time. A page whose place cannot be read counts as lost.
    pub mount: Option<
        unsafe extern "C" fn(
            host: *const FaHost,
            shape: *const FaShape,
            values: *const FaValue,
        ) -> *mut c_void,
    >,
    /// Frees the tables of a drive that is not used any more. Of the host, only `release` may be
    /// called.
    pub destroy: Option<unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost)>,
    /// Finds the newest version of a logical page. Sets `page` to its place, or to `FA_NOWHERE`.
    pub locate: Option<
        unsafe extern "C" fn(
            ftl: *mut c_void,
            host: *const FaHost,
            lpn: u32,
            page: *mut u32,
        ) -> u32,
    >,
    /// Writes a logical page. When this returns, `data` must be programmed; its last program
    /// counts.
    ///
    /// The FTL returns a result that it cannot handle unchanged, such as `FA_UNREADABLE` of a copy.
    pub write: Option<
        unsafe extern "C" fn(
            ftl: *mut c_void,
            host: *const FaHost,
            lpn: u32,
            data: *const c_void,
        ) -> u32,
    >,
    /// Trims a logical page.
    pub trim: Option<unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost, lpn: u32) -> u32>,
    /// Makes all writes and trims durable. May be null.
    pub flush: Option<unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost) -> u32>,
    /// Does a small piece of work while the host is idle. Sets `worked` to true if there was work.
    /// May be null.
    pub idle: Option<
        unsafe extern "C" fn(ftl: *mut c_void, host: *const FaHost, worked: *mut bool) -> u32,
    >,
    /// Fills in the tables in the drive's memory, at most `room` of them. Returns their number. May
    /// be null.
    pub tables:
        Option<unsafe extern "C" fn(ftl: *mut c_void, tables: *mut FaTable, room: u32) -> u32>,
}
