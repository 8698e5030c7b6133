//! Logs a request if the properties of its service say so.

use http::{Method, Response};
use smalt_protocol::xml::Logging;

use super::line;
use super::waiting::Purpose;
use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::register::Entry;
use crate::store::StoreResult;

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

/// Logs a request if the properties of its service say so.
///
/// # Errors
/// When the properties cannot be read.
pub fn log(core: &Core, call: &Call, entry: &Entry, response: &Response<Body>) -> StoreResult<()> {
    let service = call.service();
    let properties = core.properties.load(&core.store, call.account(), service)?;
    let purpose = Purpose::of(call, entry);
    let Some(properties) = properties.filter(|it| purpose.is_logged(&it.logging)) else {
        return Ok(());
    };
    let logging = &properties.logging;
    let (now, owner) = (core.store.now(), (call.account().to_owned(), service));
    if let Some(line) = line::of(call, entry, response, (now, logging.version)) {
        let what = (call.arrival, purpose);
        core.analytics.add(owner, logging, what, &line);
    }
    Ok(())
}
