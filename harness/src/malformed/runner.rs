//! All cases against one server.

use std::borrow::Cow;

use serde_json::Value;
use smalt::{Clock, register};

use super::raw;
use super::request;
use super::subject::{Addresses, Subject};
use super::table::{Case, Then};
use crate::servers::ServerError;
use crate::target::control::Control;
use crate::wire::Answer;

/// What came of a case: `Ok`, or what is wrong.
pub type Outcome = Result<(), String>;

/// A server under test.
pub struct Runner {
    subject: Subject,
    addresses: Addresses,
    control: Control,
    before: Value,
}

impl Runner {
    /// Makes the things that the cases name.
    ///
    /// # Errors
    /// When the server refuses, or its control endpoint does not tell what is stored.
    pub async fn begin(addresses: Addresses) -> Result<Self, ServerError> {
        let subject = Subject::create(addresses).await?;
        let control = Control::at(&addresses.control.to_string())?;
        let before = control.state().await?;
        Ok(Runner {
            subject,
            addresses,
            control,
            before,
        })
    }

    /// One case, and whether the server is unharmed.
    pub async fn run(&mut self, case: &Case) -> Outcome {
        let answer = self.exchange(case).await?;
        judge(case, &answer)?;
        self.subject.check().await.map_err(|e| harmed(&e))?;
        let after = self.control.state().await.map_err(|e| harmed(&e))?;
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

fn harmed(error: &dyn std::fmt::Display) -> String {
    format!("afterwards: {error}")
}

/// The answer against the stated one.
fn judge(case: &Case, answer: &Answer) -> Outcome {
    if case.then == Then::Leave {
        return Ok(());
    }
    let (status, code) = match unbuilt(case) {
        Some(operation) if !text(answer).contains(operation) => {
            return Err(format!("{} does not name {operation}", shown(answer)));
        }
        Some(_) => (501, "NotImplemented"),
        None => (case.status, case.code.as_str()),
    };
    if answer.status == status && code_of(answer) == code {
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
    let text: String = text(answer).chars().take(300).collect();
    let code = code_of(answer);
    format!("{} {code} {text:?}", answer.status)
}

/// The error code in the header; documents of the Table service alone tell it in their body only.
fn code_of(answer: &Answer) -> String {
    let code = answer.header("x-ms-error-code").map(str::to_owned);
    let of_table = || {
        answer
            .error_code()
            .filter(|_| !text(answer).contains("<Code>"))
    };
    code.or_else(of_table).unwrap_or_default()
}

fn text(answer: &Answer) -> Cow<'_, str> {
    String::from_utf8_lossy(&answer.body)
}
