//! Whole runs, tried.

mod damaged_texts;
mod golden;
mod jobs;
mod precondition;
mod real_traces;
mod replay;
mod tables;
