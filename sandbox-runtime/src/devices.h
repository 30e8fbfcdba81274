/*
 * Which device nodes a job may open, and how often it did.
 *
 * One BPF program, loaded once, sits on the cgroup2 directory of each job and looks its rules up by the job's group. What no
 * rule names is denied, and so is everything in a group that has no rules yet. Where there is no cgroup2, the devices
 * controller of version 1 takes the same rules, and cannot count.
 *
 * A node that was not granted does not exist inside, so its open fails with ENOENT before anything here is asked; this is the
 * lock behind that one. The kernel asks for each open, and for access(2) too; after the node's own permission bits.
 */
#ifndef SANDBUS_DEVICES_H
#define SANDBUS_DEVICES_H

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICE_PATH_SIZE = 128, DEVICE_GRANTS = 128 };

/* Bits as in struct bpf_cgroup_dev_ctx. */
enum device_access { DEVICE_MKNOD = 1, DEVICE_READ = 2, DEVICE_WRITE = 4 };

struct device_grant {
    const char *path; /* as the job sees it; must outlive the job */
    char type;        /* 'c' or 'b' */
    uint32_t major, minor;
    unsigned access; /* of enum device_access */
};

struct devices;
struct json_writer;

/* A job's rules in force; belongs to the caller. */
struct devices_job {
    uint64_t group; /* the id of its cgroup2 directory; 0: no rules are in force */
    const struct device_grant *grants;
    size_t grant_count;
};

/* Fills a grant from a node on the host. `letters` are some of "rwm"; NULL or "" is "rw". */
bool devices_resolve(struct device_grant *grant, const char *path, const char *letters, struct fault *fault);

/* Loads the program, with room for the rules of so many jobs at once. NULL with a fault. */
struct devices *devices_load(unsigned most_jobs, struct fault *fault);
void devices_unload(struct devices *devices);

/* Puts the basics (null, zero, full, random, urandom, tty, ptmx, pts) and the grants in force on a job's directory, before
 * the job has a process of its own. `grants` must outlive the job. */
bool devices_begin(struct devices *devices, struct devices_job *job, int cgroup2_dir, const struct device_grant *grants,
                   size_t grant_count, struct fault *fault);

/* Writes the value of "devices": {"available":true,"granted":[paths],"accesses":[{"device":path|"other","type","major",
 * "minor","allowed","denied"}]}: all grants, and of the rest what was used. "other" is the first node that no rule names,
 * with the denials of all such. Call it after the last process is gone, before devices_end. */
void devices_write_json(const struct devices *devices, const struct devices_job *job, struct json_writer *json);
/* The same where nothing can be counted. */
void devices_write_unavailable(struct json_writer *json, const char *reason);

/* Forgets the job's rules; the program goes with the directory. Harmless without devices_begin. */
void devices_end(struct devices *devices, struct devices_job *job);

/* The same rules on a directory of the version 1 devices controller. */
bool devices_limit_v1(int devices_dir, const struct device_grant *grants, size_t grant_count, struct fault *fault);

#endif
