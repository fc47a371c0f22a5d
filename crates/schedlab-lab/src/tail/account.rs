//! Where the time of one or more samples went.

use std::collections::BTreeMap;

use schedlab_model::Nanos;
use serde_json::json;

use super::history::Waker;
use super::names::{Name, Names};
use super::threads::Times;

/// The parts of one or more samples, in ns, along their critical path: while a task sleeps until another one wakes it,
/// the path is that of the waker ([`super::path`]). They add up to the length of the samples.
#[derive(Clone, Default)]
pub struct Account {
    /// It was in a queue of the workload, and the task that then took it ran something else.
    pub queued: Nanos,
    /// The task was runnable, but its group, its class or its reservation had no runtime left.
    pub throttled: Nanos,
    /// The task was on a runqueue while others ran on the CPU that it then got.
    pub behind: Nanos,
    /// The task was on a runqueue and nothing ran there: the wakeup was under way, or the CPU left an idle state.
    pub waking: Nanos,
    /// The vCPU of the task, or the one on which an interrupt then woke it, waited for a CPU of the host.
    pub stolen: Nanos,
    pub ran: Nanos,
    /// It slept while the task that then woke it ran.
    pub served: Nanos,
    /// It slept until an interrupt or something unknown woke it.
    pub slept: Nanos,
    /// Time before what is kept.
    pub unknown: Nanos,
    /// For how long it was in a queue of the workload; other parts contain this time.
    pub in_queue: Nanos,
    /// The part of `behind` for which another CPU was idle with nothing waiting on it.
    pub elsewhere: Nanos,
    /// What was out of runtime during `throttled`.
    pub pools: BTreeMap<Name, Nanos>,
    /// What ran during `behind`.
    pub before: BTreeMap<Name, Nanos>,
    /// What waited during `behind`, `waking` and `throttled`.
    pub waiters: BTreeMap<Name, Nanos>,
    /// What ran during `served`.
    pub servers: BTreeMap<Name, Nanos>,
    /// What ran on the host during `stolen`.
    pub thieves: BTreeMap<Name, Nanos>,
    /// What ended the sleeps.
    pub wakers: BTreeMap<Waker, Nanos>,
    /// What the tasks of the program did while it was in a queue: ns times tasks.
    pub threads: Times,
}

impl Account {
    pub fn add(&mut self, other: &Account) {
        for (total, part) in [
            (&mut self.queued, other.queued),
            (&mut self.throttled, other.throttled),
            (&mut self.behind, other.behind),
            (&mut self.waking, other.waking),
            (&mut self.stolen, other.stolen),
            (&mut self.ran, other.ran),
            (&mut self.served, other.served),
            (&mut self.slept, other.slept),
            (&mut self.unknown, other.unknown),
            (&mut self.in_queue, other.in_queue),
            (&mut self.elsewhere, other.elsewhere),
        ] {
            *total += part;
        }
        for (all, part) in [
            (&mut self.pools, &other.pools),
            (&mut self.before, &other.before),
            (&mut self.waiters, &other.waiters),
            (&mut self.servers, &other.servers),
            (&mut self.thieves, &other.thieves),
        ] {
            part.iter().for_each(|(name, ns)| *all.entry(*name).or_default() += ns);
        }
        other.wakers.iter().for_each(|(waker, ns)| *self.wakers.entry(*waker).or_default() += ns);
        self.threads.iter_mut().zip(other.threads).for_each(|(total, part)| *total += part);
    }

    pub fn json(&self, names: &Names) -> serde_json::Value {
        let named = |all: &BTreeMap<Name, Nanos>| -> serde_json::Map<_, _> {
            all.iter().map(|(name, ns)| (names.of(*name).to_owned(), (*ns).into())).collect()
        };
        let wakers: Vec<_> =
            self.wakers.iter().map(|(waker, ns)| json!([kind(*waker), task(*waker, names), ns])).collect();
        json!({
            "parts": {
                "queued": self.queued, "throttled": self.throttled, "behind": self.behind, "waking": self.waking,
                "stolen": self.stolen, "ran": self.ran, "served": self.served, "slept": self.slept,
                "unknown": self.unknown,
            },
            "in_queue": self.in_queue,
            "elsewhere": self.elsewhere,
            "pools": named(&self.pools),
            "before": named(&self.before),
            "waiters": named(&self.waiters),
            "servers": named(&self.servers),
            "thieves": named(&self.thieves),
            "wakers": wakers,
            "threads": self.threads,
        })
    }
}

fn kind(waker: Waker) -> &'static str {
    match waker {
        Waker::Interrupt => "interrupt",
        Waker::Task(_) => "task",
        Waker::Unknown => "unknown",
    }
}

fn task(waker: Waker, names: &Names) -> &str {
    match waker {
        Waker::Task(name) => names.of(name),
        Waker::Interrupt | Waker::Unknown => "",
    }
}
