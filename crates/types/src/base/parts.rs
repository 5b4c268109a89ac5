//! The numbers of which a base is made, for files that hold it.

use super::{Base, Filled, Steady};
use crate::{BlockId, Layout, Permutation};
use std::sync::Arc;

/// The numbers of which a [`Base`] of a layout is made: a few for each block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BaseParts {
    /// The blocks with content. Blocks of a steady drive are in the order of their programs. Blocks
    /// of a filled drive are listed lane by lane, and those of a lane in the order of their
    /// programs.
    pub order: Vec<u32>,
    /// The number of valid slots of each of these blocks; empty for a filled drive.
    pub valid: Vec<u32>,
    /// The key of the blocks and the keys of the order of pages, each with its low word and its
    /// high word; empty for a filled drive.
    pub keys: Vec<u32>,
}

/// Number of words of the keys of a steady drive.
const KEY_WORDS: usize = 2 + 2 * Permutation::KEYS;

impl Base {
    /// Returns the numbers of which the base is made.
    pub fn parts(&self) -> BaseParts {
        let numbers = |order: &[BlockId]| order.iter().map(|block| block.number()).collect();
        match self {
            Base::Filled(filled) => {
                BaseParts { order: numbers(filled.order()), ..BaseParts::default() }
            }
            Base::Steady(steady) => BaseParts {
                order: numbers(steady.order()),
                valid: steady.order().iter().map(|&block| steady.valid(block)).collect(),
                keys: steady.keys().flat_map(|key| [key as u32, (key >> 32) as u32]).collect(),
            },
        }
    }

    /// Makes a base of the numbers in a file.
    ///
    /// # Errors
    /// Returns a description of the first number that contradicts the layout.
    pub fn from_parts(layout: &Arc<Layout>, parts: &BaseParts) -> Result<Base, String> {
        let BaseParts { order, valid, keys } = parts;
        let mut seen = layout.per_block(false);
        for &block in order {
            if block >= layout.blocks() {
                return Err(format!("there is no block {block}"));
            }
            if std::mem::replace(&mut seen[BlockId::new(block)], true) {
                return Err(format!("block {block} is listed twice"));
            }
        }
        let order: Vec<BlockId> = order.iter().map(|&block| BlockId::new(block)).collect();
        if keys.is_empty() && valid.is_empty() {
            return filled(layout, &order).map(Base::Filled);
        }
        if keys.len() != KEY_WORDS || valid.len() != order.len() {
            return Err(format!(
                "{} blocks have {} counts, and {} words of keys instead of {KEY_WORDS}",
                order.len(),
                valid.len(),
                keys.len()
            ));
        }
        if let Some(count) = valid.iter().find(|&&count| count > layout.slots_per_block) {
            return Err(format!(
                "a block has {count} valid slots, but only {} slots",
                layout.slots_per_block
            ));
        }
        let total: u64 = valid.iter().map(|&count| u64::from(count)).sum();
        if total != u64::from(layout.logical_units) {
            return Err(format!(
                "{total} slots are valid, but the drive has {} pages",
                layout.logical_units
            ));
        }
        let keys: Vec<u64> =
            keys.chunks_exact(2).map(|key| u64::from(key[0]) | u64::from(key[1]) << 32).collect();
        let pages = keys[1..].try_into().expect("the number of words was checked");
        let pages = Permutation::of_keys(layout.logical_units.into(), pages);
        let blocks: Vec<(BlockId, u32)> = order.into_iter().zip(valid.iter().copied()).collect();
        Ok(Base::Steady(Steady::of_keys(layout, &blocks, pages, keys[0])))
    }
}

fn filled(layout: &Arc<Layout>, order: &[BlockId]) -> Result<Filled, String> {
    let lanes = layout.lanes as usize;
    let in_lane = order.len() / lanes;
    let slots = order.len() as u64 * u64::from(layout.slots_per_block);
    if order.len() % lanes != 0 || slots < u64::from(layout.logical_units) {
        return Err(format!(
            "{} blocks in {lanes} lanes do not hold {} pages",
            order.len(),
            layout.logical_units
        ));
    }
    let of_lanes: Vec<Vec<BlockId>> = order.chunks(in_lane).map(<[_]>::to_vec).collect();
    for (lane, blocks) in layout.lane_ids().zip(&of_lanes) {
        if let Some(block) = blocks.iter().find(|&&block| layout.lane_of(block) != lane) {
            return Err(format!("block {block} is not in lane {lane}"));
        }
    }
    Ok(Filled::new(layout, &of_lanes))
}
