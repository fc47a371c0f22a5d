/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Never returns from dispatch; a kernel's verifier would refuse it. */
#include "lab.h"

volatile u64 turns;

SEC("struct_ops/loop_dispatch")
void loop_dispatch(u64 *ctx)
{
	for (;;)
		turns++;
}

SEC(".struct_ops.link")
struct sched_ext_ops loop_ops = {
	.dispatch = (void *)loop_dispatch,
	.name = "lab_loop",
};
