//! What a run starts from: the machine's CPUs and cores, the workloads' programs and objects in flat tables.

use std::sync::Arc;

use schedlab_model::{stream, CpuId, Nanos};
use schedlab_policy::{Feature, PreemptModel, Sched};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;
use schedlab_workload::Op;

use crate::cgroup::Cgroups;
use crate::cost::{CostTable, CostTables, Dice};
use crate::cpu::{Activity, Cpu, CpuTime};
use crate::engine::{Engine, Source, LOOK_MIN};
use crate::objects::Object;
use crate::queue::EventQueue;

/// A core: its threads and how many of them run a task.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub threads: Arc<[CpuId]>,
    pub busy: u32,
}

/// Where a workload's programs, objects, metrics and processes begin in the run's flat tables.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Bases {
    pub program: u32,
    pub object: u32,
    pub metric: u16,
    pub process: u32,
}

impl<'a, S: Sink> Engine<'a, S> {
    pub fn new(spec: &'a RunSpec, sink: &'a mut S) -> Self {
        let nr_cpus = spec.machine.topology.nr_cpus();
        let cpu_bits = nr_cpus.next_power_of_two().trailing_zeros();
        let mut sched = Sched::new(spec.kernel.clone(), Arc::clone(&spec.machine.topology));
        sched.set_seed(if spec.noise { spec.seed } else { 0 });
        let workloads = spec.workloads.len();
        let cgroups = Cgroups::new(&mut sched.fair, &spec.cgroups, spec.autogroup, workloads);
        let bandwidth = spec.cgroups.iter().any(|cgroup| cgroup.bandwidth.is_some());
        let costs = &spec.machine.costs;
        sched.set_balance_cost(costs.balance_pass.typical(), costs.balance_cpu.typical());
        let tick_nsec = spec.kernel.tick_nsec();
        let cpus = (0..nr_cpus).map(|cpu| new_cpu(spec, cpu, tick_nsec)).collect();
        let (cores, core_of) = cores(spec);
        let mut engine = Engine {
            now: 0,
            cpu_bits,
            events: EventQueue::new(Source::count(cpu_bits)),
            sched,
            cpus,
            cores,
            core_of,
            tasks: Vec::new(),
            objects: Vec::new(),
            costs: CostTables::new(costs, spec.noise),
            idle_allowed: idle_allowed(spec),
            idle_exits: spec.machine.idle_states.iter().map(|s| CostTable::new(&s.exit, spec.noise)).collect(),
            code: Vec::new(),
            entries: Vec::new(),
            bases: Vec::new(),
            workloads: Arc::clone(&spec.workloads),
            cgroups,
            metrics_of_groups: 0,
            bandwidth,
            marked: Vec::with_capacity(nr_cpus),
            starts: Vec::new(),
            placement: stream(spec.seed, "start/cpu"),
            spec,
            sink,
            tick_nsec,
            preemptible: matches!(spec.kernel.preempt, PreemptModel::Full | PreemptModel::Lazy),
            hrtick: spec.kernel.has(Feature::Hrtick),
            unfinished: spec.workloads.iter().map(|w| w.ends).collect(),
            alive: 0,
            born: 0,
            recycles: true,
            timer_sequence: 0,
            handled: 0,
            switches: 0,
            failure: None,
            checks: crate::check::Checks::new(nr_cpus),
            stop: false,
            next_look: LOOK_MIN,
            horizon: spec.duration,
            pending_max: 0,
        };
        engine.lay_out();
        engine.arm_bandwidth();
        engine
    }

    /// Flattens the workloads' programs and objects into the run's tables; steps name steps, objects and metrics by their
    /// place there.
    fn lay_out(&mut self) {
        let workloads = Arc::clone(&self.workloads);
        let mut base = Bases::default();
        for workload in workloads.iter() {
            self.bases.push(base);
            for program in &workload.programs {
                let first = self.code.len() as u32;
                self.entries.push(first);
                self.code.extend(program.ops.iter().map(|op| op.relocated(base.object, base.metric, first)));
                // Whoever gets to the end of its program exits.
                self.code.push(Op::Exit);
            }
            self.objects.extend(workload.objects.iter().map(|spec| Object::new(spec, self.cpus.len())));
            base.program += workload.programs.len() as u32;
            base.object += workload.objects.len() as u32;
            base.metric += workload.metrics.len() as u16;
            base.process += 1 + workload.tasks.iter().map(|task| task.process).max().unwrap_or(0);
        }
        self.metrics_of_groups = base.metric;
    }
}

fn cores(spec: &RunSpec) -> (Vec<Core>, Vec<u32>) {
    let topology = &spec.machine.topology;
    let mut cores: Vec<Core> = Vec::new();
    let mut core_of = vec![0; topology.nr_cpus()];
    for first in topology.all().iter().filter(|cpu| topology.smt(*cpu).lowest() == Some(*cpu)) {
        let threads: Arc<[CpuId]> = topology.smt(first).iter().collect();
        threads.iter().for_each(|cpu| core_of[cpu.index()] = cores.len() as u32);
        cores.push(Core { threads, busy: 0 });
    }
    (cores, core_of)
}

/// `cpuidle_governor_latency_req`: the shallowest state is always allowed.
fn idle_allowed(spec: &RunSpec) -> usize {
    let limit = spec.workloads.iter().filter_map(|w| w.idle_latency_limit).min().unwrap_or(Nanos::MAX);
    spec.machine.idle_states.iter().take_while(|state| state.exit.typical() <= limit).count().max(1)
}

fn new_cpu(spec: &RunSpec, cpu: usize, tick_nsec: Nanos) -> Cpu {
    let phase = if spec.noise { stream(spec.seed, &format!("tick/{cpu}")).below(tick_nsec) } else { 0 };
    Cpu {
        curr: None,
        activity: Activity::Idle,
        last: 0,
        rate: spec.machine.smt_rates.first().copied().unwrap_or(1024).max(1),
        pending: 0,
        need_resched: false,
        need_resched_lazy: false,
        resched_seen: false,
        clock_read: 0,
        schedule_paid: false,
        leaving_for: None,
        marked: false,
        process: u32::MAX,
        tick_phase: phase,
        idle_state: 0,
        idle_from: 0,
        idle_average: 1_000_000,
        hrtimers: Default::default(),
        wakelist: Vec::new(),
        leaving: Vec::new(),
        push_away: None,
        nohz_kicked: false,
        dice: Dice::new(stream(spec.seed, &format!("cost/cpu/{cpu}"))),
        time: CpuTime::default(),
    }
}
