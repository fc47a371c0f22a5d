/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The types of a kernel with sched_ext, for tests that execute schedulers: only its BTF is used. */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

struct cpumask {
	u64 bits[128];
};

struct sched_ext_entity {
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
	u32 flags;
};

struct task_struct {
	unsigned int flags;
	struct sched_ext_entity scx;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	int pid;
	char comm[16];
} task;

struct scx_exit_info {
	int kind;
	s64 exit_code;
} exit_info;

struct scx_init_task_args {
	_Bool fork;
} init_args;

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1,
	SCX_ENQ_PREEMPT = 1ULL << 32,
} enq_flags;

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
} ops;

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node)
{
	return 0;
}

s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, _Bool *is_idle)
{
	return 0;
}

void scx_bpf_kick_cpu(s32 cpu, u64 flags)
{
}

s32 scx_bpf_dsq_nr_queued(u64 dsq_id)
{
	return 0;
}

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
}

void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags)
{
}

_Bool scx_bpf_dsq_move_to_local(u64 dsq_id)
{
	return 0;
}

s32 scx_bpf_task_cpu(const struct task_struct *p)
{
	return 0;
}

struct bpf_cpumask {
	struct cpumask mask;
};

struct bpf_iter_num {
	u64 state;
};

struct bpf_cpumask *bpf_cpumask_create(void)
{
	return 0;
}

void bpf_cpumask_release(struct bpf_cpumask *mask)
{
}

void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
}

void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
}

void bpf_cpumask_setall(struct bpf_cpumask *mask)
{
}

_Bool bpf_cpumask_and(struct bpf_cpumask *to, const struct cpumask *a, const struct cpumask *b)
{
	return 0;
}

_Bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	return 0;
}

u32 bpf_cpumask_first(const struct cpumask *mask)
{
	return 0;
}

u32 bpf_cpumask_weight(const struct cpumask *mask)
{
	return 0;
}

int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)
{
	return 0;
}

int *bpf_iter_num_next(struct bpf_iter_num *it)
{
	return 0;
}

void bpf_iter_num_destroy(struct bpf_iter_num *it)
{
}
