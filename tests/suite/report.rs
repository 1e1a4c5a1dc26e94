//! `lacewing compile --emit report`.

use lacewing::core::lower::{Class, Emit, EmitOptions, Report, emit, find_nvdisasm, find_ptxas};
use lacewing::kernels::ENTRIES;
use lacewing::prelude::*;
use lacewing::runtime::registry::Settings;
use serde_json::Value;

use crate::cuda::lacewing;

/// Whether `ptxas` is there; where it must be, it is a failure that it is not.
fn has_ptxas() -> bool {
    let found = find_ptxas(None).is_ok();
    assert!(found || std::env::var_os("LACEWING_REQUIRE_PTXAS").is_none(), "no ptxas");
    if !found {
        eprintln!("skipped: no ptxas");
    }
    found
}

#[test]
fn a_report_says_what_the_code_costs() {
    let (status, out, err) = lacewing(&[
        "compile",
        "matmul",
        "--target",
        "sm_80",
        "--target",
        "gfx942",
        "--set",
        "dtype=bf16",
        "--emit",
        "report",
        "--json",
    ]);
    assert_eq!((status, err.as_str()), (0, ""));
    let reports: Value = serde_json::from_str(&out).unwrap();
    let [nvidia, amd] = reports.as_array().unwrap().as_slice() else { panic!("{out}") };
    assert_eq!((&nvidia["target"], &amd["target"]), (&"sm_80".into(), &"gfx942".into()));
    for report in [nvidia, amd] {
        assert!(report["assembly"]["by_class"]["tensor_core"].as_u64().unwrap() >= 4, "{report}");
        assert!(report["assembly"]["by_class"]["synchronisation"].as_u64().unwrap() >= 1, "{report}");
        assert!(report["shared_bytes"].as_u64().unwrap() > 0);
    }
    assert!(amd["registers"].as_u64().unwrap() > 16 && amd["scalar_registers"].as_u64().unwrap() > 8);
    assert_eq!(amd["spill_store_bytes"], 0);
    assert!(amd["occupancy"]["blocks"].as_u64().unwrap() >= 1);
    if has_ptxas() {
        assert!(nvidia["registers"].as_u64().unwrap() > 16);
        assert_eq!(nvidia["spill_store_bytes"], 0);
        assert!(nvidia["occupancy"]["warps"].as_u64().unwrap() >= 4);
        assert!(nvidia["occupancy"]["source"].as_str().unwrap().contains("Technical Specifications"));
    }
}

/// What the report says in words is what it says in JSON.
#[test]
fn a_report_for_people() {
    if !has_ptxas() {
        return;
    }
    let (status, out, err) =
        lacewing(&["compile", "axpy", "--target", "sm_90a", "--emit", "report", "--deny-warnings"]);
    assert_eq!((status, err.as_str()), (0, ""));
    for wanted in [
        "axpy for sm_90a (NVIDIA Hopper (H100, H200))\n",
        "  block           256 x 1 x 1 = 256 threads\n",
        " a thread\n",
        "  spills          0 bytes stored, 0 bytes loaded\n",
        "  shared memory   0 bytes of 232448\n",
        "  occupancy       8 blocks, 64 of 64 warps (100 %), limited by warps\n",
        "       2  global load\n",
        "       1  global store\n",
        "       1  float\n",
    ] {
        assert!(out.contains(wanted), "{wanted:?} is not in\n{out}");
    }
}

/// A loop-carried array that does not fit into the registers that the kernel allows itself.
#[kernel(block = [32, 1, 1], max_regs = 24)]
fn greedy(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let lane = thread_id(X);
    let mut held = [F32::from(0.0); 64];
    for i in range_constexpr(64) {
        held[i] = x.at(lane + 32 * (i as i32)).load();
    }
    barrier();
    let mut sum = F32::from(0.0);
    for i in range_constexpr(64) {
        sum = held[63 - i].fma(sum, held[i]);
    }
    y.at(lane).store(sum);
}

#[test]
fn spills_are_complaints() {
    if !has_ptxas() {
        return;
    }
    let report = Report::of(&greedy::new().traced(Target::SM_80).unwrap(), &EmitOptions::default()).unwrap();
    let resources = report.resources.unwrap();
    assert!(resources.registers <= 24 && resources.spill_store_bytes > 0, "{resources:?}");
    assert_eq!(report.assembly.get(Class::GlobalLoad), 64);
    assert_eq!(report.complaints().len(), 1);
    if let Some(machine) = &report.machine {
        assert!(machine.get(Class::Local) > 0 && machine.get(Class::GlobalLoad) == 64, "{machine:?}");
    }
}

/// Products of the tiles of a ring in an order that is read from memory: each address goes from a register of every
/// thread to the warp's.
#[kernel(block = [128, 1, 1])]
fn wandering(order: Tensor<I32, 1>, d: TensorMut<F32, 2>, rounds: I32) {
    let ring = SwizzledRing::<F16>::new("ring", 4, 64, 64);
    let mut acc = Accumulator::zeros(64);
    for i in range(rounds) {
        let tile = ring.stage(order.at(i).load());
        acc = wgmma_add(tile, tile.t(), acc).wait::<0>();
    }
    for i in range_constexpr(32) {
        d.at((thread_id(X), i)).store(acc[i]);
    }
}

/// The same in a fixed order.
#[kernel(block = [128, 1, 1])]
fn straight(d: TensorMut<F32, 2>, rounds: I32) {
    let ring = SwizzledRing::<F16>::new("ring", 4, 64, 64);
    let mut acc = Accumulator::zeros(64);
    for _ in range(rounds) {
        for stage in range_constexpr(4) {
            let tile = ring.stage(stage);
            acc = wgmma_add(tile, tile.t(), acc).wait::<0>();
        }
    }
    for i in range_constexpr(32) {
        d.at((thread_id(X), i)).store(acc[i]);
    }
}

#[test]
fn moves_to_uniform_registers_in_the_main_loop_are_complaints() {
    if !has_ptxas() {
        return;
    }
    if find_nvdisasm().is_none() {
        assert!(std::env::var_os("LACEWING_REQUIRE_PTXAS").is_none(), "no nvdisasm");
        eprintln!("skipped: no nvdisasm");
        return;
    }
    let traced = wandering::new().traced(Target::SM_90A).unwrap();
    let report = Report::of(&traced, &EmitOptions::default()).unwrap();
    // One, or two where the assembler unrolls it.
    let complaints = report.complaints();
    assert!(!report.main_loops.is_empty() && complaints.len() == report.main_loops.len(), "{complaints:?}");
    for (found, complaint) in report.main_loops.iter().zip(&complaints) {
        assert!(
            found.products > 0 && found.products % 4 == 0 && found.moves_to_uniform > 0 && found.instructions > 8,
            "{found:?}"
        );
        let wanted = format!("{} R2UR in the loop at {:#06x}", found.moves_to_uniform, found.address);
        assert!(complaint.starts_with(&wanted), "{complaint}");
    }
    let denying = EmitOptions { deny_warnings: true, ..EmitOptions::default() };
    let error = emit(&traced, Emit::Cubin, &denying).unwrap_err().to_string();
    assert!(complaints.iter().all(|complaint| error.contains(complaint)), "{error}");

    let traced = straight::new().traced(Target::SM_90A).unwrap();
    let report = Report::of(&traced, &EmitOptions::default()).unwrap();
    let [found] = report.main_loops.as_slice() else { panic!("{:?}", report.main_loops) };
    assert!(found.products > 0 && found.products % 16 == 0 && found.moves_to_uniform == 0, "{found:?}");
    assert_eq!(report.complaints(), [""; 0]);
    emit(&traced, Emit::Cubin, &denying).unwrap();
}

/// Every bundled kernel as it is compiled by default, for every chip that `ptxas` writes for.
#[test]
fn bundled_kernels_have_nothing_to_complain_of() {
    if !has_ptxas() {
        return;
    }
    let nvidia = Target::ALL.iter().copied().filter(|target| target.is_nvidia());
    let pairs: Vec<_> = nvidia.flat_map(|target| ENTRIES.iter().map(move |entry| (*entry, target))).collect();
    let pairs: Vec<_> = pairs.into_iter().filter(|(entry, target)| entry.targets.contains(target)).collect();
    assert!(pairs.len() > 20, "{}", pairs.len());
    let found: Vec<_> = pairs
        .into_iter()
        .flat_map(|(entry, target)| {
            let kernel = entry.build_for(&Settings::defaults(entry.parameters), target).unwrap();
            let report = Report::of(&kernel.trace(target).unwrap(), &EmitOptions::default()).unwrap();
            let name = format!("{} for {target}", entry.name);
            report.complaints().into_iter().map(move |complaint| format!("{name}: {complaint}"))
        })
        .collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let (status, _, err) = lacewing(&["compile", "axpy", "--target", "sm_80", "--json"]);
    assert_eq!((status, err.as_str()), (2, "error: `--json` is for `--emit report`\n"));
}
