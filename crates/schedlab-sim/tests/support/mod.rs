//! What the tests share: a machine whose costs are all one number, and small workloads.
#![allow(dead_code, clippy::unwrap_used)]

pub mod swarm;

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, KernelId, Nanos, Topology, SEC};
use schedlab_policy::{KernelConfig, Version};
use schedlab_sim::{Outcome, SimError};
use schedlab_spec::{Costs, Guest, IdleHint, IdleState, Machine, Memory, Physics, Platform, RunSpec};
use schedlab_trace::{Event, Kind, Sink};
use schedlab_workload::{Better, Dist, MetricDecl, MetricKind, Op, Program, TaskSpec, Unit, Workload};

/// A guest of this specification, on a machine of the host's kind, with a pinned vCPU per CPU.
pub fn guest(name: &str, platform: Platform, run: &RunSpec) -> Guest {
    let machine = run.machine.guest(Arc::clone(&run.machine.topology));
    let nr_cpus = machine.topology.nr_cpus() as u32;
    Guest {
        name: name.into(),
        host: KernelId::FIRST,
        run: RunSpec { machine: Arc::new(machine), ..run.clone() },
        platform,
        affinity: (0..nr_cpus).map(|cpu| Some(CpuMask::from_iter([CpuId(cpu)]))).collect(),
        cgroup: None,
        nice: 0,
        vcpu_is_preempted: true,
        idle_hint: IdleHint::Off,
        paravirt_time_accounting: false,
        halt_poll_max: 0,
        haltpoll: false,
        pv_spinlocks: true,
        pv_tlb_flush: platform == Platform::X86Kvm,
        pv_sched_yield: platform == Platform::X86Kvm,
        enable_apicv: false,
        enable_ipiv: false,
        events: Vec::new(),
    }
}

/// A machine on which everything costs `cost` ns.
pub fn machine(topology: Topology, cost: Nanos) -> Machine {
    let c = || Dist::Constant(cost);
    let none = || Dist::Constant(0);
    let five = || [c(), c(), c(), c(), c()];
    Machine {
        name: "test".into(),
        summary: String::new(),
        sources: Vec::new(),
        ranges: Default::default(),
        calibrated: false,
        topology: Arc::new(topology),
        smt_rates: vec![1024, 640],
        costs: Costs {
            syscall: c(),
            schedule: none(),
            switch_thread: c(),
            switch_process: c(),
            wakeup: c(),
            wakeup_clock: none(),
            scan_cpu: five(),
            ipi: five(),
            irq_entry: none(),
            irq: c(),
            tick: c(),
            timer_program: c(),
            timer_resume: none(),
            pipe_read: c(),
            pipe_write: c(),
            pipe_wake: none(),
            pipe_wait: c(),
            pipe_resume: none(),
            socket_receive: c(),
            socket_send: c(),
            socket_wake: none(),
            socket_wait: c(),
            socket_resume: none(),
            copy_kib: c(),
            futex_wake: c(),
            futex_wait: c(),
            futex_resume: none(),
            fork_process: c(),
            fork_thread: c(),
            start_process: none(),
            start_thread: none(),
            exec: c(),
            exit_process: c(),
            exit_thread: c(),
            reap_wait: none(),
            reap: none(),
            balance_pass: c(),
            balance_cpu: c(),
            fault: c(),
            clear_kib: c(),
            read_kib: c(),
            mmap: Dist::Constant(0),
            munmap: Dist::Constant(0),
            zap_page: Dist::Constant(0),
            unmap_page: c(),
            copy_page_table: c(),
            user_op: c(),
            vm_exit: none(),
            vm_exit_nested: none(),
            ipi_send: none(),
            tlb_flush: none(),
            cpu_relax: none(),
            ple_window: none(),
            idle_hint: none(),
            line_transfer: [none(), none(), none(), none(), none()],
        },
        idle_states: vec![IdleState {
            name: "C1".into(),
            exit: c(),
            latency: None,
            target_residency: 0,
            polling: false,
        }],
        memory: Some(Memory { cpu: 1000, node: 1800, remote: 900, latency: Some([80, 130]) }),
        frequency: None,
        caches: None,
        sections: Arc::default(),
        physics: Physics::default(),
        hz: 250,
    }
}

/// The same with separate parts of calls and switches, which other machines count in one: each takes `cost`, too.
#[allow(dead_code)]
pub fn in_parts(mut machine: Machine, cost: Nanos) -> Machine {
    let costs = &mut machine.costs;
    let parts = [
        &mut costs.schedule,
        &mut costs.wakeup_clock,
        &mut costs.irq_entry,
        &mut costs.timer_resume,
        &mut costs.pipe_wake,
        &mut costs.pipe_resume,
        &mut costs.socket_wake,
        &mut costs.socket_resume,
        &mut costs.futex_resume,
        &mut costs.start_process,
        &mut costs.start_thread,
        &mut costs.reap_wait,
        &mut costs.reap,
    ];
    parts.into_iter().for_each(|part| *part = Dist::Constant(cost));
    machine
}

/// A flat machine of this many CPUs under one cache.
pub fn flat(cpus: u32, cost: Nanos) -> Machine {
    machine(Topology::regular(1, 1, cpus, 1, true).unwrap(), cost)
}

pub fn kernel(version: &str, nr_cpus: usize, hz: u32) -> KernelConfig {
    KernelConfig::new(Version::find(version).unwrap(), nr_cpus, hz)
}

/// A workload of single-program tasks: one `(name, nice, CPU, operations)` each.
pub fn tasks(list: Vec<(&str, i8, Option<u32>, Vec<Op>)>) -> Workload {
    let mut workload = Workload { name: "w".into(), ..Workload::default() };
    for (i, (name, nice, cpu, ops)) in list.into_iter().enumerate() {
        workload.programs.push(Program { name: name.into(), ops, ..Program::default() });
        workload.tasks.push(TaskSpec {
            name: name.into(),
            program: i as u32,
            nice,
            process: i as u32,
            affinity: cpu.map(|cpu| CpuMask::from_iter([CpuId(cpu)])),
            ..TaskSpec::default()
        });
    }
    workload
}

/// A metric of samples of a time, in us.
pub fn sampled_time(name: &str) -> MetricDecl {
    MetricDecl {
        name: name.into(),
        help: String::new(),
        unit: Unit::Microseconds,
        better: Better::Lower,
        kind: MetricKind::Samples,
        default_stats: Vec::new(),
        divide: 1,
        queueing: false,
    }
}

pub fn spec(machine: Machine, kernel: KernelConfig, workloads: Vec<Workload>) -> RunSpec {
    RunSpec {
        machine: Arc::new(machine),
        kernel,
        workloads: Arc::new(workloads),
        cgroups: Arc::default(),
        autogroup: false,
        duration: SEC,
        warmup: 0,
        seed: 1,
        noise: false,
        ties: None,
        hotplug: Arc::default(),
        guests: Arc::default(),
    }
}

/// Every event of a run, with the names of its tasks.
#[derive(Default, Debug)]
pub struct Record {
    pub events: Vec<Event>,
    pub names: Vec<(i32, String)>,
}

impl Sink for Record {
    fn event(&mut self, event: &Event) {
        self.events.push(*event);
    }

    fn name(&mut self, _kernel: KernelId, pid: i32, name: &str) {
        self.names.push((pid, name.into()));
    }
}

impl Record {
    pub fn name(&self, pid: i32) -> &str {
        self.names.iter().find(|(known, _)| *known == pid).map_or("idle", |(_, name)| name)
    }

    /// The values of all samples, in order.
    pub fn samples(&self) -> Vec<u64> {
        let value = |event: &Event| match event.kind {
            Kind::Sample { value, .. } => Some(value),
            _ => None,
        };
        self.events.iter().filter_map(value).collect()
    }

    /// `NAME@ms` for every switch to a task on the CPU, in order.
    pub fn runs_on(&self, cpu: u32) -> Vec<String> {
        let on = |event: &&Event| event.cpu == CpuId(cpu);
        let run = |event: &Event| match event.kind {
            Kind::Switch { next, .. } if next != 0 => Some(format!("{}{}", self.name(next), event.time / 1_000_000)),
            _ => None,
        };
        self.events.iter().filter(on).filter_map(run).collect()
    }
}

pub fn record(spec: &RunSpec) -> (Result<Outcome, SimError>, Record) {
    let mut record = Record::default();
    let outcome = schedlab_sim::run(spec, &mut record, &AtomicBool::new(false));
    (outcome, record)
}
