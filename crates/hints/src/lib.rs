//! What the processor is told about memory that will be used. A hint changes how long something
//! takes, and never what comes of it: each can be left out.
//!
//! A simulated drive has tables that are larger than the caches, and what it does next is known
//! early: which units leave the write cache, which pages a victim holds, what waits for an
//! operation. A hint then takes an instruction, where a load that misses would hold up what comes
//! after it.
//!
//! The instruction is bound here, so this crate has `unsafe` lines. They dereference nothing.

/// This item will be used soon: the processor begins to load it, and does not wait for it. Nothing
/// on processors other than those of x86-64 and AArch64, and under Miri.
#[inline(always)]
pub fn soon<T>(item: &T) {
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

/// As [`soon`], of the item at `index` of a table. Nothing beyond its end.
#[inline(always)]
pub fn soon_at<T>(table: &[T], index: usize) {
    if let Some(item) = table.get(index) {
        soon(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_and_one_beyond_the_end_are_hinted_at() {
        let table = [7u64, 8];
        soon(&table[1]);
        soon_at(&table, 1);
        soon_at(&table, 2);
        soon_at::<u64>(&[], 0);
        assert_eq!(table, [7, 8]);
    }
}
