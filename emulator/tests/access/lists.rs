//! Access control lists of a hierarchical account decide what users without a role may do.

use std::collections::BTreeSet;

use smalt::{AccountSettings, Config, OAuth, Role, RoleAssignment};

use super::world::{By, OBJECT_ID};
use crate::support::{BLOCK, Client, config};

const REFUSED: &str = "403 AuthorizationPermissionMismatch";

/// Returns an account whose tokens have no role, with `/lake/open/file` and `/lake/closed/file`.
/// The user may reach both directories, and change what `open` holds.
async fn world() -> Client {
    let world = Client::with(Config {
        oauth: OAuth::Basic,
        ..config()
    });
    let settings = AccountSettings {
        hierarchical_namespace: true,
        role_assignments: Some(BTreeSet::new()),
        ..AccountSettings::default()
    };
    world.change_settings(settings);
    world.create("lake").await;
    for path in ["/lake/open/file", "/lake/closed/file"] {
        world.put(path, "hello").await;
    }
    set(&world, "/lake/", "user::rwx,group::r-x,other::--x").await;
    let open = format!("user::rwx,user:{OBJECT_ID}:rwx,group::r-x,mask::rwx,other::--x");
    set(&world, "/lake/open", &open).await;
    set(&world, "/lake/closed", "user::rwx,group::r-x,other::--x").await;
    world
}

async fn set(world: &Client, path: &str, acl: &str) {
    let target = format!("{path}?action=setAccessControl");
    let headers = [("x-ms-acl", acl)];
    let answer = world.send("PATCH", &target, &headers, "").await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
}

/// Sends a request as the user and returns its outcome.
async fn ask(world: &Client, request: &str, headers: &[(&str, &str)], body: &str) -> String {
    let (method, target) = request.split_once(' ').unwrap();
    let token = world.token();
    let by = By::Token(&token);
    let answer = world.ask(by, method, target, headers, body).await;
    answer.outcome()
}

#[tokio::test]
async fn user_does_what_the_lists_permit() {
    let world = world().await;
    let rename = [("x-ms-rename-source", "/lake/open/new")];
    let theft = [("x-ms-rename-source", "/lake/closed/file")];
    for (request, headers, expected) in [
        ("GET /lake/open/file", &[][..], REFUSED),
        ("HEAD /lake/open/file?action=getStatus", &[], "200"),
        (
            "GET /lake?resource=filesystem&recursive=false",
            &[],
            REFUSED,
        ),
        (
            "GET /lake?resource=filesystem&recursive=false&directory=open",
            &[],
            "200",
        ),
        (
            "GET /lake?restype=container&comp=list&prefix=closed/f",
            &[],
            REFUSED,
        ),
        ("PUT /lake/open/new", &[BLOCK], "201"),
        ("PUT /lake/closed/new", &[BLOCK], REFUSED),
        ("PUT /lake/closed/new?comp=block&blockid=AAAA", &[], REFUSED),
        ("PUT /lake/new?resource=directory", &[], REFUSED),
        ("GET /lake/open/new", &[], "200"),
        ("PUT /lake/open/moved", &rename, "201"),
        ("PUT /lake/open/stolen", &theft, REFUSED),
        (
            "PATCH /lake/open/file?action=append&position=5",
            &[],
            REFUSED,
        ),
        (
            "HEAD /lake/open?action=checkAccess&fsAction=rw-",
            &[],
            "200",
        ),
        (
            "HEAD /lake/closed?action=checkAccess&fsAction=r--",
            &[],
            REFUSED,
        ),
        (
            "PATCH /lake/open?action=setAccessControl",
            &[("x-ms-permissions", "0777")],
            REFUSED,
        ),
        (
            "PATCH /lake/open/moved?action=setAccessControl",
            &[("x-ms-permissions", "0600")],
            "200",
        ),
        ("DELETE /lake/closed/file", &[], REFUSED),
        ("DELETE /lake/open/file?recursive=false", &[], "200"),
        ("DELETE /lake?restype=container", &[], REFUSED),
        ("PUT /other?restype=container", &[], REFUSED),
        ("GET /?comp=list", &[], REFUSED),
    ] {
        let has_body = headers == [BLOCK] || request.contains("comp=block");
        let body = if has_body { "mine" } else { "" };
        let outcome = ask(&world, request, headers, body).await;
        assert_eq!(outcome, expected, "{request}");
    }
    let target = "/lake/open/moved?action=getAccessControl";
    let owned = world.head(target).await;
    assert_eq!(owned.header("x-ms-owner"), OBJECT_ID);
    assert_eq!(owned.header("x-ms-group"), "$superuser");
}

/// The permission to read a file is not the one to write it.
#[tokio::test]
async fn reading_and_writing_are_permissions_of_their_own() {
    let world = world().await;
    let append = "PATCH /lake/open/file?action=append&position=5";
    for (bits, read, write) in [
        ("r--", "200", REFUSED),
        ("-w-", REFUSED, "202"),
        ("rw-", "200", "202"),
        ("--x", REFUSED, REFUSED),
    ] {
        let acl = format!("user::rwx,user:{OBJECT_ID}:{bits},group::---,mask::rwx,other::---");
        set(&world, "/lake/open/file", &acl).await;
        let got = ask(&world, "GET /lake/open/file", &[], "").await;
        assert_eq!(got, read, "{bits}");
        assert_eq!(ask(&world, append, &[], "x").await, write, "{bits}");
    }
}

/// Only a superuser chooses the owner, even of a new path.
#[tokio::test]
async fn user_gives_no_path_away() {
    let world = world().await;
    let gift = [("x-ms-owner", "another")];
    for request in [
        "PUT /lake/open/new?resource=file",
        "PATCH /lake/open?action=setAccessControl",
    ] {
        let outcome = ask(&world, request, &gift, "").await;
        assert_eq!(outcome, REFUSED, "{request}");
    }
}

/// A copy reads its source as the user, too.
#[tokio::test]
async fn user_copies_what_the_lists_let_them_read() {
    let world = world().await;
    let reads = format!("user::rwx,user:{OBJECT_ID}:r--,group::r--,mask::r--,other::---");
    set(&world, "/lake/open/file", &reads).await;
    let rights = "user::rwx,group::r-x,other::-wx";
    set(&world, "/lake/closed", rights).await;
    for (source, expected) in [("/lake/open/file", "202"), ("/lake/closed/file", REFUSED)] {
        let source = world.url_over("https", source);
        let headers = [("x-ms-copy-source", source.as_str())];
        let outcome = ask(&world, "PUT /lake/open/copy", &headers, "").await;
        assert_eq!(outcome, expected, "{source}");
    }
    let settings = AccountSettings {
        hierarchical_namespace: true,
        versioning: true,
        ..AccountSettings::default()
    };
    assert!(settings.validate().is_err(), "there are no versions");
}

/// Destination and source of a copy are judged by themselves: a role may permit the one, and lists
/// the other.
#[tokio::test]
async fn role_and_lists_share_a_copy() {
    for (role, container, copies) in [
        // Lists permit the read, the role the write.
        (
            Role::BlobDataContributor,
            "mine",
            ("/lake/open/file", "/mine/copy"),
        ),
        // The reverse.
        (
            Role::BlobDataReader,
            "mine",
            ("/mine/file", "/lake/open/copy"),
        ),
    ] {
        let world = world().await;
        let reads = format!("user::rwx,user:{OBJECT_ID}:r--,group::r--,mask::r--,other::---");
        set(&world, "/lake/open/file", &reads).await;
        world.create("mine").await;
        world.put("/mine/file", "hello").await;
        let assignment = RoleAssignment {
            principal: OBJECT_ID.parse().unwrap(),
            role,
            resource: Some(container.to_owned()),
        };
        let settings = AccountSettings {
            hierarchical_namespace: true,
            role_assignments: Some([assignment].into()),
            ..AccountSettings::default()
        };
        world.change_settings(settings);
        let closed = ("/lake/closed/file", copies.1);
        for ((source, destination), expected) in [(copies, "202"), (closed, REFUSED)] {
            let source = world.url_over("https", source);
            let headers = [("x-ms-copy-source", source.as_str())];
            let request = format!("PUT {destination}");
            let outcome = ask(&world, &request, &headers, "").await;
            assert_eq!(outcome, expected, "{role:?}: {source}");
        }
    }
}

#[tokio::test]
async fn sticky_directory_keeps_the_files_of_others() {
    let world = world().await;
    let target = "/lake/open?action=setAccessControl";
    let sticky = [("x-ms-permissions", "1777")];
    let answer = world.send("PATCH", target, &sticky, "").await;
    assert_eq!(answer.status, 200);
    let made = ask(&world, "PUT /lake/open/own", &[BLOCK], "mine").await;
    assert_eq!(made, "201");
    let outcome = ask(&world, "DELETE /lake/open/file", &[], "").await;
    assert_eq!(outcome, REFUSED);
    assert_eq!(ask(&world, "DELETE /lake/open/own", &[], "").await, "202");
}

#[tokio::test]
async fn user_with_a_role_is_not_checked() {
    let world = world().await;
    let assignment = RoleAssignment {
        principal: OBJECT_ID.parse().unwrap(),
        role: Role::BlobDataOwner,
        resource: None,
    };
    let settings = AccountSettings {
        hierarchical_namespace: true,
        role_assignments: Some([assignment].into()),
        ..AccountSettings::default()
    };
    world.change_settings(settings);
    for request in ["GET /lake/closed/file", "GET /?comp=list"] {
        assert_eq!(ask(&world, request, &[], "").await, "200", "{request}");
    }
}

/// A recursive change reaches the paths that the user owns; others are failures, and end it unless
/// it is told to go on.
#[tokio::test]
async fn recursive_change_counts_the_paths_of_others() {
    let world = world().await;
    world.put("/lake/open/another", "x").await;
    for path in ["/lake/open", "/lake/open/file"] {
        let target = format!("{path}?action=setAccessControl");
        let mine = [("x-ms-owner", OBJECT_ID)];
        assert_eq!(world.send("PATCH", &target, &mine, "").await.status, 200);
    }
    let token = world.token();
    let added = [("x-ms-acl", "user:guest:r-x")];
    for (force, files) in [("", 0), ("&forceFlag=false", 0), ("&forceFlag=true", 1)] {
        let target =
            format!("/lake/open?action=setAccessControlRecursive&mode=modify&maxRecords=9{force}");
        let by = By::Token(&token);
        let answer = world.ask(by, "PATCH", &target, &added, "").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        for part in [
            "\"directoriesSuccessful\":1",
            "\"failureCount\":1",
            "\"name\":\"open/another\"",
            "\"type\":\"FILE\"",
            &format!("\"filesSuccessful\":{files}"),
        ] {
            assert!(answer.text().contains(part), "{force}: {}", answer.text());
        }
    }
}
