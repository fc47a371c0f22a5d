/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Tests what schedulers use beside queues: init fails with the number of the first thing that is wrong. */
#include "lab.h"

struct bpf_cpumask;
struct bpf_iter_num {
	u64 state;
};

extern struct bpf_cpumask *bpf_cpumask_create(void) KSYM;
extern void bpf_cpumask_release(struct bpf_cpumask *mask) KSYM;
extern void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask) KSYM;
extern void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask) KSYM;
extern void bpf_cpumask_setall(struct bpf_cpumask *mask) KSYM;
extern _Bool bpf_cpumask_and(struct bpf_cpumask *to, const struct cpumask *a, const struct cpumask *b) KSYM;
extern _Bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) KSYM;
extern u32 bpf_cpumask_first(const struct cpumask *mask) KSYM;
extern u32 bpf_cpumask_weight(const struct cpumask *mask) KSYM;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) KSYM;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) KSYM;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) KSYM;

static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*const bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const bpf_strncmp)(const char *a, u32 size, const char *b) = (void *)182;
static void *(*const bpf_kptr_xchg)(void *place, void *pointer) = (void *)194;

struct {
	NUMBER(type, 1 /* hash */);
	NUMBER(max_entries, 2);
	u64 (*key);
	u64 (*value);
} hash SEC(".maps");

struct {
	NUMBER(type, 22 /* queue */);
	NUMBER(max_entries, 2);
	u32 (*value);
} queue SEC(".maps");

struct {
	NUMBER(type, 6 /* per-CPU array */);
	NUMBER(max_entries, 3);
	u32 (*key);
	u64 (*value);
} per_cpu SEC(".maps");

static void *volatile kept;
static u64 counter = 5;
static volatile s64 negative = -7;
static char word[4] = "lab";

#define EXPECT(condition)         \
	do {                      \
		step++;           \
		if (!(condition)) \
			return step; \
	} while (0)

static NOINLINE s32 maps(s32 step)
{
	u64 key = 1, value = 10, *found;
	u32 number = 4, index = 2;

	EXPECT(bpf_map_lookup_elem(&hash, &key) == 0);
	EXPECT(bpf_map_update_elem(&hash, &key, &value, 1 /* BPF_NOEXIST */) == 0);
	EXPECT(bpf_map_update_elem(&hash, &key, &value, 1) == -17);
	found = bpf_map_lookup_elem(&hash, &key);
	EXPECT(found && *found == 10);
	key = 2;
	EXPECT(bpf_map_update_elem(&hash, &key, &value, 0) == 0);
	key = 3;
	EXPECT(bpf_map_update_elem(&hash, &key, &value, 0) == -7);
	key = 2;
	EXPECT(bpf_map_delete_elem(&hash, &key) == 0);
	EXPECT(bpf_map_delete_elem(&hash, &key) == -2);
	EXPECT(bpf_map_push_elem(&queue, &number, 0) == 0);
	number = 5;
	EXPECT(bpf_map_push_elem(&queue, &number, 0) == 0);
	EXPECT(bpf_map_push_elem(&queue, &number, 0) == -7);
	EXPECT(bpf_map_pop_elem(&queue, &number) == 0 && number == 4);
	EXPECT(bpf_map_pop_elem(&queue, &number) == 0 && number == 5);
	EXPECT(bpf_map_pop_elem(&queue, &number) == -2);
	found = bpf_map_lookup_elem(&per_cpu, &index);
	EXPECT(found && *found == 0);
	index = 3;
	EXPECT(bpf_map_lookup_elem(&per_cpu, &index) == 0);
	return 0;
}

static NOINLINE s32 masks(s32 step)
{
	struct bpf_cpumask *mask = bpf_cpumask_create(), *other = bpf_cpumask_create();
	const struct cpumask *read = (const struct cpumask *)mask;

	EXPECT(mask && other);
	bpf_cpumask_set_cpu(1, mask);
	EXPECT(bpf_cpumask_test_cpu(1, read) && !bpf_cpumask_test_cpu(0, read));
	EXPECT(bpf_cpumask_first(read) == 1);
	bpf_cpumask_setall(other);
	EXPECT(bpf_cpumask_weight((const struct cpumask *)other) == 2);
	EXPECT(bpf_cpumask_and(other, (const struct cpumask *)other, read));
	bpf_cpumask_clear_cpu(1, mask);
	EXPECT(bpf_cpumask_weight(read) == 0);
	EXPECT(bpf_cpumask_weight((const struct cpumask *)other) == 1);
	EXPECT(bpf_kptr_xchg((void *)&kept, mask) == 0);
	EXPECT(bpf_kptr_xchg((void *)&kept, 0) == mask);
	bpf_cpumask_release(mask);
	bpf_cpumask_release(other);
	return 0;
}

static NOINLINE s32 numbers(s32 step)
{
	struct bpf_iter_num it;
	s32 sum = 0, *next;

	EXPECT(bpf_iter_num_new(&it, 3, 6) == 0);
	while ((next = bpf_iter_num_next(&it)))
		sum += *next;
	bpf_iter_num_destroy(&it);
	EXPECT(sum == 3 + 4 + 5);
	EXPECT(bpf_iter_num_new(&it, 6, 3) == -22);
	EXPECT(__sync_fetch_and_add(&counter, 3) == 5 && counter == 8);
	EXPECT(__sync_val_compare_and_swap(&counter, 8, 1) == 8 && counter == 1);
	EXPECT(__sync_val_compare_and_swap(&counter, 8, 2) == 1 && counter == 1);
	EXPECT(__sync_lock_test_and_set(&counter, 9) == 1 && counter == 9);
	EXPECT(bpf_strncmp(word, 4, "lab") == 0);
	EXPECT(bpf_strncmp(word, 4, "lac") < 0 && bpf_strncmp(word, 2, "lac") == 0);
	EXPECT(negative >> 1 == -4);
	EXPECT((u64)negative / 2 == 0x7ffffffffffffffcULL);
	EXPECT((u32)negative % 10 == 9);
	return 0;
}

SEC("struct_ops.s/surface_init")
s32 surface_init(u64 *ctx)
{
	s32 wrong = maps(0);

	if (!wrong)
		wrong = masks(100);
	if (!wrong)
		wrong = numbers(200);
	return wrong;
}

SEC(".struct_ops.link")
struct sched_ext_ops surface_ops = {
	.init = (void *)surface_init,
	.name = "lab_surface",
};
