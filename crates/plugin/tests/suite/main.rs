//! Plug-ins in C, compiled here with the system's compiler.

mod broken;
mod build;
mod header;
mod page;
mod store;
