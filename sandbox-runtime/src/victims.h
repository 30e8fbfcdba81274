/*
 * Which processes the kernel's OOM killer took, by a BPF program on the tracepoint oom/mark_victim, which the kernel passes so
 * rarely that it stays attached. The kernel tells the victim as a task since Linux 6.8; before that nothing is known.
 *
 * The job is that of the process whose allocation failed: with a job's own memory limit it is one of the job's.
 */
#ifndef SANDBUS_VICTIMS_H
#define SANDBUS_VICTIMS_H

#include <stdint.h>

struct victims;
struct json_writer;

/* NULL where the kernel gives no way to know, or no memory. */
struct victims *victims_load(void);
void victims_unload(struct victims *victims);

/* Writes an array of {"program","pid"}, in order, at most 16: the name of the process (comm, 15 bytes) and its number in the job.
 * Empty with NULL. `group` is the id of the job's cgroup2 directory. */
void victims_write_json(const struct victims *victims, uint64_t group, struct json_writer *json);

#endif
