//! Map stores of plug-ins. The map is in the plug-in's own memory.
//!
//! FlashAtlas also keeps a correct map, with which it compares every answer. The plug-in's map is
//! not on flash, so a mount reads the spare areas of data.

use crate::abi::{FA_NOWHERE, FaMap, FaStore};
use crate::common::{Common, PluginError, required};
use crate::notes::PLUGIN_MAP_IN_MEMORY;
use crate::{params, tables, watch};
use flashatlas_ftl::maps::{
    MapContext, MapPage, MapStore, MapStoreDef, Replay, StoreConfig, Update,
};
use flashatlas_ftl::pool::MapQuota;
use flashatlas_ftl::{MapCounters, MemoryUse, MountReport};
use flashatlas_types::{
    BlockId, Class, FtlError, Layout, Lpn, MemoryKind, Note, OpId, OpKind, PartFault, Ppn, PpnTable,
};
use std::ffi::c_void;

/// Largest number of accesses in one call. Without it, an endless loop would fill the simulator's
/// memory.
const ACCESSES_MAX: usize = 1 << 16;

/// The map of one drive.
struct Store {
    who: &'static str,
    ops: FaStore,
    store: *mut c_void,
    truth: PpnTable,
    counters: MapCounters,
    accesses: Vec<OpKind>,
    /// `true` until the mount is complete. Until then, accesses take no time.
    mounting: bool,
}

// SAFETY: only one thread at a time calls a plug-in for an object that the plug-in made, and the
// header forbids static variables
unsafe impl Send for Store {}

/// Returns the definition of a store with these callbacks.
pub fn definition(common: Common, ops: FaStore) -> Result<MapStoreDef, PluginError> {
    let who = common.who;
    required(
        who,
        &[
            ("create", ops.create.is_some()),
            ("destroy", ops.destroy.is_some()),
            ("get", ops.get.is_some()),
            ("set", ops.set.is_some()),
        ],
    )?;
    let declared = common.params;
    let build = move |config: &StoreConfig<'_>, layout: &Layout| {
        let values = params::values(config.params, declared);
        let create = ops.create.expect("checked");
        let _call = watch::enter(who, "create", 0);
        // SAFETY: as the header says; the values outlive the call
        let store = unsafe { create(values.as_ptr(), layout.logical_units, layout.slots()) };
        if store.is_null() {
            PartFault::raise(who, "`create` returned null");
        }
        let truth = PpnTable::new(layout.logical_units);
        let counters = MapCounters::default();
        Box::new(Store { who, ops, store, truth, counters, accesses: Vec::new(), mounting: true })
            as Box<dyn MapStore>
    };
    Ok(MapStoreDef {
        name: common.name,
        summary: common.summary,
        paper: common.paper,
        params: declared,
        fits: &|_, _| Ok(MapQuota::default()),
        exports_entries: false,
        build: Box::leak(Box::new(build)),
        small: &[],
        mechanisms: &[],
    })
}

/// Adds accesses to a map. This is the function `access` of `fa_map`.
///
/// # Safety
/// `map` is the pointer that was passed to a callback, and this callback has not returned.
unsafe extern "C" fn access(
    map: *const FaMap,
    memory: u32,
    accesses: u32,
    bytes: u32,
    write: bool,
) {
    // SAFETY: as above; the context is the list of this call
    let list = unsafe { &mut *(*map).context.cast::<Vec<OpKind>>() };
    // an invalid memory is recorded as NVM, and reported when the call returns
    let kind = tables::memory_of(memory).unwrap_or(MemoryKind::Nvm);
    if list.len() <= ACCESSES_MAX {
        list.push(OpKind::Memory { kind, accesses, bytes, write });
    }
}

impl Store {
    /// Calls `work` with a map that records accesses, and adds these accesses to the plan.
    ///
    /// The first access waits for `after`, and each other access for the access before it. Returns
    /// the answer of `work` and the last access.
    fn call<T>(
        &mut self,
        callback: &'static str,
        io: &mut MapContext<'_, '_>,
        after: OpId,
        work: impl FnOnce(&FaStore, *mut c_void, *const FaMap) -> T,
    ) -> (T, OpId) {
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        let map = FaMap { context: (&raw mut accesses).cast(), access };
        let answer = {
            let _call = watch::enter(self.who, callback, io.cx.command.now.0);
            work(&self.ops, self.store, &map)
        };
        if accesses.len() > ACCESSES_MAX {
            self.wrong(
                callback,
                format!("the call made more than {ACCESSES_MAX} accesses and did not end"),
            );
        }
        let mut last = after;
        for &kind in &accesses {
            if matches!(kind, OpKind::Memory { kind: MemoryKind::Nvm, .. }) {
                self.wrong(callback, "an access names a memory that is not an fa_memory".into());
            }
            if !self.mounting {
                last = io.cx.flash.plan.push(kind, Class::Map, &[last]);
            }
        }
        self.accesses = accesses;
        (answer, last)
    }

    fn wrong(&self, callback: &str, why: String) -> ! {
        PartFault::raise(self.who, format!("`{callback}`: {why}"))
    }

    /// Compares the answer of a callback with the correct place of a page. Returns this place.
    fn compare(&self, callback: &str, lpn: Lpn, answer: u32) -> Ppn {
        let truth = self.truth.get(lpn);
        let said = if answer == FA_NOWHERE { Ppn::NONE } else { Ppn(answer) };
        if said != truth {
            let place = |ppn: Ppn| match ppn.mapped() {
                Some(ppn) => format!("page {ppn} of the flash"),
                None => "nowhere".into(),
            };
            let why =
                format!("page {lpn} is {}, but the plug-in returned {}", place(truth), place(said));
            self.wrong(callback, why);
        }
        truth
    }

    /// Changes an entry of the plug-in's map.
    fn change(
        &mut self,
        callback: &'static str,
        io: &mut MapContext<'_, '_>,
        update: Update,
    ) -> (Ppn, OpId) {
        let page = update.ppn.mapped().map_or(FA_NOWHERE, |ppn| ppn.0);
        let (answer, last) = self.call(callback, io, update.op, |ops, store, map| {
            let call = match callback {
                "moved" => ops.moved.expect("checked"),
                _ => ops.set.expect("checked"),
            };
            // SAFETY: `create` made the store, and `destroy` has not freed it
            unsafe { call(store, map, update.lpn.0, page) }
        });
        self.compare(callback, update.lpn, answer);
        (self.truth.replace(update.lpn, update.ppn), last)
    }
}

impl MapStore for Store {
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        self.counters.lookups += 1;
        self.counters.hits += 1;
        let command = io.cx.command.first;
        let (answer, last) = self.call("get", io, command, |ops, store, map| {
            // SAFETY: as in `change`
            unsafe { ops.get.expect("checked")(store, map, lpn.0) }
        });
        Ok((self.compare("get", lpn, answer), last))
    }

    fn peek(&self, lpn: Lpn) -> Ppn {
        self.truth.get(lpn)
    }

    fn set(
        &mut self,
        io: &mut MapContext<'_, '_>,
        update: Update,
    ) -> Result<(Ppn, OpId), FtlError> {
        self.counters.updates += 1;
        self.counters.update_hits += 1;
        Ok(self.change("set", io, update))
    }

    fn moved(&mut self, io: &mut MapContext<'_, '_>, update: Update) -> Result<Ppn, FtlError> {
        self.counters.updates += 1;
        self.counters.update_hits += 1;
        let callback = if self.ops.moved.is_some() { "moved" } else { "set" };
        Ok(self.change(callback, io, update).0)
    }

    fn load(
        &mut self,
        _: &mut MapContext<'_, '_>,
        _: &[BlockId],
        _: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        Ok(Replay::everything(1))
    }

    fn restore(&mut self, lpn: Lpn, ppn: Ppn, _: u64) {
        self.truth.replace(lpn, ppn);
    }

    /// Reports the pages that a mount has found to the plug-in, in ascending order.
    fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        _: &mut MountReport,
    ) -> Result<(), FtlError> {
        let found: Vec<(Lpn, Ppn)> = (0..self.truth.len())
            .map(|lpn| (Lpn(lpn), self.truth.get(Lpn(lpn))))
            .filter(|&(_, ppn)| ppn != Ppn::NONE)
            .collect();
        for (lpn, ppn) in found {
            let (answer, _) = self.call("set", io, OpId::NONE, |ops, store, map| {
                // SAFETY: as in `change`
                unsafe { ops.set.expect("checked")(store, map, lpn.0, ppn.0) }
            });
            if answer != FA_NOWHERE {
                self.wrong(
                    "set",
                    format!("page {lpn} was nowhere, but the plug-in returned page {answer}"),
                );
            }
        }
        self.mounting = false;
        Ok(())
    }

    fn forgets_trims(&self) -> bool {
        true
    }

    fn page_of(&self, _: Lpn) -> MapPage {
        MapPage::new(0)
    }

    fn counters(&self) -> MapCounters {
        self.counters
    }

    fn reset_counters(&mut self) {
        self.counters = MapCounters::default();
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let Some(declared) = self.ops.tables else { return Vec::new() };
        // SAFETY: as in `change`
        tables::read(self.who, |all, room| unsafe { declared(self.store, all, room) })
    }

    fn approximations(&self) -> Vec<Note> {
        vec![PLUGIN_MAP_IN_MEMORY.note()]
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _call = watch::enter(self.who, "destroy", 0);
        // SAFETY: this is the last use of the store
        unsafe { self.ops.destroy.expect("checked")(self.store) };
    }
}
