//! The clock of a recording: most count ns, the counter of an x86 CPU is converted, others are refused.

use schedlab_model::Nanos;

use crate::error::Fault;

/// Those that count nanoseconds (kernel/trace/trace.c, `trace_clocks` with `in_ns`).
const IN_NS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

/// How the times of a file become ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// They are ns.
    Ns,
    /// `time * mult >> shift`: the counter of the CPU with the multiplier that trace-cmd stored (TSC2NSEC).
    Scaled { mult: u32, shift: u32 },
}

impl Clock {
    /// The clock of this name. The fault says why its times cannot be converted.
    pub fn of(name: Option<&str>, scale: Option<(u32, u32)>) -> Result<Clock, Fault> {
        let Some(name) = name else { return Ok(Clock::Ns) };
        let refused = |why: &str| {
            let what = format!("it was recorded with the clock {name}, {why}");
            Err(Fault::foreign(what, "record with a clock in ns: trace-cmd record -C mono, or without -C"))
        };
        match (name, scale) {
            (name, _) if IN_NS.contains(&name) => Ok(Clock::Ns),
            ("x86-tsc", Some((mult, shift))) if shift < 64 && mult > 0 => Ok(Clock::Scaled { mult, shift }),
            ("x86-tsc", _) => refused(
                "the counter of the CPU, and has no multiplier (TSC2NSEC) that makes it ns; trace-cmd stores one with -C tsc2nsec",
            ),
            ("counter", _) => refused("which counts events and no time"),
            ("uptime", _) => refused("which counts ticks and no ns"),
            _ => refused("whose unit is not known"),
        }
    }

    /// A time in ns.
    pub fn ns(self, time: u64) -> Nanos {
        match self {
            Clock::Ns => time,
            Clock::Scaled { mult, shift } => ((u128::from(time) * u128::from(mult)) >> shift) as u64,
        }
    }
}

/// The clock that is set in the content of the file `trace_clock`: `local global [mono]`, or a bare name.
pub fn chosen(text: &str) -> Option<String> {
    let text = text.trim_end_matches(char::from(0)).trim();
    let set = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    let bare = Some(text).filter(|text| !text.is_empty() && !text.contains(char::is_whitespace));
    set.or(bare).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_ns_converted_or_refused() {
        let names =
            ["local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc", "new"];
        for name in names {
            let chosen = chosen(&format!("one [{name}] another\n\0"));
            assert_eq!(chosen.as_deref(), Some(name));
            assert_eq!(Clock::of(chosen.as_deref(), None).is_ok(), IN_NS.contains(&name), "{name}");
        }
        assert_eq!(chosen("mono").as_deref(), Some("mono"));
        assert_eq!((chosen(""), chosen("local global")), (None, None));
        assert_eq!(Clock::of(None, None).ok(), Some(Clock::Ns));
        let tsc = Clock::of(Some("x86-tsc"), Some((1 << 31, 32))).unwrap();
        assert_eq!(tsc.ns(3_000_000_000), 1_500_000_000);
        assert_eq!(Clock::Scaled { mult: u32::MAX, shift: 0 }.ns(u64::MAX) & 1, 1);
    }
}
