/* partial_file.c - the downloaded blocks of a file on a server, kept on the disk.
 *
 * The name is ".NAME.heft-part-" and 16 hexadecimal digits of BLAKE3(address); NAME is that of the
 * output.  The file is sparse, and numbers have the byte order of the machine:
 *
 *     0  "HEFTPART"   8  u32 1   12  u32 bytes of a block   16  u64 size of the file
 *    24  version of the file, 32 bytes
 *    56  BLAKE3 of all preceding bytes
 *  4096  16 bytes of BLAKE3(version, number, bytes) for each block; zeros: the block is missing
 *     *  the blocks, from the next multiple of 4096
 *
 * The bytes of a block are written before the digest.  A power failure may store the digest and
 * lose the bytes; the digest is therefore compared before the bytes are used.  The file is locked
 * (flock) while a process uses the file. */
#include "port/remote/partial_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/blake3.h"
#include "base/text.h"
#include "port/system/disk.h"

enum { PAGE = 4096, DIGEST = 16, FORM = 1, NAME_DIGITS = 16, MAX_BLOCKS = 16 << 20 };

typedef struct head {
    char magic[8];
    uint32_t form, block_bytes;
    uint64_t size;
    uint8_t version[HEFT_VERSION_BYTES];
    uint8_t digest[32];
} head;

struct heft_partial {
    int fd;
    head head;
    uint64_t blocks, data; /* number of blocks, offset of the first */
    uint8_t (*digests)[DIGEST];
    char name[NAME_MAX + 1];
};

/* ---- the name ---- */

static const char suffix[] = ".heft-part-";

/* Return the last component of a path. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool make_name(char out[NAME_MAX + 1], const char *stem, const char *address)
{
    uint8_t id[16];
    char digits[NAME_DIGITS + 1] = "";
    heft_blake3_id(id, address, strlen(address));
    heft_hex_text(digits, id, NAME_DIGITS / 2);
    return snprintf(out, NAME_MAX + 1, ".%s%s%s", name_of(stem), suffix, digits) <= NAME_MAX;
}

/* ---- reading and writing ---- */

static heft_status read_at(const heft_partial *p, uint64_t offset, void *to, size_t len,
                           heft_error *err)
{
    return heft_disk_read_all(&heft_system_disk, p->fd, offset, to, len, err);
}

static heft_status write_at(const heft_partial *p, uint64_t offset, const void *from, size_t len,
                            heft_error *err)
{
    heft_error why;
    char what[NAME_MAX + 64];
    if (!heft_disk_write_all(&heft_system_disk, p->fd, offset, from, len, &why))
        return HEFT_OK;
    snprintf(what, sizeof what, "the download cannot be kept in '%s'", p->name);
    return heft_os_error(err, why.os, what);
}

static void digest_block(uint8_t out[DIGEST], const heft_partial *p, uint64_t number,
                         const uint8_t *bytes)
{
    heft_blake3 h;
    uint8_t all[32];
    heft_blake3_init(&h);
    heft_blake3_update(&h, p->head.version, sizeof p->head.version);
    heft_blake3_update(&h, &number, sizeof number);
    heft_blake3_update(&h, bytes, heft_partial_length(p, number));
    heft_blake3_final(&h, all);
    memcpy(out, all, DIGEST);
}

static uint64_t block_at(const heft_partial *p, uint64_t number)
{
    return p->data + number * HEFT_PARTIAL_BLOCK;
}

/* ---- opening ---- */

static head make_head(uint64_t size, const uint8_t version[HEFT_VERSION_BYTES])
{
    heft_blake3 hash;
    head h = { .form = FORM, .block_bytes = HEFT_PARTIAL_BLOCK, .size = size };
    memcpy(h.magic, "HEFTPART", sizeof h.magic);
    memcpy(h.version, version, sizeof h.version);
    heft_blake3_init(&hash);
    heft_blake3_update(&hash, &h, offsetof(head, digest));
    heft_blake3_final(&hash, h.digest);
    return h;
}

static heft_status begin_file(heft_partial *p, heft_error *err)
{
    memset(p->digests, 0, p->blocks * DIGEST);
    if (ftruncate(p->fd, 0) || ftruncate(p->fd, (off_t)(p->data + p->head.size)))
        return heft_os_error(err, errno, "the download cannot be kept next to the output");
    return write_at(p, 0, &p->head, sizeof p->head, err);
}

/* Use the file if the head is as expected, and begin again otherwise. */
static heft_status use_file(heft_partial *p, bool *was_other, heft_error *err)
{
    head found = { .form = 0 };
    heft_error ignored;
    struct stat info = { .st_mode = 0 };
    if (fstat(p->fd, &info))
        return heft_os_error(err, errno, "the file for the download cannot be read");
    if (!S_ISREG(info.st_mode))
        return heft_os_error(err, EINVAL, "the file for the download is not a regular file");
    if (flock(p->fd, LOCK_EX | LOCK_NB))
        return heft_error_plain(err, HEFT_E_IO,
                                "another process downloads the file for the same output");
    bool is_ours = !read_at(p, 0, &found, sizeof found, &ignored) &&
                   !memcmp(&found, &p->head, sizeof found) &&
                   !read_at(p, PAGE, p->digests, p->blocks * DIGEST, &ignored) &&
                   !ftruncate(p->fd, (off_t)(p->data + p->head.size));
    *was_other = !is_ours && info.st_size;
    return is_ours ? HEFT_OK : begin_file(p, err);
}

heft_status heft_partial_open(heft_partial **out, const char *stem, const char *address,
                              uint64_t size, const uint8_t version[HEFT_VERSION_BYTES],
                              bool *was_other, heft_error *err)
{
    uint64_t blocks = size / HEFT_PARTIAL_BLOCK + (size % HEFT_PARTIAL_BLOCK != 0);
    *out = NULL;
    *was_other = false;
    if (blocks > MAX_BLOCKS)
        return heft_error_plain(err, HEFT_E_LIMIT, "the file is too large to be kept");
    heft_partial *p = calloc(1, sizeof *p);
    if (p)
        p->digests = calloc(blocks + 1, DIGEST);
    if (!p || !p->digests) {
        free(p);
        return heft_error_no_memory(err, "for the list of blocks");
    }
    p->fd = -1;
    p->head = make_head(size, version);
    p->blocks = blocks;
    p->data = (PAGE + blocks * DIGEST + PAGE - 1) / PAGE * PAGE;
    int dir = heft_open_folder_of(stem, O_RDONLY | O_DIRECTORY);
    if (!make_name(p->name, stem, address))
        errno = ENAMETOOLONG;
    else if (dir >= 0)
        p->fd = openat(dir, p->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    heft_status st = p->fd < 0 ? heft_os_error(err, errno,
                                               "the download cannot be kept next to "
                                               "the output")
                               : use_file(p, was_other, err);
    if (dir >= 0)
        close(dir);
    if (st)
        heft_partial_close(p);
    else
        *out = p;
    return st;
}

void heft_partial_close(heft_partial *p)
{
    if (!p)
        return;
    if (p->fd >= 0)
        close(p->fd);
    free(p->digests);
    free(p);
}

uint64_t heft_partial_blocks(const heft_partial *p)
{
    return p->blocks;
}

size_t heft_partial_length(const heft_partial *p, uint64_t number)
{
    uint64_t left = p->head.size - number * HEFT_PARTIAL_BLOCK;
    return left < HEFT_PARTIAL_BLOCK ? (size_t)left : HEFT_PARTIAL_BLOCK;
}

bool heft_partial_has(const heft_partial *p, uint64_t number)
{
    static const uint8_t missing[DIGEST];
    return memcmp(p->digests[number], missing, DIGEST) != 0;
}

/* ---- blocks ---- */

bool heft_partial_load(heft_partial *p, uint64_t number, uint8_t *to)
{
    uint8_t digest[DIGEST];
    heft_error ignored;
    if (read_at(p, block_at(p, number), to, heft_partial_length(p, number), &ignored))
        return false;
    digest_block(digest, p, number, to);
    return !memcmp(digest, p->digests[number], DIGEST);
}

heft_status heft_partial_store(heft_partial *p, uint64_t number, const uint8_t *from,
                               heft_error *err)
{
    HEFT_TRY(write_at(p, block_at(p, number), from, heft_partial_length(p, number), err));
    digest_block(p->digests[number], p, number, from);
    return write_at(p, PAGE + number * DIGEST, p->digests[number], DIGEST, err);
}

heft_status heft_partial_read(heft_partial *p, uint64_t offset, void *to, size_t len,
                              heft_error *err)
{
    heft_error why;
    return read_at(p, p->data + offset, to, len, &why)
               ? heft_os_error(err, why.os, "the kept download cannot be read")
               : HEFT_OK;
}

/* ---- removal ---- */

typedef struct removal {
    int dir;
    const char *name; /* of the output */
    int os;           /* the first failure */
} removal;

static void remove_if_partial(void *ctx, const char *name)
{
    removal *r = ctx;
    size_t len = strlen(r->name), digits = 1 + len + sizeof suffix - 1;
    bool is_partial = name[0] == '.' && !strncmp(name + 1, r->name, len) &&
                      !strncmp(name + 1 + len, suffix, sizeof suffix - 1) &&
                      strspn(name + digits, "0123456789abcdef") == NAME_DIGITS &&
                      !name[digits + NAME_DIGITS];
    if (is_partial && unlinkat(r->dir, name, 0) && errno != ENOENT && !r->os)
        r->os = errno;
}

heft_status heft_partial_remove_all(const char *stem, heft_error *err)
{
    removal r = { heft_open_folder_of(stem, O_RDONLY | O_DIRECTORY), name_of(stem), 0 };
    if (r.dir < 0)
        return heft_os_error(err, errno, "the kept download cannot be removed");
    heft_status st = heft_folder_list(r.dir, remove_if_partial, &r, err);
    close(r.dir);
    return st || !r.os ? st : heft_os_error(err, r.os, "the kept download cannot be removed");
}
