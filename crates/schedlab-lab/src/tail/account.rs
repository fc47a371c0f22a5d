//! Where the time of samples went: the parts of one sample, and the sums over all samples of a band.

use std::collections::BTreeMap;

use schedlab_model::Nanos;
use serde_json::json;

use super::history::Waker;
use super::names::{Name, Names};
use super::threads::Times;

/// The parts of one or more samples, in ns. They add up to the length of the samples, except for `elsewhere` and
/// `threads`.
#[derive(Clone, Default)]
pub struct Account {
    /// No task worked on it: it was in a queue of the workload.
    pub queued: Nanos,
    /// The task was on a runqueue while others ran on the CPU that it then got.
    pub behind: Nanos,
    /// The task was on a runqueue and nothing ran there: the wakeup was under way, or the CPU left an idle state.
    pub waking: Nanos,
    /// The vCPU of the task, or the one on which an interrupt then woke it, waited for a CPU of the host.
    pub stolen: Nanos,
    pub ran: Nanos,
    pub slept: Nanos,
    /// Time before what is kept.
    pub unknown: Nanos,
    /// The part of `behind` for which another CPU was idle with nothing waiting on it.
    pub elsewhere: Nanos,
    /// What ran during `behind`.
    pub before: BTreeMap<Name, Nanos>,
    /// What ran on the host during `stolen`.
    pub thieves: BTreeMap<Name, Nanos>,
    /// What ended the sleeps.
    pub wakers: BTreeMap<Waker, Nanos>,
    /// What the tasks of the program did during `queued`: ns times tasks.
    pub threads: Times,
}

impl Account {
    pub fn add(&mut self, other: &Account) {
        for (total, part) in [
            (&mut self.queued, other.queued),
            (&mut self.behind, other.behind),
            (&mut self.waking, other.waking),
            (&mut self.stolen, other.stolen),
            (&mut self.ran, other.ran),
            (&mut self.slept, other.slept),
            (&mut self.unknown, other.unknown),
            (&mut self.elsewhere, other.elsewhere),
        ] {
            *total += part;
        }
        for (all, part) in [(&mut self.before, &other.before), (&mut self.thieves, &other.thieves)] {
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
                "queued": self.queued, "behind": self.behind, "waking": self.waking, "stolen": self.stolen,
                "ran": self.ran, "slept": self.slept, "unknown": self.unknown,
            },
            "elsewhere": self.elsewhere,
            "before": named(&self.before),
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

/// All samples of one band.
#[derive(Default)]
pub struct Band {
    pub count: u64,
    pub ns: u128,
    pub account: Account,
    pub tasks: BTreeMap<Name, u64>,
    pub lanes: BTreeMap<String, u64>,
    pub tenths: [u64; 10],
}

impl Band {
    pub fn json(&self, names: &Names) -> serde_json::Value {
        let mut json = self.account.json(names);
        let tasks: serde_json::Map<_, _> =
            self.tasks.iter().map(|(name, count)| (names.of(*name).to_owned(), (*count).into())).collect();
        json["count"] = self.count.into();
        json["ns"] = u64::try_from(self.ns).unwrap_or(u64::MAX).into();
        json["tasks"] = tasks.into();
        json["lanes"] = json!(self.lanes);
        json["tenths"] = json!(self.tenths);
        json
    }
}
