//! A hash of the engine's work on flash. The hashes of two runs differ if any flash operation
//! differs in its kind, place, time or order.

use flashatlas_types::Ps;

/// Hash of flash operations in the order of their ends. The hash only serves to distinguish runs.
/// It does not protect against damage, and another version of this file may return another number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trajectory {
    operations: u64,
    hash: u64,
}

/// An odd number with about as many one bits as zero bits, derived from the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Trajectory {
    /// Adds the end of an operation of a `kind` at a `place` (block in the upper half, page in the
    /// lower).
    #[inline]
    pub(crate) fn add(&mut self, kind: u64, place: u64, end: Ps) {
        self.operations += 1;
        for word in [kind, place, end.0] {
            self.hash = (self.hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
        }
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Returns the hash.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operations: &[(u64, u64, u64)]) -> Trajectory {
        let mut trajectory = Trajectory::default();
        operations.iter().for_each(|&(kind, place, at)| trajectory.add(kind, place, Ps(at)));
        trajectory
    }

    #[test]
    fn kind_place_time_and_order_count() {
        let all = [(1, 5, 100), (2, 6, 200)];
        assert_eq!(of(&all), of(&all));
        let others: [&[_]; 6] = [
            &[(2, 5, 100), (2, 6, 200)],
            &[(1, 4, 100), (2, 6, 200)],
            &[(1, 5, 101), (2, 6, 200)],
            &[(2, 6, 200), (1, 5, 100)],
            &[(1, 5, 100)],
            &[(1, 5, 100), (2, 6, 200), (0, 0, 0)],
        ];
        assert!(others.iter().all(|other| of(other) != of(&all)));
    }
}
