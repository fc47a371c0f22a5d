//! What metrics and digest cost per event, on the event mix of a pipe ping-pong and of a loaded machine.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures the wall clock")]

use std::time::Instant;

use schedlab_metrics::{Metrics, Plan};
use schedlab_model::{CpuId, Pid};
use schedlab_trace::{Digest, Event, Kind, Sink, TaskState};

fn main() {
    for (name, cpus, tasks) in [("ping-pong, 2 CPUs, 2 tasks", 2, 2), ("480 CPUs, 2400 tasks", 480, 2400)] {
        let events = mix(cpus, tasks, 1 << 18);
        let plan = Plan { nr_cpus: cpus as usize, ..Plan::default() };
        let metrics = cost(&events, || Metrics::new(plan.clone()));
        let digest = cost(&events, Digest::default);
        println!("{name}: metrics {metrics:.1}, digest {digest:.1} ns per event");
    }
}

/// The fastest of some runs, in ns per event.
fn cost<S: Sink>(events: &[Event], sink: impl Fn() -> S) -> f64 {
    let run = |_| {
        let mut sink = sink();
        let start = Instant::now();
        events.iter().for_each(|event| sink.event(event));
        let cost = start.elapsed().as_nanos() as f64 / events.len() as f64;
        std::hint::black_box(sink);
        cost
    };
    (0..20).map(run).fold(f64::MAX, f64::min)
}

/// Rounds of waking, wakeup, switch over the CPUs; each task sleeps after it ran, times vary.
fn mix(cpus: u32, tasks: u32, count: usize) -> Vec<Event> {
    let mut events = Vec::with_capacity(count + 3);
    let (mut time, mut noise) = (0u64, 1u64);
    let mut running = vec![0 as Pid; cpus as usize];
    for round in 0u32.. {
        if events.len() >= count {
            break;
        }
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (cpu, pid, prio) = (CpuId(round % cpus), 1000 + (round % tasks) as Pid, 120);
        let mut push = |kind| {
            time += noise >> 52;
            events.push(Event::new(time, cpu, kind));
        };
        push(Kind::Waking { pid, prio, target_cpu: cpu });
        push(Kind::Wakeup { pid, prio, target_cpu: cpu });
        let prev = std::mem::replace(&mut running[cpu.index()], pid);
        let state = if prev == 0 { TaskState::Running } else { TaskState::Sleeping };
        push(Kind::Switch { prev, prev_prio: prio, prev_state: state, next: pid, next_prio: prio });
    }
    events
}
