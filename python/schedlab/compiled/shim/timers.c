// SPDX-License-Identifier: GPL-2.0-only
/* hrtimers of the kernel's own: each that is queued is an event of the driver. */
#include "sl.h"
#include <linux/hrtimer.h>

static struct hrtimer_clock_base bases[NR_CPUS];
/* The handle of a queued timer's event is in the pointer of its tree node, which is not in a tree. */
#define HANDLE(timer) (*(unsigned long *)&(timer)->node.node.rb_left)

void sl_setup_timers(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
	for (int cpu = 0; cpu < NR_CPUS; cpu++)
		bases[cpu].get_time = ktime_get;
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
void hrtimer_init(struct hrtimer *timer, clockid_t clock, enum hrtimer_mode mode)
{
	memset(timer, 0, sizeof(*timer));
	timer->base = &bases[sl_this_cpu()];
}
#else
void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *), clockid_t clock,
		   enum hrtimer_mode mode)
{
	memset(timer, 0, sizeof(*timer));
	timer->base = &bases[sl_this_cpu()];
	ACCESS_PRIVATE(timer, function) = function;
}
#endif

static void enqueue(struct hrtimer *timer)
{
	u64 due = ktime_to_ns(hrtimer_get_expires(timer));

	timer->state = HRTIMER_STATE_ENQUEUED;
	timer->base = &bases[sl_this_cpu()];
	due = due > SL_UPTIME ? due - SL_UPTIME : 0;
	HANDLE(timer) = sl_arm_timer(sl_this_cpu(), max(due, sl_now), timer);
}

int hrtimer_try_to_cancel(struct hrtimer *timer)
{
	if (timer->base->running == timer)
		return -1;
	if (!timer->state)
		return 0;
	sl_cancel_timer(HANDLE(timer));
	timer->state = HRTIMER_STATE_INACTIVE;
	return 1;
}

int hrtimer_cancel(struct hrtimer *timer)
{
	int found = hrtimer_try_to_cancel(timer);

	if (found < 0)
		host_fail("hrtimer_cancel of a timer whose handler executes");
	return found;
}

void hrtimer_start_range_ns(struct hrtimer *timer, ktime_t time, u64 delta_ns, const enum hrtimer_mode mode)
{
	if (timer->state) {
		sl_cancel_timer(HANDLE(timer));
		timer->state = HRTIMER_STATE_INACTIVE;
	}
	if (mode & HRTIMER_MODE_REL)
		time = ktime_add(time, ktime_get());
	hrtimer_set_expires_range_ns(timer, time, delta_ns);
	enqueue(timer);
}

ktime_t ktime_add_safe(const ktime_t a, const ktime_t b)
{
	ktime_t sum = ktime_add_unsafe(a, b);

	return sum < 0 || sum < a || sum < b ? ktime_set(KTIME_SEC_MAX, 0) : sum;
}

bool hrtimer_active(const struct hrtimer *timer)
{
	return timer->state || timer->base->running == timer;
}

u64 hrtimer_forward(struct hrtimer *timer, ktime_t now, ktime_t interval)
{
	s64 late = ktime_to_ns(ktime_sub(now, hrtimer_get_expires(timer))), step = ktime_to_ns(interval);
	u64 overruns;

	if (late < 0 || timer->state)
		return 0;
	overruns = late / step + 1;
	hrtimer_add_expires_ns(timer, overruns * step);
	return overruns;
}

/* The event of the timer: __run_hrtimer. */
void sl_run_hrtimer(void *data)
{
	struct hrtimer *timer = data;
	struct hrtimer_clock_base *base = &bases[sl_this_cpu()];

	timer->state = HRTIMER_STATE_INACTIVE;
	timer->base = base;
	base->running = timer;
	if (ACCESS_PRIVATE(timer, function)(timer) == HRTIMER_RESTART && !timer->state)
		enqueue(timer);
	base->running = NULL;
}
