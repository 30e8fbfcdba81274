/* What the device program and its reader share: the map's key and value, and the program. Only devices*.c include it. */
#ifndef SANDBUS_DEVICES_PROGRAM_H
#define SANDBUS_DEVICES_PROGRAM_H

#include <stdint.h>

enum { DEVICE_TYPE_OTHER = 0, DEVICE_TYPE_BLOCK = 1, DEVICE_TYPE_CHARACTER = 2 };

#define DEVICE_ANY_MINOR UINT32_MAX

/* DEVICE_TYPE_OTHER with zero numbers is the row that counts what no rule names. */
struct device_key {
    uint64_t group;
    uint32_t type, major, minor;
    uint32_t zero;
};

struct device_rule {
    uint32_t access;
    uint32_t type, major, minor; /* of the row "other": the first node that was denied */
    uint64_t allowed, denied;
};

/* Loads the program over a hash map of those. Returns its descriptor, or -1 with errno. */
int devices_program_load(int rules_map);

#endif
