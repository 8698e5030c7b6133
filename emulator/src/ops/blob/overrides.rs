//! Response headers that a shared access signature sets: `rscc`, `rscd`, `rsce`, `rscl`, `rsct`.
//!
//! Source: "Create a service SAS", "Specify query parameters to override response headers". They
//! apply only to calls with a shared access signature, which covers them.

use crate::auth::Identity;
use crate::call::Call;
use crate::reply::Reply;

const PARAMETERS: [(&str, &str); 5] = [
    ("rscc", "cache-control"),
    ("rscd", "content-disposition"),
    ("rsce", "content-encoding"),
    ("rscl", "content-language"),
    ("rsct", "content-type"),
];

/// Headers that override those of the blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides(Vec<(&'static str, String)>);

impl Overrides {
    /// Parses the overrides of a call; a call without a signature has none.
    pub fn of(call: &Call) -> Self {
        if !matches!(call.identity, Identity::Sas(_)) {
            return Overrides::default();
        }
        let given = PARAMETERS.into_iter().filter_map(|(parameter, header)| {
            let value = call.query(parameter)?;
            Some((header, value.to_owned()))
        });
        Overrides(given.collect())
    }

    /// Replaces the headers in a reply.
    pub fn lay_over(self, reply: &mut Reply) {
        for (header, value) in self.0 {
            reply.set(header, value);
        }
    }
}
