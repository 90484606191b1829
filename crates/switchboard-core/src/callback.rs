//! How the code of users is called: sync or async, returning a value or a result.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use futures_util::FutureExt as _;

/// An error of user code or of something outside: anything that is an error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a callback came to: at once, or later.
pub enum Outcome<T> {
    /// A sync callback's answer.
    Ready(Result<T, BoxError>),
    /// An async callback's answer, in time.
    Later(BoxFuture<'static, Result<T, BoxError>>),
}

impl<T> Outcome<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// What the callback returned as its error.
    pub async fn get(self) -> Result<T, BoxError> {
        match self {
            Self::Ready(result) => result,
            Self::Later(future) => future.await,
        }
    }
}

impl<T> std::fmt::Debug for Outcome<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready(Ok(_)) => "Outcome::Ready(Ok)",
            Self::Ready(Err(_)) => "Outcome::Ready(Err)",
            Self::Later(_) => "Outcome::Later",
        })
    }
}

/// Calls user code and waits for its answer. A panic in it is an error like any other: the run
/// stays intact.
pub(crate) async fn call<T>(code: impl FnOnce() -> Outcome<T>) -> Result<T, BoxError> {
    match caught(code)? {
        Outcome::Ready(result) => result,
        Outcome::Later(future) => no_panic(future).await,
    }
}

/// Calls user code that answers at once. A panic in it is an error like any other.
pub(crate) fn caught<T>(code: impl FnOnce() -> T) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Panicked::new(panic).into())
}

/// Waits for user code. A panic in it is an error like any other.
pub(crate) async fn no_panic<T>(
    code: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    match AssertUnwindSafe(code).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(Panicked::new(panic).into()),
    }
}

/// User code that panicked.
#[derive(Debug)]
struct Panicked(String);

impl Panicked {
    fn new(panic: Box<dyn Any + Send>) -> Self {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        Self(said.unwrap_or_else(|| "it did not say why".to_owned()))
    }
}

impl std::fmt::Display for Panicked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it panicked: {}", self.0)
    }
}

impl std::error::Error for Panicked {}

/// What a callback may return: the value itself, a `Result` of it, or a future of either.
///
/// `M` only tells the forms apart and is always inferred.
#[diagnostic::on_unimplemented(
    message = "a callback that returns `{Self}` does not give a `{T}`",
    label = "return a value that converts into `{T}`, a `Result` of it, or a future of either"
)]
pub trait IntoOutcome<T, M> {
    /// The outcome.
    fn into_outcome(self) -> Outcome<T>;
}

/// Marks a callback that returns a plain value.
#[derive(Debug)]
pub enum ByValue {}

/// Marks a callback that returns a `Result`.
#[derive(Debug)]
pub enum ByResult {}

/// Marks a callback that returns a future.
#[derive(Debug)]
pub struct ByFuture<M>(std::marker::PhantomData<M>);

impl<T, U: Into<T>> IntoOutcome<T, ByValue> for U {
    fn into_outcome(self) -> Outcome<T> {
        Outcome::Ready(Ok(self.into()))
    }
}

impl<T, U: Into<T>, E: Into<BoxError>> IntoOutcome<T, ByResult> for Result<U, E> {
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
    fn into_outcome(self) -> Outcome<T> {
        Outcome::Later(Box::pin(
            async move { self.await.into_outcome().get().await },
        ))
    }
}
