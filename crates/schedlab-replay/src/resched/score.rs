//! Counting where requests to reschedule ended, with their predicted and recorded delays.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos};

use crate::count::Count;
use crate::report::{Delays, ReschedMiss, ReschedPlace, ReschedReport, Score, Unjudgeable};

/// A check point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    Interrupt,
    Section,
    Tick,
    Call,
    Point,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Interrupt => "end of the interrupt",
            Place::Section => "end of a critical section",
            Place::Tick => "tick that upgrades",
            Place::Call => "return from a call",
            Place::Point => "cond_resched",
        }
    }
}

/// Why a request cannot be judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unjudged {
    Blocked,
    PickedAgain,
    Context,
    NoCheckPoint,
    Unseen,
}

impl Unjudged {
    fn reason(self) -> &'static str {
        match self {
            Unjudged::Blocked => "the task blocked first",
            Unjudged::PickedAgain => "the running task was picked again",
            Unjudged::Context => "the trace does not show whether the task was in kernel mode",
            Unjudged::Unseen => "no record shows it before schedule() runs",
            Unjudged::NoCheckPoint => "no record shows the check point",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// At its check point. `predicted` is none without a record that bounds the check point.
    Honoured { place: Place, predicted: Option<Nanos>, recorded: Nanos },
    /// A check point that honours it passed without a switch.
    Late { place: Place, cpu: CpuId, lazy: bool, now: Nanos },
    /// A switch in kernel mode that the model does not make.
    Early { cpu: CpuId, lazy: bool, now: Nanos },
    /// A tick did not upgrade a lazy request.
    NotUpgraded { cpu: CpuId, now: Nanos },
    /// It cannot be judged.
    Unjudged(Unjudged),
}

/// Everything counted.
pub struct Scores {
    from: Nanos,
    limit: usize,
    all: Count,
    places: BTreeMap<Place, Ended>,
    unjudged: BTreeMap<Unjudged, u64>,
    warm_up: u64,
    misses: Vec<ReschedMiss>,
}

/// The requests that ended at one kind of check point, or should have.
#[derive(Default)]
struct Ended {
    count: Count,
    predicted: Vec<Nanos>,
    recorded: Vec<Nanos>,
}

impl Scores {
    pub fn new(from: Nanos, limit: usize) -> Scores {
        Scores {
            from,
            limit,
            all: Count::default(),
            places: BTreeMap::new(),
            unjudged: BTreeMap::new(),
            warm_up: 0,
            misses: Vec::new(),
        }
    }

    /// A request of time `at` has ended.
    pub fn end(&mut self, at: Nanos, ending: Ending) {
        if at < self.from {
            self.warm_up += 1;
            return;
        }
        let (place, agreed) = match ending {
            Ending::Honoured { place, predicted, recorded } => {
                let ended = self.places.entry(place).or_default();
                ended.recorded.push(recorded);
                ended.predicted.extend(predicted);
                (place, true)
            }
            Ending::Late { place, .. } => (place, false),
            Ending::Early { .. } | Ending::NotUpgraded { .. } => (Place::Tick, false),
            Ending::Unjudged(why) => {
                *self.unjudged.entry(why).or_default() += 1;
                return;
            }
        };
        self.all.add(at, agreed);
        self.places.entry(place).or_default().count.add(at, agreed);
        if !agreed && self.misses.len() < self.limit {
            self.misses.extend(miss(at, ending));
        }
    }

    pub fn report(&self, model: Option<&'static str>, calls_recorded: bool) -> ReschedReport {
        let place = |(place, ended): (&Place, &Ended)| ReschedPlace {
            name: place.name(),
            score: Score::of(ended.count),
            predicted: delays(&ended.predicted),
            recorded: delays(&ended.recorded),
        };
        let unjudged =
            |(why, count): (&Unjudged, &u64)| Unjudgeable { reason: why.reason(), kind: "request", count: *count };
        ReschedReport {
            all: Score::of(self.all),
            model,
            calls_recorded,
            places: self.places.iter().map(place).collect(),
            unjudged: self.unjudged.iter().map(unjudged).collect(),
            in_warm_up: self.warm_up,
            disagreements: self.misses.clone(),
        }
    }
}

fn miss(at: Nanos, ending: Ending) -> Option<ReschedMiss> {
    let (cpu, now, lazy, kernel, model) = match ending {
        Ending::Late { place, cpu, lazy, now } => (cpu, now, lazy, "went on".to_owned(), place.name().to_owned()),
        Ending::Early { cpu, lazy, now } => {
            (cpu, now, lazy, "switched in kernel mode".to_owned(), "tick or return from the call".to_owned())
        }
        Ending::NotUpgraded { cpu, now } => (cpu, now, true, "the tick left it lazy".to_owned(), "full".to_owned()),
        Ending::Honoured { .. } | Ending::Unjudged(_) => return None,
    };
    Some(ReschedMiss { time_ns: now, cpu: cpu.0, requested_ns: at, lazy, kernel, model })
}

/// Nearest-rank quantiles.
fn delays(all: &[Nanos]) -> Option<Delays> {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let at = |part: usize| sorted.get((sorted.len() * part).div_ceil(100).saturating_sub(1)).copied();
    Some(Delays { count: sorted.len() as u64, p50_ns: at(50)?, p99_ns: at(99)?, max_ns: at(100)? })
}
