//! Why numbers are wrong: what the wrong elements have in common, and what the run says about them.

use super::case::{Case, Ready, Trial};
use super::finding::Finding;
use crate::compare::{Comparison, Profile};
use crate::emulator::{Checks, ReportKind};
use crate::error::Error;
use crate::host::{HostTensor, Tensors};
use crate::record::{Missed, Recorded, RecordedView};
use crate::runner::Tile;
use crate::runner::ladder::is_float;

/// A run whose numbers are wrong.
pub(super) struct Evidence<'a> {
    pub(super) trial: &'a Trial<'a>,
    pub(super) case: &'a Case,
    pub(super) ready: &'a Ready,
    pub(super) outputs: &'a Tensors,
    pub(super) launches: &'a [Recorded],
}

/// An output that nothing has written.
pub(super) fn unwritten(mut finding: Finding, index: &[usize], shape: &[usize], launches: &[Recorded]) -> Finding {
    let written = || launches.iter().rev().flat_map(|launch| launch.views.iter().map(move |view| (launch, view)));
    let candidates = || written().filter(|(_, view)| view.mutable);
    let missed = candidates()
        .filter(|(_, view)| view.extents == shape)
        .find_map(|(launch, view)| Some((launch, view, view.unwritten().filter(|missed| missed.first == index)?)))
        // The output may be a part of what the kernel was given.
        .or_else(|| candidates().find_map(|(launch, view)| Some((launch, view, view.unwritten()?))));
    "unwritten output".clone_into(&mut finding.kind);
    let Some((launch, view, missed)) = missed else {
        finding.message = format!("element {index:?} of an output {shape:?} is never written");
        finding.location = launches.last().and_then(|launch| launch.location.clone());
        return finding;
    };
    let name = &view.name;
    finding.message =
        format!("`{name}` is not written in full: {}, the first at {index:?}", share(&missed, "elements are missing"));
    finding.tensor = Some(name.clone());
    match view.writes.first().and_then(|lines| lines.split_first()) {
        Some((line, callers)) => {
            finding.location = Some(line.clone());
            finding.call_chain = callers.to_vec();
            finding.note(format!("the line shown writes `{name}`"));
        }
        None => finding.location.clone_from(&launch.location),
    }
    finding.help = Some("compare the index that is stored to with the grid: which block was to write it?".to_owned());
    finding
}

/// `96 of 128 elements are missing`.
fn share(missed: &Missed, what: &str) -> String {
    format!("{} of {} {what}", missed.elements.len(), missed.total)
}

impl Evidence<'_> {
    /// The finding for an output that is outside its tolerance.
    pub(super) fn wrong(&self, wrong: &Comparison) -> Result<Finding, Error> {
        let Comparison { tensor, tolerance, against, profile, .. } = wrong;
        let mut finding = self.trial.finding(self.case);
        finding.kind = "wrong result".to_owned();
        finding.tensor = Some(tensor.clone());
        let Some(first) = profile.first.first() else {
            finding.message = format!("`{tensor}` does not have the shape of {against}");
            finding.location = self.trial.definition();
            return Ok(finding);
        };
        finding.element = Some(first.clone());
        let writer = self.launches.iter().rev().find_map(|launch| launch.writer(tensor, &first.index));
        finding = finding.writer(writer.as_ref());
        match finding.location {
            Some(_) => finding.note(format!("the line shown wrote the first wrong element of `{tensor}`")),
            None => finding.location = self.trial.definition(),
        }
        finding.message = format!(
            "`{tensor}` is wrong: {} where {} is right, first at {}",
            first.got,
            first.wanted,
            self.place(tensor, &first.index)
        );
        finding.note(format!(
            "{} of {} elements are off by more than {tolerance:.1e}, compared with {against}",
            profile.wrong, profile.total
        ));
        self.tiles(&mut finding, tensor, &first.index);
        self.common(&mut finding, tensor, profile);
        if self.case.is_poisoned() && profile.nans > 0 {
            self.poison(&mut finding, tensor)?;
        } else {
            self.unvisited(&mut finding, tensor, wrong)?;
        }
        Ok(finding)
    }

    /// The names of an output's dimensions.
    fn dimensions(&self, tensor: &str) -> &'static [&'static str] {
        let spec = self.trial.runner.outputs().iter().find(|spec| spec.name == tensor);
        spec.map_or(&[], |spec| spec.dimensions)
    }

    /// `[0, 3] (R = 0, C = 3)`.
    fn place(&self, tensor: &str, index: &[usize]) -> String {
        let named = self.dimensions(tensor).iter().zip(index).map(|(name, at)| format!("{name} = {at}"));
        let named: Vec<String> = named.collect();
        if named.is_empty() { format!("{index:?}") } else { format!("{index:?} ({})", named.join(", ")) }
    }

    /// In which tile the first wrong element lies.
    fn tiles(&self, finding: &mut Finding, tensor: &str, index: &[usize]) {
        let tiles = (self.trial.runner.ladder().tiles)(&self.ready.settings, self.trial.target);
        let dimensions = self.dimensions(tensor);
        for Tile { dimension, extent: tile } in tiles {
            let Some(at) = dimensions.iter().position(|name| *name == dimension) else { continue };
            let (Some(index), Ok(extent)) = (index.get(at), self.case.sizes.get(dimension)) else { continue };
            let (number, count) = (index / tile.max(1), extent.div_ceil(tile.max(1)));
            let which = match () {
                () if count <= 1 => "the only tile",
                () if number == 0 => "the first tile",
                () if number + 1 == count => "the last tile",
                () => "a middle tile",
            };
            finding.note(format!(
                "{dimension} = {index} lies in {which}: number {number} of 0..{count}, each of {tile}, at its row {}",
                index % tile.max(1)
            ));
        }
    }

    /// What the wrong elements have in common.
    fn common(&self, finding: &mut Finding, tensor: &str, profile: &Profile) {
        if let Some(factor) = profile.factor {
            finding.kind = "wrong by a factor".to_owned();
            finding.message =
                format!("{}; all wrong elements of `{tensor}` are {factor:.4} times what is right", finding.message);
            finding.help = Some("look for a scale that is applied twice, or not at all".to_owned());
        } else if profile.factor_by_row {
            finding.kind = "wrong by a factor".to_owned();
            finding.message = format!("{}; each row of `{tensor}` is off by a factor of its own", finding.message);
            finding.help = Some("look for a scale of one row that is used for another, or for all".to_owned());
        }
        if profile.nans == profile.wrong {
            finding.note("all of them are NaN");
        } else if profile.nans > 0 {
            finding.note(format!("{} of them are NaN", profile.nans));
        }
        if profile.zeros == profile.wrong {
            finding.note("all of them are 0: nothing was added up there");
        }
        if profile.total <= profile.first.len() && profile.wrong == profile.total {
            let [got, wanted] = [|w: &crate::compare::Worst| w.got, |w: &crate::compare::Worst| w.wanted]
                .map(|of| profile.first.iter().map(of).collect::<Vec<f64>>());
            finding.note(format!("`{tensor}` in full: {got:.6?}; right is {wanted:.6?}"));
        }
    }

    /// NaN of padding has reached the result: the line that reads it.
    fn poison(&self, finding: &mut Finding, tensor: &str) -> Result<(), Error> {
        let strict = Checks::default();
        let (outcome, _) =
            self.trial.run(self.case, self.ready, 0, |device| device.with_checks(strict).with_poison(true));
        finding.kind = "padding reaches the result".to_owned();
        finding.help =
            Some("0 times NaN is NaN: `select` a zero in place of what is masked, or do not load it".to_owned());
        match outcome {
            Err(Error::Report(report)) if report.kind == ReportKind::Uninitialized => {
                let stored = finding.location.take();
                finding.location.clone_from(&report.location);
                finding.call_chain.clone_from(&report.call_chain);
                (finding.block, finding.thread) = (report.block, report.thread);
                let what = report.address.as_ref().map_or("memory", |address| address.allocation.as_str());
                finding.message = format!("padding of `{what}` reaches `{tensor}`: {}", finding.message);
                finding.notes.retain(|note| !note.starts_with("the line shown"));
                finding.note("the line shown reads the padding");
                if let Some(stored) = stored {
                    finding.note(format!("the result is stored at {stored}"));
                }
            }
            _ => finding.note("no single read of the padding was seen under the check `init`"),
        }
        Ok(())
    }

    /// Inputs that no thread has read, though the right result depends on them.
    fn unvisited(&self, finding: &mut Finding, tensor: &str, wrong: &Comparison) -> Result<(), Error> {
        let unread = self.launches.iter().flat_map(|launch| &launch.views).filter(|view| !view.mutable);
        for view in unread {
            let Some(missed) = view.unread() else { continue };
            if !self.matters(view, &missed, tensor, wrong)? {
                continue;
            }
            finding.kind = "unvisited input".to_owned();
            let stored = finding.location.take();
            if let Some((line, callers)) = view.reads.first().and_then(|lines| lines.split_first()) {
                finding.location = Some(line.clone());
                finding.call_chain = callers.to_vec();
                (finding.block, finding.thread) = (None, None);
                finding.notes.retain(|note| !note.starts_with("the line shown"));
                finding.note(format!("the line shown reads `{}`", view.name));
                if let Some(stored) = stored {
                    finding.note(format!("the first wrong element is stored at {stored}"));
                }
            } else {
                finding.location = stored;
            }
            finding.message = format!(
                "`{}` is not read in full: {}, the first is {:?}, and the result depends on it; {}",
                view.name,
                share(&missed, "elements are never read"),
                missed.first,
                finding.message
            );
            finding.help = Some(format!(
                "who reads `{}` from {:?} on? Compare the grid and the loops with its extents",
                view.name, missed.first
            ));
            finding.location = finding.location.take().or_else(|| self.trial.definition());
            return Ok(());
        }
        Ok(())
    }

    /// Whether the right result changes when elements of an input do.
    fn matters(&self, view: &RecordedView, missed: &Missed, tensor: &str, wrong: &Comparison) -> Result<bool, Error> {
        let Some(input) = self.ready.inputs.get(&view.name).filter(|input| is_float(input)) else { return Ok(false) };
        if input.len() != missed.total {
            return Ok(false);
        }
        let mut numbers = input.to_f64()?;
        for index in &missed.elements {
            if let Some(number) = numbers.get_mut(*index) {
                *number = 1.5 - *number;
            }
        }
        let mut inputs = self.ready.inputs.clone();
        inputs.insert(view.name.clone(), HostTensor::from_f64(input.scalar(), input.shape(), &numbers)?);
        let comparisons = self.trial.runner.compare(&self.ready.settings, &inputs, self.outputs)?;
        let changed = comparisons.iter().find(|comparison| comparison.tensor == tensor);
        Ok(changed.is_some_and(|changed| changed.profile.reference != wrong.profile.reference))
    }
}
