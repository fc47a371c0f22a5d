//! Warmth: how much of its working set and code a task finds in the caches when it is switched in, and what the rest
//! costs.
//!
//! A task has a working set of W KiB, all of which it uses repeatedly, so that a cache of S KiB holds up to U = min(W,
//! S) of it. A cache is a list of the tasks whose data it holds, the last to have run there first. When a task is
//! switched out it has loaded what was missing, and what no longer fits is evicted from the tasks that have not run for
//! longest: least recently used, at the granularity of tasks (the stack algorithm of Mattson, Gecsei, Slutz and
//! Traiger, IBM Systems Journal 9(2), 1970).
//!
//! When the task is switched in, level i holds R(i) of the U(i) that it holds while the task runs undisturbed. A KiB
//! that lies in level i and no nearer one takes read(i). So the first pass over the working set takes longer than a
//! warm one by
//!
//! debt = sum over levels of (U(i) - R(i)) * (read(i + 1) - read(i)), where the memory is the level behind the last,
//!
//! with R(i) not less than that of any nearer level. One pass over the warm set takes `touch` = [`Caches::warm_read`]
//! of W. No task traverses its set faster than that, so the debt is spread over the next `touch` of its work: work w
//! takes
//!
//! w + debt * min(w, touch) / touch,
//!
//! and a task that is switched out early has been charged, and has loaded, the part of the debt that belongs to its
//! work.
//!
//! The code of a task is a second set. The front end of a core (instruction cache, branch predictors) holds up to F KiB
//! of it, and is a list of the workloads whose code it holds, since all tasks of a workload execute the same code. With
//! C KiB of code, of which the front end still holds H, the debt is larger by (min(C, F) - H) * (cold - warm), and
//! `touch` by C * warm.
//!
//! A task that runs for the first time is not charged and leaves its whole set in the caches: what it loads then is
//! part of its program. Simplified: tasks share no data; a set keeps its size; what a task has left in a cache stays
//! valid while it runs elsewhere, as if it were only read; threads of a core that run at the same time evict nothing of
//! each other's data until one is switched out; the prefetching and associativity of a cache are in its `read` times.
//! Reading from another last-level cache takes as long as reading from memory.

use std::collections::VecDeque;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_spec::{Caches, RunSpec, SharedBy};

use super::refill::{part, Refill};
use super::segment::WORK_SHIFT;

/// Levels that a machine may have.
const LEVELS: usize = 3;
/// Tasks that a cache distinguishes; the data of older ones counts as evicted.
const TASKS: usize = 1024;

/// One cache: how many KiB each task has in it, the last to have run first.
#[derive(Clone, Default, Debug)]
struct Cache {
    holds: VecDeque<(Pid, u64)>,
    /// Their sum.
    held: u64,
}

impl Cache {
    fn of(&self, task: Pid) -> u64 {
        self.holds.iter().find(|(owner, _)| *owner == task).map_or(0, |(_, kib)| *kib)
    }

    /// The task has run and has so much in it now, of at most `size`.
    fn put(&mut self, task: Pid, kib: u64, size: u64) {
        if let Some(place) = self.holds.iter().position(|(owner, _)| *owner == task) {
            self.held -= self.holds.remove(place).map_or(0, |(_, kib)| kib);
        }
        self.holds.push_front((task, kib));
        self.held += kib;
        while self.held > size || self.holds.len() > TASKS {
            let excess = if self.holds.len() > TASKS { u64::MAX } else { self.held - size };
            let Some((_, last)) = self.holds.back_mut() else { return };
            let evicted = excess.min(*last);
            self.held -= evicted;
            *last -= evicted;
            if *last == 0 {
                self.holds.pop_back();
            }
        }
    }
}

/// Code that a task executes repeatedly.
#[derive(Clone, Copy, Default, Debug)]
pub struct Code {
    /// 0: none is stated.
    pub kib: u32,
    /// The workload whose code it is.
    pub of: u32,
}

/// The task on a CPU since it was switched in.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    task: Pid,
    /// Per level, what the task found.
    found: [u64; LEVELS],
    /// Per level, what it has there once it is warm.
    warm: [u64; LEVELS],
    /// What the front end held of its code, and holds once it is warm.
    code: Option<(u32, [u64; 2])>,
    pub begun: Refill,
    /// The debt as time.
    pub time: Nanos,
}

/// What a task has refilled during a stay on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refilled {
    /// Data loaded into the nearest cache and code into the front end, in KiB.
    pub kib: u64,
    /// How much longer its work took for that.
    pub time: Nanos,
}

/// The contents of all caches.
#[derive(Clone, Debug)]
pub struct Warmth {
    caches: Caches,
    /// By level, then by core or by last-level cache.
    contents: Vec<Vec<Cache>>,
    /// By core, the code that its front end holds, by workload.
    front_ends: Vec<Cache>,
    /// By CPU, the core and the last-level cache.
    places: Vec<[usize; 2]>,
    pub stays: Vec<Option<Stay>>,
}

impl Warmth {
    /// Cold caches; `None` where the machine has no sizes, the mechanism is off, or no task states a working set.
    pub fn new(spec: &RunSpec) -> Option<Box<Self>> {
        let (machine, topology) = (&spec.machine, &spec.machine.topology);
        let stated = spec.workloads.iter().any(|workload| {
            workload.tasks.iter().any(|task| task.working_set > 0 || task.code > 0)
                || workload.programs.iter().any(|program| program.working_set > 0)
        });
        let caches = machine.caches.clone().filter(|_| stated && machine.physics.warmth)?;
        let place = |cpu| {
            let place = topology.place(cpu);
            [place.core as usize, place.llc as usize]
        };
        let places: Vec<[usize; 2]> = topology.all().iter().map(place).collect();
        let of = |shared_by: SharedBy| 1 + places.iter().map(|place| place[shared_by as usize]).max().unwrap_or(0);
        let contents = caches.levels.iter().map(|level| vec![Cache::default(); of(level.shared_by)]).collect();
        let front_ends = vec![Cache::default(); of(SharedBy::Core)];
        let stays = vec![None; places.len()];
        Some(Box::new(Warmth { caches, contents, front_ends, places, stays }))
    }

    /// The debt of a task that is switched in, and what it found.
    pub fn begin(&self, cpu: CpuId, task: Pid, set: u64, code: Code, first: bool) -> Stay {
        let (mut found, mut warm) = ([0; LEVELS], [0; LEVELS]);
        let (mut time, mut nearer) = (0, 0);
        let mut touch = self.caches.warm_read(set);
        let mut front = None;
        if let Some(end) = self.caches.front_end.filter(|_| code.kib > 0) {
            let kib = u64::from(code.kib);
            let most = kib.min(end.kib);
            let held = if first { most } else { self.front_ends[self.core(cpu)].of(code.of as Pid).min(most) };
            time += (most - held) * (end.cold - end.warm);
            touch += kib * end.warm;
            front = Some((code.of, [held, most]));
        }
        for (i, level) in self.caches.levels.iter().enumerate().take(LEVELS) {
            warm[i] = set.min(level.kib);
            let held = if first { warm[i] } else { self.cache(i, cpu).of(task) };
            found[i] = held.max(nearer).min(warm[i]);
            nearer = found[i];
            let behind = self.caches.levels.get(i + 1).map_or(self.caches.memory, |next| next.read);
            time += (warm[i] - found[i]) * (behind - level.read);
        }
        let begun = Refill { debt: 0, touch: touch << WORK_SHIFT };
        Stay { task, found, warm, code: front, begun, time }
    }

    /// The task is switched out with this much left of its refill.
    pub fn end(&mut self, cpu: CpuId, left: Refill) -> Option<Refilled> {
        let stay = self.stays[cpu.index()].take()?;
        let Refill { debt, touch } = stay.begun;
        let worked = touch - left.touch;
        let levels = if stay.warm[0] > 0 { self.caches.levels.len().min(LEVELS) } else { 0 };
        for i in 0..levels {
            let missing = stay.warm[i] - stay.found[i];
            let kib = stay.found[i] + part(missing, worked, touch, false);
            let size = self.caches.levels[i].kib;
            self.cache_mut(i, cpu).put(stay.task, kib, size);
        }
        let mut refilled = part(stay.warm[0] - stay.found[0], worked, touch, false);
        if let (Some((of, [held, most])), Some(end)) = (stay.code, self.caches.front_end) {
            let loaded = part(most - held, worked, touch, false);
            let core = self.core(cpu);
            self.front_ends[core].put(of as Pid, held + loaded, end.kib);
            refilled += loaded;
        }
        let time = part(stay.time, debt - left.debt.min(debt), debt, false);
        (time > 0).then_some(Refilled { kib: refilled, time })
    }

    fn core(&self, cpu: CpuId) -> usize {
        self.places[cpu.index()][SharedBy::Core as usize]
    }

    fn cache(&self, level: usize, cpu: CpuId) -> &Cache {
        let place = self.places[cpu.index()][self.caches.levels[level].shared_by as usize];
        &self.contents[level][place]
    }

    fn cache_mut(&mut self, level: usize, cpu: CpuId) -> &mut Cache {
        let place = self.places[cpu.index()][self.caches.levels[level].shared_by as usize];
        &mut self.contents[level][place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_evicted_from_the_task_that_ran_longest_ago() {
        let mut cache = Cache::default();
        cache.put(1, 40, 100);
        cache.put(2, 40, 100);
        cache.put(3, 40, 100);
        assert_eq!([1, 2, 3].map(|task| cache.of(task)), [20, 40, 40]);
        cache.put(1, 40, 100);
        assert_eq!([1, 2, 3].map(|task| cache.of(task)), [40, 20, 40]);
        cache.put(4, 100, 100);
        assert_eq!([1, 2, 3, 4].map(|task| cache.of(task)), [0, 0, 0, 100]);
    }
}
