//! Operations of the Data Lake Storage interface.

use smalt_protocol::Service;

use super::access::Access;
use super::entry::{Entry, Verb, op};
use super::when::always;
use crate::ops::service;
use crate::pipeline::read;
use crate::target::Kind;

/// Handles every Data Lake Storage request, because all accounts have flat namespaces. Azure
/// documents no such operation, so it is not part of [`super::all`].
#[rustfmt::skip]
pub(super) const FLAT_NAMESPACE: &Entry = &op(
    Service::Blob, "DataLake_FlatNamespace", "Data Lake Storage on a flat namespace", Verb::Any,
    Kind::Service, ("", ""), always, Access::object("racwdlxymeop").with_any_scope(),
    read::<service::data_lake::RefuseFlatNamespace>(),
);
