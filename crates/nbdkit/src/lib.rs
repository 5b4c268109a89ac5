//! The nbdkit plugin that serves a simulated drive as a block device.
//!
//! nbdkit speaks NBD, has the sockets and the threads; [`flashatlas_serve::Server`] is the drive.
//! This crate is what is between: the interface of `nbdkit-plugin.h` (version 2), and the clock.

mod abi;
mod clock;
mod plugin;

/// What nbdkit calls first.
///
/// # Safety
/// Called once, by nbdkit, when it has loaded this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plugin_init() -> *const abi::Plugin {
    &raw const plugin::PLUGIN
}
