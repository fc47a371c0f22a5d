//! A kernel: its scheduler, per-CPU state, tasks, groups and timers, on a machine that executes and prices what it does.
//!
//! Functions follow the kernel's of the same name. Each gets the parts of a run that it works on.

mod admission;
mod balance;
mod bandwidth;
mod cgroup;
mod clock;
mod contention;
mod context_switch;
mod cpuset;
mod cpusets;
mod effects;
mod entry;
mod exec;
mod exit;
mod fork;
mod hrtick;
mod hrtimer;
mod idle;
mod in_flight;
mod interrupts;
mod lines;
mod newidle;
mod non_preemptible;
mod percpu;
mod points;
mod rate;
mod resched;
mod rseq;
mod schedule;
mod sections;
mod segment;
mod speed;
mod spinlocks;
mod state;
mod syscalls;
mod task;
mod tick;
mod tick_sched;
mod timers;
mod tlb;
mod tlb_flush;
mod trace;
mod wake;
mod warmth;

pub use admission::refused;
pub use bandwidth::{arm_bandwidth, on_bandwidth, resume_user_mode_work};
pub use contention::{lock_tasklist, lock_waited};
pub use cpuset::{arm_cpusets, attach_current, on_cpuset};
pub use entry::{irqentry_exit, irqs_disabled, local_irq_disable, local_irq_enable};
pub use exec::{begin_new_exec, sched_exec};
pub use exit::{cpu_time, do_exit, mm_release, user_time};
pub use fork::{kernel_clone, start_task, Child, Start};
pub use hrtick::on_hrtick;
pub use hrtimer::{cancel_timer, start_device, start_timer};
pub use idle::{on_poll_limit, wake_idle_cpu};
pub use interrupts::{on_call_ipi, on_hrtimer, on_idle_exit, on_resched_ipi, rseq_slice_expired};
pub use non_preemptible::{call_begins, section_begins};
pub use percpu::{Leaving, WakesVcpus};
pub use rate::{begin_stream, end_stream};
pub use resched::resched_curr;
pub use rseq::{rseq_grant_slice_extension, rseq_syscall_enter_work};
pub use schedule::{begin_block, end_newidle, schedule};
pub use segment::{mark, poll_lock, segment_end, settle, spinners_look};
pub use speed::{hold_interrupt, set_speed};
pub use spinlocks::Spinlocks;
pub use state::{Kernel, Placements};
pub use syscalls::{
    change_attribute, dl_policy, do_sched_yield, fair_policy, prio, rt_policy, set_affinity, Attribute,
};
pub use task::{Handle, Life, Task, Wait};
pub use tick::on_tick;
pub use timers::on_class_timer;
pub use tlb::{csd_lock_wait, flush_tlb_mm_range, on_flush_ipi};
pub use tlb_flush::PvCalls;
pub use wake::{on_wakeup, try_to_wake_up, wake_on_current_cpu};
