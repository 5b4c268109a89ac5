//! Tables that a part declares.

use crate::abi::{FaMemory, FaTable};
use crate::common::text;
use crate::watch;
use flashatlas_ftl::MemoryUse;
use flashatlas_types::{MemoryKind, PartFault};

/// Largest number of tables of a part. Further tables are ignored.
const TABLES_MAX: usize = 64;

/// Returns the kind of memory with this number, if there is one.
pub fn memory_of(memory: u32) -> Option<MemoryKind> {
    match memory {
        m if m == FaMemory::FA_SRAM as u32 => Some(MemoryKind::Sram),
        m if m == FaMemory::FA_DRAM as u32 => Some(MemoryKind::Dram),
        _ => None,
    }
}

/// Returns the tables that `tables` fills in.
///
/// `tables` gets an array and its length. It returns the number of tables that it filled in.
pub fn read(who: &'static str, tables: impl FnOnce(*mut FaTable, u32) -> u32) -> Vec<MemoryUse> {
    let none = FaTable { name: std::ptr::null(), memory: 0, bytes: 0 };
    let mut all = [none; TABLES_MAX];
    let count = {
        let _call = watch::enter(who, "tables", 0);
        tables(all.as_mut_ptr(), TABLES_MAX as u32)
    };
    let declared = |table: &FaTable| {
        // SAFETY: as the header says, a text or null
        let name = unsafe { text(who, "name of a table", table.name) };
        let name = name.unwrap_or_else(|e| PartFault::raise(who, format!("`tables`: {e}")));
        let memory = memory_of(table.memory).unwrap_or_else(|| {
            let why = format!("`tables`: the memory {} is not an fa_memory", table.memory);
            PartFault::raise(who, why)
        });
        MemoryUse { table: name, memory, bytes: table.bytes }
    };
    all[..(count as usize).min(TABLES_MAX)].iter().map(declared).collect()
}
