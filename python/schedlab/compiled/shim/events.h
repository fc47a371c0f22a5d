/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of the driver, in the order of schedlab's simulator: by time, phase, and the order of being set. */
#ifndef SL_EVENTS_H
#define SL_EVENTS_H
#include <linux/types.h>

enum sl_phase { SL_TIMER = 1, SL_TICK, SL_IPI, SL_IDLE_EXIT, SL_SEGMENT };

struct sl_event {
	u64 time, order; /* phase in the upper 8 bits, then the sequence */
	u32 source;
	int cpu;
	u64 handle;
	void *data;
};

enum sl_source { SL_SRC_SLEEP, SL_SRC_HRTIMER, SL_SRC_TICK, SL_SRC_RESCHED, SL_SRC_CALL, SL_SRC_EXIT, SL_SRC_SEGMENT,
		 SL_NR_SOURCES };

u64 sl_push(u64 time, enum sl_phase phase, enum sl_source source, int cpu, void *data);
/* The one event of a CPU's source: setting it again replaces it. */
void sl_set_event(u64 time, enum sl_phase phase, enum sl_source source, int cpu);
void sl_cancel_event(enum sl_source source, int cpu);
bool sl_pending_event(enum sl_source source, int cpu);
void sl_cancel(u64 handle);
/* The next event that is due by `until`. */
bool sl_pop(struct sl_event *event, u64 until);
u64 sl_next_time(void);
#endif
