//! Programs of frames with parity over their dies.
//!
//! The parity of a frame is computed while its data crosses the channels, so it needs no buffer
//! beyond the frame. The die that holds it depends on the place of the frame in its block
//! ([`flashatlas_types::Layout::parity_die`]).

use crate::Flash;
use crate::flash::DiePlace;
use crate::gang::gang;
use flashatlas_types::{BlockMode, Cause, FrameId, OpId, OpKind, Plan};

impl Flash<'_> {
    /// Adds the operations of a program of a frame with parity, as [`Flash::push_program`] does.
    pub(crate) fn push_program_with_parity(
        &mut self,
        mode: BlockMode,
        frame: FrameId,
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        let layout = &*self.medium.layout;
        let at = (layout.block_of_frame(frame), frame);
        self.medium.counters.program_frame(layout, cause, mode);
        let bytes = layout.span.planes * layout.geometry.page_bytes * layout.pages_at_once(mode);
        let parity = layout.parity_die(layout.index_in(at.0, frame));
        gang(layout, self.plan, cause.class(false), after, |part, plan, after| {
            let DiePlace { die, block, page, level } = DiePlace::of(layout, mode, at, part);
            let kind = OpKind::Program { die, block, page, level, bytes };
            push_part(plan, kind, cause, parity == Some(part), after)
        })
    }
}

/// Adds a program on one die of a frame, which has data or the frame's parity. Both have the
/// priority of the cause of the data.
pub(crate) fn push_part(
    plan: &mut Plan,
    kind: OpKind,
    cause: Cause,
    is_parity: bool,
    after: &[OpId],
) -> OpId {
    let of_part = if is_parity { Cause::Parity } else { cause };
    plan.push_flash_in(cause.class(false), kind, of_part, after)
}
