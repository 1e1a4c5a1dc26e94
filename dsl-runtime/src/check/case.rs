//! One case of a rung: its inputs, its runs, and whether it holds.

use std::sync::Arc;

use lacewing_core::Target;

use super::diagnose;
use super::finding::Finding;
use super::{Options, diagnose::Evidence};
use crate::device::{Device, Printed};
use crate::emulator::{Check, Checks, LineCost, Report, ReportKind, Space};
use crate::error::Error;
use crate::host::{HostTensor, Random, Tensors};
use crate::record::{Observer, Recorded};
use crate::registry::{KernelEntry, Settings};
use crate::runner::ladder::is_float;
use crate::runner::{Runner, Sizes, Variant};

/// Operations that one warp may execute: far beyond what the ladder's shapes ask for, and less than a second.
const OP_BUDGET: u64 = 1 << 26;
/// How many lanes may queue at one bank before the line is reported: two-way conflicts are often the price of a
/// simpler layout, eight-way ones are mistakes.
const WORST_DEGREE: u64 = 8;

/// One kernel with one target and one set of settings.
pub(super) struct Trial<'a> {
    pub(super) entry: &'a KernelEntry,
    pub(super) runner: &'a dyn Runner,
    pub(super) target: Target,
    pub(super) settings: Settings,
    /// The settings that were given or chosen, as text.
    pub(super) set: Vec<(String, String)>,
    pub(super) options: &'a Options,
}

/// One input.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) rung: &'static str,
    pub(super) sizes: Sizes,
    pub(super) fill: Fill,
    /// Whether tensors have gaps between their rows.
    pub(super) padded: bool,
    /// Whether costs are looked at.
    pub(super) costs: bool,
}

/// What inputs hold.
#[derive(Clone)]
pub(super) enum Fill {
    /// Nothing is run: the kernel is only traced.
    Nothing,
    Random,
    Ones,
    /// Random, but for one input of zeros.
    Zero(String),
    Variant(&'static Variant),
}

/// How a case ended.
pub(super) enum Outcome {
    Holds,
    /// The kernel does not take the shape, and says so.
    Refused(String),
    Wrong(Box<Finding>),
}

/// Inputs that are ready to run.
pub(super) struct Ready {
    pub(super) settings: Settings,
    pub(super) inputs: Tensors,
}

impl Case {
    /// Whether the inputs hold poison, or lie beside it.
    pub(super) fn is_poisoned(&self) -> bool {
        self.padded || matches!(&self.fill, Fill::Variant(variant) if variant.poisoned)
    }
}

impl Trial<'_> {
    /// The settings as `name=value,..`.
    pub(super) fn settings_text(&self) -> String {
        self.set.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
    }

    /// Random inputs of a shape.
    pub(super) fn random(&self, sizes: &Sizes) -> Result<Tensors, Error> {
        self.runner.random(&self.settings, sizes, &mut Random::new(self.options.seed))
    }

    /// The inputs of a case.
    pub(super) fn ready(&self, case: &Case) -> Result<Ready, Error> {
        let mut random = Random::new(self.options.seed);
        let mut settings = self.settings.clone();
        let mut inputs = self.runner.random(&settings, &case.sizes, &mut random)?;
        match &case.fill {
            Fill::Nothing | Fill::Random => {}
            Fill::Ones => {
                for tensor in inputs.values_mut().filter(|tensor| is_float(tensor)) {
                    *tensor = HostTensor::from_f64(tensor.scalar(), tensor.shape(), &vec![1.0; tensor.len()])?;
                }
            }
            Fill::Zero(name) => {
                if let Some(tensor) = inputs.get_mut(name) {
                    let zeros = vec![0; tensor.bytes().len()];
                    *tensor = HostTensor::from_bytes(tensor.scalar(), tensor.shape(), zeros)?;
                }
            }
            Fill::Variant(variant) => (variant.change)(&settings, &mut inputs, &mut random)?,
        }
        self.runner.prepare(&mut settings, &mut inputs, &mut Vec::new())?;
        Ok(Ready { settings, inputs })
    }

    fn device(&self, case: &Case, schedule: u64) -> Result<Device, Error> {
        let mut checks = Checks::default().with_op_budget(OP_BUDGET);
        if case.costs {
            checks = checks.with(Check::Performance);
        }
        if let Some((bound, floor)) = self.options.shadow {
            checks = checks.with_shadow(bound, floor);
        }
        if case.is_poisoned() {
            // Poison is to be read, if it is: what counts is whether it reaches the result.
            checks = checks.without(Check::Initialized);
        }
        let device = Device::emulator(self.target)?;
        let seed = self.options.seed.wrapping_add(schedule);
        Ok(device.with_seed(seed).with_checks(checks).with_printed(Printed::Nowhere).with_padding(case.padded))
    }

    /// Runs a case once, and tells what its launches did.
    pub(super) fn run(
        &self,
        case: &Case,
        ready: &Ready,
        schedule: u64,
        change: impl FnOnce(Device) -> Device,
    ) -> (Result<Tensors, Error>, Vec<Recorded>) {
        let observer = Arc::new(Observer::default());
        let device = match self.device(case, schedule) {
            Ok(device) => change(device.with_observer(&observer)),
            Err(error) => return (Err(error), Vec::new()),
        };
        let outputs = self.runner.run(&device, &ready.settings, &ready.inputs);
        (outputs, observer.take())
    }

    /// A finding without its facts.
    pub(super) fn finding(&self, case: &Case) -> Finding {
        let mut reproduce = format!("lacewing check {} --target {}", self.entry.name, self.target);
        for (name, value) in &self.set {
            reproduce += &format!(" --set {name}={value}");
        }
        reproduce += &format!(" --rung {}", case.rung);
        let shape = case.sizes.text();
        if !shape.is_empty() && !matches!(case.fill, Fill::Nothing) {
            reproduce += &format!(" --shape {shape}");
        }
        reproduce += &format!(" --seed {}", self.options.seed);
        if self.options.schedules != Options::default().schedules {
            reproduce += &format!(" --schedules {}", self.options.schedules);
        }
        if let Some((bound, floor)) = self.options.shadow {
            reproduce += &format!(" --shadow {bound},{floor}");
        }
        Finding {
            kind: String::new(),
            message: String::new(),
            location: None,
            call_chain: Vec::new(),
            block: None,
            thread: None,
            kernel: self.entry.name.to_owned(),
            target: self.target,
            rung: case.rung.to_owned(),
            shape: if matches!(case.fill, Fill::Nothing) { String::new() } else { shape },
            settings: self.settings_text(),
            seed: self.options.seed,
            tensor: None,
            element: None,
            notes: Vec::new(),
            help: None,
            held: Vec::new(),
            reproduce,
        }
    }

    /// Tries a case.
    ///
    /// # Errors
    /// When the fault is the caller's: settings that the kernel does not take, sizes that were given.
    pub(super) fn attempt(&self, case: &Case) -> Result<Outcome, Error> {
        if matches!(case.fill, Fill::Nothing) {
            let traced = self.entry.build_for(&self.settings, self.target).and_then(|kernel| kernel.trace(self.target));
            return match traced {
                Ok(_) => Ok(Outcome::Holds),
                Err(error) => self.failed(case, error, None, &[]),
            };
        }
        let ready = match self.ready(case) {
            Ok(ready) => ready,
            Err(error) => return self.failed(case, error, None, &[]),
        };
        let (outputs, launches) = self.run(case, &ready, 0, |device| device);
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(error) => return self.failed(case, error, Some((&ready, 0)), &launches),
        };
        let comparisons = self.runner.compare(&ready.settings, &ready.inputs, &outputs)?;
        if let Some(wrong) = comparisons.iter().find(|comparison| !comparison.holds()) {
            let evidence = Evidence { trial: self, case, ready: &ready, outputs: &outputs, launches: &launches };
            return Ok(Outcome::Wrong(Box::new(evidence.wrong(wrong)?)));
        }
        if let Some(finding) = self.strays(case, &launches) {
            return Ok(Outcome::Wrong(Box::new(finding)));
        }
        if case.costs {
            return Ok(self.costs(case, &launches));
        }
        for schedule in 1..self.options.schedules.max(1) {
            let device = self.device(case, schedule)?;
            let again = match self.runner.run(&device, &ready.settings, &ready.inputs) {
                Ok(again) => again,
                Err(error) => return self.failed(case, error, Some((&ready, schedule)), &[]),
            };
            if self.runner.ladder().reproducible {
                if let Some(finding) = self.differing(case, &outputs, &again, schedule, &launches) {
                    return Ok(Outcome::Wrong(Box::new(finding)));
                }
                continue;
            }
            let comparisons = self.runner.compare(&ready.settings, &ready.inputs, &again)?;
            if let Some(wrong) = comparisons.iter().find(|comparison| !comparison.holds()) {
                let evidence = Evidence { trial: self, case, ready: &ready, outputs: &again, launches: &launches };
                return Ok(Outcome::Wrong(Box::new(evidence.wrong(wrong)?)));
            }
        }
        Ok(Outcome::Holds)
    }

    /// A case that ended with an error.
    fn failed(
        &self,
        case: &Case,
        error: Error,
        run: Option<(&Ready, u64)>,
        launches: &[Recorded],
    ) -> Result<Outcome, Error> {
        let finding = self.finding(case);
        let finding = match &error {
            Error::Report(report) => {
                let race = run.and_then(|(ready, schedule)| self.race_behind(case, ready, schedule, report));
                finding.report(race.as_deref().unwrap_or(report))
            }
            Error::Kernel(refused) => match refused.diagnostics.first() {
                Some(diagnostic) => finding.diagnostic(diagnostic),
                None => Finding { kind: "refused".to_owned(), message: error.to_string(), ..finding },
            },
            Error::Unwritten { index, shape } => diagnose::unwritten(finding, index, shape, launches),
            // Sizes that the ladder chose may be none of the kernel's; those of the caller are the caller's fault.
            _ if error.is_input() => {
                let chosen = matches!(case.rung, "single" | "shapes" | "gaps") || matches!(case.fill, Fill::Variant(_));
                return if chosen && self.options.shape.is_none() {
                    Ok(Outcome::Refused(error.to_string()))
                } else {
                    Err(error)
                };
            }
            _ => {
                let location = launches.last().and_then(|launch| launch.location.clone()).or_else(|| self.definition());
                Finding { kind: "refused".to_owned(), message: error.to_string(), location, ..finding }
            }
        };
        Ok(Outcome::Wrong(Box::new(finding)))
    }

    /// Memory that nothing has written yet may be what another warp is about to write: then the race is the mistake,
    /// and its report names both lines.
    fn race_behind(&self, case: &Case, ready: &Ready, schedule: u64, report: &Report) -> Option<Box<Report>> {
        if report.kind != ReportKind::Uninitialized {
            return None;
        }
        let checks = Checks::default().with_op_budget(OP_BUDGET).without(Check::Initialized);
        let (outcome, _) = self.run(case, ready, schedule, |device| device.with_checks(checks));
        match outcome {
            Err(Error::Report(mut race)) if race.kind == ReportKind::Race => {
                let place = report.location.as_ref().map_or_else(String::new, |l| format!(" at {l}"));
                let seed = self.options.seed.wrapping_add(schedule);
                race.notes.push(format!("in the order of seed {seed}, the read{place} came before any write"));
                Some(race)
            }
            _ => None,
        }
    }

    /// Where the kernel is defined.
    pub(super) fn definition(&self) -> Option<lacewing_core::SourceLocation> {
        self.entry.build_for(&self.settings, self.target).ok().map(|kernel| kernel.location())
    }

    /// Bytes between the rows of a tensor that a kernel has written.
    fn strays(&self, case: &Case, launches: &[Recorded]) -> Option<Finding> {
        let (launch, view, byte) = launches.iter().find_map(|launch| {
            let mut views = launch.views.iter().filter(|view| view.mutable);
            views.find_map(|view| Some((launch, view, view.stray_write()?)))
        })?;
        let mut finding = self.finding(case).writer(launch.writer_of_byte(view, byte).as_ref());
        finding.kind = "write outside the tensor".to_owned();
        finding.message = format!("a write beside the rows of `{}`, at byte {byte} of its memory", view.name);
        finding.tensor = Some(view.name.clone());
        finding.help =
            Some("strides are not extents: use `.at(..)`, and compare each index with its extent".to_owned());
        Some(finding)
    }

    /// The first element in which two runs differ.
    fn differing(
        &self,
        case: &Case,
        first: &Tensors,
        again: &Tensors,
        schedule: u64,
        launches: &[Recorded],
    ) -> Option<Finding> {
        let differs = |name: &String, tensor: &HostTensor| {
            let other = again.get(name)?;
            let size = tensor.scalar().bytes();
            let mut elements = tensor.bytes().chunks(size).zip(other.bytes().chunks(size));
            elements.position(|(a, b)| a != b)
        };
        let (name, at) = first.iter().find_map(|(name, tensor)| Some((name, differs(name, tensor)?)))?;
        let tensor = first.get(name)?;
        let index = crate::tensor::coordinates(at, tensor.shape());
        let numbers = [tensor, again.get(name)?].map(|t| t.to_f64().ok().and_then(|x| x.get(at).copied()));
        let [one, two] = numbers.map(|x| x.unwrap_or(f64::NAN));
        let writer = launches.iter().rev().find_map(|launch| launch.writer(name, &index));
        let mut finding = self.finding(case).writer(writer.as_ref());
        finding.location = finding.location.or_else(|| self.definition());
        finding.kind = "not reproducible".to_owned();
        finding.message = format!(
            "`{name}` differs between two runs on the same inputs: {one} and {two} at {index:?}, under the scheduler's \
             seeds {} and {}",
            self.options.seed,
            self.options.seed.wrapping_add(schedule)
        );
        finding.tensor = Some(name.clone());
        finding.help = Some(
            "the order of warps or blocks decides: float atomics add in any order, and so do races that no check sees"
                .to_owned(),
        );
        Some(finding)
    }

    /// Lines whose accesses queue at the banks.
    fn costs(&self, case: &Case, launches: &[Recorded]) -> Outcome {
        let stats = launches.iter().filter_map(|launch| launch.stats.as_ref());
        let shared = stats.flat_map(|stats| &stats.line_costs).filter(|cost| cost.space == Space::Shared);
        let Some(cost) = shared.filter(|cost| cost.degree >= WORST_DEGREE).max_by_key(|cost| cost.cost - cost.least)
        else {
            return Outcome::Holds;
        };
        let LineCost { location, accesses, cost, least, degree, .. } = cost;
        let mut finding = self.finding(case);
        finding.kind = "bank conflicts".to_owned();
        finding.message = format!(
            "{degree} lanes queue at one bank of shared memory: {accesses} accesses take {cost} cycles where {least} \
             would do"
        );
        finding.location = Some(location.clone());
        finding.help =
            Some("make rows one access longer, or swizzle the columns, so that a column meets all banks".into());
        Outcome::Wrong(Box::new(finding))
    }
}
