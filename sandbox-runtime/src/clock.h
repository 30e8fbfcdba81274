/* Monotonic time in microseconds: the only clock that limits and timings use. */
#ifndef SANDBUS_CLOCK_H
#define SANDBUS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

#endif
