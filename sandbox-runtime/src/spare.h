/*
 * What the next job needs whatever it will be: its groups, and a network namespace with loopback up, which is the dearest part
 * of a sandbox. `serve` prepares it while the job before sets itself up or runs. Each is used once, so nothing has ever run in
 * it. Without one a job makes its own, as with `run`.
 */
#ifndef SANDBUS_SPARE_H
#define SANDBUS_SPARE_H

#include "cgroup.h"

#include <stdbool.h>

struct spare {
    int host_network; /* the launcher's own namespace; -1: nothing is prepared */
    int network;
    bool has_groups;
    struct cgroup_job groups;
};

void spare_init(struct spare *spare);
/* From now on spare_prepare does something. */
void spare_open(struct spare *spare);
void spare_close(struct spare *spare);
/* Makes what is missing. What cannot be made is left to the job, whose failure says why. */
void spare_prepare(struct spare *spare, const struct cgroup_host *cgroups);

/* The descriptor of a namespace, which is then the caller's; -1: there is none. */
int spare_take_network(struct spare *spare);
bool spare_take_groups(struct spare *spare, struct cgroup_job *groups);

/* Brings the loopback device of this process's network namespace up. False with errno. */
bool spare_loopback_up(void);

#endif
