/*
 * Theory of operation. A thread that makes a refused call sleeps in the kernel until the supervisor answers. The supervisor
 * polls the listener, receives one notification, counts it in the row that the policy gives it, and answers with that row's
 * error. Arguments are recorded as the registers held them; memory of the job is never read. The first notification of a
 * row also names the program: /proc/<pid>/exe, which is the caller's as long as the notification is still valid afterwards,
 * since its thread cannot go on, nor its number be reused, before the answer.
 */
#include "notify.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "json.h"
#include "policy.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

enum { SAMPLES = 16, PROGRAM_SIZE = 256 };

struct record {
    uint64_t count;
    unsigned arch; /* of the first call, as are the other members */
    int number;
    uint64_t args[6];
    char program[PROGRAM_SIZE]; /* "" where it could not be read */
};

struct notify {
    bool end_at_denial;
    struct seccomp_notif *request; /* of the kernel's size, which may be larger than ours */
    struct seccomp_notif_resp *response;
    size_t request_size, response_size;
    uint64_t unsampled; /* unknown numbers that came when all samples were taken */
    struct record samples[SAMPLES];
    struct record rows[]; /* by the policy's row; that of unknown numbers stays empty */
};

struct notify *notify_new(bool end_at_denial)
{
    struct seccomp_notif_sizes sizes;
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
        return NULL;
    struct notify *notify = calloc(1, sizeof *notify + policy_row_count() * sizeof notify->rows[0]);
    if (!notify)
        return NULL;
    notify->end_at_denial = end_at_denial;
    notify->request_size =
        sizes.seccomp_notif > sizeof *notify->request ? sizes.seccomp_notif : sizeof *notify->request;
    notify->response_size =
        sizes.seccomp_notif_resp > sizeof *notify->response ? sizes.seccomp_notif_resp : sizeof *notify->response;
    notify->request = calloc(1, notify->request_size);
    notify->response = calloc(1, notify->response_size);
    if (notify->request && notify->response)
        return notify;
    notify_free(notify);
    errno = ENOMEM;
    return NULL;
}

void notify_free(struct notify *notify)
{
    if (!notify)
        return;
    free(notify->request);
    free(notify->response);
    free(notify);
}

void notify_tune(int listener_fd)
{
    (void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

static void read_program(int listener_fd, const struct seccomp_notif *request, char program[PROGRAM_SIZE])
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/exe", request->pid);
    ssize_t length = readlink(path, program, PROGRAM_SIZE - 1);
    __u64 id = request->id;
    if (length < 0 || ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0)
        length = 0; /* the caller was killed meanwhile: the link may have been another process's */
    program[length] = '\0';
}

/* The record that counts this call: its row's, or for unknown numbers a sample's. NULL when all samples are taken. */
static struct record *find_record(struct notify *notify, size_t row, int number)
{
    if (row != policy_unknown_row())
        return &notify->rows[row];
    for (size_t i = 0; i < SAMPLES; i++)
        if (!notify->samples[i].count || notify->samples[i].number == number)
            return &notify->samples[i];
    return NULL;
}

static void record_call(struct notify *notify, size_t row, int listener_fd)
{
    const struct seccomp_notif *request = notify->request;
    struct record *record = find_record(notify, row, request->data.nr);
    if (!record) {
        notify->unsampled++;
        return;
    }
    if (record->count++)
        return;
    record->arch = request->data.arch;
    record->number = request->data.nr;
    for (size_t i = 0; i < 6; i++)
        record->args[i] = request->data.args[i];
    read_program(listener_fd, request, record->program);
}

/* A caller that was killed meanwhile (ENOENT) needs no answer. */
static void answer_call(struct notify *notify, int listener_fd, int answer)
{
    memset(notify->response, 0, notify->response_size);
    notify->response->id = notify->request->id;
    notify->response->error = answer;
    (void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, notify->response);
}

static enum notify_verdict serve_one(struct notify *notify, int listener_fd)
{
    memset(notify->request, 0, notify->request_size);
    /* ENOENT: the caller was killed meanwhile */
    if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, notify->request) != 0)
        return errno == EINTR || errno == ENOENT ? NOTIFY_OK : NOTIFY_CLOSED;
    size_t row_number = policy_row_of(notify->request->data.arch, notify->request->data.nr);
    const struct policy_row *row = policy_row(row_number);
    record_call(notify, row_number, listener_fd);
    if (row->kind == POLICY_ABI)
        return NOTIFY_KILL_ABI;
    if (row->kind == POLICY_DENIAL && notify->end_at_denial)
        return NOTIFY_KILL_DENIAL;
    answer_call(notify, listener_fd, row->answer);
    return NOTIFY_OK;
}

enum notify_verdict notify_serve(struct notify *notify, int listener_fd, int budget)
{
    for (; budget > 0; budget--) {
        struct pollfd listener = {.fd = listener_fd, .events = POLLIN};
        int ready = poll(&listener, 1, 0);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            return NOTIFY_OK;
        if (ready < 0 || !(listener.revents & POLLIN))
            return NOTIFY_CLOSED;
        enum notify_verdict verdict = serve_one(notify, listener_fd);
        if (verdict != NOTIFY_OK)
            return verdict;
    }
    return NOTIFY_OK;
}

static bool is_probe(size_t row)
{
    return policy_row(row)->kind == POLICY_PROBE;
}

static uint64_t sum_rows(const struct notify *notify, bool probes)
{
    uint64_t sum = 0;
    for (size_t row = 0; row < policy_row_count(); row++)
        if (is_probe(row) == probes)
            sum += notify->rows[row].count;
    return sum;
}

uint64_t notify_denials(const struct notify *notify)
{
    return sum_rows(notify, false);
}

uint64_t notify_probes(const struct notify *notify)
{
    uint64_t sum = sum_rows(notify, true) + notify->unsampled;
    for (size_t i = 0; i < SAMPLES; i++)
        sum += notify->samples[i].count;
    return sum;
}

static void name_number(char *name, size_t size, int number)
{
    snprintf(name, size, "syscall_%d", number);
}

void notify_each_refused(const struct notify *notify,
                         void (*visit)(void *context, const char *name, int number, uint64_t count), void *context)
{
    for (size_t row = 0; row < policy_row_count(); row++)
        if (notify->rows[row].count && policy_row(row)->kind != POLICY_ABI)
            visit(context, policy_row(row)->syscall, policy_row(row)->number, notify->rows[row].count);
    for (size_t i = 0; i < SAMPLES && notify->samples[i].count; i++) {
        char name[32];
        name_number(name, sizeof name, notify->samples[i].number);
        visit(context, name, notify->samples[i].number, notify->samples[i].count);
    }
    if (notify->unsampled)
        visit(context, "unknown", -1, notify->unsampled);
}

/* `record` is NULL for the calls that no sample holds: nothing but their count is known. */
static void write_row(struct json_writer *json, const char *name, int number, const struct policy_row *row,
                      uint64_t count, const struct record *record)
{
    json_begin_object(json);
    json_key(json, "syscall");
    json_string(json, name);
    json_key(json, "number");
    json_i64(json, number);
    json_key(json, "rule");
    json_string(json, row->rule);
    json_key(json, "answer");
    json_string(json, row->answer_name);
    json_key(json, "count");
    json_u64(json, count);
    json_key(json, "args");
    json_begin_array(json);
    for (size_t i = 0; record && i < 6; i++)
        json_hex(json, record->args[i]);
    json_end_array(json);
    json_key(json, "program");
    json_string(json, record && record->program[0] ? record->program : NULL);
    json_end_object(json);
}

static void write_record(struct json_writer *json, const struct record *record, size_t row)
{
    char numbered[32];
    const char *name = policy_row(row)->syscall;
    if (policy_row(row)->kind == POLICY_ABI)
        name = policy_foreign_name(record->arch, record->number);
    else if (row == policy_unknown_row())
        name = NULL;
    if (!name)
        name_number(numbered, sizeof numbered, record->number);
    write_row(json, name ? name : numbered, record->number, policy_row(row), record->count, record);
}

static void write_rows(const struct notify *notify, struct json_writer *json, bool probes)
{
    for (size_t row = 0; row < policy_row_count(); row++)
        if (notify->rows[row].count && is_probe(row) == probes)
            write_record(json, &notify->rows[row], row);
}

void notify_write_json(const struct notify *notify, struct json_writer *json)
{
    json_key(json, "denials");
    json_begin_array(json);
    write_rows(notify, json, false);
    json_end_array(json);

    json_key(json, "probes");
    json_begin_array(json);
    write_rows(notify, json, true);
    for (size_t i = 0; i < SAMPLES && notify->samples[i].count; i++)
        write_record(json, &notify->samples[i], policy_unknown_row());
    if (notify->unsampled)
        write_row(json, "unknown", -1, policy_row(policy_unknown_row()), notify->unsampled, NULL);
    json_end_array(json);
}
