/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Needs what only new kernels have: a function, a field, a constant, an operation, a kind of map. */
#include "lab.h"

struct task_struct___newest {
	u64 lab_new_field;
} KERNEL;

struct task_struct___optional {
	u64 lab_optional_field;
} KERNEL;

enum lab_flags___newest {
	LAB_NEW_FLAG___newest = 1,
};

struct sched_ext_ops___newest {
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*lab_new_operation)(struct task_struct *p);
	char name[128];
};

struct {
	NUMBER(type, 33 /* arena */);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, 1024 /* BPF_F_MMAPABLE */);
} arena SEC(".maps");

extern void lab_bpf_new_function(struct task_struct *p) KSYM;
extern void lab_bpf_changed_function(struct task_struct *p, u64 flags) KSYM WEAK;

SEC("struct_ops/newest_enqueue")
void newest_enqueue(u64 *ctx)
{
	struct task_struct *p = ARG(0, struct task_struct *);
	u64 vtime = ((struct task_struct___newest *)p)->lab_new_field;
	struct task_struct___optional *optional = (void *)p;

	if (__builtin_preserve_field_info(optional->lab_optional_field, 2 /* exists */))
		vtime += optional->lab_optional_field;
	if (HAS(lab_bpf_changed_function))
		lab_bpf_changed_function(p, 0);
	lab_bpf_new_function(p);
	vtime += __builtin_preserve_enum_value(*(enum lab_flags___newest *)LAB_NEW_FLAG___newest, 1 /* value */);
	insert(p, SCX_DSQ_GLOBAL, vtime, ARG(1, u64));
	asm volatile("" : : "r"(&arena));
}

SEC("struct_ops/newest_operation")
void newest_operation(u64 *ctx)
{
}

SEC(".struct_ops.link")
struct sched_ext_ops___newest newest_ops = {
	.enqueue = (void *)newest_enqueue,
	.lab_new_operation = (void *)newest_operation,
	.name = "lab_newest",
};
