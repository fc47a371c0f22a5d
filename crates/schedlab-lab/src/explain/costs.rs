//! What time did where no decision parted two runs: two events of a CPU came in another order.

use std::sync::atomic::AtomicBool;

use schedlab_model::Nanos;
use schedlab_sim::SimError;
use schedlab_spec::RunSpec;
use schedlab_trace::Kind;
use serde::Serialize;

use super::item::shape;
use super::lane::{Lane, Shelf};
use super::side_by_side::Split;

/// Two events, in one run the one first, in the other the other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Costs {
    /// The first run's event, then the second's; `None` where a run has no further event there.
    pub events: [Option<Moved>; 2],
    /// The CPU's last common event, in each run.
    pub since_ns: [Nanos; 2],
    /// The CPU's overhead from there to its own event.
    pub overhead_ns: [Nanos; 2],
}

/// An event in both runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Moved {
    /// The event.
    pub event: String,
    /// When each run has it; `None`: not soon.
    pub at_ns: [Option<Nanos>; 2],
}

/// Follows both runs until each has both events, or for so long after its own.
pub(super) fn costs(
    specs: [&RunSpec; 2],
    split: &Split,
    patience: Nanos,
    cancel: &AtomicBool,
) -> Result<Costs, SimError> {
    let kinds = split.items.map(|item| item.map(|item| item.event.kind));
    let mut times = [[None; 2]; 2];
    let mut overhead_ns = [0; 2];
    for side in 0..2 {
        (times[side], overhead_ns[side]) = follow(specs[side], split, side, kinds, patience, cancel)?;
    }
    let moved = |event: usize| {
        let kind = kinds[event]?;
        Some(Moved { event: kind.to_string(), at_ns: [times[0][event], times[1][event]] })
    };
    Ok(Costs { events: [moved(0), moved(1)], since_ns: split.since, overhead_ns })
}

/// When the run has each event on the CPU, and the CPU's overhead up to its own.
fn follow(
    spec: &RunSpec,
    split: &Split,
    side: usize,
    kinds: [Option<Kind>; 2],
    patience: Nanos,
    cancel: &AtomicBool,
) -> Result<([Option<Nanos>; 2], Nanos), SimError> {
    let mut sink = Shelf::default();
    let mut lane = Lane::new(spec, &mut sink);
    let own = split.items[side].map_or(split.time(), |item| item.event.time);
    let (mut times, mut before, mut spent) = ([None; 2], 0, 0);
    while !lane.over && lane.next_time() <= own + patience {
        if lane.next_time() <= split.since[side] {
            before = lane.session.cpu(split.cpu).cost;
        }
        lane.step(cancel)?;
        if lane.session.now() <= own {
            spent = lane.session.cpu(split.cpu).cost;
        }
        for item in lane.rows[split.cpu.index()].items.drain(..).filter(|item| item.event.time >= split.since[side]) {
            for (time, kind) in times.iter_mut().zip(kinds) {
                if time.is_none() && kind.map(shape) == Some(shape(item.event.kind)) {
                    *time = Some(item.event.time);
                }
            }
        }
        if times.iter().zip(kinds).all(|(time, kind)| time.is_some() || kind.is_none()) && lane.session.now() >= own {
            break;
        }
    }
    Ok((times, spent.saturating_sub(before)))
}
