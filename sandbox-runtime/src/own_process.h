/* What the launcher settles about its own process before it runs jobs: descriptors and signals. */
#ifndef SANDBUS_OWN_PROCESS_H
#define SANDBUS_OWN_PROCESS_H

#include "loop.h"

/* Descriptors 0 to 2 are always open, so that no file of the launcher's takes their place; all others close on exec. */
void own_process_settle_descriptors(void);
/* Wipes words of the command line where the kernel shows them to everybody on the host (ps): arguments and variables of a job are
 * nobody else's business. Whoever looked before this has seen them. */
void own_process_hide_words(int count, char **words);
/* SIGTERM, SIGINT and SIGHUP make the watch ready: they are read from a descriptor, so that they arrive between events. */
bool own_process_watch_signals(struct watch *watch, struct loop *loop, void (*ready)(struct watch *, uint32_t),
                               void *owner);
/* Takes one signal off the watch. False: there is none. */
bool own_process_take_signal(const struct watch *watch);

#endif
