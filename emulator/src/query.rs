//! Query acceleration: runs SQL over the bytes of a blob for Query Blob Contents.
//!
//! Sources: "Query Blob Contents", "Query acceleration SQL language reference"; recordings for the
//! frames of the response; the tests of Microsoft's SDKs for the names of errors.
//!
//! ```text
//! document -> request ------------------> sql: a statement
//! blob's bytes -> csv | json: records -> evaluate -> writer: csv | json | arrow -> avro: frames
//! ```
//!
//! Everything here is pure: [`Runner`] takes the blob's bytes in pieces of any size and returns
//! frames. It buffers one record and one frame of results, both bounded, whatever the size of the
//! blob. [`meter`] counts the cost of each record and ends a query that costs too much.
//!
//! The language has its own parser, because general SQL parsers do not support
//! `BlobStorage[*].a[0]`, `IS MISSING` and `sys.split`, and what they support in addition would
//! have to be rejected piece by piece.

mod aggregate;
mod arrow;
mod avro;
mod csv;
mod evaluate;
mod functions;
mod json;
mod like;
mod meter;
mod moment;
mod output;
mod record;
mod request;
mod row;
mod runner;
mod split;
mod sql;
mod value;

pub use request::QueryRequest;
pub use runner::Runner;
