//! Costs of making and ending tasks.

use std::collections::BTreeMap;
use std::thread;

use schedlab_model::Nanos;

use super::{median, Cost, Effort, Entry};
use crate::clock::now;
use crate::error::{os, Result};
use crate::sys::{self, Forked};

/// Adds them to the costs. Everything runs on one CPU.
pub fn measure(effort: Effort, costs: &mut BTreeMap<&'static str, Entry>) -> Result<()> {
    let samples = effort.few / 4;
    let switch = median(costs, "switch-process");
    let (forks, ends) = processes(samples)?;
    let thread_switch = median(costs, "switch-thread");
    let (clones, joins) = threads(samples)?;
    let mut put = |key, samples, part, how: &str| {
        if let Some(cost) = Cost::of(samples, how) {
            costs.insert(key, Entry::One(cost.less(part)));
        }
    };
    put("fork-process", forks, 0, "fork() in a process of a few MB");
    put("exit-process", ends, 2 * switch, "from fork()'s return until waitpid()'s, on one CPU, less two switches");
    put("fork-thread", clones, 0, "creation of a thread, its stack's mmap() included");
    put(
        "exit-thread",
        joins,
        2 * thread_switch,
        "from a thread's creation until it is joined, on one CPU, less two switches",
    );
    Ok(())
}

type Pair = (Vec<Nanos>, Vec<Nanos>);

fn processes(samples: usize) -> Result<Pair> {
    let mut pairs = Vec::with_capacity(samples);
    for _ in 0..samples {
        let begin = now();
        let Forked::Parent(_) = sys::fork().map_err(os("fork"))? else { sys::exit_now(0) };
        let forked = now();
        sys::wait_any(true, true).map_err(os("waitpid"))?;
        pairs.push((forked - begin, now() - forked));
    }
    Ok(pairs.into_iter().unzip())
}

fn threads(samples: usize) -> Result<Pair> {
    let mut pairs = Vec::with_capacity(samples);
    for _ in 0..samples {
        let begin = now();
        let child = thread::Builder::new().stack_size(64 << 10).spawn(|| {}).map_err(os("thread"))?;
        let made = now();
        // An empty thread does not panic.
        let _ = child.join();
        pairs.push((made - begin, now() - made));
    }
    Ok(pairs.into_iter().unzip())
}
