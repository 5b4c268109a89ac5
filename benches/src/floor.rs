//! The floor: a program that does only the work of every page-mapped FTL. It keeps L2P, P2L and
//! valid counts, and picks greedy victims; it has no timing, no data, no checks and no layers. The
//! cost of the simulator is measured as a ratio to the floor.

use flashatlas_types::{Rng, Seed};

const NONE: u32 = u32::MAX;

pub struct Floor {
    l2p: Vec<u32>,
    p2l: Vec<u32>,
    valid: Vec<u32>,
    /// Closed blocks by valid count, as doubly linked lists.
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    least: usize,
    free: Vec<u32>,
    frontier: u32,
    at: u32,
    pages: u32,
    pub copies: u64,
}

impl Floor {
    /// Returns a floor of `blocks` blocks of `pages` pages. It exports `logical` pages, and each of
    /// them was written once, in order.
    pub fn filled(blocks: u32, pages: u32, logical: u32) -> Floor {
        let mut floor = Floor {
            l2p: vec![NONE; logical as usize],
            p2l: vec![NONE; (blocks * pages) as usize],
            valid: vec![0; blocks as usize],
            heads: vec![NONE; pages as usize + 1],
            next: vec![NONE; blocks as usize],
            previous: vec![NONE; blocks as usize],
            least: 0,
            free: (1..blocks).rev().collect(),
            frontier: 0,
            at: 0,
            pages,
            copies: 0,
        };
        (0..logical).for_each(|l| floor.write(l));
        floor
    }

    fn link(&mut self, block: u32) {
        let v = self.valid[block as usize] as usize;
        let head = std::mem::replace(&mut self.heads[v], block);
        (self.next[block as usize], self.previous[block as usize]) = (head, NONE);
        if head != NONE {
            self.previous[head as usize] = block;
        }
        self.least = self.least.min(v);
    }

    fn unlink(&mut self, block: u32) {
        let (next, previous) = (self.next[block as usize], self.previous[block as usize]);
        if previous == NONE {
            self.heads[self.valid[block as usize] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    fn place(&mut self, lpn: u32) {
        let ppn = self.frontier * self.pages + self.at;
        self.l2p[lpn as usize] = ppn;
        self.p2l[ppn as usize] = lpn;
        self.valid[self.frontier as usize] += 1;
        self.at += 1;
    }

    pub fn write(&mut self, lpn: u32) {
        let old = self.l2p[lpn as usize];
        if old != NONE {
            let block = old / self.pages;
            self.p2l[old as usize] = NONE;
            if block == self.frontier {
                self.valid[block as usize] -= 1;
            } else {
                self.unlink(block);
                self.valid[block as usize] -= 1;
                self.link(block);
            }
        }
        while self.at == self.pages {
            self.link(self.frontier);
            self.at = 0;
            self.frontier = self.free.pop().expect("one block is reserved");
            if self.free.is_empty() {
                self.collect();
            }
        }
        self.place(lpn);
    }

    fn collect(&mut self) {
        while self.heads[self.least] == NONE {
            self.least += 1;
        }
        let victim = self.heads[self.least];
        self.unlink(victim);
        for ppn in victim * self.pages..(victim + 1) * self.pages {
            let lpn = std::mem::replace(&mut self.p2l[ppn as usize], NONE);
            if lpn != NONE {
                self.place(lpn);
                self.copies += 1;
            }
        }
        self.valid[victim as usize] = 0;
        self.free.push(victim);
    }
}

/// Returns the host writes a second and the WAF of the floor on a drive of this size, after one
/// drive write of warm-up.
pub fn rate(blocks: u32, pages: u32, logical: u32, writes: u64) -> (f64, f64) {
    let mut floor = Floor::filled(blocks, pages, logical);
    let mut rng = Rng::stream(Seed(1), "bench");
    (0..u64::from(logical)).for_each(|_| floor.write(rng.below(u64::from(logical)) as u32));
    let (begin, copies) = (crate::now(), floor.copies);
    (0..writes).for_each(|_| floor.write(rng.below(u64::from(logical)) as u32));
    (
        writes as f64 / begin.elapsed().as_secs_f64(),
        1.0 + (floor.copies - copies) as f64 / writes as f64,
    )
}
