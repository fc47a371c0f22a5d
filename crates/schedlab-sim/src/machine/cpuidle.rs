//! `cpuidle`: the governor of every CPU, menu or TEO, and the state that the threads of a core reach together.

use schedlab_model::{CpuId, Nanos, USEC};
use schedlab_policy::MenuRules;
use schedlab_spec::{IdleState, RunSpec};

use super::haltpoll::Haltpoll;
use super::idle_choice::{Choice, State, Timers};
use super::menu::Menu;
use super::teo::Teo;

/// `CPUIDLE_POLL_MIN`: a state with a shorter target residency does not bound how long a CPU polls.
const POLL_MIN: Nanos = 10 * USEC;
/// The governors of a machine's CPUs.
#[derive(Clone, Debug)]
pub struct Cpuidle {
    pub states: Vec<State>,
    pub governors: Governors,
    pub tick: Nanos,
    /// `cpuidle_poll_time`.
    poll_time: Nanos,
    /// Whether the wakeup under way comes from the CPU's tick.
    pub ticked: Vec<bool>,
    /// Until when each CPU of a guest polls, while it does.
    pub polls_until: Vec<Option<Nanos>>,
}

/// The governor of each CPU.
#[derive(Clone, Debug)]
pub enum Governors {
    Menu(Vec<Menu>),
    Teo(Vec<Teo>),
    Haltpoll(Vec<Haltpoll>),
}

impl Cpuidle {
    /// Those of a run, if its machine has the mechanism and a choice of states.
    pub fn new(spec: &RunSpec, allowed: usize) -> Option<Box<Cpuidle>> {
        let machine = &spec.machine;
        if !machine.physics.cpuidle || machine.idle_states.len() < 2 {
            return None;
        }
        let (states, version) = (&machine.idle_states[..allowed], spec.kernel.version);
        let nr_cpus = machine.topology.nr_cpus();
        let tick = spec.kernel.tick_nsec();
        let governors = match version.teo().filter(|_| machine.physics.teo) {
            Some(form) => Governors::Teo(vec![Teo::new(form, allowed); nr_cpus]),
            None => Governors::Menu(vec![Menu::new(version.menu()); nr_cpus]),
        };
        Some(Box::new(Cpuidle {
            states: states.iter().map(seen).collect(),
            governors,
            tick,
            poll_time: poll_time(&machine.idle_states, tick),
            ticked: vec![false; nr_cpus],
            polls_until: vec![None; nr_cpus],
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
            polls_until: vec![None; nr_cpus],
        })
    }

    /// The states of a shared partition (`shared_states` of drivers/cpuidle/cpuidle-pseries.c, 6.1.192) under the menu
    /// governor: snooze, a loop that ends after the target residency of the other state, and H_CEDE.
    pub fn pseries(rules: MenuRules, tick: Nanos, nr_cpus: usize) -> Box<Cpuidle> {
        let snooze = State { target_residency: 0, exit_latency: 0, polling: true };
        let cede = State { target_residency: 100 * USEC, exit_latency: 10 * USEC, polling: false };
        Box::new(Cpuidle {
            poll_time: cede.target_residency,
            states: vec![snooze, cede],
            governors: Governors::Menu(vec![Menu::new(rules); nr_cpus]),
            tick,
            ticked: vec![false; nr_cpus],
            polls_until: vec![None; nr_cpus],
        })
    }

    /// The choice of the CPU's governor, and how long the CPU polls if that is what it chooses.
    pub fn select(&mut self, cpu: CpuId, timers: &Timers) -> (Choice, Nanos) {
        match &mut self.governors {
            Governors::Menu(menus) => (menus[cpu.index()].select(&self.states, timers), self.poll_time),
            Governors::Teo(teos) => (teos[cpu.index()].select(&self.states, timers), self.poll_time),
            Governors::Haltpoll(governors) => governors[cpu.index()].select(),
        }
    }
}

/// The latency that a driver states, which is the longest one unless the machine says otherwise.
fn seen(state: &IdleState) -> State {
    let polling = state.polling && state.target_residency == 0;
    let longest = || if polling { 0 } else { state.exit.quantile(1_000_000) };
    let exit_latency = state.latency.unwrap_or_else(longest);
    State { target_residency: state.target_residency, exit_latency, polling }
}

/// As long as the first state that is worth it takes to pay, at most 1/16 of a tick. POWER's snooze loop takes the
/// first state that is deeper, which is the same for the tables of its machines.
fn poll_time(states: &[IdleState], tick: Nanos) -> Nanos {
    let deeper = states.iter().skip(1).map(|state| state.target_residency).find(|residency| *residency >= POLL_MIN);
    deeper.unwrap_or(Nanos::MAX).min(tick / 16)
}

/// The state of a CPU that has long been idle: the deepest one where governors choose states, or where it limits how
/// deep the other threads of its core get.
pub fn state_at_boot(cpuidle: Option<&Cpuidle>, core_idle: bool, allowed: usize) -> usize {
    if cpuidle.is_some() || core_idle {
        allowed.saturating_sub(1)
    } else {
        0
    }
}
