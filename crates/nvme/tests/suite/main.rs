//! NVMe controller.
