// SPDX-License-Identifier: GPL-2.0-only
/* One CPU executes at a time, so a lock that is held when it is acquired would never be released: that is reported. */
#include "sl.h"
#include <linux/spinlock.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>

static void acquire(raw_spinlock_t *lock)
{
	preempt_disable();
	if (lock->raw_lock.val.counter)
		host_fail("double lock, at %p", __builtin_return_address(0));
	lock->raw_lock.val.counter = 1;
}

static void release(raw_spinlock_t *lock)
{
	if (!lock->raw_lock.val.counter)
		host_fail("a lock is released that is not held, at %p", __builtin_return_address(0));
	lock->raw_lock.val.counter = 0;
	preempt_enable_no_resched();
}

/* Those that a configuration inlines are not used. */
#undef _raw_spin_unlock
#undef _raw_spin_unlock_irq
void _raw_spin_lock(raw_spinlock_t *lock) { acquire(lock); }
void _raw_spin_lock_nested(raw_spinlock_t *lock, int subclass) { acquire(lock); }
void _raw_spin_lock_irq(raw_spinlock_t *lock)
{
	local_irq_disable();
	acquire(lock);
}
void _raw_spin_lock_bh(raw_spinlock_t *lock) { acquire(lock); }
unsigned long _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags = arch_local_irq_save();

	acquire(lock);
	return flags;
}
int _raw_spin_trylock(raw_spinlock_t *lock)
{
	if (lock->raw_lock.val.counter)
		return 0;
	acquire(lock);
	return 1;
}
void _raw_spin_unlock(raw_spinlock_t *lock) { release(lock); }
void _raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	release(lock);
	local_irq_enable();
}
void _raw_spin_unlock_bh(raw_spinlock_t *lock) { release(lock); }
void _raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	release(lock);
	arch_local_irq_restore(flags);
}

/* need_resched is honoured by the driver, not where preemption is enabled. All registers are kept. */
asm(".text\n.globl preempt_schedule_thunk\npreempt_schedule_thunk:\n\tret\n"
    ".globl preempt_schedule_notrace_thunk\npreempt_schedule_notrace_thunk:\n\tret\n");

void __rcu_read_lock(void) { }
void __rcu_read_unlock(void) { }
#undef _raw_read_unlock
#undef _raw_write_unlock
void _raw_read_unlock(rwlock_t *lock) { }
void _raw_write_unlock(rwlock_t *lock) { }
void _raw_read_lock(rwlock_t *lock) { }
void _raw_write_lock(rwlock_t *lock) { }
void mutex_lock(struct mutex *lock) { }
void mutex_unlock(struct mutex *lock) { }
void down_write(struct rw_semaphore *sem) { }
void up_write(struct rw_semaphore *sem) { }
void cpus_read_lock(void) { }
void cpus_read_unlock(void) { }
int in_lock_functions(unsigned long address) { return 0; }

/* No reader is ever in the middle of anything when the driver continues, but the caller of call_rcu may be. */
static struct rcu_head *callbacks, **last = &callbacks;

void call_rcu(struct rcu_head *head, rcu_callback_t func)
{
	head->func = func;
	head->next = NULL;
	*last = head;
	last = (struct rcu_head **)&head->next;
}

void sl_run_rcu(void)
{
	while (callbacks) {
		struct rcu_head *head = callbacks;

		callbacks = (struct rcu_head *)head->next;
		if (!callbacks)
			last = &callbacks;
		head->func(head);
	}
}
void synchronize_rcu(void) { }
void kvfree_call_rcu(struct rcu_head *head, void *memory) { }
void rcu_note_context_switch(bool preempt) { }
void rcu_all_qs(void) { }
