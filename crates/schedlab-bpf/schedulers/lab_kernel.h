/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both kernels for the tests of the check have. */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

struct task_struct;

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
};

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
}
