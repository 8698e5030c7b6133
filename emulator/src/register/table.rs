//! Operations of the Table service.

use super::access::{Access, Anonymous};
use super::entry::{Entry, Run, Verb, op};
use super::when::*;
use crate::ops::{service, table};
use crate::pipeline::{read, write};
use crate::target::Kind;
use smalt_protocol::Service;

const TABLE: Service = Service::Table;

/// The first entry that matches method, resource and query and whose predicate holds is used.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    op(TABLE, "Service_SetProperties", "Set Table Service Properties", Verb::Put, Kind::Table, ("service", "properties"), table_service, Access::service("w"), write::<service::properties::SetServiceProperties>()),
    op(TABLE, "Service_GetProperties", "Get Table Service Properties", Verb::Get, Kind::Table, ("service", "properties"), table_service, Access::service("r"), read::<service::properties::GetServiceProperties>()),
    op(TABLE, "Service_GetStatistics", "Get Table Service Stats", Verb::Get, Kind::Table, ("service", "stats"), table_service, Access::service("r"), read::<service::stats::GetServiceStats>()),
    op(TABLE, "Table_Query", "Query Tables", Verb::Get, Kind::Table, ("", ""), tables_or_named, Access::container("l"), read::<table::list::QueryTables>()),
    op(TABLE, "Table_Create", "Create Table", Verb::Post, Kind::Table, ("", ""), tables, Access::container("cw"), write::<table::create::CreateTable>()),
    op(TABLE, "Table_Delete", "Delete Table", Verb::Delete, Kind::Table, ("", ""), table_by_name, Access::container("d"), write::<table::delete::DeleteTable>()),
    op(TABLE, "Table_QueryEntityWithPartitionAndRowKey", "Query Entities (one)", Verb::Get, Kind::Table, ("", ""), table_entity, Access::object("r"), read::<table::get::GetEntity>()),
    op(TABLE, "Table_QueryEntities", "Query Entities", Verb::Get, Kind::Table, ("", ""), entities, Access::object("r"), read::<table::query::QueryEntities>()),
    op(TABLE, "Table_UpdateEntity", "Update Entity", Verb::Put, Kind::Table, ("", ""), table_entity, Access::object("u"), write::<table::write::WriteEntity>()),
    op(TABLE, "Table_MergeEntity", "Merge Entity", Verb::Patch, Kind::Table, ("", ""), table_entity, Access::object("u"), write::<table::write::WriteEntity>()),
    op(TABLE, "Table_DeleteEntity", "Delete Entity", Verb::Delete, Kind::Table, ("", ""), table_entity, Access::object("d"), write::<table::write::WriteEntity>()),
    op(TABLE, "Table_SubmitTransaction", "Entity Group Transaction", Verb::Post, Kind::Table, ("", ""), table_batch, Access::object("raud"), Run::Transaction),
    op(TABLE, "Table_InsertEntity", "Insert Entity", Verb::Post, Kind::Table, ("", ""), entities, Access::object("a"), write::<table::write::WriteEntity>()),
    op(TABLE, "Table_GetAccessPolicy", "Get Table ACL", Verb::GetOrHead, Kind::Table, ("", "acl"), entities, Access::owner(), read::<table::acl::GetTableAcl>()),
    op(TABLE, "Table_SetAccessPolicy", "Set Table ACL", Verb::Put, Kind::Table, ("", "acl"), entities, Access::owner(), write::<table::acl::SetTableAcl>()),
    op(TABLE, "Preflight", "Preflight Table Request", Verb::Options, Kind::Table, ("", ""), always, Access::owner().public(Anonymous::Always), read::<service::preflight::Preflight>()),
];
