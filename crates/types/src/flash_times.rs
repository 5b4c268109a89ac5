//! Parameters of the times of a NAND die, for the engine and for schemes that weigh operations.

use crate::{Dur, Param};

/// The parameter `timing.t_read`.
pub const T_READ: Param<Dur> = Param::time("timing.t_read", "tR: sensing a (lower) page");

/// The parameter `timing.t_program`.
pub const T_PROGRAM: Param<Dur> =
    Param::time("timing.t_program", "tPROG: programming a (lower) page");

/// The parameter `timing.t_erase`.
pub const T_ERASE: Param<Dur> = Param::time("timing.t_erase", "tBERS: erasing a block");
