// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes a load: at each instant every event that is due, then one schedule() for each CPU that has to, lowest CPU
 * first, until neither is left. Only the switches, wakeups and migrations that the kernel decides are recorded.
 */
#include "load.h"
#include "events.h"
#include <linux/hrtimer.h>
#include <linux/sched/nohz.h>
#include <linux/tick.h>

enum { REC_SWITCH = 1, REC_WAKEUP, REC_WAKEUP_NEW, REC_MIGRATE };
enum leaving { STAYS, SLEEPS, EXITS, YIELDS };

struct sl_cpu {
	bool idle, marked, tick_stopped, idle_tick;
	enum leaving leaving;
	u64 since;       /* when the current segment began */
	u64 next_tick, busy;
	struct sl_event due[64]; /* timers that have fired while the CPU was idle */
	int nr_due;
};

static struct sl_cpu cpus[NR_CPUS];
static int marked[NR_CPUS], nr_marked;
static int last_pid;
static struct { int count; struct sl_task *waiter; } *words;

static void mark(int cpu)
{
	if (!cpus[cpu].marked) {
		cpus[cpu].marked = true;
		marked[nr_marked++] = cpu;
	}
}

static bool is_load(struct task_struct *p)
{
	return p->pid != 0;
}

/* What the kernel asks for. */
void sl_send_resched(int cpu)
{
	if (!sl_booted)
		return;
	if (cpus[cpu].idle)
		sl_set_event(sl_now, SL_IDLE_EXIT, SL_SRC_EXIT, cpu);
	else
		sl_set_event(sl_now, SL_IPI, SL_SRC_RESCHED, cpu);
}

void sl_send_call(int cpu)
{
	if (cpus[cpu].idle)
		sl_set_event(sl_now, SL_IDLE_EXIT, SL_SRC_EXIT, cpu);
	else
		sl_set_event(sl_now, SL_IPI, SL_SRC_CALL, cpu);
}

u64 sl_arm_timer(int cpu, u64 due, void *timer)
{
	return sl_push(due, SL_TIMER, SL_SRC_HRTIMER, cpu, timer);
}

void sl_cancel_timer(u64 handle)
{
	sl_cancel(handle);
}

bool tick_nohz_tick_stopped(void) { return cpus[sl_this_cpu()].tick_stopped; }

/* The end of an interrupt: softirqs, then a reschedule if one is requested. */
static void end_interrupt(int cpu)
{
	sl_run_softirqs(cpu);
	if (test_tsk_need_resched(cpu_curr(cpu)))
		mark(cpu);
}

static void start_tick(int cpu)
{
	struct sl_cpu *c = &cpus[cpu];

	if (sl_now >= c->next_tick)
		c->next_tick = (sl_now / sl_tick_nsec + 1) * sl_tick_nsec;
	sl_set_event(c->next_tick, SL_TICK, SL_SRC_TICK, cpu);
}

static void on_tick(int cpu)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	sched_tick();
#else
	scheduler_tick();
#endif
	start_tick(cpu);
	end_interrupt(cpu);
}

/* A sleep is over, or a timer of the kernel's is due. */
static void run_timer(struct sl_event *event)
{
	if (event->source == SL_SRC_HRTIMER)
		sl_run_hrtimer(event->data);
	else
		wake_up_process(((struct sl_task *)event->data)->p);
}

static void on_timer(struct sl_event *event)
{
	struct sl_cpu *c = &cpus[event->cpu];

	if (c->idle) {
		if (c->nr_due == ARRAY_SIZE(c->due))
			host_fail("too many timers at once");
		c->due[c->nr_due++] = *event;
		sl_set_event(sl_now, SL_IDLE_EXIT, SL_SRC_EXIT, event->cpu);
		return;
	}
	run_timer(event);
	end_interrupt(event->cpu);
}

/* An interrupt has reached an idle CPU. */
static void on_idle_exit(int cpu)
{
	struct sl_cpu *c = &cpus[cpu];

	if (!c->idle)
		return;
	sl_flush_calls(cpu);
	for (int i = 0; i < c->nr_due; i++)
		run_timer(&c->due[i]);
	c->nr_due = 0;
	sl_run_softirqs(cpu);
	if (test_tsk_need_resched(cpu_curr(cpu)))
		mark(cpu);
}

static void start_child(int cpu, struct sl_task *parent, int program)
{
	struct task_struct *p = sl_new_task(parent->p, ++last_pid, NULL, cpu);

	sl_of(p)->program = program;
}

static void post(u64 word)
{
	struct sl_task *waiter = words[word].waiter;

	words[word].count++;
	words[word].waiter = NULL;
	if (waiter)
		wake_up_process(waiter->p);
}

static void leave(int cpu, enum leaving leaving)
{
	cpus[cpu].leaving = leaving;
	mark(cpu);
}

/* Timer slack of a sleep; every other task has the smallest that a scenario can set. */
static u64 slack(struct task_struct *p)
{
	return p->policy == SCHED_FIFO || p->policy == SCHED_RR || p->policy == SCHED_DEADLINE ? 0 : 1;
}

/* Executes the program of the current task up to its next step that takes time. */
static void advance(int cpu)
{
	struct sl_task *task = sl_of(cpu_curr(cpu));
	struct sl_cpu *c = &cpus[cpu];

	for (;;) {
		struct sl_step *step = &sl_programs[task->program].steps[task->pc];

		switch (step->op) {
		case OP_RUN:
			task->pc++;
			task->left = step->value;
			c->since = sl_now;
			sl_set_event(sl_now + task->left, SL_SEGMENT, SL_SRC_SEGMENT, cpu);
			return;
		case OP_SLEEP:
			task->pc++;
			sl_push(sl_now + step->value + slack(task->p), SL_TIMER, SL_SRC_SLEEP, cpu, task);
			return leave(cpu, SLEEPS);
		case OP_POST:
			task->pc++;
			post(step->value);
			if (test_tsk_need_resched(task->p))
				return mark(cpu);
			break;
		case OP_WAIT:
			if (words[step->value].count) {
				words[step->value].count--;
				task->pc++;
				break;
			}
			words[step->value].waiter = task;
			return leave(cpu, SLEEPS);
		case OP_YIELD:
			task->pc++;
			return leave(cpu, YIELDS);
		case OP_FORK:
			task->pc++;
			start_child(cpu, task, step->value);
			if (test_tsk_need_resched(task->p))
				return mark(cpu);
			break;
		case OP_NICE:
			task->pc++;
			set_user_nice(task->p, (int)step->value - 20);
			if (test_tsk_need_resched(task->p))
				return mark(cpu);
			break;
		case OP_AGAIN:
			task->pc = step->value;
			break;
		case OP_EXIT:
			return leave(cpu, EXITS);
		default:
			host_fail("input: no step is called %c", step->op);
		}
	}
}

static void on_segment(int cpu)
{
	struct sl_task *task = sl_of(cpu_curr(cpu));

	cpus[cpu].busy += sl_now - cpus[cpu].since;
	cpus[cpu].since = sl_now;
	task->left = 0;
	/* An interrupt of this instant has come before: it returns to schedule(), not to the task. */
	if (test_tsk_need_resched(task->p))
		return mark(cpu);
	advance(cpu);
}

static void become_idle(int cpu)
{
	struct sl_cpu *c = &cpus[cpu];

	c->idle = true;
	sl_cancel_event(SL_SRC_TICK, cpu);
	c->tick_stopped = true;
	nohz_balance_enter_idle(cpu);
}

static void switch_in(int cpu, bool from_idle)
{
	struct sl_cpu *c = &cpus[cpu];
	struct sl_task *task = sl_of(cpu_curr(cpu));

	if (from_idle) {
		c->idle = false;
		c->tick_stopped = false;
		start_tick(cpu);
	}
	c->since = sl_now;
	sl_set_event(sl_now + task->left, SL_SEGMENT, SL_SRC_SEGMENT, cpu);
}

/* The stopper executes its work at once and leaves; it may find more. */
static void run_stoppers(int cpu)
{
	while (sl_is_stopper(cpu_curr(cpu))) {
		struct task_struct *stopper = cpu_curr(cpu);

		while (sl_run_stopper(cpu))
			;
		sl_run_softirqs(cpu);
		WRITE_ONCE(stopper->__state, TASK_INTERRUPTIBLE);
		preempt_count_set(0);
		schedule();
	}
}

static void call_schedule(int cpu)
{
	struct sl_cpu *c = &cpus[cpu];
	enum leaving leaving = c->leaving;

	c->leaving = STAYS;
	/* As deep as schedule() and the idle loop expect. */
	preempt_count_set(c->idle ? PREEMPT_DISABLE_OFFSET : 0);
	if (c->idle) {
		sl_flush_calls(cpu);
		return schedule_idle();
	}
	switch (leaving) {
	case SLEEPS:
		WRITE_ONCE(cpu_curr(cpu)->__state, TASK_INTERRUPTIBLE);
		return schedule();
	case EXITS:
		sl_of(cpu_curr(cpu))->dead = true;
		WRITE_ONCE(cpu_curr(cpu)->__state, TASK_DEAD);
		cpu_curr(cpu)->flags |= PF_NOFREEZE;
		return schedule();
	case YIELDS:
		return yield();
	case STAYS:
		return schedule();
	}
}

static void reschedule(int cpu)
{
	struct sl_cpu *c = &cpus[cpu];
	struct task_struct *prev = cpu_curr(cpu);
	bool from_idle = c->idle;

	if (!from_idle && sl_pending_event(SL_SRC_SEGMENT, cpu)) {
		struct sl_task *task = sl_of(prev);

		c->busy += sl_now - c->since;
		task->left -= sl_now - c->since;
		c->since = sl_now;
	}
	call_schedule(cpu);
	run_stoppers(cpu);
	sl_run_softirqs(cpu);
	if (is_idle_task(cpu_curr(cpu))) {
		sl_cancel_event(SL_SRC_SEGMENT, cpu);
		if (!from_idle)
			become_idle(cpu);
	} else if (cpu_curr(cpu) != prev || from_idle) {
		sl_cancel_event(SL_SRC_SEGMENT, cpu);
		switch_in(cpu, from_idle);
	} else if (!sl_pending_event(SL_SRC_SEGMENT, cpu)) {
		switch_in(cpu, false);
	}
	if (test_tsk_need_resched(cpu_curr(cpu)))
		mark(cpu);
	sl_run_rcu();
}

static void check_clock(int cpu)
{
	if (sched_clock_cpu(cpu) != SL_UPTIME + sl_now)
		host_fail("check clock: CPU %d reads %llu ns instead of %llu", cpu, sched_clock_cpu(cpu), SL_UPTIME + sl_now);
}

static void handle(struct sl_event *event)
{
	int cpu = event->cpu;

	sl_set_cpu(cpu);
	preempt_count_set(PREEMPT_DISABLE_OFFSET);
	check_clock(cpu);
	local_irq_disable();
	switch (event->source) {
	case SL_SRC_SLEEP:
	case SL_SRC_HRTIMER:
		on_timer(event);
		break;
	case SL_SRC_TICK:
		on_tick(cpu);
		break;
	case SL_SRC_RESCHED:
		end_interrupt(cpu);
		break;
	case SL_SRC_CALL:
		sl_flush_calls(cpu);
		end_interrupt(cpu);
		break;
	case SL_SRC_EXIT:
		on_idle_exit(cpu);
		break;
	case SL_SRC_SEGMENT:
		local_irq_enable();
		on_segment(cpu);
		break;
	}
	local_irq_enable();
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void reschedule_marked(void)
{
	int round = nr_marked;
	static int now[NR_CPUS];

	/* Insertion sort: mostly a handful, and mostly in order. */
	for (int i = 1; i < round; i++)
		for (int j = i; j && compare(&marked[j], &marked[j - 1]) < 0; j--)
			swap(marked[j], marked[j - 1]);
	memcpy(now, marked, round * sizeof(int));
	nr_marked = 0;
	for (int i = 0; i < round; i++) {
		cpus[now[i]].marked = false;
		sl_set_cpu(now[i]);
		reschedule(now[i]);
	}
}

static void instant(void)
{
	struct sl_event event;
	unsigned long handled = 0;

	do {
		while (sl_pop(&event, sl_now)) {
			handle(&event);
			if (++handled > 20000000)
				host_fail("lockup: time no longer moves");
		}
		reschedule_marked();
	} while (nr_marked || sl_next_time() <= sl_now);
}

static void start_all(void)
{
	for (int i = 0; i < sl_nr_starts; i++) {
		struct task_struct *p = sl_new_task(NULL, ++last_pid, &sl_starts[i].attr, sl_starts[i].attr.cpu);

		sl_of(p)->program = sl_starts[i].program;
		end_interrupt(sl_starts[i].attr.cpu);
	}
}

/* How much CPU time tasks had on each CPU, to be compared with the switches. */
static void report_cpus(void)
{
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		if (!cpus[cpu].idle && sl_pending_event(SL_SRC_SEGMENT, cpu))
			cpus[cpu].busy += sl_now - cpus[cpu].since;
		host_record(cpu_rq(cpu)->nr_switches, 100, cpu, cpus[cpu].busy, cpus[cpu].busy >> 32);
	}
}

void sl_main(void);
void sl_main(void)
{
	sl_read_machine();
	sl_boot();
	sl_check_domains();
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		sl_set_cpu(cpu);
		become_idle(cpu);
	}
	sl_read_load();
	words = host_alloc((sl_nr_words + 1) * sizeof(*words));
	start_all();
	do {
		instant();
		sl_set_time(min(sl_next_time(), sl_duration));
	} while (sl_now < sl_duration);
	report_cpus();
}

/* The tracepoints of the kernel that are recorded. */
void sl_trace_sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state);
void sl_trace_sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	if (sl_booted)
		host_record(sl_now, REC_SWITCH | sl_is_stopper(next) << 8 | sl_is_stopper(prev) << 9, sl_this_cpu(), prev->pid,
			    next->pid);
}

void sl_trace_sched_wakeup(struct task_struct *p);
void sl_trace_sched_wakeup(struct task_struct *p)
{
	if (sl_booted && is_load(p))
		host_record(sl_now, REC_WAKEUP, sl_this_cpu(), p->pid, task_cpu(p));
}

void sl_trace_sched_wakeup_new(struct task_struct *p);
void sl_trace_sched_wakeup_new(struct task_struct *p)
{
	if (sl_booted && is_load(p))
		host_record(sl_now, REC_WAKEUP_NEW, sl_this_cpu(), p->pid, task_cpu(p));
}

void sl_trace_sched_migrate_task(struct task_struct *p, int dest_cpu);
void sl_trace_sched_migrate_task(struct task_struct *p, int dest_cpu)
{
	if (sl_booted && is_load(p))
		host_record(sl_now, REC_MIGRATE, sl_this_cpu(), p->pid, task_cpu(p) << 16 | dest_cpu);
}
