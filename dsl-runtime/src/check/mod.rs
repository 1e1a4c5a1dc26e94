//! The debugging ladder: what people do by hand with a kernel that gives wrong numbers, done by itself.
//!
//! [`check`] climbs from the simplest input to the hardest and stops at the first rung that fails: there the cause has
//! the fewest places to hide. All checks of the emulator are on at every rung.
//!
//! | rung | what is tried | what it finds that the rungs before it cannot |
//! |---|---|---|
//! | `compile` | the trace, for the target | what the language or the target refuses |
//! | `ones` | every float input is 1 | nothing runs at all; a missing factor or store |
//! | `zeros` | one input at a time is 0 | terms that should vanish do not |
//! | `single` | the smallest shape, random numbers | wrong arithmetic within one block |
//! | `random` | the default shape, random numbers | several blocks, several tiles |
//! | `shapes` | prime, unequal, tiny, large shapes; around tiles | tails; swapped extents and strides |
//! | `gaps` | rows with NaN between them | accesses beyond a row that end in the result |
//! | `banks` | the cost of shared memory | columns of a tile in one bank |
//! | others | what the kernel's [`Ladder`](crate::runner::Ladder) names: padding that holds NaN, huge scores | |
//!
//! At each rung: every element of the outputs is written, and right against the reference in higher precision; runs
//! under several seeds of the scheduler agree bit for bit. For a wrong result the ladder then looks for the smallest
//! shape that still fails, for inputs that were never read, and for what the wrong elements have in common.

mod case;
mod diagnose;
mod finding;
mod rungs;
mod shrink;

use lacewing_core::Target;

use crate::emulator::Bound;
use crate::error::Error;
use crate::registry::{KernelEntry, Parameter, ParameterKind, Settings, unknown};
use crate::runner::Runner;

pub use finding::Finding;

use case::{Case, Fill, Outcome, Trial};

/// What to check, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The targets; none for all that the kernel has.
    pub targets: Vec<Target>,
    /// Values of compile-time parameters, as `--set` gives them. Choices that are left open are all tried.
    pub set: Vec<(String, String)>,
    /// Seed of the inputs, and the first seed of the scheduler.
    pub seed: u64,
    /// How many orders of the scheduler each case runs under.
    pub schedules: u64,
    /// The only rung to try.
    pub rung: Option<String>,
    /// The only shape to try, as `name=value,..`.
    pub shape: Option<String>,
    /// Compare floats with their shadows in binary64: how far one may be off, relatively or in units of the last place,
    /// and absolutely.
    pub shadow: Option<(Bound, f64)>,
}

impl Default for Options {
    fn default() -> Self {
        Options { targets: Vec::new(), set: Vec::new(), seed: 0, schedules: 3, rung: None, shape: None, shadow: None }
    }
}

/// Where the ladder stands, for a progress bar.
#[derive(Debug, Clone)]
pub struct Step<'a> {
    /// The target.
    pub target: Target,
    /// The values of parameters that are not the defaults, as `name=value,..`.
    pub settings: &'a str,
    /// The rung.
    pub rung: &'a str,
    /// The shape, as `name=value,..`.
    pub shape: &'a str,
    /// Cases that are done.
    pub done: usize,
    /// Cases of this target and these settings.
    pub total: usize,
}

/// What the ladder found.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Name of the kernel.
    pub kernel: String,
    /// The targets that were tried.
    pub targets: Vec<Target>,
    /// The rungs that hold, with the number of cases of each, in the order of the ladder.
    pub held: Vec<(String, usize)>,
    /// Shapes that the kernel refused, with its words.
    pub refused: Vec<String>,
    /// What is wrong.
    pub finding: Option<Finding>,
}

impl Verdict {
    fn hold(&mut self, rung: &str) {
        match self.held.iter_mut().find(|(name, _)| name == rung) {
            Some((_, count)) => *count += 1,
            None => self.held.push((rung.to_owned(), 1)),
        }
    }
}

/// Climbs the ladder with a kernel. Calls `progress` before each case.
///
/// # Errors
/// What the caller gave wrongly: a kernel that cannot be run by name, settings or sizes that do not fit it. Whatever is
/// wrong with the kernel is a [`Verdict`] with a finding.
pub fn check(entry: &KernelEntry, options: &Options, progress: &mut dyn FnMut(&Step)) -> Result<Verdict, Error> {
    let runner = entry.runner.ok_or_else(|| {
        Error::Setting(format!(
            "kernel `{}` can only be compiled: without a runner there is nothing to check",
            entry.name
        ))
    })?;
    let targets = if options.targets.is_empty() { entry.targets.to_vec() } else { options.targets.clone() };
    let given = settings(entry, &options.set)?;
    for target in &targets {
        if !entry.targets.contains(target) {
            // The kernel's own words about its targets.
            entry.build_for(&given, *target)?;
        }
    }
    let mut verdict = Verdict {
        kernel: entry.name.to_owned(),
        targets: targets.clone(),
        held: Vec::new(),
        refused: Vec::new(),
        finding: None,
    };
    let combinations = combinations(entry, runner, options, &given);
    for target in targets {
        for combination in &combinations {
            let mut set = options.set.clone();
            set.extend(combination.iter().cloned());
            let settings = settings(entry, &set)?;
            let trial = Trial { entry, runner, target, settings, set, options };
            climb(&trial, &mut verdict, progress)?;
            if verdict.finding.is_some() {
                return Ok(verdict);
            }
        }
    }
    Ok(verdict)
}

/// The settings of a kernel with values from text.
fn settings(entry: &KernelEntry, set: &[(String, String)]) -> Result<Settings, Error> {
    let mut settings = Settings::defaults(entry.parameters);
    for (name, value) in set {
        settings.set(name, value)?;
    }
    Ok(settings)
}

/// The values to try of parameters that were left open: the defaults, then each other choice of one parameter.
fn combinations(
    entry: &KernelEntry,
    runner: &dyn Runner,
    options: &Options,
    given: &Settings,
) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    if options.rung.is_some() || options.shape.is_some() {
        return all;
    }
    for parameter in entry.parameters.iter().filter(|parameter| !given.is_given(parameter.name)) {
        let Parameter { name, kind, default, .. } = parameter;
        let values: Vec<String> = match kind {
            ParameterKind::Bool => vec!["false".to_owned(), "true".to_owned()],
            ParameterKind::Choice(choices) => choices.iter().map(|choice| (*choice).to_owned()).collect(),
            ParameterKind::Usize | ParameterKind::F32 => Vec::new(),
        };
        let others = values.into_iter().filter(|value| *value != default.to_string());
        all.extend(others.map(|value| vec![((*name).to_owned(), value)]));
    }
    for text in runner.ladder().settings {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<(String, String)> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if pairs.iter().all(|(name, _)| !given.is_given(name)) {
            all.push(pairs);
        }
    }
    all
}

/// A few wrong numbers say little about what they have in common: many, of the default shape, may say more.
fn larger_picture(trial: &Trial<'_>, case: &Case, finding: Finding) -> Result<Finding, Error> {
    if finding.kind != "wrong result" || trial.options.shape.is_some() || case.rung == "random" {
        return Ok(finding);
    }
    for other in rungs::cases(trial, None)? {
        let telling = other.rung == "random" || matches!(other.fill, Fill::Variant(_));
        if !telling {
            continue;
        }
        match trial.attempt(&other)? {
            Outcome::Wrong(larger) if larger.kind == "wrong by a factor" && larger.location == finding.location => {
                let mut larger = *larger;
                larger.note(format!("rung `{}` fails already: {}", case.rung, finding.message));
                return Ok(larger);
            }
            _ => {}
        }
    }
    Ok(finding)
}

/// Tries the rungs in order until one fails.
fn climb(trial: &Trial<'_>, verdict: &mut Verdict, progress: &mut dyn FnMut(&Step)) -> Result<(), Error> {
    let cases = rungs::cases(trial, trial.options.rung.as_deref())?;
    if let Some(rung) = &trial.options.rung
        && cases.iter().all(|case| case.rung != rung)
    {
        return Err(Error::Setting(unknown("rung", rung, rungs::names(trial.runner))));
    }
    let settings = trial.settings_text();
    let mut held_here: Vec<&'static str> = Vec::new();
    let total = cases.len();
    for (done, case) in cases.iter().enumerate() {
        let shape = case.sizes.text();
        progress(&Step { target: trial.target, settings: &settings, rung: case.rung, shape: &shape, done, total });
        match trial.attempt(case)? {
            Outcome::Holds => {
                verdict.hold(case.rung);
                if held_here.last() != Some(&case.rung) {
                    held_here.push(case.rung);
                }
            }
            Outcome::Refused(reason) => {
                let text = format!("{} {shape}: {reason}", case.rung);
                if !verdict.refused.contains(&text) {
                    verdict.refused.push(text);
                }
            }
            Outcome::Wrong(finding) => {
                let finding = larger_picture(trial, case, *finding)?;
                let mut finding = shrink::smallest(trial, case, finding)?;
                // A rung of several cases holds only when all of them do.
                held_here.retain(|rung| *rung != case.rung);
                finding.held = held_here.iter().map(|rung| (*rung).to_owned()).collect();
                verdict.finding = Some(finding);
                return Ok(());
            }
        }
    }
    Ok(())
}
