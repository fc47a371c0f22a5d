//! HRTICK: a timer at the end of the running task's slice, or of a deadline task's runtime.

use schedlab_model::CpuId;
use schedlab_policy::fair::Hrtick;
use schedlab_trace::Sink;

use super::clock_event::{expires_next, hrtimer_reprogram};
use super::entry::irqentry_exit;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::{Activity, Machine};
use crate::run::{Run, Source};

/// Programs the timer; true: the slice is over already. After a pick that changes nothing: the resched flag that the
/// kernel sets then is cleared with all others at the end of the pick.
///
/// From 7.1 on (HRTIMER_MODE_LAZY_REARM, of the same series as `hrtick_stays`) the clock event device is not programmed
/// if the timer moves to a later time or is cancelled. The interrupt that then comes at the old time, without effect,
/// is left out.
pub fn program_hrtick<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    cpu: CpuId,
    timer: Hrtick,
) -> bool {
    let before = expires_next(run, machine, kernel, cpu);
    let over = start_hrtick(run, kernel, cpu, timer);
    let lazy = kernel.sched.fair.config.rules.hrtick_stays;
    if !lazy || expires_next(run, machine, kernel, cpu) < before {
        hrtimer_reprogram(run, machine, kernel, cpu, before);
    }
    over
}

/// The same in the timer's own interrupt, whose end programs the clock event device.
fn start_hrtick<S: Sink>(run: &mut Run<S>, kernel: &mut Kernel, cpu: CpuId, timer: Hrtick) -> bool {
    let stays = kernel.sched.fair.config.rules.hrtick_stays;
    match timer {
        // 7.x arms nothing for a single task and cancels only when idle: an old timer may still fire.
        Hrtick::Off if stays && kernel.cpus[cpu.index()].curr.is_some() => {}
        Hrtick::Off => {
            run.cancel(kernel.id, Source::HrTick, cpu);
            kernel.sched.fair.set_hrtick_active(cpu, false);
        }
        Hrtick::Now => return true,
        Hrtick::After(left) => {
            run.set_event(kernel.id, Source::HrTick, cpu, run.now + left);
            kernel.sched.fair.set_hrtick_active(cpu, true);
        }
    }
    false
}

/// `hrtick`: the slice has ended.
pub fn on_hrtick<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let c = &mut machine.cpus[cpu.index()];
    if c.activity == Activity::Busy {
        c.progress(run.now);
        machine.charge_irq(cpu);
        kernel.note(run, cpu, "ht", |_| String::new());
        kernel.sched.fair.set_hrtick_active(cpu, false);
        let now = kernel.clock_task(cpu, run.now);
        let resched = match kernel.sched.hrtick(cpu, now) {
            Some((resched, timer)) => {
                start_hrtick(run, kernel, cpu, timer);
                resched
            }
            None => kernel.sched.fair.hrtick_expired(cpu, now),
        };
        resched_curr(run, machine, kernel, cpu, resched, cpu);
        machine.exit_to_program(cpu);
        irqentry_exit(run, machine, kernel, cpu);
    }
}
