//! What each wait of a task is in its program: a wait for another task, a timer, an arrival from outside, or a time
//! that is only recorded.

use schedlab_model::{Nanos, USEC};

use crate::recording::{Act, Cause, Recording, Task, Wait};

/// How a program waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// For a task.
    Task,
    /// For the next expiry of a periodic timer, after as many others that came while the task was busy.
    Period(u32),
    /// For a time from when it blocks.
    Timer,
    /// For an arrival from outside, whose time does not depend on the task.
    Arrival,
    /// For the recorded time, whose cause is not known.
    Unknown,
    /// For longer than the recording lasts.
    End,
}

/// The waits of a task.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// How each of them ends, in their order.
    pub ends: Vec<Ends>,
    /// The period of those that are periodic.
    pub period: Nanos,
    /// The task works for every expiry, also for those that it missed.
    pub catches_up: bool,
}

/// How many waits a period needs at least.
const FEWEST: usize = 8;
/// The share of a task's timers that must expire at the first multiple of the period after the task blocked.
const FITTING: f64 = 0.9;
/// How far an expiry may be from its multiple of the period.
const TOLERANCE: Nanos = 60 * USEC;
/// How long after the tick the timers of the timer wheel run.
const AFTER_TICK: Nanos = 300 * USEC;

/// Where the ticks are within a recording: the phase, if softirqs cluster there.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    period: Nanos,
    phase: Option<Nanos>,
}

impl Ticks {
    /// Finds the phase at which most wakeups from softirqs are.
    #[must_use]
    pub fn of(recording: &Recording, period: Nanos) -> Ticks {
        const BINS: usize = 64;
        let mut bins = [0_u32; BINS];
        let soft = recording.tasks.iter().flat_map(Task::waits).filter(|wait| wait.cause == Cause::SoftInterrupt);
        for wait in soft {
            bins[(wait.to % period * BINS as u64 / period) as usize % BINS] += 1;
        }
        let total: u32 = bins.iter().sum();
        let (peak, count) = bins.iter().enumerate().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
        // A quarter of all in a 64th of the time is no coincidence.
        let phase = (total >= 8 && count * 4 >= total).then_some(peak as u64 * period / BINS as u64);
        Ticks { period, phase }
    }

    fn at(&self, time: Nanos) -> bool {
        self.phase.is_some_and(|phase| (time % self.period + self.period - phase) % self.period <= AFTER_TICK)
    }
}

/// Decides how each wait of a task ends.
#[must_use]
pub fn waits(task: &Task, ticks: &Ticks, flagged: bool) -> Waits {
    let timers: Vec<&Wait> = task.waits().filter(|wait| may_be_timer(wait)).collect();
    let period = period(&timers);
    let mut before = None;
    let ends = task.waits().map(|wait| match wait.cause {
        Cause::Task(_) => Ends::Task,
        Cause::End => Ends::End,
        Cause::Unknown => Ends::Unknown,
        _ if period.is_some_and(|period| period.fits(wait)) => {
            let length = period.map_or(1, |period| period.length);
            let since = before.replace(wait.to).map_or(length, |before| wait.to - before);
            Ends::Period(((since + length / 2) / length).saturating_sub(1) as u32)
        }
        Cause::HardInterrupt => Ends::Timer,
        Cause::SoftInterrupt if ticks.at(wait.to) => Ends::Timer,
        Cause::SoftInterrupt => Ends::Arrival,
        // The idle task does not wake anyone by itself, so that an interrupt did, of which kind is not known.
        Cause::Idle if flagged => Ends::Timer,
        Cause::Idle => Ends::Unknown,
    });
    let ends: Vec<Ends> = ends.collect();
    let catches_up = catches_up(task, &ends);
    Waits { ends, period: period.map_or(0, |period| period.length), catches_up }
}

/// Whether the work before a timer grows with the number of expiries that came meanwhile.
fn catches_up(task: &Task, ends: &[Ends]) -> bool {
    let (mut single, mut several) = (Vec::new(), Vec::new());
    let (mut work, mut nth) = (0, 0);
    for act in &task.acts {
        match act {
            Act::Work { time, .. } => work += time,
            Act::Wait(_) => {
                match ends.get(nth) {
                    Some(Ends::Period(0)) => single.push(work),
                    Some(Ends::Period(missed)) => several.push(work / u64::from(*missed + 1)),
                    _ => {}
                }
                (work, nth) = (0, nth + 1);
            }
            _ => {}
        }
    }
    if single.is_empty() || several.is_empty() {
        return false;
    }
    single.sort_unstable();
    several.sort_unstable();
    // As much for each expiry as for one that was not missed, or only a part.
    several[several.len() / 2] * 4 >= single[single.len() / 2] * 3
}

fn may_be_timer(wait: &Wait) -> bool {
    matches!(wait.cause, Cause::HardInterrupt | Cause::SoftInterrupt | Cause::Idle)
}

/// An absolute timer.
#[derive(Clone, Copy, Debug)]
struct Period {
    length: Nanos,
    phase: Nanos,
}

impl Period {
    /// Whether a wait ended at the first expiry after it began.
    fn fits(&self, wait: &Wait) -> bool {
        let tolerance = TOLERANCE.min(self.length / 10);
        let off = (wait.to + self.length - self.phase % self.length) % self.length;
        let near = off <= tolerance || self.length - off <= tolerance;
        near && wait.to - wait.from <= self.length + tolerance
    }
}

/// The period of which nearly all expiries are the first multiple after the task blocked.
fn period(timers: &[&Wait]) -> Option<Period> {
    if timers.len() < FEWEST {
        return None;
    }
    let mut intervals: Vec<Nanos> = timers.windows(2).map(|pair| pair[1].to - pair[0].to).collect();
    intervals.sort_unstable();
    let median = intervals[intervals.len() / 2];
    // An overloaded task misses most expiries: then the median is a multiple.
    (1..=8).map(|part| median / part).find_map(|length| fitted(timers, length))
}

/// The exact length of a period of about this length, if it fits.
fn fitted(timers: &[&Wait], about: Nanos) -> Option<Period> {
    let (first, last) = (timers.first()?.to, timers.last()?.to);
    if about < 10 * USEC {
        return None;
    }
    // From expiry to expiry the length becomes more exact.
    let (mut length, mut count) = (about as f64, 0.0);
    for wait in timers {
        let since = (wait.to - first) as f64;
        let nth = (since / length).round();
        if nth > count && (since - nth * length).abs() <= (TOLERANCE as f64).min(length / 8.0) {
            (length, count) = (since / nth, nth);
        }
    }
    let length = length.round() as Nanos;
    if length == 0 || last <= first {
        return None;
    }
    let period = Period { length, phase: first };
    let fitting = timers.iter().filter(|wait| period.fits(wait)).count();
    (fitting as f64 >= FITTING * timers.len() as f64).then_some(period)
}
