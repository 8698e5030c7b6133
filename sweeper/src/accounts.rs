//! The accounts that a sweeper may use, by the names that documents and configuration give them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use smalt_sleeve::port::{BlobId, Storage};

use crate::destination::{self, SweptPlace};
use crate::state::{Container, Document, Status};
use crate::target::{self, Target};
use crate::uri;

/// Opens the account of a container URI with a SAS, as found in documents of version 1.
pub type OpenUri = Arc<dyn Fn(&str) -> Result<Arc<dyn Storage>, String> + Send + Sync>;

/// The accounts that a sweeper may use, by name.
#[derive(Clone, Default)]
pub struct Accounts {
    by_name: BTreeMap<String, Arc<dyn Storage>>,
    open_uri: Option<OpenUri>,
    opened: Arc<Mutex<BTreeMap<String, Arc<dyn Storage>>>>,
}

#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) container: String,
}

impl Accounts {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an account under a name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, storage: Arc<dyn Storage>) -> Self {
        self.by_name.insert(name.into(), storage);
        self
    }

    /// Adds a function that opens URIs with a SAS.
    #[must_use]
    pub fn with_open_uri(mut self, open: OpenUri) -> Self {
        self.open_uri = Some(open);
        self
    }

    /// Returns the account with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Storage>> {
        self.by_name.get(name)
    }

    /// Returns the name of the first account for which `is_it` is true.
    pub(crate) fn name_of(&self, is_it: impl Fn(&str) -> bool) -> Option<String> {
        let mut all = self.by_name.iter();
        let found = all.find(|(_, storage)| is_it(storage.account()));
        found.map(|(name, _)| name.clone())
    }

    /// Returns the account and container of an element of the state document.
    pub(crate) fn place(&self, element: &Container) -> Result<Place, String> {
        let container = element.container_name();
        if !destination::is_container_name(&container) {
            return Err(format!("`{container}` is not a container name"));
        }
        let storage = self.storage_of(element)?;
        Ok(Place { storage, container })
    }

    fn storage_of(&self, element: &Container) -> Result<Arc<dyn Storage>, String> {
        if let Some(name) = &element.credential {
            let missing = || format!("no account `{name}` is configured");
            return self.get(name).cloned().ok_or_else(missing);
        }
        let Some(text) = element.uri.as_deref().filter(|text| !text.is_empty()) else {
            let only = (self.by_name.len() == 1).then(|| self.by_name.values().next());
            return only
                .flatten()
                .or_else(|| self.get("default"))
                .cloned()
                .ok_or_else(|| "the element names neither uri nor credential".to_owned());
        };
        let parsed = uri::parse(text).ok_or("its `uri` is not the URI of a container")?;
        if parsed.sas.is_empty() {
            return self
                .by_name
                .values()
                .find(|s| destination::same_account(s.account(), &parsed.account))
                .cloned()
                .ok_or_else(|| format!("no account `{}` is configured", parsed.account));
        }
        self.open(text)
    }

    fn open(&self, text: &str) -> Result<Arc<dyn Storage>, String> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(storage) = opened.get(text) {
            return Ok(Arc::clone(storage));
        }
        let open = self
            .open_uri
            .as_ref()
            .ok_or("URIs with a SAS are not supported here")?;
        let storage = open(text).map_err(|error| smalt_sleeve::redact(&error))?;
        opened.insert(text.to_owned(), Arc::clone(&storage));
        Ok(storage)
    }

    /// Returns the account and blob of a target. A path uses the account that the document names
    /// for the container, or the default one; a URL uses whichever account contains it.
    pub(crate) fn locate(
        &self,
        document: &Document,
        target: &Target,
    ) -> Result<(Arc<dyn Storage>, BlobId), String> {
        let places = document
            .containers
            .iter()
            .filter_map(|e| self.place(e).ok());
        match target {
            Target::Url(url) => self
                .by_url(document, url)
                .ok_or_else(|| format!("no configured account contains {url}")),
            Target::Path(blob) => {
                let mut places = places.filter(|place| place.container == blob.container);
                let storage = places.next().map(|place| place.storage);
                let storage = storage.or_else(|| self.get("default").cloned());
                let storage = storage.ok_or("no account `default` is configured")?;
                Ok((storage, blob.clone()))
            }
        }
    }

    /// Finds the blob of a URL in the accounts of the configuration or the document.
    pub(crate) fn by_url(
        &self,
        document: &Document,
        url: &str,
    ) -> Option<(Arc<dyn Storage>, BlobId)> {
        let places = document
            .containers
            .iter()
            .filter_map(|e| self.place(e).ok());
        let named = self.by_name.values().cloned();
        let mut all = named.chain(places.map(|place| place.storage));
        all.find_map(|storage| {
            let blob = target::within(storage.as_ref(), url)?;
            Some((storage, blob))
        })
    }

    /// Returns every place that the document sweeps; dead blobs may not be moved there (DS5).
    pub(crate) fn swept(&self, document: &Document) -> Vec<SweptPlace> {
        document
            .containers
            .iter()
            .filter(|element| element.status != Status::Off)
            .filter_map(|element| {
                let place = self.place(element).ok()?;
                Some(SweptPlace {
                    account: place.storage.account().to_owned(),
                    container: place.container,
                    prefix: element.prefix.clone(),
                })
            })
            .collect()
    }
}
