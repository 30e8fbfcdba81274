/* SHA-256 (FIPS 180-4), incremental. */
#ifndef SANDBUS_SHA256_H
#define SANDBUS_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_HEX_SIZE = 65 };

struct sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    unsigned char block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const void *bytes, size_t length);
/* Ends the hash and writes it as lower-case hex with a terminating zero. */
void sha256_final_hex(struct sha256 *hash, char hex[SHA256_HEX_SIZE]);

#endif
