// SPDX-License-Identifier: GPL-2.0-only
/* Virtual time, and the CPU and the task that the kernel's code takes for its own. */
#include "sl.h"
#include <linux/clocksource.h>
#include <linux/random.h>
#include <linux/jiffies.h>

u64 sl_now, sl_tick_nsec = TICK_NSEC;
int sl_booted;
static int this_cpu;
unsigned long volatile __cacheline_aligned_in_smp jiffies = INITIAL_JIFFIES;
unsigned long sl_irqs_on;

/* What asm/current.h and asm/preempt.h read by %gs. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
DEFINE_PER_CPU_ALIGNED(struct pcpu_hot, pcpu_hot) = { .current_task = &init_task, .preempt_count = INIT_PREEMPT_COUNT };
#define SL_CURRENT pcpu_hot.current_task
#define SL_CPU_NUMBER pcpu_hot.cpu_number
#else
DEFINE_PER_CPU(struct task_struct *, current_task) ____cacheline_aligned = &init_task;
DEFINE_PER_CPU(int, __preempt_count) = INIT_PREEMPT_COUNT;
#define SL_CURRENT current_task
#define SL_CPU_NUMBER cpu_number
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
DEFINE_PER_CPU_CACHE_HOT(int, cpu_number);
#else
DEFINE_PER_CPU_READ_MOSTLY(int, cpu_number);
#endif
#endif

void sl_number_cpus(void)
{
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++)
		per_cpu(SL_CPU_NUMBER, cpu) = cpu;
}

static u64 uptime(void)
{
	return sl_booted ? SL_UPTIME + sl_now : sl_now;
}

void sl_set_time(u64 now)
{
	sl_now = now;
	jiffies = INITIAL_JIFFIES + uptime() / TICK_NSEC;
}

/* Not inlined, so that no per-CPU access of the caller moves across it. */
noinline void sl_set_cpu(int cpu)
{
	barrier();
	this_cpu = cpu;
	host_set_gs(__per_cpu_offset[cpu]);
	barrier();
}

int sl_this_cpu(void)
{
	return this_cpu;
}

noinline void sl_set_current(struct task_struct *task)
{
	barrier();
	this_cpu_write(SL_CURRENT, task);
	barrier();
}

/* The kernel's own sched_clock, which is weak, counts jiffies. */
u64 notrace sched_clock(void) { return uptime(); }
u64 notrace sched_clock_noinstr(void) { return uptime(); }
ktime_t ktime_get(void) { return uptime(); }
ktime_t ktime_get_with_offset(enum tk_offsets offset) { return uptime(); }
u64 ktime_get_mono_fast_ns(void) { return uptime(); }
unsigned int jiffies_to_msecs(const unsigned long j) { return j * (MSEC_PER_SEC / HZ); }
unsigned long __msecs_to_jiffies(const unsigned int m) { return DIV_ROUND_UP(m * HZ, MSEC_PER_SEC); }
