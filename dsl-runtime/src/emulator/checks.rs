//! Which checks a launch makes.

use std::fmt;
use std::str::FromStr;

/// A check that can be turned on and off by name. Bounds, alignment and barriers are always checked:
/// the emulator's own memory safety rests on the first two, and without the last nothing could go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// `init`: reads of bytes that nothing wrote.
    Initialized,
    /// `nan`: the first NaN that floating-point operations make of numbers, and that reaches memory.
    Nan,
    /// `inf`: the first infinity that an operation makes of finite numbers, whatever becomes of it.
    Infinity,
    /// `races`: accesses to shared memory that nothing orders, and to global memory by several blocks.
    Races,
    /// `copies`: asynchronous copies that are never waited for.
    Copies,
    /// `overflow`: an index of 32 bits that wraps and then reaches an address.
    Overflow,
    /// `shadow`: floats in binary64 beside those of the kernel, and where the two part.
    Shadow,
    /// `performance`: bank conflicts and uncoalesced accesses, counted for each source line.
    Performance,
}

/// How far a float may be from its shadow ([`Check::Shadow`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// So much of the shadow's magnitude.
    Relative(f64),
    /// So many units in the last place, of the coarsest format that the value has been through.
    Ulps(f64),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative(bound) => write!(f, "{bound}"),
            Self::Ulps(ulps) => write!(f, "{ulps}ulp"),
        }
    }
}

impl Bound {
    /// Reads `BOUND` or `BOUND,FLOOR`: how far a float may be off, and the difference that is none; 1e-3 when left out.
    ///
    /// # Errors
    /// In words, for text that is neither.
    pub fn with_floor(text: &str) -> Result<(Self, f64), String> {
        let Some((bound, floor)) = text.split_once(',') else { return Ok((text.parse()?, DEFAULT_FLOOR)) };
        let number = floor.trim().parse().ok().filter(|floor: &f64| floor.is_finite() && *floor >= 0.0);
        let floor = number.ok_or_else(|| format!("`{floor}` is no difference: give a number, as 0.001 or 0"))?;
        Ok((bound.parse()?, floor))
    }
}

/// A difference between a float and its shadow that is none.
const DEFAULT_FLOOR: f64 = 1e-3;

impl FromStr for Bound {
    type Err = String;

    /// `0.01` (relative) or `16ulp`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, make): (&str, fn(f64) -> Self) = match text.strip_suffix("ulp").or(text.strip_suffix("ulps")) {
            Some(number) => (number.trim(), Self::Ulps),
            None => (text, Self::Relative),
        };
        let bound = number.parse().ok().filter(|bound: &f64| bound.is_finite() && *bound >= 0.0);
        bound.map(make).ok_or_else(|| {
            format!("`{text}` is no bound: give a part of the value, as 0.01, or units in the last place, as 16ulp")
        })
    }
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 8] = [
        Self::Initialized,
        Self::Nan,
        Self::Infinity,
        Self::Races,
        Self::Copies,
        Self::Overflow,
        Self::Shadow,
        Self::Performance,
    ];

    /// The name that turns it on and off.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initialized => "init",
            Self::Nan => "nan",
            Self::Infinity => "inf",
            Self::Races => "races",
            Self::Copies => "copies",
            Self::Overflow => "overflow",
            Self::Shadow => "shadow",
            Self::Performance => "performance",
        }
    }
}

/// Which checks run. By default all that hold for every correct kernel: all but [`Check::Infinity`]
/// (the logarithm of an empty sum is one), [`Check::Shadow`] (what is near enough is the kernel's to say) and
/// [`Check::Performance`].
///
/// ```
/// use lacewing_runtime::emulator::{Check, Checks};
/// let checks = Checks::default().without(Check::Races);
/// assert_eq!(checks, "init,nan,copies,overflow".parse().unwrap());
/// assert_eq!(Checks::default(), "all".parse().unwrap());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checks {
    /// Report reads of bytes that nothing wrote.
    pub initialized: bool,
    /// Report the first NaN that is made of numbers and reaches memory.
    pub nan: bool,
    /// Report the first infinity that is made of finite numbers.
    pub infinity: bool,
    /// Report accesses to memory that nothing orders.
    pub races: bool,
    /// Report copies that are never waited for.
    pub copies: bool,
    /// Report an index of 32 bits that wraps and then reaches an address.
    pub overflow: bool,
    /// Report floats that go to global memory further from their shadow in binary64 than the bound allows. One host
    /// thread runs the launch then, many times as slowly.
    pub shadow: bool,
    /// How far a float may be from its shadow.
    pub shadow_bound: Bound,
    /// A difference up to this is none where a value goes to memory: numbers that should be 0 have no relative error.
    pub shadow_floor: f64,
    /// Count bank conflicts and uncoalesced accesses.
    pub performance: bool,
    /// Operations that one warp may execute before it counts as an endless loop.
    pub op_budget: u64,
}

impl Default for Checks {
    fn default() -> Self {
        Self { initialized: true, nan: true, races: true, copies: true, overflow: true, ..Self::none() }
    }
}

impl Checks {
    /// No check that can be turned off.
    pub fn none() -> Self {
        Self {
            initialized: false,
            nan: false,
            infinity: false,
            races: false,
            copies: false,
            overflow: false,
            shadow: false,
            shadow_bound: Bound::Relative(0.05),
            shadow_floor: DEFAULT_FLOOR,
            performance: false,
            op_budget: 1 << 32,
        }
    }

    /// The same with a check turned on.
    #[must_use]
    pub fn with(mut self, check: Check) -> Self {
        *self.flag(check) = true;
        self
    }

    /// The same with a check turned off.
    #[must_use]
    pub fn without(mut self, check: Check) -> Self {
        *self.flag(check) = false;
        self
    }

    /// The same with another limit for endless loops.
    #[must_use]
    pub fn with_op_budget(mut self, operations: u64) -> Self {
        self.op_budget = operations;
        self
    }

    /// The same with shadows on: a value that goes to memory may be off by `bound`, and by `floor` in any case.
    #[must_use]
    pub fn with_shadow(mut self, bound: Bound, floor: f64) -> Self {
        (self.shadow, self.shadow_bound, self.shadow_floor) = (true, bound, floor);
        self
    }

    fn flag(&mut self, check: Check) -> &mut bool {
        match check {
            Check::Initialized => &mut self.initialized,
            Check::Nan => &mut self.nan,
            Check::Infinity => &mut self.infinity,
            Check::Races => &mut self.races,
            Check::Copies => &mut self.copies,
            Check::Overflow => &mut self.overflow,
            Check::Shadow => &mut self.shadow,
            Check::Performance => &mut self.performance,
        }
    }
}

impl FromStr for Checks {
    type Err = String;

    /// `all` (the defaults), `none`, or names of checks with commas; `all,inf` adds to the defaults.
    /// `bounds` is always on and may be named.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut checks = Self::none();
        for name in text.split(',').map(str::trim) {
            let known = Check::ALL.into_iter().find(|check| check.name() == name);
            checks = match (name, known) {
                (_, Some(check)) => checks.with(check),
                ("all", _) => [Check::Initialized, Check::Nan, Check::Races, Check::Copies, Check::Overflow]
                    .into_iter()
                    .fold(checks, Self::with),
                ("none" | "bounds", _) => checks,
                _ => {
                    let names = Check::ALL.map(Check::name).join(", ");
                    return Err(format!("there is no check `{name}`\n  known: all, none, bounds, {names}"));
                }
            };
        }
        Ok(checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_parts_or_units() {
        assert_eq!("0.01".parse(), Ok(Bound::Relative(0.01)));
        assert_eq!("16ulp".parse(), Ok(Bound::Ulps(16.0)));
        assert_eq!(" 4 ulps".parse(), Ok(Bound::Ulps(4.0)));
        assert_eq!(Bound::with_floor("0.5,0"), Ok((Bound::Relative(0.5), 0.0)));
        assert_eq!(Bound::with_floor("2ulp"), Ok((Bound::Ulps(2.0), 1e-3)));
        assert!(Bound::with_floor("2ulp,x").unwrap_err().contains("no difference"));
        assert_eq!(Bound::Ulps(2.0).to_string().parse(), Ok(Bound::Ulps(2.0)));
        for wrong in ["", "ulp", "-1", "nan", "1%"] {
            assert!(wrong.parse::<Bound>().unwrap_err().contains("is no bound"), "{wrong}");
        }
    }

    #[test]
    fn checks_by_name() {
        assert_eq!("none".parse(), Ok(Checks::none()));
        assert_eq!("bounds, inf".parse(), Ok(Checks::none().with(Check::Infinity)));
        assert_eq!("all,performance".parse(), Ok(Checks::default().with(Check::Performance)));
        let refused = "race".parse::<Checks>().unwrap_err();
        assert!(refused.contains("no check `race`") && refused.contains("races, copies"), "{refused}");
    }
}
