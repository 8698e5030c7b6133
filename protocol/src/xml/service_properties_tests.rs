//! Tests of the service properties: recorded shapes and errors.

use proptest::prelude::*;

use super::*;
use crate::error::ErrorCode;
use crate::xml::write::tests::body_of;

const OFF: &str = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";

fn read(inner: &str) -> Result<ServicePropertiesUpdate, StorageError> {
    let body = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
    ServicePropertiesUpdate::read(body.as_bytes(), Service::Blob)
}

fn after(inner: &str) -> ServiceProperties {
    let mut properties = ServiceProperties::default();
    read(inner).unwrap().apply(&mut properties);
    properties
}

fn shown(properties: &ServiceProperties, service: Service, version: ApiVersion) -> String {
    let body = body_of(properties.render(service, version));
    let (_, rest) = body.split_once("<StorageServiceProperties>").unwrap();
    rest.split_once("</StorageServiceProperties>")
        .unwrap()
        .0
        .to_owned()
}

#[test]
fn a_new_account_has_the_recorded_properties() {
    let head = format!(
        "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>\
         <Delete>false</Delete>{OFF}</Logging><HourMetrics><Version>1.0</Version>\
         <Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy>\
         <Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>\
         <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>{OFF}</MinuteMetrics>\
         <Cors />"
    );
    let properties = ServiceProperties::default();
    let v2020 = ApiVersion::V2020_10_02;
    assert_eq!(shown(&properties, Service::Queue, v2020), head);
    let blob = "<DeleteRetentionPolicy><Enabled>false</Enabled>\
                <AllowPermanentDelete>false</AllowPermanentDelete></DeleteRetentionPolicy>\
                <StaticWebsite><Enabled>false</Enabled></StaticWebsite>";
    assert_eq!(
        shown(&properties, Service::Blob, v2020),
        format!("{head}{blob}")
    );
    let older = shown(&properties, Service::Blob, ApiVersion::V2018_03_28);
    assert!(!older.contains("AllowPermanentDelete") && older.contains("<StaticWebsite>"));
}

#[test]
fn omitted_sections_keep_their_values() {
    let mut properties = after(
        "<StaticWebsite><Enabled>true</Enabled><IndexDocument>i.html</IndexDocument>\
         <ErrorDocument404Path>e/404.html</ErrorDocument404Path></StaticWebsite>\
         <DefaultServiceVersion>2018-03-28</DefaultServiceVersion>",
    );
    let retention = "<DeleteRetentionPolicy><Enabled>True</Enabled><Days>365</Days>\
                     </DeleteRetentionPolicy>";
    read(retention).unwrap().apply(&mut properties);
    let text = shown(&properties, Service::Blob, ApiVersion::V2020_02_10);
    assert!(text.ends_with(
        "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>365</Days>\
         <AllowPermanentDelete>false</AllowPermanentDelete></DeleteRetentionPolicy>\
         <StaticWebsite><Enabled>true</Enabled><IndexDocument>i.html</IndexDocument>\
         <ErrorDocument404Path>e/404.html</ErrorDocument404Path></StaticWebsite>\
         <DefaultServiceVersion>2018-03-28</DefaultServiceVersion>"
    ));
    assert_eq!(
        properties.hour_metrics,
        ServiceProperties::default().hour_metrics
    );
}

#[test]
fn cors_rules_are_shown_in_the_recorded_order() {
    let rule = "<Cors><CorsRule><AllowedOrigins>www.xyz.com,www.ab.com</AllowedOrigins>\
                <AllowedMethods>GET,PUT</AllowedMethods>\
                <AllowedHeaders>x-ms-meta-data*,x-ms-meta-xyz,*</AllowedHeaders>\
                <ExposedHeaders /><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>";
    let text = shown(&after(rule), Service::Blob, ApiVersion::V2018_03_28);
    assert!(text.contains(
        "<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods>\
         <AllowedOrigins>www.xyz.com,www.ab.com</AllowedOrigins>\
         <AllowedHeaders>x-ms-meta-xyz,*,x-ms-meta-data*</AllowedHeaders>\
         <ExposedHeaders /><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>"
    ));
    assert!(after(&format!("{rule}<Cors />")).cors.is_empty());
}

#[test]
fn errors_match_the_recordings() {
    let refused = |inner: &str| {
        let error = read(inner).unwrap_err();
        assert_eq!(
            (error.status(), error.code()),
            (400, ErrorCode::InvalidXmlDocument)
        );
        let elements = error.elements().iter().map(|(_, text)| text.clone());
        elements.collect::<Vec<_>>().join("|")
    };
    let policy = |inner: &str| format!("<DeleteRetentionPolicy>{inner}</DeleteRetentionPolicy>");
    let limits = "Retention days must be greater than 0 and less than or equal to 365 days.";
    let enabled = "<Enabled>true</Enabled>";
    assert_eq!(refused(&policy(enabled)), "1|75|Element is missing: Days.");
    assert_eq!(refused(&policy("")), "1|52|Element is missing: Enabled.");
    assert_eq!(
        refused(&policy(&format!("{enabled}<Days>0</Days>"))),
        format!("1|89|{limits}")
    );
    assert_eq!(
        refused(&policy(&format!("{enabled}<Days>366</Days>"))),
        format!("1|91|{limits}")
    );
    for inner in [
        "<Unknown />",
        "<Logging><Version>1.0</Version></Logging>",
        "<Cors><CorsRule /></Cors>",
        "<DeleteRetentionPolicy><Enabled>maybe</Enabled></DeleteRetentionPolicy>",
        "<DeleteRetentionPolicy><Enabled>false</Enabled><Days>5</Days></DeleteRetentionPolicy>",
        "<DefaultServiceVersion>yesterday</DefaultServiceVersion>",
    ] {
        refused(inner);
    }
    let of_queue = ServicePropertiesUpdate::read(
        b"<StorageServiceProperties><StaticWebsite /></StorageServiceProperties>",
        Service::Queue,
    );
    assert!(of_queue.is_err());
}

#[test]
fn an_empty_root_needs_its_end_tag() {
    let read = |body: &str| ServicePropertiesUpdate::read(body.as_bytes(), Service::Queue);
    let error = read("<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties />");
    let error = error.unwrap_err();
    let elements: Vec<_> = error
        .elements()
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    let reason =
        "Error parsing Xml content: 'None' is an invalid XmlNodeType. Line 2, position 29.";
    assert_eq!(elements, ["2", "29", reason]);
    assert!(read("<StorageServiceProperties></StorageServiceProperties>").is_ok());
}

#[test]
fn cors_rules_are_bounded() {
    let rule = |origin: &str| {
        format!(
            "<CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>GET\
             </AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>1\
             </MaxAgeInSeconds></CorsRule>"
        )
    };
    assert!(read(&format!("<Cors>{}</Cors>", rule("a").repeat(5))).is_ok());
    assert!(read(&format!("<Cors>{}</Cors>", rule("a").repeat(6))).is_err());
    assert!(read(&format!("<Cors>{}</Cors>", rule(&"a".repeat(3_000)))).is_err());
}

proptest! {
    #[test]
    fn text_is_parsed_or_rejected(inner in "(<Cors>|<Logging>|<Days>|</Cors>|[<>/a-z1 ]){0,20}") {
        let _ = read(&inner);
    }
}
