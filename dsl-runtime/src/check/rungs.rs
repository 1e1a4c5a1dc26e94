//! Which inputs each rung tries.

use super::case::{Case, Fill, Trial};
use crate::error::Error;
use crate::runner::ladder::{is_float, shapes};
use crate::runner::{Runner, Sizes};

/// The rungs that every kernel has, from the simplest.
const RUNGS: [&str; 8] = ["compile", "ones", "zeros", "single", "random", "shapes", "gaps", "banks"];

/// The names of a kernel's rungs.
pub(super) fn names(runner: &dyn Runner) -> impl Iterator<Item = &'static str> {
    let variants = runner.ladder().variants;
    RUNGS.into_iter().chain(variants.iter().map(|variant| variant.name))
}

/// The cases to try, in order: of one rung, or of all.
pub(super) fn cases(trial: &Trial<'_>, rung: Option<&str>) -> Result<Vec<Case>, Error> {
    let Trial { runner, options, .. } = trial;
    let ladder = runner.ladder();
    let sizes = |text: &str| -> Result<Sizes, Error> {
        let mut sizes = Sizes::defaults(runner.dimensions());
        sizes.set(text)?;
        Ok(sizes)
    };
    let only = options.shape.as_deref();
    let default = sizes(only.unwrap_or(ladder.default))?;
    let case = |rung, sizes: &Sizes, fill| Case { rung, sizes: sizes.clone(), fill, padded: false, costs: false };

    let mut cases = vec![case("compile", &default, Fill::Nothing), case("ones", &default, Fill::Ones)];
    let zeros: Vec<&str> = match ladder.zeros {
        [] => {
            let inputs = trial.random(&default)?;
            let specs = runner.inputs().iter();
            specs.map(|spec| spec.name).filter(|name| inputs.get(*name).is_some_and(is_float)).collect()
        }
        named => named.to_vec(),
    };
    cases.extend(zeros.into_iter().map(|name| case("zeros", &default, Fill::Zero(name.to_owned()))));

    let single = match (only, ladder.single) {
        (Some(text), _) => sizes(text)?,
        (None, "") => {
            let ones: Vec<String> = runner.dimensions().iter().map(|d| format!("{}=1", d.name)).collect();
            sizes(&ones.join(","))?
        }
        (None, named) => sizes(named)?,
    };
    cases.push(case("single", &single, Fill::Random));
    cases.push(case("random", &default, Fill::Random));
    match only {
        Some(text) => cases.push(case("shapes", &sizes(text)?, Fill::Random)),
        None => {
            for shape in shapes(*runner, &trial.settings, trial.target) {
                cases.push(case("shapes", &sizes(&shape)?, Fill::Random));
            }
        }
    }
    cases.push(Case { padded: true, ..case("gaps", &default, Fill::Random) });
    cases.push(Case { costs: true, ..case("banks", &default, Fill::Random) });
    for variant in ladder.variants {
        let own = if variant.shape.is_empty() { ladder.default } else { variant.shape };
        let shape = sizes(only.unwrap_or(own))?;
        cases.push(case(variant.name, &shape, Fill::Variant(variant)));
    }
    if let Some(rung) = rung {
        cases.retain(|case| case.rung == rung);
    }
    Ok(cases)
}
