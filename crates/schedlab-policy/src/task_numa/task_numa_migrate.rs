//! A task moves to the node that it prefers (`task_numa_migrate`, `task_numa_find_cpu`, `task_numa_compare`,
//! `task_numa_assign`, `update_numa_stats`).
//!
//! If the node has spare CPUs and the move leaves the nodes no more uneven than the load balancer allows, the task goes
//! to an idle CPU. Otherwise it may change places with the running task of a CPU there: the gain of both, in
//! thousandths of their faults, has to be larger than that of the best candidate so far, and the load of the nodes may
//! not become less even. Simplified: a CPU that runs a thread of the kernel counts as idle, as in 7.2; before, the
//! thread could change places, too.

use std::cmp::Reverse;

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::balance::sched_balance_find_src_group::adjust_numa_imbalance;
use crate::fair::class::FairClass;
use crate::jiffies::Jiffies;
use crate::numa::access::NumaMove;
use crate::numa::{Node, Numa};
use crate::version::placement::NumaSlack;

/// `SMALLIMP`.
const SMALLIMP: i64 = 30;

/// `enum numa_type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeType {
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// `struct numa_stats`.
#[derive(Clone, Copy, Debug)]
struct NodeStats {
    load: i64,
    compute_capacity: i64,
    nr_running: u32,
    weight: u32,
    node_type: NodeType,
    idle_cpu: Option<CpuId>,
}

/// `struct task_numa_env`.
struct Env {
    task: TaskId,
    birth: u64,
    src_cpu: CpuId,
    src_nid: Node,
    dst_nid: Node,
    src_stats: NodeStats,
    dst_stats: NodeStats,
    imb_numa_nr: u32,
    best: Option<Best>,
    now: Nanos,
    jiffies: Option<Jiffies>,
    looked_at: u32,
}

/// How much larger the share of the faults on a node is than on the task's node, in thousandths.
#[derive(Clone, Copy, Debug)]
struct Gain {
    /// Of the task's faults.
    task: i64,
    /// Of its group's.
    group: i64,
}

/// The best CPU found so far.
#[derive(Clone, Copy, Debug)]
struct Best {
    cpu: CpuId,
    task: Option<TaskId>,
    imp: i64,
}

impl FairClass<'_> {
    /// `task_numa_migrate`; also how many CPUs it examined.
    pub(crate) fn task_numa_migrate(
        &mut self,
        numa: &mut Numa,
        task: TaskId,
        preferred: Node,
        now: Nanos,
    ) -> (Option<NumaMove>, u32) {
        let src_cpu = self.core.cpu_of(task);
        let src_nid = numa.node(src_cpu);
        let level = (0..self.core.domains.depth(src_cpu)).find(|level| self.core.domains.at(src_cpu, *level).is_numa());
        let Some(domain) = level.map(|level| self.core.domains.at(src_cpu, level)) else {
            self.sched_setnuma(task, src_nid);
            return (None, 0);
        };
        let (pct, imb_numa_nr) = (u64::from(domain.imbalance_pct), domain.imb_numa_nr);
        let imbalance_pct = 100 + (pct - 100) / 2;
        let src_stats = self.update_numa_stats(numa, task, src_nid, imbalance_pct, false, now);
        let dst_stats = self.update_numa_stats(numa, task, preferred, imbalance_pct, true, now);
        let looked_at = src_stats.weight + dst_stats.weight;
        let mut env = Env {
            task,
            birth: self.core.tasks[task.index()].birth,
            src_cpu,
            src_nid,
            dst_nid: preferred,
            src_stats,
            dst_stats,
            imb_numa_nr,
            best: None,
            now,
            jiffies: self.core.jiffies_shown,
            looked_at,
        };
        let gain = |node| Gain {
            task: numa.task_weight(task, node) - numa.task_weight(task, src_nid),
            group: numa.group_weight(task, node) - numa.group_weight(task, src_nid),
        };
        let gains: Vec<Gain> = (0..numa.nodes).map(gain).collect();
        self.task_numa_find_cpu(numa, &mut env, gains[preferred]);
        let active = numa.group(task).map(|group| group.active_nodes);
        if env.best.is_none() || active.is_some_and(|active| active > 1) {
            for node in (0..numa.nodes).filter(|node| *node != src_nid && *node != preferred) {
                if gains[node].task < 0 && gains[node].group < 0 {
                    continue;
                }
                env.dst_nid = node;
                env.dst_stats = self.update_numa_stats(numa, task, node, imbalance_pct, true, now);
                env.looked_at += env.dst_stats.weight;
                self.task_numa_find_cpu(numa, &mut env, gains[node]);
            }
        }
        if active.is_some() {
            self.sched_setnuma(task, env.best.map_or(src_nid, |best| numa.node(best.cpu)));
        }
        let moves = env.best.map(|best| NumaMove { task, dest: best.cpu, swap: best.task });
        (moves, env.looked_at)
    }

    /// `update_numa_stats`; `find_idle`: with an idle CPU for the task, of an idle core if the cache has one.
    fn update_numa_stats(
        &self,
        numa: &Numa,
        task: TaskId,
        node: Node,
        pct: u64,
        find_idle: bool,
        now: Nanos,
    ) -> NodeStats {
        let (mut load, mut capacity, mut util, mut runnable) = (0, 0, 0, 0);
        let (mut nr_running, mut weight) = (0, 0);
        let (mut idle_cpu, mut idle_core) = (None, None);
        for cpu in self.cpus_of_node(numa, node) {
            load += self.fair.cpu_load(cpu);
            runnable += self.fair.cpu_runnable(cpu);
            util += self.fair.cpu_util_cfs(cpu);
            nr_running += self.h_nr_runnable(cpu);
            capacity += self.capacity_of(cpu);
            weight += 1;
            let free = find_idle && idle_core.is_none() && self.core.nr_running(cpu) == 0 && self.core.is_idle(cpu);
            if free && !numa.is_claimed(cpu, now) && self.core.tasks[task.index()].allows(cpu) {
                idle_cpu = idle_cpu.or(Some(cpu));
                let idle = &self.core.idle;
                if idle.smt_active() && idle.llc(idle.llc_of(cpu)).has_idle_cores && idle.is_core_idle(cpu) {
                    idle_core = Some(cpu);
                }
            }
        }
        let waits = capacity * pct < runnable * 100;
        let node_type = if nr_running > weight && (capacity * 100 < util * pct || waits) {
            NodeType::Overloaded
        } else if nr_running < weight || capacity * 100 > util * pct && capacity * pct > runnable * 100 {
            NodeType::HasSpare
        } else {
            NodeType::FullyBusy
        };
        NodeStats {
            load: load as i64,
            compute_capacity: capacity as i64,
            nr_running,
            weight,
            node_type,
            idle_cpu: idle_core.or(idle_cpu),
        }
    }

    fn cpus_of_node(&self, numa: &Numa, node: Node) -> Vec<CpuId> {
        self.core.topology.all().iter().filter(|cpu| numa.node(*cpu) == node).collect()
    }

    /// `task_numa_find_cpu`.
    fn task_numa_find_cpu(&mut self, numa: &mut Numa, env: &mut Env, gain: Gain) {
        let may_move = if env.dst_stats.node_type == NodeType::HasSpare {
            let even = self.stays_even(env);
            if let Some(idle) = env.dst_stats.idle_cpu.filter(|_| even) {
                self.task_numa_assign(numa, env, idle, None, 0);
                return;
            }
            even
        } else {
            let load = self.fair.task_h_load(env.task, env.jiffies) as i64;
            !load_too_imbalanced(env, load)
        };
        for cpu in self.cpus_of_node(numa, env.dst_nid) {
            let allowed = self.core.tasks[env.task.index()].allows(cpu);
            if allowed && self.task_numa_compare(numa, env, cpu, gain, may_move) {
                break;
            }
        }
    }

    /// Whether the load balancer would accept the numbers of tasks that the move leads to (`adjust_numa_imbalance`).
    fn stays_even(&self, env: &Env) -> bool {
        let (src, dst) = (env.src_stats.nr_running.saturating_sub(1), env.dst_stats.nr_running + 1);
        let imbalance = u64::from(dst.saturating_sub(src));
        match self.core.rules.numa_slack {
            NumaSlack::None => imbalance == 0,
            NumaSlack::Pair => imbalance == 0 || src <= 2,
            NumaSlack::Quarter => imbalance == 0 || dst < env.dst_stats.weight / 4 && imbalance <= 2,
            NumaSlack::PerNode => adjust_numa_imbalance(imbalance, dst, env.imb_numa_nr) == 0,
        }
    }

    /// `task_numa_compare`. True: the search ends.
    fn task_numa_compare(&mut self, numa: &mut Numa, env: &mut Env, cpu: CpuId, gain: Gain, may_move: bool) -> bool {
        if numa.is_claimed(cpu, env.now) {
            return false;
        }
        let group = numa.task(env.task).and_then(|state| state.group);
        let move_imp = if group.is_some() { gain.group } else { gain.task };
        let best_imp = env.best.map_or(0, |best| best.imp);
        let counts = |task: &crate::core::task::Task| !task.exiting && !task.attr.kthread;
        let curr = self.core.curr(cpu).filter(|curr| counts(&self.core.tasks[curr.index()]));
        let Some(curr) = curr else {
            return may_move && move_imp >= best_imp && self.assign(numa, env, cpu, None, move_imp, may_move);
        };
        if curr == env.task {
            return true;
        }
        let prefers =
            |class: &Self, task: TaskId| class.core.tasks[task.index()].preferred_node.map(|node| node as Node);
        let prefers_src = |class: &Self, task: TaskId| prefers(class, task) == Some(env.src_nid);
        let best_task = env.best.and_then(|best| best.task);
        let best_goes_home = best_task.is_some_and(|task| prefers_src(self, task));
        let goes_home = prefers_src(self, curr);
        if !self.core.tasks[curr.index()].allows(env.src_cpu) || best_goes_home && !goes_home {
            return false;
        }
        let cur_group = numa.task(curr).and_then(|state| state.group);
        let mut imp = move_imp;
        let task_loss = numa.task_weight(curr, env.src_nid) - numa.task_weight(curr, env.dst_nid);
        if cur_group == group {
            if self.core.rules.numa_keeps_with_spare && env.dst_stats.node_type == NodeType::HasSpare {
                return false;
            }
            imp = gain.task + task_loss;
            imp -= if cur_group.is_some() { imp / 16 } else { 0 };
        } else if cur_group.is_some() && group.is_some() {
            imp += numa.group_weight(curr, env.src_nid) - numa.group_weight(curr, env.dst_nid);
        } else {
            imp += task_loss;
        }
        if prefers(self, curr) == Some(env.dst_nid) {
            imp -= imp / 16;
        }
        if goes_home {
            imp += imp / 8;
        }
        if may_move && move_imp > imp && move_imp > best_imp {
            return self.assign(numa, env, cpu, None, move_imp, may_move);
        }
        if !(best_task.is_some() && goes_home && !best_goes_home) {
            if imp < SMALLIMP || imp <= best_imp + SMALLIMP / 2 {
                return false;
            }
            let load =
                self.fair.task_h_load(env.task, env.jiffies) as i64 - self.fair.task_h_load(curr, env.jiffies) as i64;
            if load != 0 && load_too_imbalanced(env, load) {
                return false;
            }
        }
        self.assign(numa, env, cpu, Some(curr), imp, may_move)
    }

    /// The end of `task_numa_compare`: the candidate is the best so far. True: the search ends.
    fn assign(
        &mut self,
        numa: &mut Numa,
        env: &mut Env,
        mut cpu: CpuId,
        swap: Option<TaskId>,
        imp: i64,
        may_move: bool,
    ) -> bool {
        if swap.is_none() {
            cpu = env.dst_stats.idle_cpu.unwrap_or(cpu);
            let best = env.best.map(|best| best.cpu).filter(|best| self.core.is_idle(*best));
            cpu = best.filter(|_| !self.core.is_idle(cpu)).unwrap_or(cpu);
        }
        self.task_numa_assign(numa, env, cpu, swap, imp);
        let Some(best) = env.best else { return false };
        let goes_home = |task: TaskId| self.core.tasks[task.index()].preferred_node == Some(env.src_nid as u32);
        may_move && swap.is_none() && self.core.is_idle(best.cpu) || !may_move && best.task.is_some_and(goes_home)
    }

    /// `task_numa_assign`: takes the CPU, or another idle one of its node if a task is on its way to it.
    fn task_numa_assign(&mut self, numa: &mut Numa, env: &mut Env, cpu: CpuId, swap: Option<TaskId>, imp: i64) {
        let best = env.best.map(|best| best.cpu);
        let mut chosen = Some(cpu);
        if best != Some(cpu) && numa.is_claimed(cpu, env.now) {
            let mut cpus = self.cpus_of_node(numa, env.dst_nid);
            cpus.sort_by_key(|other| (Reverse(*other > cpu), *other));
            chosen = cpus.into_iter().find(|other| {
                Some(*other) != best
                    && self.core.is_idle(*other)
                    && self.core.tasks[env.task.index()].allows(*other)
                    && !numa.is_claimed(*other, env.now)
            });
        }
        let Some(chosen) = chosen else { return };
        if let Some(before) = best.filter(|best| *best != chosen) {
            numa.migrate_on[before.index()] = (0, 0);
        }
        // A stopper needs less than a tick to move the task.
        numa.migrate_on[chosen.index()] = (env.birth, env.now + numa.tick_nsec);
        env.best = Some(Best { cpu: chosen, task: swap, imp });
    }
}

/// `load_too_imbalanced` after so much load has moved from the source to the destination.
fn load_too_imbalanced(env: &Env, moved: i64) -> bool {
    let (src, dst) = (&env.src_stats, &env.dst_stats);
    let uneven =
        |src_load: i64, dst_load: i64| (dst_load * src.compute_capacity - src_load * dst.compute_capacity).abs();
    uneven(src.load - moved, dst.load + moved) > uneven(src.load, dst.load)
}
