//! Tests that compare whole drives with the map store `lpmt` against a plain array.

mod model;
