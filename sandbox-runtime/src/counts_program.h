/* What the counting program and their reader share. Only counts*.c include it. */
#ifndef SANDBUS_COUNTS_PROGRAM_H
#define SANDBUS_COUNTS_PROGRAM_H

#include "counts.h"

#include <stdint.h>

enum {
    COUNTS_NUMBERS = 512, /* system calls; the filter lets no higher number through */
    COUNTS_STRIPES = 8,   /* copies of the tallies, by CPU, so that threads of a job do not fight over cache lines */
    COUNTS_EXECUTIONS = 256,
    COUNTS_PATH_SIZE = 256,
};

struct counts_execution {
    uint64_t at_ns;
    char path[COUNTS_PATH_SIZE];
    char interpreter[COUNTS_PATH_SIZE]; /* what the kernel loads in the end: differs from path for scripts */
};

/* One job's; an element of an array that the launcher maps into its memory. */
struct counts_slot {
    uint64_t init;       /* thread group of the job's init; 0 until it makes its first call */
    uint64_t started;    /* the plugin's execve has succeeded */
    uint64_t executions; /* all of them; the first COUNTS_EXECUTIONS are kept */
    uint64_t tallies[COUNTS_STRIPES][COUNTS_NUMBERS];
    struct counts_execution entries[COUNTS_EXECUTIONS];
};

/* The slot of a job that is counted. */
const struct counts_slot *counts_slot_of(const struct counts *counts, const struct counts_job *job);

/* `jobs` maps a group's id (64 bits) to the index of its slot (32 bits) in `slots`; the offsets are those of struct linux_binprm's
 * members. Returns a program for both tracepoints, or -1 with errno. */
int counts_program_load(int jobs, int slots, int filename_offset, int interp_offset);

#endif
