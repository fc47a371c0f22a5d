/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The types of a kernel with everything: only its BTF is used. */
#include "lab_kernel.h"

void lab_bpf_new_function(struct task_struct *p)
{
}

void lab_bpf_changed_function(struct task_struct *p, u64 flags)
{
}

struct task_struct {
	struct {
		int pid;
		unsigned int flags;
	};
	u64 lab_optional_field;
	u64 lab_new_field;
	struct sched_ext_entity scx;
} task;

enum bpf_map_type {
	BPF_MAP_TYPE_UNSPEC,
	BPF_MAP_TYPE_HASH,
	BPF_MAP_TYPE_ARRAY,
	BPF_MAP_TYPE_ARENA = 33,
} map;

enum lab_flags {
	LAB_NEW_FLAG = 64,
} flags;

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*lab_new_operation)(struct task_struct *p);
	char name[128];
} ops;
