/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* One queue for all CPUs, first come, first served. */
#include "lab.h"

#define SHARED 0

const volatile u64 slice_us = 5000;

SEC("struct_ops/fifo_select_cpu")
s32 fifo_select_cpu(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);
	_Bool idle = 0;
	s32 cpu = scx_bpf_select_cpu_dfl(p, ARG(1, s32), ARG(2, u64), &idle);

	if (idle)
		insert(p, SCX_DSQ_LOCAL, slice_us * 1000, 0);
	return cpu;
}

SEC("struct_ops/fifo_enqueue")
void fifo_enqueue(u64 *ctx)
{
	insert(ARG(0, struct task_struct *), SHARED, slice_us * 1000, ARG(1, u64));
}

SEC("struct_ops/fifo_dispatch")
void fifo_dispatch(u64 *ctx)
{
	move_to_local(SHARED);
}

SEC("struct_ops.s/fifo_init")
s32 fifo_init(u64 *ctx)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops fifo_ops = {
	.select_cpu = (void *)fifo_select_cpu,
	.enqueue = (void *)fifo_enqueue,
	.dispatch = (void *)fifo_dispatch,
	.init = (void *)fifo_init,
	.name = "lab_fifo",
};
