//! A case: a few requests to a storage service, and the required answers.

use smalt::faults::Fault;
use smalt::register::Entry;
use smalt_protocol::Service;

use super::auth::Auth;
use super::expect::Expect;
use super::place::Place;
use super::raw::Then;
use crate::target::Ability;

/// How a request is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// By an HTTP client, with the headers that every request needs.
    Client,
    /// Byte by byte as written, on a separate connection.
    Bytes {
        /// The value of `Content-Length`, not expanded: `None` for the length of the body, `none`
        /// to omit the header.
        length: Option<String>,
        /// What the client does after sending.
        then: Then,
    },
}

/// One step: a request and the required answer. Its strings are not expanded.
#[derive(Clone, Debug)]
pub struct Step {
    /// The service that receives the request.
    pub service: Service,
    /// The operation, if the case names one of the register.
    pub operation: Option<&'static Entry>,
    /// HTTP method; `RAW` when the body is the whole request.
    pub method: String,
    /// Path below the account, with the query.
    pub path: String,
    /// Headers as `name: value` lines.
    pub headers: Vec<String>,
    /// Request body.
    pub body: Option<String>,
    /// How the request is authorized.
    pub auth: Auth,
    /// `x-ms-version`; empty for none.
    pub version: String,
    /// How the request is sent.
    pub wire: Wire,
    /// Seconds to wait before the request.
    pub wait_s: u64,
    /// Whether the request goes to the account's secondary endpoint.
    pub secondary: bool,
    /// Fault to plan for the request.
    pub fault: Option<Fault>,
    /// Required properties of the answer.
    pub expects: Vec<Expect>,
    /// Values to keep: name and location.
    pub keeps: Vec<(String, Place)>,
}

/// A sequence of steps.
#[derive(Clone, Debug)]
pub struct Case {
    /// A unique sentence that states what holds.
    pub name: String,
    /// Area: the file name, with spaces for underscores.
    pub area: String,
    /// The service under test.
    pub service: Service,
    /// Titles of the documents that require the behaviour.
    pub source: String,
    /// Abilities that the target must have.
    pub needs: Vec<Ability>,
    /// Account settings: fields of `/accounts/{name}` of the control endpoint.
    pub settings: Option<serde_json::Value>,
    /// Containers, queues and tables to create in advance: `c`, `c2`, `q`, `q2`, `t`, `t2`.
    pub makes: Vec<&'static str>,
    /// Containers, queues and tables that may exist afterwards.
    pub removes: Vec<&'static str>,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// Names of containers, queues and tables in cases.
pub const PLACES: [&str; 6] = ["c", "c2", "q", "q2", "t", "t2"];
/// Default `x-ms-version` of steps, supported by all recent endpoints.
pub const VERSION: &str = "2023-11-03";

impl Step {
    /// Returns a request of the account owner without expectations.
    pub fn new(service: Service, method: &str, path: &str) -> Step {
        Step {
            service,
            operation: None,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
            auth: Auth::Key,
            version: VERSION.to_owned(),
            wire: Wire::Client,
            wait_s: 0,
            secondary: false,
            fault: None,
            expects: Vec::new(),
            keeps: Vec::new(),
        }
    }

    /// Returns the id of the operation; empty if the case names none.
    pub fn operation_id(&self) -> &'static str {
        self.operation.map_or("", |operation| operation.id)
    }

    /// Whether any part of the step uses this form.
    pub fn names(&self, form: &str) -> bool {
        let body = self.body.iter();
        let texts = body.chain(&self.headers).chain([&self.path]);
        texts.into_iter().any(|text| text.contains(form))
    }

    /// Whether a success is expected.
    pub fn succeeds(&self) -> bool {
        let status = self.expects.iter().find_map(Expect::status);
        status.is_none_or(|status| status < 300)
    }
}

impl Case {
    /// Determines what the steps require: the containers, queues and tables that they name, except
    /// those in `bare`, and the abilities of the target.
    pub(super) fn complete(&mut self, bare: &[&str]) {
        let steps = &self.steps;
        let names = |place: &&str| {
            let form = format!("{{{place}}}");
            steps.iter().any(|step| step.names(&form))
        };
        self.removes = PLACES.into_iter().filter(names).collect();
        let makes = self.removes.iter().filter(|place| !bare.contains(place));
        self.makes = makes.copied().collect();
        let is_raw = |step: &Step| step.wire != Wire::Client;
        for (is_needed, ability) in [
            (steps.iter().any(|step| step.wait_s > 0), Ability::Clock),
            (
                steps.iter().any(|step| step.fault.is_some()),
                Ability::Faults,
            ),
            (self.settings.is_some(), Ability::Settings),
            (steps.iter().any(is_raw), Ability::Bytes),
        ] {
            if is_needed {
                self.needs.push(ability);
            }
        }
    }
}
