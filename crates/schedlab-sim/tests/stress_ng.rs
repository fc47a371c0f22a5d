//! How stressors of stress-ng switch, where that is known of the real ones.

use crate::support::{kernel, record, spec};
use schedlab_model::{CpuId, CpuMask, MSEC};
use schedlab_scenario::preset;
use schedlab_spec::Machine;
use schedlab_trace::Kind;
use schedlab_workload::catalogue::{self, OptionValue, Where};

/// Switches away from a task per bogo op of one worker in 50 ms on a guest with two CPUs, of which it may use so many.
fn switches_per_op(stressor: &str, cpus: u32) -> f64 {
    let options = [(stressor.to_owned(), OptionValue::Int(1), Where::default())];
    let id = format!("stress-ng-{stressor}");
    let mut workload = catalogue::build(&id, &options, "w", false, 2).unwrap();
    let mask: CpuMask = (0..cpus).map(CpuId).collect();
    workload.tasks.iter_mut().for_each(|task| task.affinity = Some(mask));
    let two = crate::support::flat(2, 0).topology;
    let machine = Machine { topology: two, smt_rates: vec![1024], ..preset("host").unwrap().unwrap() };
    let mut spec = spec(machine, kernel("6.18.12", 2, 250), vec![workload]);
    spec.duration = 50 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let (mut switches, mut ops) = (0, 0);
    for event in &record.events {
        match event.kind {
            Kind::Switch { prev, .. } if prev != 0 => switches += 1,
            Kind::Count { metric: 0, count, .. } => ops += count,
            _ => {}
        }
    }
    f64::from(switches) / ops as f64
}

/// The real one switches 2.0 times per op on one CPU, and 0.09 to 0.58 times with a CPU for each task: most wakes find
/// the waiter queued and not yet asleep.
#[test]
fn a_futex_wake_often_comes_before_the_waiter_sleeps() {
    let (one, both) = (switches_per_op("futex", 1), switches_per_op("futex", 2));
    assert!((1.9..=2.1).contains(&one) && both < 0.6, "{one} {both}");
}

/// The real one switches 0.5 to 1.2 times per op on one CPU: its reader, which does nothing with a message, waits for
/// the writer, which fills it. With a CPU for each it depends on what else they run.
#[test]
fn the_reader_of_a_pipe_waits_for_its_writer() {
    let one = switches_per_op("pipe", 1);
    assert!((0.5..=1.2).contains(&one), "{one}");
}
