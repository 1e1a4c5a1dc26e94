//! `lacewing compile --emit report`.

use lacewing_core::lower::{EmitOptions, MainLoop, Mix, Report};
use lacewing_core::occupancy::Occupancy;
use lacewing_core::{KernelMeta, Target};
use lacewing_runtime::registry::{KernelEntry, Settings};
use serde_json::{Map, Value as Json, json};

use super::failure::Failure;

/// A report for each target, and why it is refused if warnings are denied.
pub(super) fn make(
    entry: &KernelEntry,
    settings: &Settings,
    targets: &[Target],
    options: &EmitOptions,
) -> Result<Vec<Report>, Failure> {
    let one = |target: &Target| -> Result<Report, Failure> {
        let traced = entry.build_for(settings, *target)?.trace(*target)?;
        Ok(Report::of(&traced, options)?)
    };
    targets.iter().map(one).collect()
}

/// Why reports do not hold where warnings are denied.
pub(super) fn denied(reports: &[Report]) -> Option<Failure> {
    let mut lines = Vec::new();
    for report in reports {
        let target = report.meta.target;
        lines.extend(report.complaints().into_iter().map(|complaint| format!("\n  {target}: {complaint}")));
        if report.resources.is_none() {
            lines.push(format!("\n  {target}: no ptxas is found, so it is not known what it would say"));
        }
    }
    (!lines.is_empty()).then(|| Failure::failed(format!("warnings are denied, and there are some{}", lines.concat())))
}

/// For people.
pub(super) fn text(reports: &[Report]) -> String {
    reports.iter().map(one_text).collect::<Vec<_>>().join("\n")
}

fn one_text(report: &Report) -> String {
    let KernelMeta { name, target, attributes, shared_bytes, .. } = &report.meta;
    let [x, y, z] = attributes.block;
    let mut lines = vec![format!("{name} for {target} ({})", target.about())];
    let mut line = |what: &str, text: String| lines.push(format!("  {what:<16}{text}"));
    line("block", format!("{x} x {y} x {z} = {} threads", attributes.threads()));
    match &report.resources {
        Some(found) => {
            let scalar = found.scalar_registers.map_or(String::new(), |count| format!(", {count} scalar a wave"));
            line("registers", format!("{} a thread{scalar}", found.registers));
            let (stores, loads) = (found.spill_store_bytes, found.spill_load_bytes);
            line("spills", format!("{stores} bytes stored, {loads} bytes loaded"));
            line("stack", format!("{} bytes", found.stack_bytes));
        }
        None => line("registers", "unknown: no ptxas is found".to_owned()),
    }
    line("shared memory", format!("{shared_bytes} bytes of {}", target.max_shared_bytes()));
    if let Some(Occupancy { blocks, warps, max_warps, limit }) = report.occupancy {
        let percent = 100 * warps / max_warps.max(1);
        let warp = if target.is_amd() { "waves" } else { "warps" };
        line(
            "occupancy",
            format!("{blocks} blocks, {warps} of {max_warps} {warp} ({percent} %), limited by {}", limit.name()),
        );
    }
    for warning in &report.warnings {
        line("warning", warning.text.clone());
        if let Some(meaning) = warning.meaning {
            line("", format!("-> {meaning}"));
        }
    }
    let mut mixes = vec![(Mix::counted_in(target.vendor()), &report.assembly)];
    mixes.extend(report.machine.as_ref().map(|mix| ("SASS", mix)));
    for (what, mix) in mixes {
        line(what, format!("{} instructions", mix.total()));
        for (class, count) in mix.iter() {
            line("", format!("{count:>6}  {}", class.name()));
        }
    }
    for found in &report.main_loops {
        let MainLoop { address, instructions, products, moves_to_uniform, .. } = found;
        let text =
            format!("{instructions} instructions at {address:#06x}, {products} products, {moves_to_uniform} R2UR");
        line("main loop", text);
    }
    lines.push(String::new());
    lines.join("\n")
}

/// For programs.
pub(super) fn json(reports: &[Report]) -> Json {
    Json::Array(reports.iter().map(one_json).collect())
}

fn one_json(report: &Report) -> Json {
    let KernelMeta { name, target, attributes, shared_bytes, .. } = &report.meta;
    let mix = |mix: &Mix| -> Json {
        let counts: Map<String, Json> =
            mix.iter().map(|(class, count)| (class.name().replace(' ', "_"), json!(count))).collect();
        json!({"total": mix.total(), "by_class": counts})
    };
    json!({
        "kernel": name,
        "target": target.name(),
        "block": attributes.block,
        "registers": report.resources.map(|found| found.registers),
        "scalar_registers": report.resources.and_then(|found| found.scalar_registers),
        "stack_bytes": report.resources.map(|found| found.stack_bytes),
        "spill_store_bytes": report.resources.map(|found| found.spill_store_bytes),
        "spill_load_bytes": report.resources.map(|found| found.spill_load_bytes),
        "shared_bytes": shared_bytes,
        "occupancy": report.occupancy.map(|found| json!({
            "blocks": found.blocks,
            "warps": found.warps,
            "max_warps": found.max_warps,
            "limit": found.limit.name(),
            "source": Occupancy::source(*target),
        })),
        "warnings": report.warnings.iter()
            .map(|warning| json!({"text": warning.text, "meaning": warning.meaning}))
            .collect::<Vec<_>>(),
        "assembly": mix(&report.assembly),
        "machine": report.machine.as_ref().map(mix),
        "main_loops": report.main_loops.iter().map(|found| json!({
            "address": found.address,
            "instructions": found.instructions,
            "products": found.products,
            "r2ur": found.moves_to_uniform,
            "by_one_thread": found.by_one_thread,
        })).collect::<Vec<_>>(),
    })
}
