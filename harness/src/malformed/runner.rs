//! All cases against one server.

use serde_json::Value;
use smalt::{Clock, register};

use super::raw::{self, Answer};
use super::request;
use super::subject::{Addresses, Subject};
use super::table::{Case, Then};
use crate::servers::ServerError;
use crate::servers::smalt::state;

/// What came of a case: `Ok`, or what is wrong.
pub type Outcome = Result<(), String>;

/// A server under test.
pub struct Runner {
    subject: Subject,
    addresses: Addresses,
    before: Value,
}

impl Runner {
    /// Makes the things that the cases name.
    ///
    /// # Errors
    /// When the server refuses, or its control endpoint does not tell what is stored.
    pub async fn begin(addresses: Addresses) -> Result<Self, ServerError> {
        let subject = Subject::create(addresses).await?;
        let before = state(addresses.control).await?;
        Ok(Runner {
            subject,
            addresses,
            before,
        })
    }

    /// One case, and whether the server is unharmed.
    pub async fn run(&mut self, case: &Case) -> Outcome {
        let answer = self.exchange(case).await?;
        judge(case, &answer)?;
        let harmed = |error: ServerError| format!("afterwards: {error}");
        self.subject.check().await.map_err(harmed)?;
        let after = state(self.addresses.control).await.map_err(harmed)?;
        if after != self.before {
            // Told of once: the next cases are held against what is there now.
            self.before = after;
            return Err("afterwards: something was stored".to_owned());
        }
        Ok(())
    }

    async fn exchange(&self, case: &Case) -> Result<Answer, String> {
        let values = self.subject.values(case.service);
        let now = Clock::system().now();
        let bytes = request::bytes(case, &values, now).map_err(|error| error.to_string())?;
        let address = self.addresses.of(case.service);
        let exchanged = raw::exchange(address, bytes, case.then).await;
        exchanged.map_err(|error| error.to_string())
    }
}

/// The answer against the stated one.
fn judge(case: &Case, answer: &Answer) -> Outcome {
    if case.then == Then::Leave {
        return Ok(());
    }
    let (status, code) = match unbuilt(case) {
        Some(operation) if !answer.text.contains(operation) => {
            return Err(format!("{} does not name {operation}", shown(answer)));
        }
        Some(_) => (501, "NotImplemented"),
        None => (case.status, case.code.as_str()),
    };
    if answer.status == status && answer.code == code {
        return Ok(());
    }
    Err(format!("{} in place of {status} {code}", shown(answer)))
}

/// The operation of a case, when the register does not have it built.
fn unbuilt(case: &Case) -> Option<&str> {
    let operation = case.operation.as_deref()?;
    let entry = register::by_id(case.service, operation)?;
    (!entry.is_built()).then_some(operation)
}

fn shown(answer: &Answer) -> String {
    let text: String = answer.text.chars().take(300).collect();
    format!("{} {} {text:?}", answer.status, answer.code)
}
