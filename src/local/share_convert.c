/* share_convert.c - shares of a conversion beside the output, in a store that all processes see.
 *
 * The process that finds the records of all shares writes the rest, names the output, and
 * removes the store, records first.  Two processes write equal bytes; a process that finds the data
 * gone and the output there is done. */
#include <heft/remote.h>
#include <heft/share.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "local/share_store.h"

enum { PLAN_BYTES = 128 };

static const char first_line[] = "heft shares 1\n";

void heft_share_record_name(char name[HEFT_SHARE_NAME_BYTES], uint32_t number, uint32_t count)
{
    snprintf(name, HEFT_SHARE_NAME_BYTES, "share-%05u-of-%u", (unsigned)number, (unsigned)count);
}

static heft_status blame_output(heft_error *err, heft_status st)
{
    return heft_error_about(err, st, HEFT_ABOUT_TARGET);
}

/* ---- the plan ---- */

/* Read the number of shares from the text of a plan; 0: the text is damaged. */
static uint32_t count_in(const char *text)
{
    unsigned count = 0;
    const char *line = strncmp(text, first_line, sizeof first_line - 1) ? NULL
                                                                        : strstr(text, "\ncount ");
    if (!line || sscanf(line, "\ncount %9u", &count) != 1 || count > HEFT_SHARE_MAX_COUNT)
        return 0;
    return count;
}

heft_status heft_share_refuse_plan(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "the plan of its shares is damaged; give up these shares with "
                            "--abort (heft_share_abort()), and write all shares again");
}

static heft_status refuse_other_plan(const char *found, heft_error *err)
{
    uint32_t count = count_in(found);
    if (!count)
        return heft_share_refuse_plan(err);
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "there are shares of another plan (%U shares): another input, other "
                            "options or another number; repeat that command, or give up these "
                            "shares with --abort (heft_share_abort())",
                            (uint64_t)count);
}

/* Publish the id of the plan, or compare the id with the published id. */
static heft_status agree_on_plan(heft_share_store *s, bool creates, heft_error *err)
{
    char text[PLAN_BYTES], *found;
    heft_hash id = heft_share_id(s->plan);
    size_t len = (size_t)snprintf(text, sizeof text, "%splan ", first_line), found_len;
    heft_hex_text(text + len, id.bytes, sizeof id.bytes);
    len += 2 * sizeof id.bytes;
    len += (size_t)snprintf(text + len, sizeof text - len, "\ncount %u\n", (unsigned)s->count);
    heft_status st = creates ? s->ops->publish_plan(s, text, len, err) : HEFT_OK;
    if (!st)
        st = s->ops->read_plan(s, &found, &found_len, err);
    if (st)
        return st;
    if (found_len != len || memcmp(found, text, len) != 0)
        st = refuse_other_plan(found, err);
    free(found);
    return st;
}

/* Read the number of shares from the plan in the open store. */
static heft_status read_count(heft_share_store *s, uint32_t *count, heft_error *err)
{
    char *text;
    size_t len;
    HEFT_TRY(s->ops->read_plan(s, &text, &len, err));
    *count = count_in(text);
    free(text);
    return *count ? HEFT_OK : heft_share_refuse_plan(err);
}

/* ---- a share ---- */

/* Return true if the share has a record. */
static bool was_written(heft_share_store *s, uint32_t number)
{
    char *text;
    size_t len;
    heft_error ignored;
    heft_status st = s->ops->read_record(s, number, &text, &len, &ignored);
    if (st == HEFT_E_NOTFOUND)
        return false;
    bool is_whole = !st && !heft_share_check(s->plan, (heft_str){ text, len }, number, NULL);
    if (!st)
        free(text);
    if (!is_whole) /* damaged: write the share again */
        s->ops->remove_record(s, number);
    return is_whole;
}

static heft_status write_share(heft_share_store *s, uint32_t number, heft_error *err)
{
    heft_sink *sink;
    heft_blob record = { NULL, 0, NULL };
    s->result.share_bytes = heft_share_range(s->plan, number).length;
    s->result.was_written = was_written(s, number);
    if (s->result.was_written)
        return HEFT_OK;
    heft_status st = blame_output(err, s->ops->data_open(&sink, s, number, err));
    if (!st)
        st = heft_share_write(&record, s->plan, number, sink, err);
    if (!st)
        st = blame_output(
            err, s->ops->publish_record(s, number, (heft_str){ record.data, record.size }, err));
    heft_blob_free(&record);
    bool is_gone = st == HEFT_E_NOTFOUND && err->about == HEFT_ABOUT_TARGET;
    return is_gone && s->ops->is_completed(s) ? HEFT_OK : st;
}

/* ---- the last step ---- */

static heft_status read_records(heft_share_store *s, heft_str *records, heft_error *err)
{
    char *text;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < s->count && !st; i++) {
        size_t len = 0;
        st = s->ops->read_record(s, i + 1, &text, &len, err);
        records[i] = st ? (heft_str){ NULL, 0 } : (heft_str){ text, len };
    }
    return st;
}

static heft_status join(heft_share_store *s, heft_error *err)
{
    heft_sink *sink;
    heft_str *records = calloc(s->count, sizeof *records);
    if (!records)
        return heft_error_no_memory(err, "for the records of shares");
    heft_status st = read_records(s, records, err);
    if (!st)
        st = s->ops->data_open(&sink, s, 0, err);
    blame_output(err, st);
    if (!st)
        st = heft_share_join(s->plan, records, s->count, sink, err);
    if (st == HEFT_E_ARGUMENT) /* a record is wrong, or the output exists */
        blame_output(err, st);
    for (uint32_t i = 0; i < s->count; i++)
        free((char *)(uintptr_t)records[i].ptr);
    free(records);
    return st;
}

/* Complete the output if all records are there. */
static heft_status complete(heft_share_store *s, heft_error *err)
{
    heft_error ignored;
    heft_status st = blame_output(err, s->ops->count_missing(&s->result.missing, s, err));
    if (st)
        return st;
    if (!s->result.missing)
        st = join(s, err);
    if (s->result.missing || st == HEFT_E_NOTFOUND) {
        if (!s->ops->is_completed(s))
            return st;
        s->result.missing = 0; /* a process may have been killed before the store was removed */
        st = HEFT_OK;
    }
    if (!st)
        (void)(s->ops->remove_all(s, false, &ignored) == HEFT_OK);
    return st;
}

/* ---- public functions ---- */

static heft_status new_store(heft_share_store **out, const char *path, uint32_t flags,
                             heft_error *err)
{
    *out = NULL;
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the path to write to is missing");
    if (flags & HEFT_SINK_SYNC && flags & HEFT_SINK_NO_SYNC)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "HEFT_SINK_SYNC and HEFT_SINK_NO_SYNC exclude each other");
    if (heft_is_url(path))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "shares are written to a file, not to an address; write a file in "
                                "shares, and upload the file");
    return heft_share_folder_new(out, path, flags, err);
}

static void end(heft_share_store *s, heft_share_result *out)
{
    if (out)
        *out = s ? s->result : (heft_share_result){ 0 };
    if (!s)
        return;
    heft_share_close(s->plan);
    s->ops->close(s);
}

static heft_status plan(heft_share_store *s, const heft_file *in, const heft_format *to,
                        uint32_t count, const heft_convert_options *opt, heft_error *err)
{
    s->count = count;
    heft_status st = heft_share_open(&s->plan, in, to, count, opt, err);
    s->result.bytes = st ? 0 : heft_share_size(s->plan);
    return st;
}

heft_status heft_share_convert(heft_share_result *out, const heft_file *in, const heft_format *to,
                               const char *path, heft_share share, uint32_t flags,
                               const heft_convert_options *opt, heft_error *err)
{
    heft_share_store *s = NULL;
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = HEFT_OK;
    if (share.number - 1 >= share.count)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "there is no share %U of %U",
                              (uint64_t)share.number, (uint64_t)share.count);
    if (!st)
        st = new_store(&s, path, flags, err);
    blame_output(err, st);
    if (!st)
        st = plan(s, in, to, share.count, opt, err);
    if (!st) {
        st = s->ops->open(s, true, err);
        if (!st)
            st = agree_on_plan(s, true, err);
        blame_output(err, st);
    }
    if (!st)
        st = write_share(s, share.number, err);
    if (!st)
        st = complete(s, err);
    end(s, out);
    return heft_error_end(err, st);
}

heft_status heft_share_finish(heft_share_result *out, const heft_file *in, const heft_format *to,
                              const char *path, uint32_t flags, const heft_convert_options *opt,
                              heft_error *err)
{
    heft_share_store *s;
    heft_error own;
    uint32_t count = 0;
    err = heft_error_begin(err, &own);
    heft_status st = new_store(&s, path, flags, err);
    if (!st)
        st = s->ops->open(s, false, err);
    if (!st)
        st = read_count(s, &count, err);
    blame_output(err, st);
    if (!st)
        st = plan(s, in, to, count, opt, err);
    if (!st)
        st = blame_output(err, agree_on_plan(s, false, err));
    if (!st)
        st = complete(s, err);
    if (!st && s->result.missing) {
        st = heft_error_plain(err, HEFT_E_NOTFOUND, "%U of %U shares are missing",
                              (uint64_t)s->result.missing, (uint64_t)count);
        blame_output(err, st);
    }
    end(s, out);
    return heft_error_end(err, st);
}

heft_status heft_share_abort(const char *path, heft_error *err)
{
    heft_share_store *s;
    heft_error own, why;
    err = heft_error_begin(err, &own);
    heft_status st = new_store(&s, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = s->ops->open(s, false, err);
    if (!st) {
        heft_status read = read_count(s, &s->count, &why);
        if (read && read != HEFT_E_NOTFOUND && read != HEFT_E_ARGUMENT)
            st = heft_error_plain(err, read, "%s", why.message);
        else
            st = s->ops->remove_all(s, true, err);
    }
    end(s, NULL);
    return heft_error_end(err, st);
}
