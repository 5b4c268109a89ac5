//! The nbdkit plugin that serves a simulated drive as a block device.
//!
//! nbdkit speaks NBD and has the sockets and threads; [`flashatlas_serve::Server`] is the drive.
//! This crate connects the two: it has the interface of `nbdkit-plugin.h` (version 2), and the
//! clock.

mod abi;
mod clock;
mod plugin;

/// Returns the plugin's description, which nbdkit asks for first.
///
/// # Safety
/// Called once, by nbdkit, when it has loaded this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plugin_init() -> *const abi::Plugin {
    &raw const plugin::PLUGIN
}
