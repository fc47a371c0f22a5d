/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the schedulers in this directory use of the kernel: the fields, constants and functions by name. The loader
 * matches them with the kernel's own, so that neither order nor offsets matter here.
 */
#ifndef LAB_H
#define LAB_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define KSYM __attribute__((section(".ksyms")))
#define WEAK __attribute__((weak))
#define NOINLINE __attribute__((noinline))

/* A map's numbers are lengths of arrays. */
#define NUMBER(name, value) int(*name)[value]

struct cpumask;
struct cgroup;

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
	u32 flags;
} KERNEL;

struct task_struct {
	int pid;
	unsigned int flags;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
} KERNEL;

struct scx_exit_info {
	int kind;
	s64 exit_code;
} KERNEL;

struct scx_init_task_args {
	_Bool fork;
} KERNEL;

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, _Bool runnable);
	void (*enable)(struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* Built-in queues and the default slice (7.2: include/linux/sched/ext.h). */
#define SCX_DSQ_LOCAL ((1ULL << 63) | 2)
#define SCX_DSQ_GLOBAL ((1ULL << 63) | 1)
#define SCX_SLICE_DFL 20000000ULL
#define SCX_ENQ_PREEMPT (1ULL << 32)
#define SCX_KICK_IDLE 1ULL

extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) KSYM;
extern s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, _Bool *is_idle) KSYM;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) KSYM;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) KSYM;

/* The names since 6.13, and those of 6.12. */
extern void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) KSYM WEAK;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags) KSYM WEAK;
extern _Bool scx_bpf_dsq_move_to_local___v1(u64 dsq_id) KSYM WEAK;
extern _Bool scx_bpf_dsq_move_to_local___v2(u64 dsq_id, u64 enq_flags) KSYM WEAK;
extern void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) KSYM WEAK;
extern void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags) KSYM WEAK;
extern _Bool scx_bpf_consume(u64 dsq_id) KSYM WEAK;

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;

/* The address of a weak symbol, which clang must not assume to be other than 0. */
#define HAS(symbol)                                     \
	({                                              \
		const void *address = (const void *)&symbol; \
		asm volatile("" : "+r"(address));       \
		address != 0;                           \
	})

static inline void insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags)
{
	if (HAS(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, dsq, slice, flags);
	else
		scx_bpf_dispatch(p, dsq, slice, flags);
}

static inline void insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime, u64 flags)
{
	if (HAS(scx_bpf_dsq_insert_vtime))
		scx_bpf_dsq_insert_vtime(p, dsq, slice, vtime, flags);
	else
		scx_bpf_dispatch_vtime(p, dsq, slice, vtime, flags);
}

static inline void move_to_local(u64 dsq)
{
	if (HAS(scx_bpf_dsq_move_to_local___v2))
		scx_bpf_dsq_move_to_local___v2(dsq, 0);
	else if (HAS(scx_bpf_dsq_move_to_local___v1))
		scx_bpf_dsq_move_to_local___v1(dsq);
	else
		scx_bpf_consume(dsq);
}

/* The program gets an array of its arguments. */
#define ARG(n, type) ((type)ctx[n])

char lab_license[] SEC("license") = "GPL";

#endif
