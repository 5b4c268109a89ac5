//! The prefetch instruction of the processor.
//!
//! A prefetch changes the duration of a run but never its result, so every call could be left out.
//!
//! The tables of a simulated drive are larger than the processor's caches. The drive can tell early
//! which entries it will need: entries for the units that leave the write cache, for the pages of a
//! victim, and for the waiting operations. A prefetch costs one instruction, but a load that misses
//! the caches stalls all instructions that depend on it.
//!
//! This crate has `unsafe` lines because it binds the instruction. These lines dereference no
//! pointer.

/// Prefetches an item: the processor begins to load it and does not wait.
///
/// Does nothing under Miri and on processors other than x86-64 and AArch64.
#[inline(always)]
pub fn item<T>(item: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every processor of this kind has the instruction, which changes no memory.
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

/// Prefetches the item at `index` of a table, like [`item`].
///
/// Does nothing if `index` is beyond the end.
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
