/* The symbolic name of an error number ("EPERM"), as records show it; musl has no call for that. */
#ifndef SANDBUS_ERRNO_NAME_H
#define SANDBUS_ERRNO_NAME_H

/* Returns NULL for 0 and for a number that is not in the table. */
const char *errno_name(int error);

#endif
