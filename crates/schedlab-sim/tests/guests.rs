//! Guests in a host: what a vCPU costs its guest, and that nothing else changes.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::support::swarm::{scenario, with_munmaps, with_physics};
use crate::support::{flat, guest, kernel, record, spec, tasks, Record};
use proptest::prelude::*;
use schedlab_model::{CpuId, CpuMask, KernelId, Nanos, MSEC, SEC};
use schedlab_policy::Version;
use schedlab_sim::{kernel_seed, run_virtual, GuestReport, SimError};
use schedlab_spec::{Guest, GuestAction, IdleHint, Machine, Platform, RunSpec};
use schedlab_trace::{Event, Kind};
use schedlab_workload::{Amount, Dist, MemoryWork, ObjectSpec, Op, Section, SectionContext, Workload};

/// A host of so many CPUs with these workloads and guests.
fn host(machine: Machine, version: &str, workloads: Vec<Workload>, guests: Vec<Guest>) -> RunSpec {
    let nr_cpus = machine.topology.nr_cpus();
    let duration = guests.iter().map(|guest| guest.run.duration).max().unwrap_or(SEC);
    let seed = guests.first().map_or(1, |guest| guest.run.seed);
    let spec = spec(machine, kernel(version, nr_cpus, 250), workloads);
    RunSpec { guests: Arc::new(guests), duration, seed, ..spec }
}

fn run(spec: &RunSpec) -> Result<(Vec<GuestReport>, Record), SimError> {
    let mut log = Record::default();
    let (_, guests) = run_virtual(spec, &mut log, &AtomicBool::new(false))?;
    Ok((guests, log))
}

fn events_of(events: &[Event], kernel: u16) -> Vec<Event> {
    let of = events.iter().filter(|event| event.kernel == KernelId(kernel));
    of.map(|event| Event { kernel: KernelId::FIRST, ..*event }).collect()
}

/// The events of guest number `kernel` on the machine that it has, without a host.
fn alone(guest: &Guest, kernel: u16) -> Vec<Event> {
    let run = RunSpec { seed: kernel_seed(guest.run.seed, KernelId(kernel)), ..guest.run.clone() };
    let (outcome, log) = record(&run);
    outcome.unwrap();
    log.events
}

fn pairs() -> Workload {
    let sleepy = |ns| vec![Op::Run(Amount::Fixed(ns)), Op::Sleep(Amount::Fixed(700_000)), Op::Jump(0)];
    tasks(vec![("a", 0, None, sleepy(310_007)), ("b", 0, None, sleepy(523_001)), ("c", 5, None, sleepy(1_234_567))])
}

#[test]
fn a_guest_alone_on_a_host_without_costs_runs_as_on_hardware() {
    let machine = flat(2, 499);
    let inner = RunSpec { noise: true, ..spec(machine, kernel("6.1", 2, 250), vec![pairs()]) };
    let guest = guest("vm", Platform::Arm64Kvm, &inner);
    let want = alone(&guest, 1);
    let (reports, log) = run(&host(flat(2, 0), "6.1", vec![], vec![guest])).unwrap();
    let found = events_of(&log.events, 1);
    let first = found.iter().zip(&want).position(|(a, b)| a != b);
    let near = |events: &[Event]| first.map(|i| events[i.saturating_sub(5)..=i].to_vec());
    assert_eq!((near(&found), found.len()), (near(&want), want.len()));
    assert!(want.len() > 1000 && reports[0].vcpus.iter().all(|vcpu| vcpu.stolen == 0 && vcpu.halted > 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// Whatever runs in it, on whatever versions: only the host's own costs and load make a difference to a guest that
    /// cannot see its vCPUs, even in another guest. That includes the order of events of one instant.
    #[test]
    fn a_blind_guest_alone_on_a_host_without_costs_runs_as_on_hardware(
        inner in scenario(Version::all().iter().collect()),
        versions in prop::array::uniform2(prop::sample::select(Version::all().iter().collect::<Vec<_>>())),
        ties in any::<bool>(), nested in any::<bool>(),
    ) {
        let inner = with_munmaps(with_physics(inner));
        let machine = if ties { (*inner.machine).clone() } else { drawn(&inner.machine) };
        let inner = RunSpec { machine: Arc::new(machine), ..inner };
        let mut vm = guest("vm", Platform::Arm64Kvm, &inner);
        let nr_cpus = inner.machine.topology.nr_cpus() as u32;
        let outer = spec(flat(nr_cpus, 0), kernel(versions[1].name, nr_cpus as usize, 250), vec![]);
        let outer = guest("outer", Platform::Arm64Kvm, &RunSpec { duration: inner.duration, seed: inner.seed, ..outer });
        let number = if nested { 2 } else { 1 };
        let want = alone(&vm, number);
        let guests = if nested {
            vm.host = KernelId(1);
            vec![outer, vm]
        } else {
            vec![vm]
        };
        let (_, log) = run(&host(flat(nr_cpus, 0), versions[0].name, vec![], guests))
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        let found = events_of(&log.events, number);
        let differs = found.iter().zip(&want).position(|(a, b)| a != b);
        let near = |events: &[Event]| differs.map(|i| events[i.saturating_sub(3)..=i].to_vec());
        prop_assert_eq!((near(&found), found.len()), (near(&want), want.len()));
    }
}

const ACTIONS: [GuestAction; 4] = [GuestAction::Pause, GuestAction::Resume, GuestAction::Resume, GuestAction::Kill];

const HINTS: [IdleHint; 3] = [IdleHint::Off, IdleHint::Vpa, IdleHint::Hcall];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// No checker finds anything, whatever the costs, the load and the platforms, whether the second guest is in the
    /// first one, and whenever a guest is paused, resumed or killed; and a run is its seed's.
    #[test]
    fn every_check_holds_with_guests(
        first in scenario(Version::all().iter().collect()),
        second in scenario(Version::all().iter().collect()),
        beside in scenario(Version::all().iter().collect()),
        platforms in prop::array::uniform2(prop::sample::select(Platform::ALL.map(|(_, platform)| platform).to_vec())),
        nested in any::<bool>(), floating in any::<bool>(), steal in any::<bool>(), poll in 0u64..3, hint in prop::sample::select(HINTS.to_vec()), haltpoll in any::<bool>(), exit in 0u64..5000,
        events in prop::array::uniform2(prop::collection::vec((1..200 * MSEC, prop::sample::select(ACTIONS.to_vec())), 0..4)),
    ) {
        let [first, second, beside] = [first, second, beside].map(with_physics).map(with_munmaps);
        let platforms = if nested { [Platform::X86Kvm; 2] } else { platforms };
        let mut events = events.into_iter();
        let guests = [("one", &first, platforms[0]), ("two", &second, platforms[1])].map(|(name, inner, platform)| {
            let mut guest = guest(name, platform, &with_exits(inner, exit));
            let inside = nested && name == "two";
            guest.host = KernelId(u16::from(inside));
            let nr_cpus = if inside { &first } else { &beside }.machine.topology.nr_cpus() as u32;
            for (cpu, affinity) in guest.affinity.iter_mut().enumerate() {
                let pinned = CpuMask::from_iter([CpuId(cpu as u32 % nr_cpus)]);
                *affinity = (!floating).then_some(pinned);
            }
            guest.paravirt_time_accounting = steal;
            guest.halt_poll_max = poll * 100_000;
            guest.events = events.next().unwrap_or_default();
            guest.events.sort_by_key(|(at, _)| *at);
            guest.idle_hint = if nested { IdleHint::Off } else { hint };
            guest.haltpoll = haltpoll;
            guest
        });
        let spec = RunSpec { guests: Arc::new(guests.to_vec()), ..with_exits(&beside, exit) };
        let (reports, log) = run(&spec).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for vcpus in reports.iter().map(|report| &report.vcpus) {
            let sums: Vec<Nanos> = vcpus.iter().map(|vcpu| vcpu.run + vcpu.stolen + vcpu.halted).collect();
            prop_assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
        }
        check_that_only_running_vcpus_act(&log, &spec)?;
        prop_assert!(run(&spec).unwrap().1.events == log.events);
    }
}

/// The machine with costs that are all different, so that few events fall on one instant.
fn drawn(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    for (_, costs) in machine.costs.each_mut() {
        costs.iter_mut().for_each(|cost| *cost = Dist::Uniform { low: 101, high: 9_997 });
    }
    machine.costs.vm_exit = Dist::Constant(0);
    machine
}

fn with_exits(spec: &RunSpec, exit: Nanos) -> RunSpec {
    let mut machine = (*spec.machine).clone();
    (machine.costs.vm_exit, machine.costs.idle_hint) = (Dist::Constant(exit), Dist::Constant(exit / 100));
    machine.costs.vm_exit_nested = Dist::Constant(exit * 8);
    RunSpec { machine: Arc::new(machine), duration: 200 * MSEC, ..spec.clone() }
}

/// A guest's CPU switches only while the thread of its vCPU is on a CPU of its host, and that CPU executes, too.
fn check_that_only_running_vcpus_act(log: &Record, spec: &RunSpec) -> Result<(), TestCaseError> {
    let mut running: std::collections::BTreeMap<(KernelId, i32), CpuId> = std::collections::BTreeMap::new();
    // The host of a guest's CPU, and the thread there.
    let thread_of = |kernel: KernelId, cpu: CpuId| {
        let guest = &spec.guests[kernel.index() - 1];
        let name = format!("{}/{}", guest.name, cpu.0);
        log.names.iter().find(|(_, known)| *known == name).map(|(pid, _)| (guest.host, *pid))
    };
    for event in &log.events {
        let Kind::Switch { prev, next, .. } = event.kind else { continue };
        let (mut kernel, mut cpu) = (event.kernel, event.cpu);
        while kernel != KernelId::FIRST {
            let thread = thread_of(kernel, cpu);
            let on = thread.and_then(|thread| running.get(&thread));
            prop_assert!(on.is_some(), "{event:?}: {thread:?} of {running:?}");
            let (Some((host, _)), Some(on)) = (thread, on) else { break };
            (kernel, cpu) = (host, *on);
        }
        running.remove(&(event.kernel, prev));
        running.insert((event.kernel, next), event.cpu);
    }
    Ok(())
}

/// Two tasks of a guest that wake each other over and over, on two vCPUs.
fn ping_pong() -> Workload {
    let side = |read, write| {
        vec![
            Op::Read { object: read, bytes: 1 },
            Op::Run(Amount::Fixed(20_000)),
            Op::Write { object: write, bytes: 1 },
            Op::Jump(0),
        ]
    };
    let start = vec![Op::Write { object: 0, bytes: 1 }, Op::Jump(2)];
    let first = start.into_iter().chain(side(1, 0).into_iter().take(3)).chain([Op::Jump(2)]).collect();
    let mut workload = tasks(vec![("ping", 0, None, first), ("pong", 0, None, side(0, 1))]);
    workload.objects = vec![ObjectSpec::Pipe { pages: 16, packet: false }; 2];
    workload
}

/// Wakeups of one second that the guest placed on another CPU than the waker's, and its exits for halts.
fn placements(platform: Platform, version: &str, poll: Nanos, informed: bool) -> (u64, u64) {
    let inner = spec(flat(4, 300), kernel(version, 4, 250), vec![ping_pong()]);
    let mut guest = guest("vm", platform, &inner);
    (guest.halt_poll_max, guest.vcpu_is_preempted) = (poll, informed);
    let mut machine = flat(4, 300);
    machine.costs.vm_exit = Dist::Constant(600);
    let (reports, log) = run(&host(machine, version, vec![], vec![guest])).unwrap();
    let apart = |event: &&Event| matches!(event.kind, Kind::Waking { target_cpu, .. } if target_cpu != event.cpu);
    let apart = log.events.iter().filter(|event| event.kernel == KernelId(1)).filter(apart).count() as u64;
    (apart, reports[0].exits[0].1)
}

/// A pair that wakes each other spreads over two vCPUs where a halted vCPU reads as available, and stays on one where
/// it reads as preempted.
#[test]
fn what_a_halted_vcpu_reads_as_decides_where_the_wakee_goes() {
    for (platform, version, poll, informed, spreads) in [
        (Platform::Arm64Kvm, "5.7", 0, true, true),
        (Platform::Arm64KvmPvsched, "5.7", 0, true, false),
        (Platform::Arm64KvmPvsched, "5.7", 0, false, true),
        (Platform::X86Kvm, "5.7", 0, true, false),
        (Platform::X86Kvm, "6.1", 0, true, true),
        (Platform::PowerpcKvm, "5.13", 0, true, false),
        (Platform::PowerpcKvm, "5.13", 0, false, true),
        (Platform::PowerpcKvm, "6.12.107", 0, true, true),
        (Platform::Powervm, "5.13", 0, true, false),
        (Platform::Powervm, "6.12.107", 0, true, true),
        (Platform::S390, "5.7", 0, true, true),
    ] {
        let (apart, halts) = placements(platform, version, poll, informed);
        assert_eq!(apart > 5_000, spreads, "{platform:?} {version} {poll} {informed}: {apart} apart, {halts} halts");
    }
}

/// Without paravirt time accounting stolen time is the running task's; with it the task's clock stands meanwhile.
#[test]
fn stolen_time_is_charged_to_tasks_without_paravirt_time_accounting() {
    let hog = |name| tasks(vec![(name, 0, None, vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)])]);
    let two = || {
        let program = || vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
        tasks(vec![("one", 0, None, program()), ("two", 0, None, program())])
    };
    let of = |accounting| {
        let inner = spec(flat(1, 0), kernel("6.1", 1, 1000), vec![two()]);
        let mut guest = guest("vm", Platform::X86Kvm, &inner);
        guest.paravirt_time_accounting = accounting;
        let (reports, log) = run(&host(flat(1, 0), "6.1", vec![hog("noise")], vec![guest])).unwrap();
        let share = reports[0].vcpus[0].stolen as f64 / SEC as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
        events_of(&log.events, 1).iter().filter(|event| matches!(event.kind, Kind::Switch { .. })).count()
    };
    // A slice is measured by the task's clock: one in which time was stolen ends early.
    let (with, without) = (of(true), of(false));
    assert!(without > with, "{with} switches with, {without} without");
}

/// How many events of a guest happen from one time to another.
fn events_between(events: Vec<(Nanos, GuestAction)>, from: Nanos, to: Nanos) -> usize {
    let inner = spec(flat(2, 300), kernel("6.1", 2, 250), vec![pairs()]);
    let mut guest = guest("vm", Platform::X86Kvm, &inner);
    guest.events = events;
    let (_, log) = run(&host(flat(2, 300), "6.1", vec![], vec![guest])).unwrap();
    log.events.iter().filter(|event| event.kernel == KernelId(1) && (from..to).contains(&event.time)).count()
}

/// A guest does nothing while it is paused, goes on when it is resumed, and does nothing any more once it has been
/// killed.
#[test]
fn pause_resume_and_kill() {
    use GuestAction::{Kill, Pause, Resume};
    let (pause, resume, kill) = ((100 * MSEC, Pause), (300 * MSEC, Resume), (500 * MSEC, Kill));
    for (events, between) in [
        (vec![], [true; 4]),
        (vec![pause], [true, false, false, false]),
        (vec![pause, resume], [true, false, true, true]),
        (vec![pause, resume, kill], [true, false, true, false]),
        (vec![pause, kill], [true, false, false, false]),
        (vec![resume], [true; 4]),
    ] {
        for (i, (from, to)) in [(0, 100), (101, 300), (301, 500), (501, 700)].into_iter().enumerate() {
            let count = events_between(events.clone(), from * MSEC, to * MSEC);
            assert_eq!(count > 0, between[i], "{events:?}: {count} events from {from} to {to} ms");
        }
    }
}

/// Six hogs on two vCPUs, one of which gets half of a host CPU: how much more the luckiest gets done than the
/// unluckiest.
fn spread_of_hogs(version: &str, accounting: bool) -> f64 {
    let hog = vec![Op::Run(Amount::Fixed(MSEC)), Op::Count { metric: 0, count: 1 }, Op::Jump(0)];
    let mut workload = tasks(vec![("hog", 0, None, hog)]);
    workload.tasks[0].count = 6;
    let inner = RunSpec { duration: 8 * SEC, ..spec(flat(2, 500), kernel(version, 2, 250), vec![workload]) };
    let mut guest = guest("vm", Platform::X86Kvm, &inner);
    guest.paravirt_time_accounting = accounting;
    let noise = tasks(vec![("noise", 0, Some(0), vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)])]);
    let (_, log) = run(&host(flat(2, 500), version, vec![noise], vec![guest])).unwrap();
    let mut done = std::collections::BTreeMap::new();
    for event in log.events.iter().filter(|event| event.time > 4 * SEC) {
        if let Kind::Count { pid, .. } = event.kind {
            *done.entry(pid).or_insert(0) += 1;
        }
    }
    assert_eq!(done.len(), 6);
    f64::from(*done.values().max().unwrap()) / f64::from(*done.values().min().unwrap())
}

/// With paravirt time accounting a CPU from which time is stolen is a smaller one to the balancer: two of the hogs
/// share it. Without, three share each.
#[test]
fn stolen_time_lowers_the_capacity_that_the_balancer_sees() {
    for version in ["5.7", "6.1", "6.12.0"] {
        let (with, without) = (spread_of_hogs(version, true), spread_of_hogs(version, false));
        assert!(with < 1.5 && without > 1.6, "{version}: {with} with, {without} without");
    }
}

/// The pair that wakes each other, with two vCPUs pinned to two CPUs: its report, and its wakeups on another CPU.
fn hinted(row: &str, hint: IdleHint) -> (GuestReport, u64) {
    let inner = spec(flat(4, 300), kernel(row, 4, 250), vec![ping_pong()]);
    let mut guest = guest("vm", Platform::PowerpcKvm, &inner);
    guest.idle_hint = hint;
    let mut machine = flat(4, 300);
    machine.costs.vm_exit = Dist::Constant(600);
    let (mut reports, log) = run(&host(machine, row, vec![], vec![guest])).unwrap();
    let apart = |event: &&Event| matches!(event.kind, Kind::Waking { target_cpu, .. } if target_cpu != event.cpu);
    let apart = log.events.iter().filter(|event| event.kernel == KernelId(1)).filter(apart).count() as u64;
    (reports.remove(0), apart)
}

/// On an idle host a ceded vCPU would run at once. Both hints say so; the hypercall is paid for by each query. A guest
/// of 6.12 knows of a ceded vCPU from `lppaca.idle` and asks nobody.
#[test]
fn both_idle_hints_spread_a_pair_and_only_the_hypercall_leaves_the_guest() {
    let exits = |report: &GuestReport| report.exits.iter().find(|(name, _)| *name == "hcall").unwrap().1;
    for (hint, spreads, asks) in
        [(IdleHint::Off, false, false), (IdleHint::Vpa, true, false), (IdleHint::Hcall, true, true)]
    {
        let (report, apart) = hinted("5.13", hint);
        assert_eq!((apart > 5_000, exits(&report) > 5_000), (spreads, asks), "{hint:?}: {apart} apart, {report:?}");
    }
    let (report, apart) = hinted("6.12.0", IdleHint::Hcall);
    assert!(apart > 5_000 && exits(&report) < 50, "{apart} apart, {report:?}");
}

/// Two tasks on two vCPUs, on host CPUs 2 and 3, that wake each other: switches of the guest in a second. An idle host
/// CPU needs 20 us to leave its idle state; CPUs 0 and 1 handle the escalation interrupts of powerpc and may be busy.
fn switches_of_a_pair(platform: Platform, busy: bool, cpuidle: bool) -> usize {
    let mut pair = ping_pong();
    for (cpu, task) in pair.tasks.iter_mut().enumerate() {
        task.affinity = Some(CpuMask::from_iter([CpuId(cpu as u32)]));
    }
    let mut inner = spec(flat(2, 300), kernel("6.12.107", 2, 250), vec![pair]);
    let mut processor = (*inner.machine).clone();
    processor.physics.cpuidle = cpuidle;
    inner.machine = Arc::new(processor);
    let mut guest = guest("vm", platform, &inner);
    guest.affinity = [2, 3].map(|cpu| Some(CpuMask::from_iter([CpuId(cpu)]))).to_vec();
    let mut machine = flat(4, 300);
    machine.idle_states[0].exit = Dist::Constant(20_000);
    let hog = |cpu| ("busy", 0, Some(cpu), vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)]);
    let beside = if busy { vec![tasks(vec![hog(0), hog(1)])] } else { vec![] };
    let (_, log) = run(&host(machine, "6.12.107", beside, vec![guest])).unwrap();
    events_of(&log.events, 1).iter().filter(|event| matches!(event.kind, Kind::Switch { .. })).count()
}

/// A ceded vCPU of KVM on POWER9 is woken by a host CPU that has to leave its own idle state first. One that snoozes
/// needs no wakeup.
#[test]
fn a_ceded_vcpu_is_woken_by_the_host_cpu_of_its_escalation_interrupt() {
    let ceded = |platform, busy| switches_of_a_pair(platform, busy, false);
    let [idle, busy] = [false, true].map(|busy| ceded(Platform::PowerpcKvm, busy));
    assert!(idle * 10 < busy * 8, "{idle} {busy}");
    let [idle_powervm, busy_powervm] = [false, true].map(|busy| ceded(Platform::Powervm, busy));
    assert!(idle_powervm * 10 > busy_powervm * 9, "{idle_powervm} {busy_powervm}");
    let snoozing = switches_of_a_pair(Platform::PowerpcKvm, false, true);
    assert!(snoozing > busy * 3 / 2, "{snoozing} {busy}");
}

/// A task of an outer guest that sleeps for 1 ms at a time is woken by its timers, and its vCPU is idle in between,
/// whatever the inner guest does.
#[test]
fn an_outer_guest_handles_its_own_timers() {
    let sleeper = vec![Op::Sleep(Amount::Fixed(MSEC)), Op::Count { metric: 0, count: 1 }, Op::Jump(0)];
    let outer = spec(flat(2, 300), kernel("6.12.107", 2, 250), vec![tasks(vec![("sleeper", 0, Some(0), sleeper)])]);
    let outer = guest("outer", Platform::X86Kvm, &outer);
    let mut inner = guest("inner", Platform::X86Kvm, &spec(flat(2, 300), kernel("6.12.107", 2, 250), vec![pairs()]));
    inner.host = KernelId(1);
    let mut machine = flat(2, 300);
    machine.costs.vm_exit = Dist::Constant(600);
    let (reports, log) = run(&host(machine, "6.12.107", vec![], vec![outer, inner])).unwrap();
    let counts = log.events.iter().filter(|event| matches!(event.kind, Kind::Count { .. })).count();
    assert!(counts > 800, "{counts}");
    assert!(reports[0].vcpus.iter().all(|vcpu| vcpu.halted > SEC / 20), "{:?}", reports[0].vcpus);
}

/// With cpuidle-haltpoll a waker of a CPU that has been idle for a short time needs no interrupt, and nobody halts.
#[test]
fn a_guest_that_polls_before_it_halts_leaves_less_often() {
    let rates = |haltpoll| {
        let inner = spec(flat(4, 300), kernel("6.1", 4, 250), vec![ping_pong()]);
        let mut guest = guest("vm", Platform::X86Kvm, &inner);
        guest.haltpoll = haltpoll;
        let mut machine = flat(4, 300);
        machine.costs.vm_exit = Dist::Constant(600);
        let (reports, log) = run(&host(machine, "6.1", vec![], vec![guest])).unwrap();
        let switches =
            events_of(&log.events, 1).iter().filter(|e| matches!(e.kind, Kind::Switch { .. })).count() as u64;
        let of = |name: &str| reports[0].exits.iter().find(|(known, _)| *known == name).unwrap().1;
        (of("halt"), of("ipi"), switches)
    };
    let ((halts, ipis, switches), (halts_polling, ipis_polling, switches_polling)) = (rates(false), rates(true));
    assert!(halts > 10_000 && ipis > 10_000, "{halts} {ipis}");
    assert!(halts_polling < halts / 50 && ipis_polling < ipis / 50, "{halts_polling} {ipis_polling}");
    assert!(switches_polling > switches, "{switches_polling} {switches}");
}

/// Two threads that hold a spinlock for half of their time, on two vCPUs: beside a host task that takes half of one
/// host CPU a holder is preempted sooner or later; alone never.
#[test]
fn a_vcpu_that_loses_its_cpu_while_its_task_holds_a_spinlock_is_counted() {
    let program = |locks: bool| {
        let (take, give) = match locks {
            true => (Op::SpinLock { object: 0, metric: 0 }, Op::SpinUnlock(0)),
            false => (Op::Lock(0), Op::Unlock(0)),
        };
        let held = [take, Op::Run(Amount::Fixed(50_000)), give];
        held.into_iter().chain([Op::Run(Amount::Fixed(50_000)), Op::Jump(0)]).collect()
    };
    let preempted = |beside: Vec<Workload>, locks: bool| {
        let mut inside = tasks(vec![("a", 0, Some(0), program(locks)), ("b", 0, Some(1), program(locks))]);
        inside.objects = match locks {
            true => vec![ObjectSpec::SpinLock(schedlab_workload::SpinLockSpec::default())],
            false => vec![ObjectSpec::Mutex { pi: false }],
        };
        let inner = spec(flat(2, 300), kernel("6.12.107", 2, 250), vec![inside]);
        let guest = guest("vm", Platform::X86Kvm, &inner);
        run(&host(flat(2, 300), "6.12.107", beside, vec![guest])).unwrap().0[0].holders_preempted
    };
    let noise = || vec![tasks(vec![("noise", 0, Some(0), vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)])])];
    assert!(preempted(noise(), true) > 20, "{}", preempted(noise(), true));
    assert_eq!((preempted(vec![], true), preempted(noise(), false)), (0, 0));
}

/// The same of row 6.12.107.
fn kernel_lock(platform: Platform, pv_spinlocks: bool, cpus: u32, ple_window: Nanos) -> [u64; 3] {
    kernel_lock_of("6.12.107", platform, pv_spinlocks, cpus, ple_window)
}

/// Four tasks, each on a vCPU of its own, that hold a spinlock of the kernel for a third of their time: passes through
/// it in a second, pause-loop exits, hypercalls. `cpus`: of the host, which the vCPUs share in turn.
fn kernel_lock_of(row: &str, platform: Platform, pv_spinlocks: bool, cpus: u32, ple_window: Nanos) -> [u64; 3] {
    let section = Section { context: SectionContext::Spinlock, might_sleep: false, every: 0 };
    let held = Op::Section { amount: Amount::Fixed(20_000), section, last: false };
    let call = [Op::Call, Op::KernelLock { object: 0, metric: 0 }, held, Op::KernelUnlock { object: 0, last: true }];
    let rest = [Op::Count { metric: 0, count: 1 }, Op::Run(Amount::Fixed(40_000)), Op::Jump(0)];
    let program: Vec<Op> = call.into_iter().chain(rest).collect();
    let mut inside = tasks((0..4).map(|cpu| ("task", 0, Some(cpu), program.clone())).collect());
    inside.objects = vec![ObjectSpec::KernelLock];
    let mut processor = flat(4, 300);
    // Ten cycles, as before Skylake: a waiter halts after 131 us.
    processor.costs.cpu_relax = Dist::Constant(4);
    let inner = spec(processor, kernel(row, 4, 250), vec![inside]);
    let mut guest = guest("vm", platform, &inner);
    guest.pv_spinlocks = pv_spinlocks;
    guest.affinity = (0..4).map(|vcpu| Some(CpuMask::from_iter([CpuId(vcpu % cpus)]))).collect();
    let mut machine = flat(cpus, 300);
    machine.costs.vm_exit = Dist::Constant(1_000);
    machine.costs.ple_window = Dist::Constant(ple_window);
    let (reports, log) = run(&host(machine, "6.12.107", vec![], vec![guest])).unwrap();
    let passes = log.events.iter().filter(|event| matches!(event.kind, Kind::Count { .. })).count() as u64;
    let exits = |cause: &str| reports[0].exits.iter().find(|(name, _)| *name == cause).unwrap().1;
    [passes, exits("pause"), exits("hcall")]
}

/// Where every vCPU has a CPU the kinds of spinlock do alike. Where two share one, a queued lock is handed to vCPUs
/// that do not run; a guest of x86 leaves its pause loops. Where the processor does not notice them, the waiters of
/// paravirtual spinlocks halt and are kicked.
#[test]
fn a_queued_spinlock_suffers_most_where_vcpus_share_cpus() {
    let kinds = [(Platform::Arm64Kvm, false), (Platform::X86Kvm, false), (Platform::X86Kvm, true)];
    let [queued, test_and_set, paravirt] = kinds.map(|(platform, pv)| kernel_lock(platform, pv, 4, 1_638));
    assert!(queued[0] > 45_000, "{queued:?}");
    for found in [test_and_set, paravirt] {
        assert!(found[0] * 10 > queued[0] * 8, "{found:?} {queued:?}");
    }
    let [queued, test_and_set, paravirt] = kinds.map(|(platform, pv)| kernel_lock(platform, pv, 2, 1_638));
    assert_eq!(queued[1..], [0, 0]);
    assert!(test_and_set[1] > 100 && test_and_set[2] == 0, "{test_and_set:?}");
    assert!(paravirt[1] > 100, "{paravirt:?}");
    let halting = kernel_lock(Platform::X86Kvm, true, 2, 0);
    assert!(halting[1] == 0 && halting[2] > 100, "{halting:?}");
    assert!(test_and_set[0] > queued[0] * 2 && paravirt[0] > queued[0] * 2, "{queued:?} {test_and_set:?} {paravirt:?}");
}

/// Waiters of powerpc and s390 yield to the vCPU of the holder when it waits for a CPU, except with the spinlocks that
/// powerpc has from 5.9 to 6.1, which are those of hardware here. Where every vCPU has a CPU, nobody yields.
#[test]
fn waiters_yield_to_the_vcpu_of_the_holder() {
    let queued = kernel_lock(Platform::Arm64Kvm, false, 2, 0);
    for (row, platform, yields) in [
        ("5.7", Platform::PowerpcKvm, true),
        ("6.1", Platform::PowerpcKvm, false),
        ("6.12.107", Platform::PowerpcKvm, true),
        ("6.12.107", Platform::Powervm, true),
        ("6.12.107", Platform::S390, true),
    ] {
        let shared = kernel_lock_of(row, platform, false, 2, 0);
        let own = kernel_lock_of(row, platform, false, 4, 0);
        assert_eq!((shared[2] > 100, own[2]), (yields, 0), "{row} {platform:?}: {shared:?} {own:?}");
        assert_eq!(shared[0] > queued[0] * 3 / 2, yields, "{row} {platform:?}: {shared:?} {queued:?}");
    }
}

/// A thread that unmaps memory all the time beside two that compute, on three vCPUs that share a CPU of the host:
/// rounds in a second, hypercalls, and the CPU time of its vCPU.
fn unmaps(pv_tlb_flush: bool, pv_sched_yield: bool) -> [u64; 3] {
    let unmap = Op::Memory { work: MemoryWork::Unmap, kib: 4 };
    let sender = vec![Op::Run(Amount::Fixed(50_000)), unmap, Op::Count { metric: 0, count: 1 }, Op::Jump(0)];
    let computes = vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
    let threads = [sender, computes.clone(), computes].into_iter().enumerate();
    let mut inside = tasks(threads.map(|(cpu, ops)| ("thread", 0, Some(cpu as u32), ops)).collect());
    inside.tasks.iter_mut().for_each(|task| task.process = 0);
    let mut processor = flat(3, 300);
    processor.costs.tlb_flush = Dist::Constant(200);
    let inner = spec(processor, kernel("6.12.107", 3, 250), vec![inside]);
    let mut guest = guest("vm", Platform::X86Kvm, &inner);
    (guest.pv_tlb_flush, guest.pv_sched_yield) = (pv_tlb_flush, pv_sched_yield);
    guest.affinity = (0..3).map(|_| Some(CpuMask::from_iter([CpuId(0)]))).collect();
    let mut machine = flat(1, 300);
    machine.costs.vm_exit = Dist::Constant(1_000);
    let (reports, log) = run(&host(machine, "6.12.107", vec![], vec![guest])).unwrap();
    let rounds = log.events.iter().filter(|event| matches!(event.kind, Kind::Count { .. })).count() as u64;
    let hypercalls = reports[0].exits.iter().find(|(name, _)| *name == "hcall").unwrap().1;
    [rounds, hypercalls, reports[0].vcpus[0].run]
}

/// Two tasks on two vCPUs that wake each other: exits for interrupts in a second.
fn ipi_exits(enable_apicv: bool, enable_ipiv: bool) -> u64 {
    let inner = spec(flat(2, 300), kernel("6.12.107", 2, 250), vec![ping_pong()]);
    let mut guest = guest("vm", Platform::X86Kvm, &inner);
    (guest.enable_apicv, guest.enable_ipiv, guest.haltpoll) = (enable_apicv, enable_ipiv, false);
    let busy = vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
    let busy = tasks(vec![("busy", 0, Some(0), busy.clone()), ("busy", 0, Some(1), busy)]);
    guest.run.workloads = Arc::new(vec![ping_pong(), busy]);
    let (reports, _) = run(&host(flat(2, 300), "6.12.107", vec![], vec![guest])).unwrap();
    reports[0].exits.iter().find(|(name, _)| *name == "ipi").unwrap().1
}

/// An interrupt for a vCPU that runs is one exit of its sender and one of its receiver. Posted interrupts spare the
/// second one, IPI virtualization the first.
#[test]
fn posted_interrupts_and_ipi_virtualization_spare_exits() {
    let [neither, posted, both] = [(false, false), (true, false), (true, true)].map(|(a, b)| ipi_exits(a, b));
    assert!(neither > 500 && both == 0, "{neither} {posted} {both}");
    assert!(posted * 10 < neither * 8 && posted > 0, "{neither} {posted} {both}");
}

/// A munmap waits until the host runs the vCPUs of the process that wait for a CPU. Deferred flushes wait for none of
/// them; after a directed yield the sender spends less of its CPU time on the wait.
#[test]
fn a_guest_does_not_wait_for_vcpus_that_flush_when_they_are_entered() {
    let [deferred, yields, neither] = [(true, true), (false, true), (false, false)].map(|(a, b)| unmaps(a, b));
    assert!(deferred[0] > 10 * neither[0] && deferred[1] == 0, "{deferred:?} {neither:?}");
    assert!(yields[2] * 100 < neither[2] * 95 && yields[1] > neither[1], "{yields:?} {neither:?}");
    assert!(neither[0] > 0 && yields[0] * 10 > neither[0] * 9, "{yields:?} {neither:?}");
}
