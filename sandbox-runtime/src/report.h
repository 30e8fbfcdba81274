/*
 * What the job's child tells the supervisor, packet by packet, through a socket that the plugin never gets: that the sandbox
 * is ready (with descriptors), that a step failed, how the plugin ended. The other way go the job's groups, to a prepared child
 * its job, and one byte, go: the supervisor has done its part. Neither waits for the other's last word: what READY brings is
 * used when it is there, and the go mostly lies there when the child comes to it.
 */
#ifndef SANDBUS_REPORT_H
#define SANDBUS_REPORT_H

#include "cgroup.h"
#include "fault.h"

#include <stdbool.h>
#include <stdint.h>

struct job_spec;

enum { REPORT_STEPS_MAX = 40, REPORT_DESCRIPTORS_MAX = 3, REPORT_SOURCES_MAX = 200, REPORT_GROUPS_MAX = CGROUP_HIERARCHIES + 1 };

enum report_kind {
    REPORT_READY, /* times are filled; descriptors: the filter's listener, the mounts, /job where outputs are collected */
    REPORT_FAULT,  /* fault is filled */
    REPORT_EXITED, /* status is the plugin's wait status */
};

struct report {
    uint32_t kind;
    int32_t status;
    uint64_t begun_us; /* when the child began to work for the job */
    uint64_t ready_us;
    uint64_t user_us, system_us; /* processor time so far, as far as the job's groups counted it */
    uint32_t step_us[REPORT_STEPS_MAX];
    struct fault fault;
};

/* Sends a report with `count` descriptors. */
bool report_send(int socket, const struct report *report, const int *descriptors, unsigned count);
/* Receives one without waiting; descriptors that did not come are -1. Returns 1, 0 at the end of the stream, -1 with
 * errno (EAGAIN: nothing there). */
int report_receive(int socket, struct report *report, int descriptors[REPORT_DESCRIPTORS_MAX]);

/* Gives a prepared child its job: the specification, in memory that both have, and at most REPORT_SOURCES_MAX descriptors. */
bool report_send_order(int socket, const struct job_spec *spec, const int *sources, unsigned count);
/* Waits for it. False when the supervisor is gone. */
bool report_await_order(int socket, const struct job_spec **spec, int *sources, unsigned most);

/* Lets the child into the job's groups, through at most REPORT_GROUPS_MAX files (cgroup_job_tasks). */
bool report_send_groups(int socket, const int *tasks, unsigned count);
/* Waits for that; returns how many files came, -1 when the supervisor is gone. */
int report_await_groups(int socket, int tasks[REPORT_GROUPS_MAX]);

bool report_send_go(int socket);
/* Waits for the supervisor's go. False when it is gone. */
bool report_await_go(int socket);

#endif
