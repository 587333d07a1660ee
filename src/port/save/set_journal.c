/* set_journal.c - the journal of a shard set: the names of the new files, and fingerprints of new
 * and replaced files.
 *
 *    0  "HEFTSETJ"   8  u32 1   12  u32 number of files
 *   16  files: u32 length of the name, u32 1 if a file is replaced, fingerprint of the new file,
 *       fingerprint of the replaced file, the name
 *  -32  BLAKE3 of all preceding bytes
 *
 * A fingerprint is a u64 size and 32 bytes of BLAKE3. */
#include "port/save/set_journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/folders/model_folder.h"
#include "port/save/sealed.h"

enum {
    HEADER = 16,
    FINGERPRINT = 40,
    RECORD = 8 + 2 * FINGERPRINT,
    VERSION = 1,
    MAX_BYTES = HEADER + HEFT_SHARD_SET_MAX_FILES * (RECORD + NAME_MAX) + HEFT_SEAL
};

static const char magic[] = "HEFTSETJ", reserved_prefix[] = "heft-set.";
const char heft_shard_set_journal[] = "heft-set.journal",
           heft_shard_set_partial[] = "heft-set.journal-new";

/* ---- names ---- */

bool heft_shard_set_is_reserved_name(const char *name)
{
    return !strncmp(name, reserved_prefix, sizeof reserved_prefix - 1);
}

void heft_shard_set_staged_name(char out[HEFT_SHARD_SET_NAME], uint32_t i)
{
    snprintf(out, HEFT_SHARD_SET_NAME, "%s%05u.new", reserved_prefix, (unsigned)i + 1);
}

void heft_shard_set_old_name(char out[HEFT_SHARD_SET_NAME], uint32_t i)
{
    snprintf(out, HEFT_SHARD_SET_NAME, "%s%05u.old", reserved_prefix, (unsigned)i + 1);
}

bool heft_shard_set_is_staged_name(const char *name)
{
    enum { MIN_DIGITS = 5 };
    if (!heft_shard_set_is_reserved_name(name))
        return false;
    const char *number = name + sizeof reserved_prefix - 1;
    size_t digits = strspn(number, "0123456789");
    return !strcmp(name, heft_shard_set_partial) ||
           (digits >= MIN_DIGITS && !strcmp(number + digits, ".new"));
}

/* ---- the journal's bytes ---- */

static uint8_t *put_fingerprint(uint8_t *to, const heft_fingerprint *f)
{
    return heft_put_bytes(heft_put(to, f->size, 8), f->hash, sizeof f->hash);
}

static heft_fingerprint get_fingerprint(const uint8_t *from)
{
    heft_fingerprint f = { .size = heft_get(from, 8) };
    memcpy(f.hash, from + 8, sizeof f.hash);
    return f;
}

heft_status heft_shard_set_store(const heft_target *t, const heft_shard_set_file *files,
                                 uint32_t count, heft_error *err)
{
    size_t len = HEADER + HEFT_SEAL;
    for (uint32_t i = 0; i < count; i++)
        len += RECORD + strlen(files[i].name);
    uint8_t *bytes = malloc(len), *to = bytes;
    if (!bytes)
        return heft_error_no_memory(err, "for a journal");
    to = heft_put(heft_put(heft_put_bytes(to, magic, 8), VERSION, 4), count, 4);
    for (uint32_t i = 0; i < count; i++) {
        size_t name = strlen(files[i].name);
        to = heft_put(heft_put(to, name, 4), files[i].replaces, 4);
        to = put_fingerprint(put_fingerprint(to, &files[i].new), &files[i].old);
        to = heft_put_bytes(to, files[i].name, name);
    }
    heft_seal(bytes, len);
    heft_status st = heft_sealed_store(t, heft_shard_set_journal, heft_shard_set_partial, bytes,
                                       len, err);
    free(bytes);
    return st;
}

static heft_status damaged(heft_error *err)
{
    return heft_error_plain(
        err, HEFT_E_FORMAT,
        "%s, the journal of an interrupted split, is damaged: nothing was changed (new files are "
        "heft-set.*.new, replaced files heft-set.*.old: rename the needed files, then remove the "
        "journal)",
        heft_shard_set_journal);
}

/* Read one record at *p. *left counts the bytes from *p to the digest. Return false if the record
 * is damaged. */
static bool decode_file(heft_shard_set_file *f, const uint8_t **p, uint64_t *left)
{
    if (*left < RECORD)
        return false;
    uint64_t name = heft_get(*p, 4), replaces = heft_get(*p + 4, 4);
    if (name > NAME_MAX || name > *left - RECORD || replaces > 1)
        return false;
    *f = (heft_shard_set_file){ .replaces = replaces,
                                .new = get_fingerprint(*p + 8),
                                .old = get_fingerprint(*p + 8 + FINGERPRINT) };
    memcpy(f->name, *p + RECORD, (size_t)name);
    *p += RECORD + name;
    *left -= RECORD + name;
    return strlen(f->name) == name && heft_is_file_name(f->name) &&
           !heft_shard_set_is_reserved_name(f->name);
}

static heft_status decode(heft_shard_set_file **out, uint32_t *count, const uint8_t *bytes,
                          size_t len, heft_error *err)
{
    if (len < HEADER + HEFT_SEAL || !heft_is_sealed(bytes, len, magic))
        return damaged(err);
    if (heft_get(bytes + 8, 4) != VERSION)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the journal of an interrupted split has version %U: use a newer "
                                "heft to complete the split",
                                heft_get(bytes + 8, 4));
    uint64_t n = heft_get(bytes + 12, 4), left = len - HEADER - HEFT_SEAL;
    const uint8_t *p = bytes + HEADER;
    if (n > HEFT_SHARD_SET_MAX_FILES || n > left / RECORD)
        return damaged(err);
    heft_shard_set_file *files = calloc((size_t)n + 1, sizeof *files);
    if (!files)
        return heft_error_no_memory(err, "for a journal");
    bool is_good = true;
    for (*count = 0; is_good && *count < n; ++*count)
        is_good = decode_file(&files[*count], &p, &left);
    if (is_good && !left) {
        *out = files;
        return HEFT_OK;
    }
    free(files);
    return damaged(err);
}

heft_status heft_shard_set_load(heft_shard_set_file **out, uint32_t *count, int dir,
                                heft_error *err)
{
    uint8_t *bytes;
    size_t len;
    *out = NULL;
    heft_status st = heft_sealed_load(&bytes, &len, dir, heft_shard_set_journal, MAX_BYTES, err);
    if (st == HEFT_E_FORMAT)
        return damaged(err);
    if (!st && bytes)
        st = decode(out, count, bytes, len, err);
    free(bytes);
    return st;
}

/* ---- reading a folder that has a journal ---- */

heft_status heft_shard_set_check(int dir, heft_error *err)
{
    bool exists;
    heft_status st = heft_name_exists(&exists, dir, heft_shard_set_journal, err);
    if (st || !exists)
        return st;
    heft_error_plain(err, HEFT_E_IO,
                     "a split into its folder is in progress or was interrupted: %s exists ('heft "
                     "edit' on the folder, with no options, completes or undoes the split)",
                     heft_shard_set_journal);
    return heft_error_os(err, HEFT_E_IO, EBUSY);
}
