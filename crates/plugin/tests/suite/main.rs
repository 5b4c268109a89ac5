//! Tests of plug-ins in C and C++, which are compiled here with the system's compilers.

mod broken;
mod build;
mod header;
mod page;
mod store;
