//! Reads a folder as a seed: each sub-folder is a container, and the files below it are its blobs.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use super::plan::{Kind, NewBlob, Plan, content_type, file};
use super::{Place, SeedError};
use crate::config::Account;
use crate::disk::{Disk, files_below, folders_in};

/// Name of the seed file in a folder.
pub const FILE_NAME: &str = "seed.toml";

/// Reads a folder. All containers belong to the default account.
pub(super) fn read(
    plan: &mut Plan,
    accounts: &BTreeMap<String, Account>,
    disk: &dyn Disk,
    folder: &Path,
) -> Result<(), SeedError> {
    let account = super::file::first(accounts);
    let io = |error| SeedError::Io {
        file: folder.to_owned(),
        error,
    };
    let mut containers = folders_in(folder).map_err(io)?;
    containers.retain(|name| !name.starts_with('.'));
    containers.sort();
    let loose = disk.list(folder).map_err(io)?;
    let loose = loose
        .iter()
        .find(|entry| !entry.name.starts_with('.') && !containers.contains(&entry.name));
    if let Some(loose) = loose {
        return Err(SeedError::Invalid {
            place: place(&folder.join(&loose.name)),
            what: format!(
                "the file is not in a container: move it into a sub-folder or use a {FILE_NAME}"
            ),
        });
    }
    for name in containers {
        let inside = folder.join(&name);
        plan.container(place(&inside), account, &name, Vec::new());
        blobs(plan, disk, (account, &name), &inside, &|_| false)?;
    }
    Ok(())
}

/// Adds the files below a folder as blobs of a container, except those for which `skip` returns
/// `true`.
pub(super) fn blobs(
    plan: &mut Plan,
    disk: &dyn Disk,
    (account, container): (&str, &str),
    folder: &Path,
    skip: &dyn Fn(&str) -> bool,
) -> Result<(), SeedError> {
    let mut files = files_below(folder).map_err(|error| SeedError::Io {
        file: folder.to_owned(),
        error,
    })?;
    files.sort();
    for path in files {
        let whole = folder.join(&path);
        let name = name(&path).ok_or_else(|| SeedError::Invalid {
            place: place(&whole),
            what: "the file's name is not Unicode".to_owned(),
        })?;
        let is_hidden = name.split('/').any(|part| part.starts_with('.'));
        if is_hidden || skip(&name) {
            continue;
        }
        let content_type = content_type(&name).map(str::to_owned);
        let headers = content_type.map(|value| ("x-ms-blob-content-type".to_owned(), value));
        let blob = NewBlob {
            account,
            container,
            name: &name,
            kind: Kind::Block,
            content: file(disk, whole.clone())?,
            headers: headers.into_iter().collect(),
        };
        plan.blob(place(&whole), blob);
    }
    Ok(())
}

/// Returns the blob name: the path with `/` on every system.
fn name(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    Some(parts?.join("/"))
}

fn place(file: &Path) -> Place {
    Place {
        file: file.to_owned(),
        line: None,
    }
}
