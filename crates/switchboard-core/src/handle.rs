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

/// Implements [`IntoHandle`] for the values, references and `Arc`s that a handle can be made of.
macro_rules! into_handle {
    (impl[$($generics:tt)*] IntoHandle for $handle:ty, made of $value:ident) => {
        impl<$($generics)*> $crate::handle::IntoHandle<$handle, $crate::handle::ByValue> for $value {
            fn into_handle(self) -> $handle {
                <$handle>::from_arc(std::sync::Arc::new(self))
            }
        }

        impl<$($generics)* + Clone> $crate::handle::IntoHandle<$handle, $crate::handle::ByRef> for &$value {
            fn into_handle(self) -> $handle {
                <$handle>::from_arc(std::sync::Arc::new(self.clone()))
            }
        }

        impl<$($generics)*> $crate::handle::IntoHandle<$handle, $crate::handle::ByArc>
            for std::sync::Arc<$value>
        {
            fn into_handle(self) -> $handle {
                <$handle>::from_arc(self)
            }
        }
    };
}

/// Implements [`IntoHandle`] for a handle itself and for references to it.
macro_rules! handle_itself {
    (impl[$($generics:tt)*] IntoHandle for $handle:ty) => {
        impl<$($generics)*> $crate::handle::IntoHandle<$handle, $crate::handle::ByHandle> for $handle {
            fn into_handle(self) -> $handle {
                self
            }
        }

        impl<$($generics)*> $crate::handle::IntoHandle<$handle, $crate::handle::ByHandle> for &$handle {
            fn into_handle(self) -> $handle {
                self.clone()
            }
        }
    };
}

pub(crate) use {handle_itself, into_handle};
