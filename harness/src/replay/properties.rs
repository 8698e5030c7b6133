//! The service properties of an account before a recording, from the recording's first Get Service
//! Properties.

use super::recording::{Interaction, Recording};
use crate::wire::url::Url;

/// The sections of the document, in order.
const SECTIONS: [&str; 8] = [
    "Logging",
    "HourMetrics",
    "MinuteMetrics",
    "Metrics",
    "Cors",
    "DeleteRetentionPolicy",
    "StaticWebsite",
    "DefaultServiceVersion",
];

/// Returns names and documents of the sections that the first answer contains and no earlier
/// request set.
pub fn before(recording: &Recording) -> Vec<(&'static str, String)> {
    let mut set = Vec::new();
    for interaction in &recording.interactions {
        let is_ok = interaction.response.status < 300;
        if !is_ok || !is_of_service(interaction) {
            continue;
        }
        match interaction.request.method.as_str() {
            "PUT" => set.extend(sections(&interaction.request.body).map(|(name, _)| name)),
            "GET" => {
                let shown = sections(&interaction.response.body);
                return shown.filter(|(name, _)| !set.contains(name)).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

fn is_of_service(interaction: &Interaction) -> bool {
    let Some(url) = Url::parse(&interaction.request.url) else {
        return false;
    };
    let is = |name, value: &str| url.param(name).as_deref() == Some(value);
    is("restype", "service") && is("comp", "properties")
}

/// Iterates over the sections of a document, as written.
fn sections(document: &[u8]) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let text = String::from_utf8_lossy(document).into_owned();
    SECTIONS.into_iter().filter_map(move |name| {
        let end = format!("</{name}>");
        let from = text.find(&format!("<{name}>"));
        let whole = from.and_then(|from| {
            let to = text[from..].find(&end)? + from + end.len();
            Some(text[from..to].to_owned())
        });
        let empty = || [format!("<{name} />"), format!("<{name}/>")];
        let is_empty = || empty().iter().any(|empty| text.contains(empty));
        let section = whole.or_else(|| is_empty().then(|| format!("<{name} />")))?;
        Some((name, section))
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn finds_the_earlier_properties() {
        let url = "https://account.blob.core.windows.net/?restype=service&comp=properties";
        let line = |method| (method, url.to_owned(), 200, vec![]);
        let mut recording = samples::blobs(&[line("PUT"), line("GET")]);
        assert_eq!(before(&recording), []);
        let [put, get] = &mut recording.interactions[..] else {
            panic!("two were made")
        };
        put.request.body = "<P><Logging>new</Logging></P>".into();
        get.response.body =
            "<P><Logging>new</Logging><HourMetrics>old</HourMetrics><Cors /></P>".into();
        let hour = ("HourMetrics", "<HourMetrics>old</HourMetrics>".to_owned());
        let cors = ("Cors", "<Cors />".to_owned());
        assert_eq!(before(&recording), [hour, cors]);
    }
}
