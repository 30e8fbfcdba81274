/* How a job can end, and the names that the result gives it. */
#ifndef SANDBUS_OUTCOME_H
#define SANDBUS_OUTCOME_H

#define OUTCOME_LIST(row)                                                                                        \
    row(OUTCOME_EXITED, "exited") row(OUTCOME_SIGNALED, "signaled") row(OUTCOME_WALL_TIME_EXCEEDED, "wall-time-" \
                                                                                                    "exceeded")  \
        row(OUTCOME_CPU_TIME_EXCEEDED, "cpu-time-exceeded") row(OUTCOME_MEMORY_EXCEEDED, "memory-exceeded")      \
            row(OUTCOME_OUTPUT_EXCEEDED, "output-exceeded") row(OUTCOME_SYSCALL_DENIED, "syscall-denied")        \
                row(OUTCOME_CANCELLED, "cancelled") row(OUTCOME_SETUP_FAILED, "setup-failed")

#define OUTCOME_CONSTANT(constant, name) constant,
enum outcome { OUTCOME_NONE, OUTCOME_LIST(OUTCOME_CONSTANT) };
#undef OUTCOME_CONSTANT

const char *outcome_name(enum outcome outcome);

#endif
