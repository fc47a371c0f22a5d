//! TLB shootdowns on hardware: which CPUs a munmap interrupts, and how long it waits.

use crate::support::{flat, kernel, record, sampled_time, spec, tasks};
use schedlab_model::{Nanos, MSEC};
use schedlab_spec::RunSpec;
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Dist, MemoryWork, Op, Section, SectionContext, Workload};

const IPI: Nanos = 1_000;
const IRQ: Nanos = 400;
const FLUSH: Nanos = 200;

/// A machine whose only costs are those of interrupts and flushes.
fn shoots_down(cpus: u32, workload: Workload) -> RunSpec {
    let mut machine = flat(cpus, 0);
    machine.costs.ipi = std::array::from_fn(|_| Dist::Constant(IPI));
    machine.costs.irq = Dist::Constant(IRQ);
    machine.costs.tlb_flush = Dist::Constant(FLUSH);
    let mut spec = spec(machine, kernel("6.12.0", cpus as usize, 250), vec![workload]);
    spec.duration = 10 * MSEC;
    spec
}

/// After 1 ms one munmap, whose time is a sample.
fn unmaps() -> Vec<Op> {
    vec![
        Op::Run(Amount::Fixed(MSEC)),
        Op::Clock(0),
        Op::Memory { work: MemoryWork::Unmap, kib: 16 },
        Op::Clock(1),
        Op::SubReg { into: 1, from: 0 },
        Op::Sample { metric: 0, reg: 1 },
        Op::Run(Amount::Fixed(MSEC)),
    ]
}

/// Tasks on a CPU each: those of one process have equal numbers.
fn processes(list: Vec<(u32, Vec<Op>)>) -> Workload {
    let named = list.iter().enumerate();
    let mut workload = tasks(named.map(|(cpu, (_, ops))| ("task", 0, Some(cpu as u32), ops.clone())).collect());
    for (task, (process, _)) in workload.tasks.iter_mut().zip(&list) {
        task.process = *process;
    }
    Workload { metrics: vec![sampled_time("munmap")], ..workload }
}

fn computes() -> Vec<Op> {
    vec![Op::Run(Amount::Fixed(5 * MSEC))]
}

/// A call that has interrupts disabled from 0.9 to 1.1 ms.
fn disables_interrupts() -> Vec<Op> {
    let section = |ns, context, last| Op::Section {
        amount: Amount::Fixed(ns),
        section: Section { context, might_sleep: false, every: 0 },
        last,
    };
    vec![
        Op::Run(Amount::Fixed(MSEC - 100_000)),
        Op::Call,
        section(200_000, SectionContext::IrqOff, true),
        Op::Run(Amount::Fixed(MSEC)),
    ]
}

#[test]
fn a_munmap_waits_for_the_cpus_that_run_its_process() {
    let all = IPI + IRQ + FLUSH;
    for (name, others, wait) in [
        ("alone", vec![], FLUSH),
        ("another thread", vec![(0, computes())], all),
        ("two threads, in parallel", vec![(0, computes()), (0, computes())], all),
        ("another process", vec![(1, computes())], FLUSH),
        ("a thread that sleeps", vec![(0, vec![Op::Sleep(Amount::Fixed(8 * MSEC))])], FLUSH),
        ("interrupts disabled", vec![(0, disables_interrupts())], 100_000 + IRQ + FLUSH),
    ] {
        let cpus = 1 + others.len() as u32;
        let tasks = std::iter::once((0, unmaps())).chain(others).collect();
        let (outcome, record) = record(&shoots_down(cpus, processes(tasks)));
        outcome.unwrap();
        assert_eq!(record.samples(), [wait], "{name}");
    }
}

/// The CPU flushes its own TLB while the others flush theirs.
#[test]
fn all_cpus_flush_at_the_same_time() {
    let mut spec = shoots_down(2, processes(vec![(0, unmaps()), (0, computes())]));
    let mut machine = (*spec.machine).clone();
    machine.costs.ipi = std::array::from_fn(|_| Dist::Constant(0));
    machine.costs.irq = Dist::Constant(0);
    spec.machine = std::sync::Arc::new(machine);
    assert_eq!(record(&spec).1.samples(), [FLUSH]);
}

/// The CPU that is interrupted loses the time of the handler.
#[test]
fn the_interrupted_thread_loses_time() {
    let workload = processes(vec![(0, unmaps()), (0, computes())]);
    let (outcome, record) = record(&shoots_down(2, workload));
    outcome.unwrap();
    let exits = |e: &&schedlab_trace::Event| matches!(e.kind, Kind::Switch { prev: 2, .. });
    assert_eq!(record.events.iter().find(exits).unwrap().time, 5 * MSEC + IRQ + FLUSH);
}

/// Two threads that unmap at the same time answer each other's interrupts.
#[test]
fn two_senders_do_not_wait_for_each_other_for_ever() {
    let workload = processes(vec![(0, unmaps()), (0, unmaps())]);
    let (outcome, record) = record(&shoots_down(2, workload));
    outcome.unwrap();
    assert_eq!(record.samples().len(), 2);
    assert!(record.samples().iter().all(|wait| *wait <= 2 * (IPI + IRQ + FLUSH)), "{:?}", record.samples());
}

/// Machines that flush in hardware state no cost: no CPU is interrupted.
#[test]
fn without_a_cost_there_are_no_shootdowns() {
    let mut spec = shoots_down(2, processes(vec![(0, unmaps()), (0, computes())]));
    let mut machine = (*spec.machine).clone();
    machine.costs.tlb_flush = Dist::Constant(0);
    spec.machine = std::sync::Arc::new(machine);
    let (outcome, record) = record(&spec);
    assert_eq!((record.samples(), outcome.unwrap().cpus[1].busy), (vec![0], 5 * MSEC));
}
