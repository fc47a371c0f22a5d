//! Scheduling policies.

use schedlab_model::{Nanos, MSEC, SEC, USEC};
use serde::{Deserialize, Serialize};

/// Scheduling policy of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Policy {
    /// SCHED_OTHER.
    #[default]
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO at this priority, 1..=99.
    Fifo(u8),
    /// SCHED_RR at this priority, 1..=99.
    RoundRobin(u8),
    /// SCHED_DEADLINE.
    Deadline(Deadline),
}

impl std::fmt::Display for Policy {
    /// As scenario files write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Policy::Normal => f.write_str("normal"),
            Policy::Batch => f.write_str("batch"),
            Policy::Idle => f.write_str("idle"),
            Policy::Fifo(priority) => write!(f, "fifo:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "rr:{priority}"),
            Policy::Deadline(deadline) => write!(f, "deadline:{deadline}"),
        }
    }
}

/// Parameters of SCHED_DEADLINE (`struct sched_attr`), all in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deadline {
    /// `sched_runtime`: what the task may run in each period.
    pub runtime: Nanos,
    /// `sched_deadline`: until when after a wakeup.
    pub deadline: Nanos,
    /// `sched_period`.
    pub period: Nanos,
}

/// The shortest runtime (`1 << DL_SCALE`).
pub const DL_RUNTIME_MIN: Nanos = 1024;
/// The shortest and the longest period (the defaults of `sched_deadline_period_min_us` and
/// `sched_deadline_period_max_us` of 6.1 and 6.12).
pub const DL_PERIOD: (Nanos, Nanos) = (100 * USEC, (1 << 22) * USEC);

impl Deadline {
    /// `__checkparam_dl` (kernel/sched/deadline.c 6.12), also on older kernels: what is refused, and what is taken.
    pub fn check(self) -> Result<(), (String, String)> {
        let Deadline { runtime, deadline, period } = self;
        let [runtime_text, deadline_text, period_text] = [runtime, deadline, period].map(duration);
        let (least, most) = DL_PERIOD;
        if runtime < DL_RUNTIME_MIN {
            let hint = format!("at least {DL_RUNTIME_MIN}ns");
            return Err((format!("a runtime of {runtime_text} is too short for SCHED_DEADLINE"), hint));
        }
        if deadline < runtime {
            let what = format!("the deadline, {deadline_text}, is shorter than the runtime, {runtime_text}");
            return Err((what, "runtime <= deadline <= period".into()));
        }
        if period < deadline {
            let what = format!("the period, {period_text}, is shorter than the deadline, {deadline_text}");
            return Err((what, "runtime <= deadline <= period".into()));
        }
        if !(least..=most).contains(&period) {
            let hint = format!("from {} to {}", duration(least), duration(most));
            return Err((format!("the kernel rejects a SCHED_DEADLINE period of {period_text}"), hint));
        }
        Ok(())
    }
}

impl std::fmt::Display for Deadline {
    /// As scenario files write it: runtime/period, or runtime/deadline/period.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Deadline { runtime, deadline, period } = *self;
        write!(f, "{}/", duration(runtime))?;
        if deadline != period {
            write!(f, "{}/", duration(deadline))?;
        }
        f.write_str(&duration(period))
    }
}

/// A duration in the largest unit in which it is a whole number.
fn duration(ns: Nanos) -> String {
    let unit = [(SEC, "s"), (MSEC, "ms"), (USEC, "us")].into_iter().find(|(unit, _)| ns > 0 && ns % unit == 0);
    let (scale, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", ns / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked_as_the_kernel_does() {
        // Runtime, deadline and period in ns; a part of the message, none if they pass.
        let cases: &[(Nanos, Nanos, Nanos, Option<&str>)] = &[
            (1024, 100_000, 100_000, None),
            (1023, 100_000, 100_000, Some("a runtime of 1023ns")),
            (5 * MSEC, 5 * MSEC, 5 * MSEC, None),
            (6 * MSEC, 5 * MSEC, 10 * MSEC, Some("the deadline, 5ms, is shorter than the runtime, 6ms")),
            (MSEC, 5 * MSEC, 4 * MSEC, Some("the period, 4ms, is shorter than the deadline, 5ms")),
            (2000, 99_999, 99_999, Some("a SCHED_DEADLINE period of 99999ns")),
            (MSEC, 4_194_304_000, 4_194_304_000, None),
            (MSEC, MSEC, 4_194_304_001, Some("a SCHED_DEADLINE period")),
        ];
        for (runtime, deadline, period, want) in cases {
            let got = Deadline { runtime: *runtime, deadline: *deadline, period: *period }.check();
            match (want, &got) {
                (None, Ok(())) => {}
                (Some(part), Err((what, hint))) => assert!(what.contains(part) && !hint.is_empty(), "{what}"),
                _ => panic!("{runtime}/{deadline}/{period}: {got:?}"),
            }
        }
    }

    #[test]
    fn policies_are_written_as_scenarios_write_them() {
        let deadline = |runtime, deadline, period| Policy::Deadline(Deadline { runtime, deadline, period }).to_string();
        assert_eq!(deadline(5 * MSEC, 30 * MSEC, 30 * MSEC), "deadline:5ms/30ms");
        assert_eq!(deadline(1500 * USEC, 2 * SEC, 3 * SEC), "deadline:1500us/2s/3s");
    }
}
