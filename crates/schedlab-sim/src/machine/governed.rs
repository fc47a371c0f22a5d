//! The decision of a CPU's idle governor, and the state that the threads of a core reach together.

use std::sync::Arc;

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::{MenuRules, Paravirt};
use schedlab_spec::{IdleState, Machine as Preset};
use schedlab_workload::Dist;

use super::cost::CostTable;
use super::cpu::Activity;
use super::cpuidle::{Cpuidle, Governors};
use super::haltpoll::{Haltpoll, HALT};
use super::idle_choice::{Timers, Woken};
use super::state::Machine;

/// The longest time to a timer: with none pending the timer wheel says this many ticks (`NEXT_TIMER_MAX_DELTA`).
const NEXT_TIMER_MAX_DELTA: u64 = (1 << 30) - 1;

/// What the kernel of the CPU does on its way into an idle state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    /// The tick stops.
    pub stops_tick: bool,
    /// When the CPU stops polling and chooses anew.
    pub polls_until: Option<Nanos>,
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
        cpuidle.polls_until[cpu.index()] = polls_until;
        Entered { stops_tick: choice.stops_tick, polls_until }
    }

    /// The CPU has polled for as long as it may and is about to choose anew.
    pub fn polled_to_the_limit(&mut self, cpu: CpuId, now: Nanos) {
        let c = &mut self.cpus[cpu.index()];
        c.progress(now);
        let (state, residency) = (c.idle_state, now.saturating_sub(c.idle_from));
        let Some(cpuidle) = self.cpuidle.as_deref_mut() else { return };
        cpuidle.polls_until[cpu.index()] = None;
        match &mut cpuidle.governors {
            Governors::Menu(menus) => menus[cpu.index()].reflect(state, residency, Woken::Limit),
            Governors::Teo(teos) => teos[cpu.index()].reflect(state, residency, Woken::Limit),
            Governors::Haltpoll(governors) => governors[cpu.index()].polled(true),
        }
    }

    /// Until when the idle CPU of a guest polls before it halts.
    pub fn polls_until(&self, cpu: CpuId) -> Option<Nanos> {
        self.cpuidle.as_ref()?.polls_until[cpu.index()]
    }

    /// The CPU executes again after an idle state: a guest's clock goes on until then, whatever its host did meanwhile.
    #[inline]
    pub fn idle_exited(&mut self, cpu: CpuId, now: Nanos) {
        if let Some(cpuidle) = self.cpuidle.as_deref_mut().filter(|_| self.exits.is_some()) {
            let c = &self.cpus[cpu.index()];
            let length = now.saturating_sub(c.idle_from);
            cpuidle.polls_until[cpu.index()] = None;
            let woken = if std::mem::take(&mut cpuidle.ticked[cpu.index()]) { Woken::Tick } else { Woken::Event };
            match &mut cpuidle.governors {
                Governors::Menu(menus) => menus[cpu.index()].reflect(c.idle_state, length, woken),
                Governors::Teo(teos) => teos[cpu.index()].reflect(c.idle_state, length, woken),
                Governors::Haltpoll(governors) if self.preset.idle_states[c.idle_state].polling => {
                    governors[cpu.index()].polled(false);
                }
                Governors::Haltpoll(governors) => governors[cpu.index()].halted(length),
            }
        }
    }

    /// The CPU leaves its state after `slept`, which takes `exit`. On a guest's CPU only its execution ends the stay.
    pub(super) fn cpuidle_reflect(&mut self, cpu: CpuId, slept: Nanos, exit: Nanos) {
        let state = self.cpus[cpu.index()].idle_state;
        if let Some(cpuidle) = self.cpuidle.as_deref_mut().filter(|_| self.exits.is_none()) {
            let ticked = std::mem::take(&mut cpuidle.ticked[cpu.index()]);
            let woken = if ticked { Woken::Tick } else { Woken::Event };
            match &mut cpuidle.governors {
                Governors::Menu(menus) => menus[cpu.index()].reflect(state, slept + exit, woken),
                Governors::Teo(teos) => teos[cpu.index()].reflect(state, slept + exit, woken),
                Governors::Haltpoll(_) => {}
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

    /// The idle CPUs of this guest poll before they halt (cpuidle-haltpoll).
    pub fn poll_before_halt(&mut self, rules: Paravirt) {
        let governor = Haltpoll::new(rules);
        self.choose_in_guest(|states, nr_cpus| Cpuidle::haltpoll(states, governor, nr_cpus));
    }

    /// The idle CPUs of this guest snooze or cede (cpuidle-pseries), as the menu governor of their kernel chooses.
    pub fn snooze_or_cede(&mut self, rules: MenuRules, tick: Nanos) {
        self.choose_in_guest(|_, nr_cpus| Cpuidle::pseries(rules, tick, nr_cpus));
    }

    /// An idle CPU of this guest polls or halts.
    fn choose_in_guest(&mut self, cpuidle: impl FnOnce(&[IdleState], usize) -> Box<Cpuidle>) {
        let poll = IdleState {
            name: "poll".into(),
            exit: Dist::Constant(0),
            latency: None,
            target_residency: 0,
            polling: true,
        };
        let idle_states: Vec<IdleState> =
            std::iter::once(poll).chain(self.preset.idle_states.iter().take(1).cloned()).collect();
        self.idle_exits = idle_states.iter().map(|state| CostTable::new(&state.exit, false)).collect();
        self.cpuidle = Some(cpuidle(&idle_states, self.cpus.len()));
        self.cpus.iter_mut().for_each(|cpu| cpu.idle_state = HALT);
        self.preset = Arc::new(Preset { idle_states, ..Preset::clone(&self.preset) });
    }
}
