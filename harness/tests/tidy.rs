//! The house rules, held by reading the tree: who may depend on whom, who may name what, how long
//! things are, what every file says of itself.
//!
//! Each rule is one test here. What measures is in a module of its own, with tests that plant a
//! violation and see it found. An exemption names its file and its reason, and one that is no
//! longer needed is a finding too.
//!
//! `cargo test -p smalt-harness --test tidy -- --nocapture` prints the sizes as well.

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
        "Azure's SDK, sled and the runtimes are known to the crates that stand for them",
        manifests::libraries(&Tree::get().manifests()),
    );
}

#[test]
fn sled_is_pinned() {
    hold(
        "the root manifest pins sled (docs/adr/0002)",
        manifests::pins(&Tree::get().manifests()),
    );
}

#[test]
fn what_is_special_lives_in_one_place() {
    hold(
        "hyper, sled, files, time and randomness are each named in one place of a crate",
        places::judge(&Tree::get().sources, places::PLACES),
    );
}

#[test]
fn files_functions_and_lines_are_short() {
    let sources = &Tree::get().sources;
    println!("{}", sizes::report(sources));
    hold(
        "files of 500 lines, functions of 70, lines of 100 columns at most",
        sizes::judge(sources, sizes::EXEMPT),
    );
}

#[test]
fn imports_run_downwards() {
    hold(
        "at most three files of a crate import each other in a loop",
        circles::judge(&Tree::get().sources, circles::LARGEST),
    );
}

#[test]
fn growth_is_on_purpose() {
    hold(
        "a package has no more lines than its row of LINES says",
        growth::judge(&Tree::get().sources, growth::LINES, growth::TOTAL),
    );
}

#[test]
fn the_map_is_that_of_the_tree() {
    hold(
        "ARCHITECTURE.md names the modules and the prefixes of keys that there are",
        map::judge(Tree::get()),
    );
}

#[test]
fn the_model_is_small() {
    hold(
        "the rules of the model are 1,500 lines of code at most",
        sizes::model(&Tree::get().sources),
    );
}

#[test]
fn every_file_says_what_it_is() {
    hold(
        "every file opens with `//!`",
        marks::without_opening(&Tree::get().sources),
    );
}

#[test]
fn every_operation_is_registered_and_shows_an_example() {
    hold(
        "an operation has a line in the register, and an exchange in its file's header",
        register::judge(&Tree::get().sources),
    );
}

#[test]
fn every_failpoint_is_visited() {
    hold(
        "a step at which the store can be told to die stands in the list that is visited",
        failpoints::judge(&Tree::get().sources),
    );
}

#[test]
fn exceptions_give_their_reason() {
    hold(
        "`ignore`, `allow` and `expect` say why",
        marks::without_reason(&Tree::get().sources),
    );
}

#[test]
fn planted_bugs_can_be_put_into_the_tree() {
    hold(
        "each text that a bug of fixtures/planted replaces stands once in its file",
        planted::patches(&Tree::get().sources),
    );
}

#[test]
fn planted_bugs_are_in_the_table() {
    let mut documents = Tree::get().documents.iter();
    let page = documents.find(|document| document.path == "docs/planted.md");
    hold(
        "docs/planted.md has a row for every planted bug: ci/planted.sh --markdown",
        planted::table(
            page.map_or("", |page| &page.text),
            smalt_planted::bugs().map(|(_, bug)| bug.id.as_str()),
        ),
    );
}

#[test]
fn no_product_knows_of_planted_bugs() {
    hold(
        "a product has no line for a planted bug: they are in fixtures/planted",
        planted::products(Tree::get()),
    );
}

#[test]
fn tests_do_not_sleep() {
    hold(
        "a test sleeps on tokio's paused clock only",
        sleeps::judge(&Tree::get().sources, sleeps::EXEMPT),
    );
}

#[test]
fn the_tree_speaks_of_itself_only() {
    hold(
        "no paths of somebody's machine, and no note of work to do without its issue",
        marks::foreign_words(Tree::get()),
    );
}

#[test]
fn the_readme_is_short_and_its_figures_are_measured() {
    let documents = &Tree::get().documents;
    let text = |path: &str| {
        let document = documents.iter().find(|document| document.path == path);
        document.map_or("", |document| document.text.as_str())
    };
    hold(
        "the README tells what docs/speed.md measured, in a few lines",
        documents::readme(text("README.md"), text("docs/speed.md")),
    );
}

#[test]
fn documents_name_only_files_that_exist() {
    hold(
        "every link and every `bash` command of a document leads to a file",
        documents::names(Tree::get()),
    );
}
