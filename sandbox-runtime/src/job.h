/*
 * One job, from set-up to result, as a state machine on the supervisor's loop.
 *
 *   supervisor.c    what all jobs share, and the turn of the loop
 *   job_setup.c     the supervisor's ordered list of set-up steps; the child's own list is inside.c
 *   job_prepare.c   what can be done before the job is known
 *   job_remove.c    what is left of jobs that have ended: their groups
 *   job.c           what happens while it runs
 *   job_end.c       how it ends
 *   job_accounts.c  devices, system calls and executions, by BPF
 *   outputs.c       collecting /job/out
 *   result.c        the JSON record
 *
 *   SETTING_UP ──ready, go──▶ RUNNING ──any end──▶ ENDING ──init reaped──▶ CLEARING ──groups gone──▶ FINISHING ──▶ DONE
 *        └────────────fault, time-out, cancel────────┘        the tree has been killed     outputs, last bytes
 */
#ifndef SANDBUS_JOB_H
#define SANDBUS_JOB_H

#include "cgroup.h"
#include "counts.h"
#include "devices.h"
#include "fault.h"
#include "inside.h"
#include "json.h"
#include "loop.h"
#include "notify.h"
#include "outcome.h"
#include "report.h"
#include "spec.h"
#include "stream.h"
#include "victims.h"

/* How much a job may have of what is set in the kernel. */
struct job_extent {
    struct cgroup_limits limits; /* 0: not set */
    uint64_t tmp_size_bytes;
};

/* What all jobs of one launcher process share. */
struct supervisor {
    struct loop loop;
    struct rootless rootless;
    struct cgroup_host cgroups;
    struct devices *devices; /* from the first job on; NULL: the host has no cgroup2 */
    struct counts *counts;   /* from the first job on */
    struct victims *victims; /* from the first spare time on, where the kernel tells */
    bool victims_sought;
    unsigned most_jobs;
    struct job *jobs; /* linked by `next`: those that were started and not freed */
    struct removal *removals;
    bool swept;                /* what dead launchers left has been removed */
    bool prepares;             /* whether to have a child ready for the next job */
    bool prepare_failed;       /* the last time */
    struct job *prepared;      /* that child; NULL: none */
    bool hurried;              /* the last job came without a pause in which a child could have been made */
    uint64_t last_done_us;     /* when a job was last done */
    uint64_t prepared_us;      /* when it was made, or making one failed */
    struct job_extent extent; /* what the last job asked for: the next is likely to ask for the same */
};

/* Checks the host and opens what jobs need. */
bool supervisor_open(struct supervisor *supervisor, unsigned most_jobs, struct fault *fault);
/* One turn of the loop for all jobs: waits for events until `until_us` at the latest, and for the jobs' own deadlines. Where there
 * are none, it does one piece of work that nobody waits for: removes the groups of an ended job, or prepares a child. */
void supervisor_turn(struct supervisor *supervisor, uint64_t until_us);
void supervisor_close(struct supervisor *supervisor);
/* Whether the launcher itself is free of seccomp filters. */
bool supervisor_check_outer_filter(struct fault *fault);

enum job_state { JOB_SETTING_UP, JOB_RUNNING, JOB_ENDING, JOB_CLEARING, JOB_FINISHING, JOB_DONE };

enum { JOB_SETUP_STEPS_MAX = 24 };

struct job {
    struct job *next;
    struct supervisor *supervisor;
    struct job_spec *spec;
    enum job_state state;

    struct cgroup_job cgroup;
    struct inside inside;
    pid_t init;
    struct watch process; /* pidfd of init */
    struct watch report;
    struct watch listener;
    struct watch oom;
    struct notify *notify;
    struct devices_job devices;
    struct counts_job counts;
    struct json_writer accounts; /* members "syscalls", "executions", "oomVictims", "devices" */

    struct input input;
    struct output outputs[2]; /* standard output, standard error */
    bool was_prepared;        /* its groups, pipes and child were there before it */
    struct job_extent extent; /* as it was set */
    struct arena shared;      /* then: memory that the child sees too, with the specification in it */
    const struct job_spec *shared_spec;
    int stdin_file;           /* --stdin, open; -1: none */
    int pipe_in, pipe_out[2]; /* the launcher's ends, until the streams own them */

    enum outcome outcome;
    int wait_status; /* of the plugin */
    bool plugin_ended;
    struct fault fault;

    uint64_t created_us, started_us, ended_us, reaped_us, cleared_us, done_us;
    uint64_t wall_deadline_us, cpu_check_us, clear_retry_us, end_deadline_us;
    struct cgroup_usage before; /* what the set-up used; CPU time only */
    struct cgroup_usage usage;
    unsigned child_step;  /* index in setup_steps of the one after which the child works for the job */
    uint64_t child_at_us; /* when that was */
    uint64_t go_us;       /* when the supervisor had done its part */
    uint32_t setup_us[JOB_SETUP_STEPS_MAX];
    uint32_t inside_us[REPORT_STEPS_MAX];

    int collect_dir;        /* where outputs go; -1: nowhere */
    int user_namespace;     /* rootless: the job's, in which its outputs can be read; else -1 */
    int job_dir;            /* /job of the job, open, where outputs are collected */
    int network;            /* its network namespace, until the child is in it */
    int mounts;             /* its mount namespace, held so that init's end does not take it apart */
    struct watch collector; /* pipe from the collecting process */
    pid_t collector_pid;
    struct json_writer collected; /* members "files" and "skipped" */
};

/* Makes a child for the next job (job_prepare.c), a new one where it has become old. What fails here is left to the job, whose
 * own failure says why. */
void job_prepare(struct supervisor *supervisor);
/* When job_prepare should be called: LOOP_FOREVER while there is a child, or none is wanted. */
uint64_t job_prepare_due_us(const struct supervisor *supervisor);
/* Ends the prepared child. */
void job_unprepare(struct supervisor *supervisor);
/* The first steps of a set-up: takes the prepared child where it is fit for the job, and later gives it the job. */
bool job_take_prepared(struct job *job, struct fault *fault);
bool job_order(struct job *job, struct fault *fault);
/* The steps that it has already taken (job_setup.c). */
bool job_make_group(struct job *job, struct fault *fault);
bool job_make_groups(struct job *job, struct fault *fault);
bool job_limit_memory(struct job *job, struct fault *fault);
bool job_limit_cpu(struct job *job, struct fault *fault);
bool job_limit_processes(struct job *job, struct fault *fault);
bool job_admit_child(struct job *job, struct fault *fault);
bool job_choose_user(struct job *job, struct fault *fault);
bool job_make_pipes(struct job *job, struct fault *fault);
bool job_clone_child(struct job *job, struct fault *fault);

struct setup_step {
    const char *name;
    bool (*run)(struct job *job, struct fault *fault);
};
extern const struct setup_step setup_steps[];
extern const unsigned setup_step_count;
/* Runs the list. False with job->fault set. */
bool job_setup(struct job *job);

/* An empty job, which job_free may be called for. */
void job_init(struct job *job, struct supervisor *supervisor, struct job_spec *spec);
/* Starts a job. Its input comes from --stdin, else from stdin_fd (-1: none, INPUT_IS_FED: input_feed), its output goes to the
 * sinks. A failure is an outcome like any other: call supervisor_turn until job->state is JOB_DONE. Then the result is final;
 * whoever wants the rest of the output goes on until it is delivered. */
void job_start(struct job *job, struct supervisor *supervisor, struct job_spec *spec, int stdin_fd,
               struct sink *sinks[2]);
/* Ends the job: kills the whole tree. The first reason given stays. */
void job_end(struct job *job, enum outcome outcome);
/* The user wants no more of it: ends the job, and gives up output that nobody takes. */
void job_cancel(struct job *job);
/* Whether the sinks have taken all of its output. */
bool job_is_delivered(const struct job *job);
/* When job_tick wants to be called next, at the latest. */
uint64_t job_next_deadline_us(const struct job *job);
void job_tick(struct job *job, uint64_t now_us);
/* The part of job_tick that belongs to the end (job_end.c). */
void job_end_tick(struct job *job, uint64_t now_us);
/* Gives everything back. */
void job_free(struct job *job);

/* The events of the set-up's descriptors (job.c), for job_setup.c to attach. */
void job_process_ready(struct watch *watch, uint32_t events);
void job_report_ready(struct watch *watch, uint32_t events);
void job_oom_ready(struct watch *watch, uint32_t events);

/* Gives the groups and mounts of a job that is over to the supervisor, which removes them when it has time (job_remove.c). */
void job_leave_remains(struct job *job);
/* Once for each launcher: kills and removes what dead ones left. */
void supervisor_sweep(struct supervisor *supervisor);
/* When the next try is due; tries with one; waits until all are gone. */
uint64_t removals_due_us(const struct supervisor *supervisor);
void removals_try(struct supervisor *supervisor, uint64_t now_us);
void removals_finish(struct supervisor *supervisor);

/* Loads the BPF programs, and unloads them (job_accounts.c). */
bool accounts_open(struct supervisor *supervisor, unsigned most_jobs, struct fault *fault);
void accounts_close(struct supervisor *supervisor);
/* What is not needed before a job has run for a while: who is told of an OOM's victims. */
void accounts_seek_victims(struct supervisor *supervisor);
/* Steps of the set-up: the first before the child is made, the others beside it. */
bool accounts_find_devices(struct job *job, struct fault *fault);
bool accounts_ready(struct job *job, struct fault *fault);
bool accounts_limit_devices(struct job *job, struct fault *fault);
bool accounts_count(struct job *job, struct fault *fault);
/* Writes down what they counted, and ends them for this job. */
void accounts_take(struct job *job);

/* Starts copying the regular files below /job/out in a process of its own (outputs.c). False with errno. */
bool outputs_start(struct job *job);
void outputs_kill(struct job *job);

/* Writes the result object (result.c). */
void result_write(const struct job *job, struct json_writer *json);
/* The result of a job that never was: bad options, or a host that gives no sandbox. */
void result_write_fault(const struct fault *fault, struct json_writer *json);
/* The names of the namespaces that a job gets, as an array. */
void result_write_namespaces(bool user, bool network_host, struct json_writer *json);
/* What `launcher run` exits with. */
int result_exit_code(const struct job *job);

#endif
