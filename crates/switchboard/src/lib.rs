#![doc = include_str!("../../../README.md")]

#[doc(inline)]
pub use switchboard_core::*;
