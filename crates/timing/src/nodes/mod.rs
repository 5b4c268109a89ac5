//! Unfinished operations of the engine and the waits between them, in flat storage.

mod copyback;
mod hazards;

pub(crate) use copyback::Copyback;

use crate::map_waits::HostRead;
use flashatlas_prefetch as prefetch;
use flashatlas_types::{DieBlock, Dur, Op, OpId, OpKind, TiVec, beat, ti_vec};
use hazards::{Draining, Unfinished};

/// Value for no node, no edge or no link.
pub(crate) const NIL: u32 = u32::MAX;

/// Kind of an operation, by the resource that it occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Read,
    Program,
    Erase,
    /// Pages that are sensed and programmed elsewhere on the die. The node's `value` is their place
    /// in [`crate::engine::Engine::copybacks`].
    Copyback,
    /// The operation takes a fixed time, and occupies no resource.
    Timer,
    /// The operation takes a fixed time of a core of the controller.
    Core,
    /// Accesses to DRAM. If its commands are timed, `page` is their number in its memory.
    Dram,
    /// A transfer on the host link, towards the drive or from it.
    LinkIn,
    LinkOut,
    Join,
    Complete,
    /// Slots of the write cache: the operation frees `value` slots, or waits until `value` slots
    /// were freed.
    FreeSlots,
    AwaitSlots,
}

/// One unfinished operation, which fits in one cache line of the processor.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Node {
    pub id: OpId,
    pub work: NodeKind,
    pub rank: u8,
    pub suspends: u8,
    /// Kind of the page, as an index into the times of the cells.
    pub level: u8,
    /// Relation of a read to the host. A host read may suspend a program or an erase.
    pub host_read: HostRead,
    /// For a read, `true` if its page is in the register and only the transfer is left. For a
    /// program or an erase, `true` if it has started on its die.
    pub halfway: bool,
    /// An operation that takes no time, and that uses this node once the node's own operation is
    /// complete ([`Nodes::follow`]). Its value is the node's `value`.
    then: Option<NodeKind>,
    /// Number of the operation in `then` minus the number of this operation.
    then_after: u8,
    pub die: u32,
    pub block: DieBlock,
    pub page: u32,
    /// Time of the timer or of the link. For a read, this is the time of its data on the channel.
    /// For a program, it is the time of its command and data there. The time of the cells is looked
    /// up when they start.
    pub time: Dur,
    /// Tag of a command, slots of the write cache, or place of a copyback.
    pub value: u64,
    /// Number of operations for which this operation still waits.
    pub waiting: u32,
    waiters: Waiters,
    /// Neighbours among the unfinished programs and erases of the block. `following` waits until
    /// this operation has started on its die. In a read, `following` is its epoch
    /// ([`Node::epoch`]).
    previous: u32,
    following: u32,
    /// Next operation in the queue of a resource.
    pub queued: u32,
}

const _: () = assert!(size_of::<Node>() == 64, "a node is a line of the caches");

/// Operations that wait for the same operation: none, one, or a list of edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiters(u32);

impl Waiters {
    const NONE: Waiters = Waiters(NIL);
    /// Bit that is set if the other bits are the index of the first edge.
    const LIST: u32 = 1 << 31;

    #[inline]
    fn edges(first: u32) -> Waiters {
        Waiters(if first == NIL { NIL } else { Waiters::LIST | first })
    }

    /// Returns the single operation that waits, and the first edge of the list. At least one of the
    /// two is [`NIL`].
    #[inline]
    fn split(self) -> (u32, u32) {
        match self.0 {
            NIL => (NIL, NIL),
            list if list & Waiters::LIST != 0 => (NIL, list & !Waiters::LIST),
            one => (one, NIL),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    /// `true` if `to` waits for the operation in [`Node::then`].
    for_follower: bool,
    next: u32,
}

/// Greatest number of places in a [`Slab`]. [`Waiters`] needs the highest bit, and the index of the
/// last place would equal [`NIL`].
const PLACES: usize = (1 << 31) - 1;

/// Storage of items in places that are reused.
///
/// The list of vacant places is separate, so that taking a place causes no cache miss among the
/// items.
#[derive(Debug)]
pub(crate) struct Slab<T> {
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
    pub fn put(&mut self, thing: T) -> u32 {
        match self.vacant.pop() {
            Some(place) => {
                self[place] = thing;
                if let Some(&next) = self.vacant.last() {
                    prefetch::item_at(&self.things, next as usize);
                }
                place
            }
            None => {
                assert!(
                    self.things.len() < PLACES,
                    "all {PLACES} places for operations and waits are in use"
                );
                self.things.push(thing);
                (self.things.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn free(&mut self, place: u32) {
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
    /// Node of each unfinished operation. Its index is the operation's number modulo the length,
    /// which is a power of two.
    ring: Vec<u32>,
    oldest: u64,
    newest: u64,
    blocks: TiVec<DieBlock, Unfinished>,
    /// Erases that wait for reads, in a list for each block. Each collection that is planned ahead
    /// has one such erase.
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
            blocks: ti_vec![
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

    /// Prefetches the nodes that are needed when operation `n` ends: the operation that waits for
    /// it, and the next operation in its queue.
    ///
    /// The caller has just started the cells or the transfer, so there is time before the operation
    /// ends.
    #[inline]
    pub fn prefetch_end(&self, n: u32) {
        let node = &self.nodes[n];
        prefetch::item_at(&self.nodes.things, node.waiters.0 as usize);
        prefetch::item_at(&self.nodes.things, node.queued as usize);
    }

    /// Returns the node of an unfinished operation.
    #[inline]
    pub fn find(&self, id: OpId) -> Option<u32> {
        if id.0 < self.oldest || id.0 > self.newest {
            return None;
        }
        let n = self.ring[(id.0 as usize) & (self.ring.len() - 1)];
        (n != NIL).then_some(n)
    }

    /// Returns the number of the oldest operation that may be unfinished.
    pub fn oldest(&self) -> OpId {
        OpId(self.oldest)
    }

    /// Returns the unfinished operations, oldest first.
    pub fn unfinished(&self) -> impl Iterator<Item = &Node> {
        (self.oldest..=self.newest).filter_map(|id| {
            let node = self.at(self.find(OpId(id))?);
            (node.id.0 == id).then_some(node)
        })
    }

    /// Adds an operation and its waits. `describe` fills in the rest of the node where it is
    /// stored.
    pub fn add(
        &mut self,
        id: OpId,
        op: &Op,
        after: &[OpId],
        describe: impl FnOnce(&mut Node),
    ) -> u32 {
        self.number(id);
        let n = self.nodes.put(Node::new(id, NodeKind::Join, 0));
        describe(&mut self.nodes[n]);
        self.enter(id, n);
        for &dep in after {
            assert!(dep < id, "operation {id} waits for operation {dep}, which comes later");
            if let Some(on) = self.find(dep) {
                self.wait_for(n, on, dep);
            }
        }
        match op.kind {
            OpKind::Read { block, page, back: 0, .. } => self.add_reader(n, block, page),
            OpKind::Read { block, page, back, .. } => {
                self.add_past_reader(n, block, page, OpId(id.0 - u64::from(back)));
            }
            OpKind::Program { block, .. } | OpKind::Copyback { block, .. } => {
                self.add_writer(n, block);
            }
            OpKind::Erase { block, .. } => {
                self.drain_readers(n, block);
                let mut earlier = self.blocks[block].writers;
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

    /// Lets an operation use the node of operation `on`. The operation must take no time and wait
    /// only for `on`. It completes right after `on`, in its order among the operations that `on`
    /// releases.
    ///
    /// Returns `false` and does nothing if the node cannot be shared, for instance because the two
    /// numbers are far apart.
    pub fn follow(&mut self, id: OpId, work: NodeKind, value: u64, on: OpId) -> bool {
        let Some(n) = self.find(on) else { return false };
        let node = &mut self.nodes[n];
        let has_value = matches!(
            node.work,
            NodeKind::Complete | NodeKind::FreeSlots | NodeKind::AwaitSlots | NodeKind::Copyback
        );
        let Ok(after) = u8::try_from(id.0 - on.0) else { return false };
        if node.id != on || node.then.is_some() || has_value {
            return false;
        }
        (node.then, node.then_after, node.value) = (Some(work), after, value);
        self.number(id);
        self.enter(id, n);
        true
    }

    /// Adds an operation to the ring, so that [`Nodes::find`] returns node `n` for it.
    #[inline]
    fn enter(&mut self, id: OpId, n: u32) {
        let mask = self.ring.len() - 1;
        self.ring[(id.0 as usize) & mask] = n;
        self.live += 1;
    }

    /// Removes a complete operation from the ring, so that [`Nodes::find`] no longer returns it.
    #[inline]
    fn leave(&mut self, id: OpId) {
        let mask = self.ring.len() - 1;
        self.ring[(id.0 as usize) & mask] = NIL;
        self.live -= 1;
        if id.0 == self.oldest {
            while self.oldest <= self.newest && self.ring[(self.oldest as usize) & mask] == NIL {
                self.oldest += 1;
            }
        }
    }

    /// Notes that this is the newest operation.
    #[inline]
    fn number(&mut self, id: OpId) {
        assert!(id.0 > self.newest, "operation {id} comes after operation {}", self.newest);
        if self.live == 0 {
            self.oldest = id.0;
        }
        while id.0 - self.oldest >= self.ring.len() as u64 {
            self.widen_ring();
        }
        self.newest = id.0;
    }

    #[cold]
    fn widen_ring(&mut self) {
        let length = self.ring.len() * 2;
        let old = std::mem::replace(&mut self.ring, vec![NIL; length]);
        for number in self.oldest..=self.newest {
            beat(1); // a hundred million operations, if a command empties many blocks
            self.ring[number as usize & (length - 1)] = old[number as usize & (old.len() - 1)];
        }
    }

    /// Makes `n` wait until `on` is complete.
    #[inline]
    fn wait(&mut self, n: u32, on: u32) {
        self.nodes[n].waiting += 1;
        let waiters = &mut self.nodes[on].waiters;
        match *waiters {
            Waiters::NONE => *waiters = Waiters(n),
            _ => self.add_edge(n, on, false),
        }
    }

    /// Makes `n` wait until operation `id` is complete. The node of this operation is `on`.
    #[inline]
    fn wait_for(&mut self, n: u32, on: u32, id: OpId) {
        if self.nodes[on].id == id {
            return self.wait(n, on);
        }
        self.nodes[n].waiting += 1;
        self.add_edge(n, on, true);
    }

    fn add_edge(&mut self, n: u32, on: u32, for_follower: bool) {
        let next = match self.nodes[on].waiters.split() {
            (NIL, edge) => edge,
            (one, _) => self.edges.put(Edge { to: one, for_follower: false, next: NIL }),
        };
        self.nodes[on].waiters = Waiters::edges(self.edges.put(Edge { to: n, for_follower, next }));
    }

    /// Notes that an operation for which `n` waits is complete. Returns `n` if it waits for no
    /// other.
    #[inline]
    fn release(&mut self, n: u32) -> Option<u32> {
        let node = self.at_mut(n);
        node.waiting -= 1;
        (node.waiting == 0).then_some(n)
    }

    /// Removes a complete operation, and appends to `ready` the operations that now wait for no
    /// other.
    pub fn remove(&mut self, n: u32, ready: &mut Vec<u32>) {
        let node = &self.nodes[n];
        let Node { id, work, then, .. } = *node;
        let ((waiter, mut e), mut kept) = (node.waiters.split(), NIL);
        let first_ready = ready.len();
        if waiter != NIL {
            ready.extend(self.release(waiter));
        }
        while e != NIL {
            beat(1); // thousands of operations may wait for one
            let Edge { to, for_follower, next } = self.edges[e];
            if for_follower {
                self.edges[e] = Edge { to, for_follower: false, next: kept };
                kept = e;
            } else {
                ready.extend(self.release(to));
                self.edges.free(e);
            }
            e = next;
        }
        match work {
            NodeKind::Read => {
                let node = &self.nodes[n];
                ready.extend(self.reader_done(node.block, node.epoch()));
            }
            NodeKind::Program | NodeKind::Erase | NodeKind::Copyback => {
                let Node { block, previous, following, .. } = self.nodes[n];
                self.writer_done(block, previous, following);
            }
            _ => {}
        }
        if let Some(work) = then {
            let node = &mut self.nodes[n];
            let (next, value) = (OpId(id.0 + u64::from(node.then_after)), node.value);
            let waiters = Waiters::edges(kept);
            *node = Node { value, waiters, ..Node::new(next, work, node.rank) };
            ready.push(n);
        } else {
            assert!(kept == NIL, "an operation waits for a follower that does not exist");
            self.nodes.free(n);
        }
        if ready.len() - first_ready > 1 {
            ready[first_ready..].sort_unstable_by_key(|&n| self.nodes[n].id);
        }
        self.leave(id);
    }
}

impl Node {
    /// Returns a node that waits for nothing yet.
    pub fn new(id: OpId, work: NodeKind, rank: u8) -> Node {
        Node {
            id,
            work,
            rank,
            suspends: 0,
            level: 0,
            host_read: HostRead::No,
            halfway: false,
            then: None,
            then_after: 0,
            die: 0,
            block: DieBlock::new(0),
            page: 0,
            time: Dur::ZERO,
            value: 0,
            waiting: 0,
            waiters: Waiters::NONE,
            previous: NIL,
            following: NIL,
            queued: NIL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Class, Plan, Tag};

    /// An operation that shares a node is released, and releases other operations, as if it had its
    /// own node.
    #[test]
    fn a_follower_comes_after_its_operation_and_releases_what_waits_for_itself() {
        let (mut nodes, mut plan) = (Nodes::new(1), Plan::default());
        let delay = OpKind::Delay(Dur(1));
        let work = plan.push(delay, Class::HostRead, &[]);
        let complete = plan.push(OpKind::Complete(Tag(7)), Class::HostRead, &[work]);
        plan.push(delay, Class::HostRead, &[complete]);
        plan.push(delay, Class::HostRead, &[work]);
        let other = plan.push(OpKind::Complete(Tag(8)), Class::HostRead, &[work]);
        let mut of = Vec::new();
        for (id, op, after) in plan.iter() {
            if id == complete {
                assert!(nodes.follow(id, NodeKind::Complete, 7, work));
                assert_eq!((nodes.find(id), nodes.live), (nodes.find(work), 2));
            } else {
                if id == other {
                    assert!(
                        !nodes.follow(id, NodeKind::Complete, 8, work),
                        "the node has a follower"
                    );
                    assert!(
                        !nodes.follow(id, NodeKind::Complete, 8, complete),
                        "a follower has no node"
                    );
                }
                of.push(nodes.add(id, op, after, |node| node.work = NodeKind::Timer));
            }
        }
        let [first, after_complete, after_work, second] = of[..] else { panic!("four nodes") };
        let mut ready = Vec::new();
        nodes.remove(first, &mut ready);
        assert_eq!(
            ready,
            [first, after_work, second],
            "the follower comes first, because its number is the smallest"
        );
        let follower = nodes.at(first);
        let found = (follower.id, follower.work, follower.value, nodes.find(work));
        assert_eq!(found, (complete, NodeKind::Complete, 7, None));
        // now a second operation waits for `complete`; the first operation began to wait while
        // `complete` was a follower
        let late = plan.push(delay, Class::HostRead, &[complete]);
        let (id, op, after) = plan.iter().nth(5).expect("the sixth");
        let late_node = nodes.add(id, op, after, |node| node.work = NodeKind::Timer);
        ready.clear();
        nodes.remove(first, &mut ready);
        assert_eq!((ready, nodes.find(complete)), (vec![after_complete, late_node], None));
        assert_eq!((nodes.find(late), nodes.live), (Some(late_node), 4));
        // a node that uses its own value has no place for the value of a follower
        let awaited = plan.push(OpKind::AwaitSlots(3), Class::HostRead, &[]);
        let last = plan.push(OpKind::Complete(Tag(9)), Class::HostRead, &[awaited]);
        let (id, op, _) = plan.iter().nth(6).expect("the seventh");
        nodes.add(id, op, &[], |node| (node.work, node.value) = (NodeKind::AwaitSlots, 3));
        assert!(!nodes.follow(last, NodeKind::Complete, 9, awaited));
        // a node also has no place for a number that is too far from its own number
        assert!(!nodes.follow(OpId(other.0 + 256), NodeKind::Complete, 9, other));
        assert!(nodes.follow(OpId(other.0 + 255), NodeKind::Complete, 9, other));
    }
}
