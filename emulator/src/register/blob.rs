//! Operations of the Blob service.

use super::access::{Access, Anonymous, READ_BLOB, deletion, lease_breaking};
use super::entry::{Entry, Run, Verb, op};
use super::when::*;
use crate::ops::{blob, container, service};
use crate::pipeline::{read, write};
use crate::rules::events::Raises;
use crate::target::Kind;
use smalt_protocol::Service;

const BLOB: Service = Service::Blob;

/// Every permission letter; any one of them is enough.
const ANY: &str = "rwdlacupxtfiy";

/// The first entry that matches method, resource and query and whose predicate holds is used.
/// Recorded: *Restore Container* without a container in its path fails with a missing header first.
/// Microsoft's JavaScript SDK mistakes the account in an emulator's path for the container of a
/// batch.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    op(BLOB, "Service_SetProperties", "Set Blob Service Properties", Verb::Put, Kind::Service, ("service", "properties"), always, Access::service("w"), write::<service::properties::SetServiceProperties>()),
    op(BLOB, "Service_GetProperties", "Get Blob Service Properties", Verb::Get, Kind::Service, ("service", "properties"), always, Access::service("r"), read::<service::properties::GetServiceProperties>()),
    op(BLOB, "Service_GetStatistics", "Get Blob Service Stats", Verb::Get, Kind::Service, ("service", "stats"), always, Access::service("r"), read::<service::stats::GetServiceStats>()),
    op(BLOB, "Service_ListContainersSegment", "List Containers", Verb::Get, Kind::Service, ("", "list"), always, Access::service("l"), read::<service::list_containers::ListContainers>()),
    op(BLOB, "Service_GetUserDelegationKey", "Get User Delegation Key", Verb::Post, Kind::Service, ("service", "userdelegationkey"), always, Access::token(), read::<service::user_delegation_key::GetUserDelegationKey>()),
    op(BLOB, "Service_GetAccountInfo", "Get Account Information", Verb::GetOrHead, Kind::Service, ("account", "properties"), always, Access::service(ANY).with_any_scope(), read::<service::account_info::GetAccountInfo>()),
    op(BLOB, "Service_SubmitBatch", "Blob Batch", Verb::Post, Kind::Service, ("", "batch"), always, Access::service(ANY).with_any_scope(), Run::Batch).and_restype("container"),
    op(BLOB, "Service_FilterBlobs", "Find Blobs by Tags", Verb::Get, Kind::Service, ("", "blobs"), always, Access::object("f").with_service_sas(""), read::<service::find_blobs::FindBlobs>()),
    op(BLOB, "Container_Create", "Create Container", Verb::Put, Kind::Container, ("container", ""), always, Access::container("cw"), write::<container::create::CreateContainer>()),
    op(BLOB, "Container_GetProperties", "Get Container Properties", Verb::GetOrHead, Kind::Container, ("container", ""), always, Access::container("r").public(Anonymous::Container), read::<container::get_properties::GetContainerProperties>()),
    op(BLOB, "Container_GetMetadata", "Get Container Metadata", Verb::GetOrHead, Kind::Container, ("container", "metadata"), always, Access::container("r").public(Anonymous::Container), read::<container::get_metadata::GetContainerMetadata>()),
    op(BLOB, "Container_Delete", "Delete Container", Verb::Delete, Kind::Container, ("container", ""), always, Access::container("d"), write::<container::delete::DeleteContainer>()),
    op(BLOB, "Container_SetMetadata", "Set Container Metadata", Verb::Put, Kind::Container, ("container", "metadata"), always, Access::container("w"), write::<container::set_metadata::SetContainerMetadata>()),
    op(BLOB, "Container_GetAccessPolicy", "Get Container ACL", Verb::GetOrHead, Kind::Container, ("container", "acl"), always, Access::owner(), read::<container::get_access_policy::GetContainerAcl>()),
    op(BLOB, "Container_SetAccessPolicy", "Set Container ACL", Verb::Put, Kind::Container, ("container", "acl"), always, Access::owner(), write::<container::set_access_policy::SetContainerAcl>()),
    op(BLOB, "Container_Restore", "Restore Container", Verb::Put, Kind::Container, ("container", "undelete"), always, Access::container("cw"), write::<container::restore::RestoreContainer>()).and_on(Kind::Service),
    op(BLOB, "Container_Rename", "Rename Container", Verb::Put, Kind::Container, ("container", "rename"), always, Access::container("w"), write::<container::rename::RenameContainer>()),
    op(BLOB, "Container_SubmitBatch", "Blob Batch", Verb::Post, Kind::Container, ("container", "batch"), always, Access::container(ANY).with_any_scope().with_service_sas(ANY), Run::Batch),
    op(BLOB, "Container_FilterBlobs", "Find Blobs by Tags in Container", Verb::Get, Kind::Container, ("container", "blobs"), always, Access::container("f").with_service_sas("f"), read::<service::find_blobs::FindBlobs>()),
    op(BLOB, "Container_RenewLease", "Lease Container", Verb::Put, Kind::Container, ("container", "lease"), lease_renew, Access::container("w"), write::<container::lease::LeaseContainer>()),
    op(BLOB, "Container_ChangeLease", "Lease Container", Verb::Put, Kind::Container, ("container", "lease"), lease_change, Access::container("w"), write::<container::lease::LeaseContainer>()),
    op(BLOB, "Container_ReleaseLease", "Lease Container", Verb::Put, Kind::Container, ("container", "lease"), lease_release, Access::container("w"), write::<container::lease::LeaseContainer>()),
    op(BLOB, "Container_BreakLease", "Lease Container", Verb::Put, Kind::Container, ("container", "lease"), lease_break, Access::container("wd").refined(lease_breaking), write::<container::lease::LeaseContainer>()),
    op(BLOB, "Container_AcquireLease", "Lease Container", Verb::Put, Kind::Container, ("container", "lease"), always, Access::container("w"), write::<container::lease::LeaseContainer>()),
    op(BLOB, "Container_ListBlobHierarchySegment", "List Blobs", Verb::Get, Kind::Container, ("container", "list"), hierarchical, Access::container("l").with_service_sas("l").public(Anonymous::Container), read::<container::list_blobs::ListBlobs>()),
    op(BLOB, "Container_ListBlobFlatSegment", "List Blobs", Verb::Get, Kind::Container, ("container", "list"), always, Access::container("l").with_service_sas("l").public(Anonymous::Container), read::<container::list_blobs::ListBlobs>()),
    op(BLOB, "Container_GetAccountInfo", "Get Account Information", Verb::GetOrHead, Kind::Container, ("account", "properties"), always, Access::container(ANY).with_any_scope().with_service_sas(ANY), read::<service::account_info::GetAccountInfo>()),
    op(BLOB, "Blob_Download", "Get Blob", Verb::Get, Kind::Blob, ("", ""), always, READ_BLOB, read::<blob::get::GetBlob>()),
    op(BLOB, "Blob_GetProperties", "Get Blob Properties", Verb::Head, Kind::Blob, ("", ""), always, Access::object("r").public(Anonymous::Blob), read::<blob::get_properties::GetBlobProperties>()),
    op(BLOB, "Blob_GetMetadata", "Get Blob Metadata", Verb::GetOrHead, Kind::Blob, ("", "metadata"), always, Access::object("r").public(Anonymous::Blob), read::<blob::metadata::GetBlobMetadata>()),
    op(BLOB, "Blob_Delete", "Delete Blob", Verb::Delete, Kind::Blob, ("", ""), always, Access::object("d").refined(deletion), write::<blob::delete::DeleteBlob>()).raises(Raises::Deleted("DeleteBlob")),
    op(BLOB, "PageBlob_Create", "Put Blob (page)", Verb::Put, Kind::Blob, ("", ""), page_blob, Access::object("cw"), write::<blob::page::create::CreatePageBlob>()).raises(Raises::Created("PutBlob")),
    op(BLOB, "AppendBlob_Create", "Put Blob (append)", Verb::Put, Kind::Blob, ("", ""), append_blob, Access::object("cw"), write::<blob::append::create::CreateAppendBlob>()).raises(Raises::Created("PutBlob")),
    op(BLOB, "BlockBlob_Upload", "Put Blob", Verb::Put, Kind::Blob, ("", ""), block_blob, Access::object("cw"), write::<blob::put::PutBlob>()).raises(Raises::Created("PutBlob")),
    op(BLOB, "BlockBlob_PutBlobFromUrl", "Put Blob From URL", Verb::Put, Kind::Blob, ("", ""), put_from_url, Access::object("cw"), write::<blob::put_from_url::PutBlobFromUrl>()).raises(Raises::Created("PutBlob")),
    op(BLOB, "Blob_CopyFromURL", "Copy Blob From URL", Verb::Put, Kind::Blob, ("", ""), copy_sync, Access::object("cw"), write::<blob::copy_from_url::CopyBlobFromUrl>()).raises(Raises::Created("CopyBlob")),
    op(BLOB, "Blob_StartCopyFromURL", "Copy Blob", Verb::Put, Kind::Blob, ("", ""), from_url, Access::object("cw"), write::<blob::copy::CopyBlob>()).raises(Raises::Created("CopyBlob")),
    op(BLOB, "Blob_AbortCopyFromURL", "Abort Copy Blob", Verb::Put, Kind::Blob, ("", "copy"), always, Access::object("w"), write::<blob::abort_copy::AbortCopy>()),
    op(BLOB, "Blob_Undelete", "Undelete Blob", Verb::Put, Kind::Blob, ("", "undelete"), always, Access::object("w"), write::<blob::undelete::UndeleteBlob>()),
    op(BLOB, "Blob_SetExpiry", "Set Blob Expiry", Verb::Put, Kind::Blob, ("", "expiry"), always, Access::object("w"), write::<blob::expiry::SetBlobExpiry>()),
    op(BLOB, "PageBlob_Resize", "Set Blob Properties (resize)", Verb::Put, Kind::Blob, ("", "properties"), resize, Access::object("w"), write::<blob::set_properties::SetBlobProperties>()),
    op(BLOB, "PageBlob_UpdateSequenceNumber", "Set Blob Properties (sequence number)", Verb::Put, Kind::Blob, ("", "properties"), sequence_number, Access::object("w"), write::<blob::set_properties::SetBlobProperties>()),
    op(BLOB, "Blob_SetHTTPHeaders", "Set Blob Properties", Verb::Put, Kind::Blob, ("", "properties"), always, Access::object("w"), write::<blob::set_properties::SetBlobProperties>()),
    op(BLOB, "Blob_SetImmutabilityPolicy", "Set Blob Immutability Policy", Verb::Put, Kind::Blob, ("", "immutabilityPolicies"), always, Access::object("i"), write::<blob::immutability::SetImmutabilityPolicy>()),
    op(BLOB, "Blob_DeleteImmutabilityPolicy", "Delete Blob Immutability Policy", Verb::Delete, Kind::Blob, ("", "immutabilityPolicies"), always, Access::object("i"), write::<blob::immutability::DeleteImmutabilityPolicy>()),
    op(BLOB, "Blob_SetLegalHold", "Set Blob Legal Hold", Verb::Put, Kind::Blob, ("", "legalhold"), always, Access::object("i"), write::<blob::legal_hold::SetLegalHold>()),
    op(BLOB, "Blob_SetMetadata", "Set Blob Metadata", Verb::Put, Kind::Blob, ("", "metadata"), always, Access::object("w"), write::<blob::metadata::SetBlobMetadata>()),
    op(BLOB, "Blob_RenewLease", "Lease Blob", Verb::Put, Kind::Blob, ("", "lease"), lease_renew, Access::object("w"), write::<blob::lease::LeaseBlob>()),
    op(BLOB, "Blob_ChangeLease", "Lease Blob", Verb::Put, Kind::Blob, ("", "lease"), lease_change, Access::object("w"), write::<blob::lease::LeaseBlob>()),
    op(BLOB, "Blob_ReleaseLease", "Lease Blob", Verb::Put, Kind::Blob, ("", "lease"), lease_release, Access::object("w"), write::<blob::lease::LeaseBlob>()),
    op(BLOB, "Blob_BreakLease", "Lease Blob", Verb::Put, Kind::Blob, ("", "lease"), lease_break, Access::object("wd").refined(lease_breaking), write::<blob::lease::LeaseBlob>()),
    op(BLOB, "Blob_AcquireLease", "Lease Blob", Verb::Put, Kind::Blob, ("", "lease"), always, Access::object("w"), write::<blob::lease::LeaseBlob>()),
    op(BLOB, "Blob_CreateSnapshot", "Snapshot Blob", Verb::Put, Kind::Blob, ("", "snapshot"), always, Access::object("cw"), write::<blob::snapshot::SnapshotBlob>()),
    op(BLOB, "Blob_SetTier", "Set Blob Tier", Verb::Put, Kind::Blob, ("", "tier"), always, Access::object("w"), write::<blob::tier::SetBlobTier>()).raises(Raises::Tier("SetBlobTier")),
    op(BLOB, "Blob_GetAccountInfo", "Get Account Information", Verb::GetOrHead, Kind::Blob, ("account", "properties"), always, Access::object(ANY).with_any_scope(), read::<service::account_info::GetAccountInfo>()),
    op(BLOB, "BlockBlob_StageBlockFromURL", "Put Block From URL", Verb::Put, Kind::Blob, ("", "block"), from_url, Access::object("w"), write::<blob::put_block_from_url::PutBlockFromUrl>()),
    op(BLOB, "BlockBlob_StageBlock", "Put Block", Verb::Put, Kind::Blob, ("", "block"), always, Access::object("w"), write::<blob::put_block::PutBlock>()),
    op(BLOB, "BlockBlob_CommitBlockList", "Put Block List", Verb::Put, Kind::Blob, ("", "blocklist"), always, Access::object("w"), write::<blob::put_block_list::PutBlockList>()).raises(Raises::Created("PutBlockList")),
    op(BLOB, "BlockBlob_GetBlockList", "Get Block List", Verb::Get, Kind::Blob, ("", "blocklist"), always, Access::object("r").public(Anonymous::Blob), read::<blob::get_block_list::GetBlockList>()),
    op(BLOB, "PageBlob_UploadPagesFromURL", "Put Page From URL", Verb::Put, Kind::Blob, ("", "page"), from_url, Access::object("w"), write::<blob::page::from_url::PutPageFromUrl>()),
    op(BLOB, "PageBlob_ClearPages", "Put Page (clear)", Verb::Put, Kind::Blob, ("", "page"), page_clear, Access::object("w"), write::<blob::page::clear::ClearPages>()),
    op(BLOB, "PageBlob_UploadPages", "Put Page", Verb::Put, Kind::Blob, ("", "page"), always, Access::object("w"), write::<blob::page::write::PutPage>()),
    op(BLOB, "PageBlob_GetPageRangesDiff", "Get Page Ranges (difference)", Verb::Get, Kind::Blob, ("", "pagelist"), page_diff, Access::object("r").public(Anonymous::Blob), read::<blob::page::diff::GetPageRangesDiff>()),
    op(BLOB, "PageBlob_GetPageRanges", "Get Page Ranges", Verb::Get, Kind::Blob, ("", "pagelist"), always, Access::object("r").public(Anonymous::Blob), read::<blob::page::ranges::GetPageRanges>()),
    op(BLOB, "PageBlob_CopyIncremental", "Incremental Copy Blob", Verb::Put, Kind::Blob, ("", "incrementalcopy"), always, Access::object("cw"), write::<blob::page::incremental::IncrementalCopyBlob>()),
    op(BLOB, "AppendBlob_AppendBlockFromUrl", "Append Block From URL", Verb::Put, Kind::Blob, ("", "appendblock"), from_url, Access::object("aw"), write::<blob::append::block_from_url::AppendBlockFromUrl>()),
    op(BLOB, "AppendBlob_AppendBlock", "Append Block", Verb::Put, Kind::Blob, ("", "appendblock"), always, Access::object("aw"), write::<blob::append::block::AppendBlock>()),
    op(BLOB, "AppendBlob_Seal", "Append Blob Seal", Verb::Put, Kind::Blob, ("", "seal"), always, Access::object("w"), write::<blob::append::seal::SealAppendBlob>()),
    op(BLOB, "Blob_Query", "Query Blob Contents", Verb::Post, Kind::Blob, ("", "query"), always, Access::object("r"), read::<blob::query::QueryBlob>()),
    op(BLOB, "Blob_GetTags", "Get Blob Tags", Verb::Get, Kind::Blob, ("", "tags"), always, Access::object("t"), read::<blob::tags::GetBlobTags>()),
    op(BLOB, "Blob_SetTags", "Set Blob Tags", Verb::Put, Kind::Blob, ("", "tags"), always, Access::object("t"), write::<blob::tags::SetBlobTags>()),
    op(BLOB, "Preflight", "Preflight Blob Request", Verb::Options, Kind::Blob, ("", ""), always, Access::owner().public(Anonymous::Always), read::<service::preflight::Preflight>()),
];
