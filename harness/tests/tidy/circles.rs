//! Import circles: files of one crate that import each other in a loop.
//!
//! An edge leads from a file to the file that defines what it names: by a path that begins with
//! `crate`, `self`, `super`, one of its own modules or an imported module, in a `use` or in the
//! code. `mod child;` is not an edge. A re-export is not an edge either: a file that uses it
//! depends on the defining file. Tests are excluded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::finding::Finding;
use crate::tree::Source;

/// Maximum number of files that may import each other in a loop.
const CIRCLE_FILES_MAX: usize = 3;

/// Crates that do not keep to it yet, with the number of files of their largest circle. The number
/// may only fall; a crate within the limit has no line.
pub(crate) const LARGEST: &[(&str, usize)] = &[];

/// The path of a module from the root of its crate.
type Module = Vec<String>;
/// The dependencies of each file.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// A path that a file names, and the name that a `use` gives it.
struct Named {
    path: Vec<String>,
    name: Option<String>,
    is_handed_on: bool,
}

/// The modules of one crate.
struct Crate<'a> {
    files: BTreeMap<Module, &'a Source>,
    handed_on: BTreeMap<Module, Module>,
}

/// Returns circles that are too large, and numbers in `largest` that are stale.
pub(crate) fn judge(sources: &[Source], largest: &[(&str, usize)]) -> Vec<Finding> {
    let roots = sources.iter().filter_map(|s| root(&s.path));
    let mut findings = Vec::new();
    for root in roots.collect::<BTreeSet<_>>() {
        let edges = Crate::read(sources, root).edges();
        let circles = circles(&edges);
        let held = largest.iter().find(|(path, _)| *path == root);
        let most = held.map_or(CIRCLE_FILES_MAX, |(_, files)| *files);
        for circle in circles.iter().filter(|circle| circle.len() > most) {
            let what = format!(
                "{} files import each other, at most {most} may: {}; a shortest loop: {}",
                circle.len(),
                circle.iter().copied().collect::<Vec<_>>().join(", "),
                shortest(&edges, circle).join(" -> "),
            );
            findings.push(Finding::new(root, 0, what));
        }
        let found = circles.iter().map(BTreeSet::len).max().unwrap_or_default();
        let kept = found.max(CIRCLE_FILES_MAX);
        if kept < most {
            let what = format!("its largest circle has {found} files: lower its {most} in LARGEST");
            findings.push(Finding::new(root, 0, what));
        }
    }
    findings
}

/// Returns `harness/model/src/` for `harness/model/src/a.rs`.
fn root(path: &str) -> Option<&str> {
    path.find("src/").map(|at| &path[..at + "src/".len()])
}

impl<'a> Crate<'a> {
    fn read(sources: &'a [Source], root: &str) -> Self {
        let files: BTreeMap<_, _> = sources
            .iter()
            .filter_map(|source| Some((module(source.path.strip_prefix(root)?), source)))
            .collect();
        let mut read = Crate {
            files,
            handed_on: BTreeMap::new(),
        };
        for (here, _, path, named) in read.all() {
            if let (true, Some(name)) = (named.is_handed_on, named.name) {
                read.handed_on.insert([here, vec![name]].concat(), path);
            }
        }
        read
    }

    /// Returns every path that a file of the crate names: the module and the file that name it, the
    /// path from the root of the crate, and the path as written.
    fn all(&self) -> Vec<(Module, &'a Source, Module, Named)> {
        let mut all = Vec::new();
        for (here, source) in &self.files {
            let here = here.strip_suffix(&["main.rs".to_owned()]).unwrap_or(here);
            let mut modules = BTreeMap::new();
            let mut paths = paths(source);
            paths.sort_by_key(|named| named.name.is_none());
            for named in paths {
                let Some(path) = self.rooted(here, &modules, &named.path) else {
                    continue;
                };
                if let (Some(name), true) = (&named.name, self.files.contains_key(&path)) {
                    modules.insert(name.clone(), path.clone());
                }
                all.push((here.to_vec(), *source, path, named));
            }
        }
        all
    }

    fn rooted(
        &self,
        here: &[String],
        modules: &BTreeMap<String, Module>,
        path: &[String],
    ) -> Option<Module> {
        let first = path.first()?.as_str();
        let own = || [here, &path[..1]].concat();
        let (start, rest) = match first {
            "crate" => (Vec::new(), 1),
            "self" => (here.to_vec(), 1),
            "super" => {
                let up = path
                    .iter()
                    .take_while(|segment| *segment == "super")
                    .count();
                (here.get(..here.len().checked_sub(up)?)?.to_vec(), up)
            }
            _ if modules.contains_key(first) => (modules[first].clone(), 1),
            _ if self.files.contains_key(&own()) => (own(), 1),
            _ => return None,
        };
        Some([start, path[rest..].to_vec()].concat())
    }

    /// Returns the module that defines what a path names.
    fn home(&self, path: Module) -> Module {
        let mut path = path;
        // Limits chains of re-exports, since `use a::b as b` would never end.
        for _ in 0..8 {
            let inside = (0..=path.len()).rev();
            let at = inside
                .clone()
                .find(|at| self.files.contains_key(&path[..*at]));
            let at = at.unwrap_or_default();
            let next = path.get(..=at).and_then(|item| self.handed_on.get(item));
            match next {
                Some(next) => path = [next.as_slice(), &path[at + 1..]].concat(),
                None => {
                    path.truncate(at);
                    break;
                }
            }
        }
        path
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (_, from, path, named) in self.all() {
            let to = self
                .files
                .get(&self.home(path))
                .filter(|to| to.path != from.path);
            if let (Some(to), false) = (to, named.is_handed_on) {
                edges
                    .entry(from.path.clone())
                    .or_default()
                    .insert(to.path.clone());
            }
        }
        edges
    }
}

/// Returns the module of a file in `src/`.
fn module(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "lib" => Vec::new(),
        "main" => vec!["main.rs".to_owned()],
        _ => path.split('/').map(str::to_owned).collect(),
    }
}

/// Returns the paths that a file names outside of its tests.
fn paths(source: &Source) -> Vec<Named> {
    let code = source.code[..source.tests_from() - 1].join("\n");
    let tokens = tokens(&code);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            let before = at.checked_sub(1).map(|before| tokens[before]);
            let restricted =
                before == Some(")") && tokens[at.saturating_sub(5)..at].contains(&"pub");
            let first = paths.len();
            at = tree(&tokens, at + 1, &[], &mut paths);
            for named in &mut paths[first..] {
                named.is_handed_on = before == Some("pub") || restricted;
            }
        } else if is_word(tokens[at]) && tokens.get(at + 1) == Some(&"::") {
            let first = paths.len();
            at = tree(&tokens, at, &[], &mut paths);
            paths[first..]
                .iter_mut()
                .for_each(|named| named.name = None);
        } else {
            at += 1;
        }
    }
    paths
}

/// Parses the tree of a `use`, or a path, from the token at `at`; returns the position after it.
fn tree(tokens: &[&str], mut at: usize, before: &[String], paths: &mut Vec<Named>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        match *token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = match tokens[at] {
                        "," => at + 1,
                        _ => tree(tokens, at, &path, paths).max(at + 1),
                    };
                }
                return at + 1;
            }
            word if is_word(word) => {
                // `a::{self}` names `a`.
                if word != "self" || path.is_empty() {
                    path.push(word.to_owned());
                }
                at += 1;
            }
            _ => break,
        }
        match tokens.get(at) {
            Some(&"::") => at += 1,
            _ => break,
        }
    }
    let mut name = path.last().cloned();
    if tokens.get(at) == Some(&"as") {
        name = tokens.get(at + 1).map(|&name| name.to_owned());
        at += 2;
    }
    if !path.is_empty() {
        let is_handed_on = false;
        paths.push(Named {
            path,
            name,
            is_handed_on,
        });
    }
    at
}

fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            _ if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Returns groups of files that reach each other, the largest first.
fn circles(edges: &Edges) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<_, _> = edges
        .keys()
        .map(|file| (file.as_str(), reach(edges, file)))
        .collect();
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        let back = |other: &&str| reached.get(other).is_some_and(|back| back.contains(file));
        let circle: BTreeSet<_> = others.iter().copied().filter(back).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

fn reach<'a>(edges: &'a Edges, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        for to in edges.get(file).into_iter().flatten() {
            if reached.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    reached
}

/// Returns a shortest loop through the first file of a circle that is in a loop of that length.
fn shortest<'a>(edges: &'a Edges, circle: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let loops = circle.iter().filter_map(|start| loop_through(edges, start));
    loops.min_by_key(Vec::len).unwrap_or_default()
}

fn loop_through<'a>(edges: &'a Edges, start: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(file) = next.pop_front() {
        for to in edges.get(file).into_iter().flatten() {
            if to == start {
                let mut way = vec![start, file];
                while let Some(before) = came_from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(to.as_str()) {
                came_from.insert(to.as_str(), file);
                next.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], largest: &[(&str, usize)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source::new(&format!("x/src/{path}"), text);
        let sources: Vec<_> = files.iter().map(source).collect();
        let findings = judge(&sources, largest);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    /// Four files in a ring, each naming the next in another way.
    const RING: [(&str, &str); 5] = [
        ("lib.rs", "mod a; mod b; mod c; mod d;\n"),
        (
            "a.rs",
            "use crate::{b::{self, B as _}, c};\nfn f() { b::f() }\n",
        ),
        ("b.rs", "fn f() { super::c::f() }\n"),
        (
            "c.rs",
            "mod inner;\npub(crate) use self::inner::f;\nuse crate::d;\nfn g() { d::g() }\n",
        ),
        ("d.rs", "use crate::a;\nfn g() { matches!(x, a::A) }\n"),
    ];

    #[test]
    fn a_ring_of_four_is_found_with_its_shortest_loop() {
        let told = found(&RING, &[]);
        assert_eq!(
            told,
            [
                "4 files import each other, at most 3 may: x/src/a.rs, x/src/b.rs, x/src/c.rs, \
                 x/src/d.rs; a shortest loop: x/src/a.rs -> x/src/c.rs -> x/src/d.rs -> x/src/a.rs"
            ]
        );
    }

    #[test]
    fn a_circle_limit_is_enforced_and_may_only_fall() {
        assert_eq!(found(&RING, &[("x/src/", 4)]).len(), 0);
        assert_eq!(
            found(&RING, &[("x/src/", 5)]),
            ["its largest circle has 4 files: lower its 5 in LARGEST"]
        );
        let open = &RING[..4];
        assert_eq!(found(open, &[]).len(), 0);
        assert_eq!(found(open, &[("x/src/", 4)]).len(), 1);
    }

    #[test]
    fn a_reexport_resolves_to_the_defining_file() {
        let through = |facade: &str| {
            found(
                &[
                    ("lib.rs", "mod a;\n"),
                    ("a.rs", &format!("mod b; mod c; mod d; mod e;\n{facade}")),
                    ("a/b.rs", "use super::C;\n"),
                    ("a/c.rs", "use crate::a::d::D;\n"),
                    ("a/d.rs", "use super::e;\n"),
                    ("a/e.rs", "use crate::a::B;\n"),
                ],
                &[],
            )
        };
        assert_eq!(
            through("pub use b::B;\npub(super) use self::c::C;\n").len(),
            1
        );
        // The parent defines both and depends on no file.
        assert_eq!(through("pub struct B;\npub struct C;\n").len(), 0);
    }

    #[test]
    fn tests_and_comments_are_not_edges() {
        let tests = "//! See [`crate::a`].\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n";
        let mut files = RING;
        files[4].1 = tests;
        assert_eq!(found(&files, &[]).len(), 0);
    }
}
