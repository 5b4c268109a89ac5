//! Tests of the event engine against arithmetic, a naive engine, and its rules.

mod arithmetic;
mod common;
mod conformance;
mod copybacks;
mod hazards;
mod inherit;
mod naive;
mod options;
mod parts;
mod passed;
mod paths;
mod reference;
