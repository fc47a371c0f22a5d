//! The search of one last-level cache for an idle core or CPU (`select_idle_cpu`, `select_idle_core`,
//! `select_idle_smt`, kernel/sched/fair.c 5.12 and later; identical in 6.1.192 to 7.2 without clusters).
//!
//! One pass over the allowed CPUs of the cache from target + 1 on (5.13: from target), wrapping around. With the
//! idle-core hint the pass searches for the first core that is idle as a whole, or else takes the first idle thread
//! that it has passed; there is no budget, and a failure clears the hint. Without the hint it takes the first idle CPU
//! among the first `budget` CPUs ([`super::sis_budget`]). A CPU whose vCPU is reported as preempted does not count as
//! idle ([`crate::Sched::set_vcpu_preempted`]). From 6.7 on the CPUs of the target's cluster come first, then the
//! others, both from target + 1 on. Not modelled: core scheduling cookies.

use schedlab_model::{CpuId, Distance, Nanos, TaskId, Topology};

use super::select_rule::{SelectRule, Selected};
use crate::candidate::{Candidate, Role};
use crate::core::idle_map::{IdleMap, LlcId};
use crate::core::task::Task;
use crate::core::types::Tested;
use crate::core::visited_cores::VisitedCores;
use crate::fair::class::FairClass;
use crate::features::Feature;

/// The task that a CPU is searched for, and the target of the search.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub task: &'a Task,
    pub target: CpuId,
    /// The target itself is tested first.
    pub from_target: bool,
    /// CPUs that run only SCHED_IDLE tasks do not count as idle.
    pub idle_only: bool,
    /// The target's cluster is searched before the rest of its cache.
    pub cluster_first: bool,
}

impl FairClass<'_> {
    /// `select_idle_cpu`: an idle core if the cache's hint says that there is one, else an idle CPU within the budget.
    pub(super) fn select_idle_cpu(
        &mut self,
        task: TaskId,
        target: CpuId,
        has_idle_core: bool,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<Selected> {
        let budget = self.scan_budget(target, has_idle_core, tested.from, now);
        if self.fair.is_recording() {
            self.explain_budget(task, target, budget, now);
        }
        let Some(budget) = budget else {
            let (answer, numbers) = ("the cache is too busy: no search", [("nr_idle_scan", 0)]);
            let candidate = || Candidate::of("select_idle_cpu", target, Role::Cache, answer);
            tested.consider(|| candidate().by(Feature::SisUtil).with(numbers));
            return None;
        };
        let llc = self.core.idle.llc_of(target);
        let (idle_only, cluster_first) = (self.wants_idle_only(task), self.core.has_cluster_group(target));
        let from_target = self.core.rules.search_from_target;
        let search = Search { task: &self.core.tasks[task.index()], target, from_target, idle_only, cluster_first };
        let before = tested.counts;
        if has_idle_core {
            let visited = &mut self.core.visited_cores;
            let found = scan_cores(&mut self.core.idle, &self.core.topology, visited, &search, tested);
            tested.scans.core = tested.since(before);
            tested.scans.cpu = tested.scans.core;
            let cpus = &self.core.idle.llc(llc).cpus;
            tested.consider(|| searched("select_idle_core", Role::Cache, found, cpus));
            return found.map(|cpu| (cpu, SelectRule::IdleCore));
        }
        let (found, finished) = scan_cpus(&self.core.idle, &self.core.topology, &search, budget, tested);
        tested.scans.cpu = tested.since(before);
        let (cpus, count) = (&self.core.idle.llc(llc).cpus, tested.total() - before.iter().sum::<u32>());
        tested.consider(|| {
            let numbers = [("tested", count.into()), ("limit", i64::from(budget).min(cpus.len() as i64))];
            searched("select_idle_cpu", Role::Cache, found, cpus).with(numbers)
        });
        if finished && self.fair.config.has(Feature::SisProp) {
            self.account_scan(tested.from, tested.scans.cpu.unwrap_or_default());
        }
        found.map(|cpu| (cpu, SelectRule::IdleCpu))
    }

    /// A search for this task from a target on.
    pub(super) fn search(&self, task: TaskId, target: CpuId) -> Search<'_> {
        let (idle_only, cluster_first) = (self.wants_idle_only(task), self.core.has_cluster_group(target));
        let from_target = self.core.rules.search_from_target;
        Search { task: &self.core.tasks[task.index()], target, from_target, idle_only, cluster_first }
    }
}

impl Search<'_> {
    fn fits(&self, map: &IdleMap, cpu: CpuId) -> bool {
        if self.idle_only {
            map.is_idle(cpu)
        } else {
            map.is_usable(cpu)
        }
    }

    /// The rank in the cache at which the search starts.
    fn start(&self, map: &IdleMap) -> usize {
        map.rank(self.target) + usize::from(!self.from_target)
    }

    /// The CPUs of the cache in the order in which they are searched: from the start on, wrapping around; the target's
    /// cluster first where that is the rule.
    fn order<'m>(&self, map: &'m IdleMap, topology: &'m Topology) -> impl Iterator<Item = CpuId> + 'm {
        let cpus = &map.llc(map.llc_of(self.target)).cpus;
        let start = self.start(map) % cpus.len();
        let wrapped = move || cpus[start..].iter().chain(&cpus[..start]).copied();
        let cluster = self.cluster_first.then(|| topology.cluster(self.target));
        let near = wrapped().filter(move |cpu| cluster.is_some_and(|cluster| cluster.has(*cpu)));
        near.chain(wrapped().filter(move |cpu| !cluster.is_some_and(|cluster| cluster.has(*cpu))))
    }
}

/// `select_idle_smt`: another usable thread of `prev`'s core.
pub(crate) fn select_idle_smt(
    map: &IdleMap,
    topology: &Topology,
    search: &Search,
    prev: CpuId,
    tested: &mut Tested,
) -> Option<CpuId> {
    for &cpu in map.threads(prev) {
        if cpu == prev || !search.task.allows(cpu) {
            continue;
        }
        tested.add(topology, cpu);
        if search.fits(map, cpu) {
            return Some(cpu);
        }
    }
    None
}

/// With the hint set: an idle core, or else the first usable thread that the search passed. Clears the hint on failure.
pub(crate) fn scan_cores(
    map: &mut IdleMap,
    topology: &Topology,
    visited: &mut VisitedCores,
    search: &Search,
    tested: &mut Tested,
) -> Option<CpuId> {
    let llc = map.llc_of(search.target);
    let size = map.llc(llc).cpus.len();
    let start = search.start(map);
    let mut thread = None;
    visited.start(map.nr_cores());
    let clusters: Vec<CpuId> = if search.cluster_first { search.order(map, topology).collect() } else { vec![] };
    for step in 0..size {
        let cpu = clusters.get(step).copied().unwrap_or_else(|| map.llc(llc).cpus[(start + step) % size]);
        if !search.task.allows(cpu) || visited.has(map.core_of(cpu)) {
            continue;
        }
        if select_idle_core(map, topology, search, cpu, &mut thread, tested) {
            return Some(cpu);
        }
        visited.insert(map.core_of(cpu));
    }
    map.llc_mut(llc).has_idle_cores = false;
    thread
}

/// `select_idle_core`: whether every thread of the core is idle; stores the first usable thread that the task may use.
fn select_idle_core(
    map: &IdleMap,
    topology: &Topology,
    search: &Search,
    core: CpuId,
    thread: &mut Option<CpuId>,
    tested: &mut Tested,
) -> bool {
    let mut idle = true;
    for &cpu in map.threads(core) {
        tested.add(topology, cpu);
        let may_remember = thread.is_none() && search.task.allows(cpu);
        if map.is_idle(cpu) {
            if may_remember {
                *thread = Some(cpu);
            }
            continue;
        }
        idle = false;
        if thread.is_some() {
            break;
        }
        if may_remember && search.fits(map, cpu) {
            *thread = Some(cpu);
            break;
        }
    }
    idle
}

/// Without the hint: the first usable CPU among the first `budget`. The flag says whether the search ended within the
/// budget.
pub(crate) fn scan_cpus(
    map: &IdleMap,
    topology: &Topology,
    search: &Search,
    budget: u32,
    tested: &mut Tested,
) -> (Option<CpuId>, bool) {
    let llc = map.llc_of(search.target);
    let size = map.llc(llc).cpus.len();
    let start = search.start(map) % size;
    if search.task.affinity.is_some() || search.idle_only || search.cluster_first {
        return scan_cpus_one_by_one(map, topology, search, budget, tested);
    }
    let budget = budget as usize;
    match map.next_usable(llc, start) {
        Some((cpu, steps)) if steps < budget => {
            count_window(map, topology, llc, start, steps + 1, tested);
            (Some(cpu), true)
        }
        _ => {
            count_window(map, topology, llc, start, budget.min(size), tested);
            (None, budget >= size)
        }
    }
}

/// The same, CPU by CPU, for a task that affinity excludes from some of them and on machines with clusters.
fn scan_cpus_one_by_one(
    map: &IdleMap,
    topology: &Topology,
    search: &Search,
    mut budget: u32,
    tested: &mut Tested,
) -> (Option<CpuId>, bool) {
    for cpu in search.order(map, topology) {
        if !search.task.allows(cpu) {
            continue;
        }
        if budget == 0 {
            return (None, false);
        }
        budget -= 1;
        tested.add(topology, cpu);
        if search.fits(map, cpu) {
            return (Some(cpu), true);
        }
    }
    (None, true)
}

/// Counts `count` CPUs of the cache from rank `start` on, wrapping around, as tested. All are equally far from the
/// searching CPU except the threads of its own core.
fn count_window(map: &IdleMap, topology: &Topology, llc: LlcId, start: usize, count: usize, tested: &mut Tested) {
    let from = tested.from;
    let cpus = &map.llc(llc).cpus;
    if tested.asks_host() {
        (0..count).for_each(|step| tested.available_idle_cpu(cpus[(start + step) % cpus.len()]));
    }
    if map.llc_of(from) != llc {
        let distance = topology.distance(from, cpus[0]);
        return tested.add_many(distance, count as u32);
    }
    let inside = |cpu: CpuId| (map.rank(cpu) + cpus.len() - start) % cpus.len() < count;
    let mut near = 0;
    for &cpu in map.threads(from) {
        if inside(cpu) {
            near += 1;
            tested.add_load(topology, cpu);
        }
    }
    tested.add_many(Distance::Llc, count as u32 - near);
}

/// The outcome of a search among CPUs.
#[cold]
pub(super) fn searched(function: &'static str, role: Role, found: Option<CpuId>, cpus: &[CpuId]) -> Candidate {
    match found {
        Some(cpu) => Candidate::of(function, cpu, role, "idle: chosen"),
        None => Candidate::of(function, CpuId(0), role, "none idle").about(cpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::idle_map::Availability;
    use crate::core::types::TaskAttr;
    use proptest::prelude::*;
    use schedlab_model::{CpuMask, Topology};

    fn machine(shape: u8) -> Topology {
        match shape {
            0 => Topology::regular(2, 1, 7, 2, false),
            1 => Topology::regular(1, 2, 3, 4, true),
            3 => Topology::regular(1, 2, 6, 2, true).and_then(|t| t.clustered(3)),
            _ => Topology::regular(2, 2, 5, 1, true),
        }
        .unwrap()
    }

    fn state(map: &mut IdleMap, topology: &Topology, states: &[u8]) {
        for cpu in topology.all().iter() {
            let state = match states[cpu.index() % states.len()] {
                0 => Availability::Idle,
                1 => Availability::SchedIdle,
                _ => Availability::Busy,
            };
            map.set(cpu, state);
        }
    }

    proptest! {
        /// The word search and the kernel's loop agree on the CPU, the outcome and every count.
        #[test]
        fn word_search_equals_the_loop(
            shape in 0u8..3,
            states in proptest::collection::vec(0u8..6, 1..60),
            waker in 0u32..40, target in 0u32..40, budget in 0u32..40,
        ) {
            let topology = machine(shape);
            let n = topology.nr_cpus() as u32;
            let (waker, target) = (CpuId(waker % n), CpuId(target % n));
            let mut map = IdleMap::new(&topology);
            state(&mut map, &topology, &states);
            let free = Task::new(&TaskAttr::default(), &topology);
            let mut bound = free.clone();
            bound.affinity = Some(Box::new(*topology.all()));
            let (mut a, mut b) = (Tested::new(waker, false), Tested::new(waker, false));
            let search = Search { task: &free, target, from_target: waker.0 % 2 == 0, idle_only: false, cluster_first: false };
            let fast = scan_cpus(&map, &topology, &search, budget, &mut a);
            let slow = scan_cpus(&map, &topology, &Search { task: &bound, ..search }, budget, &mut b);
            prop_assert_eq!(fast, slow);
            prop_assert_eq!(a.counts, b.counts);
        }

        /// With clusters the search takes the first idle CPU of the target's cluster, or else the first one of the
        /// cache.
        #[test]
        fn the_cluster_is_searched_first(
            states in proptest::collection::vec(0u8..6, 1..60), target in 0u32..24, budget in 0u32..30,
        ) {
            let topology = machine(3);
            let target = CpuId(target);
            let mut map = IdleMap::new(&topology);
            state(&mut map, &topology, &states);
            let task = Task::new(&TaskAttr::default(), &topology);
            let search = Search { task: &task, target, from_target: false, idle_only: false, cluster_first: true };
            let mut tested = Tested::new(target, false);
            let (found, _) = scan_cpus(&map, &topology, &search, budget, &mut tested);
            let llc: Vec<CpuId> = map.llc(map.llc_of(target)).cpus.clone();
            let after = |cpu: &CpuId| (cpu.0 + llc.len() as u32 - target.0 - 1) % llc.len() as u32;
            let mut order: Vec<CpuId> = llc.clone();
            order.sort_by_key(|cpu| (!topology.cluster(target).has(*cpu), after(cpu)));
            let expected = order.into_iter().take(budget as usize).find(|cpu| map.is_usable(*cpu));
            prop_assert_eq!(found, expected);
        }

        /// A core search returns an idle core if there is one the task may start on, else a usable allowed thread if
        /// there is one, and then clears the hint.
        #[test]
        fn core_search_is_complete(
            shape in 0u8..4,
            states in proptest::collection::vec(0u8..4, 1..60),
            target in 0u32..40,
            allowed in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let topology = machine(shape);
            let target = CpuId(target % topology.nr_cpus() as u32);
            let mut map = IdleMap::new(&topology);
            state(&mut map, &topology, &states);
            let mut task = Task::new(&TaskAttr::default(), &topology);
            let mask: CpuMask = topology.all().iter().filter(|c| allowed[c.index()]).collect();
            task.set_affinity(Some(&mask), &topology);
            let llc = map.llc_of(target);
            map.llc_mut(llc).has_idle_cores = true;
            let mut tested = Tested::new(target, false);
            let cluster_first = topology.has_clusters();
            let search = Search { task: &task, target, from_target: false, idle_only: false, cluster_first };
            let found = scan_cores(&mut map, &topology, &mut VisitedCores::default(), &search, &mut tested);
            let mine = |cpu: &CpuId| task.allows(*cpu);
            let cpus: Vec<CpuId> = map.llc(llc).cpus.clone();
            let core_idle = |cpu: &CpuId| topology.smt(*cpu).iter().all(|t| map.is_idle(t));
            let any_core = cpus.iter().filter(|c| mine(c)).any(core_idle);
            let any_thread = cpus.iter().filter(|c| mine(c)).any(|c| map.is_usable(*c));
            prop_assert_eq!(map.llc(llc).has_idle_cores, any_core);
            prop_assert_eq!(found.is_some(), any_thread);
            if let Some(cpu) = found {
                prop_assert!(mine(&cpu) && map.is_usable(cpu));
                prop_assert_eq!(any_core, core_idle(&cpu));
            }
        }
    }
}
