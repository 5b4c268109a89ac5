//! One operation on each die of a frame.

use flashatlas_types::{Class, Layout, OpId, Plan};

/// Adds one operation on each die of a frame. Returns the operation that joins them.
#[inline]
pub(crate) fn gang(
    layout: &Layout,
    plan: &mut Plan,
    class: Class,
    after: &[OpId],
    push: impl Fn(u32, &mut Plan, &[OpId]) -> OpId,
) -> OpId {
    if layout.dies_per_frame == 1 {
        return push(0, plan, after);
    }
    gang_of_several(layout, plan, class, after, push)
}

/// Does the work of [`gang`] on several dies. This is a function of its own, so that most programs
/// do without its large list.
#[inline(never)]
fn gang_of_several(
    layout: &Layout,
    plan: &mut Plan,
    class: Class,
    after: &[OpId],
    push: impl Fn(u32, &mut Plan, &[OpId]) -> OpId,
) -> OpId {
    let mut ids = [OpId::NONE; 64];
    for die in 0..layout.dies_per_frame {
        ids[die as usize] = push(die, plan, after);
    }
    plan.join(class, &ids[..layout.dies_per_frame as usize])
}
