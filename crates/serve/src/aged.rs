//! Drives that start from a checkpoint.
//!
//! A checkpoint contains stamps but no bytes, so data from before serving reads as zeros.

use flashatlas_nand::image::Image;
use flashatlas_nand::{Change, FrameState, Medium, OobRole, Unit};
use flashatlas_types::{BlockId, FrameId, LaneId, Layout, Lpn, Stamp};
use std::sync::Arc;

/// A frame that is not erased.
pub enum Laid {
    /// Frame whose program was interrupted by a power failure.
    Torn,
    /// Frame with the number of its program and the content of its slots.
    Holds(u64, Vec<Unit>),
    /// The same of a frame whose data cannot be read any more.
    Lost(u64, Vec<Unit>),
}

/// Returns every frame of `held` that is not erased, in ascending order.
pub fn frames_of<'a>(
    held: &'a Image,
    layout: &'a Layout,
) -> impl Iterator<Item = (FrameId, Laid)> + 'a {
    let page = held.map_bytes.len() / held.map_slots.len().max(1);
    let map_page = move |slot: u32| -> Option<Arc<[u8]>> {
        let at = held.map_slots.binary_search(&slot).ok()?;
        Some(held.map_bytes[at * page..(at + 1) * page].into())
    };
    let unit = move |slot: u32| Unit {
        lpn: Lpn(held.lpns[slot as usize]),
        stamp: Stamp(held.stamps[slot as usize]),
        bytes: map_page(slot),
    };
    held.state.iter().enumerate().filter_map(move |(at, &state)| {
        let frame = FrameId(at as u32);
        if state == FrameState::Erased as u8 {
            return None;
        }
        if state == FrameState::Torn as u8 {
            return Some((frame, Laid::Torn));
        }
        let sequence = u64::from(held.sequence_low[at]) | u64::from(held.sequence_high[at]) << 32;
        let first = layout.first_slot(frame).0;
        let units = (first..first + layout.slots_per_frame).map(unit).collect();
        let is_lost = state == FrameState::Lost as u8;
        let laid = if is_lost { Laid::Lost(sequence, units) } else { Laid::Holds(sequence, units) };
        Some((frame, laid))
    })
}

/// Puts the content of `held` on a blank medium.
pub fn lay(held: &Image, medium: &mut Medium) {
    let layout = medium.shared_layout();
    for (at, (&erases, &health)) in held.erases.iter().zip(&held.health).enumerate() {
        medium.lay_block(BlockId::new(at as u32), erases, health);
        let (block, role) = (BlockId::new(at as u32), OobRole(held.roles[at]));
        if held.next[at] > 0 {
            medium.redo(&Change::Open(block, role, held.mode(at)));
        }
        medium.lay_slc_erases(block, held.slc_erases.get(at).copied().unwrap_or(0));
    }
    for (frame, state) in frames_of(held, &layout) {
        match state {
            Laid::Torn => medium.tear(frame),
            Laid::Holds(sequence, units) => {
                medium.redo(&Change::Program { frame, sequence, units });
            }
            Laid::Lost(sequence, units) => {
                medium.redo(&Change::Program { frame, sequence, units });
                medium.redo(&Change::Lost(frame));
            }
        }
    }
    let mut carried = [].iter();
    if let Some(aged) = &held.aged {
        medium.lay_ages(aged);
        for &(frame, die) in &aged.lost_parts {
            medium.redo(&Change::LostPart { frame, die });
        }
        carried = aged.carried.iter();
    }
    let mut carried = carried.peekable();
    for (frame, &copies) in (0..).map(FrameId).zip(&held.copied).filter(|&(_, &n)| n > 0) {
        let wrong = carried.next_if(|(of, _)| *of == frame).map_or(Vec::new(), |c| c.1.clone());
        medium.redo(&Change::Copied { frame, copies, wrong });
    }
    for (lane, &left) in held.spares.iter().enumerate() {
        medium.lay_spares(LaneId::new(lane as u32), left);
    }
    if !held.nvm.is_empty() {
        medium.redo(&Change::Store { address: 0, bytes: held.nvm.clone() });
        medium.redo(&Change::Fence);
    }
    medium.redo(&Change::Number(held.sequence));
}
