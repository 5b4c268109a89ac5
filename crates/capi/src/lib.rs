//! `libflashatlas`: a drive of FlashAtlas for simulators and programs in C.
//!
//! The interface is in `include/flashatlas.h`, and in Rust in `src/abi.rs`. The host keeps the
//! clock. It submits each command at a time that it chooses, asks for the time of the next event,
//! and fetches complete commands (`drive/mod.rs`). Two drives share no state, and the same calls
//! give the same answers.
//!
//! A wrong call returns a code, stores a sentence for `fa_drive_error`, and changes nothing. A
//! panic of the simulator is caught at the interface. The drive then accepts no further command.

#[allow(non_camel_case_types, reason = "constants are named as C names them")]
pub mod abi;
#[allow(non_camel_case_types, reason = "constants are named as C names them")]
pub mod calls;
mod checkpoint;
mod command;
mod drive;
mod guard;
mod parts;
