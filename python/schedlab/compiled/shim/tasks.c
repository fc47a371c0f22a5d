// SPDX-License-Identifier: GPL-2.0-only
/* Tasks: what fork of the kernel does around sched_fork. A task has no stack and no memory of its own. */
#include "sl.h"
#include <linux/sched/task.h>
#include <linux/mm_types.h>

static struct mm_struct mm;
extern struct signal_struct init_signals;

static struct task_struct *copy(const struct task_struct *parent, int pid)
{
	struct sl_task *extra;
	struct task_struct *p = host_alloc(ALIGN(sizeof(*p), 64) + sizeof(*extra));

	memcpy(p, parent, sizeof(*p));
	extra = sl_of(p);
	memset(extra, 0, sizeof(*extra));
	extra->p = p;
	extra->pid = pid;
	p->pid = p->tgid = pid;
	p->group_leader = p;
	p->real_parent = p->parent = &init_task;
	clear_tsk_need_resched(p);
#ifdef TIF_NEED_RESCHED_LAZY
	clear_tsk_thread_flag(p, TIF_NEED_RESCHED_LAZY);
#endif
	clear_tsk_thread_flag(p, TIF_POLLING_NRFLAG);
	refcount_set(&p->usage, 2);
	refcount_set(&p->rcu_users, 2);
	raw_spin_lock_init(&p->pi_lock);
#ifdef CONFIG_RT_MUTEXES
	p->pi_waiters = RB_ROOT_CACHED;
	p->pi_top_task = NULL;
	p->pi_blocked_on = NULL;
#endif
	p->wake_q.next = NULL;
	p->on_cpu = 0;
	p->on_rq = 0;
	p->nvcsw = p->nivcsw = 0;
	INIT_LIST_HEAD(&p->thread_node);
	INIT_LIST_HEAD(&p->cg_list);
	INIT_LIST_HEAD(&p->tasks);
	INIT_LIST_HEAD(&p->children);
	INIT_LIST_HEAD(&p->sibling);
	p->cpus_ptr = &p->cpus_mask;
	p->user_cpus_ptr = NULL;
	return p;
}

struct sl_task *sl_of(struct task_struct *p)
{
	return (void *)p + ALIGN(sizeof(*p), 64);
}

static void sched_part_of_fork(struct task_struct *parent, struct task_struct *p)
{
	struct kernel_clone_args args = { .cset = rcu_dereference_raw(p->cgroups) };

	/* A shell that is not simulated forks the first tasks: it is `current` for as long as that takes. */
	struct task_struct *before = current;

	sl_set_current(parent);
	if (sched_fork(0, p))
		host_fail("load: the kernel refuses to fork task %d", p->pid);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	sched_cgroup_fork(p, &args);
	sched_post_fork(p);
#else
	sched_post_fork(p, &args);
#endif
	sl_set_current(before);
}

/* A task of the load. Without `attr` it inherits everything, as a child of the running task. */
struct task_struct *sl_new_task(struct task_struct *parent, int pid, const struct sl_attr *attr, int cpu)
{
	struct task_struct *shell = NULL, *p;

	sl_set_cpu(cpu);
	if (attr) {
		struct sched_attr set = {
			.size = sizeof(set),
			.sched_policy = attr->policy,
			.sched_nice = attr->nice,
			.sched_priority = attr->rt_priority,
			.sched_runtime = attr->slice,
		};

		parent = shell = copy(&init_task, 0);
		shell->flags &= ~(PF_KTHREAD | PF_IDLE | PF_NO_SETAFFINITY);
		shell->mm = shell->active_mm = &mm;
		atomic_set(&mm.mm_count, 1 << 30);
		atomic_set(&mm.mm_users, 1 << 30);
		shell->sched_class = &fair_sched_class;
		shell->static_prio = shell->normal_prio = shell->prio = DEFAULT_PRIO;
		shell->policy = SCHED_NORMAL;
		rcu_assign_pointer(shell->cgroups, sl_css_set(attr->group));
		shell->sched_task_group = container_of(sl_css_set(attr->group)->subsys[cpu_cgrp_id], struct task_group, css);
		task_thread_info(shell)->cpu = cpu;
		cpumask_copy(&shell->cpus_mask, attr->cpus ?: cpu_possible_mask);
		shell->nr_cpus_allowed = cpumask_weight(&shell->cpus_mask);
		if (sched_setattr_nocheck(shell, &set))
			host_fail("load: the kernel refuses the attributes of task %d", pid);
	}
	p = copy(parent, pid);
	snprintf(p->comm, sizeof(p->comm), "t%d", pid);
	sched_part_of_fork(parent, p);
	if (shell)
		host_free(shell);
	wake_up_new_task(p);
	return p;
}

struct task_struct *sl_new_kthread(const char *name, int cpu)
{
	struct task_struct *p = copy(&init_task, 0);

	sl_set_cpu(cpu);
	p->flags |= PF_KTHREAD | PF_NO_SETAFFINITY;
	p->flags &= ~PF_IDLE;
	snprintf(p->comm, sizeof(p->comm), "%s/%d", name, cpu);
	p->sched_class = &fair_sched_class;
	p->prio = p->normal_prio = p->static_prio = DEFAULT_PRIO;
	sched_part_of_fork(&init_task, p);
	cpumask_copy(&p->cpus_mask, cpumask_of(cpu));
	p->nr_cpus_allowed = 1;
	WRITE_ONCE(p->__state, TASK_INTERRUPTIBLE);
	return p;
}

void sl_setup_idle_tasks(void)
{
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		struct task_struct *idle = cpu ? copy(&init_task, 0) : &init_task;

		sl_set_cpu(cpu);
		if (cpu) {
			idle->flags |= PF_IDLE;
			init_idle(idle, cpu);
		}
		idle->flags |= PF_IDLE;
		sl_set_current(idle);
	}
	sl_set_cpu(0);
}

/* The last reference to a dead task: its memory is free once no CPU looks at it. */
static void free_task_rcu(struct rcu_head *head)
{
	host_free(container_of(head, struct task_struct, rcu));
}

void put_task_struct_rcu_user(struct task_struct *p)
{
	if (refcount_dec_and_test(&p->rcu_users))
		call_rcu(&p->rcu, free_task_rcu);
}
void __put_task_struct(struct task_struct *p) { }
void put_task_stack(struct task_struct *p) { }
void __mmdrop(struct mm_struct *m) { }
void switch_mm_irqs_off(struct mm_struct *prev, struct mm_struct *next, struct task_struct *p) { }
void enter_lazy_tlb(struct mm_struct *m, struct task_struct *p) { }
bool set_kthread_struct(struct task_struct *p) { return true; }
bool kthread_is_per_cpu(struct task_struct *p) { return p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1; }

/* There are no stacks: the caller, schedule(), returns to the driver as the next task. */
struct task_struct *__switch_to_asm(struct task_struct *prev, struct task_struct *next)
{
	sl_set_current(next);
	return prev;
}
