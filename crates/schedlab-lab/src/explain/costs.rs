//! The effect of costs where no decision differs: two events of a CPU happened in a different order.

use std::sync::atomic::AtomicBool;

use schedlab_model::Nanos;
use schedlab_sim::SimError;
use schedlab_spec::RunSpec;
use schedlab_trace::{Kind, Sink};
use serde::Serialize;

use super::sched_event::shape;
use super::side_by_side::Mismatch;
use super::stepper::{EventBuffer, Stepper};

/// Two events whose order is different in the two runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Costs {
    /// The first run's event, then the second's; `None` where a run has no further event there.
    pub events: [Option<MovedEvent>; 2],
    /// The time of the CPU's last common event, in each run.
    pub since_ns: [Nanos; 2],
    /// The CPU's overhead from there to the run's own event.
    pub overhead_ns: [Nanos; 2],
}

/// The times of one event in both runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MovedEvent {
    /// The event.
    pub event: String,
    /// When each run has it; `None` if it does not within the time searched.
    pub at_ns: [Option<Nanos>; 2],
}

/// Advances both runs until each has both events, or until `window` after its own event.
pub(super) fn costs(
    specs: [&RunSpec; 2],
    mismatch: &Mismatch,
    window: Nanos,
    cancel: &AtomicBool,
) -> Result<Costs, SimError> {
    let kinds = mismatch.items.map(|item| item.map(|item| item.event.kind));
    let mut times = [[None; 2]; 2];
    let mut overhead_ns = [0; 2];
    for side in 0..2 {
        (times[side], overhead_ns[side]) = event_times(specs[side], mismatch, side, kinds, window, cancel)?;
    }
    let moved = |event: usize| {
        let kind = kinds[event]?;
        Some(MovedEvent { event: kind.to_string(), at_ns: [times[0][event], times[1][event]] })
    };
    Ok(Costs { events: [moved(0), moved(1)], since_ns: mismatch.since, overhead_ns })
}

/// When the run has each event on the CPU, and the CPU's overhead up to the run's own event.
fn event_times(
    spec: &RunSpec,
    mismatch: &Mismatch,
    side: usize,
    kinds: [Option<Kind>; 2],
    window: Nanos,
    cancel: &AtomicBool,
) -> Result<([Option<Nanos>; 2], Nanos), SimError> {
    let events = EventBuffer::default();
    let mut sink = events.clone();
    let mut sink: &mut dyn Sink = &mut sink;
    let mut stepper = Stepper::new(spec, events, &mut sink);
    let own = mismatch.items[side].map_or(mismatch.time(), |item| item.event.time);
    let (mut times, mut before, mut spent) = ([None; 2], 0, 0);
    while !stepper.over && stepper.next_time() <= own + window {
        if stepper.next_time() <= mismatch.since[side] {
            before = stepper.session.cpu(mismatch.cpu).cost;
        }
        stepper.step(cancel)?;
        if stepper.session.now() <= own {
            spent = stepper.session.cpu(mismatch.cpu).cost;
        }
        for item in
            stepper.cpus[mismatch.cpu.index()].items.drain(..).filter(|item| item.event.time >= mismatch.since[side])
        {
            for (time, kind) in times.iter_mut().zip(kinds) {
                if time.is_none() && kind.map(shape) == Some(shape(item.event.kind)) {
                    *time = Some(item.event.time);
                }
            }
        }
        if times.iter().zip(kinds).all(|(time, kind)| time.is_some() || kind.is_none()) && stepper.session.now() >= own
        {
            break;
        }
    }
    Ok((times, spent.saturating_sub(before)))
}
