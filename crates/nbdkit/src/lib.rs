//! The nbdkit plugin that serves a simulated drive as a block device.
//!
//! nbdkit handles the NBD protocol, the sockets and the threads. The drive is a
//! [`flashatlas_serve::Server`]. This crate connects nbdkit and the drive. It implements the
//! interface of `nbdkit-plugin.h` (version 2), and reads the machine's clock.

mod abi;
mod plugin;

/// Returns the machine's clock, from now on.
#[allow(clippy::disallowed_methods, reason = "replies are held until the drive would answer")]
fn clock() -> flashatlas_serve::Wall {
    flashatlas_serve::Wall::since(std::time::Instant::now())
}

/// Returns the plugin's description. nbdkit calls this function first.
///
/// # Safety
/// nbdkit calls this function once, after it has loaded this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plugin_init() -> *const abi::Plugin {
    &raw const plugin::PLUGIN
}
