#include "errno_name.h"

#include <errno.h>
#include <stddef.h>

#define NAME(constant) {constant, #constant}

static const struct {
    int error;
    const char *name;
} names[] = {
    NAME(E2BIG),    NAME(EACCES),    NAME(EADDRINUSE),   NAME(EAFNOSUPPORT), NAME(EAGAIN),       NAME(EBADF),
    NAME(EBUSY),    NAME(ECHILD),    NAME(ECONNREFUSED), NAME(ECONNRESET),   NAME(EDQUOT),       NAME(EEXIST),
    NAME(EFAULT),   NAME(EFBIG),     NAME(EINTR),        NAME(EINVAL),       NAME(EIO),          NAME(EISDIR),
    NAME(ELOOP),    NAME(EMFILE),    NAME(EMLINK),       NAME(EMSGSIZE),     NAME(ENAMETOOLONG), NAME(ENFILE),
    NAME(ENODEV),   NAME(ENOENT),    NAME(ENOEXEC),      NAME(ENOMEM),       NAME(ENOSPC),       NAME(ENOSYS),
    NAME(ENOTCONN), NAME(ENOTDIR),   NAME(ENOTEMPTY),    NAME(ENOTSOCK),     NAME(ENOTSUP),      NAME(ENOTTY),
    NAME(ENXIO),    NAME(EOVERFLOW), NAME(EPERM),        NAME(EPIPE),        NAME(ERANGE),       NAME(EROFS),
    NAME(ESPIPE),   NAME(ESRCH),     NAME(ETIMEDOUT),    NAME(ETXTBSY),      NAME(EUSERS),       NAME(EXDEV),
    NAME(EPROTO),   NAME(EDOM),
};

const char *errno_name(int error)
{
    for (size_t i = 0; error && i < sizeof names / sizeof names[0]; i++)
        if (names[i].error == error)
            return names[i].name;
    return NULL;
}
