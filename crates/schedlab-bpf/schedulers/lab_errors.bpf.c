/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Makes one error in enqueue or dispatch: which one is a read-only variable. */
#include "lab.h"

enum error {
	NONE,
	BUILT_IN_VTIME,
	NO_SUCH_QUEUE,
	TWICE,
	NO_SUCH_CPU,
	QUEUE_OUT_OF_PLACE,
	READ_ONLY,
	PAST_THE_END,
	CPU_NOT_ALLOWED,
	MIXED_ORDERS,
	UNKNOWN_QUEUE,
	ENDLESS_KICKS,
};

const volatile u32 error = NONE;

static volatile u64 numbers[4];

SEC("struct_ops/errors_select_cpu")
s32 errors_select_cpu(u64 *ctx)
{
	return error == NO_SUCH_CPU ? 1000 : ARG(1, s32);
}

SEC("struct_ops/errors_enqueue")
void errors_enqueue(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);
	u64 queue = error == MIXED_ORDERS || error == UNKNOWN_QUEUE ? 3 : SCX_DSQ_GLOBAL;
	u32 index = (u32)p->pid;

	if (error == BUILT_IN_VTIME)
		insert_vtime(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0, 0);
	else if (error == NO_SUCH_QUEUE)
		insert(p, 99, SCX_SLICE_DFL, 0);
	else if (error == CPU_NOT_ALLOWED)
		insert(p, 3ULL << 62 | (index & 1), SCX_SLICE_DFL, 0);
	else if (error == MIXED_ORDERS && (index & 1))
		insert_vtime(p, queue, SCX_SLICE_DFL, 0, 0);
	else
		insert(p, queue, SCX_SLICE_DFL, 0);
	if (error == TWICE)
		insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0);
	if (error == QUEUE_OUT_OF_PLACE)
		scx_bpf_create_dsq(5, -1);
	if (error == READ_ONLY)
		p->pid = 1;
	if (error == PAST_THE_END) {
		asm volatile("" : "+r"(index));
		numbers[index] = 1;
	}
	if (error == ENDLESS_KICKS)
		scx_bpf_kick_cpu(0, 0);
}

SEC("struct_ops/errors_dispatch")
void errors_dispatch(u64 *ctx)
{
	if (error == UNKNOWN_QUEUE)
		move_to_local(4);
	else
		move_to_local(3);
	if (error == ENDLESS_KICKS)
		scx_bpf_kick_cpu(ARG(0, s32), 0);
}

SEC("struct_ops.s/errors_init")
s32 errors_init(u64 *ctx)
{
	return scx_bpf_create_dsq(3, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops errors_ops = {
	.select_cpu = (void *)errors_select_cpu,
	.enqueue = (void *)errors_enqueue,
	.dispatch = (void *)errors_dispatch,
	.init = (void *)errors_init,
	.name = "lab_errors",
};
