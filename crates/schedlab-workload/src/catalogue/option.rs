//! A program's options: one declarative table each, values checked against it.

use schedlab_model::{Nanos, MSEC, SEC, USEC};

use super::Entry;
use schedlab_model::closest;

/// A value as the scenario gives it.
#[derive(Clone, PartialEq, Debug)]
pub enum OptionValue {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A string.
    Text(String),
}

/// Where the user wrote an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Where {
    /// Line, 1 for the first; 0 if unknown.
    pub line: u32,
    /// Column, 1 for the first; 0 if unknown.
    pub column: u32,
}

/// The unit of a bare number where a time is meant: the program's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// One of it.
    #[must_use]
    pub const fn nanos(self) -> Nanos {
        match self {
            TimeUnit::Microseconds => USEC,
            TimeUnit::Milliseconds => MSEC,
            TimeUnit::Seconds => SEC,
        }
    }

    /// How it is written.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }
}

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionKind {
    /// A boolean.
    Flag,
    /// A whole number within these bounds.
    Number {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A time: a number in the program's unit, or a string with a unit such as `"1ms"`.
    Time {
        /// Unit of a bare number.
        unit: TimeUnit,
        /// Shortest.
        min: Nanos,
        /// Longest.
        max: Nanos,
    },
    /// A whole number from 1 to this one, or `true` (or 0) for one per CPU.
    NumberOrPerCpu(i64),
    /// CPUs as `"0,2-3"`, `"!0"` or a number, or `true` for all.
    Cpus,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The real program has it, the model does not, for this reason.
    NotModelled(&'static str),
}

/// The value of an option that is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// A flag.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A time in ns.
    Time(Nanos),
    /// A word.
    Word(&'static str),
    /// The number of CPUs of the machine, divided by the message threads where there are some.
    PerCpu,
    /// Nothing: what happens then stands in the help.
    Unset,
}

/// One option of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionSpec {
    /// The long option, without dashes in front.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// Its value if not given.
    pub default: Preset,
    /// What it does, in a few words.
    pub help: &'static str,
    /// The program's short option for it, without the dash; empty if it has none.
    pub short: &'static str,
}

impl OptionSpec {
    /// A flag, off by default.
    pub(super) const fn flag(name: &'static str, help: &'static str) -> Self {
        OptionSpec { name, kind: OptionKind::Flag, default: Preset::Flag(false), help, short: "" }
    }

    /// A number with its default and bounds.
    pub(super) const fn number(name: &'static str, default: i64, min: i64, max: i64, help: &'static str) -> Self {
        OptionSpec { name, kind: OptionKind::Number { min, max }, default: Preset::Number(default), help, short: "" }
    }

    /// A time with its default and largest value, both in `unit`.
    pub(super) const fn time(name: &'static str, unit: TimeUnit, default: u64, max: u64, help: &'static str) -> Self {
        let kind = OptionKind::Time { unit, min: 0, max: max * unit.nanos() };
        OptionSpec { name, kind, default: Preset::Time(default * unit.nanos()), help, short: "" }
    }

    /// An option of the program that has no model.
    pub(super) const fn not_modelled(name: &'static str, why: &'static str) -> Self {
        OptionSpec { name, kind: OptionKind::NotModelled(why), default: Preset::Unset, help: "not modelled", short: "" }
    }

    /// The same option, which the program also takes under this short name.
    pub(super) const fn short(self, short: &'static str) -> Self {
        OptionSpec { short, ..self }
    }

    /// Whether `key` is its long or its short name.
    #[must_use]
    pub fn is_called(&self, key: &str) -> bool {
        self.name == key || (!self.short.is_empty() && self.short == key)
    }

    /// The same option with another default.
    pub(super) const fn default(self, default: Preset) -> Self {
        OptionSpec { default, ..self }
    }

    /// What a user may write.
    #[must_use]
    pub fn expected(&self) -> String {
        match self.kind {
            OptionKind::Flag => "true or false".to_string(),
            OptionKind::Number { min, max } => format!("a whole number from {min} to {max}"),
            OptionKind::Time { unit, min, max } => {
                let (suffix, each) = (unit.suffix(), unit.nanos());
                format!(
                    "a time from {}{suffix} to {}{suffix}, as \"1{suffix}\" or a number of {suffix}",
                    min / each,
                    max / each
                )
            }
            OptionKind::NumberOrPerCpu(max) => format!("a whole number from 1 to {max}, or true: one per CPU"),
            OptionKind::Cpus => "true for all CPUs, a CPU, or CPUs such as \"0,2-3\" or \"!0\"".to_string(),
            OptionKind::Choice(words) => format!("one of {}", words.join(", ")),
            OptionKind::NotModelled(why) => format!("nothing: {why}"),
        }
    }
}

/// Why a workload could not be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct BuildError {
    /// The key concerned.
    pub key: String,
    /// Where the user wrote it.
    pub at: Where,
    /// What is wrong.
    pub what: String,
    /// What was expected, empty if nothing can be said.
    pub expected: String,
    /// The nearest valid name.
    pub nearest: Option<String>,
}

impl BuildError {
    pub(super) fn new(key: &str, what: impl Into<String>) -> Self {
        let at = Where::default();
        BuildError { key: key.to_string(), at, what: what.into(), expected: String::new(), nearest: None }
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = expected.into();
        self
    }

    pub(super) fn nearest(mut self, nearest: Option<&str>) -> Self {
        self.nearest = nearest.map(String::from);
        self
    }

    fn at(mut self, at: Where) -> Self {
        self.at = at;
        self
    }

    /// What would be right, in one line; empty if nothing can be said.
    #[must_use]
    pub fn hint(&self) -> String {
        match (&self.nearest, self.expected.is_empty()) {
            (Some(near), true) => format!("did you mean `{near}`?"),
            (Some(near), false) => format!("did you mean `{near}`? expected {}", self.expected),
            (None, false) => format!("expected {}", self.expected),
            (None, true) => String::new(),
        }
    }
}

/// A checked value.
#[derive(Clone, PartialEq, Debug)]
enum Value {
    Flag(bool),
    Number(i64),
    Time(Nanos),
    Word(String),
}

/// The options of one build, checked, with their defaults.
pub(crate) struct Settings<'a> {
    /// The workload's name in the scenario.
    pub name: &'a str,
    /// Start again at the end, for ever.
    pub repeat: bool,
    /// CPUs of the machine.
    pub nr_cpus: usize,
    entry: &'static Entry,
    given: Vec<(&'static str, Value, Where)>,
}

impl<'a> Settings<'a> {
    /// Checks what was given against the program's table.
    pub fn read(
        entry: &'static Entry,
        options: &[(String, OptionValue, Where)],
        name: &'a str,
        repeat: bool,
        nr_cpus: usize,
    ) -> Result<Self, BuildError> {
        let mut given: Vec<(&'static str, Value, Where)> = Vec::new();
        for (key, value, at) in options {
            let spec = spec_of(entry, key).map_err(|error| error.at(*at))?;
            let value = check(entry, spec, value).map_err(|error| error.at(*at))?;
            if given.iter().any(|(known, ..)| *known == spec.name) {
                return Err(BuildError::new(key, format!("`{key}` is given twice")).at(*at));
            }
            given.push((spec.name, value, *at));
        }
        Ok(Settings { name, repeat, nr_cpus: nr_cpus.max(1), entry, given })
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.given.iter().find(|(name, ..)| *name == key).map(|(_, value, _)| value)
    }

    fn default_of(&self, key: &str) -> Preset {
        let spec = self.entry.options.iter().find(|spec| spec.name == key);
        debug_assert!(spec.is_some(), "{} has no option {key}", self.entry.id);
        spec.map_or(Preset::Unset, |spec| spec.default)
    }

    /// Whether the option was given a value other than 0 and false.
    pub fn is_set(&self, key: &str) -> bool {
        match self.value(key) {
            Some(Value::Flag(on)) => *on,
            Some(Value::Number(number)) => *number != 0,
            Some(Value::Time(time)) => *time != 0,
            Some(Value::Word(_)) => true,
            None => false,
        }
    }

    /// Whether the option was given at all.
    pub fn is_given(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// A flag.
    pub fn flag(&self, key: &str) -> bool {
        match (self.value(key), self.default_of(key)) {
            (Some(Value::Flag(on)), _) => *on,
            (None, Preset::Flag(on)) => on,
            _ => false,
        }
    }

    /// A number; checked to be within its bounds, so never negative unless they allow it.
    pub fn number(&self, key: &str) -> i64 {
        match (self.value(key), self.default_of(key)) {
            (Some(Value::Number(number)), _) => *number,
            (None, Preset::Number(number)) => number,
            (None, Preset::PerCpu) => self.nr_cpus as i64,
            _ => 0,
        }
    }

    /// A number that its bounds keep within u32.
    pub fn count(&self, key: &str) -> u32 {
        u32::try_from(self.number(key)).unwrap_or(0)
    }

    /// A time.
    pub fn time(&self, key: &str) -> Nanos {
        match (self.value(key), self.default_of(key)) {
            (Some(Value::Time(time)), _) => *time,
            (None, Preset::Time(time)) => time,
            _ => 0,
        }
    }

    /// A word.
    pub fn word(&self, key: &str) -> String {
        match (self.value(key), self.default_of(key)) {
            (Some(Value::Word(word)), _) => word.clone(),
            (None, Preset::Word(word)) => word.to_string(),
            _ => String::new(),
        }
    }

    /// An error about an option's value.
    pub fn error(&self, key: &str, what: impl Into<String>) -> BuildError {
        let at = self.given.iter().find(|(name, ..)| *name == key).map_or(Where::default(), |(.., at)| *at);
        BuildError::new(key, what).at(at)
    }
}

/// The table's line for a key.
fn spec_of(entry: &'static Entry, key: &str) -> Result<&'static OptionSpec, BuildError> {
    let spec = entry.options.iter().find(|spec| spec.is_called(key)).ok_or_else(|| {
        let known = || entry.options.iter().filter(|spec| !matches!(spec.kind, OptionKind::NotModelled(_)));
        let names: Vec<&str> = known().map(|spec| spec.name).collect();
        BuildError::new(key, format!("{} has no option `{key}`", entry.id))
            .expected(format!("one of {}", names.join(", ")))
            .nearest(closest(key, names.iter().copied()))
    })?;
    match spec.kind {
        OptionKind::NotModelled(why) => {
            Err(BuildError::new(key, format!("option `{key}` of {} is not modelled: {why}", entry.id)))
        }
        _ => Ok(spec),
    }
}

fn check(entry: &Entry, spec: &OptionSpec, value: &OptionValue) -> Result<Value, BuildError> {
    let wrong = || {
        let what = format!("option `{}` of {} cannot be {}", spec.name, entry.id, shown(value));
        BuildError::new(spec.name, what).expected(spec.expected())
    };
    match (spec.kind, value) {
        (OptionKind::Flag, OptionValue::Bool(on)) => Ok(Value::Flag(*on)),
        (OptionKind::Number { min, max }, OptionValue::Int(number)) if (min..=max).contains(number) => {
            Ok(Value::Number(*number))
        }
        (OptionKind::NumberOrPerCpu(_), OptionValue::Bool(true)) => Ok(Value::Number(0)),
        (OptionKind::NumberOrPerCpu(max), OptionValue::Int(number)) if (0..=max).contains(number) => {
            Ok(Value::Number(*number))
        }
        (OptionKind::Cpus, OptionValue::Bool(true)) => Ok(Value::Word(String::new())),
        (OptionKind::Cpus, OptionValue::Int(cpu)) => Ok(Value::Word(cpu.to_string())),
        (OptionKind::Cpus, OptionValue::Text(cpus)) => Ok(Value::Word(cpus.clone())),
        (OptionKind::Time { unit, min, max }, value) => {
            let time = time_of(unit, value).ok_or_else(wrong)?;
            (min..=max).contains(&time).then_some(Value::Time(time)).ok_or_else(wrong)
        }
        (OptionKind::Choice(words), OptionValue::Text(word)) => match words.iter().find(|known| *known == word) {
            Some(known) => Ok(Value::Word((*known).to_string())),
            None => Err(wrong().nearest(closest(word, words.iter().copied()))),
        },
        _ => Err(wrong()),
    }
}

fn shown(value: &OptionValue) -> String {
    match value {
        OptionValue::Bool(on) => on.to_string(),
        OptionValue::Int(number) => number.to_string(),
        OptionValue::Float(number) => number.to_string(),
        OptionValue::Text(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
    }
}

/// A time as an option takes it: a bare number counts in `unit`. `None` if it is none.
#[must_use]
pub fn time_of(unit: TimeUnit, value: &OptionValue) -> Option<Nanos> {
    let scaled = |number: f64, each: Nanos| {
        let nanos = number * each as f64;
        (nanos.is_finite() && (0.0..=9.2e18).contains(&nanos)).then_some(nanos.round() as Nanos)
    };
    match value {
        OptionValue::Int(number) => u64::try_from(*number).ok()?.checked_mul(unit.nanos()),
        OptionValue::Float(number) => scaled(*number, unit.nanos()),
        OptionValue::Text(text) => {
            let text = text.trim();
            let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, suffix) = text.split_at(digits);
            let each = match suffix.trim_start() {
                "ns" => 1,
                "us" => USEC,
                "ms" => MSEC,
                "s" => SEC,
                _ => return None,
            };
            scaled(number.parse().ok()?, each)
        }
        OptionValue::Bool(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_units_or_count_in_the_programs_own() {
        let text = |t: &str| OptionValue::Text(t.into());
        let cases = [
            (OptionValue::Int(5), Some(5_000)),
            (OptionValue::Float(0.5), Some(500)),
            (text("1ms"), Some(1_000_000)),
            (text("1.5 s"), Some(1_500_000_000)),
            (text("20 ns"), Some(20)),
            (text("5"), None),
            (text("ms"), None),
            (text("1h"), None),
            (text("-1ms"), None),
            (OptionValue::Int(-1), None),
            (OptionValue::Int(i64::MAX), None),
            (OptionValue::Float(f64::NAN), None),
            (OptionValue::Bool(true), None),
        ];
        for (value, want) in cases {
            assert_eq!(time_of(TimeUnit::Microseconds, &value), want, "{value:?}");
        }
    }
}
