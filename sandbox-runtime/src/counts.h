/*
 * Which system calls a job made, exactly, and which programs it executed: a BPF program, on the raw tracepoints sys_enter
 * and sched_process_exec, that looks the caller's cgroup2 group up. It is loaded once, and attached only while a job runs, since
 * every system call of every process on the host passes through it.
 *
 * Counted is what the plugin's processes do, from the execve that starts the plugin (itself included) to the end. The job's
 * init and what its child does before that execve are left out. Refused calls never reach sys_enter; the record adds them.
 */
#ifndef SANDBUS_COUNTS_H
#define SANDBUS_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct counts;
struct json_writer;
struct notify;

/* Belongs to the caller. slot is -1 where nothing is counted; then reason says why. */
struct counts_job {
    uint64_t group;
    int slot;
    const char *reason;
};

/* Where BPF or a capability is missing, all its jobs are "unavailable", with the reason; so they are with NULL, which means that
 * memory is missing. At most `most_jobs` are counted at once. */
struct counts *counts_load(unsigned most_jobs);
void counts_unload(struct counts *counts);
/* Gives back what only loading needed: when nobody waits, since that takes a while. */
void counts_settle(struct counts *counts);
/* Why nothing can be counted, or NULL. */
const char *counts_unavailable(const struct counts *counts);

/* Counts what happens in this group from now on. Call it when the job's init is in the group (or will be its first process)
 * and has not yet forked: the first process that makes a call is taken for init. -1 for a job without a cgroup2 group. */
void counts_begin(struct counts *counts, struct counts_job *job, int cgroup2_dir);

/* Write the values of "syscalls" and "executions", after the last process is gone and before counts_end. Times are relative
 * to `origin_us` of the monotonic clock. `notify` adds the refused calls; it may be NULL. */
void counts_write_syscalls(const struct counts *counts, const struct counts_job *job, const struct notify *notify,
                           struct json_writer *json);
void counts_write_executions(const struct counts *counts, const struct counts_job *job, uint64_t origin_us,
                             struct json_writer *json);

/* Forgets the job. The programs stay attached until counts_rest finds no job: a launcher that expects the next job soon calls
 * it from its idle timer, `run` at its end. */
void counts_end(struct counts *counts, struct counts_job *job);
void counts_rest(struct counts *counts);

#endif
