/* fingerprint.c - recognise a file after it was renamed or copied, by a sample of its bytes. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/blake3.h"
#include "port/system/disk.h"

enum { BLOCKS = 64, BLOCK = 4096 };

static uint64_t block_at(uint64_t size, unsigned i)
{
    if (size <= BLOCKS * BLOCK)
        return (uint64_t)i * BLOCK;
    return i == BLOCKS - 1 ? size - BLOCK : (size - BLOCK) / (BLOCKS - 1) * i;
}

heft_status heft_fingerprint_of(heft_fingerprint *out, int fd, heft_error *err)
{
    uint8_t buf[BLOCK];
    struct stat info;
    heft_blake3 h;
    heft_status st = HEFT_OK;
    *out = (heft_fingerprint){ .size = HEFT_UNKNOWN_LENGTH };
    if (fstat(fd, &info))
        return heft_os_error(err, errno, "its status cannot be read");
    if (!S_ISREG(info.st_mode))
        return HEFT_OK;
    out->size = (uint64_t)info.st_size;
    heft_blake3_init(&h);
    for (unsigned i = 0; i < BLOCKS && !st && block_at(out->size, i) < out->size; i++) {
        uint64_t at = block_at(out->size, i), left = out->size - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        st = heft_disk_read_all(&heft_system_disk, fd, at, buf, n, err);
        if (!st)
            heft_blake3_update(&h, buf, n);
    }
    heft_blake3_final(&h, out->hash);
    return st;
}

static heft_status stat_name(bool *exists, struct stat *info, int dir, const char *name,
                             heft_error *err)
{
    *exists = !fstatat(dir, name, info, AT_SYMLINK_NOFOLLOW);
    if (*exists || errno == ENOENT)
        return HEFT_OK;
    return heft_os_error(err, errno, "its directory cannot be searched");
}

heft_status heft_name_exists(bool *exists, int dir, const char *name, heft_error *err)
{
    struct stat info;
    return stat_name(exists, &info, dir, name, err);
}

heft_status heft_fingerprint_at(bool *exists, heft_fingerprint *out, int dir, const char *name,
                                heft_error *err)
{
    struct stat info;
    *out = (heft_fingerprint){ .size = HEFT_UNKNOWN_LENGTH };
    heft_status st = stat_name(exists, &info, dir, name, err);
    if (st || !*exists || !S_ISREG(info.st_mode))
        return st;
    int fd = heft_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return heft_os_error(err, errno, "cannot be opened");
    st = heft_fingerprint_of(out, fd, err);
    close(fd);
    return st;
}

bool heft_fingerprint_equal(const heft_fingerprint *a, const heft_fingerprint *b)
{
    return a->size != HEFT_UNKNOWN_LENGTH && a->size == b->size &&
           !memcmp(a->hash, b->hash, sizeof a->hash);
}
