//! Events per second of the engine and of a std `BinaryHeap` in a hold model of the same queue size, in one process.
//!
//! `events SCENARIO VARIANT [ROUNDS]` prints one JSON object: both rates, their ratio (engine / heap), events and
//! nanoseconds per switch. Rounds alternate between the two; the medians are compared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The heap's entry: (time, phase, sequence, id).
type Entry = (u64, u8, u64, u32);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, variant, rest @ ..] = args.as_slice() else {
        return Err("usage: events SCENARIO VARIANT [ROUNDS]".into());
    };
    let rounds: usize = rest.first().map_or(Ok(5), |text| text.parse())?;
    let scenario = schedlab_scenario::Scenario::load(Path::new(path), None)?;
    let spec = scenario.run_spec(variant, 1)?;
    let (mut engine, mut heap) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..rounds.max(1) {
        let mut run = None;
        let wall = time(|| run = Some(schedlab_lab::run(&spec, None, &AtomicBool::new(false))));
        let run = run.ok_or("no run")??;
        engine.push(run.outcome.handled as f64 / wall.as_secs_f64());
        let size = run.outcome.pending_max.max(2);
        let holds = run.outcome.handled.max(1_000_000);
        heap.push(holds as f64 / time(|| hold(size, holds)).as_secs_f64());
        last = Some((run, wall));
    }
    let (run, wall) = last.ok_or("no run")?;
    let (engine, heap) = (median(&mut engine), median(&mut heap));
    let report = serde_json::json!({
        "scenario": path, "variant": variant, "queue": run.outcome.pending_max,
        "engine_events_per_s": engine, "heap_events_per_s": heap, "ratio": engine / heap,
        "events_per_switch": run.outcome.handled as f64 / run.outcome.switches as f64,
        "ns_per_switch": wall.as_nanos() as f64 / run.outcome.switches as f64,
        "switches": run.outcome.switches, "digest": run.digest,
    });
    println!("{report}");
    Ok(())
}

/// The hold model: take the earliest event, schedule it again a random time later.
fn hold(size: usize, holds: u64) {
    let mut rng = schedlab_model::stream(1, "hold");
    let mut heap: BinaryHeap<Reverse<Entry>> =
        (0..size).map(|id| Reverse((rng.below(1_000_000), 0, id as u64, id as u32))).collect();
    for sequence in 0..holds {
        if let Some(Reverse((time, phase, _, id))) = heap.pop() {
            heap.push(Reverse((time + rng.below(1_000_000), phase, sequence, id)));
        }
    }
    std::hint::black_box(&heap);
}

#[allow(clippy::disallowed_methods)] // a benchmark measures wall-clock time
fn time(work: impl FnOnce()) -> Duration {
    let begun = std::time::Instant::now();
    work();
    begun.elapsed()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
