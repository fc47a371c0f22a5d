/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before every file of the kernel: what of x86-64 a program in user space cannot do, and hooks into the
 * tracepoints.
 */
#ifndef SCHEDLAB_FORCE_H
#define SCHEDLAB_FORCE_H
#ifndef __ASSEMBLY__

/* `current` must be read again after another simulated CPU has been selected, see set_cpu in clock.c. */
#undef CONFIG_USE_X86_SEG_SUPPORT

#include <linux/version.h>

/* Replaces asm/irqflags.h: interrupts are a flag of the program. cli, sti and hlt are privileged. */
#define _X86_IRQFLAGS_H_
#include <asm/processor-flags.h>
#include <linux/types.h>

extern unsigned long sl_irqs_on;

static inline __attribute__((always_inline)) unsigned long arch_local_save_flags(void)
{
	return sl_irqs_on;
}
static inline __attribute__((always_inline)) void arch_local_irq_disable(void)
{
	*(volatile unsigned long *)&sl_irqs_on = 0;
	asm volatile("" ::: "memory");
}
static inline __attribute__((always_inline)) void arch_local_irq_enable(void)
{
	asm volatile("" ::: "memory");
	*(volatile unsigned long *)&sl_irqs_on = X86_EFLAGS_IF;
}
static inline __attribute__((always_inline)) unsigned long arch_local_irq_save(void)
{
	unsigned long flags = sl_irqs_on;

	arch_local_irq_disable();
	return flags;
}
static inline __attribute__((always_inline)) int arch_irqs_disabled_flags(unsigned long flags)
{
	return !(flags & X86_EFLAGS_IF);
}
static inline __attribute__((always_inline)) int arch_irqs_disabled(void)
{
	return arch_irqs_disabled_flags(sl_irqs_on);
}
static inline __attribute__((always_inline)) void arch_local_irq_restore(unsigned long flags)
{
	asm volatile("" ::: "memory");
	*(volatile unsigned long *)&sl_irqs_on = flags;
}
#define native_save_fl arch_local_save_flags
#define native_irq_disable arch_local_irq_disable
#define native_irq_enable arch_local_irq_enable
static inline void arch_safe_halt(void) { arch_local_irq_enable(); }
static inline void native_safe_halt(void) { arch_local_irq_enable(); }
static inline void native_halt(void) { }
static inline void halt(void) { }

#include <asm/current.h>
#undef current
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define current this_cpu_read(pcpu_hot.current_task)
#else
#define current this_cpu_read(current_task)
#endif

/* A tracepoint calls sl_trace_NAME, which the shim defines where it observes something. */
#include <linux/tracepoint.h>
#undef __DECLARE_TRACE
#define __DECLARE_TRACE(name, proto, args, ...)				\
	extern void sl_trace_##name(proto);				\
	static inline void trace_##name(proto) { sl_trace_##name(args); }	\
	static inline bool trace_##name##_enabled(void) { return true; }	\
	static inline int register_trace_##name(void (*probe)(void *), void *data) { return -ENOSYS; } \
	static inline int unregister_trace_##name(void (*probe)(void *), void *data) { return -ENOSYS; }

#endif
#endif
