//! Frequencies: turbo bins by busy cores, and schedutil.

use crate::support::{flat, kernel, record, sampled_time, spec, tasks};
use schedlab_model::{Nanos, MSEC};
use schedlab_spec::{Frequency, RunSpec};
use schedlab_workload::{Amount, Op, Workload};

/// After 320 ms nearly asleep each of `busy` CPUs does so much work, and its time is a sample.
fn bursts(busy: u32, work: Nanos, rt: bool) -> Workload {
    // Short runs, after which nobody expects more of the task (`util_est`); a new task counts as half a CPU.
    let timed = vec![
        Op::Set(2, 40),
        Op::Run(Amount::Fixed(1_000)),
        Op::Sleep(Amount::Fixed(8 * MSEC)),
        Op::DecJump { reg: 2, to: 1 },
        Op::Clock(0),
        Op::Run(Amount::Fixed(work)),
        Op::Clock(1),
        Op::SubReg { into: 1, from: 0 },
        Op::Sample { metric: 0, reg: 1 },
    ];
    let mut workload = tasks((0..busy).map(|cpu| ("burst", 0, Some(cpu), timed.clone())).collect());
    if rt {
        workload.tasks.iter_mut().for_each(|task| task.policy = schedlab_workload::Policy::Fifo(5));
    }
    Workload { metrics: vec![sampled_time("time")], ..workload }
}

fn machine(workload: Workload, turbo: &[(u32, u32)], schedutil: bool) -> RunSpec {
    let mut machine = flat(8, 0);
    machine.frequency = Some(Frequency { base: 2000, min: 500, turbo: turbo.to_vec(), rate_limit: MSEC });
    (machine.physics.frequency, machine.physics.schedutil) = (true, schedutil);
    let mut spec = spec(machine, kernel("6.12.107", 8, 1000), vec![workload]);
    spec.duration = 2_000 * MSEC;
    spec
}

fn times(spec: &RunSpec) -> Vec<Nanos> {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    record.samples()
}

#[test]
fn all_cores_run_at_the_bin_of_the_busy_ones() {
    let bins = [(1, 4000), (2, 3000), (8, 2500)];
    for (busy, mhz) in [(1, 4000), (2, 3000), (3, 2500), (8, 2500)] {
        for time in times(&machine(bursts(busy, 60 * MSEC, false), &bins, false)) {
            // Whole ns at each change.
            let expected = 60 * MSEC * 2000 / mhz;
            assert!(time.abs_diff(expected) < 60 * MSEC / 1000, "{busy} busy cores: {time} of {expected}");
        }
    }
}

#[test]
fn a_core_speeds_up_when_another_one_goes_idle() {
    let mut workload = bursts(1, 60 * MSEC, false);
    let other = bursts(1, 15 * MSEC, false);
    let mut second = other.tasks[0].clone();
    second.program = workload.programs.len() as u32;
    second.affinity = Some(schedlab_model::CpuMask::from_iter([schedlab_model::CpuId(1)]));
    workload.programs.extend(other.programs);
    workload.tasks.push(second);
    let found = times(&machine(workload, &[(1, 4000), (8, 3000)], false));
    // Both at 1.5 until the short one is over after 10 ms, then the long one has 45 ms of work left at 2.
    assert!(
        found[0].abs_diff(10 * MSEC) < MSEC / 20 && found[1].abs_diff((10 * MSEC) + 45 * MSEC / 2) < MSEC / 20,
        "{found:?}"
    );
}

/// A burst begins at the lowest frequency and is slower than at the highest one; the longer it is the less. A task of a
/// real-time class has the highest at once.
#[test]
fn schedutil_follows_the_utilisation() {
    let turbo = [(8, 4000)];
    let slowdown = |work: Nanos, rt| {
        let [with, without] = [true, false].map(|schedutil| times(&machine(bursts(1, work, rt), &turbo, schedutil))[0]);
        with as f64 / without as f64
    };
    let [short, middle, long] = [MSEC, 40 * MSEC, 800 * MSEC].map(|work| slowdown(work, false));
    assert!((7.0..=8.1).contains(&short), "{short} times longer at an eighth of the frequency");
    assert!(short > middle && middle > long && long > 1.02 && long < 1.6, "{short} {middle} {long}");
    assert!(slowdown(40 * MSEC, true) < 1.01);
}
