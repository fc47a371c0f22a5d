// SPDX-License-Identifier: GPL-2.0-only
/* Memory: the allocators of the kernel on top of malloc, and the per-CPU areas. */
#include "sl.h"
#include <linux/slab.h>
#include <linux/percpu.h>

extern char __sl_percpu_start[], __sl_percpu_end[];
/* Room in each area for data that is allocated at run time. */
#define DYNAMIC (64UL << 10)
static unsigned long used;
unsigned long __per_cpu_offset[NR_CPUS];
DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);

static unsigned long area(void) { return ALIGN(__sl_percpu_end - __sl_percpu_start, 64); }

void sl_setup_percpu(void)
{
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		char *base = host_alloc(area() + DYNAMIC);

		memcpy(base, __sl_percpu_start, __sl_percpu_end - __sl_percpu_start);
		__per_cpu_offset[cpu] = base - __sl_percpu_start;
	}
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++)
		per_cpu(this_cpu_off, cpu) = __per_cpu_offset[cpu];
	sl_number_cpus();
	sl_set_cpu(0);
}

static void *percpu_alloc(size_t size, size_t align)
{
	unsigned long at = ALIGN(used, align ?: 8);

	used = at + size;
	if (used > DYNAMIC)
		host_fail("no room for per-CPU data");
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++)
		memset(__sl_percpu_start + __per_cpu_offset[cpu] + area() + at, 0, size);
	return __sl_percpu_start + area() + at;
}

static void *cleared(size_t size) { return host_alloc(size ?: 1); }

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
void __percpu *pcpu_alloc_noprof(size_t size, size_t align, bool reserved, gfp_t gfp)
{
	return (void __percpu *)percpu_alloc(size, align);
}
#else
void __percpu *__alloc_percpu(size_t size, size_t align) { return (void __percpu *)percpu_alloc(size, align); }
void __percpu *__alloc_percpu_gfp(size_t size, size_t align, gfp_t gfp)
{
	return (void __percpu *)percpu_alloc(size, align);
}
#endif
void free_percpu(void __percpu *memory) { }

/* The names differ by version; each symbol takes the size where its own version has it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
void *__kmalloc_noprof(size_t size, gfp_t flags) { return cleared(size); }
void *__kmalloc_cache_noprof(struct kmem_cache *s, gfp_t flags, size_t size) { return cleared(size); }
void *__kmalloc_cache_node_noprof(struct kmem_cache *s, gfp_t flags, int node, size_t size) { return cleared(size); }
void *kmem_cache_alloc_noprof(struct kmem_cache *s, gfp_t flags) { return cleared(*(unsigned int *)s); }
void *kmem_cache_alloc_node_noprof(struct kmem_cache *s, gfp_t flags, int node) { return cleared(*(unsigned int *)s); }
#undef __kmalloc_node_noprof
void *__kmalloc_node_noprof(DECL_BUCKET_PARAMS(size, b), gfp_t flags, int node) { return cleared(size); }
#else
void *__kmalloc(size_t size, gfp_t flags) { return cleared(size); }
void *__kmalloc_node(size_t size, gfp_t flags, int node) { return cleared(size); }
void *kmem_cache_alloc(struct kmem_cache *s, gfp_t flags) { return cleared(*(unsigned int *)s); }
void *kmem_cache_alloc_node(struct kmem_cache *s, gfp_t flags, int node) { return cleared(*(unsigned int *)s); }
void *kmalloc_trace(struct kmem_cache *s, gfp_t flags, size_t size) { return cleared(size); }
void *kmalloc_node_trace(struct kmem_cache *s, gfp_t flags, int node, size_t size) { return cleared(size); }
#endif
void kfree(const void *memory) { host_free((void *)memory); }
void kmem_cache_free(struct kmem_cache *s, void *memory) { host_free(memory); }

/* A cache is only its size. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
struct kmem_cache *__kmem_cache_create_args(const char *name, unsigned int size, struct kmem_cache_args *args,
					    slab_flags_t flags)
#else
struct kmem_cache *kmem_cache_create(const char *name, unsigned int size, unsigned int align, slab_flags_t flags,
				     void (*ctor)(void *))
#endif
{
	unsigned int *cache = host_alloc(64);

	*cache = size;
	return (struct kmem_cache *)cache;
}
