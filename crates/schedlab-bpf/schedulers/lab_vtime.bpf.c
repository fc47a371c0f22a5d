/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* One queue for all CPUs, ordered by the time that each task has run, divided by its weight. */
#include "lab.h"

#define SHARED 7

const volatile u64 slice = SCX_SLICE_DFL;

static u64 now;

struct {
	NUMBER(type, 2 /* array */);
	NUMBER(max_entries, 2);
	u32 (*key);
	u64 (*value);
} counts SEC(".maps");

static void count(u32 at)
{
	u64 *value = bpf_map_lookup_elem(&counts, &at);

	if (value)
		__sync_fetch_and_add(value, 1);
}

SEC("struct_ops/vtime_select_cpu")
s32 vtime_select_cpu(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);
	_Bool idle = 0;
	s32 cpu = scx_bpf_select_cpu_dfl(p, ARG(1, s32), ARG(2, u64), &idle);

	if (idle) {
		count(0);
		insert(p, SCX_DSQ_LOCAL, slice, 0);
	}
	return cpu;
}

SEC("struct_ops/vtime_enqueue")
void vtime_enqueue(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);
	u64 vtime = p->scx.dsq_vtime;

	count(1);
	/* A task that has slept is at most one slice ahead. */
	if ((s64)(vtime - (now - slice)) < 0)
		vtime = now - slice;
	insert_vtime(p, SHARED, slice, vtime, ARG(1, u64));
}

SEC("struct_ops/vtime_dispatch")
void vtime_dispatch(u64 *ctx)
{
	move_to_local(SHARED);
}

SEC("struct_ops/vtime_running")
void vtime_running(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);

	if ((s64)(now - p->scx.dsq_vtime) < 0)
		now = p->scx.dsq_vtime;
}

SEC("struct_ops/vtime_stopping")
void vtime_stopping(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);

	p->scx.dsq_vtime += (slice - p->scx.slice) * 100 / p->scx.weight;
}

SEC("struct_ops/vtime_enable")
void vtime_enable(u64 *ctx)
{
	ARG(0, struct task_struct *)->scx.dsq_vtime = now;
}

SEC("struct_ops.s/vtime_init")
s32 vtime_init(u64 *ctx)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops vtime_ops = {
	.select_cpu = (void *)vtime_select_cpu,
	.enqueue = (void *)vtime_enqueue,
	.dispatch = (void *)vtime_dispatch,
	.running = (void *)vtime_running,
	.stopping = (void *)vtime_stopping,
	.enable = (void *)vtime_enable,
	.init = (void *)vtime_init,
	.name = "lab_vtime",
};
