//! The map store on whole drives, compared with a plain array.

mod model;
