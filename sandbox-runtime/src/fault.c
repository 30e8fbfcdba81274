#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool fault_set(struct fault *fault, int error, const char *mend, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
    if (error && length >= 0 && (size_t)length < sizeof fault->message)
        snprintf(fault->message + length, sizeof fault->message - (size_t)length, ": %s", strerror(error));
    snprintf(fault->mend, sizeof fault->mend, "%s", mend);
    fault->error = error;
    return false;
}

void fault_name_step(struct fault *fault, const char *step)
{
    if (!fault->step[0])
        snprintf(fault->step, sizeof fault->step, "%s", step);
}
