//! The machine: its CPUs and cores, its tables of costs, and the prices of what CPUs do.

use std::sync::Arc;

use schedlab_model::{stream, CpuId, Nanos, Table, Topology};
use schedlab_spec::{IdleState, Machine as Preset, RunSpec};

use super::cost::{CostTable, CostTables, Dice};
use super::cpu::{Activity, Cpu};
use super::cpuidle::{state_at_boot, Cpuidle};
use super::exits::Exits;
use super::frequency::Frequencies;
use super::memory::MemoryBandwidth;
use super::numa::NumaCosts;
use super::segment::WORK_SHIFT;
use super::warmth::Warmth;

/// A core: its threads and how many of them are busy.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) threads: Box<[CpuId]>,
    pub(super) busy: u32,
}

/// The hardware under one kernel.
#[derive(Debug)]
pub struct Machine {
    pub cpus: Table<Cpu>,
    pub costs: CostTables,
    /// CPUs at rate 0.
    pub stopped: u32,
    /// The exits of a guest; `None` on hardware.
    pub exits: Option<Box<Exits>>,
    pub(super) cores: Table<Core>,
    /// Index into `cores`, by CPU.
    pub(super) core_of: Table<u32>,
    /// Latency of leaving each idle state.
    pub(super) idle_exits: Vec<CostTable>,
    /// For each idle state that the workloads allow (PM QoS), shallowest first: the smallest target residency from it
    /// on.
    pub(super) residencies: Vec<Nanos>,
    /// The governors of idle states, where the machine has them.
    pub(super) cpuidle: Option<Box<Cpuidle>>,
    /// The CPUs that wait for memory, where they share its bandwidth.
    pub(super) memory: Option<Box<MemoryBandwidth>>,
    /// The frequencies of the cores, where they change.
    pub frequency: Option<Box<Frequencies>>,
    pub numa: NumaCosts,
    /// The contents of the caches, if tasks have working sets and the machine states its caches.
    pub(super) warmth: Option<Box<Warmth>>,
    pub(super) preset: Arc<Preset>,
    pub(super) topology: Arc<Topology>,
    /// A CPU that becomes busy or idle changes the rates of others: cores have several threads, or frequencies depend
    /// on how many are busy. Memory bandwidth is apart from this.
    linked_rates: bool,
    shares: bool,
    pub(super) has_lines: bool,
    has_locks: bool,
    selection_takes_time: bool,
    /// Of a wakeup, the part under the runqueue lock.
    pub enqueue_time: Nanos,
    /// Of a switch, the part under the runqueue lock: all of it, as the parts are not known.
    pub switch_time: Nanos,
    /// One atomic operation.
    pub atomic_time: Nanos,
    /// A task's own part of a wakeup, without lines and search.
    pub wakeup_time: Nanos,
    /// The transfer of a line, by distance; 0 where lines cost nothing.
    pub(super) line_times: [Nanos; 5],
    /// One iteration of the loop that waits for a spinlock of the kernel; 0: not known.
    pub cpu_relax: Nanos,
    /// CPUs flush their TLBs for each other, by interrupts.
    pub shoots_down: bool,
}

impl Machine {
    /// The machine of a run at time 0, all CPUs idle.
    pub fn new(spec: &RunSpec, seed: u64) -> Self {
        let preset = Arc::clone(&spec.machine);
        let smt_rate = preset.smt_rates.first().copied().unwrap_or(1024).max(1);
        let dice = |cpu: usize| Dice::new(stream(seed, &format!("cost/cpu/{cpu}")));
        let (cores, core_of) = cores(&preset);
        let costs = &spec.machine.costs;
        let idle_allowed = idle_allowed(spec);
        let cpuidle = Cpuidle::new(spec, idle_allowed);
        let idle_state = state_at_boot(cpuidle.as_deref(), preset.physics.core_idle, idle_allowed);
        let cpu = |cpu| {
            let speed = preset.topology.capacity(CpuId(cpu as u32));
            let mut cpu = Cpu { idle_state, speed, ..Cpu::new(smt_rate, dice(cpu)) };
            cpu.update_rate();
            cpu
        };
        let frequency = Frequencies::new(spec, &core_of);
        let linked_rates = frequency.is_some() || cores.iter().any(|core| core.threads.len() > 1);
        let mut machine = Machine {
            frequency,
            cpus: (0..preset.topology.nr_cpus()).map(cpu).collect(),
            costs: CostTables::new(&preset.costs, spec.noise),
            stopped: 0,
            exits: None,
            cores,
            core_of,
            idle_exits: preset.idle_states.iter().map(|state| CostTable::new(&state.exit, spec.noise)).collect(),
            residencies: residencies(&spec.machine.idle_states[..idle_allowed]),
            cpuidle,
            memory: MemoryBandwidth::new(spec),
            numa: NumaCosts::new(spec),
            warmth: Warmth::new(spec),
            enqueue_time: costs.wakeup.typical().saturating_sub(costs.wakeup_clock.typical()),
            switch_time: costs.switch_thread.typical(),
            atomic_time: costs.user_op.typical(),
            wakeup_time: costs.wakeup.typical(),
            line_times: line_times(&preset),
            cpu_relax: costs.cpu_relax.typical(),
            shoots_down: costs.tlb_flush.typical() > 0,
            topology: Arc::clone(&preset.topology),
            linked_rates,
            shares: preset.physics.lines || preset.physics.locks,
            has_lines: preset.physics.lines,
            has_locks: preset.physics.locks,
            selection_takes_time: preset.physics.selection,
            preset,
        };
        machine.boot_frequencies();
        machine
    }

    /// Whether a CPU that becomes busy or idle may change the rates of others.
    #[inline]
    pub fn has_linked_rates(&self) -> bool {
        self.linked_rates
    }

    /// Whether objects that several CPUs use cost more than instructions.
    #[inline]
    pub fn shares(&self) -> bool {
        self.shares
    }

    /// Whether working sets of tasks may be evicted.
    #[inline]
    pub fn has_warmth(&self) -> bool {
        self.warmth.is_some()
    }

    /// Whether locks are waited for.
    #[inline]
    pub fn has_locks(&self) -> bool {
        self.has_locks
    }

    /// Whether a search for a CPU takes its time before the enqueue, and newidle balancing before the pick.
    #[inline]
    pub fn selection_takes_time(&self) -> bool {
        self.selection_takes_time
    }

    /// The memory bandwidth of one CPU alone, MB/s, if the machine states it.
    pub fn memory_of_cpu(&self) -> Option<u32> {
        self.preset.memory.map(|memory| memory.cpu)
    }

    /// How long so many ns of work take on the CPU at its rate.
    pub fn wall_of(&self, cpu: CpuId, work: Nanos) -> Nanos {
        self.cpus[cpu.index()].core_wall(work << WORK_SHIFT).unwrap_or(work)
    }

    /// Charges overhead to what the CPU does next.
    #[inline]
    pub fn charge(&mut self, cpu: CpuId, cost: Nanos) {
        self.cpus[cpu.index()].pending += cost;
    }

    /// Charges the tick's own time.
    pub fn charge_tick(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        c.pending += self.costs.tick.draw(&mut c.dice);
        self.exit_for_timer(cpu);
    }

    /// Charges an interrupt handler's own time: of a timer.
    pub fn charge_irq(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        c.pending += self.costs.irq.draw(&mut c.dice);
        self.exit_for_timer(cpu);
    }

    /// The same for an inter-processor interrupt.
    pub fn charge_ipi(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        c.pending += self.costs.irq.draw(&mut c.dice);
        self.exit_to_receive(cpu);
    }

    /// The time of an interrupt handler.
    pub fn irq_time(&mut self, cpu: CpuId) -> Nanos {
        self.costs.irq.draw(&mut self.cpus[cpu.index()].dice)
    }

    /// The time of a TLB flush that another CPU requests; 0 on machines whose hardware broadcasts flushes.
    pub fn tlb_flush(&mut self, cpu: CpuId) -> Nanos {
        self.costs.tlb_flush.draw_any(&mut self.cpus[cpu.index()].dice)
    }

    /// Charges a switch to the idle task, which borrows the address space that it finds (lazy TLB).
    pub fn charge_switch_to_idle(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu.index()];
        c.pending += self.costs.switch_thread.draw(&mut c.dice);
    }

    /// Charges load-balance passes that looked at so many CPUs in all.
    pub fn charge_balance(&mut self, cpu: CpuId, passes: u32, looked_at: u32) {
        let c = &mut self.cpus[cpu.index()];
        for _ in 0..passes {
            c.pending += self.costs.balance_pass.draw(&mut c.dice);
        }
        if looked_at > 0 {
            c.pending += self.costs.balance_cpu.draw(&mut c.dice) * u64::from(looked_at);
        }
    }

    /// Charges what waking the other side adds to a read or write.
    #[inline]
    pub fn charge_channel_wake(&mut self, cpu: CpuId, socket: bool) {
        let c = &mut self.cpus[cpu.index()];
        let table = if socket { &self.costs.socket_wake } else { &self.costs.pipe_wake };
        c.pending += table.draw_any(&mut c.dice);
    }

    /// How long after the beginning of a wakeup the runqueue's clock is read.
    #[inline]
    pub fn wakeup_clock(&mut self, cpu: CpuId) -> Nanos {
        self.costs.wakeup_clock.draw_any(&mut self.cpus[cpu.index()].dice)
    }

    /// From a timer's expiry until its handler starts.
    pub fn timer_latency(&mut self, cpu: CpuId) -> Nanos {
        self.costs.irq_entry.draw_any(&mut self.cpus[cpu.index()].dice)
    }

    /// From now until an interrupt that CPU `from` sends arrives: first `from` spends what it has incurred at this
    /// instant, so the last of many wakeups is sent last. The sender is busy with sending meanwhile.
    pub fn ipi_latency(&mut self, cpu: CpuId, from: CpuId) -> Nanos {
        self.exit_to_send(from);
        let flight = self.ipi_flight(cpu, from);
        let sender = &mut self.cpus[from.index()];
        sender.pending += self.costs.ipi_send.draw_any(&mut sender.dice);
        flight
    }

    /// The same of one of several interrupts that a single exit sends.
    pub fn ipi_flight(&mut self, cpu: CpuId, from: CpuId) -> Nanos {
        let distance = self.topology.distance(from, cpu) as usize;
        self.sending_delay(from) + self.costs.ipi[distance].draw(&mut self.cpus[from.index()].dice)
    }

    /// How long the CPU is still busy with what it has incurred at this instant. At rate 0 only the start of a task,
    /// whose shell is not simulated, incurs anything.
    pub fn sending_delay(&self, from: CpuId) -> Nanos {
        let from = &self.cpus[from.index()];
        from.pending_wall().unwrap_or(from.pending)
    }

    /// The CPU became busy or idle. Threads of a core share its execution resources, so the rate of all of them may
    /// change: these are accounted up to now, and the end of what they execute has to be found anew. Whether it did.
    pub fn core_changed(&mut self, cpu: CpuId, busy: bool, now: Nanos) -> bool {
        let core = &mut self.cores[self.core_of[cpu.index()] as usize];
        core.busy = if busy { core.busy + 1 } else { core.busy - 1 };
        if core.threads.len() < 2 {
            return false;
        }
        let rates = &self.preset.smt_rates;
        let rate = rates[(core.busy as usize).saturating_sub(1).min(rates.len() - 1)].max(1);
        let changes = self.cpus[cpu.index()].smt_rate != rate;
        if changes {
            self.set_smt_rate(cpu, rate, now);
        }
        changes
    }

    #[inline(never)]
    fn set_smt_rate(&mut self, cpu: CpuId, rate: u32, now: Nanos) {
        for thread in &self.cores[self.core_of[cpu.index()] as usize].threads {
            let c = &mut self.cpus[thread.index()];
            c.progress(now);
            c.smt_rate = rate;
            c.update_rate();
        }
    }

    /// The threads of the CPU's core.
    pub fn threads_of(&self, cpu: CpuId) -> &[CpuId] {
        &self.cores[self.core_of[cpu.index()] as usize].threads
    }

    /// Changes the speed of the hardware thread, in 1/1024; 0 stops it.
    pub fn set_speed(&mut self, cpu: CpuId, speed: u32, now: Nanos) {
        let c = &mut self.cpus[cpu.index()];
        c.progress(now);
        let rate = c.rate;
        c.speed = speed;
        c.update_rate();
        self.stopped += u32::from(c.rate == 0);
        self.stopped -= u32::from(rate == 0);
        if c.activity != Activity::Idle {
            return;
        }
        match c.rate {
            0 => c.stop_entering(rate, now),
            _ => c.go_on_entering(now),
        }
    }
}

fn cores(preset: &Preset) -> (Table<Core>, Table<u32>) {
    let topology = &preset.topology;
    let mut cores: Table<Core> = Table::default();
    let mut core_of = Table::from(vec![0; topology.nr_cpus()]);
    for first in topology.all().iter().filter(|cpu| topology.smt(*cpu).lowest() == Some(*cpu)) {
        let threads: Box<[CpuId]> = topology.smt(first).iter().collect();
        threads.iter().for_each(|cpu| core_of[cpu.index()] = cores.len() as u32);
        cores.push(Core { threads, busy: 0 });
    }
    (cores, core_of)
}

fn line_times(preset: &Preset) -> [Nanos; 5] {
    let time = |distance: usize| preset.costs.line_transfer[distance].typical();
    std::array::from_fn(|distance| if preset.physics.lines { time(distance) } else { 0 })
}

/// The number of states that the latency limit allows (`cpuidle_governor_latency_req`), at least the shallowest one.
fn idle_allowed(spec: &RunSpec) -> usize {
    let limit = spec.workloads.iter().filter_map(|w| w.idle_latency_limit).min().unwrap_or(Nanos::MAX);
    let latency = |state: &IdleState| state.latency.unwrap_or_else(|| state.exit.typical());
    spec.machine.idle_states.iter().take_while(|state| latency(state) <= limit).count().max(1)
}

fn residencies(states: &[IdleState]) -> Vec<Nanos> {
    let mut least = Nanos::MAX;
    let mut residencies: Vec<Nanos> = states
        .iter()
        .rev()
        .map(|state| {
            least = least.min(state.target_residency);
            least
        })
        .collect();
    residencies.reverse();
    residencies
}
