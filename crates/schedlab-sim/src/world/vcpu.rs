//! A vCPU: the state of its thread, its time by state, and whether `vcpu_is_preempted` is true in its guest.

use schedlab_model::{CpuId, Nanos, TaskId, USEC};
use schedlab_policy::{Paravirt, PreemptedByte, YieldCount};
use schedlab_spec::{Guest, IdleHint, Platform};

/// First halt-polling window (`halt_poll_ns_grow_start`).
const GROW_START: Nanos = 10 * USEC;
/// Factor by which a window grows (`halt_poll_ns_grow`).
const GROW: Nanos = 2;

/// The time of a vCPU by state, in ns. The three add up to the elapsed time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VcpuTime {
    /// Its thread was on a CPU: in the guest, handling an exit, or polling.
    pub run: Nanos,
    /// Its thread waited for a CPU (`run_delay`).
    pub stolen: Nanos,
    /// Its thread was blocked.
    pub halted: Nanos,
}

/// The state of a vCPU's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thread {
    /// On a CPU.
    Loaded,
    /// Waiting for a CPU.
    Runnable,
    /// Asleep, or not started yet.
    Blocked,
}

/// The last request of a guest CPU to its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// To execute it.
    Run,
    /// To wait for an interrupt.
    Halt,
}

/// A vCPU.
#[derive(Clone, Debug)]
pub struct Vcpu {
    /// Its guest, by number.
    pub vm: usize,
    /// The kernel that its thread belongs to, by number.
    pub host: usize,
    /// Its number in the guest.
    pub cpu: CpuId,
    /// Its thread, once that has run.
    pub task: Option<TaskId>,
    /// The host CPU that its thread ran on last.
    pub host_cpu: CpuId,
    pub thread: Thread,
    pub asked: Asked,
    /// Its thread is executing the guest.
    pub in_guest: bool,
    /// A pending interrupt has ended its halt.
    pub kicked: bool,
    /// The CPU of its host that wakes its thread when it executes again.
    pub wakes_on: Option<CpuId>,
    /// The byte in which the host marks it as preempted.
    pub marked: bool,
    /// The idle hint that the host last wrote, or what it would answer: the host CPU of its thread is idle.
    pub hint: bool,
    /// Its halt-polling window.
    pub window: Nanos,
    pub halted_at: Nanos,
    /// Its thread has yielded in `kvm_vcpu_on_spin` and is not back yet (`spin_loop.in_spin_loop`).
    pub in_spin_loop: bool,
    /// Whether others may yield to it nevertheless (`spin_loop.dy_eligible`).
    dy_eligible: bool,
    pub time: VcpuTime,
    since: Nanos,
}

impl Vcpu {
    /// A vCPU whose thread has not started.
    pub fn new(vm: usize, host: usize, cpu: CpuId) -> Self {
        Vcpu {
            vm,
            host,
            cpu,
            task: None,
            host_cpu: CpuId(0),
            thread: Thread::Blocked,
            asked: Asked::Run,
            in_guest: false,
            kicked: false,
            wakes_on: None,
            marked: false,
            hint: false,
            window: 0,
            halted_at: 0,
            in_spin_loop: false,
            dy_eligible: false,
            time: VcpuTime::default(),
            since: 0,
        }
    }

    /// Sets the state of its thread.
    pub fn moved(&mut self, thread: Thread, now: Nanos) {
        let passed = now - std::mem::replace(&mut self.since, now);
        match std::mem::replace(&mut self.thread, thread) {
            Thread::Loaded => self.time.run += passed,
            Thread::Runnable => self.time.stolen += passed,
            Thread::Blocked => self.time.halted += passed,
        }
    }

    /// `kvm_vcpu_eligible_for_directed_yield`: vCPUs that are in `kvm_vcpu_on_spin` themselves are so every other time.
    pub fn kvm_vcpu_eligible_for_directed_yield(&mut self) -> bool {
        let eligible = !self.in_spin_loop || self.dy_eligible;
        self.dy_eligible ^= self.in_spin_loop;
        eligible
    }

    /// The end of `kvm_vcpu_on_spin`.
    pub fn ends_spin_loop(&mut self) {
        (self.in_spin_loop, self.dy_eligible) = (false, false);
    }

    /// Its time by state up to now.
    pub fn time_at(&self, now: Nanos) -> VcpuTime {
        let mut copy = self.clone();
        copy.moved(self.thread, now);
        copy.time
    }
}

/// The rules by which a platform, the host's kernel and the guest's kernel treat a vCPU.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    sees: Sees,
    idle_hint: IdleHint,
    halt_poll_max: Nanos,
    halt_poll_shrink: u64,
    /// `ple_window` when its thread gets a CPU.
    pub ple_window: Nanos,
    /// A hypercall by which it yields has no effect if its thread is alone on the CPU (KVM_HC_SCHED_YIELD).
    pub yields_only_if_shared: bool,
    /// An interrupt that another vCPU sends to it while it is not dispatched is one of a certain host CPU.
    pub escalates: bool,
}

/// What a guest's `vcpu_is_preempted` reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sees {
    Nothing,
    /// A byte set when the thread leaves its CPU: always, or only if it is still runnable.
    Byte {
        only_runnable: bool,
        /// It is cleared when the thread is back on a CPU, not when the guest is entered.
        cleared_at_load: bool,
    },
    YieldCount(YieldCount),
}

impl Rules {
    /// The rules for a guest on a host with these paravirtual features, whose `ple_window` is as long.
    pub fn new(guest: &Guest, host: Paravirt, ple_window: Nanos) -> Self {
        let sees = match guest.platform {
            _ if !guest.vcpu_is_preempted => Sees::Nothing,
            Platform::Arm64Kvm => Sees::Nothing,
            Platform::Arm64KvmPvsched => Sees::Byte { only_runnable: false, cleared_at_load: true },
            Platform::X86Kvm => {
                let only_runnable = host.preempted_byte == PreemptedByte::RunnableThread;
                Sees::Byte { only_runnable, cleared_at_load: false }
            }
            // With one thread a core the rule of PowerVM, which spares the caller's own core, is that of KVM.
            Platform::PowerpcKvm | Platform::Powervm => {
                Sees::YieldCount(guest.run.kernel.version.paravirt().yield_count)
            }
            // Sense running status, and the idle flag of a CPU in an enabled wait.
            Platform::S390 => Sees::YieldCount(YieldCount::OddUnlessIdle),
        };
        Rules {
            sees,
            idle_hint: guest.idle_hint,
            halt_poll_max: guest.halt_poll_max,
            halt_poll_shrink: host.halt_poll_shrink,
            ple_window: if guest.costs().pause_loops_exit { ple_window } else { 0 },
            yields_only_if_shared: host.yields_only_if_shared && guest.platform == Platform::X86Kvm,
            escalates: guest.platform == Platform::PowerpcKvm,
        }
    }

    /// Whether the host writes hints for the vCPUs of this guest.
    pub fn writes_hints(&self) -> bool {
        self.idle_hint == IdleHint::Vpa
    }

    /// Whether the test of this vCPU is a hypercall: its count is odd, and `lppaca.idle` does not decide.
    pub fn asks_host(&self, vcpu: &Vcpu) -> bool {
        let unknown = match self.sees {
            Sees::YieldCount(YieldCount::OddUnlessIdle) => vcpu.asked != Asked::Halt,
            Sees::YieldCount(YieldCount::Odd) => true,
            Sees::Nothing | Sees::Byte { .. } => false,
        };
        self.idle_hint == IdleHint::Hcall && unknown && !vcpu.in_guest
    }

    /// Whether the guest makes such hypercalls at all.
    pub fn has_hypercall(&self) -> bool {
        self.idle_hint == IdleHint::Hcall
    }

    /// `vcpu_put`: the thread leaves its CPU.
    pub fn put(&self, vcpu: &mut Vcpu, runnable: bool) {
        if let Sees::Byte { only_runnable, .. } = self.sees {
            vcpu.marked = runnable || !only_runnable;
        }
    }

    /// `vcpu_load`: the thread is back on a CPU.
    pub fn load(&self, vcpu: &mut Vcpu) {
        if matches!(self.sees, Sees::Byte { cleared_at_load: true, .. }) {
            vcpu.marked = false;
        }
    }

    /// The guest is entered.
    pub fn enter(&self, vcpu: &mut Vcpu) {
        vcpu.marked = false;
    }

    /// `vcpu_is_preempted`.
    pub fn vcpu_is_preempted(&self, vcpu: &Vcpu) -> bool {
        match self.sees {
            Sees::Nothing => false,
            Sees::Byte { .. } => vcpu.marked,
            // The count is odd whenever the vCPU is not in the guest.
            Sees::YieldCount(_) if vcpu.in_guest => false,
            Sees::YieldCount(YieldCount::OddUnlessIdle) if vcpu.asked == Asked::Halt => false,
            Sees::YieldCount(_) => self.idle_hint == IdleHint::Off || !vcpu.hint,
        }
    }

    /// The next window after a halt of this length, polling included (`kvm_vcpu_halt`).
    pub fn next_window(&self, window: Nanos, halted: Nanos) -> Nanos {
        let max = self.halt_poll_max;
        if halted <= window {
            window
        } else if window > 0 && halted > max {
            self.shrink_halt_poll_ns(window)
        } else if window < max && halted < max {
            (window * GROW).max(GROW_START).min(max)
        } else {
            window
        }
    }

    /// `shrink_halt_poll_ns`.
    fn shrink_halt_poll_ns(&self, window: Nanos) -> Nanos {
        let shrunk = window.checked_div(self.halt_poll_shrink).unwrap_or(0);
        if shrunk < GROW_START {
            0
        } else {
            shrunk
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(sees: Sees, shrink: u64) -> Rules {
        Rules {
            sees,
            idle_hint: IdleHint::Off,
            halt_poll_max: 200 * USEC,
            halt_poll_shrink: shrink,
            ple_window: 0,
            yields_only_if_shared: false,
            escalates: false,
        }
    }

    #[test]
    fn windows_of_kvm_vcpu_halt() {
        // (shrink, window, halted) -> window; in us
        for (shrink, window, halted, next) in [
            (0, 0, 5, 10),
            (0, 10, 5, 10),
            (0, 10, 50, 20),
            (0, 160, 190, 200),
            (0, 200, 199, 200),
            (0, 200, 201, 0),
            (0, 0, 300, 0),
            (2, 200, 300, 100),
            (2, 15, 300, 0),
            (2, 40, 200, 40),
        ] {
            let found = rules(Sees::Nothing, shrink).next_window(window * USEC, halted * USEC);
            assert_eq!(found, next * USEC, "{shrink} {window} {halted}");
        }
    }

    /// What a vCPU reads as in each state: running, preempted, polling, blocked, woken and not yet back.
    #[test]
    fn what_a_vcpu_reads_as() {
        let byte = |only_runnable, cleared_at_load| Sees::Byte { only_runnable, cleared_at_load };
        for (sees, want) in [
            (Sees::Nothing, [false, false, false, false, false]),
            (byte(false, true), [false, true, false, true, true]),
            (byte(false, false), [false, true, false, true, true]),
            (byte(true, false), [false, true, false, false, false]),
            (Sees::YieldCount(YieldCount::Odd), [false, true, true, true, true]),
            (Sees::YieldCount(YieldCount::OddUnlessIdle), [false, true, false, false, false]),
        ] {
            let rules = rules(sees, 0);
            let mut running = Vcpu::new(0, 0, CpuId(0));
            running.in_guest = true;
            rules.enter(&mut running);
            let mut preempted = running.clone();
            preempted.in_guest = false;
            rules.put(&mut preempted, true);
            let mut polling = running.clone();
            (polling.in_guest, polling.asked) = (false, Asked::Halt);
            let mut blocked = polling.clone();
            rules.put(&mut blocked, false);
            let woken = blocked.clone();
            let found = [&running, &preempted, &polling, &blocked, &woken].map(|vcpu| rules.vcpu_is_preempted(vcpu));
            assert_eq!(found, want, "{sees:?}");
        }
    }

    #[test]
    fn a_vcpu_that_has_yielded_is_yielded_to_every_other_time() {
        let mut vcpu = Vcpu::new(0, 0, CpuId(0));
        assert!(vcpu.kvm_vcpu_eligible_for_directed_yield() && vcpu.kvm_vcpu_eligible_for_directed_yield());
        vcpu.in_spin_loop = true;
        let found: Vec<bool> = (0..4).map(|_| vcpu.kvm_vcpu_eligible_for_directed_yield()).collect();
        assert_eq!(found, [false, true, false, true]);
        vcpu.ends_spin_loop();
        assert!(vcpu.kvm_vcpu_eligible_for_directed_yield());
    }

    #[test]
    fn run_stolen_and_halted_are_all_the_time() {
        let mut vcpu = Vcpu::new(0, 0, CpuId(0));
        for (thread, at) in [(Thread::Runnable, 10), (Thread::Loaded, 30), (Thread::Blocked, 70), (Thread::Loaded, 75)]
        {
            vcpu.moved(thread, at);
        }
        assert_eq!(vcpu.time_at(80), VcpuTime { run: 45, stolen: 20, halted: 15 });
    }
}
