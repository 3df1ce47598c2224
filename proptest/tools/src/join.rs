//! Two futures as one, without a runtime.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Runs two futures together, and returns what both return.
///
/// # Examples
///
/// ```
/// use requeue_test_tools::{by_hand, join};
///
/// let both = join(async { 1 }, async { 2 });
/// assert_eq!(by_hand(both).ready(), (1, 2));
/// ```
pub async fn join<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(value) = first.as_mut().poll(context)
        {
            one = Some(value);
        }
        if other.is_none()
            && let Poll::Ready(value) = second.as_mut().poll(context)
        {
            other = Some(value);
        }
        match (one.take(), other.take()) {
            (Some(value), Some(rest)) => Poll::Ready((value, rest)),
            (value, rest) => {
                (one, other) = (value, rest);
                Poll::Pending
            }
        }
    })
    .await
}
