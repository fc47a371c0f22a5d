// SPDX-License-Identifier: GPL-2.0-only
/* The queue of events: a binary heap. A cancelled event stays in it and is dropped when it comes up. */
#include "sl.h"
#include "events.h"

static struct sl_event *heap;
static unsigned long nr, room;
static u64 sequence, handles, handle_room;
static u8 *valid;
static u64 set[SL_NR_SOURCES][NR_CPUS];

static bool before(const struct sl_event *a, const struct sl_event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void *grow(void *old, unsigned long used, unsigned long size)
{
	void *grown = host_alloc(size);

	if (old) {
		memcpy(grown, old, used);
		host_free(old);
	}
	return grown;
}

/* Handles of events that have been popped are used again. */
static u64 *free_handles;
static u64 nr_free, free_room;

static u64 new_handle(void)
{
	if (nr_free)
		return free_handles[--nr_free];
	if (handles + 1 >= handle_room) {
		u64 larger = max(2 * handle_room, 1024ULL);

		valid = grow(valid, handle_room, larger);
		handle_room = larger;
	}
	return ++handles;
}

static void release_handle(u64 handle)
{
	if (nr_free == free_room) {
		u64 larger = max(2 * free_room, 1024ULL);

		free_handles = grow(free_handles, free_room * sizeof(u64), larger * sizeof(u64));
		free_room = larger;
	}
	free_handles[nr_free++] = handle;
}

u64 sl_push(u64 time, enum sl_phase phase, enum sl_source source, int cpu, void *data)
{
	struct sl_event event = { time, (u64)phase << 56 | ++sequence, source, cpu, new_handle(), data };
	unsigned long at;

	if (nr == room) {
		unsigned long larger = max(2 * room, 1024UL);

		heap = grow(heap, room * sizeof(*heap), larger * sizeof(*heap));
		room = larger;
	}
	valid[event.handle] = 1;
	for (at = nr++; at && before(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
	return event.handle;
}

static void drop_first(void)
{
	struct sl_event last = heap[--nr];
	unsigned long at = 0, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
}

static void drop_cancelled(void)
{
	while (nr && !valid[heap[0].handle]) {
		release_handle(heap[0].handle);
		drop_first();
	}
}

u64 sl_next_time(void)
{
	drop_cancelled();
	return nr ? heap[0].time : U64_MAX;
}

bool sl_pop(struct sl_event *event, u64 until)
{
	if (sl_next_time() > until)
		return false;
	*event = heap[0];
	valid[event->handle] = 0;
	release_handle(event->handle);
	drop_first();
	if (event->source >= SL_SRC_TICK)
		set[event->source][event->cpu] = 0;
	return true;
}

void sl_cancel(u64 handle)
{
	valid[handle] = 0;
}

void sl_cancel_event(enum sl_source source, int cpu)
{
	if (set[source][cpu])
		sl_cancel(set[source][cpu]);
	set[source][cpu] = 0;
}

bool sl_pending_event(enum sl_source source, int cpu)
{
	return set[source][cpu];
}

void sl_set_event(u64 time, enum sl_phase phase, enum sl_source source, int cpu)
{
	sl_cancel_event(source, cpu);
	set[source][cpu] = sl_push(time, phase, source, cpu, NULL);
}
