/*
 * The job's side: the child that becomes PID 1 of the job (init), sets the sandbox up from within, and starts the plugin.
 *
 *   inside.c           the ordered list of steps: read it first
 *   inside_root.c      the root file system: binds, /tmp, /job, pivot
 *   inside_proc.c      /proc and /sys, and what covers parts of them
 *   inside_dev.c       /dev
 *   inside_files.c     what is written into it: /etc, the plugin, inputs
 *   inside_identity.c  who the job is: user, capabilities, limits, filter
 *   inside_landlock.c  where it may write, once more
 *   init.c             PID 1 once the plugin runs
 */
#ifndef SANDBUS_INSIDE_H
#define SANDBUS_INSIDE_H

#include "cgroup.h"
#include "devices.h"
#include "fault.h"
#include "rootless.h"
#include "spec.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Where the job's network namespace comes from. */
enum inside_network {
    NETWORK_OWN,   /* the child makes it */
    NETWORK_GIVEN, /* the supervisor has made it meanwhile, and sends it with the groups */
    NETWORK_HOST,  /* none */
};

/* All that the child needs. It lives in the supervisor's memory, which the child has a copy of. */
struct inside {
    const struct job_spec *spec; /* NULL in a prepared child, until the job step */
    enum inside_network network;
    int group_count;                   /* version 1 groups to join */
    bool born_in_group;                /* what it uses is counted from the start; else from joining on */
    struct rusage before_joining;
    uint64_t tmp_size_bytes;           /* of the job's file system; a prepared child's may get another size with its job */
    uint64_t ordered_us;               /* when a prepared child got its job */
    const struct device_grant *grants; /* nodes to make in /dev */
    size_t grant_count;
    const struct rootless *rootless;
    uid_t uid;    /* of the job */
    gid_t gid;    /* as root the same number */
    int report;   /* packet socket to the supervisor */
    int stdio[3]; /* the job's ends of the pipes */
    int origin;   /* set by origin: the launcher's working directory, where relative paths of the host begin */
    int plugin;   /* the host's file, opened by the supervisor */
    int *sources; /* in a prepared child: trees of the binds, then files of the inputs, opened by the supervisor */
    int landlock; /* set by landlock-rules; -1: the kernel has none */
    int mounts;   /* set by private-mounts: the mount namespace */
    int job_dir;  /* set by job-directory where outputs are collected: /job, open */
    int listener; /* set by the filter step */
};

/* A step does one thing, or fills in the fault and returns false. Its name appears in the result: as the step of a
 * setup-failed, and in `timings`. */
struct inside_step {
    const char *name;
    bool (*run)(struct inside *inside, struct fault *fault);
};

/* The mend of a step that makes or mounts something. */
#define ROOT_MEND "run as root, or in a user namespace with CAP_SYS_ADMIN; see: launcher check-host"

extern const struct inside_step inside_steps[];
extern const unsigned inside_step_count;

/* Runs in the new child and never returns: set-up, then init. */
_Noreturn void inside_main(struct inside *inside);
/* PID 1's life after the set-up (init.c). */
_Noreturn void init_main(struct inside *inside);

/* The words that `ps` shows for this process are overwritten in the child: they tell paths of the host. */
void inside_remember_title(int count, char **words);

bool inside_user_namespace(struct inside *inside, struct fault *fault);
bool inside_namespaces(struct inside *inside, struct fault *fault);
bool inside_join_cgroups(struct inside *inside, struct fault *fault);
bool inside_open_origin(struct inside *inside, struct fault *fault);
bool inside_close_descriptors(struct inside *inside, struct fault *fault);
bool inside_signals(struct inside *inside, struct fault *fault);
bool inside_new_cgroup_namespace(struct inside *inside, struct fault *fault);
bool inside_private_mounts(struct inside *inside, struct fault *fault);
bool inside_root(struct inside *inside, struct fault *fault);
bool inside_system_binds(struct inside *inside, struct fault *fault);
bool inside_etc(struct inside *inside, struct fault *fault);
bool inside_protect_binds(struct inside *inside, struct fault *fault);
bool inside_dev(struct inside *inside, struct fault *fault);
bool inside_await_job(struct inside *inside, struct fault *fault);
bool inside_job_tmpfs(struct inside *inside, struct fault *fault);
bool inside_job_directory(struct inside *inside, struct fault *fault);
bool inside_proc(struct inside *inside, struct fault *fault);
bool inside_sys(struct inside *inside, struct fault *fault);
bool inside_ro_binds(struct inside *inside, struct fault *fault);
bool inside_plugin(struct inside *inside, struct fault *fault);
bool inside_inputs(struct inside *inside, struct fault *fault);
bool inside_read_only(struct inside *inside, struct fault *fault);
bool inside_masks(struct inside *inside, struct fault *fault);
bool inside_prepared_pivot(struct inside *inside, struct fault *fault);
bool inside_pivot(struct inside *inside, struct fault *fault);
bool inside_hostname(struct inside *inside, struct fault *fault);
bool inside_loopback(struct inside *inside, struct fault *fault);
bool inside_keyring(struct inside *inside, struct fault *fault);
bool inside_resource_limits(struct inside *inside, struct fault *fault);
bool inside_stdio(struct inside *inside, struct fault *fault);
bool inside_bounding_set(struct inside *inside, struct fault *fault);
bool inside_identity(struct inside *inside, struct fault *fault);
bool inside_capabilities(struct inside *inside, struct fault *fault);
bool inside_death_signal(struct inside *inside, struct fault *fault);
bool inside_no_new_privileges(struct inside *inside, struct fault *fault);
bool inside_landlock_rules(struct inside *inside, struct fault *fault);
bool inside_landlock(struct inside *inside, struct fault *fault);
bool inside_filter(struct inside *inside, struct fault *fault);

/* The kernel's Landlock ABI, 0 where it has none that jobs can use. */
int inside_landlock_abi(void);

/* Opens a regular file of the host; a relative path begins at the directory `origin`. Nothing else is read: a fifo would block,
 * a device would never end. -1 with a fault. */
int inside_open_regular(int origin, const char *path, struct fault *fault);
/* A copy of a piece of the host's mount tree, read-only and attached nowhere. -1 with a fault. */
int inside_open_tree(const char *source, struct fault *fault);
/* A directory or file below the new root, made where it is missing, as a descriptor for mounting on (O_PATH).
 * `path` is relative; symbolic links in it stay inside the new root. */
int inside_make_point(const char *path, bool directory);
/* Shows `source` of the host at `path` with these attributes (MOUNT_ATTR_*) and everything mounted below it. */
bool inside_bind(const char *source, const char *path, uint64_t attributes, struct fault *fault);
/* Shows `source` of the host, if it exists, at `path`, which is not there yet, with everything mounted below it. */
bool inside_bind_new(const char *source, const char *path, struct fault *fault);

#endif
