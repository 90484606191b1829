//! Values, references and `Arc`s that convert into a handle alike.

/// A value, a reference to a value that can be cloned, an `Arc`, or a handle: what methods such as
/// [`Runner::model`](crate::Runner::model) take.
///
/// `M` distinguishes these forms and is always inferred.
pub trait IntoHandle<H, M> {
    /// Converts into the handle.
    fn into_handle(self) -> H;
}

/// The form of a plain value.
#[derive(Debug)]
pub enum ByValue {}

/// The form of a reference.
#[derive(Debug)]
pub enum ByRef {}

/// The form of an `Arc`.
#[derive(Debug)]
pub enum ByArc {}

/// The form of a handle, or of a reference to one.
#[derive(Debug)]
pub enum ByHandle {}

/// Implements [`IntoHandle`] for a handle, for the values, references and `Arc`s that it can be made
/// of, and for references to it.
macro_rules! into_handle {
    (impl[$($own:tt)*] $handle:ty, made of [$($generics:tt)*] $value:ident) => {
        into_handle! { ByValue[$($generics)*] $value => $handle,
            |value| <$handle>::from_arc(std::sync::Arc::new(value)) }
        into_handle! { ByRef[$($generics)* + Clone] &$value => $handle,
            |value| <$handle>::from_arc(std::sync::Arc::new(value.clone())) }
        into_handle! { ByArc[$($generics)*] std::sync::Arc<$value> => $handle,
            |value| <$handle>::from_arc(value) }
        into_handle! { ByHandle[$($own)*] $handle => $handle, |handle| handle }
        into_handle! { ByHandle[$($own)*] &$handle => $handle, |handle| handle.clone() }
    };
    ($form:ident[$($generics:tt)*] $from:ty => $handle:ty, |$value:ident| $made:expr) => {
        impl<$($generics)*> $crate::handle::IntoHandle<$handle, $crate::handle::$form> for $from {
            fn into_handle(self) -> $handle {
                let $value = self;
                $made
            }
        }
    };
}

pub(crate) use into_handle;
