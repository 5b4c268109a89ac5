//! Parameters of the times of a NAND die, for the engine and for schemes that weigh operations.

use crate::{Dur, Param, STEPS_MAX};

/// The parameter `timing.t_read`.
pub const T_READ: Param<Dur> = Param::time("timing.t_read", "tR: sensing a (lower) page");

/// The parameter `timing.t_program`.
pub const T_PROGRAM: Param<Dur> =
    Param::time("timing.t_program", "tPROG: programming a (lower) page");

/// The parameter `timing.t_read_slc`.
pub const T_READ_SLC: Param<Dur> = Param::time(
    "timing.t_read_slc",
    "tR of a page of a block in SLC mode; 0: unknown, so no block may be in SLC mode",
)
.or("0");

/// The parameter `timing.t_program_slc`.
pub const T_PROGRAM_SLC: Param<Dur> = Param::time(
    "timing.t_program_slc",
    "tPROG of a page of a block in SLC mode; 0: unknown, so no block may be in SLC mode",
)
.or("0");

/// The parameters `timing.t_program_first`, `timing.t_program_second` and `timing.t_program_third`.
pub const T_PROGRAM_STEPS: [Param<Dur>; STEPS_MAX] = [
    Param::time(
        "timing.t_program_first",
        "tPROG of the first of several steps of a word line (ftl.program_steps); 0: unknown",
    )
    .or("0"),
    Param::time(
        "timing.t_program_second",
        "tPROG of the second step of a word line (ftl.program_steps); 0: unknown",
    )
    .or("0"),
    Param::time(
        "timing.t_program_third",
        "tPROG of the third step of a word line (ftl.program_steps); 0: unknown",
    )
    .or("0"),
];

/// The parameter `timing.t_erase`.
pub const T_ERASE: Param<Dur> = Param::time("timing.t_erase", "tBERS: erasing a block");
