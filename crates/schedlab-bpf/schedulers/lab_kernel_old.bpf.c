/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The types of a kernel without anything new: only its BTF is used. */
#include "lab_kernel.h"

void lab_bpf_changed_function(struct task_struct *p)
{
}

struct task_struct {
	u32 before;
	int pid;
	unsigned int flags;
	struct sched_ext_entity scx;
} task;

enum bpf_map_type {
	BPF_MAP_TYPE_UNSPEC,
	BPF_MAP_TYPE_HASH,
	BPF_MAP_TYPE_ARRAY,
} map;

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	char name[128];
} ops;
