//! Checks of the book in `docs/`: every chapter is reachable, every link leads somewhere, every
//! op of the dialect is described, and every chapter's code is compiled.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::checks::{Problem, Tree};

const SOURCE: &str = "docs/src/";
const SUMMARY: &str = "docs/src/SUMMARY.md";
const OPS: &str = "dsl-core/src/dialect/table.rs";
/// Its further rows, for one family of chips each.
const MORE_OPS: [&str; 2] = ["dsl-core/src/dialect/hopper.rs", "dsl-core/src/dialect/blackwell.rs"];
const OPS_PAGE: &str = "docs/src/reference/dialect.md";
/// The module that makes documentation tests of the chapters.
const TESTED: &str = "src/book.rs";
const FACADE: &str = "src/lib.rs";

/// All problems of the book.
pub fn check(tree: &Tree) -> Vec<Problem> {
    [chapters, links, ops, compiled].iter().flat_map(|check| check(tree)).collect()
}

/// The targets of the links in a Markdown text with their line numbers, code left out.
fn links_in(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let mut rest = line;
            while let Some((_, after)) = rest.split_once("](") {
                let Some((target, after)) = after.split_once(')') else {
                    break;
                };
                links.push((index + 1, target));
                rest = after;
            }
        }
    }
    links
}

/// The file that a relative link means; `None` where it leads out of the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap_or("");
    if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
        return None;
    }
    let mut path = PathBuf::new();
    for part in Path::new(from).parent()?.join(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    Some(path.to_string_lossy().replace('\\', "/"))
}

fn listed(tree: &Tree) -> BTreeSet<String> {
    let text = tree.text(SUMMARY).unwrap_or("");
    links_in(text).iter().filter_map(|(_, target)| resolve(SUMMARY, target)).collect()
}

fn is_chapter(name: &str) -> bool {
    name.starts_with(SOURCE) && name != SUMMARY
}

fn chapters(tree: &Tree) -> Vec<Problem> {
    if tree.text(SUMMARY).is_none() {
        return vec![Problem::of_file(SUMMARY, "missing")];
    }
    let listed = listed(tree);
    tree.ending(&[".md"])
        .filter(|(name, _)| is_chapter(name) && !listed.contains(*name))
        .map(|(name, _)| Problem::of_file(name, "not in SUMMARY.md, so nobody can find it"))
        .collect()
}

fn links(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, text) in tree.ending(&[".md"]) {
        for (line, target) in links_in(text) {
            let Some(file) = resolve(name, target) else {
                continue;
            };
            let folder = format!("{}/", file.trim_end_matches('/'));
            let is_folder = tree.ending(&[""]).any(|(other, _)| other.starts_with(&folder));
            if tree.text(&file).is_none() && !is_folder {
                problems.push(Problem::at(name, line, format!("the link to {target} is broken")));
            }
        }
    }
    problems
}

/// The names of the table's rows: each stands on a line `name: "load",`.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","))
}

fn ops(tree: &Tree) -> Vec<Problem> {
    let Some(table) = tree.text(OPS) else { return Vec::new() };
    let page = tree.text(OPS_PAGE).unwrap_or("");
    let problem = |text: String| Problem::of_file(OPS_PAGE, text);
    let more = MORE_OPS.iter().filter_map(|path| tree.text(path)).flat_map(rows);
    let rows: BTreeSet<_> = rows(table).chain(more).map(|name| format!("`lw.{name}`")).collect();
    let headings: BTreeSet<_> = page.lines().filter_map(|line| line.strip_prefix("### ")).map(String::from).collect();
    let missing = rows.difference(&headings).map(|name| problem(format!("{name} has no heading")));
    let stale = headings.difference(&rows).map(|name| problem(format!("{name} is not in {OPS}")));
    missing.chain(stale).collect()
}

fn compiled(tree: &Tree) -> Vec<Problem> {
    let Some(tested) = tree.text(TESTED) else { return Vec::new() };
    if !tree.text(FACADE).is_some_and(|text| text.contains("mod book;")) {
        return vec![Problem::of_file(FACADE, "no `#[cfg(doctest)] mod book;`, so no chapter's code is compiled")];
    }
    tree.ending(&[".md"])
        .filter(|(name, text)| is_chapter(name) && text.contains("```rust"))
        .filter(|(name, _)| !tested.contains(&format!("../{name}")))
        .map(|(name, _)| Problem::of_file(name, format!("its code is not compiled by {TESTED}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(problems: Vec<Problem>) -> Vec<String> {
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn links_are_resolved_from_their_file() {
        let from = "docs/src/reference/types.md";
        assert_eq!(resolve(from, "../intro.md#top").as_deref(), Some("docs/src/intro.md"));
        assert_eq!(resolve(from, "./loops.md").as_deref(), Some("docs/src/reference/loops.md"));
        assert_eq!(resolve("README.md", "docs/").as_deref(), Some("docs"));
        assert_eq!(resolve(from, "#here"), None);
        assert_eq!(resolve(from, "https://example.org/a.md"), None);
    }

    #[test]
    fn brackets_in_code_are_no_links() {
        let text = "[a](a.md) and [b](b.md)\n```rust\nlet x = y[0](z);\n```\n[c](c.md)\n";
        assert_eq!(links_in(text), [(1, "a.md"), (1, "b.md"), (5, "c.md")]);
    }

    #[test]
    fn a_chapter_outside_the_summary_and_a_broken_link_are_reported() {
        let tree = Tree::of(&[
            ("docs/src/SUMMARY.md", "- [One](one.md)\n- [Two](two.md)\n"),
            ("docs/src/one.md", "see [the folder](../) and [three](three.md)\n"),
            ("docs/src/three.md", ""),
        ]);
        assert_eq!(
            shown(check(&tree)),
            [
                "docs/src/three.md: not in SUMMARY.md, so nobody can find it",
                "docs/src/SUMMARY.md:2: the link to two.md is broken",
            ]
        );
    }

    #[test]
    fn the_page_of_the_dialect_has_the_rows_of_the_table() {
        let table =
            "    OpRow {\n        name: \"load\",\n        about: \"..\",\n    OpRow {\n        name: \"fence\",\n";
        let page = "### `lw.load`\n\nLoads.\n\n### `lw.gone`\n";
        let tree = Tree::of(&[(OPS, table), (OPS_PAGE, page)]);
        assert_eq!(
            shown(ops(&tree)),
            [format!("{OPS_PAGE}: `lw.fence` has no heading"), format!("{OPS_PAGE}: `lw.gone` is not in {OPS}")]
        );
    }

    #[test]
    fn a_chapter_with_code_is_compiled() {
        let tree = Tree::of(&[
            (TESTED, "include_str!(\"../docs/src/one.md\")"),
            (FACADE, "#[cfg(doctest)]\nmod book;\n"),
            ("docs/src/one.md", "```rust\n```\n"),
            ("docs/src/two.md", "```rust\n```\n"),
            ("docs/src/three.md", "no code\n"),
        ]);
        let expected = ["docs/src/two.md: its code is not compiled by src/book.rs"];
        assert_eq!(shown(compiled(&tree)), expected);
    }
}
