//! A doubly linked list of numbers below a bound. Every operation takes constant time, and each
//! number is in the list at most once.

use flashatlas_types::Index;
use std::marker::PhantomData;

const NIL: u32 = u32::MAX;

/// A list of numbers in any order, such as the order of their last use.
#[derive(Clone, Debug)]
pub struct IndexList<I = u32> {
    previous: Vec<u32>,
    next: Vec<u32>,
    first: u32,
    last: u32,
    len: u32,
    of: PhantomData<I>,
}

impl<I: Index> IndexList<I> {
    /// Returns an empty list for numbers below `bound`.
    pub fn new(bound: u32) -> IndexList<I> {
        let links = vec![NIL; bound.index()];
        let (previous, next) = (links.clone(), links);
        IndexList { previous, next, first: NIL, last: NIL, len: 0, of: PhantomData }
    }

    /// Returns the number of entries in the list.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether a number is in the list.
    #[inline]
    pub fn contains(&self, id: I) -> bool {
        self.previous[id.index()] != NIL || self.first == id.to_number()
    }

    /// Returns the first number, or `None` if the list is empty.
    #[inline]
    pub fn first(&self) -> Option<I> {
        Self::linked(self.first)
    }

    /// Returns the number after `id` in the list, or `None` if `id` is the last number.
    #[inline]
    pub fn after(&self, id: I) -> Option<I> {
        Self::linked(self.next[id.index()])
    }

    /// Returns the number to which a link leads, or `None` if it leads nowhere.
    #[inline]
    fn linked(link: u32) -> Option<I> {
        (link != NIL).then(|| I::from_number(link))
    }

    /// Appends a number that is not in the list.
    #[inline]
    pub fn push(&mut self, id: I) {
        let n = id.to_number();
        debug_assert!(!self.contains(id), "{n} is in the list already");
        (self.previous[n.index()], self.next[n.index()]) = (self.last, NIL);
        match self.last {
            NIL => self.first = n,
            last => self.next[last.index()] = n,
        }
        self.last = n;
        self.len += 1;
    }

    /// Removes a number; returns `true` if it was in the list.
    #[inline]
    pub fn remove(&mut self, id: I) -> bool {
        if !self.contains(id) {
            return false;
        }
        let n = id.index();
        let (previous, next) = (self.previous[n], self.next[n]);
        match previous {
            NIL => self.first = next,
            p => self.next[p.index()] = next,
        }
        match next {
            NIL => self.last = previous,
            x => self.previous[x.index()] = previous,
        }
        (self.previous[n], self.next[n]) = (NIL, NIL);
        self.len -= 1;
        true
    }

    /// Removes and returns the first number, or returns `None` if the list is empty.
    pub fn pop(&mut self) -> Option<I> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// Moves a number to the end, or appends it if it was not in the list.
    #[inline]
    pub fn touch(&mut self, id: I) {
        if self.last != id.to_number() {
            self.remove(id);
            self.push(id);
        }
    }

    /// Returns the numbers, first to last.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        std::iter::successors(self.first(), |&id| self.after(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};
    use std::collections::VecDeque;

    #[test]
    fn it_is_a_queue_from_whose_middle_numbers_leave() {
        let (mut list, mut model) = (IndexList::new(9), VecDeque::new());
        let mut rng = Rng::stream(Seed(1), "list");
        for _ in 0..if cfg!(miri) { 200 } else { 5000 } {
            let n = rng.below(9) as u32;
            match rng.below(4) {
                0 => assert_eq!(list.pop(), model.pop_front()),
                1 => {
                    assert_eq!(list.remove(n), model.contains(&n));
                    model.retain(|&m| m != n);
                }
                _ => {
                    list.touch(n);
                    model.retain(|&m| m != n);
                    model.push_back(n);
                }
            }
            assert!(
                list.iter().eq(model.iter().copied()),
                "{:?} {model:?}",
                list.iter().collect::<Vec<_>>()
            );
            assert_eq!((list.len(), list.first()), (model.len() as u32, model.front().copied()));
            assert!((0..9).all(|n| list.contains(n) == model.contains(&n)));
        }
    }
}
