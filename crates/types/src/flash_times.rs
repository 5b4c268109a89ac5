//! The times of a NAND die that the engine needs, and also a scheme that weighs operations by them.

use crate::{Dur, Param};

/// The parameter `timing.t_read`.
pub const T_READ: Param<Dur> = Param::time("timing.t_read", "tR: sensing a (lower) page");

/// The parameter `timing.t_program`.
pub const T_PROGRAM: Param<Dur> =
    Param::time("timing.t_program", "tPROG: programming a (lower) page");

/// The parameter `timing.t_erase`.
pub const T_ERASE: Param<Dur> = Param::time("timing.t_erase", "tBERS: erasing a block");
