//! A target that gives wrong answers on purpose, to test that a check notices.

use async_trait::async_trait;
use smalt::faults::Rule;
use smalt_protocol::Timestamp;

use super::{About, Setup, Target, TargetError};
use crate::wire::{Answer, Request};

/// Changes an answer; `None` leaves it unchanged.
pub type Bend = Box<dyn Fn(&Request, &Answer) -> Option<Answer> + Send + Sync>;

/// A target that changes some of the answers of another.
pub struct Bent<T> {
    inner: T,
    bend: Bend,
}

impl<T: Target> Bent<T> {
    /// Wraps a target so that `bend` changes its answers.
    pub fn new(
        inner: T,
        bend: impl Fn(&Request, &Answer) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let bend = Box::new(bend);
        Bent { inner, bend }
    }
}

#[async_trait]
impl<T: Target> Target for Bent<T> {
    fn about(&self) -> &About {
        self.inner.about()
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let answer = self.inner.call(request.clone()).await?;
        Ok((self.bend)(&request, &answer).unwrap_or(answer))
    }

    async fn reset(&self, setup: &Setup) -> Result<(), TargetError> {
        self.inner.reset(setup).await
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        self.inner.set_clock(now).await
    }

    async fn advance(&self, seconds: u64) -> Result<(), TargetError> {
        self.inner.advance(seconds).await
    }

    async fn configure(&self, settings: &serde_json::Value) -> Result<(), TargetError> {
        self.inner.configure(settings).await
    }

    async fn plan(&self, rule: &Rule) -> Result<(), TargetError> {
        self.inner.plan(rule).await
    }

    async fn fired(&self) -> Result<u64, TargetError> {
        self.inner.fired().await
    }
}
