/*
 * A set-up failure as a value: which step, the kernel's error, what was wrong, and what to do about it. It has a fixed size
 * and no pointers, since it also travels from the job's child to the supervisor through a socket.
 */
#ifndef SANDBUS_FAULT_H
#define SANDBUS_FAULT_H

#include <stdbool.h>

struct fault {
    char step[32]; /* filled in by whoever runs the list of steps, unless a step names a finer one */
    int error;     /* errno, or 0 where the kernel was not asked */
    char message[384];
    char mend[512];
};

/* Fills the fault in and returns false, so that a step can say `return fault_set(...)`. `error` is an errno or 0;
 * its text is appended to the message. */
bool fault_set(struct fault *fault, int error, const char *mend, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Names the step unless the fault has a finer name already. */
void fault_name_step(struct fault *fault, const char *step);

#endif
