/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Uses the value of a map without testing whether there is one; a kernel's verifier would refuse it. */
#include "lab.h"

struct {
	NUMBER(type, 2 /* array */);
	NUMBER(max_entries, 4);
	u32 (*key);
	u64 (*value);
} seen SEC(".maps");

static NOINLINE void note(u32 at)
{
	u64 *value = bpf_map_lookup_elem(&seen, &at);

	*value = 1;
}

SEC("struct_ops/bad_enqueue")
void bad_enqueue(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);

	note((u32)p->pid % 8);
	insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, ARG(1, u64));
}

SEC(".struct_ops.link")
struct sched_ext_ops bad_ops = {
	.enqueue = (void *)bad_enqueue,
	.name = "lab_bad_pointer",
};
