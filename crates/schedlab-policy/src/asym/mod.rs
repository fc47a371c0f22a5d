//! CPUs of different capacity (`sched_asym_cpucap_active`): whether a task fits a CPU, where it wakes, which task is
//! too big for the CPU that it runs on, and the energy that a placement costs.
//!
//! kernel/sched/fair.c of 6.1.192, 6.12.117 and 7.2.13, without uclamp (CONFIG_UCLAMP_TASK off), thermal pressure and
//! asymmetric SMT. Every CPU runs at its highest frequency: the energy model decides where tasks are placed, as with
//! the schedutil governor, but the lower frequencies that it assumes do not slow execution. On machines with equal CPUs
//! each check costs one branch.

mod effective_cpu_util;
mod find_energy_efficient_cpu;
mod fits;
mod misfit;
mod select_idle_capacity;
