//! A host, its guests, and guests in these. A guest CPU executes while its host runs the thread of its vCPU, and that
//! of an inner guest while the vCPU of the outer one executes as well.
//!
//! Each side reports the CPUs whose changes concern the other ([`Run::touch`]): the host a CPU whose task or overhead
//! has changed, a guest a CPU that has halted or that has a pending interrupt. The functions here read the current
//! state, so reporting a CPU more than once has no effect.

use std::sync::Arc;

use schedlab_model::{CpuId, KernelId, Nanos, TaskId};
use schedlab_policy::{Paravirt, PowerpcSpinlocks};
use schedlab_spec::{Guest, Platform, RunSpec};
use schedlab_trace::Sink;

use super::host_side::HostSide;
use super::power::{Actions, Power};
use super::system::{System, Systems};
use super::vcpu::{Asked, Rules, Thread, Vcpu, VcpuTime};
use super::vcpu_threads::with_vcpu_threads;
use crate::kernel::{self, Life, Placements, PvCalls, Spinlocks, WakesVcpus};
use crate::machine::{Activity, Exit, Exits, Mode, EXITS};
use crate::programs::{self, Halted};
use crate::run::Run;

/// A host, which is kernel 0, its guests, and those of its guests.
#[derive(Debug)]
pub struct VirtualSystems {
    pub(super) systems: Vec<System>,
    /// What is done to each guest.
    pub(super) actions: Vec<Actions>,
    pub(super) rules: Vec<Rules>,
    /// The index of each guest's vCPU 0 among all vCPUs.
    first: Vec<usize>,
    pub(super) vcpus: Vec<Vcpu>,
    /// Each kernel as a host.
    hosts: Vec<HostSide>,
    /// The host CPUs that the hints show as idle.
    pub(super) hinted: Vec<bool>,
    paravirt_time_accounting: Vec<bool>,
    guests: Vec<Arc<str>>,
    /// Of each guest, the vCPU that another last yielded to (`last_boosted_vcpu`).
    pub(super) last_boosted: Vec<usize>,
    /// Of each guest, how often a vCPU lost its CPU while its task held a spinlock.
    holders_preempted: Vec<u64>,
}

/// The results of a run for the vCPUs of a guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestReport {
    /// Its name.
    pub name: Arc<str>,
    /// The time of each vCPU, by state.
    pub vcpus: Vec<VcpuTime>,
    /// Exits by cause.
    pub exits: Vec<(&'static str, u64)>,
    /// Its wakeups, by the state of the selected vCPU.
    pub wakeups: Placements,
    /// How often a vCPU lost its CPU while its task held a spinlock.
    pub holders_preempted: u64,
}

/// The kernel of a guest and its machine, with what its platform and its settings enable. `spec` is its run with the
/// threads of the vCPUs of its own guests.
fn guest_system<S: Sink>(run: &mut Run<S>, guest: &Guest, spec: &RunSpec, id: KernelId) -> System {
    let mut system = System::new(run, spec, id);
    system.kernel.is_guest = true;
    system.machine.exits = Some(Box::new(Exits::new(guest.costs())));
    let spins = system.kernel.spinlocks == Spinlocks::Queued;
    let (spinlocks, yields) = spinlocks(guest);
    if spins {
        system.kernel.spinlocks = spinlocks;
    }
    let version = guest.run.kernel.version;
    system.kernel.pv_calls = PvCalls {
        spinner_yields: spins && yields,
        send_ipi: guest.platform == Platform::X86Kvm,
        tlb_flush: guest.pv_tlb_flush,
        sched_yield: guest.pv_sched_yield,
        yields_to_busy: version.paravirt().yields_to_busy,
    };
    if guest.haltpoll {
        system.machine.poll_before_halt(version.paravirt());
    }
    if guest.platform.is_pseries() && guest.run.machine.physics.cpuidle {
        system.machine.snooze_or_cede(version.menu(), guest.run.kernel.tick_nsec());
    }
    system
}

/// How a guest waits for spinlocks of its kernel, and whether waiters yield to the vCPU of the holder.
fn spinlocks(guest: &Guest) -> (Spinlocks, bool) {
    match guest.platform {
        Platform::X86Kvm if guest.pv_spinlocks => (Spinlocks::Paravirt, false),
        Platform::X86Kvm => (Spinlocks::TestAndSet, false),
        Platform::Arm64Kvm | Platform::Arm64KvmPvsched => (Spinlocks::Queued, false),
        Platform::PowerpcKvm | Platform::Powervm => match guest.run.kernel.version.paravirt().powerpc_spinlocks {
            PowerpcSpinlocks::Simple => (Spinlocks::TestAndSet, true),
            PowerpcSpinlocks::Generic => (Spinlocks::Queued, false),
            PowerpcSpinlocks::Own => (Spinlocks::Overtaken, true),
        },
        Platform::S390 => (Spinlocks::TestAndSet, true),
    }
}

impl Systems for VirtualSystems {
    const HAS_HOST: bool = true;

    #[inline]
    fn get_mut(&mut self, kernel: KernelId) -> &mut System {
        &mut self.systems[kernel.index()]
    }

    fn all(&self) -> &[System] {
        &self.systems
    }

    fn all_mut(&mut self) -> &mut [System] {
        &mut self.systems
    }

    #[inline]
    fn follow<S: Sink>(&mut self, run: &mut Run<S>) {
        while let Some((kernel, cpu)) = run.take_touched() {
            if self.hosts[kernel.index()].hosts() {
                self.follow_host(run, kernel.index(), cpu);
            }
            if kernel != KernelId::FIRST {
                self.follow_guest(run, kernel, cpu);
            }
        }
    }

    fn alive(&self) -> u32 {
        let runs = |kernel: usize| kernel == 0 || self.actions[kernel - 1].power != Power::Off;
        let mut alive: Vec<u32> = self.systems.iter().map(|system| system.kernel.alive).collect();
        for vcpu in self.vcpus.iter().filter(|vcpu| runs(vcpu.vm + 1)) {
            alive[vcpu.host] = alive[vcpu.host].saturating_sub(1);
        }
        alive.iter().enumerate().filter(|(kernel, _)| runs(*kernel)).map(|(_, alive)| alive).sum()
    }

    fn stands_still(&self) -> bool {
        self.actions.iter().any(|actions| actions.power == Power::Paused)
    }
}

impl VirtualSystems {
    /// The host and the guests of the specification at time 0.
    pub(super) fn new<S: Sink>(run: &mut Run<S>, spec: &RunSpec) -> Self {
        let guests = &spec.guests[..];
        let counts = guests.iter().map(|guest| guest.run.machine.topology.nr_cpus());
        let first: Vec<usize> = counts.scan(0, |next, count| Some(std::mem::replace(next, *next + count))).collect();
        let host = with_vcpu_threads(spec, KernelId::FIRST, guests, &first);
        let mut systems = vec![System::new(run, &host, KernelId::FIRST)];
        let mut hosts = vec![HostSide::new(KernelId::FIRST, spec, guests)];
        let mut vcpus = Vec::new();
        for (vm, guest) in guests.iter().enumerate() {
            let id = KernelId(vm as u16 + 1);
            let mut system = guest_system(run, guest, &with_vcpu_threads(&guest.run, id, guests, &first), id);
            hosts.push(HostSide::new(id, &guest.run, guests));
            system.kernel.is_host = hosts[id.index()].hosts();
            for cpu in (0..system.kernel.cpus.len() as u32).map(CpuId) {
                kernel::set_speed(run, &mut system.machine, &mut system.kernel, cpu, 0);
                vcpus.push(Vcpu::new(vm, guest.host.index(), cpu));
            }
            systems.push(system);
        }
        let nr_cpus = spec.machine.topology.nr_cpus();
        let kernels = || std::iter::once(spec).chain(guests.iter().map(|guest| &guest.run));
        let versions: Vec<Paravirt> = kernels().map(|run| run.kernel.version.paravirt()).collect();
        let ple_window = spec.machine.costs.ple_window.typical();
        let actions: Vec<Actions> = guests.iter().map(|guest| Actions::new(&guest.events)).collect();
        for (vm, actions) in actions.iter().enumerate() {
            actions.plan(run, vm);
        }
        VirtualSystems {
            systems,
            actions,
            rules: guests.iter().map(|guest| Rules::new(guest, versions[guest.host.index()], ple_window)).collect(),
            first,
            vcpus,
            hosts,
            hinted: vec![false; nr_cpus],
            paravirt_time_accounting: spec.guests.iter().map(|guest| guest.paravirt_time_accounting).collect(),
            guests: spec.guests.iter().map(|guest| guest.name.as_str().into()).collect(),
            last_boosted: vec![0; spec.guests.len()],
            holders_preempted: vec![0; spec.guests.len()],
        }
    }

    /// The results of the run for the vCPUs of the guests.
    pub(super) fn report(&self, now: Nanos) -> Vec<GuestReport> {
        let report = |(vm, name): (usize, &Arc<str>)| {
            let counts = self.systems[vm + 1].machine.exits.as_ref().map_or([0; EXITS.len()], |exits| exits.counts);
            let vcpus = self.vcpus.iter().filter(|vcpu| vcpu.vm == vm);
            GuestReport {
                name: Arc::clone(name),
                vcpus: vcpus.map(|vcpu| vcpu.time_at(now)).collect(),
                wakeups: self.systems[vm + 1].kernel.wakeups,
                holders_preempted: self.holders_preempted[vm],
                exits: EXITS.iter().map(|(name, exit)| (*name, counts[*exit as usize])).collect(),
            }
        };
        self.guests.iter().enumerate().map(report).collect()
    }

    /// The vCPUs of a guest, by their number among all.
    pub(super) fn vcpus_of(&self, vm: usize) -> std::ops::Range<usize> {
        let end = self.first.get(vm + 1).copied().unwrap_or(self.vcpus.len());
        self.first[vm]..end
    }

    /// The vCPU whose thread is this task of the kernel.
    fn vcpu_of(&self, host: usize, task: TaskId) -> Option<usize> {
        let position = self.systems[host].programs.positions.get(task.index())?;
        let is_vcpu = self.hosts[host].is_guest(position.workload);
        is_vcpu.then(|| position.registers[usize::from(programs::INDEX)] as usize)
    }

    /// Follows a change of what a host's CPU runs, of the overhead that precedes it, or of the CPU's rate.
    fn follow_host<S: Sink>(&mut self, run: &mut Run<S>, host: usize, cpu: CpuId) {
        let curr = self.systems[host].kernel.cpus[cpu.index()].curr;
        let now_loaded = curr.and_then(|task| Some((self.vcpu_of(host, task)?, task)));
        if self.hosts[host].loaded[cpu.index()] != now_loaded.map(|(vcpu, _)| vcpu) {
            if let Some(vcpu) = self.hosts[host].loaded[cpu.index()].take() {
                self.kvm_sched_out(run, vcpu);
            }
            if let Some((vcpu, task)) = now_loaded {
                self.vcpus[vcpu].task = Some(task);
                self.hosts[host].loaded[cpu.index()] = Some(vcpu);
                self.kvm_sched_in(run, vcpu, cpu);
            }
        }
        // Idle hints exist on powerpc only, where no guest hosts another.
        if host == 0 {
            self.write_hints(run, cpu, curr.is_none());
            self.update_answers(cpu);
        }
        if let Some((vcpu, _)) = now_loaded {
            self.follow_thread(run, vcpu, cpu);
        }
        self.wake_those_held(run, host, cpu);
    }

    /// `kvm_sched_out`.
    fn kvm_sched_out<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) {
        self.leave_guest(run, vcpu);
        let v = &mut self.vcpus[vcpu];
        let life = v.task.map(|task| self.systems[v.host].kernel.tasks[task.index()].life);
        let runnable = matches!(life, Some(Life::Runnable | Life::Running));
        if life == Some(Life::Dead) {
            v.task = None;
        }
        v.moved(if runnable { Thread::Runnable } else { Thread::Blocked }, run.now);
        self.rules[v.vm].put(v, runnable);
        let (vm, cpu) = (v.vm, v.cpu);
        if runnable {
            self.stop_clock(run.now, vcpu);
            self.holders_preempted[vm] += u64::from(self.systems[vm + 1].holds_spinlock(cpu));
        }
        self.show(vcpu);
        let System { machine, kernel, .. } = &mut self.systems[vm + 1];
        let at_lock = matches!(machine.cpus[cpu.index()].segment.mode, Mode::Locked | Mode::LockSpin);
        if runnable && at_lock && kernel.pv_calls.spinner_yields {
            kernel::spinners_look(run, machine, kernel);
        }
    }

    /// `kvm_sched_in`.
    fn kvm_sched_in<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, cpu: CpuId) {
        let v = &mut self.vcpus[vcpu];
        v.moved(Thread::Loaded, run.now);
        v.host_cpu = cpu;
        if v.in_spin_loop {
            v.ends_spin_loop();
        }
        self.rules[v.vm].load(v);
        let (vm, own) = (v.vm, v.cpu);
        self.systems[vm + 1].kernel.cpus[own.index()].ple_window = self.rules[vm].ple_window;
        self.start_clock(run.now, vcpu);
        self.show(vcpu);
    }

    /// The thread is on a CPU: it enters the guest, leaves it, or stops polling.
    fn follow_thread<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, cpu: CpuId) {
        let powered = self.actions[self.vcpus[vcpu].vm].power == Power::On;
        let host = &mut self.systems[self.vcpus[vcpu].host];
        if !powered && host.machine.cpus[cpu.index()].segment.mode == Mode::Guest {
            return self.expel(run, vcpu, cpu);
        }
        let (c, k) = (&mut host.machine.cpus[cpu.index()], &host.kernel.cpus[cpu.index()]);
        c.progress(run.now);
        match c.segment.mode {
            Mode::Guest => {
                let free = c.segment.cost_left == 0 && c.pending == 0 && !k.marked && k.leaving_for.is_none();
                let (rate, inside) = (c.rate, self.vcpus[vcpu].in_guest);
                match (free, inside) {
                    // A vCPU that does not execute cannot enter the guest that it hosts.
                    (true, false) if rate == 0 => {}
                    (true, false) => self.enter_guest(run, vcpu, rate),
                    (true, true) => self.set_speed(run, vcpu, rate),
                    (false, true) => self.exit_for_host(run, vcpu, cpu),
                    (false, false) => {}
                }
            }
            Mode::Poll if c.segment.until > run.now && (k.need_resched || host.kernel.sched.nr_running(cpu) > 1) => {
                c.segment.until = run.now;
                kernel::settle(run, &mut host.machine, &mut host.kernel, cpu);
            }
            _ => {}
        }
    }

    /// VM entry. Completes a halt that an interrupt has ended.
    fn enter_guest<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, rate: u32) {
        let v = &mut self.vcpus[vcpu];
        let rules = &self.rules[v.vm];
        v.kicked = false;
        if v.asked == Asked::Halt {
            v.asked = Asked::Run;
            v.window = rules.next_window(v.window, run.now - v.halted_at);
        }
        v.in_guest = true;
        rules.enter(v);
        let (vm, own) = (v.vm, v.cpu);
        let System { machine, kernel, .. } = &mut self.systems[vm + 1];
        if std::mem::take(&mut kernel.cpus[own.index()].flush.on_enter) {
            let flush = machine.tlb_flush(own);
            machine.charge(own, flush);
        }
        self.show(vcpu);
        self.set_speed(run, vcpu, rate);
    }

    /// An interrupt of the host takes its CPU out of the guest.
    fn exit_for_host<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, cpu: CpuId) {
        self.leave_guest(run, vcpu);
        self.count_exit(vcpu, Exit::Host);
        let host = &mut self.systems[self.vcpus[vcpu].host];
        let cost = host.machine.draw_exit(cpu);
        host.machine.charge(cpu, cost);
        kernel::settle(run, &mut host.machine, &mut host.kernel, cpu);
    }

    pub(super) fn leave_guest<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) {
        if std::mem::take(&mut self.vcpus[vcpu].in_guest) {
            self.set_speed(run, vcpu, 0);
            self.show(vcpu);
        }
    }

    /// A guest CPU has halted, or one that does not execute has a pending interrupt.
    fn follow_guest<S: Sink>(&mut self, run: &mut Run<S>, kernel: KernelId, cpu: CpuId) {
        self.act(run, kernel.index() - 1);
        let vcpu = self.first[kernel.index() - 1] + cpu.index();
        let (system, v) = (&self.systems[kernel.index()], &self.vcpus[vcpu]);
        let k = &system.kernel.cpus[cpu.index()];
        let pending = k.held_interrupts != 0 || k.pv_kicked || k.wakes_vcpus != WakesVcpus::None;
        let c = &system.machine.cpus[cpu.index()];
        let idle = c.activity == Activity::Idle && c.idle_from <= run.now;
        let pv_waits = c.activity == Activity::Busy && c.segment.mode == Mode::PvWait;
        let halts = !pending && (idle && !system.machine.polls(cpu) || pv_waits);
        let executes = v.in_guest && c.rate > 0;
        match v.asked {
            Asked::Run if executes && halts => self.halt(run, vcpu),
            Asked::Run if executes && k.flush.yields_to.is_some() => self.exit_to_yield(run, vcpu),
            Asked::Run if executes && k.pause_loop => self.exit_for_pause(run, vcpu),
            Asked::Halt if pending => {
                let sender = self.first[kernel.index() - 1] + c.woken_from.index();
                self.kvm_vcpu_kick(run, vcpu, sender);
            }
            _ => {}
        }
    }

    /// HLT, WFI, H_CEDE: the thread leaves the guest to poll and to block.
    fn halt<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize) {
        self.count_exit(vcpu, Exit::Halt);
        let v = &mut self.vcpus[vcpu];
        v.asked = Asked::Halt;
        v.halted_at = run.now;
        let (host, cpu, window, Some(task)) = (v.host, v.host_cpu, v.window, v.task) else { return };
        self.leave_guest(run, vcpu);
        let System { machine, kernel, programs } = &mut self.systems[host];
        machine.cpus[cpu.index()].progress(run.now);
        Halted { cpu, task, window }.begin(machine, programs);
        let exit = machine.draw_exit(cpu).div_ceil(2);
        machine.charge(cpu, exit);
        kernel::settle(run, machine, kernel, cpu);
    }

    pub(super) fn count_exit(&mut self, vcpu: usize, exit: Exit) {
        if let Some(exits) = &mut self.systems[self.vcpus[vcpu].vm + 1].machine.exits {
            exits.count(exit);
        }
    }

    fn set_speed<S: Sink>(&mut self, run: &mut Run<S>, vcpu: usize, speed: u32) {
        let v = &self.vcpus[vcpu];
        let System { machine, kernel, .. } = &mut self.systems[v.vm + 1];
        if machine.cpus[v.cpu.index()].speed != speed {
            kernel::set_speed(run, machine, kernel, v.cpu, speed);
        }
    }

    /// Updates what `vcpu_is_preempted` returns in the guest.
    pub(super) fn show(&mut self, vcpu: usize) {
        if self.rules[self.vcpus[vcpu].vm].has_hypercall() {
            self.vcpus[vcpu].hint = self.answer(vcpu);
            let v = &self.vcpus[vcpu];
            let asks = self.rules[v.vm].asks_host(v);
            self.systems[v.vm + 1].kernel.sched.set_asks_host(v.cpu, asks);
        }
        let v = &self.vcpus[vcpu];
        let preempted = self.rules[v.vm].vcpu_is_preempted(v);
        let kernel = &mut self.systems[v.vm + 1].kernel;
        kernel.cpus[v.cpu.index()].vcpu_waits = v.thread == Thread::Runnable;
        kernel.sched.set_vcpu_preempted(v.cpu, preempted);
    }

    /// Stolen time begins.
    pub(super) fn stop_clock(&mut self, now: Nanos, vcpu: usize) {
        let v = &self.vcpus[vcpu];
        if self.paravirt_time_accounting[v.vm] {
            let kernel = &mut self.systems[v.vm + 1].kernel;
            if kernel.cpus[v.cpu.index()].clocks.stop(now) {
                kernel.sched.loses_time_from(v.cpu, now);
            }
        }
    }

    /// Stolen time ends.
    fn start_clock(&mut self, now: Nanos, vcpu: usize) {
        let v = &self.vcpus[vcpu];
        if self.paravirt_time_accounting[v.vm] {
            let kernel = &mut self.systems[v.vm + 1].kernel;
            if let Some(lost) = kernel.cpus[v.cpu.index()].clocks.start(now) {
                kernel.sched.lost_time(v.cpu, now, lost);
            }
        }
    }
}
