//! Operations of the Data Lake interface.

use smalt_protocol::Service;

use super::access::Access;
use super::when::always;
use super::{Entry, Verb};
use crate::ops::service;
use crate::pipeline::read;
use crate::target::Kind;

/// What every request of the interface meets, whatever its operation: all accounts have flat
/// namespaces. It is no operation that Azure documents, and not one of [`super::all`].
pub(super) const FLAT_NAMESPACE: &Entry = &Entry {
    service: Service::Blob,
    id: "DataLake_FlatNamespace",
    title: "Data Lake Storage on a flat namespace",
    verb: Verb::Any,
    on: Kind::Service,
    restype: "",
    comp: "",
    also_on: None,
    also_restype: None,
    when: always,
    access: Access::object("racwdlxymeop").with_any_scope(),
    run: read::<service::data_lake::RefuseFlatNamespace>(),
};
