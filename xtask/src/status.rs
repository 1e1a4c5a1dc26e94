//! The README's two tables: what works, each row with evidence that is in the repository, and the
//! bundled kernels, compared with what the program itself lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::checks::{Problem, Tree};
use crate::process::{self, Error, Workspace};

const README: &str = "README.md";
/// The states that a row may give.
const STATES: [&str; 3] = ["works", "partly", "planned"];

/// The rows between `<!-- name -->` and `<!-- /name -->`: line number and cells. The two lines of
/// the table's head are left out.
fn table<'a>(text: &'a str, name: &str) -> Option<Vec<(usize, Vec<&'a str>)>> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| line.trim() != open);
    lines.next()?;
    let mut rows = Vec::new();
    for (index, line) in lines {
        let line = line.trim();
        if line == close {
            return Some(rows.split_off(rows.len().min(2)));
        }
        if let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
            rows.push((index + 1, cells.split('|').map(str::trim).collect()));
        }
    }
    None
}

/// The words in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Each row of the status table is `what | state | evidence`, and evidence is `file` or
/// `file::word`, where the word stands in the file.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let Some(rows) = tree.text(README).and_then(|text| table(text, "status")) else {
        return vec![Problem::of_file(README, "no table between <!-- status --> marks")];
    };
    let mut problems = Vec::new();
    for (line, cells) in rows {
        let mut problem = |text: String| problems.push(Problem::at(README, line, text));
        let &[_, state, evidence] = cells.as_slice() else {
            problem("a row of the status table has three cells".into());
            continue;
        };
        let evidence = quoted(evidence);
        if !STATES.contains(&state) {
            problem(format!("`{state}` is none of {}", STATES.join(", ")));
        } else if state == "planned" && !evidence.is_empty() {
            problem("what is planned has no evidence yet".into());
        } else if state != "planned" && evidence.is_empty() {
            problem(format!("`{state}` needs evidence: a test in the repository"));
        }
        for item in evidence {
            let (file, word) = item.split_once("::").unwrap_or((item, ""));
            match tree.text(file) {
                None => problem(format!("there is no file {file}")),
                Some(text) if !text.contains(word) => problem(format!("{file} has no `{word}`")),
                Some(_) => {}
            }
        }
    }
    problems
}

type Kernels = BTreeMap<String, BTreeSet<String>>;

/// Name and targets of each kernel, from `lacewing list --json`.
fn listed(json: &str) -> Option<Kernels> {
    let text = |value: &Value| value.as_str().map(String::from);
    let kernels: Value = serde_json::from_str(json).ok()?;
    let kernel = |kernel: &Value| {
        let targets = kernel.get("targets")?.as_array()?.iter().map(text);
        Some((text(kernel.get("name")?)?, targets.collect::<Option<_>>()?))
    };
    kernels.as_array()?.iter().map(kernel).collect()
}

/// Name and targets of each kernel, from the README.
fn described(readme: &str) -> Option<Kernels> {
    let row = |(_, cells): &(usize, Vec<&str>)| {
        let name = quoted(cells.first()?).first()?.to_string();
        Some((name, quoted(cells.get(1)?).into_iter().map(String::from).collect()))
    };
    table(readme, "kernels")?.iter().map(row).collect()
}

/// How the two disagree, one sentence each.
fn disagreements(listed: &Kernels, described: &Kernels) -> Vec<String> {
    let names: BTreeSet<_> = listed.keys().chain(described.keys()).collect();
    let of = |targets: &BTreeSet<String>| targets.iter().cloned().collect::<Vec<_>>().join(", ");
    names
        .into_iter()
        .filter_map(|name| match (listed.get(name), described.get(name)) {
            (Some(listed), None) => Some(format!("`{name}` is missing ({})", of(listed))),
            (None, Some(_)) => Some(format!("`{name}` is no kernel of this program")),
            (Some(listed), Some(described)) if listed != described => {
                Some(format!("`{name}` has the targets {}", of(listed)))
            }
            _ => None,
        })
        .collect()
}

/// Compares the README's kernel table with the built program.
pub fn check_kernels(workspace: &Workspace) -> Result<(), Error> {
    let tree = Tree::load(workspace)?;
    let described = tree
        .text(README)
        .and_then(described)
        .ok_or_else(|| Error::new("README.md has no table between <!-- kernels --> marks"))?;
    process::run(&mut workspace.cargo(["build", "--package", "lacewing", "--bin", "lacewing"]))?;
    let mut list = workspace.cargo(["run", "--quiet", "--package", "lacewing", "--"]);
    list.args(["list", "--json"]);
    let listed = process::output(&mut list)
        .and_then(|json| listed(&json))
        .ok_or_else(|| Error::new("`lacewing list --json` gave no list of kernels"))?;
    let found = disagreements(&listed, &described);
    for text in &found {
        eprintln!("{README}: kernel table: {text}");
    }
    match found.len() {
        0 => Ok(()),
        count => Err(Error::new(format!("{count} rows of the kernel table are not true"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(rows: &str) -> Vec<String> {
        let readme = format!("<!-- status -->\n| What | State | Evidence |\n|---|---|---|\n{rows}\n<!-- /status -->\n");
        let tree = Tree::of(&[(README, &readme), ("tests/a.rs", "fn works() {}")]);
        check(&tree).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_row_needs_evidence_that_is_there() {
        assert_eq!(problems("| Loops | works | `tests/a.rs::fn works` |"), [""; 0]);
        assert_eq!(problems("| TMA | planned | |"), [""; 0]);
        let expected = ["README.md:4: `works` needs evidence: a test in the repository"];
        assert_eq!(problems("| Loops | works | |"), expected);
        let expected = ["README.md:4: tests/a.rs has no `fn fails`"];
        assert_eq!(problems("| Loops | partly | `tests/a.rs::fn fails` |"), expected);
        let expected = ["README.md:4: there is no file tests/b.rs"];
        assert_eq!(problems("| Loops | works | `tests/b.rs` |"), expected);
        let expected = ["README.md:4: what is planned has no evidence yet"];
        assert_eq!(problems("| TMA | planned | `tests/a.rs` |"), expected);
        let expected = ["README.md:4: `soon` is none of works, partly, planned"];
        assert_eq!(problems("| TMA | soon | |"), expected);
        let expected = ["README.md:4: a row of the status table has three cells"];
        assert_eq!(problems("| TMA | planned |"), expected);
    }

    #[test]
    fn a_table_without_its_closing_mark_is_no_table() {
        assert_eq!(table("<!-- status -->\n| a |\n|---|\n| b |\n", "status"), None);
        assert_eq!(table("", "status"), None);
    }

    #[test]
    fn the_kernel_table_says_what_the_program_lists() {
        let json = r#"[{"name": "axpy", "targets": ["sm_80", "gfx942"], "about": "y = a x + y"},
                       {"name": "softmax", "targets": ["sm_80"]}]"#;
        let listed = listed(json).unwrap();
        let readme = "<!-- kernels -->\n| Kernel | Targets |\n|---|---|\n\
                      | `axpy` | `gfx942` `sm_80` |\n<!-- /kernels -->\n";
        let described = described(readme).unwrap();
        assert_eq!(disagreements(&listed, &described), ["`softmax` is missing (sm_80)"]);
        let narrowed = BTreeMap::from([("axpy".to_string(), BTreeSet::new())]);
        assert_eq!(disagreements(&narrowed, &described), ["`axpy` has the targets "]);
        assert_eq!(disagreements(&BTreeMap::new(), &described), ["`axpy` is no kernel of this program"]);
        assert_eq!(super::listed("{}"), None);
        assert_eq!(super::listed(r#"[{"name": 1}]"#), None);
    }
}
