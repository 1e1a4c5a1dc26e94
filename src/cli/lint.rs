//! `lacewing lint`: what a kernel's lines cost, as a table or as a page that shows the source with the counts beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lacewing_core::{SourceLocation, Target};
use lacewing_runtime::Device;
use lacewing_runtime::device::{Printed, target_from_name};
use lacewing_runtime::emulator::{Check, Checks, Space, Work};
use lacewing_runtime::host::Random;
use lacewing_runtime::record::Observer;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::Sizes;
use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::progress::Progress;
use super::{Io, find, settings, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kernel; `lacewing list` shows them
    kernel: String,
    /// The target
    #[arg(long, default_value = "sm_80")]
    target: String,
    /// Set a compile-time parameter
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Sizes of the inputs: name=value,name=value
    #[arg(long, value_name = "SIZES")]
    shape: Vec<String>,
    /// Seed for the inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write a page that shows the source with the counts beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write JSON: an object with "lines"
    #[arg(long)]
    json: bool,
}

/// What is counted for one line of the source.
#[derive(Default)]
struct Counts {
    shared: Access,
    global: Access,
    /// Executions of branches, and those that part a warp.
    branches: (u64, u64),
    /// Executions and amounts of what runs beside the threads.
    work: BTreeMap<Work, (u64, u64)>,
}

/// Accesses to one memory.
#[derive(Default)]
struct Access {
    accesses: u64,
    cost: u64,
    least: u64,
    degree: u64,
    adjacent: u64,
    aligned: u64,
}

/// Counts by file and line.
type Lines = BTreeMap<(String, u32), Counts>;

pub(crate) fn lint(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let target = target_from_name(&arguments.target)?;
    let runner = entry
        .runner
        .ok_or_else(|| Failure::input(format!("kernel `{}` can only be compiled, not run by name", entry.name)))?;
    let mut settings = settings(entry, &arguments.set)?;
    entry.build_for(&settings, target)?;
    let mut sizes = Sizes::defaults(runner.dimensions());
    for text in &arguments.shape {
        sizes.set(text)?;
    }
    let mut inputs = runner.random(&settings, &sizes, &mut Random::new(arguments.seed))?;
    runner.prepare(&mut settings, &mut inputs, &mut Vec::new())?;
    if let Some(path) = &arguments.html {
        super::files::check_writable(path)?;
    }

    let observer = Arc::new(Observer::default());
    let device = Device::emulator(target)?
        .with_checks(Checks::default().with(Check::Performance))
        .with_printed(Printed::Nowhere)
        .with_observer(&observer);
    let progress = Progress::start(format!("{} on {device}", entry.name));
    runner.run(&device, &settings, &inputs)?;
    drop(progress);

    let lines = count(&observer);
    let title = format!("{} on {target}, {}", entry.name, sizes.text());
    if let Some(path) = &arguments.html {
        std::fs::write(path, page(&title, target, &lines))?;
    }
    if arguments.json {
        return write_json(io, &describe(entry, target, &sizes, &lines));
    }
    write!(io.out, "{}", table(&title, &lines))?;
    if let Some(path) = &arguments.html {
        writeln!(io.out, "written to {}", path.display())?;
    }
    Ok(())
}

/// The counts of all launches.
fn count(observer: &Observer) -> Lines {
    let mut lines = Lines::new();
    let key = |location: &SourceLocation| (location.file.clone(), location.line);
    for stats in observer.take().into_iter().filter_map(|launch| launch.stats) {
        for cost in &stats.line_costs {
            let counts = lines.entry(key(&cost.location)).or_default();
            let access = if cost.space == Space::Shared { &mut counts.shared } else { &mut counts.global };
            access.accesses += cost.accesses;
            access.cost += cost.cost;
            access.least += cost.least;
            access.degree = access.degree.max(cost.degree);
            access.adjacent += cost.adjacent;
            access.aligned += cost.aligned;
        }
        for cost in &stats.work {
            let (executed, amount) = lines.entry(key(&cost.location)).or_default().work.entry(cost.work).or_default();
            *executed += cost.executed;
            *amount = if cost.work == Work::Wait { cost.amount.max(*amount) } else { *amount + cost.amount };
        }
        for branch in &stats.branches {
            let counts = lines.entry(key(&branch.location)).or_default();
            counts.branches.0 += branch.executed;
            counts.branches.1 += branch.divergent;
        }
    }
    lines
}

impl Counts {
    /// What could be better, in words; nothing for a line that is as good as it can be.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let Counts { shared, global, branches, work } = self;
        if shared.cost > shared.least {
            remarks.push(format!(
                "bank conflicts: {} cycles where {} would do, up to {} lanes at one bank",
                shared.cost, shared.least, shared.degree
            ));
        }
        // An access that starts inside a sector costs one more, which no order of lanes helps.
        if global.degree > 1 {
            remarks.push(format!("uncoalesced: {} sectors where {} would do", global.cost, global.least));
        }
        if global.adjacent > 0 && global.adjacent * 2 >= global.accesses {
            let aligned = match global.aligned {
                0 => "none of the pairs is aligned to twice its size".to_owned(),
                aligned => format!("{aligned} of the pairs are aligned to twice the size"),
            };
            remarks.push(format!(
                "could be vectors: {} accesses go on where the last one stopped; {aligned}",
                global.adjacent
            ));
        }
        if let Some((_, registers)) = work.get(&Work::Wait).filter(|(_, registers)| *registers > 0) {
            remarks.push(format!("{registers} registers of a thread hold accumulators across this wait"));
        }
        if branches.1 > 0 {
            remarks.push(format!("divergent: {} of {} executions part the warp", branches.1, branches.0));
        }
        remarks
    }
}

/// Lines with something to say, the costliest first.
fn table(title: &str, lines: &Lines) -> String {
    let mut text = format!("{title}\n");
    let waste = |counts: &Counts| {
        let access = |a: &Access| a.cost.saturating_sub(a.least);
        access(&counts.shared) + access(&counts.global) + counts.branches.1
    };
    let mut found: Vec<_> = lines.iter().filter(|(_, counts)| !counts.remarks().is_empty()).collect();
    found.sort_by_key(|(_, counts)| std::cmp::Reverse(waste(counts)));
    for ((file, line), counts) in &found {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{file}:{line}");
        if let Some(source) = source_of(file).and_then(|text| text.lines().nth(*line as usize - 1).map(str::to_owned)) {
            let _ = writeln!(text, "    {}", source.trim());
        }
        for remark in counts.remarks() {
            let _ = writeln!(text, "    - {remark}");
        }
    }
    let accesses: u64 = lines.values().map(|counts| counts.shared.accesses + counts.global.accesses).sum();
    let _ = writeln!(text, "{} lines, {accesses} accesses of warps, {} lines with a remark", lines.len(), found.len());
    text
}

/// The text of a source file, looked for from the current folder up: rustc's paths start at the workspace.
fn source_of(file: &str) -> Option<String> {
    let path = Path::new(file);
    if path.is_absolute() {
        return std::fs::read_to_string(path).ok();
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().find_map(|folder| std::fs::read_to_string(folder.join(path)).ok())
}

fn describe(entry: &KernelEntry, target: Target, sizes: &Sizes, lines: &Lines) -> Json {
    let access = |a: &Access| {
        json!({
            "accesses": a.accesses, "cost": a.cost, "least": a.least, "degree": a.degree,
            "adjacent": a.adjacent, "aligned": a.aligned,
        })
    };
    let lines: Vec<Json> = lines
        .iter()
        .map(|((file, line), counts)| {
            json!({
                "file": file, "line": line,
                "shared": access(&counts.shared), "global": access(&counts.global),
                "work": counts.work.iter().map(describe_work).collect::<Vec<_>>(),
                "branches": {"executed": counts.branches.0, "divergent": counts.branches.1},
                "remarks": counts.remarks(),
            })
        })
        .collect();
    json!({"kernel": entry.name, "target": target.name(), "shape": sizes.text(), "lines": lines})
}

/// What runs beside the threads, and the unit of its amount.
fn work_name(work: Work) -> (&'static str, &'static str) {
    match work {
        Work::TensorLoad => ("TMA load", "bytes"),
        Work::TensorStore => ("TMA store", "bytes"),
        Work::Product => ("wgmma", "multiplications"),
        Work::Wait => ("wait", "registers held"),
    }
}

fn describe_work((work, (executed, amount)): (&Work, &(u64, u64))) -> Json {
    let (name, unit) = work_name(*work);
    json!({"work": name, "executed": executed, "amount": amount, "unit": unit})
}

fn work_cell(work: &BTreeMap<Work, (u64, u64)>) -> String {
    let cells = work.iter().map(|(work, (executed, amount))| {
        let (name, unit) = work_name(*work);
        format!("{executed} x {name}, {amount} {unit}")
    });
    cells.collect::<Vec<_>>().join("; ")
}

/// A page with the source of each file that has counts.
fn page(title: &str, target: Target, lines: &Lines) -> String {
    let sector = if target.is_amd() { 64 } else { 32 };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\n<style>{STYLE}</style>\n<h1>{0}</h1>\n\
         <p>Shared memory: cycles of its banks / what they would be without conflicts (most lanes at one bank). Global memory: \
         sectors of {sector} bytes / what they would be with all lanes side by side. Branches: executions that part a warp / all. Beside the threads: tensor copies, products of warpgroups, and waits \
         with the registers of a thread that hold accumulators across them. \
         Each by warp, over the whole launch.</p>\n",
        escape(title)
    );
    let files: BTreeSet<&str> = lines.keys().map(|(file, _)| file.as_str()).collect();
    for file in files {
        let _ = writeln!(html, "<h2>{}</h2>", escape(file));
        let _ = writeln!(
            html,
            "<table><tr><th>line<th>shared<th>global<th>branches<th>beside the threads<th class=code>source"
        );
        let text = source_of(file).unwrap_or_default();
        let counted = |line: u32| lines.get(&(file.to_owned(), line));
        let last = lines.keys().filter(|(name, _)| name == file).map(|(_, line)| *line).max().unwrap_or(0);
        let count = (text.lines().count() as u32).max(last);
        let mut sources = text.lines();
        for line in 1..=count {
            let source = escape(sources.next().unwrap_or(""));
            match counted(line) {
                Some(counts) => {
                    let remarks = counts.remarks();
                    let class = if remarks.is_empty() { "counted" } else { "remark" };
                    let _ = writeln!(
                        html,
                        "<tr class={class} title=\"{}\"><td>{line}<td>{}<td>{}<td>{}<td>{}<td class=code>{source}",
                        escape(&remarks.join("\n")),
                        cell(&counts.shared, true),
                        cell(&counts.global, false),
                        branch_cell(counts.branches),
                        work_cell(&counts.work),
                    );
                }
                None => {
                    let _ = writeln!(html, "<tr><td>{line}<td><td><td><td><td class=code>{source}");
                }
            }
        }
        let _ = writeln!(html, "</table>");
    }
    html
}

const STYLE: &str = "body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:0 .7em;text-align:right;\
font:12px monospace;white-space:pre}.code{text-align:left}.counted{background:#eef6ee}.remark{background:#fde2d8}\
tr:hover{outline:1px solid #888}@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}\
.counted{background:#233323}.remark{background:#4a2a20}}";

fn cell(access: &Access, is_shared: bool) -> String {
    if access.accesses == 0 {
        return String::new();
    }
    let degree = if is_shared && access.degree > 1 { format!(" ({}x)", access.degree) } else { String::new() };
    format!("{} / {}{degree}", access.cost, access.least)
}

fn branch_cell((executed, divergent): (u64, u64)) -> String {
    if executed == 0 { String::new() } else { format!("{divergent} / {executed}") }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
