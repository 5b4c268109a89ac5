//! Whole FTLs of plug-ins. Such a firmware in C or C++ is run, timed and checked like a built-in
//! scheme, also under power failures.
//!
//! FlashAtlas keeps its own map, which it derives from the firmware's programs ([`shadow`]). The
//! run ends with an error if a page is programmed twice or out of order, if an erase destroys the
//! newest version of a page, or if an answer is not the newest version. The error names the
//! plug-in, the callback and the block.

mod functions;
mod host;
mod shadow;
mod token;

use crate::abi::{FA_NOWHERE, FaFtl, FaHost, FaShape, FaStatus};
use crate::common::{Common, PluginError, required};
use crate::notes::{PLUGIN_FREE_COMPUTATION, PLUGIN_LOOKUPS_AFTER_MOUNT};
use crate::{params, tables, watch};
use flashatlas_ftl::{
    Ftl, FtlContext, FtlReport, Idle, Located, MemoryUse, MountLimit, MountReport, Place, Registry,
    Role, SchemeConfig, SchemeDef, schemes::TextOf,
};
use flashatlas_nand::{Medium, Unit};
use flashatlas_types::{
    BlockId, Cause, ConfigError, FtlError, Layout, Lpn, MediumError, OpId, ParamDef, Ppn, Violation,
};
use host::{Counts, HostCell, Session, State};
use shadow::Shadow;
use std::ffi::{CStr, c_void};
use token::Token;

/// Bytes for the reason that `fits` writes.
const WHY_BYTES: usize = 512;

/// Number of reads of each page that a mount may use.
const READS_PER_PAGE: u64 = 64;

struct Firmware {
    ops: FaFtl,
    ftl: *mut c_void,
    cell: Box<HostCell>,
    state: State,
    /// The buffer with the page that is passed to `write`.
    data: Vec<u8>,
}

// SAFETY: one thread at a time calls a plug-in for each object that it made
unsafe impl Send for Firmware {}

/// Returns the definition of a scheme with these callbacks.
pub fn definition(common: Common, ops: FaFtl) -> Result<SchemeDef, PluginError> {
    let who = common.who;
    required(
        who,
        &[
            ("mount", ops.mount.is_some()),
            ("destroy", ops.destroy.is_some()),
            ("locate", ops.locate.is_some()),
            ("write", ops.write.is_some()),
            ("trim", ops.trim.is_some()),
        ],
    )?;
    let declared = common.params;
    let all: Vec<&'static ParamDef> = declared.iter().collect();
    let keys: Vec<&'static str> = declared.iter().map(|def| def.key).collect();
    Ok(SchemeDef {
        name: common.name,
        summary: common.summary,
        paper: common.paper,
        params: Box::leak(Box::new(move |_: &Registry, _: &TextOf<'_>| Ok(all.clone()))),
        fits: Box::leak(Box::new(move |config: &SchemeConfig<'_>, layout: &Layout| {
            fits(who, &ops, config, declared, layout)
        })),
        rebuild: Box::leak(Box::new(
            move |config: &SchemeConfig<'_>, cx: &mut FtlContext<'_>, _| {
                let values = params::values(config.params, declared);
                Ok(Box::new(Firmware::mount(who, ops, &values, cx)?) as Box<dyn Ftl>)
            },
        )),
        // all parameters are listed, because only the firmware knows which of them decide the
        // places of pages
        on_flash: keys.leak(),
        mount_limit: &|_, layout| {
            let (blocks, frames) = (u64::from(layout.blocks()), u64::from(layout.frames()));
            MountLimit {
                spare_reads: READS_PER_PAGE * frames,
                reads: READS_PER_PAGE * frames,
                programs: frames,
                erases: 2 * blocks,
            }
        },
        steady: None,
        small: &[&[]],
        mechanisms: &[],
    })
}

fn shape(layout: &Layout) -> FaShape {
    FaShape {
        blocks: layout.blocks(),
        pages: layout.frames_per_block,
        page_bytes: layout.unit_bytes,
        logical_pages: layout.logical_units,
        blocks_per_lane: layout.blocks_per_lane,
    }
}

fn fits(
    who: &'static str,
    ops: &FaFtl,
    config: &SchemeConfig<'_>,
    declared: &'static [ParamDef],
    layout: &Layout,
) -> Result<(), ConfigError> {
    if layout.slots_per_frame > 1 {
        let (frame, unit) = (layout.frame_bytes(), layout.unit_bytes);
        let why = format!(
            "{who} programs whole frames: the unit must be one frame ({frame} bytes), not {unit} \
             bytes"
        );
        return Err(ConfigError::new("map.unit", why));
    }
    let Some(fits) = ops.fits else { return Ok(()) };
    let values = params::values(config.params, declared);
    let mut why = [0u8; WHY_BYTES];
    let answer = {
        let _call = watch::enter(who, "fits", 0);
        // SAFETY: as the header says; everything outlives the call, and the last byte stays 0
        unsafe {
            fits(&shape(layout), values.as_ptr(), why.as_mut_ptr().cast(), WHY_BYTES as u32 - 1)
        }
    };
    if answer == 0 {
        return Ok(());
    }
    let why = CStr::from_bytes_until_nul(&why).map(CStr::to_string_lossy).unwrap_or_default();
    let why = if why.is_empty() {
        "the FTL does not fit the drive, and the plug-in gives no reason".into()
    } else {
        why
    };
    Err(ConfigError::new("ftl.scheme", format!("{who}: {why}")))
}

impl Firmware {
    fn mount(
        who: &'static str,
        ops: FaFtl,
        values: &[crate::abi::FaValue],
        cx: &mut FtlContext<'_>,
    ) -> Result<Firmware, FtlError> {
        let medium = &*cx.flash.medium;
        let shadow = Shadow::new(medium);
        let shape = shape(&shadow.layout);
        let mut mount = MountReport::new(&shadow.layout);
        mount.count_unreadable(medium);
        let before = medium.counters;
        let cell = HostCell::new(functions::table);
        let mut state = State {
            who,
            shadow,
            chain: OpId::NONE,
            writes: 0,
            counts: Counts::default(),
            mount,
            retired: 0,
        };
        let mut session = Session::new(cx, &mut state, "mount");
        session.causes = [Cause::Recovery; 3];
        session.mounting = true;
        // SAFETY: as the header says; shape and values outlive the call
        let ftl = session.call(&cell, |host| unsafe {
            ops.mount.expect("checked")(host, &shape, values.as_ptr())
        })?;
        if ftl.is_null() {
            let why = session.why.take().unwrap_or_else(|| "the plug-in gives no reason".into());
            session.raise(format!("the callback returned null: {why}"));
        }
        let mut data = vec![0; shape.page_bytes as usize];
        data.shrink_to_fit();
        let mut firmware = Firmware { ops, ftl, cell, state, data };
        firmware.state.mount.finish(&before, cx.flash.medium);
        firmware.state.counts = Counts::default();
        firmware.learn(cx)?;
        Ok(firmware)
    }

    /// Fills the shadow map from the firmware's map after a mount.
    ///
    /// Asks for every page once, without simulated time.
    fn learn(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        let chain = self.state.chain;
        for lpn in (0..self.state.shadow.layout.logical_units).map(Lpn) {
            // a page that cannot be read is lost, and the mount has already counted it
            let place = match self.ask(cx, lpn, true) {
                Err(FtlError::Medium(MediumError::Unreadable(_) | MediumError::Damaged(_))) => {
                    continue;
                }
                place => place?,
            };
            if let Some(at) = place.mapped() {
                let found = cx.flash.medium.lpn(at);
                if found.is_err() {
                    continue;
                }
                if found != Ok(lpn) {
                    let session = Session::new(cx, &mut self.state, "locate");
                    let found = found.map_or_else(
                        |e| e.to_string(),
                        |f| format!("page {at} holds logical page {f}"),
                    );
                    session.raise(format!(
                        "after the mount, logical page {lpn} should be in page {at}, but: {found}"
                    ));
                }
                let frame = self.state.shadow.layout.frame_of(at);
                self.state.shadow.moved(lpn, frame, OpId::NONE, OpId::NONE);
            }
        }
        self.state.chain = chain;
        Ok(())
    }

    /// Asks the firmware for the place of a page. Returns the answer unchecked.
    fn ask(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn, silent: bool) -> Result<Ppn, FtlError> {
        let (ops, ftl) = (self.ops, self.ftl);
        let frames = self.state.shadow.layout.frames();
        let mut session = Session::new(cx, &mut self.state, "locate");
        session.silent = silent;
        let mut page = FA_NOWHERE;
        // SAFETY: as the header says
        let answer = session.call(&self.cell, |host| unsafe {
            ops.locate.expect("checked")(ftl, host, lpn.0, &mut page)
        })?;
        answered(&mut session, answer)?;
        if page != FA_NOWHERE && page >= frames {
            session.raise(format!(
                "logical page {lpn} cannot be in page {page}: the drive has the pages 0 to {}",
                frames - 1
            ));
        }
        Ok(if page == FA_NOWHERE { Ppn::NONE } else { Ppn(page) })
    }

    /// Returns `true` if the answer `found` is valid although the page was last programmed at
    /// `newest`.
    ///
    /// The answer is valid if that place holds the same version, and is then the newest place from
    /// then on. The answer is also valid if the page was lost before a mount.
    fn is_as_good(&mut self, cx: &FtlContext<'_>, lpn: Lpn, found: Ppn, newest: Ppn) -> bool {
        let Some(found) = found.mapped() else { return false };
        let Ok(here) = cx.flash.medium.unit(found) else { return newest == Ppn::NONE };
        let Some(newest) = newest.mapped() else { return false };
        let same = cx.flash.medium.unit(newest).is_ok_and(|there| there == here);
        if same && here.lpn == lpn {
            let frame = self.state.shadow.layout.frame_of(found);
            self.state.shadow.moved(lpn, frame, OpId::NONE, OpId::NONE);
        }
        same && here.lpn == lpn
    }

    /// Makes all writes and trims durable.
    fn flush_map(&mut self, cx: &mut FtlContext<'_>) -> Result<OpId, FtlError> {
        let Some(flush) = self.ops.flush else { return Ok(self.state.chain) };
        let ftl = self.ftl;
        let mut session = Session::new(cx, &mut self.state, "flush");
        // SAFETY: as the header says
        let answer = session.call(&self.cell, |host| unsafe { flush(ftl, host) })?;
        answered(&mut session, answer)?;
        Ok(self.state.chain)
    }
}

/// Checks the answer of a callback. An answer other than `FA_OK` is an error of the drive, or ends
/// the run.
fn answered(session: &mut Session<'_, '_>, answer: u32) -> Result<(), FtlError> {
    const OK: u32 = FaStatus::FA_OK as u32;
    const NO_SPACE: u32 = FaStatus::FA_NO_SPACE as u32;
    match answer {
        OK => Ok(()),
        NO_SPACE => {
            let shadow = &session.state.shadow;
            Err(FtlError::NoSpace {
                free_blocks: shadow.blocks.count(Role::Free) as u32,
                valid_units: shadow.blocks.total(),
                physical_units: u64::from(shadow.layout.slots()),
            })
        }
        other => match (session.medium_error(other), session.why.take()) {
            (Some(error), _) => Err(error.into()),
            (None, Some(why)) => session.raise(why),
            (None, None) => {
                session.raise(format!("the callback returned {other} instead of FA_OK"))
            }
        },
    }
}

impl Ftl for Firmware {
    fn locate(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn, _: u32) -> Result<Located, FtlError> {
        // a lookup waits for its command only, and not for other work of the firmware
        let chain = std::mem::replace(&mut self.state.chain, cx.command.first);
        let found = self.ask(cx, lpn, false)?;
        let ready = std::mem::replace(&mut self.state.chain, chain);
        let newest = self.state.shadow.newest[lpn];
        if found != newest && self.is_as_good(cx, lpn, found, newest) {
            return Ok(Located { place: self.peek(lpn), ready });
        }
        if found != newest {
            let named = |at: Ppn| at.mapped().map_or("nowhere".into(), |at| format!("page {at}"));
            let session = Session::new(cx, &mut self.state, "locate");
            session.raise(format!(
                "the answer for logical page {lpn} is {}, but its newest version is in {}",
                named(found),
                named(newest)
            ));
        }
        Ok(Located { place: self.peek(lpn), ready })
    }

    fn peek(&self, lpn: Lpn) -> Place {
        self.state.shadow.place(lpn)
    }

    fn write(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError> {
        let arrived = cx.flash.plan.join(cause.class(false), after);
        let (ops, ftl) = (self.ops, self.ftl);
        for unit in run {
            self.state.writes += 1;
            let token = Token { lpn: unit.lpn, from: Ppn::NONE, number: self.state.writes };
            self.data[..token::TOKEN_BYTES].copy_from_slice(&token.encode());
            let mut session = Session::new(cx, &mut self.state, "write");
            session.causes[0] = cause;
            session.unit = Some((unit, arrived));
            // SAFETY: as the header says; the data outlives the call
            let answer = session.call(&self.cell, |host| unsafe {
                ops.write.expect("checked")(ftl, host, unit.lpn.0, self.data.as_ptr().cast())
            })?;
            answered(&mut session, answer)?;
            if !session.programmed {
                session.raise(format!(
                    "page {} is not programmed when the callback returns",
                    unit.lpn
                ));
            }
        }
        Ok(())
    }

    fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError> {
        let (ops, ftl) = (self.ops, self.ftl);
        let mut session = Session::new(cx, &mut self.state, "trim");
        // SAFETY: as the header says
        let answer = session
            .call(&self.cell, |host| unsafe { ops.trim.expect("checked")(ftl, host, lpn.0) })?;
        answered(&mut session, answer)?;
        self.state.shadow.forget(lpn, OpId::NONE, OpId::NONE);
        Ok(())
    }

    fn flush(&mut self, _: &mut FtlContext<'_>) -> Result<(), FtlError> {
        Ok(())
    }

    fn persist(&mut self, cx: &mut FtlContext<'_>, fua: bool) -> Result<OpId, FtlError> {
        if fua && self.ops.recovers_from_spare_areas {
            return Ok(OpId::NONE);
        }
        self.flush_map(cx)
    }

    fn idle(&mut self, cx: &mut FtlContext<'_>) -> Result<Idle, FtlError> {
        let Some(idle) = self.ops.idle else { return Ok(Idle::Nothing) };
        let ftl = self.ftl;
        let mut worked = false;
        let mut session = Session::new(cx, &mut self.state, "idle");
        session.causes = [Cause::Idle; 3];
        // SAFETY: as the header says
        let answer = session.call(&self.cell, |host| unsafe { idle(ftl, host, &mut worked) })?;
        answered(&mut session, answer)?;
        Ok(if worked { Idle::Worked } else { Idle::Nothing })
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.state.shadow.blocks.for_each_block(visit);
    }

    fn check(&self, medium: &Medium) -> Result<(), Violation> {
        self.state.shadow.check(medium)
    }

    fn report(&self) -> FtlReport {
        let state = &self.state;
        let (allocated, _) = self.cell.allocated();
        FtlReport {
            forgets_trims: self.ops.forgets_trims,
            scheme_details: vec![
                ("copies", state.counts.copies),
                ("own_programs", state.counts.own_programs),
                ("own_reads", state.counts.own_reads),
                ("allocated_bytes", allocated),
            ],
            mount: state.mount.clone(),
            free_blocks: state.shadow.blocks.count(Role::Free) as u64,
            retired_blocks: state.retired,
            memory: self.tables(),
            approximations: vec![PLUGIN_FREE_COMPUTATION.note(), PLUGIN_LOOKUPS_AFTER_MOUNT.note()],
            ..FtlReport::default()
        }
    }

    fn reset_counters(&mut self) {
        self.state.counts = Counts::default();
    }
}

impl Firmware {
    /// Returns the tables that the firmware declares.
    fn tables(&self) -> Vec<MemoryUse> {
        let Some(declared) = self.ops.tables else { return Vec::new() };
        // SAFETY: as the header says
        tables::read(self.state.who, |all, room| unsafe { declared(self.ftl, all, room) })
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        let who = self.state.who;
        {
            let _call = watch::enter(who, "destroy", 0);
            let host: *const FaHost = &raw const self.cell.host;
            // SAFETY: this is the last use of the firmware
            unsafe { self.ops.destroy.expect("checked")(self.ftl, host) };
        }
        if let (bytes @ 1.., pieces) = self.cell.allocated() {
            eprintln!(
                "warning: {who}: `destroy` leaves {pieces} allocations with {bytes} bytes in all"
            );
        }
    }
}
