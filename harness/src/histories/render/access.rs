//! Access policies and signatures as requests.

use http::Method;
use smalt_model::vocabulary::{AccessOperation, Right, Terms};
use smalt_protocol::Service;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::ServiceSas;

use super::{Credential, Request};
use crate::histories::server::{VERSION, moment};
use crate::wire::access::Account;

/// The id of every policy.
const POLICY: &str = "policy";

pub(super) fn request(service: Service, name: &str, operation: AccessOperation) -> Request {
    match operation {
        AccessOperation::Set(policy) => {
            let path = match service {
                Service::Blob => format!("{name}?restype=container&comp=acl"),
                Service::Queue | Service::Table => format!("{name}?comp=acl"),
            };
            Request {
                credential: Credential::Key,
                ..Request::new(service, Method::PUT, path).body(document(service, policy))
            }
        }
        AccessOperation::Read { by_policy, own } => {
            let path = match service {
                Service::Blob => format!("{name}?restype=container&comp=list&maxresults=1"),
                Service::Queue => format!("{name}/messages?peekonly=true"),
                Service::Table => format!("{name}()?$top=1"),
            };
            let path = format!("{path}&{}", sas(service, name, by_policy, own));
            let request = Request::new(service, Method::GET, path);
            let accept = (service == Service::Table)
                .then(|| "application/json;odata=minimalmetadata".to_owned());
            Request {
                credential: Credential::Own,
                ..request.maybe("accept", accept)
            }
        }
    }
}

fn letter(service: Service, right: Right) -> &'static str {
    match (service, right) {
        (Service::Blob, Right::Read) => "l",
        (Service::Blob, Right::Other) => "w",
        (Service::Queue | Service::Table, Right::Read) => "r",
        (Service::Queue | Service::Table, Right::Other) => "a",
    }
}

/// The clock has a fraction of a second, so the boundaries have it as well: otherwise no request
/// would arrive at one.
fn time(seconds: u64) -> String {
    moment(seconds).iso_ticks()
}

fn sas(service: Service, name: &str, by_policy: bool, own: Terms) -> String {
    let account = Account::emulator();
    let [start, expiry] = [own.start_s, own.expiry_s].map(|s| s.map(time).unwrap_or_default());
    let sas = ServiceSas {
        version: VERSION,
        target: SasTarget {
            service,
            account: &account.name,
            name,
            blob: None,
            snapshot: "",
        },
        permissions: own.right.map_or("", |right| letter(service, right)),
        start: None,
        expiry: None,
        policy_id: if by_policy { POLICY } else { "" },
        ip: "",
        protocol: "",
        more: &[("st", &start), ("se", &expiry)],
    };
    sas.sign(account.key.as_bytes())
}

fn document(service: Service, policy: Option<Terms>) -> String {
    let policy = policy.map(|policy| {
        let element = |name: &str, text: Option<String>| {
            text.map_or_else(String::new, |text| format!("<{name}>{text}</{name}>"))
        };
        let start = element("Start", policy.start_s.map(time));
        let expiry = element("Expiry", policy.expiry_s.map(time));
        let right = policy.right.map(|right| letter(service, right).to_owned());
        let permission = element("Permission", right);
        format!(
            "<SignedIdentifier><Id>{POLICY}</Id>\
             <AccessPolicy>{start}{expiry}{permission}</AccessPolicy></SignedIdentifier>"
        )
    });
    let policy = policy.unwrap_or_default();
    format!("<SignedIdentifiers>{policy}</SignedIdentifiers>")
}
