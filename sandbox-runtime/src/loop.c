#include "loop.h"

#include "clock.h"

#include <errno.h>
#include <unistd.h>

bool loop_open(struct loop *loop)
{
    *loop = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    return loop->epoll >= 0;
}

void loop_close(struct loop *loop)
{
    close(loop->epoll);
    loop->epoll = -1;
}

void watch_init(struct watch *watch, int fd, void (*ready)(struct watch *, uint32_t), void *owner)
{
    *watch = (struct watch){.fd = fd, .ready = ready, .owner = owner};
}

static void drop_always(struct loop *loop, struct watch *watch)
{
    for (size_t i = 0; i < loop->always_count; i++)
        if (loop->always[i] == watch)
            loop->always[i] = loop->always[--loop->always_count];
}

static bool add_always(struct loop *loop, struct watch *watch)
{
    if (loop->always_count == LOOP_ALWAYS_MAX)
        return false;
    loop->always[loop->always_count++] = watch;
    return true;
}

bool loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
    uint32_t before = watch->events;
    if (before == events || watch->fd < 0)
        return true;
    watch->events = events;
    if (watch->always_ready) {
        if (!events)
            drop_always(loop, watch);
        return before || !events || add_always(loop, watch);
    }
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int operation = !events ? EPOLL_CTL_DEL : before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(loop->epoll, operation, watch->fd, &event) == 0)
        return true;
    if (errno != EPERM) {
        watch->events = before;
        return false;
    }
    watch->always_ready = true;
    return add_always(loop, watch);
}

void loop_forget(struct loop *loop, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    loop_watch(loop, watch, 0);
    for (int i = 0; i < loop->batch_count; i++)
        if (loop->batch[i].data.ptr == watch)
            loop->batch[i].data.ptr = NULL;
    close(watch->fd);
    watch->fd = -1;
}

/* Milliseconds to wait, rounded up so that the loop does not spin through the last one. */
static int wait_ms(const struct loop *loop, uint64_t until_us)
{
    if (loop->always_count)
        return 0;
    if (until_us == LOOP_FOREVER)
        return -1;
    uint64_t now_us = clock_now_us();
    uint64_t left_ms = until_us <= now_us ? 0 : (until_us - now_us + 999) / 1000;
    return left_ms > 3600000 ? 3600000 : (int)left_ms;
}

bool loop_turn(struct loop *loop, uint64_t until_us)
{
    loop->batch_count = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, wait_ms(loop, until_us));
    bool any = loop->batch_count > 0 || loop->always_count;
    for (int i = 0; i < loop->batch_count; i++) {
        struct watch *watch = loop->batch[i].data.ptr;
        if (watch && watch->events)
            watch->ready(watch, loop->batch[i].events);
    }
    loop->batch_count = 0;
    for (size_t i = loop->always_count; i-- > 0;)
        if (i < loop->always_count)
            loop->always[i]->ready(loop->always[i], loop->always[i]->events);
    return any;
}
