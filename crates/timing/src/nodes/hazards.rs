//! The three rules of order on a block. Priorities do not change them.
//!
//! A read of a page waits for that page's program. An erase waits for every earlier operation on
//! its block. The programs of a block start in order. A read may look back to an earlier operation,
//! and then ignores programs issued after that operation. An erase issued after that operation
//! waits for the read.

use super::{Copyback, NIL, Node, NodeKind, Nodes};
use flashatlas_types::{DieBlock, OpId};

/// The unfinished operations on one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfinished {
    /// Newest unfinished program or erase of the block.
    pub writers: u32,
    /// Number of erases of the block that were issued so far.
    pub epoch: u32,
    /// Number of reads issued since the last erase.
    pub readers: u32,
    /// Newest erase that waits for reads.
    pub draining: u32,
}

/// An erase that waits until the reads issued before it are complete. The reads are counted and not
/// listed, because a victim block has hundreds of reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draining {
    /// Epoch of the reads.
    pub epoch: u32,
    pub erase: u32,
    pub left: u32,
    /// The next older erase of the block that waits for reads; nearly always [`NIL`].
    pub older: u32,
}

impl Node {
    /// Returns the epoch of a read: the number of erases of its block that were issued before it.
    /// The epoch is stored in `following`, which a read does not use otherwise.
    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.following
    }

    #[inline]
    fn epoch_mut(&mut self) -> &mut u32 {
        &mut self.following
    }
}

impl Nodes {
    /// Returns the newest unfinished program of a page that was issued before operation `before`.
    pub fn program_of(&self, block: DieBlock, page: u32, before: OpId) -> Option<u32> {
        let mut writer = self.blocks[block].writers;
        while writer != NIL {
            let w = self.at(writer);
            let programs = matches!(w.work, NodeKind::Program | NodeKind::Copyback);
            if programs && w.page == page && w.id < before {
                return Some(writer);
            }
            writer = w.previous;
        }
        None
    }

    pub(super) fn add_reader(&mut self, n: u32, block: DieBlock, page: u32) {
        if let Some(program) = self.program_of(block, page, OpId(u64::MAX)) {
            self.wait(n, program);
        }
        self.count_reader(n, block);
    }

    /// Adds a read of a page as it was when operation `seen` was issued. If the first unfinished
    /// erase since then still waits for other operations, that erase also waits for the read.
    pub(super) fn add_past_reader(&mut self, n: u32, block: DieBlock, page: u32, seen: OpId) {
        if let Some(program) = self.program_of(block, page, seen) {
            self.wait(n, program);
        }
        let (mut writer, mut erase) = (self.blocks[block].writers, NIL);
        while writer != NIL && self.at(writer).id > seen {
            if self.at(writer).work == NodeKind::Erase {
                erase = writer;
            }
            writer = self.at(writer).previous;
        }
        if erase != NIL && self.at(erase).waiting > 0 {
            self.wait(erase, n);
        }
        self.count_reader(n, block);
    }

    fn count_reader(&mut self, n: u32, block: DieBlock) {
        *self.nodes[n].epoch_mut() = self.next_reader(block);
    }

    /// Counts a reader of a block, and returns its epoch.
    fn next_reader(&mut self, block: DieBlock) -> u32 {
        let unfinished = &mut self.blocks[block];
        unfinished.readers += 1;
        unfinished.epoch
    }

    /// Adds the reads of a copyback. Its node is in the list of programs of its other block.
    pub fn add_copyback(&mut self, n: u32, copyback: &mut Copyback) {
        let mut last = None;
        for source in &copyback.sources {
            // the pages of a word line have one program
            if last.replace(source.page) != Some(source.page)
                && let Some(program) = self.program_of(source.block, source.page, OpId(u64::MAX))
            {
                self.wait(n, program);
            }
        }
        copyback.epoch = self.next_reader(copyback.from());
    }

    /// Makes an erase wait for the reads of its block that were issued so far. Later reads belong
    /// to the next epoch.
    pub(super) fn drain_readers(&mut self, erase: u32, block: DieBlock) {
        let unfinished = &mut self.blocks[block];
        let (epoch, left) = (unfinished.epoch, std::mem::take(&mut unfinished.readers));
        unfinished.epoch = epoch.wrapping_add(1);
        if left > 0 {
            let waits = Draining { epoch, erase, left, older: unfinished.draining };
            unfinished.draining = self.draining.put(waits);
            self.at_mut(erase).waiting += 1;
        }
    }

    /// Ends a read. If an erase waited only for this read, returns the erase.
    #[inline(always)] // every read ends here
    pub fn reader_done(&mut self, block: DieBlock, epoch: u32) -> Option<u32> {
        let unfinished = &mut self.blocks[block];
        if unfinished.epoch == epoch {
            unfinished.readers -= 1;
            return None;
        }
        // a read of an earlier epoch is in the count of an erase
        let (mut d, mut newer) = (unfinished.draining, NIL);
        while self.draining[d].epoch != epoch {
            (newer, d) = (d, self.draining[d].older);
        }
        self.draining[d].left -= 1;
        let Draining { erase, left, older, .. } = self.draining[d];
        if left > 0 {
            return None;
        }
        match newer {
            NIL => self.blocks[block].draining = older,
            newer => self.draining[newer].older = older,
        }
        self.draining.free(d);
        self.release(erase)
    }

    pub(super) fn add_writer(&mut self, n: u32, block: DieBlock) {
        let newest = std::mem::replace(&mut self.blocks[block].writers, n);
        if newest != NIL && !self.at(newest).halfway {
            self.at_mut(n).waiting += 1;
        }
        self.link(n, newest);
    }

    fn link(&mut self, n: u32, newest: u32) {
        self.at_mut(n).previous = newest;
        if newest != NIL {
            self.at_mut(newest).following = n;
        }
    }

    /// Removes a complete program or erase from the list of its block. Its neighbours in the list
    /// were `previous` and `following`.
    pub(super) fn writer_done(&mut self, block: DieBlock, previous: u32, following: u32) {
        if previous != NIL {
            self.at_mut(previous).following = following;
        }
        if following != NIL {
            self.at_mut(following).previous = previous;
        } else {
            self.blocks[block].writers = previous;
        }
    }

    /// Notes that a program or erase has started on its die, so that the next program or erase of
    /// its block may queue. Returns that operation if it waits for no other operation.
    pub fn started(&mut self, n: u32) -> Option<u32> {
        let node = self.at_mut(n);
        assert!(!std::mem::replace(&mut node.halfway, true), "operation {} begins twice", node.id);
        match node.following {
            NIL => None,
            following => self.release(following),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Cause, OpKind, Plan};

    /// The end of a read examines only the erases of its own block, even if a thousand erases wait.
    #[test]
    fn a_read_looks_at_the_erases_of_its_own_block() {
        const BLOCKS: u32 = 1000;
        let (mut nodes, mut plan) = (Nodes::new(BLOCKS), Plan::default());
        for _ in 0..2 {
            for block in (0..BLOCKS).map(DieBlock::new) {
                let read = OpKind::Read { die: 0, block, page: 0, level: 0, bytes: 1, back: 0 };
                plan.push_flash(read, Cause::Gc, &[]);
                plan.push_flash(OpKind::Erase { die: 0, block }, Cause::Gc, &[]);
            }
        }
        let mut reads = Vec::new();
        for (id, op, after) in plan.iter() {
            let is_read = matches!(op.kind, OpKind::Read { .. });
            let work = if is_read { NodeKind::Read } else { NodeKind::Erase };
            let (OpKind::Read { block, .. } | OpKind::Erase { block, .. }) = op.kind else {
                unreachable!("there are no others")
            };
            let n = nodes.add(id, op, after, |node| (node.work, node.block) = (work, block));
            reads.extend(is_read.then_some(n));
        }
        let chain = |nodes: &Nodes, block: DieBlock| {
            let mut d = nodes.blocks[block].draining;
            std::iter::from_fn(|| {
                let this = d;
                (this != NIL).then(|| d = nodes.draining[this].older)
            })
            .count()
        };
        assert!((0..BLOCKS).map(DieBlock::new).all(|block| chain(&nodes, block) == 2));
        let mut ready = Vec::new();
        for read in reads {
            let block = nodes.at(read).block;
            let before = chain(&nodes, block);
            nodes.remove(read, &mut ready);
            assert_eq!(chain(&nodes, block), before - 1);
        }
        // the first erase of each block waits for nothing else, and the second waits for the first
        assert_eq!((ready.len(), nodes.draining.vacant.len()), (1000, 2000));
    }
}
