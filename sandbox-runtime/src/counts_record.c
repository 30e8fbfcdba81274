/* What the counters say, as JSON. */
#include "counts.h"
#include "counts_program.h"
#include "json.h"
#include "notify.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

static void write_unavailable(struct json_writer *json, const char *reason)
{
    json_begin_object(json);
    json_key(json, "available");
    json_bool(json, false);
    json_key(json, "reason");
    json_string(json, reason);
    json_end_object(json);
}

struct tallies {
    uint64_t calls[COUNTS_NUMBERS];
    uint64_t total;
    struct json_writer *json; /* for refused numbers that are not in `calls` */
};

static void sum_stripes(const struct counts_slot *slot, struct tallies *tallies)
{
    for (size_t stripe = 0; stripe < COUNTS_STRIPES; stripe++)
        for (size_t number = 0; number < COUNTS_NUMBERS; number++) {
            tallies->calls[number] += slot->tallies[stripe][number];
            tallies->total += slot->tallies[stripe][number];
        }
}

static bool is_tallied(int number)
{
    return number >= 0 && number < COUNTS_NUMBERS;
}

/* A call can be let through and refused, by its arguments: both go into one number. */
static void add_refused(void *context, const char *name, int number, uint64_t count)
{
    struct tallies *tallies = context;
    (void)name;
    tallies->total += count;
    if (is_tallied(number))
        tallies->calls[number] += count;
}

static void write_untallied(void *context, const char *name, int number, uint64_t count)
{
    struct tallies *tallies = context;
    if (is_tallied(number))
        return;
    json_key(tallies->json, name);
    json_u64(tallies->json, count);
}

static void write_tally(struct json_writer *json, int number, uint64_t count)
{
    char numbered[32];
    const char *name = policy_syscall_name(number);
    snprintf(numbered, sizeof numbered, "syscall_%d", number);
    json_key(json, name ? name : numbered);
    json_u64(json, count);
}

void counts_write_syscalls(const struct counts *counts, const struct counts_job *job, const struct notify *notify,
                           struct json_writer *json)
{
    if (job->slot < 0) {
        write_unavailable(json, job->reason);
        return;
    }
    struct tallies tallies = {.json = json};
    sum_stripes(counts_slot_of(counts, job), &tallies);
    if (notify)
        notify_each_refused(notify, add_refused, &tallies);

    json_begin_object(json);
    json_key(json, "available");
    json_bool(json, true);
    json_key(json, "total");
    json_u64(json, tallies.total);
    json_key(json, "counts");
    json_begin_object(json);
    for (int number = 0; number < COUNTS_NUMBERS; number++)
        if (tallies.calls[number])
            write_tally(json, number, tallies.calls[number]);
    if (notify)
        notify_each_refused(notify, write_untallied, &tallies);
    json_end_object(json);
    json_end_object(json);
}

static void write_entry(struct json_writer *json, const struct counts_execution *entry, uint64_t origin_us)
{
    uint64_t at_us = entry->at_ns / 1000;
    json_begin_object(json);
    json_key(json, "path");
    json_string(json, entry->path);
    json_key(json, "interpreter");
    json_string(json, entry->interpreter[0] && strcmp(entry->interpreter, entry->path) ? entry->interpreter : NULL);
    json_key(json, "atMs");
    json_thousandths(json, at_us > origin_us ? at_us - origin_us : 0);
    json_end_object(json);
}

void counts_write_executions(const struct counts *counts, const struct counts_job *job, uint64_t origin_us,
                             struct json_writer *json)
{
    if (job->slot < 0) {
        write_unavailable(json, job->reason);
        return;
    }
    const struct counts_slot *slot = counts_slot_of(counts, job);
    uint64_t kept = slot->executions < COUNTS_EXECUTIONS ? slot->executions : COUNTS_EXECUTIONS;
    json_begin_object(json);
    json_key(json, "available");
    json_bool(json, true);
    json_key(json, "dropped");
    json_u64(json, slot->executions - kept);
    json_key(json, "entries");
    json_begin_array(json);
    for (uint64_t i = 0; i < kept; i++)
        write_entry(json, &slot->entries[i], origin_us);
    json_end_array(json);
    json_end_object(json);
}
