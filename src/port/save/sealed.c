/* sealed.c - write and read small files that get their name once complete and synced, and end with
 * a digest. */
#include "port/save/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/blake3.h"

/* ---- bytes ---- */

uint8_t *heft_put(uint8_t *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> 8 * i);
    return to + bytes;
}

uint64_t heft_get(const uint8_t *from, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = bytes; i--;)
        v = v << 8 | from[i];
    return v;
}

uint8_t *heft_put_bytes(uint8_t *to, const void *from, uint64_t len)
{
    if (!len)
        return to;
    memcpy(to, from, (size_t)len);
    return to + len;
}

static void hash_bytes(uint8_t out[HEFT_SEAL], const uint8_t *bytes, size_t len)
{
    heft_blake3 h;
    heft_blake3_init(&h);
    heft_blake3_update(&h, bytes, len);
    heft_blake3_final(&h, out);
}

void heft_seal(uint8_t *bytes, size_t len)
{
    hash_bytes(bytes + len - HEFT_SEAL, bytes, len - HEFT_SEAL);
}

bool heft_is_sealed(const uint8_t *bytes, size_t len, const char magic[8])
{
    uint8_t hash[HEFT_SEAL];
    if (len < 8 + HEFT_SEAL || memcmp(bytes, magic, 8) != 0)
        return false;
    hash_bytes(hash, bytes, len - HEFT_SEAL);
    return !memcmp(hash, bytes + len - HEFT_SEAL, HEFT_SEAL);
}

/* ---- on disk ---- */

heft_status heft_sealed_store(const heft_target *t, const char *name, const char *partial,
                              const void *bytes, size_t len, heft_error *err)
{
    t->disk->remove(t->dir, partial); /* left by a program that was killed */
    int fd = heft_disk_create(t->disk, t->dir, partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                              0600);
    heft_status st = fd < 0 ? heft_os_error(err, errno, "a journal cannot be put beside it")
                            : heft_target_write(t, fd, 0, bytes, len, err);
    if (!st && heft_disk_sync(t->disk, fd))
        st = heft_os_error(err, errno, "writing the journal to disk failed");
    if (fd >= 0)
        close(fd);
    if (!st && t->disk->rename(t->dir, partial, name))
        st = heft_os_error(err, errno, "a journal cannot be put beside it");
    if (st)
        t->disk->remove(t->dir, partial);
    else if ((st = heft_target_sync_dir(t, err)))
        t->disk->remove(t->dir, name);
    return st;
}

heft_status heft_sealed_load(uint8_t **out, size_t *len, int dir, const char *name,
                             uint64_t max_size, heft_error *err)
{
    struct stat info = { .st_size = 0 };
    heft_status st = HEFT_OK;
    *out = NULL;
    int fd = heft_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? HEFT_OK
                               : heft_os_error(err, errno, "its journal cannot be opened");
    if (fstat(fd, &info))
        st = heft_os_error(err, errno, "its journal cannot be read");
    else if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > max_size)
        st = heft_error_plain(err, HEFT_E_FORMAT,
                              "a file with the name of a journal is not a journal");
    *len = (size_t)info.st_size;
    if (!st && !(*out = malloc(*len + 1)))
        st = heft_error_no_memory(err, "for a journal");
    if (!st)
        st = heft_disk_read_all(&heft_system_disk, fd, 0, *out, *len, err);
    close(fd);
    if (st) {
        free(*out);
        *out = NULL;
    }
    return st;
}
