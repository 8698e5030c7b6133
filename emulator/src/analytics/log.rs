//! Logs a request if the settings of its service say so.

use http::{Method, Response};
use smalt_protocol::xml::Logging;

use super::line;
use super::waiting::Purpose;
use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::register::Entry;

impl Purpose {
    fn of(call: &Call, entry: &Entry) -> Self {
        match call.method {
            Method::DELETE => Purpose::Delete,
            _ if entry.only_reads() => Purpose::Read,
            _ => Purpose::Write,
        }
    }

    fn is_logged(self, logging: &Logging) -> bool {
        match self {
            Purpose::Read => logging.read,
            Purpose::Write => logging.write,
            Purpose::Delete => logging.delete,
        }
    }
}

/// Logs a request if the settings of its service say so.
pub fn log(core: &Core, call: &Call, entry: &Entry, response: &Response<Body>, settings: &Logging) {
    let purpose = Purpose::of(call, entry);
    if !purpose.is_logged(settings) {
        return;
    }
    let (now, owner) = (
        core.store.now(),
        (call.account().to_owned(), call.service()),
    );
    if let Some(line) = line::of(call, entry, response, (now, settings.version)) {
        let what = (call.arrival, purpose);
        core.analytics.add(owner, settings, what, &line);
    }
}
