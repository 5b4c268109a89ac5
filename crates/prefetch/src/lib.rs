//! The prefetch instruction of the processor. A prefetch changes how long a run takes, never its
//! result: each call can be left out.
//!
//! The tables of a simulated drive are larger than the processor's caches. The drive knows early
//! which entries it will need: the units that leave the write cache, the pages of a victim, the
//! operations that wait. A prefetch costs one instruction; a load that misses stalls all that
//! follows.
//!
//! This crate has `unsafe` lines because it binds the instruction. They dereference nothing.

/// Prefetches an item: the processor begins to load it and does not wait. Does nothing under Miri
/// and on processors other than x86-64 and AArch64.
#[inline(always)]
pub fn item<T>(item: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction is in every processor of this kind, and changes no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        let item = std::ptr::from_ref(item);
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) item,
            options(nostack, preserves_flags, readonly)
        );
    }
    let _ = item;
}

/// Prefetches the item at `index` of a table, like [`item`]. Does nothing beyond the end.
#[inline(always)]
pub fn item_at<T>(table: &[T], index: usize) {
    if let Some(found) = table.get(index) {
        item(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_prefetched_and_places_beyond_the_end_ignored() {
        let table = [7u64, 8];
        item(&table[1]);
        item_at(&table, 1);
        item_at(&table, 2);
        item_at::<u64>(&[], 0);
        assert_eq!(table, [7, 8]);
    }
}
