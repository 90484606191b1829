//! Implementations of common traits that a derive cannot write.

/// Implements `Clone` without the bound on the application's context that a derive would add.
///
/// The type is repeated with the names of its fields, or of its variants and their values.
macro_rules! impl_clone {
    (struct $type:ident<$context:ident> { $($field:tt),* $(,)? }) => {
        impl<$context> Clone for $type<$context> {
            fn clone(&self) -> Self {
                Self { $($field: self.$field.clone()),* }
            }
        }
    };
    (enum $type:ident<$context:ident> { $($variant:ident $(($value:ident))?),* $(,)? }) => {
        impl<$context> Clone for $type<$context> {
            fn clone(&self) -> Self {
                match self {
                    $(Self::$variant $(($value))? => Self::$variant $(($value.clone()))?,)*
                }
            }
        }
    };
}

/// Implements `Debug` as the name of the type, with one value in parentheses or some fields if given.
macro_rules! impl_debug {
    ($type:ident $(<$($generic:ident),*>)? $(, |$this:ident| $value:expr)?) => {
        impl $(<$($generic),*>)? std::fmt::Debug for $type $(<$($generic),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($type))?;
                $(
                    let $this = self;
                    write!(f, "({})", $value)?;
                )?
                Ok(())
            }
        }
    };
    ($type:ident<$generic:ident> { $($name:ident: $($path:ident).+),* $(,)? }) => {
        impl<$generic> std::fmt::Debug for $type<$generic> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($name), &self.$($path).+))*
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Implements `From` for several types, each with an expression that makes a `Self`.
macro_rules! impl_from {
    ($type:ty { $(|$value:ident: $from:ty| $converted:expr,)* }) => {$(
        impl From<$from> for $type {
            fn from($value: $from) -> Self {
                $converted
            }
        }
    )*};
}

/// Implements `Display` as a formatted message, and `Error` without a source.
macro_rules! impl_error {
    ($type:ident, |$this:ident| $($message:tt)*) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                write!(f, $($message)*)
            }
        }

        impl std::error::Error for $type {}
    };
}
