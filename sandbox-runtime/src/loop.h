/*
 * One epoll loop. A watch is a descriptor, the events it waits for and what to call; it lives inside whatever owns it.
 * Files that epoll does not take, because they never block, count as ready at every turn.
 */
#ifndef SANDBUS_LOOP_H
#define SANDBUS_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

struct watch {
    int fd;            /* -1: closed */
    uint32_t events;   /* waited for now; 0: not watched */
    bool always_ready; /* epoll refused it */
    void (*ready)(struct watch *watch, uint32_t events);
    void *owner;
};

enum { LOOP_BATCH = 64, LOOP_ALWAYS_MAX = 1024 + 16 };

struct loop {
    int epoll;
    struct epoll_event batch[LOOP_BATCH];
    int batch_count;
    struct watch *always[LOOP_ALWAYS_MAX];
    size_t always_count;
};

bool loop_open(struct loop *loop);
void loop_close(struct loop *loop);

void watch_init(struct watch *watch, int fd, void (*ready)(struct watch *, uint32_t), void *owner);
/* Waits for these events from now on; 0 for none at all, not even hang-up. */
bool loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
/* Stops watching and closes the descriptor. Events already fetched for it are dropped. */
void loop_forget(struct loop *loop, struct watch *watch);

/* Waits until something is ready or the time has come (microseconds on the monotonic clock), then calls what is ready. False where
 * nothing was. */
bool loop_turn(struct loop *loop, uint64_t until_us);

#define LOOP_FOREVER UINT64_MAX
/* For watches that want to hear of errors and hang-ups only. */
#define LOOP_ONLY_ERRORS EPOLLERR

#endif
