//! `libflashatlas`: a drive of FlashAtlas for simulators and programs in C.
//!
//! `include/flashatlas.h` is the interface. `src/abi.rs` (types) and `src/calls.rs` (functions) are
//! the same in Rust. The host keeps the clock: it submits a command at a time of its own, asks when
//! something happens next, and fetches what is complete (`drive/`). Two drives share no state, and
//! the same calls give the same answers.
//!
//! A call with a mistake returns a code, leaves a sentence, and changes nothing. A panic of the
//! simulator is caught at the interface; the drive then takes no further command.

#[allow(non_camel_case_types, reason = "constants are named as C names them")]
pub mod abi;
#[allow(non_camel_case_types, reason = "constants are named as C names them")]
pub mod calls;
mod checkpoint;
mod command;
mod drive;
mod guard;
mod parts;
