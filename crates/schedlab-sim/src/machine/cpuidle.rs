//! `cpuidle`: the menu governor of every CPU, and the state that the threads of a core reach together.

use schedlab_model::{CpuId, Nanos, USEC};
use schedlab_spec::{IdleState, RunSpec};

use super::cpu::Activity;
use super::haltpoll::Haltpoll;
use super::menu::{Choice, Menu, State, Timers, Woken};
use super::state::Machine;

/// `CPUIDLE_POLL_MIN`: a state with a shorter target residency does not bound how long a CPU polls.
const POLL_MIN: Nanos = 10 * USEC;
/// The longest time to a timer: with none pending the timer wheel says this many ticks (`NEXT_TIMER_MAX_DELTA`).
const NEXT_TIMER_MAX_DELTA: u64 = (1 << 30) - 1;

/// The governors of a machine's CPUs.
#[derive(Clone, Debug)]
pub struct Cpuidle {
    states: Vec<State>,
    governors: Governors,
    tick: Nanos,
    /// `cpuidle_poll_time`.
    poll_time: Nanos,
    /// Whether the wakeup under way comes from the CPU's tick.
    ticked: Vec<bool>,
}

/// The governor of each CPU.
#[derive(Clone, Debug)]
enum Governors {
    Menu(Vec<Menu>),
    Haltpoll(Vec<Haltpoll>),
}

/// What the kernel of the CPU does on its way into an idle state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    /// The tick stops.
    pub stops_tick: bool,
    /// When the CPU stops polling and chooses anew.
    pub polls_until: Option<Nanos>,
}

impl Cpuidle {
    /// Those of a run, if its machine has the mechanism and a choice of states.
    pub fn new(spec: &RunSpec, allowed: usize) -> Option<Box<Cpuidle>> {
        let machine = &spec.machine;
        if !machine.physics.cpuidle || machine.idle_states.len() < 2 {
            return None;
        }
        let (states, rules) = (&machine.idle_states[..allowed], spec.kernel.version.menu());
        let nr_cpus = machine.topology.nr_cpus();
        let tick = spec.kernel.tick_nsec();
        Some(Box::new(Cpuidle {
            states: states.iter().map(seen).collect(),
            governors: Governors::Menu(vec![Menu::new(rules); nr_cpus]),
            tick,
            poll_time: poll_time(&machine.idle_states, tick),
            ticked: vec![false; nr_cpus],
        }))
    }
}

impl Cpuidle {
    /// cpuidle-haltpoll, with its states: polling, and the halt.
    pub fn haltpoll(states: &[IdleState], governor: Haltpoll, nr_cpus: usize) -> Box<Cpuidle> {
        Box::new(Cpuidle {
            states: states.iter().map(seen).collect(),
            governors: Governors::Haltpoll(vec![governor; nr_cpus]),
            tick: 0,
            poll_time: 0,
            ticked: vec![false; nr_cpus],
        })
    }

    /// The choice of the CPU's governor, and how long the CPU polls if that is what it chooses.
    fn select(&mut self, cpu: CpuId, timers: &Timers) -> (Choice, Nanos) {
        match &mut self.governors {
            Governors::Menu(menus) => (menus[cpu.index()].select(&self.states, timers), self.poll_time),
            Governors::Haltpoll(governors) => governors[cpu.index()].select(),
        }
    }
}

/// The latency that a driver states is the longest one.
fn seen(state: &IdleState) -> State {
    let polling = state.polling && state.target_residency == 0;
    let exit_latency = if polling { 0 } else { state.exit.quantile(1_000_000) };
    State { target_residency: state.target_residency, exit_latency, polling }
}

/// As long as the first state that is worth it takes to pay, at most 1/16 of a tick. POWER's snooze loop takes the first
/// state that is deeper, which is the same for the tables of its machines.
fn poll_time(states: &[IdleState], tick: Nanos) -> Nanos {
    let deeper = states.iter().skip(1).map(|state| state.target_residency).find(|residency| *residency >= POLL_MIN);
    deeper.unwrap_or(Nanos::MAX).min(tick / 16)
}

impl Machine {
    /// Whether a governor chooses idle states and stops ticks.
    #[inline(always)]
    pub fn has_cpuidle(&self) -> bool {
        self.cpuidle.is_some()
    }

    /// The tick wakes an idle CPU.
    pub fn idle_tick(&mut self, cpu: CpuId) {
        if let Some(cpuidle) = &mut self.cpuidle {
            cpuidle.ticked[cpu.index()] = true;
        }
    }

    /// The CPU becomes idle: pending overhead first, then the state that its governor chooses.
    pub fn cpuidle_select(&mut self, cpu: CpuId, now: Nanos, timer: Option<Nanos>, tick: Option<Nanos>) -> Entered {
        let Some(cpuidle) = &mut self.cpuidle else { return Entered { stops_tick: true, polls_until: None } };
        let c = &mut self.cpus[cpu.index()];
        c.activity = Activity::Idle;
        c.begin_entering(now);
        let timers = Timers {
            next_timer: timer.unwrap_or(NEXT_TIMER_MAX_DELTA * cpuidle.tick),
            next_tick: tick,
            tick: cpuidle.tick,
        };
        let (choice, poll_time) = cpuidle.select(cpu, &timers);
        c.idle_state = choice.state;
        let polls = cpuidle.states[choice.state].polling;
        let polls_until = polls.then(|| c.idle_from.max(now).saturating_add(poll_time));
        if let Governors::Haltpoll(governors) = &mut cpuidle.governors {
            governors[cpu.index()].until = polls_until;
        }
        Entered { stops_tick: choice.stops_tick, polls_until }
    }

    /// The CPU has polled for as long as it may and is about to choose anew.
    pub fn polled_to_the_limit(&mut self, cpu: CpuId, now: Nanos) {
        let c = &mut self.cpus[cpu.index()];
        c.progress(now);
        let (state, residency) = (c.idle_state, now.saturating_sub(c.idle_from));
        match self.cpuidle.as_deref_mut().map(|cpuidle| &mut cpuidle.governors) {
            Some(Governors::Menu(menus)) => menus[cpu.index()].reflect(state, residency, Woken::Limit),
            Some(Governors::Haltpoll(governors)) => governors[cpu.index()].polled(true),
            None => {}
        }
    }

    /// Until when the idle CPU of a guest polls before it halts.
    pub fn polls_until(&self, cpu: CpuId) -> Option<Nanos> {
        match &self.cpuidle.as_ref()?.governors {
            Governors::Haltpoll(governors) => governors[cpu.index()].until,
            Governors::Menu(_) => None,
        }
    }

    /// The CPU executes again after an idle state: a guest's clock goes on until then, whatever its host did meanwhile.
    #[inline]
    pub fn idle_exited(&mut self, cpu: CpuId, now: Nanos) {
        if let Some(Cpuidle { governors: Governors::Haltpoll(governors), .. }) = self.cpuidle.as_deref_mut() {
            let c = &self.cpus[cpu.index()];
            let governor = &mut governors[cpu.index()];
            match self.preset.idle_states[c.idle_state].polling {
                true => governor.polled(false),
                false => governor.halted(now.saturating_sub(c.idle_from)),
            }
        }
    }

    /// The CPU leaves its state after `slept`, which takes `exit`.
    pub(super) fn cpuidle_reflect(&mut self, cpu: CpuId, slept: Nanos, exit: Nanos) {
        let state = self.cpus[cpu.index()].idle_state;
        if let Some(cpuidle) = &mut self.cpuidle {
            let ticked = std::mem::take(&mut cpuidle.ticked[cpu.index()]);
            let woken = if ticked { Woken::Tick } else { Woken::Event };
            if let Governors::Menu(menus) = &mut cpuidle.governors {
                menus[cpu.index()].reflect(state, slept + exit, woken);
            }
        }
    }

    /// The state in which the CPU really is: no deeper than the shallowest one that a thread of its core has asked for,
    /// and with a busy or polling thread beside it the first one in which it executes nothing.
    pub(super) fn reached_state(&self, cpu: CpuId) -> usize {
        let asked = self.cpus[cpu.index()].idle_state;
        let polls = |state: usize| {
            let found = &self.preset.idle_states[state];
            found.polling && found.target_residency == 0
        };
        if !self.preset.physics.core_idle || polls(asked) {
            return asked;
        }
        let halted = (0..=asked).find(|state| !polls(*state)).unwrap_or(asked);
        let others = self.threads_of(cpu).iter().filter(|thread| **thread != cpu);
        let allows = |thread: &CpuId| {
            let c = &self.cpus[thread.index()];
            if c.activity == Activity::Idle {
                c.idle_state.max(halted)
            } else {
                halted
            }
        };
        others.map(allows).min().map_or(asked, |least| least.min(asked))
    }
}

/// The state of a CPU that has long been idle.
pub fn state_at_boot(cpuidle: Option<&Cpuidle>) -> usize {
    cpuidle.map_or(0, |cpuidle| cpuidle.states.len() - 1)
}
