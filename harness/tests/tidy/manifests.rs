//! Checks the dependencies in the manifests.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::finding::Finding;

/// A manifest, and its text to find lines in.
pub(crate) struct Manifest {
    path: String,
    text: String,
    pub(crate) table: Table,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) is_for_tests: bool,
    pub(crate) is_optional: bool,
}

/// Each of the project's packages and the packages of the project that it may depend on, including
/// its tests: the workers' tests do without the emulator.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("smalt-protocol", &[]),
    ("smalt-planted", &[]),
    ("smalt", &["smalt-protocol"]),
    ("smalt-model", &["smalt-protocol"]),
    ("smalt-sleeve", &["smalt-protocol"]),
    // Nothing links to it: it is loaded into children of the crash test (docs/adr/0014).
    ("smalt-shim", &[]),
    // Outside of the workspace: nothing links to it.
    ("smalt-fuzz", &["smalt-harness"]),
    ("smalt-worker", &["smalt-protocol", "smalt-sleeve"]),
    (
        "smalt-sweeper",
        &["smalt-protocol", "smalt-sleeve", "smalt-worker"],
    ),
    (
        "smalt-listener",
        &["smalt-protocol", "smalt-sleeve", "smalt-worker"],
    ),
    (
        "smalt-harness",
        &[
            "smalt-protocol",
            "smalt-planted",
            "smalt-model",
            "smalt",
            "smalt-sleeve",
            "smalt-worker",
            "smalt-sweeper",
            "smalt-listener",
        ],
    ),
];

/// Runtimes and sockets, which `protocol` must not use, so that any crate can depend on it.
const NOT_IN_PROTOCOL: &[&str] = &[
    "tokio",
    "hyper",
    "hyper-util",
    "futures-util",
    "async-trait",
    "http-body",
    "getrandom",
    "sled",
    "tokio-rustls",
    "rustls",
];

/// The pinned version of docs/adr/0002.
const SLED: &str = "=0.34.7";

impl Manifest {
    /// Parses a manifest; an unreadable one has no content and no name.
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        Manifest {
            path: path.to_owned(),
            text: text.to_owned(),
            table: text.parse().unwrap_or_default(),
        }
    }

    pub(crate) fn package(&self) -> Option<&str> {
        self.table.get("package")?.get("name")?.as_str()
    }

    /// Returns all dependencies, for every platform, including those of build scripts.
    pub(crate) fn dependencies(&self) -> Vec<Dependency> {
        let platforms = self.table.get("target").and_then(Value::as_table);
        let platforms = platforms.into_iter().flat_map(|t| t.values());
        platforms
            .filter_map(Value::as_table)
            .chain([&self.table])
            .flat_map(of_table)
            .collect()
    }

    /// Returns the features that enable this optional dependency.
    pub(crate) fn features_with(&self, dependency: &str) -> Vec<&str> {
        let starts = [format!("dep:{dependency}"), format!("{dependency}/")];
        let brings = |entry: &Value| {
            let entry = entry.as_str().unwrap_or_default();
            entry == starts[0] || entry.starts_with(&starts[1])
        };
        let features = self.table.get("features").and_then(Value::as_table);
        features
            .into_iter()
            .flatten()
            .filter(|(_, entries)| entries.as_array().is_some_and(|e| e.iter().any(brings)))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    pub(crate) fn finding(&self, about: &str, what: String) -> Finding {
        let names = |line: &str| {
            let rest = line.strip_prefix(about);
            rest.is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        };
        let line = self.text.lines().position(names).map_or(0, |at| at + 1);
        Finding::new(&self.path, line, what)
    }
}

fn of_table(table: &Table) -> impl Iterator<Item = Dependency> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .into_iter()
        .filter_map(|kind| Some((kind, table.get(kind)?.as_table()?)))
        .flat_map(|(kind, entries)| {
            entries.iter().map(move |(key, value)| Dependency {
                // A renamed dependency counts under its original name.
                name: value
                    .get("package")
                    .and_then(Value::as_str)
                    .unwrap_or(key)
                    .to_owned(),
                is_for_tests: kind == "dev-dependencies",
                is_optional: value.get("optional").and_then(Value::as_bool) == Some(true),
            })
        })
}

/// Returns dependencies that violate the layers, and packages that have no layer.
pub(crate) fn directions(manifests: &[Manifest]) -> Vec<Finding> {
    let ours: BTreeSet<_> = manifests.iter().filter_map(Manifest::package).collect();
    let mut findings = Vec::new();
    for (package, manifest) in packages(manifests) {
        let Some((_, may_see)) = MAY_SEE.iter().find(|(name, _)| *name == package) else {
            findings.push(manifest.finding("name", format!("{package} is not in MAY_SEE")));
            continue;
        };
        for dependency in manifest.dependencies() {
            let name = dependency.name.as_str();
            if ours.contains(name) && !may_see.contains(&name) {
                findings.push(manifest.finding(name, format!("{package} cannot use {name}")));
            }
        }
    }
    let absent = MAY_SEE.iter().filter(|(name, _)| !ours.contains(name));
    findings.extend(absent.map(|(name, _)| Finding::new("Cargo.toml", 0, format!("no {name}"))));
    findings
}

/// Returns libraries in packages that must not use them.
pub(crate) fn libraries(manifests: &[Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (package, manifest) in packages(manifests) {
        for dependency in manifest.dependencies() {
            if let Some(why) = refusal(package, manifest, &dependency) {
                findings.push(manifest.finding(&dependency.name, why));
            }
        }
    }
    findings
}

fn refusal(package: &str, manifest: &Manifest, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    if package == "smalt-protocol" && NOT_IN_PROTOCOL.contains(&name) {
        return Some(format!("protocol may not depend on {name}"));
    }
    if name == "sled" && package != "smalt" {
        return Some("only the emulator's store may use sled".to_owned());
    }
    if name == "libc" && package != "smalt-shim" {
        return Some("only the shim may call the C library directly".to_owned());
    }
    if !name.starts_with("azure_") {
        return None;
    }
    match package {
        "smalt-sleeve" | "smalt-harness" => None,
        "smalt" if dependency.is_for_tests => None,
        "smalt" if dependency.is_optional && manifest.features_with(name) == ["sdk"] => None,
        "smalt" => Some(format!("{name} is allowed only behind the feature `sdk`")),
        _ => Some(format!("{name} is allowed only behind the sleeve's port")),
    }
}

/// Returns missing pins of the root manifest.
pub(crate) fn pins(manifests: &[Manifest]) -> Vec<Finding> {
    let Some(root) = manifests.iter().find(|m| m.table.contains_key("workspace")) else {
        return vec![Finding::new("Cargo.toml", 0, "has no workspace")];
    };
    let version = root
        .table
        .get("workspace")
        .and_then(|w| w.get("dependencies")?.get("sled"))
        .and_then(|sled| sled.as_str().or_else(|| sled.get("version")?.as_str()));
    let mut findings = Vec::new();
    if version != Some(SLED) {
        findings.push(root.finding("sled", format!("sled is {version:?}, not {SLED}")));
    }
    for manifest in manifests.iter().filter(|m| !std::ptr::eq(*m, root)) {
        for dependency in manifest.own_versions() {
            if dependency == "sled" {
                findings.push(manifest.finding("sled", "the workspace must pin sled".to_owned()));
            }
        }
    }
    findings
}

impl Manifest {
    /// Returns dependencies with a version of their own instead of the workspace's.
    fn own_versions(&self) -> impl Iterator<Item = &str> {
        ["dependencies", "dev-dependencies", "build-dependencies"]
            .into_iter()
            .filter_map(|kind| self.table.get(kind)?.as_table())
            .flatten()
            .filter(|(_, value)| value.get("workspace").is_none())
            .map(|(name, _)| name.as_str())
    }
}

fn packages(manifests: &[Manifest]) -> impl Iterator<Item = (&str, &Manifest)> {
    manifests.iter().filter_map(|m| Some((m.package()?, m)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns manifests of every package; the named one has these lines.
    fn tree(package: &str, lines: &str) -> Vec<Manifest> {
        let of = |name: &str| {
            let lines = if name == package { lines } else { "" };
            let text = format!("[package]\nname = \"{name}\"\n{lines}");
            Manifest::parse(&format!("{name}/Cargo.toml"), &text)
        };
        MAY_SEE.iter().map(|(name, _)| of(name)).collect()
    }

    fn told(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_upward_dependency_is_found_in_every_section() {
        for section in [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(unix)'.dependencies",
        ] {
            let lines = format!("[{section}]\nsmalt-protocol.workspace = true\nsmalt = \"1\"\n");
            assert_eq!(
                told(&directions(&tree("smalt-sweeper", &lines))),
                ["smalt-sweeper/Cargo.toml:5: smalt-sweeper cannot use smalt"],
                "{section}"
            );
        }
        let renamed = "[dependencies]\nserver = { package = \"smalt\", path = \"../emulator\" }\n";
        assert_eq!(directions(&tree("smalt-listener", renamed)).len(), 1);
        let sleeve = "[dev-dependencies]\nsmalt-sleeve.workspace = true\n";
        assert_eq!(directions(&tree("smalt", sleeve)).len(), 1);
        assert_eq!(directions(&tree("smalt-harness", sleeve)), []);
    }

    #[test]
    fn a_package_without_a_layer_and_a_layer_without_a_package_are_found() {
        let mut manifests = tree("", "");
        manifests.push(Manifest::parse(
            "x/Cargo.toml",
            "[package]\nname = \"smalt-x\"\n",
        ));
        manifests.remove(0);
        assert_eq!(
            told(&directions(&manifests)),
            [
                "x/Cargo.toml:2: smalt-x is not in MAY_SEE",
                "Cargo.toml:0: no smalt-protocol"
            ]
        );
    }

    #[test]
    fn a_library_out_of_its_crate_is_found() {
        let found = |package, lines: &str| libraries(&tree(package, lines)).len();
        for (package, section, library, expected) in [
            ("smalt-protocol", "dependencies", "tokio", 1),
            ("smalt-sweeper", "dependencies", "sled", 1),
            ("smalt-sweeper", "dev-dependencies", "azure_core", 1),
            ("smalt-sleeve", "dependencies", "azure_core", 0),
            ("smalt", "dependencies", "azure_core", 1),
            ("smalt", "dev-dependencies", "azure_core", 0),
            ("smalt", "dependencies", "libc", 1),
            ("smalt-shim", "dependencies", "libc", 0),
        ] {
            let lines = format!("[{section}]\n{library} = \"1\"\n");
            assert_eq!(found(package, &lines), expected, "{package} {lines}");
        }
        let optional = |features: &str| {
            let dependency = "[dependencies]\nazure_core = { version = \"1\", optional = true }\n";
            found("smalt", &format!("{dependency}[features]\n{features}"))
        };
        assert_eq!(optional("sdk = [\"dep:azure_core\"]\n"), 0);
        assert_eq!(optional("server = [\"dep:azure_core\"]\n"), 1);
        assert_eq!(
            optional("sdk = [\"dep:azure_core\"]\nx = [\"azure_core/tokio\"]\n"),
            1
        );
    }

    #[test]
    fn a_loose_pin_is_found() {
        let root = |version: &str| {
            let text = format!("[workspace.dependencies]\nsled = {version}\n");
            [Manifest::parse("Cargo.toml", &text)]
        };
        assert_eq!(pins(&root("\"=0.34.7\"")), []);
        assert_eq!(pins(&root("{ version = \"=0.34.7\" }")), []);
        assert_eq!(
            told(&pins(&root("\"0.34\""))),
            ["Cargo.toml:2: sled is Some(\"0.34\"), not =0.34.7"]
        );
        assert_eq!(pins(&[]).len(), 1);
        let mut both = tree("smalt", "[dependencies]\nsled = \"0.34\"\n");
        both.extend(root("\"=0.34.7\""));
        assert_eq!(
            told(&pins(&both)),
            ["smalt/Cargo.toml:4: the workspace must pin sled"]
        );
    }
}
