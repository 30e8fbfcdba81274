/* The controls that check-host looks at, in the order in which it shows them. */
#ifndef SANDBUS_HOST_CONTROLS_H
#define SANDBUS_HOST_CONTROLS_H

#include "fault.h"
#include "job.h"

#include <stdbool.h>
#include <stddef.h>

/* What the checks share. */
struct host {
    struct supervisor supervisor; /* its groups are open once the cgroup check has passed */
    struct cgroup_job group;      /* a group to try limits on */
};

struct host_finding {
    bool ok;
    char detail[256];   /* where it is ok */
    struct fault fault; /* where it is not */
};

struct host_control {
    const char *name;
    bool required;
    bool (*check)(struct host *host, struct host_finding *finding);
};

enum { HOST_CONTROLS_MAX = 24 };
extern const struct host_control host_controls[];
extern const size_t host_control_count;

void host_open(struct host *host);
void host_close(struct host *host);

#endif
