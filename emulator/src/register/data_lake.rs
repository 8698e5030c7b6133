//! Operations of the Data Lake interface.

use smalt_protocol::Service;

use super::access::Access;
use super::entry::{Entry, Verb, op};
use super::when::always;
use crate::ops::service;
use crate::pipeline::read;
use crate::target::Kind;

/// What every request of the interface meets, whatever its operation: all accounts have flat
/// namespaces. It is no operation that Azure documents, and not one of [`super::all`].
#[rustfmt::skip]
pub(super) const FLAT_NAMESPACE: &Entry = &op(
    Service::Blob, "DataLake_FlatNamespace", "Data Lake Storage on a flat namespace", Verb::Any,
    Kind::Service, ("", ""), always, Access::object("racwdlxymeop").with_any_scope(),
    read::<service::data_lake::RefuseFlatNamespace>(),
);
