//! `struct nbdkit_plugin` of API version 2, as nbdkit 1.30 and later declare it.
//!
//! New versions of nbdkit add fields only at the end, and the first field is the size of the
//! structure. So a newer nbdkit accepts this structure, and an older nbdkit ignores the fields that
//! it does not know.

use std::ffi::{c_char, c_int, c_void};

/// Handle that `open` returned.
pub type Handle = *mut c_void;
type Ask = Option<unsafe extern "C" fn(Handle) -> c_int>;
type Void = Option<unsafe extern "C" fn()>;
type Unused = Option<unsafe extern "C" fn()>;

/// Thread model in which several requests, also of one connection, may run at the same time.
pub const PARALLEL: c_int = 3;
/// Flag that allows a write of zeros to punch a hole.
pub const MAY_TRIM: u32 = 1;
/// Flag that requires the writes of a call to be durable when it returns.
pub const FUA: u32 = 2;
/// Answer of a plugin that carries out FUA itself.
pub const FUA_NATIVE: c_int = 2;
/// Kind of a range that is not allocated and reads as zeros.
pub const HOLE_AND_ZERO: u32 = 3;

/// Fields of the plugin, in the order of nbdkit's structure.
#[repr(C)]
pub struct Plugin {
    pub struct_size: u64,
    pub api_version: c_int,
    pub thread_model: c_int,
    pub name: *const c_char,
    pub longname: *const c_char,
    pub version: *const c_char,
    pub description: *const c_char,
    pub load: Void,
    pub unload: Void,
    pub config: Option<unsafe extern "C" fn(*const c_char, *const c_char) -> c_int>,
    pub config_complete: Option<unsafe extern "C" fn() -> c_int>,
    pub config_help: *const c_char,
    pub open: Option<unsafe extern "C" fn(c_int) -> Handle>,
    pub close: Option<unsafe extern "C" fn(Handle)>,
    pub get_size: Option<unsafe extern "C" fn(Handle) -> i64>,
    pub can_write: Ask,
    pub can_flush: Ask,
    pub is_rotational: Ask,
    pub can_trim: Ask,
    pub version_1: [Unused; 5],
    pub errno_is_preserved: c_int,
    pub dump_plugin: Void,
    pub can_zero: Ask,
    pub can_fua: Ask,
    pub pread: Option<unsafe extern "C" fn(Handle, *mut c_void, u32, u64, u32) -> c_int>,
    pub pwrite: Option<unsafe extern "C" fn(Handle, *const c_void, u32, u64, u32) -> c_int>,
    pub flush: Option<unsafe extern "C" fn(Handle, u32) -> c_int>,
    pub trim: Option<unsafe extern "C" fn(Handle, u32, u64, u32) -> c_int>,
    pub zero: Option<unsafe extern "C" fn(Handle, u32, u64, u32) -> c_int>,
    pub magic_config_key: *const c_char,
    pub can_multi_conn: Ask,
    pub can_extents: Ask,
    pub extents: Option<unsafe extern "C" fn(Handle, u32, u64, u32, *mut c_void) -> c_int>,
    pub can_cache: Ask,
    pub cache: Unused,
    pub thread_model_now: Option<unsafe extern "C" fn() -> c_int>,
    pub can_fast_zero: Ask,
    pub preconnect: Unused,
    pub get_ready: Option<unsafe extern "C" fn() -> c_int>,
    pub after_fork: Option<unsafe extern "C" fn() -> c_int>,
    pub list_exports: Unused,
    pub default_export: Unused,
    pub export_description: Unused,
    pub cleanup: Void,
    pub block_size: Option<unsafe extern "C" fn(Handle, *mut u32, *mut u32, *mut u32) -> c_int>,
}

// SAFETY: the structure holds functions and constant texts, which never change.
unsafe impl Sync for Plugin {}

unsafe extern "C" {
    /// Sets the message of a failed call. The arguments are as for `printf`.
    pub fn nbdkit_error(format: *const c_char, ...);
    /// Sets the `errno` that a client gets.
    pub fn nbdkit_set_error(number: c_int);
    /// Ends serving.
    pub fn nbdkit_shutdown();
    /// Adds a range and its kind to a list of extents.
    pub fn nbdkit_add_extent(extents: *mut c_void, offset: u64, length: u64, kind: u32) -> c_int;
}
