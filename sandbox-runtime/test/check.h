/* The one check of the tests that call the launcher's parts directly. A test ends with failures as its verdict. */
#pragma once

#include <errno.h>
#include <stdio.h>

#define CHECK(condition) check((condition), #condition, __LINE__)

static int failures;

/* Counts a condition that does not hold, and says which and where. */
static inline void check(int holds, const char *what, int line)
{
    if (holds)
        return;
    failures++;
    printf("not ok: line %d: %s (errno %d)\n", line, what, errno);
}
