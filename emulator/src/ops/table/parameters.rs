//! Query parameters of reads.

use smalt_protocol::limits::TABLE_QUERY_RESULTS_MAX;
use smalt_protocol::table::continuation;
use smalt_protocol::table::filter::Filter;
use smalt_protocol::table::query::{Select, parse_top};
use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;
use crate::ops::table::range::KeyRange;

/// OData options that the service does not support. *Querying tables and entities*, supported query
/// options.
const UNSUPPORTED: [&str; 6] = [
    "$count",
    "$expand",
    "$inlinecount",
    "$orderby",
    "$skip",
    "$skiptoken",
];

/// Supported options. OData: none may be specified more than once.
const OPTIONS: [&str; 4] = ["$filter", "$format", "$select", "$top"];

/// Parses `$select`, if given.
///
/// # Errors
/// 400 `InvalidInput` for a malformed list of names.
pub fn select(call: &Call) -> Result<Option<Select>, StorageError> {
    call.query("$select").map(Select::parse).transpose()
}

/// Parses the page size: `$top`, at most 1,000.
///
/// # Errors
/// 400 `InvalidInput` for an invalid number.
pub fn top(call: &Call) -> Result<usize, StorageError> {
    let most = match call.query("$top") {
        Some(text) => parse_top(text)?,
        None => TABLE_QUERY_RESULTS_MAX,
    };
    Ok(most as usize)
}

/// Rejects unknown options and those that are given twice.
///
/// # Errors
/// 501 `NotImplemented`, 400 `InvalidInput`.
pub fn check_options(call: &Call) -> Result<(), StorageError> {
    if UNSUPPORTED.iter().any(|name| call.query(name).is_some()) {
        return Err(ErrorCode::NotImplemented.into());
    }
    let is = |given: &(String, String), name: &str| given.0.eq_ignore_ascii_case(name);
    let count = |name: &str| call.query.iter().filter(|given| is(given, name)).count();
    if OPTIONS.iter().any(|name| count(name) > 1) {
        return Err(ErrorCode::InvalidInput.into());
    }
    Ok(())
}

/// Parses `$filter`, if given.
///
/// # Errors
/// 400 `InvalidInput` for a malformed filter.
pub fn filter(call: &Call) -> Result<Option<Filter>, StorageError> {
    call.query("$filter").map(Filter::parse).transpose()
}

/// Parses where a page of entities begins: `NextPartitionKey` and, if given, `NextRowKey`.
///
/// # Errors
/// 400 `InvalidInput` for an unknown continuation token.
pub fn next_entity(call: &Call) -> Result<Option<KeyRange>, StorageError> {
    let token = |name| given(call, name).map(continuation::read).transpose();
    let row_key = token("NextRowKey")?;
    let partition_key = token("NextPartitionKey")?;
    Ok(partition_key.map(|key| KeyRange::starting(&key, row_key.as_deref())))
}

/// Parses the table name, in lower case, that a page begins with: `NextTableName`.
///
/// # Errors
/// 400 `InvalidInput` for an unknown continuation token.
pub fn next_table(call: &Call) -> Result<Option<String>, StorageError> {
    let position = given(call, "NextTableName").map(continuation::read_table);
    Ok(position.transpose()?.map(|position| position.key))
}

/// Returns a parameter, if it is given and not empty.
fn given<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.query(name).filter(|text| !text.is_empty())
}
