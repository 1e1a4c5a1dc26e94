//! Which checks a launch makes.

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
    /// `performance`: bank conflicts and uncoalesced accesses, counted for each source line.
    Performance,
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 6] =
        [Self::Initialized, Self::Nan, Self::Infinity, Self::Races, Self::Copies, Self::Performance];

    /// The name that turns it on and off.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initialized => "init",
            Self::Nan => "nan",
            Self::Infinity => "inf",
            Self::Races => "races",
            Self::Copies => "copies",
            Self::Performance => "performance",
        }
    }
}

/// Which checks run. By default all that hold for every correct kernel: all but [`Check::Infinity`]
/// (the logarithm of an empty sum is one) and [`Check::Performance`].
///
/// ```
/// use lacewing_runtime::emulator::{Check, Checks};
/// let checks = Checks::default().without(Check::Races);
/// assert_eq!(checks, "init,nan,copies".parse().unwrap());
/// assert_eq!(Checks::default(), "all".parse().unwrap());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Count bank conflicts and uncoalesced accesses.
    pub performance: bool,
    /// Operations that one warp may execute before it counts as an endless loop.
    pub op_budget: u64,
}

impl Default for Checks {
    fn default() -> Self {
        Self { initialized: true, nan: true, races: true, copies: true, ..Self::none() }
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

    fn flag(&mut self, check: Check) -> &mut bool {
        match check {
            Check::Initialized => &mut self.initialized,
            Check::Nan => &mut self.nan,
            Check::Infinity => &mut self.infinity,
            Check::Races => &mut self.races,
            Check::Copies => &mut self.copies,
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
                ("all", _) => {
                    [Check::Initialized, Check::Nan, Check::Races, Check::Copies].into_iter().fold(checks, Self::with)
                }
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
    fn checks_by_name() {
        assert_eq!("none".parse(), Ok(Checks::none()));
        assert_eq!("bounds, inf".parse(), Ok(Checks::none().with(Check::Infinity)));
        assert_eq!("all,performance".parse(), Ok(Checks::default().with(Check::Performance)));
        let refused = "race".parse::<Checks>().unwrap_err();
        assert!(refused.contains("no check `race`") && refused.contains("races, copies"), "{refused}");
    }
}
