//! A case: a few requests to a storage service, and what each answer must be.

use smalt::faults::Fault;
use smalt::register::Entry;
use smalt_protocol::Service;

use super::auth::Auth;
use super::expect::Expect;
use super::place::Place;
use super::raw::Then;
use crate::target::Ability;

/// How the bytes of a request are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// By an HTTP client, with the headers that every request needs.
    Client,
    /// On a connection of their own, as they are written.
    Bytes {
        /// The value of `Content-Length`, not expanded: `None` for that of the body, `none` to
        /// leave the header out.
        length: Option<String>,
        /// What the client does after it has sent them.
        then: Then,
    },
}

/// One step: a request and what its answer must be. Its texts are not expanded.
#[derive(Clone, Debug)]
pub struct Step {
    /// The service that is asked.
    pub service: Service,
    /// The operation, where the case names one of the register.
    pub operation: Option<&'static Entry>,
    /// Method; `RAW` where the body is the whole request.
    pub method: String,
    /// Path below the account, and query.
    pub path: String,
    /// `name: value` lines.
    pub headers: Vec<String>,
    /// Body.
    pub body: Option<String>,
    /// How it is allowed.
    pub auth: Auth,
    /// `x-ms-version`; empty for none.
    pub version: String,
    /// How it is sent.
    pub wire: Wire,
    /// Seconds that pass before it.
    pub wait_s: u64,
    /// Whether the account's secondary endpoint is asked.
    pub secondary: bool,
    /// What goes wrong with it.
    pub fault: Option<Fault>,
    /// What its answer must be.
    pub expects: Vec<Expect>,
    /// Values to keep: name, and where it stands.
    pub keeps: Vec<(String, Place)>,
}

/// A few steps that belong together.
#[derive(Clone, Debug)]
pub struct Case {
    /// What holds, in a sentence; unique.
    pub name: String,
    /// Its area: the name of its file, with blanks for underscores.
    pub area: String,
    /// The service that it is about.
    pub service: Service,
    /// Title of the documents that say so.
    pub source: String,
    /// What a target must be able to do.
    pub needs: Vec<Ability>,
    /// Settings of the account: fields of `/accounts/{name}` of the control endpoint.
    pub settings: Option<serde_json::Value>,
    /// Containers, queues and tables that are made beforehand: `c`, `c2`, `q`, `q2`, `t`, `t2`.
    pub makes: Vec<&'static str>,
    /// Those that may be there afterwards.
    pub removes: Vec<&'static str>,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// Containers, queues and tables that cases name.
pub const PLACES: [&str; 6] = ["c", "c2", "q", "q2", "t", "t2"];
/// `x-ms-version` of steps that name none: known to every endpoint of the last years.
pub const VERSION: &str = "2023-11-03";

impl Step {
    /// A request of the owner, of which nothing is expected.
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

    /// The id of its operation; empty where the case names none.
    pub fn operation_id(&self) -> &'static str {
        self.operation.map_or("", |operation| operation.id)
    }

    /// Whether it names this form anywhere.
    pub fn names(&self, form: &str) -> bool {
        let body = self.body.iter();
        let texts = body.chain(&self.headers).chain([&self.path]);
        texts.into_iter().any(|text| text.contains(form))
    }

    /// Whether its answer is to be a success.
    pub fn succeeds(&self) -> bool {
        let status = self.expects.iter().find_map(Expect::status);
        status.is_none_or(|status| status < 300)
    }
}

impl Case {
    /// Notes what the steps take for granted: the places that they name, but for those in `bare`,
    /// and what a target must be able to do.
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
