//! The block-mapped FTL. A logical block is in one physical block, with page `i` at offset `i`.
//!
//! If a page cannot be written in place, its block is *rewritten*. The new page and copies of the
//! other valid pages are written to a new block, and the old block is erased. With spare pages
//! (Shinohara), an update is first written to the next spare page of the same block. The block is
//! rewritten only if no spare page is left.

use super::{SchemeConfig, SchemeDef};
use crate::blocks::{Blocks, Role, WEAR_DYNAMIC, fits_whole_frames};
use crate::free::FreePool;
use crate::notes::BLOCK_VALID_PAGES;
use crate::sealed::{ROLE_MOUNT, leftovers, seal};
use crate::superseded::Superseded;
use crate::trims::{Trims, blocks_kept};
use crate::units::{check_names, read_for_copy};
use crate::{
    FREE_CHANGES, Ftl, FtlContext, FtlReport, Idle, Located, MemoryUse, MergeClass, MergeCounters,
    MountLimit, MountReport, Place, SCHEME, refuse_entry_bytes,
};
use flashatlas_nand::{FrameState, Medium, OobRole, ProgramOrder, Unit};
use flashatlas_types::{
    BLOCK_STEPS, BlockId, Cause, Class, ConfigError, FtlError, Index, Layout, LogicalBlock, Lpn,
    Mechanism, MediumError, MemoryKind, OpId, OpKind, Param, ParamDef, Params, Ppn, SeededBug,
    TiVec, Violation, beat, ti_vec,
};

pub const DEF: SchemeDef = SchemeDef {
    name: "block",
    summary: "block mapping: a page keeps its offset; updates rewrite the block",
    paper: "in common use; with spare pages Shinohara, US 5,905,993 (1999)",
    params: &|_, _| Ok(PARAMS.iter().collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits(params, layout),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| Ok(Box::new(BlockMapped::mount(params, cx)?)),
    on_flash: &["ftl.spare_pages"],
    mount_limit: &|&SchemeConfig { params, .. }, layout| {
        MountLimit::of_merges(layout, main_pages(params, layout))
    },
    steady: None,
    small: &[&[], &["ftl.spare_pages=1", "ftl.coalesce=false"], &["nand.program_order=any"]],
    mechanisms: &[
        Mechanism::new("write in place", "merges.in_place"),
        Mechanism::new("full merge", "merges.data_blocks.full"),
    ],
};

const SPARE_PAGES: Param<u32> = Param::int(
    "ftl.spare_pages",
    0,
    1 << 16,
    "number of pages in each block that are reserved for updates of its other pages (Shinohara: 8 \
     of 64)",
)
.or("0");

const COALESCE: Param<bool> =
    Param::flag("ftl.coalesce", "true: pages of one request in the same block share one rewrite")
        .or("true");

const PARAMS: &[ParamDef] = &[SPARE_PAGES.def, COALESCE.def, WEAR_DYNAMIC.def];

/// Returns the number of blocks that are reserved and store no data.
///
/// One block is for a rewrite, which fills a new block before the old block is erased. One block is
/// for repeating an interrupted rewrite. The remaining blocks are for the records of trims.
fn reserve(layout: &Layout) -> u32 {
    2 + blocks_kept(layout)
}

/// Returns the number of logical pages in a block, which excludes the spare pages.
fn main_pages(params: &Params, layout: &Layout) -> u32 {
    layout.frames_per_block.saturating_sub(params.get(SPARE_PAGES))
}

fn fits(params: &Params, layout: &Layout) -> Result<(), ConfigError> {
    fits_whole_frames(layout, "block mapping keeps")?;
    let with = format!("ftl.scheme = {}", params.get(SCHEME));
    refuse_entry_bytes(params, &with, "set ftl.scheme = page")?;
    let main = main_pages(params, layout);
    if main == 0 {
        return Err(ConfigError::new(
            "ftl.spare_pages",
            format!("must be less than the {} pages of a block", layout.frames_per_block),
        ));
    }
    let reserve = reserve(layout);
    let room = u64::from(layout.blocks().saturating_sub(reserve)) * u64::from(main);
    if u64::from(layout.logical_units.div_ceil(main)) * u64::from(main) > room {
        return Err(ConfigError::new(
            "drive.over_provisioning",
            format!(
                "{} logical pages do not fit: {} blocks hold {room} pages, because {reserve} of \
                 them are for rewrites and trims",
                layout.logical_units,
                layout.blocks()
            ),
        ));
    }
    Ok(())
}

struct BlockMapped {
    layout: Layout,
    /// The number of logical pages in a block.
    main: u32,
    coalesce: bool,
    any_order: bool,
    /// The physical block of each logical block.
    map: TiVec<LogicalBlock, Option<BlockId>>,
    /// The newest version of each page. A real drive without spare pages needs only `map`. The
    /// simulator uses this table to find versions and trimmed pages without reading spare areas.
    newest: TiVec<Lpn, Ppn>,
    blocks: Blocks,
    free: FreePool,
    /// For each block, the operation that freed it. Programs of the block wait for this operation.
    ready: TiVec<BlockId, OpId>,
    /// Programs that superseded pages of a block. The erase of the block waits for them.
    superseded: Superseded,
    trims: Trims,
    report: FtlReport,
    mount: MountReport,
    merges: MergeCounters,
}

impl BlockMapped {
    /// Rebuilds the tables from the spare areas. After an interrupted rewrite, a logical block is
    /// in two physical blocks. The version of each page that was programmed last is valid, and the
    /// logical block is rewritten again. If a mount was rewriting a logical block when it was
    /// interrupted, the logical block is rewritten from its old pages.
    fn mount(params: &Params, cx: &mut FtlContext<'_>) -> Result<BlockMapped, FtlError> {
        let medium = &*cx.flash.medium;
        let layout = medium.layout().clone();
        let main = main_pages(params, &layout);
        let mut ftl = BlockMapped {
            main,
            coalesce: params.get(COALESCE),
            any_order: medium.rules().order == ProgramOrder::Any,
            map: ti_vec![None; layout.logical_units.div_ceil(main).index()],
            newest: layout.per_page(Ppn::NONE),
            blocks: Blocks::new(&layout, medium),
            free: FreePool::new(&layout, params.get(WEAR_DYNAMIC)),
            ready: layout.per_block(OpId::NONE),
            superseded: Superseded::new(&layout),
            report: FtlReport::default(),
            mount: MountReport::new(&layout),
            merges: MergeCounters::default(),
            trims: Trims::new(&layout),
            layout,
        };
        let before = cx.flash.medium.counters;
        ftl.mount.count_unreadable(cx.flash.medium);
        ftl.discard_leftovers(cx)?;
        let medium = &*cx.flash.medium;
        for block in ftl.layout.block_ids().filter(|&b| !medium.is_bad(b)) {
            let written = medium.write_pointer(block);
            // the first page shows the block's role, or that the block is erased; the last page is
            // read twice (SchemeDef::mount)
            ftl.mount.read_spare_areas(
                &ftl.layout,
                block,
                if written == 0 { 1 } else { written + 1 },
            );
            if ftl.trims.has_block(block) {
                ftl.blocks.set_role(block, Role::Map);
                continue;
            }
            if written == 0 {
                ftl.free.push(ftl.layout.lane_of(block), block, medium.erases(block), OpId::NONE);
                continue;
            }
            ftl.blocks.set_role(block, Role::Open);
            for index in 0..written {
                let frame = ftl.layout.frame_in(block, index);
                let Ok(sequence) = medium.frame_sequence(frame) else { continue };
                let ppn = ftl.layout.first_slot(frame);
                let lpn = medium.lpn(ppn)?;
                if lpn.0 >= ftl.layout.logical_units || ftl.trims.is_dead(lpn, sequence) {
                    continue;
                }
                let newest = &mut ftl.newest[lpn];
                if ftl.blocks.supersede(medium, newest.mapped(), ppn, sequence)? {
                    *newest = ppn;
                    let lbn = ftl.lbn(lpn);
                    ftl.map[lbn] = Some(block);
                }
            }
        }
        ftl.trims.mounted(&ftl.newest);
        ftl.reclaim_leftovers(cx)?;
        if SeededBug::CopyTwice.is_active() {
            ftl.reclaim_leftovers(cx)?;
        }
        ftl.mount.finish(&before, cx.flash.medium);
        Ok(ftl)
    }

    /// Erases blocks that an interrupted mount was making, and all records of trims except the
    /// newest record.
    fn discard_leftovers(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        for block in leftovers(cx.flash.medium, &mut self.trims, &mut self.mount) {
            match cx.flash.erase(block, Cause::Recovery, &[]) {
                Err(MediumError::EraseFailed(_)) => {
                    self.blocks.set_role(block, Role::Bad);
                    self.report.retired_blocks += 1;
                }
                erased => drop(erased?),
            }
        }
        Ok(())
    }

    /// Rewrites logical blocks that a power cut left in two physical blocks, and erases blocks
    /// without a valid page.
    fn reclaim_leftovers(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        for block in self.layout.block_ids() {
            if self.blocks.role(block) == Role::Open && self.blocks.valid(block) == 0 {
                self.retire(cx, block, &[], Cause::Recovery)?;
            }
        }
        for lbn in self.map.keys() {
            let home = self.map[lbn];
            let elsewhere = self.pages(lbn).any(|lpn| {
                let newest = self.newest[lpn].mapped();
                newest.is_some_and(|ppn| Some(self.layout.block_of(ppn)) != home)
            });
            if elsewhere || SeededBug::CopyTwice.is_active() {
                self.rewrite(cx, lbn, &[], Cause::Recovery, &[])?;
            }
        }
        Ok(())
    }

    /// Returns the logical block of a page.
    #[inline]
    fn lbn(&self, lpn: Lpn) -> LogicalBlock {
        LogicalBlock::new(lpn.0 / self.main)
    }

    /// Returns the offset of a page in its logical block.
    #[inline]
    fn offset(&self, lpn: Lpn) -> u32 {
        lpn.0 % self.main
    }

    /// Returns the logical pages of a logical block.
    fn pages(&self, lbn: LogicalBlock) -> impl Iterator<Item = Lpn> + use<> {
        let first = lbn.number() * self.main;
        (first..(first + self.main).min(self.layout.logical_units)).map(Lpn)
    }

    fn take_free(
        &mut self,
        cx: &mut FtlContext<'_>,
        lbn: LogicalBlock,
        cause: Cause,
    ) -> Result<BlockId, FtlError> {
        let taken = self.free.take(cx, self.layout.lane_in_turn(lbn.number()));
        let (block, waits) = taken.ok_or_else(|| self.no_space())?;
        self.ready[block] = cx.flash.plan.join(cause.class(false), &waits);
        self.blocks.set_role(block, Role::Open);
        cx.flash
            .open(block, if cause == Cause::Recovery { ROLE_MOUNT } else { OobRole::default() });
        Ok(block)
    }

    /// Returns the error of a drive without a free block.
    fn no_space(&self) -> FtlError {
        FtlError::NoSpace {
            free_blocks: 0,
            valid_units: self.blocks.total(),
            physical_units: u64::from(self.layout.slots()),
        }
    }

    /// Erases a block without valid pages, after `after` and the programs that superseded its pages
    /// are complete.
    fn retire(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        after: &[OpId],
        cause: Cause,
    ) -> Result<(), FtlError> {
        let mut after = after.to_vec();
        after.extend(self.superseded.take(block, cx.command.oldest_unfinished));
        if self.trims.needs(block) {
            self.record_trims(cx)?;
        }
        after.push(self.trims.unfinished_for(cx, block));
        self.erase(cx, block, &after, cause)
    }

    /// Makes trims durable. Returns the operation that a FLUSH waits for. The erase of a block with
    /// trimmed pages waits for the same operation.
    fn record_trims(&mut self, cx: &mut FtlContext<'_>) -> Result<OpId, FtlError> {
        let no_space = self.no_space();
        let record = self.trims.record_pending(cx, &mut self.free, &mut self.blocks, no_space)?;
        for block in record.outdated {
            self.erase(cx, block, &[record.written], Cause::Map)?;
        }
        Ok(self.trims.unfinished(cx))
    }

    fn erase(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        after: &[OpId],
        cause: Cause,
    ) -> Result<(), FtlError> {
        beat(BLOCK_STEPS);
        if self.free.erase(cx, &mut self.blocks, block, after, cause)?.is_none() {
            self.report.retired_blocks += 1;
        }
        Ok(())
    }

    /// Returns the index in `block` at which page `lpn` can be programmed now, or `None` if the
    /// block must be rewritten.
    fn in_place(&self, medium: &Medium, block: BlockId, lpn: Lpn) -> Option<u32> {
        let erased = |index: u32| {
            medium.state(self.layout.frame_in(block, index)) == FrameState::Erased
                && (self.any_order || index >= medium.write_pointer(block))
        };
        let offset = self.offset(lpn);
        if erased(offset) {
            return Some(offset);
        }
        (self.main..self.layout.frames_per_block).find(|&spare| erased(spare))
    }

    fn program(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        index: u32,
        unit: &Unit,
        cause: Cause,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let frame = self.layout.frame_in(block, index);
        let ready = Some(self.ready[block]).filter(|&op| cx.may_be_unfinished(op));
        let after: Vec<OpId> = after.iter().copied().chain(ready).collect();
        let (ppn, op) = cx.flash.program(frame, std::iter::once(unit), cause, &after)?;
        self.trims.written(unit.lpn, op);
        let newest = &mut self.newest[unit.lpn];
        if let Some(old) = newest.mapped() {
            let (block, _) = self.blocks.invalidate(old);
            self.superseded.add(block, op, cx.command.oldest_unfinished);
        }
        *newest = ppn;
        self.blocks.set_valid(ppn);
        Ok(op)
    }

    /// Copies the newest pages of a logical block to a new physical block. The units of `run`
    /// replace the old versions of their pages.
    fn rewrite(
        &mut self,
        cx: &mut FtlContext<'_>,
        lbn: LogicalBlock,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError> {
        let new = self.take_free(cx, lbn, cause)?;
        let mut old: Vec<BlockId> = self.map[lbn].into_iter().collect();
        let mut done = Vec::new();
        for lpn in self.pages(lbn) {
            let index = self.offset(lpn);
            if let Some(unit) = run.iter().find(|u| u.lpn == lpn) {
                let op = self.program(cx, new, index, unit, cause, after)?;
                cx.took_host_data(op, 1);
                done.push(op);
            } else if let Some(from) = self.newest[lpn].mapped() {
                let (unit, sensed) = read_for_copy(cx, from, lpn, Cause::Merge)?;
                let copy_cause = if cause == Cause::Recovery { cause } else { Cause::Merge };
                let begin = cx.flash.plan.next_id();
                let op = self.program(cx, new, index, &unit, copy_cause, &[sensed])?;
                let source = std::iter::once((from, sensed));
                cx.copies.note((begin, op), source, cx.command.oldest_unfinished);
                done.push(op);
                self.merges.copies += 1;
                if !old.contains(&self.layout.block_of(from)) {
                    old.push(self.layout.block_of(from));
                }
            }
        }
        if cause == Cause::Recovery {
            seal(cx, new, cause)?;
        }
        self.map[lbn] = Some(new);
        if !old.is_empty() {
            self.merges.merged(MergeClass::Full);
        }
        // a block that a mount writes counts only after all of its pages are programmed
        let (complete, cause) = match cause {
            Cause::Recovery => (&done[..], cause),
            _ => (&[][..], Cause::Merge),
        };
        for block in old {
            if self.blocks.valid(block) == 0 {
                self.retire(cx, block, complete, cause)?;
            }
        }
        Ok(())
    }

    /// Writes pages of one logical block.
    fn write_block(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError> {
        let lbn = self.lbn(run[0].lpn);
        if self.map[lbn].is_none() {
            self.map[lbn] = Some(self.take_free(cx, lbn, cause)?);
        }
        for (i, unit) in run.iter().enumerate() {
            let block = self.map[lbn].expect("the block was mapped above");
            match self.in_place(cx.flash.medium, block, unit.lpn) {
                Some(index) => {
                    self.merges.in_place += 1;
                    let op = self.program(cx, block, index, unit, cause, after)?;
                    cx.took_host_data(op, 1);
                }
                None if self.coalesce => return self.rewrite(cx, lbn, &run[i..], cause, after),
                None => self.rewrite(cx, lbn, &run[i..=i], cause, after)?,
            }
        }
        Ok(())
    }
}

impl Ftl for BlockMapped {
    fn locate(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn, _: u32) -> Result<Located, FtlError> {
        self.report.map.lookups += 1;
        self.report.map.hits += 1;
        let access = OpKind::Memory { kind: MemoryKind::Sram, accesses: 1, bytes: 4, write: false };
        let ready = cx.flash.plan.push(access, Class::Map, &[cx.command.first]);
        Ok(Located { place: self.peek(lpn), ready })
    }

    fn peek(&self, lpn: Lpn) -> Place {
        self.newest[lpn].mapped().map_or(Place::Nowhere, Place::Flash)
    }

    fn write(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError> {
        let arrived = [cx.flash.plan.join(cause.class(false), after)];
        let main = self.main;
        let same_block = |a: &Unit, b: &Unit| a.lpn.0 / main == b.lpn.0 / main;
        run.chunk_by(same_block).try_for_each(|part| self.write_block(cx, part, cause, &arrived))
    }

    fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError> {
        let newest = &mut self.newest[lpn];
        let Some(old) = newest.mapped() else { return Ok(()) };
        *newest = Ppn::NONE;
        let (block, valid) = self.blocks.invalidate(old);
        self.trims.trimmed(lpn, block);
        if valid == 0 {
            let lbn = self.lbn(lpn);
            self.map[lbn] = None;
            self.retire(cx, block, &[], Cause::Merge)?;
        }
        Ok(())
    }

    fn flush(&mut self, _: &mut FtlContext<'_>) -> Result<(), FtlError> {
        Ok(())
    }

    fn persist(&mut self, cx: &mut FtlContext<'_>, fua: bool) -> Result<OpId, FtlError> {
        if fua { Ok(OpId::NONE) } else { self.record_trims(cx) }
    }

    fn idle(&mut self, _: &mut FtlContext<'_>) -> Result<Idle, FtlError> {
        Ok(Idle::Nothing)
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.blocks.for_each_block(visit);
    }

    fn check(&self, medium: &Medium) -> Result<(), Violation> {
        medium.check()?;
        self.blocks.check(&self.layout, medium)?;
        let mut mapped = 0;
        for (lpn, ppn) in self.newest.iter_enumerated() {
            let Some(ppn) = ppn.mapped() else { continue };
            mapped += 1;
            let (block, offset) = (self.layout.block_of(ppn), ppn.0 % self.layout.slots_per_block);
            let home = self.map[self.lbn(lpn)];
            Violation::unless(
                home == Some(block),
                "a page is in its logical block's physical block",
                || format!("page {lpn} is in block {block}, but the map names block {home:?}"),
            )?;
            let at_home = offset == self.offset(lpn) || offset >= self.main;
            Violation::unless(at_home, "a page is at its offset or in a spare page", || {
                format!("page {lpn} is at offset {offset}")
            })?;
            check_names(medium, ppn, lpn)?;
        }
        let valid = self.blocks.total();
        Violation::unless(mapped == valid, "every valid slot is mapped", || {
            format!("{mapped} slots are mapped, but {valid} slots are valid")
        })?;
        let (open, homes) = (self.blocks.count(Role::Open), self.map.iter().flatten().count());
        Violation::unless(open == homes, "every block in use belongs to a logical block", || {
            format!("{open} blocks are in use, but {homes} blocks are mapped")
        })?;
        let (listed, free) = (self.free.len(), self.blocks.count(Role::Free));
        Violation::unless(free as u32 == listed, "every free block is listed", || {
            format!("{free} blocks are free, but {listed} blocks are listed")
        })
    }

    fn report(&self) -> FtlReport {
        let mut report = self.report.clone();
        report.merges = Some(self.merges);
        report.mount = self.mount.clone();
        report.free_blocks = self.free.len().into();
        let entries = self.map.len() as u64;
        report.memory =
            vec![MemoryUse { table: "block map", memory: MemoryKind::Sram, bytes: entries * 4 }];
        report.memory.extend(self.trims.memory());
        report.approximations = vec![FREE_CHANGES.note(), BLOCK_VALID_PAGES.note()];
        report
    }

    fn reset_counters(&mut self) {
        self.report =
            FtlReport { retired_blocks: self.report.retired_blocks, ..FtlReport::default() };
        self.merges = MergeCounters::default();
    }
}
