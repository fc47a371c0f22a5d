// A request server for recordings: three clients and the workers behind their pipes, with nice values, mixed sleeps and yields.
// server WORKERS SECONDS: 1 to 16 workers
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORKERS = 16, CLIENTS = 3 };

static int requests[MOST_WORKERS][2], done[2], workers;
static volatile int stop;

// A linear congruential generator: the same choices in every recording.
static unsigned next(unsigned *state)
{
	*state = *state * 1103515245u + 12345u;
	return *state >> 16;
}

static long since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begin->tv_sec) * 1000000L + (now.tv_nsec - begin->tv_nsec) / 1000;
}

static void spin(long us)
{
	struct timespec begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (since(&begin) < us)
		;
}

static void nap(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

static void serve(unsigned kind)
{
	switch (kind % 5) {
	case 0:
		spin(50);
		break;
	case 1:
		spin(400);
		nap(300);
		break;
	case 2:
		nap(1500);
		spin(30);
		break;
	case 3:
		spin(3000);
		break;
	default:
		spin(10);
		sched_yield();
	}
}

static void *worker(void *arg)
{
	long id = (long)arg;
	unsigned state = id * 77 + 5;
	char request;

	setpriority(PRIO_PROCESS, syscall(SYS_gettid), (int)(id % 4) * 3);
	while (read(requests[id][0], &request, 1) == 1) {
		serve(next(&state));
		if (write(done[1], &request, 1) < 0)
			return NULL;
	}
	return NULL;
}

static void *client(void *arg)
{
	unsigned state = (long)arg * 31 + 9;
	char answer;

	while (!stop) {
		int count = 1 + next(&state) % 4;

		for (int i = 0; i < count; i++)
			if (write(requests[next(&state) % workers][1], "r", 1) < 0)
				return NULL;
		for (int i = 0; i < count; i++)
			if (read(done[0], &answer, 1) < 0)
				return NULL;
		if (next(&state) % 3 == 0)
			nap(next(&state) % 4000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int seconds = argc > 2 ? atoi(argv[2]) : 3;
	pthread_t thread;

	workers = argc > 1 ? atoi(argv[1]) : 6;
	if (workers < 1 || workers > MOST_WORKERS || pipe(done)) {
		fprintf(stderr, "usage: server WORKERS SECONDS, with 1 to %d workers\n", MOST_WORKERS);
		return 2;
	}
	for (long id = 0; id < workers; id++)
		if (pipe(requests[id]) || pthread_create(&thread, NULL, worker, (void *)id))
			return 1;
	for (long id = 0; id < CLIENTS; id++)
		if (pthread_create(&thread, NULL, client, (void *)id))
			return 1;
	for (int i = 0; i < seconds * 10; i++) {
		nap(100000);
		spin(200);
	}
	stop = 1;
	nap(20000);
	_exit(0);
}
