//! The house rules, checked by reading the tree: which crate may depend on which, which file may
//! use which names, how long things may be, and what each file's module comment says.
//!
//! Each rule is one test here. The code that measures is in a module of its own, with tests that
//! plant a violation and require that it is found. An exemption names its file and its reason, and
//! one that is no longer needed is a finding too.
//!
//! `cargo test -p smalt-harness --test tidy -- --nocapture` also prints the sizes.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/failpoints.rs"]
mod failpoints;
#[path = "tidy/finding.rs"]
mod finding;
#[path = "tidy/growth.rs"]
mod growth;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/map.rs"]
mod map;
#[path = "tidy/marks.rs"]
mod marks;
#[path = "tidy/places.rs"]
mod places;
#[path = "tidy/planted.rs"]
mod planted;
#[path = "tidy/register.rs"]
mod register;
#[path = "tidy/requirements.rs"]
mod requirements;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/sleeps.rs"]
mod sleeps;
#[path = "tidy/tree.rs"]
mod tree;

use finding::hold;
use tree::Tree;

#[test]
fn the_tree_is_read() {
    let tree = Tree::get();
    assert!(tree.sources.len() > 300, "{}", tree.sources.len());
    assert!(tree.documents.iter().any(|d| d.path == "deny.toml"));
}

#[test]
fn crates_depend_downwards() {
    hold(
        "sweeper, listener -> worker -> sleeve -> protocol; emulator -> protocol; harness -> all",
        manifests::directions(&Tree::get().manifests()),
    );
}

#[test]
fn libraries_stay_in_their_crates() {
    hold(
        "only certain crates may depend on Azure's SDK, sled and the runtimes",
        manifests::libraries(&Tree::get().manifests()),
    );
}

#[test]
fn sled_is_pinned() {
    hold(
        "the root manifest must pin sled (docs/adr/0002)",
        manifests::pins(&Tree::get().manifests()),
    );
}

#[test]
fn restricted_names_occur_in_one_place() {
    hold(
        "each crate uses hyper, sled, files, time and randomness only in certain files",
        places::judge(&Tree::get().sources, places::PLACES),
    );
}

#[test]
fn files_functions_and_lines_are_short() {
    let sources = &Tree::get().sources;
    println!("{}", sizes::report(sources));
    hold(
        "files have at most 500 lines, functions 70 lines, lines 100 columns",
        sizes::judge(sources, sizes::EXEMPT),
    );
}

#[test]
fn imports_run_downwards() {
    hold(
        "at most three files of a crate may import each other in a loop",
        circles::judge(&Tree::get().sources, circles::LARGEST),
    );
}

#[test]
fn packages_stay_within_their_line_limits() {
    hold(
        "each package stays within its limit in LINES",
        growth::judge(&Tree::get().sources, growth::LINES, growth::TOTAL),
    );
}

#[test]
fn the_code_map_matches_the_tree() {
    hold(
        "ARCHITECTURE.md must name the existing modules and prefixes of keys",
        map::judge(Tree::get()),
    );
}

#[test]
fn the_model_is_small() {
    hold(
        "the rules of the model must stay within MODEL_LINES_MAX",
        sizes::model(&Tree::get().sources),
    );
}

#[test]
fn every_file_opens_with_a_module_comment() {
    hold(
        "every file must open with `//!`",
        marks::without_opening(&Tree::get().sources),
    );
}

#[test]
fn every_operation_is_registered_and_shows_an_example() {
    hold(
        "each operation needs a line in the register and an exchange in its file's header",
        register::judge(&Tree::get().sources),
    );
}

#[test]
fn every_failpoint_is_visited() {
    hold(
        "POINTS must list each step at which the store can be told to die",
        failpoints::judge(&Tree::get().sources),
    );
}

#[test]
fn planted_bugs_can_be_put_into_the_tree() {
    hold(
        "each text that a bug of fixtures/planted replaces must occur once in its file",
        planted::patches(&Tree::get().sources),
    );
}

#[test]
fn planted_bugs_are_in_the_table() {
    hold(
        "docs/planted.md must have a row for every planted bug; run ci/planted.sh --markdown",
        planted::table(
            Tree::get().document("docs/planted.md"),
            smalt_planted::bugs().map(|(_, bug)| bug.id.as_str()),
        ),
    );
}

#[test]
fn no_product_mentions_planted_bugs() {
    hold(
        "products must not mention planted bugs, which belong in fixtures/planted",
        planted::products(Tree::get()),
    );
}

#[test]
fn tests_do_not_sleep() {
    hold(
        "tests may sleep only on tokio's paused clock",
        sleeps::judge(&Tree::get().sources, sleeps::EXEMPT),
    );
}

#[test]
fn the_tree_has_no_private_paths_or_notes() {
    hold(
        "no paths of one person's machine, and no note of open work without an issue",
        marks::foreign_words(Tree::get()),
    );
}

#[test]
fn the_readme_is_short_and_its_figures_are_measured() {
    let tree = Tree::get();
    hold(
        "the README must be short, and its figures those of docs/speed.md",
        documents::readme(tree.document("README.md"), tree.document("docs/speed.md")),
    );
}

#[test]
fn documents_name_only_files_that_exist() {
    hold(
        "every link and every `bash` command of a document must refer to a file",
        documents::names(Tree::get()),
    );
}

#[test]
fn every_requirement_has_its_proof() {
    let tree = Tree::get();
    hold(
        "each row of docs/requirements.md must name a place and a proof that exist, or say `open:`",
        requirements::judge(tree.document("docs/requirements.md"), &tree.sources),
    );
}
