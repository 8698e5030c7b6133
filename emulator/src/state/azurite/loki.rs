//! Reads a LokiJS database: collections of documents in one JSON file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AzuriteError;
use crate::disk::{Disk, read_small};

/// Version of the format: LokiJS's since 2017, written by every release of Azurite 3.
pub(super) const VERSION: f64 = 1.5;

#[derive(Default)]
pub(super) struct Database {
    file: PathBuf,
    collections: Vec<Collection>,
}

#[derive(Deserialize)]
struct File {
    collections: Vec<Collection>,
}

#[derive(Deserialize)]
struct Collection {
    name: String,
    data: Vec<Value>,
}

impl Database {
    /// Reads a database; `None` if the file does not exist.
    pub(super) fn read(disk: &dyn Disk, file: &Path) -> Result<Option<Self>, AzuriteError> {
        let read = read_small(disk, file).map_err(|error| AzuriteError::Io {
            file: file.to_owned(),
            error,
        });
        let Some(bytes) = read? else {
            return Ok(None);
        };
        let shape = |error: serde_json::Error| AzuriteError::Shape {
            file: file.to_owned(),
            what: error.to_string(),
        };
        let whole: Value = serde_json::from_slice(&bytes).map_err(shape)?;
        let version = &whole["databaseVersion"];
        if version.as_f64() != Some(VERSION) {
            return Err(AzuriteError::Version {
                file: file.to_owned(),
                found: match version {
                    Value::Null => "unknown".to_owned(),
                    known => known.to_string(),
                },
            });
        }
        let File { collections } = serde_json::from_value(whole).map_err(shape)?;
        Ok(Some(Database {
            file: file.to_owned(),
            collections,
        }))
    }

    /// Creates the error for invalid data in this database.
    pub(super) fn shape(&self, what: impl std::fmt::Display) -> AzuriteError {
        AzuriteError::Shape {
            file: self.file.clone(),
            what: what.to_string(),
        }
    }

    /// Removes and returns the documents of a collection; empty if there is no such collection.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Vec<T>, AzuriteError> {
        let found = self.collections.iter().position(|known| known.name == name);
        let Some(place) = found else {
            return Ok(Vec::new());
        };
        let data = self.collections.swap_remove(place).data;
        let mut documents = Vec::with_capacity(data.len());
        for (number, document) in data.into_iter().enumerate() {
            let read = serde_json::from_value(document);
            documents.push(
                read.map_err(|error| self.shape(format!("document {number} of {name}: {error}")))?,
            );
        }
        Ok(documents)
    }

    /// Rejects unknown collections: those that were not taken.
    pub(super) fn end(&self) -> Result<(), AzuriteError> {
        match self.collections.first() {
            Some(unknown) => Err(self.shape(format!("unknown collection {}", unknown.name))),
            None => Ok(()),
        }
    }
}
