//! Tests of access control lists.

use super::*;

fn new(is_directory: bool) -> Posix {
    Posix::of_new(is_directory, None, UMASK_DEFAULT, None)
}

#[test]
fn new_paths_have_the_recorded_permissions() {
    assert_eq!(new(false).permissions(), "rw-r-----");
    assert_eq!(new(true).permissions(), "rwxr-x---");
    assert_eq!(new(true).acl_text(), "user::rwx,group::r-x,other::---");
}

#[test]
fn permissions_are_written_as_parsed() {
    for (given, shown) in [
        ("0777", Some("rwxrwxrwx")),
        ("1770", Some("rwxrwx--T")),
        ("rw-r-x-wT", Some("rw-r-x-wT")),
        ("rwxrwxrwt", Some("rwxrwxrwt")),
        ("rwxrwxrwxx", None),
        ("rwzr-x---", None),
        ("0888", None),
        ("7777", None),
        ("", None),
        ("ä", None),
    ] {
        let mode = parse_permissions(given).ok();
        let found = mode.map(|mode| {
            let mut posix = new(false);
            posix.set_mode(mode);
            posix.permissions()
        });
        assert_eq!(found.as_deref(), shown, "{given}");
    }
}

#[test]
fn lists_are_set_modified_and_removed() {
    let mut posix = new(true);
    let acl = |text, mode| parse_acl(text, mode).unwrap();
    let given = acl("user:bob:rwx", AclMode::Modify);
    posix.change(AclMode::Modify, &given).unwrap();
    let text = "user::rwx,user:bob:rwx,group::r-x,mask::rwx,other::---";
    assert_eq!(posix.acl_text(), text);
    assert_eq!(posix.permissions(), "rwxrwx---+");
    let gone = acl("mask:,user:bob", AclMode::Remove);
    posix.change(AclMode::Remove, &gone).unwrap();
    assert_eq!(posix.acl_text(), "user::rwx,group::r-x,other::---");
    let given = acl(
        "user::r--,group::r--,other::r--,default:user::rwx",
        AclMode::Set,
    );
    posix.change(AclMode::Set, &given).unwrap();
    assert_eq!(
        posix.acl_text(),
        "user::r--,group::r--,other::r--,\
         default:user::rwx,default:group::r--,default:other::r--"
    );
    let given = acl("default:user:bob:-w-,mask::--x", AclMode::Set);
    posix.change(AclMode::Set, &given).unwrap();
    assert_eq!(
        posix.acl_text(),
        "user::r--,group::r--,mask::--x,other::r--,\
         default:user::r--,default:user:bob:-w-,default:group::r--,default:mask::rw-,\
         default:other::r--"
    );
    assert_eq!(posix.permissions(), "r----xr--+");
    let given = acl("user::rwx", AclMode::Set);
    posix.change(AclMode::Set, &given).unwrap();
    assert_eq!(posix.acl_text(), "user::rwx,group::r--,other::r--");
    let gone = acl("user", AclMode::Remove);
    assert!(posix.change(AclMode::Remove, &gone).is_err());
}

#[test]
fn children_inherit_the_default_list() {
    let mut parent = new(true);
    let text = "default:user::rwx,default:group::r-x,default:other::--x,default:user:bob:rwx";
    let given = parse_acl(text, AclMode::Modify).unwrap();
    parent.change(AclMode::Modify, &given).unwrap();
    let file = Posix::of_new(false, None, UMASK_DEFAULT, Some(&parent));
    assert_eq!(
        file.acl_text(),
        "user::rw-,user:bob:rwx,group::r-x,mask::rw-,other::---"
    );
    let directory = Posix::of_new(true, None, UMASK_DEFAULT, Some(&parent));
    assert!(directory.acl_text().contains("default:user:bob:rwx"));
}

#[test]
fn users_have_what_the_first_entry_for_them_says() {
    let mut posix = new(true).created_by(Some("Ann"), &new(true));
    let text = "user::r-x,user:bob:rwx,group::rwx,mask::r-x,other::--x";
    let given = parse_acl(text, AclMode::Set).unwrap();
    posix.change(AclMode::Set, &given).unwrap();
    for (user, allowed) in [
        ("ann", READ | EXECUTE),
        ("BOB", READ | EXECUTE),
        ("eve", EXECUTE),
    ] {
        for bits in 0..8 {
            let expected = allowed & bits == bits;
            assert_eq!(posix.allows(user, bits), expected, "{user} {bits}");
        }
    }
}

#[test]
fn malformed_entries_are_rejected() {
    for text in [
        "user",
        "user:",
        "u::rwx",
        "mask:bob:rwx",
        "user::rwxx",
        "user:a:b:rwx",
    ] {
        assert!(parse_acl(text, AclMode::Set).is_err(), "{text}");
    }
}
