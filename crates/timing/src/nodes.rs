//! Operations in the engine: flat storage, who waits for whom, and the three orders that hold
//! whatever the priorities: a read of a page waits for that page's program, an erase for every
//! earlier operation on its block, and the programs of one block start in order. A read of a page
//! as it was waits for no program since, and an erase since waits for it.

use flashatlas_types::{Dur, Op, OpId, OpKind};

/// No node, edge or link.
pub(crate) const NIL: u32 = u32::MAX;

/// What an operation occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Read,
    Program,
    Erase,
    /// A fixed time, no resource.
    Timer,
    /// Accesses to DRAM: the node's `page` says which of those that [`crate::memory::Memory`]
    /// keeps.
    Dram,
    /// The host link, towards the drive or from it.
    LinkIn,
    LinkOut,
    Join,
    Complete,
    /// Slots of the write cache: the node's `value` are freed, or that many must have been.
    FreeSlots,
    AwaitSlots,
}

/// One operation that is not complete.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub id: OpId,
    pub work: NodeKind,
    pub rank: u8,
    pub suspends: u8,
    /// Read for a host: may suspend a program or an erase.
    pub host_read: bool,
    /// A read whose page is in the register: what is left is the transfer.
    pub sensed: bool,
    /// A program or erase that has its die.
    started: bool,
    pub die: u32,
    pub block: u32,
    pub page: u32,
    /// Time of the cells, of the timer, or of the link.
    pub time: Dur,
    /// Time on the channel.
    pub transfer: Dur,
    /// Tag of a command, or slots of the write cache.
    pub value: u64,
    /// Operations that this one still waits for.
    pub waiting: u32,
    /// First of the edges to operations that wait until this one is complete.
    edges: u32,
    /// The next program or erase of the block, which waits until this one has started.
    pub successor: u32,
    /// Neighbours among the unfinished writers of the block.
    previous: u32,
    following: u32,
    /// Erases of the block that were issued before this read.
    epoch: u32,
    /// Next in the queue of a resource.
    pub queued: u32,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    next: u32,
}

/// The unfinished operations on one block.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    /// Newest of its programs and erases.
    writers: u32,
    /// Erases that were issued so far.
    epoch: u32,
    /// Reads issued since the last of them.
    readers: u32,
    /// Newest of the erases that wait for reads.
    draining: u32,
}

/// An erase that waits until the reads issued before it are complete. They are counted, not listed:
/// a victim has hundreds.
#[derive(Clone, Copy, Debug)]
struct Draining {
    /// Of the reads.
    epoch: u32,
    erase: u32,
    left: u32,
    /// The next older one of the block: nearly always there is none.
    older: u32,
}

/// Things in places that are used again. The list of vacant ones is beside them: taking one must
/// not wait for a cache miss among the things.
#[derive(Debug)]
struct Slab<T> {
    things: Vec<T>,
    vacant: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { things: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline]
    fn put(&mut self, thing: T) -> u32 {
        if let Some(place) = self.vacant.pop() {
            self[place] = thing;
            return place;
        }
        self.things.push(thing);
        (self.things.len() - 1) as u32
    }

    #[inline]
    fn free(&mut self, place: u32) {
        self.vacant.push(place);
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.things[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.things[place as usize]
    }
}

/// All unfinished operations.
#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: Slab<Node>,
    edges: Slab<Edge>,
    /// Node of each unfinished operation, by number modulo the length (a power of two).
    ring: Vec<u32>,
    oldest: u64,
    newest: u64,
    blocks: Vec<Unfinished>,
    /// Found by their block: as many wait as collections are planned ahead.
    draining: Slab<Draining>,
    pub live: usize,
}

impl Nodes {
    pub fn new(blocks: u32) -> Nodes {
        Nodes {
            nodes: Slab::default(),
            edges: Slab::default(),
            ring: vec![NIL; 1024],
            oldest: 1,
            newest: 0,
            blocks: vec![
                Unfinished { writers: NIL, epoch: 0, readers: 0, draining: NIL };
                blocks as usize
            ],
            draining: Slab::default(),
            live: 0,
        }
    }

    #[inline]
    pub fn at(&self, n: u32) -> &Node {
        &self.nodes[n]
    }

    #[inline]
    pub fn at_mut(&mut self, n: u32) -> &mut Node {
        &mut self.nodes[n]
    }

    /// The node of an unfinished operation.
    #[inline]
    pub fn find(&self, id: OpId) -> Option<u32> {
        if id.0 < self.oldest || id.0 > self.newest {
            return None;
        }
        let n = self.ring[(id.0 as usize) & (self.ring.len() - 1)];
        (n != NIL).then_some(n)
    }

    /// Every operation below this number is complete.
    pub fn oldest(&self) -> OpId {
        OpId(self.oldest)
    }

    /// The unfinished operations, oldest first.
    pub fn unfinished(&self) -> impl Iterator<Item = &Node> {
        (self.oldest..=self.newest).filter_map(|id| self.find(OpId(id))).map(|n| self.at(n))
    }

    /// Add an operation and what it waits for.
    pub fn add(&mut self, id: OpId, op: &Op, node: Node, after: &[OpId]) -> u32 {
        self.number(id);
        let n = self.nodes.put(node);
        let mask = self.ring.len() - 1;
        self.ring[(id.0 as usize) & mask] = n;
        self.live += 1;
        for &dep in after {
            assert!(dep < id, "operation {id} waits for {dep}, which comes later");
            if let Some(on) = self.find(dep) {
                self.wait(n, on);
            }
        }
        match op.kind {
            OpKind::Read { block, page, back: 0, .. } => self.add_reader(n, block, page),
            OpKind::Read { block, page, back, .. } => {
                self.add_past_reader(n, block, page, OpId(id.0 - u64::from(back)));
            }
            OpKind::Program { block, .. } => self.add_writer(n, block),
            OpKind::Erase { block, .. } => {
                self.drain_readers(n, block);
                let mut earlier = self.blocks[block as usize].writers;
                while earlier != NIL {
                    self.wait(n, earlier);
                    earlier = self.at(earlier).previous;
                }
                self.add_writer(n, block);
            }
            _ => {}
        }
        n
    }

    fn number(&mut self, id: OpId) {
        assert!(id.0 > self.newest, "operation {id} comes after {}", self.newest);
        if self.live == 0 {
            self.oldest = id.0;
        }
        self.newest = id.0;
        while self.newest - self.oldest >= self.ring.len() as u64 {
            let old = std::mem::take(&mut self.ring);
            self.ring = vec![NIL; old.len() * 2];
            for n in old {
                if n != NIL {
                    let at = (self.nodes[n].id.0 as usize) & (self.ring.len() - 1);
                    self.ring[at] = n;
                }
            }
        }
    }

    /// `n` waits until `on` is complete.
    fn wait(&mut self, n: u32, on: u32) {
        let edge = Edge { to: n, next: self.nodes[on].edges };
        let e = self.edges.put(edge);
        self.nodes[on].edges = e;
        self.nodes[n].waiting += 1;
    }

    /// The newest program of this page of a die's block before operation `before`, if it is not
    /// complete.
    pub fn program_of(&self, block: u32, page: u32, before: OpId) -> Option<u32> {
        let mut writer = self.blocks[block as usize].writers;
        while writer != NIL {
            let w = self.at(writer);
            if w.work == NodeKind::Program && w.page == page && w.id < before {
                return Some(writer);
            }
            writer = w.previous;
        }
        None
    }

    fn add_reader(&mut self, n: u32, block: u32, page: u32) {
        if let Some(program) = self.program_of(block, page, OpId(u64::MAX)) {
            self.wait(n, program);
        }
        self.count_reader(n, block);
    }

    /// A read of a page as operation `seen` found it. The first erase since then that is not
    /// complete waits for it, unless nothing holds that back any more.
    fn add_past_reader(&mut self, n: u32, block: u32, page: u32, seen: OpId) {
        if let Some(program) = self.program_of(block, page, seen) {
            self.wait(n, program);
        }
        let (mut writer, mut erase) = (self.blocks[block as usize].writers, NIL);
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

    fn count_reader(&mut self, n: u32, block: u32) {
        let unfinished = &mut self.blocks[block as usize];
        unfinished.readers += 1;
        self.nodes[n].epoch = unfinished.epoch;
    }

    /// An erase waits for the reads of its block so far; reads from now on are of the next epoch.
    fn drain_readers(&mut self, erase: u32, block: u32) {
        let unfinished = &mut self.blocks[block as usize];
        let (epoch, left) = (unfinished.epoch, std::mem::take(&mut unfinished.readers));
        unfinished.epoch = epoch.wrapping_add(1);
        if left > 0 {
            let waits = Draining { epoch, erase, left, older: unfinished.draining };
            unfinished.draining = self.draining.put(waits);
            self.at_mut(erase).waiting += 1;
        }
    }

    /// A read is complete. Returns the erase that it was the last to hold back, if that waits for
    /// nothing else.
    fn reader_done(&mut self, block: u32, epoch: u32) -> Option<u32> {
        let unfinished = &mut self.blocks[block as usize];
        if unfinished.epoch == epoch {
            unfinished.readers -= 1;
            return None;
        }
        // a read of an earlier epoch is counted by an erase
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
            NIL => self.blocks[block as usize].draining = older,
            newer => self.draining[newer].older = older,
        }
        self.draining.free(d);
        self.at_mut(erase).waiting -= 1;
        (self.at(erase).waiting == 0).then_some(erase)
    }

    fn add_writer(&mut self, n: u32, block: u32) {
        let newest = std::mem::replace(&mut self.blocks[block as usize].writers, n);
        if newest != NIL && !self.at(newest).started {
            self.at_mut(newest).successor = n;
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

    /// A program or erase has its die: the next one of its block may queue. Returns it if nothing
    /// else holds it back.
    pub fn started(&mut self, n: u32) -> Option<u32> {
        let node = self.at_mut(n);
        node.started = true;
        let successor = std::mem::replace(&mut node.successor, NIL);
        if successor == NIL {
            return None;
        }
        self.at_mut(successor).waiting -= 1;
        (self.at(successor).waiting == 0).then_some(successor)
    }

    /// Take a complete operation out. Operations that nothing holds back any more are appended to
    /// `ready`.
    pub fn remove(&mut self, n: u32, ready: &mut Vec<u32>) {
        let (id, work, block, epoch, previous, following, mut e) = {
            let node = self.at(n);
            (node.id, node.work, node.block, node.epoch, node.previous, node.following, node.edges)
        };
        let first_ready = ready.len();
        while e != NIL {
            let Edge { to, next } = self.edges[e];
            let node = self.at_mut(to);
            node.waiting -= 1;
            if node.waiting == 0 {
                ready.push(to);
            }
            self.edges.free(e);
            e = next;
        }
        if work == NodeKind::Read {
            ready.extend(self.reader_done(block, epoch));
        } else if matches!(work, NodeKind::Program | NodeKind::Erase) {
            if previous != NIL {
                self.at_mut(previous).following = following;
            }
            if following != NIL {
                self.at_mut(following).previous = previous;
            } else {
                self.blocks[block as usize].writers = previous;
            }
        }
        if ready.len() - first_ready > 1 {
            ready[first_ready..].sort_unstable_by_key(|&n| self.nodes[n].id);
        }
        let mask = self.ring.len() - 1;
        self.ring[(id.0 as usize) & mask] = NIL;
        self.live -= 1;
        while self.oldest <= self.newest && self.ring[(self.oldest as usize) & mask] == NIL {
            self.oldest += 1;
        }
        self.nodes.free(n);
    }
}

impl Node {
    /// A node that waits for nothing yet.
    pub fn new(id: OpId, work: NodeKind, rank: u8) -> Node {
        Node {
            id,
            work,
            rank,
            suspends: 0,
            host_read: false,
            sensed: false,
            started: false,
            die: 0,
            block: 0,
            page: 0,
            time: Dur::ZERO,
            transfer: Dur::ZERO,
            value: 0,
            waiting: 0,
            edges: NIL,
            successor: NIL,
            previous: NIL,
            following: NIL,
            epoch: 0,
            queued: NIL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Cause, Plan};

    /// Where a thousand erases wait for reads, the end of a read looks at those of its block alone.
    #[test]
    fn a_read_looks_at_the_erases_of_its_own_block() {
        const BLOCKS: u32 = 1000;
        let (mut nodes, mut plan) = (Nodes::new(BLOCKS), Plan::default());
        for _ in 0..2 {
            for block in 0..BLOCKS {
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
            let n = nodes.add(id, op, Node { block, ..Node::new(id, work, 0) }, after);
            reads.extend(is_read.then_some(n));
        }
        let chain = |nodes: &Nodes, block: u32| {
            let mut d = nodes.blocks[block as usize].draining;
            std::iter::from_fn(|| {
                let this = d;
                (this != NIL).then(|| d = nodes.draining[this].older)
            })
            .count()
        };
        assert!((0..BLOCKS).all(|block| chain(&nodes, block) == 2));
        let mut ready = Vec::new();
        for read in reads {
            let block = nodes.at(read).block;
            let before = chain(&nodes, block);
            nodes.remove(read, &mut ready);
            assert_eq!(chain(&nodes, block), before - 1);
        }
        // the first erase of each block waits for nothing else; the second for the first
        assert_eq!((ready.len(), nodes.draining.vacant.len()), (1000, 2000));
    }
}
