//! Tests of collection, calculated by hand on one die with blocks of four pages: the pages that
//! each write moves, and the operations that each erase waits for. No operation completes, so all
//! operations are in flight.

use flashatlas_device::{Cmd, Device, Registry, Reply, Ssd};
use flashatlas_types::{BlockId, Lba, Lpn, OpId, OpKind, Ps, Seed, Tag};
use std::collections::BTreeSet;

/// A write of a page: its program, and the copies and erases in the same plan. Each copy has its
/// page. Each erase has the operations that it waits for.
struct Written {
    program: OpId,
    /// Operations that the program waits for.
    after: Vec<OpId>,
    copies: Vec<(u32, OpId)>,
    erases: Vec<(BlockId, Vec<OpId>)>,
}

impl Written {
    /// Returns the copy of a page.
    fn copy(&self, page: u32) -> OpId {
        self.copies.iter().find(|copy| copy.0 == page).expect("it is copied").1
    }
}

struct Drive {
    drive: Ssd,
    written: u64,
}

impl Drive {
    fn new(settings: &[&str]) -> Drive {
        let common = [
            "drive.channels=1",
            "drive.ways=1",
            "drive.blocks=8",
            "drive.pages=4",
            "drive.logical_pages=12",
            "cache.mode=write-through",
        ];
        let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
        let config = Registry::DRIVES.load("tiny", None, &settings).unwrap();
        Drive { drive: config.build(Seed(1)).unwrap(), written: 0 }
    }

    /// Writes one page. The host's program is the last program of that page in the plan.
    fn write(&mut self, page: u32) -> Written {
        self.written += 1;
        let write = Cmd::Write {
            lba: Lba(u64::from(page) * 4),
            sectors: 4,
            fua: false,
            content: self.written,
            data: None,
        };
        self.drive.submit(Ps::ZERO, Tag(self.written), write, &mut Reply::default()).unwrap();
        let layout = self.drive.layout().clone();
        let (mut programs, mut erases) = (Vec::new(), Vec::new());
        for (id, op, after) in self.drive.plan().iter() {
            match op.kind {
                OpKind::Program { block, page, .. } => {
                    let frame = layout.frame_in(layout.block_on_die(block), page);
                    let lpn = self.drive.medium().lpn(layout.first_slot(frame)).unwrap();
                    programs.push((lpn, id, after.to_vec()));
                }
                OpKind::Erase { block, .. } => {
                    erases.push((layout.block_on_die(block), after.to_vec()))
                }
                _ => {}
            }
        }
        let host = programs.iter().rposition(|p| p.0 == Lpn(page)).expect("it is programmed");
        let (_, program, after) = programs.remove(host);
        Written { program, after, copies: programs.iter().map(|p| (p.0.0, p.1)).collect(), erases }
    }

    fn write_all(&mut self, pages: &[u32]) -> Vec<Written> {
        pages.iter().map(|&page| self.write(page)).collect()
    }
}

fn sorted(mut ops: Vec<OpId>) -> Vec<OpId> {
    ops.sort();
    ops.dedup();
    ops
}

/// Blocks 0, 1 and 2 store pages 0 to 11. Block 3 gets 0, 1, 4, 5; block 4 gets 8, 0, 1, 2; block 5
/// gets 4, 5, 4, 5. Then no page in block 3 is valid. The next write finds two free blocks, which
/// are reserved, and collects block 3. Its erase waits for the programs of the newer 0, 1, 4, 5
/// (the first program of each). It does not wait for 8, 2 or the second 4 and 5, which are in
/// flight as well.
///
/// Then another block gets 9, 9, 8, 0. Page 3 is the only valid page of block 0, and no block has
/// fewer valid pages. The erase of block 0 waits for the copy of 3 and for the programs that
/// superseded 0, 1 and 2. (One victim does not free a block, so the same write collects another
/// victim.)
#[test]
fn the_erase_of_a_data_block_waits_for_its_own_pages() {
    let mut drive = Drive::new(&[]);
    drive.write_all(&(0..12).collect::<Vec<u32>>());
    let d = drive.write_all(&[0, 1, 4, 5]);
    let e = drive.write_all(&[8, 0, 1, 2]);
    let f = drive.write_all(&[4, 5, 4, 5]);
    let g = drive.write_all(&[9, 9, 8, 0]);
    let [(block, after)] = &g[0].erases[..] else { panic!("one erase") };
    let expected = [e[1].program, e[2].program, f[0].program, f[1].program];
    assert_eq!((block.number(), sorted(after.clone())), (3, expected.to_vec()));
    let next = drive.write(10);
    let (block, after) = &next.erases[0];
    let expected = sorted(vec![next.copy(3), d[0].program, d[1].program, e[3].program]);
    assert_eq!((block.number(), sorted(after.clone())), (0, expected));
}

/// FAST has one log block for sequential writes and two for other writes. Data blocks 0 to 2 store
/// pages 0 to 11. Pages 1, 5, 2, 9 fill a log block, and 6, 10, 7, 3 fill the second. The next
/// random page reclaims the first log block by full merges of logical blocks 0, 1 and 2. The erase
/// of each data block waits for the copies of its logical block, and for the programs that
/// superseded its pages in the log. The erase of the log block waits for the copies of its own
/// pages 1, 5, 2 and 9.
#[test]
fn the_erase_of_a_log_block_waits_for_its_own_pages() {
    let settings = ["ftl.scheme=fast", "ftl.log_blocks=3", "drive.blocks=16"];
    let mut drive = Drive::new(&settings);
    drive.write_all(&(0..12).collect::<Vec<u32>>());
    let log: Vec<Written> = drive.write_all(&[1, 5, 2, 9, 6, 10, 7, 3]);
    let of = |i: usize| log[i].program;
    let merged = drive.write(5);
    assert_eq!(merged.copies.len(), 12, "three full merges of four pages");
    // the programs that supersede the pages of each data block, and of the log block
    let copy = |page| merged.copy(page);
    let expected = [
        vec![copy(0), of(0), of(2), of(7)],
        vec![copy(4), of(1), of(4), of(6)],
        vec![copy(8), copy(11), of(3), of(5)],
        vec![copy(1), copy(5), copy(2), copy(9)],
    ];
    let expected: BTreeSet<Vec<OpId>> = expected.into_iter().map(sorted).collect();
    let found = merged.erases.iter().map(|(_, after)| sorted(after.clone())).collect();
    assert_eq!(expected, found);
}

/// The pace is `even`. Blocks 0 to 2 store pages 0 to 11, and block 3 gets 0, 2, 4, 0. When the
/// next block is opened, three blocks are free, one less than this pace maintains. Block 0 has the
/// fewest valid pages: 1 and 3. The write of 5 passes the slot of page 0. The write of 6 moves 1
/// and passes the slot of page 2. The write of 7 moves 3, and block 0 is erased. The next write
/// waits for the copy of 1, and the write after that waits for the copy of 3.
#[test]
fn an_even_pace_moves_a_part_of_a_victim_with_each_write() {
    let mut drive = Drive::new(&["ftl.gc_pace=even"]);
    drive.write_all(&(0..12).collect::<Vec<u32>>());
    let before = drive.write_all(&[0, 2, 4, 0]);
    assert!(before.iter().all(|w| w.copies.is_empty() && w.erases.is_empty()));
    let writes = drive.write_all(&[5, 6, 7]);
    let copies: Vec<usize> = writes.iter().map(|w| w.copies.len()).collect();
    assert_eq!(copies, [0, 1, 1]);
    let erases: Vec<usize> = writes.iter().map(|w| w.erases.len()).collect();
    assert_eq!(erases, [0, 0, 1]);
    let (block, after) = &writes[2].erases[0];
    let expected = [before[0].program, before[1].program, writes[1].copy(1), writes[2].copy(3)];
    assert_eq!((block.number(), sorted(after.clone())), (0, sorted(expected.to_vec())));
    let copies = [writes[1].copy(1), writes[2].copy(3)];
    let waits = |of: &Written| copies.map(|copy| of.after.contains(&copy));
    assert!(writes.iter().all(|write| waits(write) == [false; 2]));
    assert_eq!(
        drive.write_all(&[8, 9]).iter().map(waits).collect::<Vec<_>>(),
        [[true, false], [false, true]]
    );
}

/// The pace is `paced`. The room of the lane is kept at three blocks (the low-water mark and one
/// for the frontier of collection) and two frames, which are 14 slots. Once 19 of the 32 slots are
/// written, 13 are left, so each write from the 19th on passes a slot that is not valid. Block 1
/// stores pages 4 to 7. Pages 4, 5 and 6 are written again, and three writes pass their slots. The
/// fourth write moves 7, which frees no slot, and passes a slot of block 2, which has no valid page
/// left.
#[test]
fn paced_passes_a_slot_that_is_not_valid_with_each_write() {
    for step in ["16", "2"] {
        let mut drive = Drive::new(&["ftl.gc_pace=paced", &format!("ftl.gc_step={step}")]);
        drive.write_all(&(0..12).collect::<Vec<u32>>());
        let before = drive.write_all(&[0, 2, 4, 0]);
        let writes = drive.write_all(&[5, 6, 9, 10, 11, 8]);
        let quiet = before.iter().chain(&writes[..5]);
        assert!(quiet.into_iter().all(|w| w.copies.is_empty() && w.erases.is_empty()));
        assert_eq!(writes[5].copies.iter().map(|copy| copy.0).collect::<Vec<_>>(), [7]);
        let [(block, after)] = &writes[5].erases[..] else { panic!("block 1 is erased") };
        let programs = [&before[2], &writes[0], &writes[1]].map(|write| write.program);
        let expected = sorted([&programs[..], &[writes[5].copy(7)]].concat());
        assert_eq!((block.number(), sorted(after.clone())), (1, expected));
        // three slots of block 2 are left: the third write from here erases the block without a
        // copy
        let later = drive.write_all(&[0, 2, 4]);
        assert!(later.iter().all(|write| write.copies.is_empty()));
        let erases: Vec<usize> = later.iter().map(|write| write.erases.len()).collect();
        assert_eq!(erases, [0, 0, 1]);
    }
}

/// With a step of one frame, the write that moves a page passes no other slot. The next four writes
/// pass the four slots of block 2. With a larger step, three writes are enough.
#[test]
fn a_step_bounds_what_is_moved_with_one_write() {
    let mut drive = Drive::new(&["ftl.gc_pace=paced", "ftl.gc_step=1"]);
    drive.write_all(&(0..12).collect::<Vec<u32>>());
    drive.write_all(&[0, 2, 4, 0, 5, 6, 9, 10, 11, 8]);
    let later = drive.write_all(&[0, 2, 4, 5]);
    let erases: Vec<usize> = later.iter().map(|write| write.erases.len()).collect();
    assert_eq!(erases, [0, 0, 0, 1]);
}
