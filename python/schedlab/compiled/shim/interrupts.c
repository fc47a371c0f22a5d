// SPDX-License-Identifier: GPL-2.0-only
/* What one CPU requests from itself or another: softirqs, inter-processor calls, and work of the stopper. */
#include "sl.h"
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>

/* Softirqs: those of the scheduler's. */
static void (*actions[NR_SOFTIRQS])(struct softirq_action *);
static unsigned long raised[NR_CPUS];

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
void open_softirq(int nr, void (*action)(void)) { actions[nr] = (void *)action; }
#else
void open_softirq(int nr, void (*action)(struct softirq_action *)) { actions[nr] = action; }
#endif
void __raise_softirq_irqoff(unsigned int nr) { raised[sl_this_cpu()] |= 1UL << nr; }
void raise_softirq(unsigned int nr) { raised[sl_this_cpu()] |= 1UL << nr; }
void raise_softirq_irqoff(unsigned int nr) { raised[sl_this_cpu()] |= 1UL << nr; }

void sl_run_softirqs(int cpu)
{
	while (raised[cpu]) {
		int nr = __ffs(raised[cpu]);

		raised[cpu] &= ~(1UL << nr);
		if (actions[nr])
			actions[nr](NULL);
	}
}

/* The queue of calls of each CPU (call_single_queue of kernel/smp.c). */
static struct llist_head calls[NR_CPUS];

void __smp_call_single_queue(int cpu, struct llist_node *node)
{
	if (llist_add(node, &calls[cpu]))
		sl_send_call(cpu);
}

int smp_call_function_single_async(int cpu, call_single_data_t *csd)
{
	if (csd->node.u_flags & CSD_FLAG_LOCK)
		return -EBUSY;
	csd->node.u_flags = CSD_FLAG_LOCK;
	if (cpu == sl_this_cpu()) {
		csd->node.u_flags = 0;
		csd->func(csd->info);
		return 0;
	}
	__smp_call_single_queue(cpu, &csd->node.llist);
	return 0;
}

/* __flush_smp_call_function_queue: functions first, then all wakeups at once. Whether there was anything. */
bool sl_flush_calls(int cpu)
{
	struct llist_node *entry = llist_reverse_order(llist_del_all(&calls[cpu]));
	struct llist_node *wakeups = NULL, **last = &wakeups, *next;
	bool any = entry;

	for (; entry; entry = next) {
		call_single_data_t *csd = llist_entry(entry, call_single_data_t, node.llist);

		next = entry->next;
		switch (csd->node.u_flags & CSD_FLAG_TYPE_MASK) {
		case CSD_TYPE_TTWU:
			*last = entry;
			last = &entry->next;
			break;
		case CSD_TYPE_IRQ_WORK:
			irq_work_single(csd);
			break;
		default:
			csd->node.u_flags = 0;
			csd->func(csd->info);
		}
	}
	*last = NULL;
	if (wakeups)
		sched_ttwu_pending(wakeups);
	return any;
}

void flush_smp_call_function_queue(void)
{
	sl_flush_calls(sl_this_cpu());
}

bool irq_work_queue_on(struct irq_work *work, int cpu)
{
	if (atomic_read(&work->node.a_flags) & IRQ_WORK_PENDING)
		return false;
	atomic_set(&work->node.a_flags, CSD_TYPE_IRQ_WORK | IRQ_WORK_PENDING);
	__smp_call_single_queue(cpu, &work->node.llist);
	return true;
}

void irq_work_single(void *argument)
{
	struct irq_work *work = argument;

	atomic_set(&work->node.a_flags, CSD_TYPE_IRQ_WORK);
	work->func(work);
}

bool irq_work_queue(struct irq_work *work)
{
	return irq_work_queue_on(work, sl_this_cpu());
}

static void send_resched(int cpu)
{
	sl_send_resched(cpu);
}

struct smp_ops smp_ops = { .smp_send_reschedule = send_resched };

/* The stopper: a task of the stop class per CPU, which executes its work as soon as it runs. */
static DEFINE_PER_CPU(struct task_struct *, stopper);
static struct list_head works[NR_CPUS];

bool stop_one_cpu_nowait(unsigned int cpu, cpu_stop_fn_t fn, void *arg, struct cpu_stop_work *work)
{
	*work = (struct cpu_stop_work){ .fn = fn, .arg = arg };
	list_add_tail(&work->list, &works[cpu]);
	wake_up_process(per_cpu(stopper, cpu));
	return true;
}

static int no_work(void *data)
{
	return 0;
}

/* The stopper is the current task of the CPU. */
bool sl_run_stopper(int cpu)
{
	struct cpu_stop_work *work = list_first_entry_or_null(&works[cpu], struct cpu_stop_work, list);

	if (!work)
		return false;
	list_del_init(&work->list);
	work->fn(work->arg);
	return true;
}

bool sl_is_stopper(struct task_struct *task)
{
	return task == per_cpu(stopper, task_cpu(task));
}

/*
 * Each stopper runs once, as at boot: a CPU that has never run anything has no time at which it became idle
 * (rq->idle_stamp), and forks would not consider it.
 */
void sl_setup_stoppers(void)
{
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		static struct cpu_stop_work first;

		INIT_LIST_HEAD(&works[cpu]);
		per_cpu(stopper, cpu) = sl_new_kthread("migration", cpu);
		sched_set_stop_task(cpu, per_cpu(stopper, cpu));
		sl_set_cpu(cpu);
		stop_one_cpu_nowait(cpu, no_work, NULL, &first);
		preempt_count_set(PREEMPT_DISABLE_OFFSET);
		schedule_idle();
		if (cpu_curr(cpu) != per_cpu(stopper, cpu))
			host_fail("check stopper: that of CPU %d does not run", cpu);
		while (sl_run_stopper(cpu))
			;
		WRITE_ONCE(per_cpu(stopper, cpu)->__state, TASK_INTERRUPTIBLE);
		preempt_count_set(0);
		schedule();
	}
	sl_set_cpu(0);
}
