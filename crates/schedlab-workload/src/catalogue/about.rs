//! What is known about a program of the catalogue: its structure, its numbers with their sources, what is simplified.

use schedlab_model::Nanos;

/// What `schedlab list workloads NAME` shows of a program in addition to its options and metrics.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its tasks, who wakes whom, and the system calls and switches of an operation; a sentence or more each.
    pub structure: &'static [&'static str],
    /// The numbers that are part of the program, with their sources.
    pub parameters: &'static [Parameter],
    /// How the model differs from the program; a sentence or more each.
    pub simplified: &'static [&'static str],
}

/// A number of a program.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// Its value.
    pub value: Quantity,
    /// Where it comes from, or why it was chosen.
    pub source: &'static str,
}

/// The value of a parameter. A number that the program uses as a constant is stated by that constant.
#[derive(Clone, Copy, Debug)]
pub enum Quantity {
    /// A time in ns.
    Time(Nanos),
    /// A time in ps.
    Picos(u64),
    /// A time between two bounds, in ns.
    Between(Nanos, Nanos),
    /// A number.
    Number(u64),
    /// Several numbers, or one with its unit.
    Words(&'static str),
}

/// A parameter and its source.
pub(super) const fn parameter(name: &'static str, value: Quantity, source: &'static str) -> Parameter {
    Parameter { name, value, source }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Quantity::Time(ns) => f.write_str(&time(*ns as f64)),
            Quantity::Picos(ps) => f.write_str(&time(*ps as f64 / 1e3)),
            Quantity::Between(low, high) => write!(f, "{} to {}", time(*low as f64), time(*high as f64)),
            Quantity::Number(number) => write!(f, "{number}"),
            Quantity::Words(words) => f.write_str(words),
        }
    }
}

/// A time in the largest unit of which there is at least one.
fn time(ns: f64) -> String {
    let (each, unit) = match ns {
        _ if ns >= 1e9 => (1e9, "s"),
        _ if ns >= 1e6 => (1e6, "ms"),
        _ if ns >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", (ns / each * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_the_largest_unit() {
        let cases = [
            (Quantity::Time(673_628), "673.628 us"),
            (Quantity::Time(2_000_000_000), "2 s"),
            (Quantity::Picos(462), "0.462 ns"),
            (Quantity::Between(85_000, 1_500_000), "85 us to 1.5 ms"),
            (Quantity::Number(20), "20"),
            (Quantity::Words("4 bytes"), "4 bytes"),
        ];
        for (quantity, want) in cases {
            assert_eq!(quantity.to_string(), want);
        }
    }
}
