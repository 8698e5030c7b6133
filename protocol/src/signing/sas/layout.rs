//! The strings that SAS signatures sign: one list of fields per range of versions.
//!
//! Source: *Create a service SAS*, *Create an account SAS*, *Create a user delegation SAS*,
//! sections on the string-to-sign by version. Fields are signed as received, decoded; an absent
//! field is an empty line.

use super::{Sas, SasKind, SasTarget};
use crate::service::Service;
use crate::version::ApiVersion;

/// Not a parameter: the canonicalized resource.
const RESOURCE: &str = "(resource)";
/// Not a parameter: the snapshot or version that the request addresses.
const SNAPSHOT: &str = "(snapshot)";
/// Not a parameter: the account.
const ACCOUNT: &str = "(account)";
/// Not a parameter: an empty last line.
const END: &str = "(end)";

/// The capacity that most strings need.
const USUAL_BYTES: usize = 256;

const HEAD: &[&str] = &["sp", "st", "se", RESOURCE];
const DELEGATION: &[&str] = &["skoid", "sktid", "skt", "ske", "sks", "skv"];
const HEADERS: &[&str] = &["rscc", "rscd", "rsce", "rscl", "rsct"];
const TABLE_RANGE: &[&str] = &["spk", "srk", "epk", "erk"];

pub(super) fn string_to_sign(sas: &Sas, target: &SasTarget<'_>) -> String {
    let resource = resource(sas, target);
    let snapshot = if matches!(sas.get("sr"), "bs" | "bv") {
        target.snapshot
    } else {
        ""
    };
    let line = |field| match field {
        RESOURCE => resource.as_str(),
        SNAPSHOT => snapshot,
        ACCOUNT => target.account,
        END => "",
        "srh" => sas.bound.headers.as_str(),
        "srq" => sas.bound.parameters.as_str(),
        field => sas.get(field),
    };
    let mut text = String::with_capacity(USUAL_BYTES);
    for (at, field) in layout(sas, target.service).into_iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(line(field));
    }
    text
}

/// Returns the fields of this SAS in signing order.
fn layout(sas: &Sas, service: Service) -> Vec<&'static str> {
    // The first form, without `sv`, has the shortest layout.
    let version = sas.version.unwrap_or(ApiVersion::V2009_07_17);
    match (sas.kind, service) {
        (SasKind::Account, _) => account(version),
        (SasKind::UserDelegation, Service::Blob) => delegation_blob(version),
        (SasKind::UserDelegation, _) => delegation_other(),
        (SasKind::Service, Service::Blob) => service_blob(version),
        (SasKind::Service, Service::Queue) => service_head(version),
        (SasKind::Service, Service::Table) => [&service_head(version), TABLE_RANGE].concat(),
    }
}

fn account(version: ApiVersion) -> Vec<&'static str> {
    let mut fields = vec![ACCOUNT, "sp", "ss", "srt", "st", "se", "sip", "spr", "sv"];
    if version >= ApiVersion::V2020_12_06 {
        fields.push("ses");
    }
    fields.push(END);
    fields
}

/// Returns the first fields, which blobs, queues and tables share.
fn service_head(version: ApiVersion) -> Vec<&'static str> {
    let mut fields = [HEAD, &["si"]].concat();
    if version >= ApiVersion::V2015_04_05 {
        fields.extend(["sip", "spr"]);
    }
    if version >= ApiVersion::V2012_02_12 {
        fields.push("sv");
    }
    fields
}

fn service_blob(version: ApiVersion) -> Vec<&'static str> {
    let mut fields = service_head(version);
    if version >= ApiVersion::V2018_11_09 {
        fields.extend(["sr", SNAPSHOT]);
    }
    if version >= ApiVersion::V2020_12_06 {
        fields.push("ses");
    }
    if version >= ApiVersion::V2013_08_15 {
        fields.extend(HEADERS);
    }
    fields
}

fn delegation_blob(version: ApiVersion) -> Vec<&'static str> {
    let mut fields = [HEAD, DELEGATION].concat();
    if version >= ApiVersion::V2020_02_10 {
        fields.extend(["saoid", "suoid", "scid"]);
    }
    if version >= ApiVersion::V2025_07_05 {
        fields.extend(["skdutid", "sduoid"]);
    }
    fields.extend(["sip", "spr", "sv", "sr", SNAPSHOT]);
    if version >= ApiVersion::V2020_12_06 {
        fields.push("ses");
    }
    if version >= ApiVersion::V2026_04_06 {
        fields.extend(["srh", "srq"]);
    }
    fields.extend(HEADERS);
    fields
}

/// Returns the fields for queues and tables, which support user delegation only in the last layout.
fn delegation_other() -> Vec<&'static str> {
    [HEAD, DELEGATION, &["skdutid", "sduoid", "sip", "spr", "sv"]].concat()
}

/// Returns `/blob/account/container/blob`; without the service before 2015-02-21.
fn resource(sas: &Sas, target: &SasTarget<'_>) -> String {
    let mut path = String::new();
    if sas
        .version
        .is_some_and(|version| version >= ApiVersion::V2015_02_21)
    {
        path.extend(["/", target.service.as_str()]);
    }
    path.extend(["/", target.account, "/"]);
    match target.service {
        Service::Table => path.push_str(&target.name.to_lowercase()),
        _ => path.push_str(target.name),
    }
    let blob = target.blob.unwrap_or("");
    let signed = match sas.get("sr") {
        "c" => "",
        "d" => directory(blob, sas.get("sdd")),
        _ => blob,
    };
    if !signed.is_empty() {
        path.extend(["/", signed]);
    }
    path
}

/// Returns the first `depth` segments of a blob's name: the signed directory.
fn directory<'a>(blob: &'a str, depth: &str) -> &'a str {
    let depth: usize = depth.parse().unwrap_or(0);
    let Some(last) = depth.checked_sub(1) else {
        return "";
    };
    match blob.match_indices('/').nth(last) {
        Some((at, _)) => &blob[..at],
        None => blob,
    }
}
