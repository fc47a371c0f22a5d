/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Forgets a task on purpose: every hundredth enqueue inserts it nowhere. */
#include "lab.h"

const volatile u32 every = 100;

static u32 enqueued;

SEC("struct_ops/stall_enqueue")
void stall_enqueue(u64 *ctx)
{
	if (++enqueued % every)
		insert(ARG(0, struct task_struct *), SCX_DSQ_GLOBAL, SCX_SLICE_DFL, ARG(1, u64));
}

SEC(".struct_ops.link")
struct sched_ext_ops stall_ops = {
	.enqueue = (void *)stall_enqueue,
	.timeout_ms = 1000,
	.name = "lab_stall",
};
