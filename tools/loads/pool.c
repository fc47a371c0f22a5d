/*
 * A load for recordings: `pool WORKERS SECONDS SEED`. Threads wait for work on one condition variable; a dispatcher hands out
 * jobs of several lengths, and changes the affinity of the workers and of itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static unsigned waiting_jobs, rounds, ended;
static uint64_t seed;

static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!ended) {
		if (!waiting_jobs) {
			pthread_cond_wait(&work, &lock);
			continue;
		}
		if (!--waiting_jobs)
			pthread_cond_signal(&idle);
		unsigned long n = rounds;
		pthread_mutex_unlock(&lock);
		for (volatile unsigned long i = 0; i < n; i++)
			;
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

/* One CPU, or all. */
static void move(pthread_t thread, unsigned cpus)
{
	unsigned one = draw(cpus + 1);
	cpu_set_t set;
	CPU_ZERO(&set);
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		if (one == cpus || one == cpu)
			CPU_SET(cpu, &set);
	pthread_setaffinity_np(thread, sizeof set, &set);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	pthread_t pool[WORKERS];
	unsigned n = atoi(argv[1]) < WORKERS ? atoi(argv[1]) : WORKERS, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	time_t end = time(0) + atoi(argv[2]);
	seed = atoi(argv[3]);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&pool[i], 0, worker, 0))
			return 1;
	while (time(0) < end) {
		pthread_mutex_lock(&lock);
		rounds = 1000u << draw(9);
		waiting_jobs = 1 + draw(2 * n);
		if (draw(2))
			pthread_cond_broadcast(&work);
		else
			for (unsigned i = draw(n) + 1; i; i--)
				pthread_cond_signal(&work);
		while (waiting_jobs)
			pthread_cond_wait(&idle, &lock);
		pthread_mutex_unlock(&lock);
		if (!draw(3))
			move(pool[draw(n)], cpus);
		if (!draw(12))
			move(pthread_self(), cpus);
		if (!draw(4))
			usleep(draw(4000));
	}
	pthread_mutex_lock(&lock);
	ended = 1;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(pool[i], 0);
	return 0;
}
