//! Boxed futures, for object-safe traits.

use std::future::Future;
use std::pin::Pin;

/// A boxed future, for object-safe traits.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes a future. The allocation is made first and the future constructed in place, which avoids copying a large
/// future from the stack.
#[inline]
pub fn boxed<'a, T, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, T>
where
    F: Future<Output = T> + Send + 'a,
{
    let uninit = Box::<F>::new_uninit();
    let future: Box<F> = Box::write(uninit, make());
    Box::into_pin(future)
}
