//! x
pub use switchboard_core::*;
