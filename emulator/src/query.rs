//! Query acceleration: SQL over the bytes of a blob, as Query Blob Contents answers it.
//!
//! Sources: "Query Blob Contents", "Query acceleration SQL language reference"; recordings for the
//! frames of the answer; the tests of Microsoft's SDKs for the names of errors.
//!
//! ```text
//! document -> request ------------------> sql: a statement
//! blob's bytes -> csv | json: records -> evaluate -> writer: csv | json | arrow -> avro: frames
//! ```
//!
//! Everything here is pure: [`Runner`] takes the blob's bytes in pieces of any size and gives back
//! frames. What it holds is one record and one frame of results, both bounded, whatever the size
//! of the blob. [`meter`] counts what each record costs and ends a query that costs too much.
//!
//! The language is read by a parser of its own: what sets it apart (`BlobStorage[*].a[0]`,
//! `IS MISSING`, `sys.split`) no general SQL parser takes, and what they take besides would have to
//! be refused piece by piece.

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
