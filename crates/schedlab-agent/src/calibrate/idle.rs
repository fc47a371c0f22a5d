//! The exit latency of idle states: a wakeup from another CPU after the CPU has idled long enough to select the state.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;

use rustix::thread::futex::{self, Flags};
use schedlab_model::{Nanos, MSEC, USEC};
use serde::Serialize;

use super::{median, pin, Cost, Cpus, Effort, Entry};
use crate::burn::spin_until;
use crate::clock::now;
use crate::error::Result;

/// One idle state, with the keys of a machine file.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    /// The name of the state.
    pub name: String,
    /// From the wake event until the CPU executes instructions again.
    pub exit: Cost,
    /// The shortest residency for which the governor selects the state.
    #[serde(rename = "target-residency")]
    pub target_residency: Nanos,
    /// Whether the CPU polls its need-resched flag in this state.
    pub polling: bool,
    /// How long the CPU idled before each wakeup.
    pub idle_for: Nanos,
}

impl State {
    /// The only state of a CPU without cpuidle.
    pub fn only(exit: Cost) -> State {
        State { name: "HLT".into(), exit, target_residency: 0, polling: false, idle_for: 0 }
    }
}

/// A state as the kernel lists it: name and residency.
type Known = (String, Nanos);

/// Measures every state. The whole latency after several idle times goes to `other`.
pub fn measure(
    effort: Effort,
    cpus: &Cpus,
    costs: &BTreeMap<&'static str, Entry>,
    other: &mut BTreeMap<&'static str, Cost>,
) -> Result<Vec<State>> {
    let Some((_, there)) = cpus.others.last().copied() else { return Ok(Vec::new()) };
    let known = states(Path::new("/sys/devices/system/cpu/cpu0/cpuidle"));
    let part = ["syscall", "futex-wake", "wakeup", "ipi", "irq", "switch-thread"].map(|key| median(costs, key));
    let part: Nanos = part.iter().sum();
    for (name, length) in [("wake-after-10us", 10 * USEC), ("wake-after-100us", 100 * USEC), ("wake-after-1ms", MSEC)] {
        let how = format!("from futex(FUTEX_WAKE) until the wakee runs on CPU {there}, idle for {} us", length / USEC);
        if let Some(cost) = Cost::of(latencies(effort.few / 4, cpus.first, there, length)?, how) {
            other.insert(name, cost);
        }
    }
    let mut measured = Vec::new();
    for (index, (name, residency)) in known.iter().enumerate() {
        let next = known.get(index + 1).map_or(Nanos::MAX, |(_, residency)| *residency);
        let idle_for = (residency * 3 / 2 + 20 * USEC).min(next.max(40 * USEC) - 10 * USEC).min(20 * MSEC);
        let samples = (effort.few / 4).min((500 * MSEC / idle_for.max(1)) as usize).max(20);
        let how = format!("wakeup of CPU {there} after it idled for {idle_for} ns, less wakeup, interrupt and switch");
        if let Some(exit) = Cost::of(latencies(samples, cpus.first, there, idle_for)?, how) {
            let (name, polling) = (name.clone(), name == "POLL");
            measured.push(State { name, exit: exit.less(part), target_residency: *residency, polling, idle_for });
        }
    }
    Ok(measured)
}

/// The enabled states, shallowest first; a CPU without cpuidle only halts.
fn states(dir: &Path) -> Vec<Known> {
    let read = |state: &Path, file: &str| fs::read_to_string(state.join(file)).ok().map(|text| text.trim().to_owned());
    let known = (0..).map_while(|number| {
        let state = dir.join(format!("state{number}"));
        let residency: Nanos = read(&state, "residency")?.parse().ok()?;
        let disabled = read(&state, "disable").is_some_and(|text| text != "0");
        Some((disabled, (read(&state, "name")?, residency * USEC)))
    });
    let known: Vec<Known> = known.filter(|(disabled, _)| !disabled).map(|(_, state)| state).collect();
    if known.is_empty() {
        vec![("HLT".into(), 0)]
    } else {
        known
    }
}

/// The times from the waking call until the wakee runs, after its CPU has idled for `idle`.
fn latencies(samples: usize, here: u32, there: u32, idle: Nanos) -> Result<Vec<Nanos>> {
    /// Longer times include waiting for another task.
    const LONGEST: Nanos = 5 * MSEC;
    let (word, ran) = (AtomicU32::new(0), AtomicU64::new(0));
    pin(here)?;
    let mut times = Vec::with_capacity(samples);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pin(there);
            for round in 0..samples as u32 {
                while word.load(SeqCst) == round {
                    let _ = futex::wait(&word, Flags::PRIVATE, round, None);
                }
                ran.store(now(), SeqCst);
            }
        });
        for round in 1..=samples as u32 {
            spin_until(now() + idle + 5 * USEC);
            let before = ran.load(SeqCst);
            let begin = now();
            word.store(round, SeqCst);
            let _ = futex::wake(&word, Flags::PRIVATE, 1);
            while ran.load(SeqCst) == before {
                std::hint::spin_loop();
            }
            times.push(ran.load(SeqCst).saturating_sub(begin));
        }
    });
    Ok(times.into_iter().filter(|time| *time < LONGEST).collect())
}
