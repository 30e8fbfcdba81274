/*
 * Without root. Each job then has a user namespace of its own, in which its child has all the rights that the set-up needs, and
 * nowhere else. Who the job is depends on what the host gives the launcher's user:
 *
 *   subordinate ids  newuidmap, newgidmap and lines in /etc/subuid and /etc/subgid: inside, 0 is the launcher's user, which owns
 *                    what the set-up makes, and the job is an id of its own out of the range
 *   one id           otherwise: the job is the launcher's user, whose supplementary groups cannot be dropped
 *
 * Device nodes are shown instead of made, and nothing holds the job back from a node that it was granted: devices are controlled
 * by absence. BPF is out of reach, so nothing is counted.
 */
#ifndef SANDBUS_ROOTLESS_H
#define SANDBUS_ROOTLESS_H

#include "fault.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A range of subordinate ids; count 0: none. */
struct id_range {
    uint32_t first, count;
};

struct rootless {
    bool active; /* false: root, without a user namespace */
    uid_t uid;   /* of the launcher */
    gid_t gid;
    struct id_range uids, gids;
};

/* Finds out what there is. */
void rootless_open(struct rootless *rootless);
bool rootless_has_ids(const struct rootless *rootless);
/* The ids of the job with this number. */
void rootless_choose(const struct rootless *rootless, uint64_t number, uid_t *uid, gid_t *gid);
/* Gives the namespace of this new process its subordinate ids, from outside. */
bool rootless_map(const struct rootless *rootless, pid_t child, uid_t uid, gid_t gid, struct fault *fault);
/* Gives the caller's own new namespace its one id, from within. */
bool rootless_map_one(const struct rootless *rootless, uid_t uid, gid_t gid, struct fault *fault);
/* What to do where the host gives no user namespace, or one without rights. */
const char *rootless_mend(void);

#endif
