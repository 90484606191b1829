#![doc = include_str!("../../../README.md")]

#[doc(inline)]
pub use switchboard_core::*;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-python.md")]
pub struct FromPython;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-javascript.md")]
pub struct FromJavaScript;
