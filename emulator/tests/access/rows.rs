//! The rows of `fixtures/access.tsv`.

use smalt::Service;

const TABLE: &str = include_str!("../../../fixtures/access.tsv");
/// Every permission letter of a service without a hierarchical namespace.
pub(super) const ALL: &str = "racwdxyltfupi";
/// Those of an account with one.
const ALL_OF_LAKE: &str = "racwdxyltfupimeo";

/// A line of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) service: Service,
    /// Whether it is for the Data Lake interface.
    pub(super) of_lake: bool,
    pub(super) operation: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) account: &'static str,
    pub(super) letters: Letters,
    pub(super) signed: Letters,
    pub(super) public: &'static str,
}

/// The permissions that a row requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Letters {
    /// No SAS suffices.
    NoSas,
    /// Only a bearer token suffices.
    Token,
    /// All letters of any one of these.
    OneOf(Vec<&'static str>),
}

/// A kind of SAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Account,
    /// For the container, queue or table.
    Whole,
    /// Like `Whole`, with its permissions in a stored policy.
    Policy,
    Directory,
    Blob,
    DelegatedWhole,
    DelegatedBlob,
}

impl Row {
    pub(super) fn all() -> impl Iterator<Item = Row> {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let columns: [&str; 8] = columns.try_into().unwrap();
            let [
                service,
                operation,
                request,
                headers,
                account,
                letters,
                signed,
                public,
            ] = columns;
            let (method, path) = request.split_once(' ').unwrap();
            let signed = if signed == "=" { letters } else { signed };
            Row {
                service: Service::ALL
                    .into_iter()
                    .find(|known| known.as_str() == service)
                    .unwrap_or(Service::Blob),
                of_lake: service == "dfs",
                operation,
                method,
                path,
                headers: headers
                    .split("; ")
                    .filter_map(|header| header.split_once(": "))
                    .collect(),
                account,
                letters: Letters::parse(letters),
                signed: Letters::parse(signed),
                public,
            }
        })
    }

    pub(super) fn is_of_service(&self) -> bool {
        self.path.starts_with("/?")
    }

    pub(super) fn is_of_blob(&self) -> bool {
        self.path.starts_with("/{c}/")
    }

    pub(super) fn renames(&self) -> bool {
        self.headers
            .iter()
            .any(|(name, _)| *name == "x-ms-rename-source")
    }

    /// Returns whether a SAS of this kind covers the row's resource.
    pub(super) fn is_reached_by(&self, kind: Kind) -> bool {
        match kind {
            Kind::Account => true,
            // A table SAS is bound to its table by `tn` and not by the path.
            _ if self.service == Service::Table => true,
            Kind::Whole | Kind::Policy | Kind::DelegatedWhole => !self.is_of_service(),
            // That of a path does not reach the source of its rename.
            Kind::Blob | Kind::DelegatedBlob => self.is_of_blob() && !self.renames(),
            Kind::Directory => {
                let lists = ["comp=list&prefix=d/", "recursive=true&directory=d"];
                self.is_of_blob() || lists.iter().any(|list| self.path.contains(list))
            }
        }
    }

    /// Returns every permission letter of its service.
    pub(super) fn all_letters(&self) -> &'static str {
        if self.of_lake { ALL_OF_LAKE } else { ALL }
    }

    pub(super) fn asked_of(&self, kind: Kind) -> &Letters {
        if kind == Kind::Account {
            &self.letters
        } else {
            &self.signed
        }
    }
}

impl Letters {
    pub(super) fn parse(text: &'static str) -> Self {
        match text {
            "-" => Letters::NoSas,
            "token" => Letters::Token,
            "any" => Letters::OneOf(ALL.split("").filter(|letter| !letter.is_empty()).collect()),
            _ => Letters::OneOf(text.split('/').collect()),
        }
    }

    /// Returns the smallest sets of permissions that suffice, and the largest that do not.
    pub(super) fn bounds(&self, all: &str) -> (Vec<String>, Vec<String>) {
        let Letters::OneOf(groups) = self else {
            return (Vec::new(), vec![all.to_owned()]);
        };
        let enough = groups.iter().map(|&group| group.to_owned()).collect();
        let mut short = vec![all.to_owned()];
        for group in groups {
            let without = |most: &String| group.chars().map(|l| most.replace(l, "")).collect();
            short = short.iter().flat_map::<Vec<String>, _>(without).collect();
        }
        (enough, short)
    }
}
