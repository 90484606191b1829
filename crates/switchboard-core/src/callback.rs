//! Calling user code: sync or async, returning a value or a `Result`, caught when it panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use futures_util::FutureExt as _;

/// An error of user code or of an external system.
pub type BoxError = Box<DynError>;

/// An error of any type, behind a reference.
pub type DynError = dyn std::error::Error + Send + Sync;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The outcome of a callback.
pub(crate) enum Outcome<T> {
    /// The result of a sync callback.
    Ready(Result<T, BoxError>),
    /// The future of an async callback.
    Pending(BoxFuture<'static, Result<T, BoxError>>),
}

/// Calls user code and awaits its outcome. A panic becomes an error.
pub(crate) async fn call<T>(code: impl FnOnce() -> Outcome<T>) -> Result<T, BoxError> {
    match catch_panic_sync(code)? {
        Outcome::Ready(result) => result,
        Outcome::Pending(future) => catch_panic(future).await,
    }
}

/// Calls user code. A panic becomes an error.
pub(crate) fn catch_panic_sync<T>(code: impl FnOnce() -> T) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Panicked::new(panic).into())
}

/// Awaits user code. A panic becomes an error.
pub(crate) async fn catch_panic<T>(
    code: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    let caught = AssertUnwindSafe(code).catch_unwind().await;
    caught.unwrap_or_else(|panic| Err(Panicked::new(panic).into()))
}

/// A panic of user code.
#[derive(Debug)]
struct Panicked(String);

impl Panicked {
    fn new(panic: Box<dyn Any + Send>) -> Self {
        let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        Self(message.unwrap_or_else(|| "no message".to_owned()))
    }
}

impl_error!(Panicked, |panic| "it panicked: {}", panic.0);

/// The return type of a callback: a value that converts into `T`, a `Result` of one, or a future of
/// either.
///
/// `M` distinguishes these forms and is always inferred.
#[diagnostic::on_unimplemented(
    message = "a callback that returns `{Self}` does not give a `{T}`",
    label = "return a value that converts into `{T}`, a `Result` of it, or a future of either",
    note = "a tool returns a value that is `Serialize` as `Json(value)`",
    note = "a future must be `Send`: it cannot hold an `Rc` or a `MutexGuard` across an await"
)]
pub trait IntoOutcome<T, M>: sealed::IntoOutcome<T, M> {}

impl<T, M, R: sealed::IntoOutcome<T, M>> IntoOutcome<T, M> for R {}

/// The form of a callback that returns a plain value.
#[derive(Debug)]
pub enum ByValue {}

/// The form of a callback that returns a `Result`.
#[derive(Debug)]
pub enum ByResult {}

/// The form of a callback that returns a future.
#[derive(Debug)]
pub struct ByFuture<M>(std::marker::PhantomData<M>);

#[expect(private_interfaces, reason = "this trait cannot be named outside")]
mod sealed {
    use super::{BoxError, ByFuture, ByResult, ByValue, Outcome};

    #[diagnostic::on_unimplemented(
        message = "a callback that returns `{Self}` does not give a `{T}`",
        label = "return a value that converts into `{T}`, a `Result` of it, or a future of either"
    )]
    pub trait IntoOutcome<T, M> {
        /// Set if the code is async.
        const IS_ASYNC: bool;

        fn into_outcome(self) -> Outcome<T>;
    }

    impl<T, U: Into<T>> IntoOutcome<T, ByValue> for U {
        const IS_ASYNC: bool = false;

        fn into_outcome(self) -> Outcome<T> {
            Outcome::Ready(Ok(self.into()))
        }
    }

    impl<T, U: Into<T>, E: Into<BoxError>> IntoOutcome<T, ByResult> for Result<U, E> {
        const IS_ASYNC: bool = false;

        fn into_outcome(self) -> Outcome<T> {
            Outcome::Ready(self.map(Into::into).map_err(Into::into))
        }
    }

    impl<T, F, M> IntoOutcome<T, ByFuture<M>> for F
    where
        T: Send + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutcome<T, M>,
    {
        const IS_ASYNC: bool = true;

        fn into_outcome(self) -> Outcome<T> {
            Outcome::Pending(Box::pin(async move {
                match self.await.into_outcome() {
                    Outcome::Ready(result) => result,
                    Outcome::Pending(future) => future.await,
                }
            }))
        }
    }
}
