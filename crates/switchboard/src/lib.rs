#![doc = include_str!("../../../README.md")]

#[doc(inline)]
pub use switchboard_core::*;
// The attribute, beside the function of the same name: macros have a namespace of their own.
#[doc(inline)]
pub use switchboard_macros::tool;
#[doc(inline)]
pub use switchboard_models as models;
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use switchboard_sessions as sessions;
#[cfg(feature = "team-files")]
#[doc(inline)]
pub use switchboard_teamfile as team_files;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-python.md")]
pub struct FromPython;

/// The same.
#[cfg(all(doctest, feature = "team-files"))]
#[doc = include_str!("../../../docs/team-files.md")]
pub struct TeamFiles;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/models.md")]
pub struct Models;

/// The same.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../docs/sessions.md")]
pub struct Sessions;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-javascript.md")]
pub struct FromJavaScript;
