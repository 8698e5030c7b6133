//! Signatures: each boundary of their window, and their permissions, from themselves or from a
//! stored policy.

use std::cmp::Ordering;

use smalt_protocol::Service;

use super::area::Area;
use super::watch::Watch;
use crate::state::Model;
use crate::vocabulary::{AccessOperation, Right, Terms};

const SERVICES: &[&str] = &["blob", "queue", "table"];
const SOURCES: &[&str] = &["signature", "policy"];
const ABSENT: &str = "absent policy";

/// A read whose answer depends on one boundary of the window.
pub(super) const WINDOWS: Area = Area {
    name: "signature",
    axes: [
        SERVICES,
        SOURCES,
        &["start", "expiry"],
        &["before", "at", "after"],
    ],
    exists: |_| true,
    counts_refusals: true,
};

/// A read whose answer depends on the fields that are present, or on the permission.
pub(super) const RIGHTS: Area = Area {
    name: "signed fields",
    axes: [
        SERVICES,
        &["signature", "policy", "both", ABSENT],
        &["start", "expiry", "permission", ""],
        &["read", "other", "missing", ""],
    ],
    exists: |[_, source, field, value]| match (*source, *field) {
        (ABSENT, field) => field.is_empty() && value.is_empty(),
        ("both", field) => !field.is_empty() && value.is_empty(),
        (_, "permission") => !value.is_empty(),
        (_, "expiry") => *value == "missing",
        _ => false,
    },
    counts_refusals: true,
};

fn name(service: Service) -> &'static str {
    match service {
        Service::Blob => "blob",
        Service::Queue => "queue",
        Service::Table => "table",
    }
}

fn moment(now_s: u64, boundary_s: u64) -> &'static str {
    match now_s.cmp(&boundary_s) {
        Ordering::Less => "before",
        Ordering::Equal => "at",
        Ordering::Greater => "after",
    }
}

impl Watch {
    pub(super) fn access(
        &mut self,
        model: &Model,
        service: Service,
        name_of: &str,
        operation: &AccessOperation,
    ) {
        let AccessOperation::Read { by_policy, own } = *operation else {
            return;
        };
        if !model.has(service, name_of) {
            return;
        }
        let service_name = name(service);
        let stored = model.policy(service, name_of);
        if by_policy && stored.is_none() {
            return self.saw(&RIGHTS, [service_name, ABSENT, "", ""]);
        }
        let stored = stored.filter(|_| by_policy).unwrap_or_default();
        match own.merged(stored) {
            Some(terms) => self.merged(service_name, by_policy, stored, terms, model.now_s()),
            None => self.twice(service_name, own, stored),
        }
    }

    fn twice(&mut self, service: &'static str, own: Terms, stored: Terms) {
        let twice = [
            ("start", own.start_s.and(stored.start_s).is_some()),
            ("expiry", own.expiry_s.and(stored.expiry_s).is_some()),
            ("permission", own.right.and(stored.right).is_some()),
        ];
        let mut twice = twice.into_iter().filter(|(_, is_twice)| *is_twice);
        // Only one mistake at a time decides the answer.
        if let (Some((field, _)), None) = (twice.next(), twice.next()) {
            self.saw(&RIGHTS, [service, "both", field, ""]);
        }
    }

    fn merged(
        &mut self,
        service: &'static str,
        by_policy: bool,
        stored: Terms,
        terms: Terms,
        now_s: u64,
    ) {
        let source = |is_stored: bool| SOURCES[usize::from(is_stored)];
        let begun = terms.start_s.is_none_or(|start_s| start_s <= now_s);
        let over = terms.expiry_s.is_none_or(|expiry_s| expiry_s <= now_s);
        match terms.right {
            None if begun && !over => {
                let at = [service, source(by_policy), "permission", "missing"];
                return self.saw(&RIGHTS, at);
            }
            None => return,
            Some(right) if begun && !over => {
                let right = match right {
                    Right::Read => "read",
                    Right::Other => "other",
                };
                let source = source(stored.right.is_some());
                self.saw(&RIGHTS, [service, source, "permission", right]);
            }
            Some(_) => {}
        }
        if terms.right != Some(Right::Read) {
            return;
        }
        if terms.expiry_s.is_none() && begun {
            self.saw(&RIGHTS, [service, source(by_policy), "expiry", "missing"]);
        }
        if let Some(start_s) = terms.start_s.filter(|_| !over) {
            let source = source(stored.start_s.is_some());
            self.saw(&WINDOWS, [service, source, "start", moment(now_s, start_s)]);
        }
        if let Some(expiry_s) = terms.expiry_s.filter(|_| begun) {
            let source = source(stored.expiry_s.is_some());
            let at = [service, source, "expiry", moment(now_s, expiry_s)];
            self.saw(&WINDOWS, at);
        }
    }
}
