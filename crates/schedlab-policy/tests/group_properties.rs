//! Random histories of a small machine with a tree of groups, every level checked against brute force.

use proptest::prelude::*;
use schedlab_model::{CpuId, Nanos, TaskId, MSEC};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, GroupId, GroupShares, Member, WakeFlags};
use schedlab_policy::weight::calc_delta_fair;
use schedlab_policy::{
    Algorithm, FairPolicy, Feature, GroupSlice, KernelConfig, Protection, TaskAttr, TreeKey, Version,
};

const CPUS: u32 = 2;
const TASKS: u32 = 8;
/// Parents of groups 1, 2, ...: two top-level groups, a chain of three below the first.
const PARENTS: [u32; 5] = [0, 0, 1, 3, 1];
/// `cpu.weight` 10000. An empty queue keeps its weight while the group's shares shrink, so they are no bound.
const HEAVIEST: u64 = 102_400 << 10;
const SLEEP: Dequeue =
    Dequeue { sleep: true, special: false, throttle: false, save: false, delayed: false, migrating: false };

#[derive(Clone, Copy, Debug)]
enum Step {
    Run(u32),
    Wake(u32, u32),
    Sleep(u32),
    Tick(u32),
    Schedule(u32),
    Fork(u32, u32),
    Nice(u32, i8),
    Policy(u32, u8),
    Balance(u32, u32),
    Yield(u32),
    YieldTo(u32, u32),
    Move(u32, u32),
    Shares(u32, u64),
    Idle(u32, bool),
    Create(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let (cpu, task, group) = (|| 0..CPUS, || 0..TASKS, || 1..=PARENTS.len() as u32);
    prop_oneof![
        6 => (1u32..5_000_000).prop_map(Step::Run),
        3 => (1u32..50_000).prop_map(Step::Run),
        9 => (task(), cpu()).prop_map(|(t, c)| Step::Wake(t, c)),
        6 => cpu().prop_map(Step::Sleep),
        4 => cpu().prop_map(Step::Tick),
        6 => cpu().prop_map(Step::Schedule),
        1 => (cpu(), 0..=PARENTS.len() as u32).prop_map(|(c, g)| Step::Fork(c, g)),
        1 => (task(), -20i8..20).prop_map(|(t, n)| Step::Nice(t, n)),
        1 => (task(), 0u8..3).prop_map(|(t, p)| Step::Policy(t, p)),
        2 => (task(), cpu()).prop_map(|(t, c)| Step::Balance(t, c)),
        1 => cpu().prop_map(Step::Yield),
        1 => (cpu(), task()).prop_map(|(c, t)| Step::YieldTo(c, t)),
        2 => (task(), 0..=PARENTS.len() as u32).prop_map(|(t, g)| Step::Move(t, g)),
        1 => (group(), 1u64..=10_000).prop_map(|(g, w)| Step::Shares(g, w)),
        1 => (group(), any::<bool>()).prop_map(|(g, idle)| Step::Idle(g, idle)),
        1 => group().prop_map(Step::Create),
    ]
}

struct Machine {
    fair: Fair,
    now: Nanos,
}

impl Machine {
    fn new(version: &str, switched: &[&str], quotas: bool) -> Machine {
        let mut config = KernelConfig::new(Version::find(version).expect("a modelled version"), CPUS as usize, 250);
        for name in switched {
            let on = config.has(Feature::find(name).expect("a feature"));
            let _ = config.set_feature(name, !on);
        }
        let mut fair = Fair::new(config);
        // Some tasks are older than the first group, some younger.
        let task = |fair: &mut Fair, task: u32| {
            let group = if task < 3 { GroupId::ROOT } else { GroupId(task % (PARENTS.len() as u32 + 1)) };
            let nice = [0, 0, 0, 5, -5, 19, -20, 0][task as usize];
            fair.add_task(&TaskAttr { nice, cpu: CpuId(task % CPUS), group, ..TaskAttr::default() });
        };
        (0..3).for_each(|id| task(&mut fair, id));
        for parent in PARENTS {
            fair.sched_create_group(GroupId(parent));
        }
        // A strict quota below a loose one, and one that takes part in both.
        for (group, quota, period) in [(1, 12, 20), (3, 3, 10), (2, 30, 20)].into_iter().filter(|_| quotas) {
            fair.tg_set_cfs_bandwidth(GroupId(group), quota * MSEC, period * MSEC, quota * MSEC / 2, 0);
        }
        (3..TASKS).for_each(|id| task(&mut fair, id));
        fair.group_loads().record();
        Machine { fair, now: 1_000_000 }
    }

    fn apply(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Run(ns) => self.run_until(now + Nanos::from(ns)),
            Step::Wake(task, cpu) => self.wake(TaskId(task), CpuId(cpu)),
            Step::Sleep(cpu) => self.sleep(CpuId(cpu)),
            Step::Tick(cpu) => {
                self.fair.task_tick(CpuId(cpu), now);
            }
            Step::Schedule(cpu) => self.schedule(CpuId(cpu)),
            Step::Fork(cpu, group) => self.fork(CpuId(cpu), GroupId(group)),
            Step::Nice(task, nice) => {
                self.fair.set_user_nice(TaskId(task), nice, now);
            }
            Step::Policy(task, policy) => {
                let policies = [FairPolicy::Normal, FairPolicy::Batch, FairPolicy::Idle];
                self.fair.set_policy(TaskId(task), policies[policy as usize], now);
            }
            Step::Balance(task, cpu) => self.balance(TaskId(task), CpuId(cpu)),
            Step::Yield(cpu) => self.fair.yield_task(CpuId(cpu), now),
            Step::YieldTo(cpu, task) => {
                self.fair.yield_to_task(CpuId(cpu), TaskId(task), now);
            }
            Step::Move(task, group) => {
                self.fair.sched_move_task(TaskId(task), GroupId(group), now);
            }
            Step::Shares(group, weight) => {
                self.fair.sched_group_set_shares(GroupId(group), GroupShares::Weight(weight), now)
            }
            Step::Idle(group, idle) => self.fair.sched_group_set_idle(GroupId(group), idle, now),
            Step::Create(parent) => {
                if self.fair.nr_groups() < 12 {
                    self.fair.sched_create_group(GroupId(parent));
                }
            }
        }
    }

    /// Time passes; timers of quotas fire when they are due.
    fn run_until(&mut self, end: Nanos) {
        while let Some(due) = self.fair.next_bandwidth_timer().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.fair.bandwidth_timers(self.now);
        }
        self.now = end;
    }

    fn wake(&mut self, task: TaskId, cpu: CpuId) {
        let se = self.fair.entity(task);
        let (home, on_rq, delayed) = (se.cpu, se.on_rq, se.sched_delayed);
        if on_rq && !delayed || se.throttled {
            return;
        }
        let target = if on_rq || self.fair.curr(home) == Some(task) { home } else { cpu };
        let migrated = target != home;
        if migrated {
            self.fair.migrate_task_rq(task, home, target);
        }
        self.fair.enqueue_task(target, task, Enqueue { wakeup: true, migrated, delayed, initial: false }, self.now);
        if self.fair.curr(target) != Some(task) {
            self.fair.wakeup_preempt(target, task, WakeFlags::default(), false, self.now);
        }
    }

    fn sleep(&mut self, cpu: CpuId) {
        let running = self.fair.curr(cpu).filter(|task| {
            let se = self.fair.entity(*task);
            se.on_rq && !se.sched_delayed
        });
        if let Some(task) = running {
            self.fair.dequeue_task(cpu, task, SLEEP, self.now);
            self.schedule(cpu);
        }
    }

    fn fork(&mut self, cpu: CpuId, group: GroupId) {
        if self.fair.nr_tasks() < 100 {
            let child = self.fair.add_task(&TaskAttr { cpu, group, ..TaskAttr::default() });
            self.fair.task_fork(cpu, child, self.now);
            self.fair.enqueue_task(cpu, child, Enqueue { initial: true, ..Enqueue::default() }, self.now);
            self.fair.wakeup_preempt(cpu, child, WakeFlags { fork: true, sync: false }, false, self.now);
        }
    }

    fn balance(&mut self, task: TaskId, to: CpuId) {
        let (from, on_rq) = (self.fair.entity(task).cpu, self.fair.entity(task).on_rq);
        let pair = self.fair.throttled_lb_pair(task, to);
        if on_rq && from != to && !pair && self.fair.curr(from) != Some(task) {
            self.fair.dequeue_task(from, task, Dequeue::default(), self.now);
            self.fair.migrate_task_rq(task, from, to);
            self.fair.enqueue_task(to, task, Enqueue { migrated: true, ..Enqueue::default() }, self.now);
            self.fair.wakeup_preempt(to, task, WakeFlags::default(), false, self.now);
        }
    }

    /// A pick, whose delayed dequeues are done first, against the same descent by brute force.
    fn schedule(&mut self, cpu: CpuId) {
        // A turn that ends at one level takes the buddies of those above along, even after their pick.
        self.fair.update_curr(cpu, self.now);
        let picked = self.fair.pick_task(cpu, self.now);
        self.check_descent(cpu, picked);
        assert_eq!(self.fair.pick_next_task(cpu, self.now), picked);
        assert_eq!(self.fair.curr(cpu), picked);
        self.check_current(cpu, picked);
        // Every other task is in kernel mode when it is picked, and continues.
        if let Some(task) = picked.filter(|task| self.fair.has_throttle_work(*task) && task.0 % 2 == 0) {
            if self.fair.throttle_cfs_rq_work(task, self.now) {
                self.schedule(cpu);
            }
        }
    }

    fn check_descent(&self, cpu: CpuId, picked: Option<TaskId>) {
        let mut group = GroupId::ROOT;
        let tree = self.fair.config.version.rules.tree_key;
        while let Some(expected) = self.expected(group, cpu) {
            match expected {
                // Ties of trees sorted by vruntime depend on their shape.
                _ if tree == TreeKey::Vruntime && !self.is_cfs() => return,
                Member::Task(task) => {
                    return assert_eq!(picked, Some(task), "{} {cpu}: pick", self.fair.config.version.name)
                }
                Member::Group(below) => group = below,
            }
        }
        assert_eq!((picked, group), (None, GroupId::ROOT), "a queued group is empty");
    }

    /// The current ones of all levels are the picked task and its groups.
    fn check_current(&self, cpu: CpuId, picked: Option<TaskId>) {
        let mut chain = Vec::new();
        if let Some(task) = picked {
            let mut group = self.fair.group_of(task);
            chain.push((group, Member::Task(task)));
            while group != GroupId::ROOT {
                let parent = self.fair.group(group).parent;
                chain.push((parent, Member::Group(group)));
                group = parent;
            }
        }
        for group in self.groups() {
            let expected = chain.iter().find(|(on, _)| *on == group).map(|(_, member)| *member);
            assert_eq!(self.fair.view().current(group, cpu), expected, "{cpu}: current of {group:?}");
        }
    }

    fn groups(&self) -> impl Iterator<Item = GroupId> {
        (0..self.fair.nr_groups() as u32).map(GroupId)
    }

    fn is_cfs(&self) -> bool {
        self.fair.config.version.rules.algorithm == Algorithm::Cfs
    }

    /// Everyone on a queue: the tree in its order, then the running one.
    fn competitors(&self, group: GroupId, cpu: CpuId) -> Vec<Member> {
        self.fair.view().waiting(group, cpu).chain(self.fair.view().running(group, cpu)).collect()
    }

    fn expected(&self, group: GroupId, cpu: CpuId) -> Option<Member> {
        match self.competitors(group, cpu) {
            everyone if everyone.is_empty() => None,
            everyone if self.is_cfs() => self.expected_cfs(group, cpu, everyone),
            everyone => self.expected_eevdf(group, cpu, &everyone),
        }
    }

    fn expected_cfs(&self, group: GroupId, cpu: CpuId, mut order: Vec<Member>) -> Option<Member> {
        let rq = self.fair.group_rq(group, cpu);
        let [next, last, skip] = self.fair.view().buddies(group, cpu);
        let se = |member| self.fair.view().member_entity(member, cpu);
        let key = |member| rq.key(se(member).vruntime);
        order.sort_by_key(|member| key(*member));
        let left = order[0];
        let granularity = calc_delta_fair(self.fair.config.knobs.wakeup_granularity, &se(left).load) as i64;
        let near = |member: &Member| key(*member) - key(left) <= granularity;
        let second = order.get(1).copied().filter(|_| skip == Some(left)).filter(near);
        next.filter(near).or(last.filter(near)).or(second).or(Some(left))
    }

    fn expected_eevdf(&self, group: GroupId, cpu: CpuId, everyone: &[Member]) -> Option<Member> {
        let (rq, rules) = (self.fair.group_rq(group, cpu), self.fair.config.version.rules);
        let se = |member| self.fair.view().member_entity(member, cpu);
        let (sum, weight) = everyone.iter().fold((0i128, 0i128), |(sum, weight), member| {
            let w = i128::from((se(*member).h_load.weight >> rules.averaging().shift).max(2));
            (sum + i128::from(rq.key(se(*member).vruntime)) * w, weight + w)
        });
        let owed = |member: &Member| i128::from(rq.key(se(*member).vruntime)) * weight <= sum;
        let buddy = self.fair.view().buddies(group, cpu)[0].filter(|_| self.fair.config.has(rules.buddy_feature));
        if let Some(next) = buddy.filter(owed) {
            return Some(next);
        }
        let running = self.fair.view().running(group, cpu).filter(owed);
        let protected = |curr: &Member| match rules.protection {
            Protection::None => false,
            Protection::Marker => {
                self.fair.config.has(Feature::RunToParity) && se(*curr).vlag as u64 == se(*curr).deadline.0
            }
            Protection::Vprot { .. } => se(*curr).vruntime.before(self.fair.view().vprot(se(*curr))),
        };
        if everyone.len() > 1 {
            if let Some(curr) = running.filter(protected) {
                return Some(curr);
            }
        }
        // min_by keeps the first of equals: queued before running, earlier queued before later.
        let deadline = |member: &Member| rq.key(se(*member).deadline);
        everyone.iter().filter(|member| owed(member)).min_by_key(|member| deadline(member)).copied()
    }

    fn audit(&self) {
        for cpu in (0..CPUS).map(CpuId) {
            let (mut tasks, mut listed) = (0, 0);
            for group in self.groups() {
                let kept = self.fair.view().sums(group, cpu);
                assert_eq!(kept, self.fair.view().recomputed_sums(group, cpu), "{cpu} {group:?}: sums");
                self.audit_entity(group, cpu);
                let everyone = self.competitors(group, cpu);
                let own = everyone.iter().filter(|member| matches!(member, Member::Task(_))).count();
                listed += own;
                tasks += if self.is_cut_off(group, cpu) { 0 } else { own };
                // Who yields in a throttled group leaves its skip buddies behind, as in the kernel.
                for buddy in self.fair.view().buddies(group, cpu).into_iter().take(2).flatten() {
                    assert!(everyone.contains(&buddy), "{cpu} {group:?}: a buddy is not queued");
                }
            }
            assert_eq!(self.fair.rq(cpu).h_nr_running as usize, tasks, "{cpu}: tasks in all groups");
            assert_eq!(self.fair.cfs_tasks(cpu).count(), listed, "{cpu}: list of runnable tasks");
        }
    }

    /// `tg->load_avg` of every group.
    fn group_loads(&self) -> Vec<i64> {
        self.groups().map(|group| self.fair.group(group).load.load_avg).collect()
    }

    /// Every change of a group's sum since `before` is in the record of accesses, and none of the root's, which is not
    /// used.
    fn audit_group_loads(&mut self, before: &[i64]) {
        let after = self.group_loads();
        let accesses: Vec<_> = self.fair.group_loads().drain().into_iter().flatten().collect();
        assert!(accesses.iter().all(|access| access.group != GroupId::ROOT));
        let written = |group: usize| accesses.iter().any(|access| access.write && access.group.index() == group);
        for (group, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!(
                before == after || written(group),
                "the sum of group {group} changed from {before} to {after} unseen"
            );
        }
    }

    /// Whether a throttled group stands between the root and this one's tasks.
    fn is_cut_off(&self, group: GroupId, cpu: CpuId) -> bool {
        let cut = self.fair.group_rq(group, cpu).throttled && !self.fair.config.version.rules.throttles_tasks();
        cut || group != GroupId::ROOT && self.is_cut_off(self.fair.group(group).parent, cpu)
    }

    /// A group's entity is queued exactly while an entity is queued below and it is not throttled, or its dequeue is
    /// delayed.
    fn audit_entity(&self, group: GroupId, cpu: CpuId) {
        let Some(se) = self.fair.group_entity(group, cpu) else { return };
        let below = self.fair.group_rq(group, cpu);
        let cut_off = below.throttled && !self.fair.config.version.rules.throttles_tasks();
        assert_eq!(se.on_rq, below.nr_running > 0 && !cut_off || se.sched_delayed, "{cpu} {group:?}");
        assert!(!se.sched_delayed || cut_off || below.nr_running == 0, "{cpu} {group:?}: delayed, but not empty");
        let rules = self.fair.config.version.rules;
        // From 7.3 on a group has its shares once for each task that runs at a time.
        let heaviest = if rules.flat_hierarchy { u64::from(CPUS) * HEAVIEST } else { HEAVIEST };
        assert!((2..=heaviest).contains(&se.load.weight), "{cpu} {group:?}: weight");
        if !rules.flat_hierarchy && rules.group_slice == GroupSlice::Exact && below.nr_running > 0 && se.on_rq {
            let everyone = self.competitors(group, cpu);
            let shortest = everyone.iter().map(|member| self.fair.view().member_entity(*member, cpu).slice).min();
            assert_eq!(Some(se.slice), shortest, "{cpu} {group:?}: slice");
        }
    }
}

fn play(version: &str, switched: &[&str], quotas: bool, steps: &[Step]) {
    let mut machine = Machine::new(version, switched, quotas);
    for (index, step) in steps.iter().enumerate() {
        let loads = machine.group_loads();
        machine.apply(*step);
        machine.audit_group_loads(&loads);
        let audit = std::panic::AssertUnwindSafe(|| machine.audit());
        if let Err(cause) = std::panic::catch_unwind(audit) {
            eprintln!("{version}, after step {index}: {step:?}");
            std::panic::resume_unwind(cause);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn every_level_agrees_with_brute_force(steps in proptest::collection::vec(step(), 1..250)) {
        for version in Version::all() {
            play(version.name, &[], false, &steps);
        }
    }

    #[test]
    fn quotas_keep_every_level_in_order(steps in proptest::collection::vec(step(), 1..250)) {
        for version in Version::all() {
            play(version.name, &[], true, &steps);
        }
    }

    #[test]
    fn so_do_all_with_features_switched(
        steps in proptest::collection::vec(step(), 1..120),
        switched in proptest::sample::subsequence(
            vec![
                "NEXT_BUDDY", "LAST_BUDDY", "ALT_PERIOD", "BASE_SLICE", "PLACE_LAG", "PLACE_REL_DEADLINE",
                "RUN_TO_PARITY", "PREEMPT_SHORT", "DELAY_DEQUEUE", "DELAY_ZERO", "PICK_BUDDY", "PLACE_FUDGE",
            ],
            0..12,
        ),
    ) {
        for version in Version::all() {
            play(version.name, &switched, false, &steps);
        }
    }
}

/// Groups' entities stand behind the tasks' and move when tasks need room.
#[test]
fn tasks_added_late_compete_in_their_group() {
    for version in Version::all() {
        let mut fair = Fair::new(KernelConfig::new(version, 1, 250));
        let above = fair.sched_create_group(GroupId::ROOT);
        let group = fair.sched_create_group(above);
        let attr = TaskAttr { group, ..TaskAttr::default() };
        let mut now = MSEC;
        for count in 1..=600 {
            let task = fair.add_task(&attr);
            now += 1000;
            fair.enqueue_task(CpuId(0), task, Enqueue { wakeup: true, ..Enqueue::default() }, now);
            let waiting = [group, GroupId::ROOT].map(|group| fair.view().waiting(group, CpuId(0)).count());
            let expected = if version.rules.flat_hierarchy { [0, count] } else { [count, 1] };
            assert_eq!(waiting, expected, "{}", version.name);
        }
        assert!(fair.pick_next_task(CpuId(0), now).is_some());
    }
}
