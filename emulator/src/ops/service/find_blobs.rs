//! Find Blobs by Tags, in an account or in one of its containers.
//!
//! Sources: "Find Blobs by Tags", "Find Blobs by Tags in Container". The response shows the tags
//! that the query names. The index is always current; production's lags behind.
//!
//! ```http
//! GET /devstoreaccount1/?comp=blobs&where=team%3D%27billing%27
//!
//! 200 OK
//!
//! <?xml version="1.0" encoding="utf-8"?><EnumerationResults ...><Where>team='billing'</Where>
//! <Blobs><Blob><Name>2026/11/21.json</Name><ContainerName>events</ContainerName><Tags>...
//! ```

mod search;

use smalt_protocol::xml::XmlWriter;
use smalt_protocol::xml::list_blobs::push_tags;
use smalt_protocol::{ApiVersion, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::{Read, Weight};
use crate::ops::listing::{check_include, includes};
use crate::ops::lookup::ContainerName;
use crate::ops::paging::{self, Paging};
use crate::reply::Reply;
use crate::rules::tag_query::TagQuery;
use crate::store::{Store, View};

use search::{Found, Page, Place, SEEN_MAX, Scope, Search};

/// Values of `include`. Deleted blobs are not in the index.
const INCLUDES: [(&str, ApiVersion); 3] = [
    ("none", ApiVersion::V2019_12_12),
    ("versions", ApiVersion::V2019_12_12),
    ("deleted", ApiVersion::V2019_12_12),
];
/// Before this version, the response has only the value of the queried tag, without its name. "Find
/// Blobs by Tags", response body.
const SHOWS_TAGS: ApiVersion = ApiVersion::V2020_04_08;

/// The Find Blobs by Tags operation.
pub struct FindBlobs {
    scope: Scope,
    /// The container of the address; `None` for the whole account.
    within: Option<ContainerName>,
    text: String,
    query: TagQuery,
    paging: Paging,
    start: Option<Place>,
    versions: bool,
}

impl Read for FindBlobs {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        check_include(call, &INCLUDES)?;
        let text = call.query("where").filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| StorageError::missing_query("where"))?;
        let query = TagQuery::parse(text)?;
        let within = match call.container() {
            "" => None,
            _ if query.container.is_some() => return Err(TagQuery::names_container_twice(text)),
            _ => Some(ContainerName::of(call)?),
        };
        let paging = Paging::of(call)?;
        let only = within.as_ref().map(|name| name.container.clone());
        Ok(FindBlobs {
            scope: Scope {
                account: call.account().to_owned(),
                container: only.or_else(|| query.container.clone()),
            },
            within,
            text: text.to_owned(),
            query,
            start: paging.marker.as_deref().map(Place::parse).transpose()?,
            paging,
            versions: includes(call, "versions"),
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        if let Some(container) = &self.within {
            container.find(view, now)?;
        }
        let search = Search {
            view,
            now,
            query: &self.query,
            most: self.paging.most,
            seen_most: SEEN_MAX,
            versions: self.versions,
        };
        search.page(&self.scope, self.start.as_ref())
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let mut xml = XmlWriter::new();
        let endpoint = call.service_endpoint();
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", &endpoint)]);
        xml.optional("Marker", self.paging.marker.as_deref());
        xml.element("Where", &self.text);
        let most = paging::max_results(call)?.map(|most| most.to_string());
        xml.optional("MaxResults", most.as_deref());
        if page.found.is_empty() {
            xml.empty("Blobs");
        } else {
            xml.open("Blobs");
            for found in &page.found {
                self.push(&mut xml, found, call);
            }
            xml.close("Blobs");
        }
        let next = page.next.map(|place| place.marker());
        xml.element("NextMarker", &next.unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::xml(200, xml.finish()))
    }
}

impl FindBlobs {
    fn push(&self, xml: &mut XmlWriter, found: &Found, call: &Call) {
        let mut tags = found.record.tags.clone();
        tags.retain(|(tag, _)| self.query.keys().any(|key| key == tag));
        xml.open("Blob");
        xml.name_element("Name", &found.blob);
        if let Some(version) = found.record.version_id.filter(|_| self.versions) {
            xml.element("VersionId", &version.iso_ticks());
            if !found.record.is_previous {
                xml.element("IsCurrentVersion", "true");
            }
        }
        xml.element("ContainerName", &found.container);
        if call.version >= SHOWS_TAGS {
            push_tags(xml, &tags);
        } else {
            let value = tags.first().map(|(_, value)| value.as_str());
            xml.element("TagValue", value.unwrap_or_default());
        }
        xml.close("Blob");
    }
}
