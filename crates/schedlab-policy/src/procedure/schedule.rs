//! `__schedule` (kernel/sched/core.c): which task a CPU runs next.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Driver, Effect, Leaving, Schedule, Scheduler, Timer};

/// `__schedule` on a CPU.
///
/// In order: the running task is dequeued if it leaves; the stopper's work, which has no task of its own here; the
/// classes' balance; the pick; where that finds nothing, newidle balancing and another pick, repeated while the pick
/// dequeues all that has been pulled; the switch; the slice's timer; balance callbacks.
#[inline(always)]
pub fn __schedule(driver: &mut impl Driver, cpu: CpuId, schedule: Schedule) {
    let decided = driver.sched().decided();
    let now = driver.clock_task(cpu);
    // The clock by which the running task is charged.
    let mut clock = driver.sched().schedule_clock(cpu, now, &schedule);
    if let Some(leaving) = schedule.leaving {
        try_to_block_task(driver, cpu, leaving, clock);
    }
    if schedule.migrate.is_some() || driver.sched().active_balance_pending(cpu) {
        clock = cpu_stopper(driver, cpu, schedule.migrate);
    }
    if driver.sched().is_mixed() {
        let now = driver.clock_task(cpu);
        let moves = driver.sched().balance(cpu, now);
        driver.balanced(&moves);
    }
    let queued = driver.sched().nr_running(cpu);
    let next = driver.sched().pick_next_task(cpu, clock);
    let balances = next.is_none() && driver.sched().wakelist(cpu).is_empty();
    if balances && (queued == 0 || driver.sched().newidle_repeats(cpu)) {
        return balance_and_pick(driver, cpu, decided);
    }
    context_switch(driver, cpu, decided, next);
    finish_task_switch(driver, cpu);
}

/// `try_to_block_task`: the running task is dequeued. Called by a driver, it is the beginning of a `__schedule` that
/// [`__schedule`] continues, without `leaving`.
#[inline(always)]
pub fn try_to_block_task(driver: &mut impl Driver, cpu: CpuId, leaving: Leaving, clock: Nanos) {
    let Some(curr) = driver.sched().executes(cpu) else { return };
    driver.sched().block(curr, leaving == Leaving::Exits, clock);
    if leaving == Leaving::Exits {
        driver.sched().task_dead(curr);
    }
}

/// The stopper's work on the CPU. It updates the clock, which is returned.
#[inline(always)]
fn cpu_stopper(driver: &mut impl Driver, cpu: CpuId, migrate: Option<(TaskId, CpuId)>) -> Nanos {
    if let Some((task, to)) = migrate {
        let now = driver.clock_task(cpu);
        let resched = driver.sched().move_queued_task(task, to, now);
        driver.effect(Effect::Migrate { task, from: cpu, to });
        driver.effect(Effect::Resched { cpu: to, resched });
    }
    let (clock, now) = (driver.clock(cpu), driver.clock_task(cpu));
    let moves = driver.sched().active_load_balance_cpu_stop(cpu, clock);
    driver.balanced(&moves);
    now
}

/// The rest of `__schedule` on a CPU, from the end of newidle balancing on. What has been woken meanwhile is there,
/// too.
#[inline]
pub fn schedule_after_newidle(driver: &mut impl Driver, cpu: CpuId) {
    let decided = driver.sched().decided();
    match pick_after_newidle(driver, cpu) {
        After::Switch(next) => {
            context_switch(driver, cpu, decided, next);
            finish_task_switch(driver, cpu);
        }
        After::Again => balance_and_pick(driver, cpu, decided),
    }
}

/// What follows a pick after newidle balancing.
enum After {
    /// The switch to this task, or to the idle task.
    Switch(Option<TaskId>),
    /// Another round.
    Again,
}

/// The part `idle:` of `pick_next_task_fair` (`pick_task_fair` from 7.2 on) and the switch. If what has been pulled, or
/// queued meanwhile, leaves the queue in the pick, because its dequeue is delayed or its group has used up its quota,
/// the CPU balances again.
fn balance_and_pick(driver: &mut impl Driver, cpu: CpuId, decided: usize) {
    loop {
        let now = driver.clock(cpu);
        let moves = driver.sched().sched_balance_newidle(cpu, now);
        driver.balanced(&moves);
        if driver.newidle_takes_time(cpu) {
            return;
        }
        if let After::Switch(next) = pick_after_newidle(driver, cpu) {
            context_switch(driver, cpu, decided, next);
            return finish_task_switch(driver, cpu);
        }
    }
}

/// A pick of what newidle balancing has pulled, or of anything queued meanwhile.
#[inline(always)]
fn pick_after_newidle(driver: &mut impl Driver, cpu: CpuId) -> After {
    let now = driver.clock_task(cpu);
    let queued = driver.sched().nr_running(cpu);
    if queued == 0 {
        return After::Switch(None);
    }
    let next = driver.sched().pick_next_task(cpu, now);
    let again = next.is_none() && driver.sched().nr_running(cpu) < queued && driver.sched().newidle_repeats(cpu);
    if again {
        After::Again
    } else {
        After::Switch(next)
    }
}

#[inline(always)]
fn context_switch(driver: &mut impl Driver, cpu: CpuId, decided: usize, next: Option<TaskId>) {
    if driver.sched().is_recording() {
        let now = driver.clock_task(cpu);
        driver.sched().date_decisions(decided, now);
    }
    let prev = driver.sched().set_on_cpu(cpu, next);
    if prev == next {
        return driver.effect(Effect::Repicked { next });
    }
    if next.is_none() {
        let now = driver.clock_task(cpu);
        driver.sched().idle_enter(cpu, now);
    }
    driver.effect(Effect::Switch { prev, next });
}

/// After the switch: the slice's timer, balance callbacks.
#[inline(always)]
fn finish_task_switch(driver: &mut impl Driver, cpu: CpuId) {
    if let Some(hrtick) = driver.sched().hrtick_start(cpu) {
        driver.effect(Effect::Program(Timer::Hrtick { cpu, hrtick, update: false }));
    }
    if driver.sched().is_mixed() {
        let now = driver.clock_task(cpu);
        let moves = driver.sched().balance_callback(cpu, now);
        driver.balanced(&moves);
        let timer = driver.sched().next_timer();
        driver.effect(Effect::Program(Timer::Classes(timer)));
    }
}
