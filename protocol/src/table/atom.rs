//! Atom of tables and entities, for versions before 2015-12-11.

pub(crate) mod read;
pub(crate) mod write;

/// The XML namespace of entries and feeds.
const ATOM: &str = "http://www.w3.org/2005/Atom";
/// The XML namespace of properties.
const DATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices";
/// The XML namespace of types and tags.
const METADATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
const SCHEME: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme";
