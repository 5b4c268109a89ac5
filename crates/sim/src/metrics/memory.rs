//! Memory that the drive's tables occupy.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_types::MemoryKind;
use serde_json::{Map, Value};

pub const DEF: MetricDef = MetricDef {
    name: "memory",
    summary: "bytes of the drive's tables by kind of memory, and of each table",
    build: |_| Box::new(OfCounters(finish)),
};

fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let mut memory = Map::new();
    for (key, kind) in [
        ("map_sram", MemoryKind::Sram),
        ("map_dram", MemoryKind::Dram),
        ("map_nvm", MemoryKind::Nvm),
    ] {
        let bytes: u64 = end.ftl.memory.iter().filter(|t| t.memory == kind).map(|t| t.bytes).sum();
        if bytes > 0 {
            memory.insert(key.into(), bytes.into());
        }
    }
    if end.drive.cache_bytes() > 0 {
        memory.insert("write_cache".into(), end.drive.cache_bytes().into());
    }
    let tables = end.ftl.memory.iter().map(|t| (t.table.to_owned(), t.bytes.into())).collect();
    memory.insert("tables".into(), Value::Object(tables));
    found.record.insert("memory_bytes".into(), Value::Object(memory));
}
