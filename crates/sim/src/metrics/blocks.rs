//! Content and role of every block over time, for the block explorer of the report.
//!
//! The table stays small: if the drive has more than [`CELLS_MAX`] blocks, neighbouring blocks
//! share a cell, and every second frame is dropped each time there are [`FRAMES_MAX`] frames.

use super::{Findings, Metric, MetricDef, Snapshot, Start, thin_out};
use crate::table::{Column, Table};
use flashatlas_ftl::Role;
use flashatlas_types::Divisor;
use serde_json::Value;

pub const DEF: MetricDef = MetricDef {
    name: "blocks",
    summary: "valid share, erases and role of every block over time",
    build: |start| Box::new(BlockFrames::new(start)),
};

const CELLS_MAX: u32 = 4096;
/// Number of frames at which every second frame is dropped.
const FRAMES_MAX: usize = 64;

struct BlockFrames {
    timed: bool,
    width: u64,
    frames: Vec<Frame>,
}

struct Frame {
    clock: u64,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    blocks: u32,
    valid: u64,
    erases: u64,
    roles: [u32; Role::ALL.len()],
}

impl BlockFrames {
    fn new(start: Start) -> BlockFrames {
        BlockFrames { timed: start.timed, width: start.first_width(), frames: Vec::new() }
    }

    fn take(&mut self, clock: u64, now: &Snapshot<'_>) {
        let per_cell = blocks_per_cell(now);
        let mut cells =
            vec![Cell::default(); now.medium.layout().blocks().div_ceil(per_cell) as usize];
        let by_cell = Divisor::new(per_cell);
        now.drive.for_each_block(&mut |block, role, valid| {
            let cell = &mut cells[by_cell.divide(block.number()) as usize];
            cell.blocks += 1;
            cell.valid += u64::from(valid);
            cell.erases += u64::from(now.medium.erases(block));
            cell.roles[role as usize] += 1;
        });
        self.frames.push(Frame { clock, cells });
    }
}

fn blocks_per_cell(now: &Snapshot<'_>) -> u32 {
    now.medium.layout().blocks().div_ceil(CELLS_MAX).max(1)
}

impl Metric for BlockFrames {
    fn next_sample(&self) -> u64 {
        self.frames.last().map_or(0, |f| f.clock.saturating_add(self.width))
    }

    fn sample(&mut self, clock: u64, now: &Snapshot<'_>) {
        if clock != 0 && clock != self.next_sample() {
            return;
        }
        self.take(clock, now);
        if self.frames.len() == FRAMES_MAX {
            self.width *= 2;
            thin_out(&mut self.frames);
        }
    }

    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        let mut alone = BlockFrames { timed: self.timed, width: self.width, frames: Vec::new() };
        alone.take(now.end_clock(self.timed), now);
        let of = |role: Role| -> u32 {
            alone.frames.iter().flat_map(|f| &f.cells).map(|cell| cell.roles[role as usize]).sum()
        };
        // only drives with an SLC cache have such blocks
        let shown = |role: &&Role| **role != Role::Slc || of(**role) > 0;
        let roles = Role::ALL.iter().filter(shown);
        let roles = roles.map(|&role| (role.name().to_owned(), of(role).into()));
        found.record.insert("blocks".into(), Value::Object(roles.collect()));
        found.tables.push(alone.table(now));
    }

    fn finish(&mut self, end: &Snapshot<'_>, found: &mut Findings) {
        let clock = end.end_clock(self.timed);
        if self.frames.last().is_none_or(|f| clock > f.clock) {
            self.take(clock, end);
        }
        found.tables.push(self.table(end));
    }
}

impl BlockFrames {
    fn table(&self, now: &Snapshot<'_>) -> Table {
        let slots = f64::from(now.medium.layout().slots_per_block);
        let each = |value: &dyn Fn(usize, &Frame, usize, &Cell) -> i64| {
            let frames = self.frames.iter().enumerate();
            let cells = frames.flat_map(|(i, f)| {
                f.cells.iter().enumerate().map(move |(j, cell)| (i, f, j, cell))
            });
            Column::Int(cells.map(|(i, f, j, cell)| value(i, f, j, cell)).collect())
        };
        let mean = |value: &dyn Fn(&Cell) -> f64| {
            let cells = self.frames.iter().flat_map(|f| &f.cells);
            Column::Float(cells.map(|cell| value(cell) / f64::from(cell.blocks)).collect())
        };
        let mut table = Table::new("blocks");
        table.add("frame", each(&|i, _, _, _| i as i64));
        let (name, unit) = if self.timed { ("time_ns", 1000) } else { ("request", 1) };
        table.add(name, each(&|_, f, _, _| (f.clock / unit) as i64));
        table.add("cell", each(&|_, _, j, _| j as i64));
        table.add("blocks", each(&|_, _, _, cell| i64::from(cell.blocks)));
        table.add("valid", mean(&|cell| cell.valid as f64 / slots));
        table.add("erases", mean(&|cell| cell.erases as f64));
        let most = |cell: &Cell| {
            (0..Role::ALL.len()).rev().max_by_key(|&r| cell.roles[r]).unwrap_or(0) as u8
        };
        let codes = self.frames.iter().flat_map(|f| &f.cells).map(most).collect();
        // only drives with an SLC cache list the role `Slc`, which is the last role
        let codes: Vec<u8> = codes;
        let has_slc = codes.contains(&(Role::Slc as u8));
        let roles = Role::ALL.iter().filter(|&&role| role != Role::Slc || has_slc);
        table.add("role", Column::Words { of: roles.map(|r| r.name()).collect(), codes });
        table
    }
}
