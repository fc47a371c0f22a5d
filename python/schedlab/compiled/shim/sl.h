/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the shim share. Functions named host_* are in host.c, which is the only file that uses libc. */
#ifndef SL_H
#define SL_H
#include <linux/sched.h>
#include <linux/mmu_context.h>
#include <linux/version.h>
#include <linux/sched/clock.h>
#include <linux/sched/hotplug.h>
#include <uapi/linux/sched/types.h>
#include "sched.h" /* kernel/sched/sched.h */

/* Declared where a file of the shim can't include it. */
void sched_ttwu_pending(void *arg);

#define SL_MAX_CPUS NR_CPUS
#define SL_UPTIME 300000000000ULL

/* host.c */
void *host_alloc(unsigned long size);
void host_free(void *memory);
void host_fail(const char *format, ...) __attribute__((format(printf, 1, 2))) __attribute__((noreturn));
void host_set_gs(unsigned long base);
void host_record(u64 time, u32 kind, u32 cpu, u32 a, u32 b);
const char *host_line(void);

/* clock.c */
extern u64 sl_now; /* ns since the start of the run */
extern u64 sl_tick_nsec;
extern int sl_booted;
void sl_set_time(u64 now);
void sl_set_cpu(int cpu);
int sl_this_cpu(void);
void sl_number_cpus(void);
void sl_set_current(struct task_struct *task);

/* locks.c */
void sl_run_rcu(void);

/* topology.c */
extern int sl_nr_cpus;
void sl_read_cpu(int cpu, int core, int llc, int node);
void sl_read_distance(int from, int to, int distance);
void sl_setup_cpus(void);
void sl_check_domains(void);

/* memory.c */
void sl_setup_percpu(void);

/* timers.c */
void sl_setup_timers(void);
void sl_run_hrtimer(void *timer);

/* interrupts.c */
void sl_run_softirqs(int cpu);
bool sl_flush_calls(int cpu);
bool sl_run_stopper(int cpu);
void sl_setup_stoppers(void);
bool sl_is_stopper(struct task_struct *task);

/* groups.c */
int sl_add_group(int parent, u64 weight, u64 quota_us, u64 period_us);
struct css_set *sl_css_set(int group);
void sl_setup_groups(void);

/* tasks.c */
struct sl_attr {
	int nice, policy, rt_priority, group, cpu;
	u64 slice;
	const struct cpumask *cpus;
};
struct task_struct *sl_new_task(struct task_struct *parent, int pid, const struct sl_attr *attr, int cpu);
struct task_struct *sl_new_kthread(const char *name, int cpu);
void sl_setup_idle_tasks(void);
struct sl_task *sl_of(struct task_struct *task);

/* boot.c */
void sl_boot(void);
void sl_set_feature(const char *name, int value);

/* driver.c: what the kernel asks the driver to do later */
void sl_send_resched(int cpu);
void sl_send_call(int cpu);
u64 sl_arm_timer(int cpu, u64 due, void *timer);
void sl_cancel_timer(u64 handle);

/* A task of the driver; allocated behind its task_struct. */
struct sl_task {
	struct task_struct *p;
	int pid;
	int program, pc;
	u64 left;
	int group;
	bool dead, started;
};
#endif
