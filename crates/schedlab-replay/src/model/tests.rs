//! What a model makes of need-resched.

use std::sync::Arc;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::{KernelConfig, PreemptModel, Resched, Version};
use schedlab_trace::Header;

use super::Model;
use crate::decision::{DecisionKind, Outcome};
use crate::groups::InitialGroups;
use crate::operation::{
    Caller, Cause, Charge, First, Flag, Group, Input, Location, NewTask, Operation, PrevState, QueueWeight, Switch,
    TgLoad, Wakeup, Weight,
};
use crate::tally::Tally;
use crate::topology::Machine;
use crate::trace::Address;
use crate::trace::OthersLoad;
use crate::unjudged::Unjudged;

const CPU: CpuId = CpuId(0);
const RUNS: Pid = 1;
const DELAYED: Pid = 2;
const WAKEE: Pid = 3;

fn model(config: KernelConfig) -> Model {
    let topology = Arc::new(Machine::of(&Header::default(), config.nr_cpus).topology);
    Model::new(config, topology, Tally::default(), Arc::new(InitialGroups::default()), false)
}

fn apply(model: &mut Model, operation: Operation) {
    model.apply(&Input { time: 0, cpu: CPU, operation });
}

fn add(model: &mut Model, pid: Pid, at: Location) {
    let first = (!matches!(at, Location::Asleep(_))).then_some(First::Unknown);
    apply(model, Operation::AddTask(NewTask { pid, weight: Weight::Nice(0), at, group: None, first }));
}

fn charge(model: &mut Model, pid: Pid, ran: Nanos) {
    let caller = Caller::NoCheck;
    apply(model, Operation::UpdateCurr(Charge { cpu: CPU, pid, ran, printed: None, caller, waking_at: None }));
}

fn wake(model: &mut Model, pid: Pid, flag: Flag) {
    let (cpu, first) = (CPU, Some(First::Unknown));
    let wakeup = Wakeup { cpu, pid, new: false, waking_at: 0, next_charge: 0, clock: None, first, flag };
    apply(model, Operation::Wakeup(wakeup));
}

/// Row 7.2 with lazy preemption: a task runs, and the dequeue of another one, whose turn it would be, is delayed.
fn with_a_delayed_task() -> Model {
    let mut config = KernelConfig::new(Version::find("7.2").unwrap(), 1, 250);
    config.set_preempt(PreemptModel::Lazy).unwrap();
    let mut model = model(config);
    add(&mut model, DELAYED, Location::Running(CPU));
    add(&mut model, RUNS, Location::Queued(CPU));
    add(&mut model, WAKEE, Location::Asleep(CPU));
    charge(&mut model, DELAYED, 2_000_000);
    let switch = Switch { cpu: CPU, prev: DELAYED, prev_state: PrevState::Asleep, next: RUNS, next_is_fair: true };
    apply(&mut model, Operation::Switch(switch));
    for _ in 0..10 {
        charge(&mut model, RUNS, 900_000);
    }
    model
}

fn is_delayed(model: &Model) -> bool {
    let se = model.fair().entity(model.task(DELAYED).unwrap());
    se.on_rq && se.sched_delayed
}

/// TIF_NEED_RESCHED ends the check at once; with the lazy flag alone 7.2 still picks, and dequeues delayed tasks that
/// the pick finds.
#[test]
fn a_lazy_flag_does_not_end_the_check() {
    for (before, before_full, preempted, delayed) in [
        (false, false, Resched::No, false),
        (true, false, Resched::No, false),
        (true, true, Resched::No, true),
        // Earlier decisions of a series, whose flag no record shows in between.
        (false, false, Resched::Lazy, false),
        (false, false, Resched::Full, true),
    ] {
        let mut model = with_a_delayed_task();
        assert!(is_delayed(&model));
        model.cpus[0].preempted = preempted;
        wake(&mut model, WAKEE, Flag { before, before_full, after: Some(true), cause: Cause::Own });
        assert_eq!(is_delayed(&model), delayed, "{before} {before_full} {preempted:?}");
    }
}

/// What each operation of a series counts: wakeups that the row lets wait, whose flag is seen once, at the end.
fn outcomes(steps: &[Step]) -> Vec<Outcome> {
    let mut model = model(KernelConfig::new(Version::find("6.12.107").unwrap(), 1, 250));
    add(&mut model, RUNS, Location::Running(CPU));
    for pid in [WAKEE, WAKEE + 1, WAKEE + 2] {
        add(&mut model, pid, Location::Asleep(CPU));
    }
    charge(&mut model, RUNS, 1000);
    let mut found = Vec::new();
    for step in steps {
        match *step {
            Step::Wake(nth, cause) => {
                let flag = Flag { before: false, before_full: false, after: Some(true), cause };
                wake(&mut model, WAKEE + nth, flag);
            }
            Step::Charge(ran) => charge(&mut model, RUNS, ran),
            Step::Switch => {
                let (prev_state, next) = (PrevState::Runnable, WAKEE);
                let switch = Switch { cpu: CPU, prev: RUNS, prev_state, next, next_is_fair: true };
                apply(&mut model, Operation::Switch(switch));
            }
        }
        let judged = model.decisions.iter().filter(|decision| decision.kind != DecisionKind::Pick);
        found.extend(judged.map(|decision| decision.outcome));
    }
    found
}

enum Step {
    Wake(Pid, Cause),
    Charge(Nanos),
    Switch,
}

/// A flag that two decisions share counts against a row by which neither sets it, whichever decision follows or does
/// not.
#[test]
fn a_shared_flag_counts_against_the_model() {
    use Outcome::Differs;
    use Step::{Charge, Switch, Wake};
    let excused = Outcome::Unjudged(Unjudged::Shared);
    for (steps, wanted) in [
        (vec![Wake(0, Cause::Own), Switch], vec![Differs]),
        // The last one is judged.
        (vec![Wake(0, Cause::Later), Wake(1, Cause::Own), Switch], vec![Differs, excused]),
        (
            vec![Wake(0, Cause::Later), Wake(1, Cause::Later), Wake(2, Cause::Own), Switch],
            vec![excused, Differs, excused],
        ),
        // No other decision followed.
        (vec![Wake(0, Cause::Later), Switch], vec![Differs]),
        (vec![Wake(0, Cause::Later), Wake(1, Cause::Later), Switch], vec![excused, Differs]),
        // The end of the slice, in a charge whose flag no record shows, may have set it.
        (vec![Wake(0, Cause::Later), Charge(1000), Switch], vec![Differs]),
        (vec![Wake(0, Cause::Later), Charge(3_000_000), Switch], vec![excused]),
        // A real-time task was woken.
        (vec![Wake(0, Cause::Other), Switch], vec![excused]),
    ] {
        let found = outcomes(&steps);
        assert_eq!(found, wanted);
    }
}

/// On which CPUs tasks are queued and run, and where they are in virtual time.
fn queues(model: &Model) -> String {
    let tasks = [RUNS, DELAYED, WAKEE].into_iter().filter_map(|pid| model.task(pid));
    let entities: Vec<_> = tasks.map(|id| model.fair().entity(id)).collect();
    let cpus = (0..2).map(CpuId);
    let running: Vec<_> = cpus.map(|cpu| (model.sched.curr(cpu), model.fair().rq(cpu).h_nr_running)).collect();
    let places = entities.iter().map(|se| (se.cpu, se.on_rq, se.sched_delayed, se.vruntime, se.deadline, se.vlag));
    format!("{running:?} {:?}", places.collect::<Vec<_>>())
}

/// A trace shows a procedure in one operation, or in several with those of other CPUs between them.
#[test]
fn a_procedure_in_parts_is_the_same_procedure() {
    let other = CpuId(1);
    let flag = Flag { before: false, before_full: false, after: None, cause: Cause::Own };
    let wakeup = Wakeup {
        cpu: other,
        pid: WAKEE,
        new: false,
        waking_at: 0,
        next_charge: 0,
        clock: None,
        first: Some(First::Unknown),
        flag,
    };
    let select = Operation::SetTaskCpu { pid: WAKEE, from: CPU, to: other, charged: 0 };
    let switch = |next| {
        let (prev_state, next_is_fair) = (PrevState::Asleep, next != 0);
        Operation::Switch(Switch { cpu: CPU, prev: RUNS, prev_state, next, next_is_fair })
    };
    let block = Operation::Block { cpu: CPU, special: false };
    let newidle = Operation::NewidleBalance { cpu: CPU };
    for version in ["5.2", "6.1", "6.6", "6.12.107", "7.2"] {
        let after = |queued: bool, operations: &[Operation]| {
            let mut model = model(KernelConfig::new(Version::find(version).unwrap(), 2, 250));
            add(&mut model, RUNS, Location::Running(CPU));
            if queued {
                add(&mut model, DELAYED, Location::Queued(CPU));
            }
            add(&mut model, WAKEE, Location::Asleep(CPU));
            charge(&mut model, RUNS, 1_000_000);
            operations.iter().for_each(|operation| apply(&mut model, *operation));
            queues(&model)
        };
        let wakeup = Operation::Wakeup(wakeup);
        let before = after(false, &[]);
        let woken = after(false, &[wakeup]);
        assert_eq!(after(false, &[select, wakeup]), woken, "{version}");
        let (idle, switched) = (after(false, &[switch(0)]), after(true, &[switch(DELAYED)]));
        assert_eq!(after(false, &[block, switch(0)]), idle, "{version}");
        assert_eq!(after(false, &[block, newidle, switch(0)]), idle, "{version}");
        assert_eq!(after(true, &[block, switch(DELAYED)]), switched, "{version}");
        assert!(woken != before && idle != before && switched != after(true, &[]), "{version}");
    }
}

/// `calc_group_shares` reads `tg->load_avg` without a lock: the weight that the operation's probe shows is that of the
/// sum which it read, and the next record finds the current one.
#[test]
fn a_weight_shows_which_sum_of_the_group_was_read() {
    let (address, shares, queued) = (0x77, 1 << 20, 1024);
    let others = [3000, 2500, 2000];
    let weight = |others: i64| (shares * queued / (others + queued)) as u64;
    for (shown, read) in [(weight(2000), 2000), (weight(3000), 3000), (weight(2500), 2500), (7, 2000)] {
        let mut model = model(KernelConfig::new(Version::find("6.12.0").unwrap(), 2, 250));
        add(&mut model, RUNS, Location::Running(CPU));
        let flag = Flag { before: false, before_full: false, after: None, cause: Cause::Own };
        apply(&mut model, Operation::MoveTask { cpu: CPU, pid: RUNS, to: Group::New, flag });
        let id = model.task(RUNS).unwrap();
        let group = model.fair().group_of(id);
        model.read_address(id, Address { at: address, is_root: false });
        let own = model.fair().group_rq(group, CPU).pelt.tg_load_avg_contrib as i64;
        for others in others {
            model.sched.follow().restore().group_sums(group, others + own, 0);
            model.update_tg_load((address, None), CPU, TgLoad::default());
        }
        let probe = QueueWeight { load: 0, weight: shown, waiting: Some(0), next: None };
        model.update_tg_load((address, None), CPU, TgLoad { own_weight: Some(probe), ..TgLoad::default() });
        assert_eq!(model.fair().group(group).load.load_avg - own, read, "weight {shown}");
        model.apply(&Input { time: 1, cpu: CPU, operation: Operation::UpdateRqClock { cpu: CPU, clock: 0 } });
        assert_eq!(model.fair().group(group).load.load_avg - own, 2000, "weight {shown}");
        // A probe shows the sums themselves, perhaps before any shows the group's address.
        let others = Some(OthersLoad { load: 1500, runnable: 700 });
        for (time, address, task) in [(2, address, None), (3, 0x78, Some(RUNS))] {
            model.groups.retain(|_, _| task.is_none());
            model.update_tg_load((address, task), CPU, TgLoad { others, ..TgLoad::default() });
            let load = &model.fair().group(group).load;
            assert_eq!((load.load_avg - own, load.runnable_avg), (1500, 700), "{task:?}");
            model.apply(&Input { time, cpu: CPU, operation: Operation::UpdateRqClock { cpu: CPU, clock: 0 } });
            let load = &model.fair().group(group).load;
            assert_eq!((load.load_avg - own, load.runnable_avg), (2000, 0), "{task:?}");
        }
    }
}

/// Where groups existed before the recording, an operation that shows only what it has read reports nothing.
#[test]
fn sums_that_were_read_are_not_reported() {
    let config = KernelConfig::new(Version::find("7.3").unwrap(), 2, 250);
    let topology = Arc::new(Machine::of(&Header::default(), config.nr_cpus).topology);
    let comments = vec!["cgroup /a weight 100".to_owned(), "task 1 policy 0 cgroup /a".to_owned()];
    let initial = Arc::new(InitialGroups::of(&Header { comments, ..Header::default() }));
    let mut model = Model::new(config, topology, Tally::default(), initial, true);
    add(&mut model, RUNS, Location::Running(CPU));
    let id = model.task(RUNS).unwrap();
    let (address, group) = (Address { at: 0x77, is_root: false }, model.fair().group_of(id));
    model.read_address(id, address);
    let clock = |model: &mut Model, clock| apply(model, Operation::UpdateRqClock { cpu: CPU, clock });
    let update = |model: &mut Model, load| {
        apply(model, Operation::UpdateTgLoad { cpu: CPU, group: address.at, task: None, load });
        model.fair().group_rq(group, CPU).pelt.last_update_tg_load_avg
    };
    clock(&mut model, 5_000_000);
    let reported = update(&mut model, TgLoad { contrib: Some(3), ..TgLoad::default() });
    assert_eq!(reported, 5_000_000);
    clock(&mut model, 9_000_000);
    let others = Some(OthersLoad { load: 1500, runnable: 700 });
    assert_eq!(update(&mut model, TgLoad { others, ..TgLoad::default() }), reported);
    assert_eq!(update(&mut model, TgLoad { load_avg: Some(7), ..TgLoad::default() }), 9_000_000);
}
