//! The smallest shape that still fails: a case that a person can follow by hand.

use super::case::{Case, Outcome, Trial};
use super::finding::Finding;
use crate::error::Error;
use crate::runner::Sizes;

/// Runs that looking for a smaller shape may cost.
const RUNS: usize = 60;

/// A search in progress.
struct Search<'a> {
    trial: &'a Trial<'a>,
    case: Case,
    finding: Finding,
    runs: usize,
}

/// The same finding at the smallest shape where it shows, with what is known of larger and smaller ones.
pub(super) fn smallest(trial: &Trial<'_>, case: &Case, finding: Finding) -> Result<Finding, Error> {
    // A shape that the caller asked for is the one to tell about.
    let fixed = trial.options.shape.is_some() || finding.shape.is_empty() || finding.kind == "refused";
    if fixed || finding.kind == "bank conflicts" {
        return Ok(finding);
    }
    let names: Vec<&'static str> = trial.runner.dimensions().iter().map(|dimension| dimension.name).collect();
    let found_at = case.sizes.text();
    let first = finding.element.as_ref().map_or_else(String::new, |first| {
        format!(" (there the first wrong element is {:?}: {} for {})", first.index, first.got, first.wanted)
    });
    let mut search = Search { trial, case: case.clone(), finding, runs: 0 };
    // Twice: one dimension may hold another up (heads must divide heads).
    for _ in 0..2 {
        for name in &names {
            search.shrink(name)?;
        }
    }
    let mut bounds = Vec::new();
    for name in &names {
        bounds.extend(search.bound(name)?);
    }
    let Search { case, mut finding, .. } = search;
    if case.sizes.text() != found_at {
        let smallest = case.sizes.text();
        finding.note(format!("found with {found_at}{first}; {smallest} is the smallest shape seen to fail"));
    }
    for bound in bounds {
        finding.note(bound);
    }
    Ok(finding)
}

impl Search<'_> {
    /// The finding with one dimension changed, if it is the same one.
    fn fails(&mut self, name: &str, value: usize) -> Result<Option<(Sizes, Finding)>, Error> {
        self.runs += 1;
        let mut sizes = self.case.sizes.clone();
        sizes.put(name, value);
        let case = Case { sizes: sizes.clone(), ..self.case.clone() };
        // Sizes that the kernel refuses show nothing.
        let outcome = match self.trial.attempt(&case) {
            Err(error) if error.is_input() => return Ok(None),
            outcome => outcome?,
        };
        let Outcome::Wrong(found) = outcome else { return Ok(None) };
        let line = |finding: &Finding| finding.location.as_ref().map(|l| (l.file.clone(), l.line));
        let same = found.kind == self.finding.kind && line(&found) == line(&self.finding);
        Ok(same.then_some((sizes, *found)))
    }

    fn accept(&mut self, (sizes, finding): (Sizes, Finding)) {
        self.case.sizes = sizes;
        self.finding = finding;
    }

    /// Makes one dimension as small as the failure allows.
    fn shrink(&mut self, name: &str) -> Result<(), Error> {
        let mut high = self.case.sizes.get(name)?;
        if high <= 1 || self.runs >= RUNS {
            return Ok(());
        }
        if let Some(found) = self.fails(name, 1)? {
            self.accept(found);
            return Ok(());
        }
        let mut low = 1;
        while high - low > 1 && self.runs < RUNS {
            let middle = low + (high - low) / 2;
            match self.fails(name, middle)? {
                Some(found) => {
                    self.accept(found);
                    high = middle;
                }
                None => low = middle,
            }
        }
        Ok(())
    }

    /// What is known of the next smaller extent: it holds, and a tile ends there.
    fn bound(&mut self, name: &str) -> Result<Option<String>, Error> {
        let value = self.case.sizes.get(name)?;
        if value <= 1 {
            return Ok(None);
        }
        let mut sizes = self.case.sizes.clone();
        sizes.put(name, value - 1);
        let case = Case { sizes, ..self.case.clone() };
        if !matches!(self.trial.attempt(&case), Ok(Outcome::Holds)) {
            return Ok(None);
        }
        let tiles = (self.trial.runner.ladder().tiles)(&self.trial.settings, self.trial.target);
        let tile = tiles.iter().find(|tile| tile.dimension == name).map(|tile| tile.extent);
        let before = value - 1;
        Ok(Some(match tile {
            Some(tile) if tile > 1 && before.is_multiple_of(tile) => {
                let count = before / tile;
                let tiles = if count == 1 { "one tile".to_owned() } else { format!("{count} tiles") };
                format!(
                    "right with {name} = {before} ({tiles} of {tile}): it goes wrong with tile number {count}, counted \
                     from 0"
                )
            }
            _ => format!("right with {name} = {before}"),
        }))
    }
}
