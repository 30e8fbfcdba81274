/*
 * Answers the system calls that a job's filter refuses, and keeps the record of them.
 *
 * One struct notify per job, of fixed size whatever the job does: a counter, the first arguments and the first program for
 * each row of the policy, and 16 samples of numbers that nobody knows. Nothing is ever continued
 * (SECCOMP_USER_NOTIF_FLAG_CONTINUE): what is refused stays refused.
 */
#ifndef SANDBUS_NOTIFY_H
#define SANDBUS_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct notify;
struct json_writer;

enum notify_verdict {
    NOTIFY_OK,          /* all answered, or the budget is used up: poll the listener again */
    NOTIFY_KILL_DENIAL, /* only with end_at_denial: a denial was recorded and NOT answered; the caller ends the job */
    NOTIFY_KILL_ABI,    /* x32 or another architecture: recorded and NOT answered; the caller ends the job, always */
    NOTIFY_CLOSED,      /* no process is left under the filter, or the listener failed: close it */
};

/* end_at_denial is --on-violation kill. Returns NULL, with errno, where memory or the kernel interface is missing. */
struct notify *notify_new(bool end_at_denial);
void notify_free(struct notify *notify);

/* Call once for a new listener: asks for synchronous wake-ups, seven times faster answers, where the kernel has them (6.6). */
void notify_tune(int listener_fd);

/* Answers at most `budget` pending notifications and never blocks. Call it when the listener polls readable or hung up. */
enum notify_verdict notify_serve(struct notify *notify, int listener_fd, int budget);

uint64_t notify_denials(const struct notify *notify); /* foreign ABIs included */
uint64_t notify_probes(const struct notify *notify);

/* Calls visit(context, name, number, count) for each refused call that was seen, to add them to the syscall counts. Calls of
 * a foreign ABI are left out: they are not this architecture's calls. The name is "unknown" where no sample holds it. */
void notify_each_refused(const struct notify *notify,
                         void (*visit)(void *context, const char *name, int number, uint64_t count), void *context);

/* Writes the two members "denials":[...],"probes":[...] into the object that is open; a row is
 * {"syscall","number","rule":text|null,"answer","count","args":["0x..",x6],"program":text|null}. Numbers that nobody
 * knows are rows named "syscall_<n>"; past 16 of them, one row "unknown" with number -1 has the rest of the count. */
void notify_write_json(const struct notify *notify, struct json_writer *json);

#endif
