/* s3_share_store.c - shares of a conversion to an object of S3.  Beside KEY there are the objects
 *
 *     KEY.shares/plan                            the id of the plan and the id of the upload,
 *                                                stored once, before any data
 *     KEY.shares/share-00002-of-8                the record of share 2, stored after its data
 *     KEY.shares/piece-00012-of-share-00002      bytes of a part that is not whole in the share
 *     KEY.shares/done                            stored before the upload is completed
 *
 * and all parts belong to that upload.  A process that finds the upload gone, and KEY as announced
 * in `done`, is done. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "port/remote/s3_shares.h"
#include "port/sink_file.h"

static const char plan_name[] = "plan", upload_line[] = "upload ";

static heft_status remove_object(const heft_s3_shares *s, const char *name, heft_error *err)
{
    heft_s3_name names[1];
    snprintf(names[0], sizeof names[0], "%s", name);
    return heft_s3_remove(s->upload.session, &s->folder, names, 1, err);
}

/* ---- the plan ---- */

/* Take the id of the upload from the last line of the plan, and cut the line off. */
static bool take_upload(heft_s3_shares *s, char *text, size_t *len)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-_.~%";
    char *line = strstr(text, "\nupload "), *id = line ? line + sizeof upload_line : NULL;
    size_t n = id ? strspn(id, allowed) : 0;
    if (!n || n >= sizeof s->upload.id || strcmp(id + n, "\n") != 0)
        return false;
    memcpy(s->upload.id, id, n);
    s->upload.id[n] = '\0';
    line[1] = '\0';
    *len = (size_t)(line + 1 - text);
    return true;
}

static heft_status read_plan(heft_share_store *store, char **out, size_t *len, heft_error *err)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    *s->upload.id = '\0';
    heft_status st = heft_s3_shares_read(out, len, s, plan_name, HEFT_SHARE_MAX_RECORD, err);
    if (st == HEFT_E_NOTFOUND)
        return heft_error_plain(err, st, "there are no shares: the object '%splan' does not exist",
                                s->prefix);
    if (!st && !take_upload(s, *out, len)) {
        free(*out);
        *out = NULL;
        st = heft_share_refuse_plan(err);
    }
    if (!st && s->base.plan) {
        st = heft_s3_shares_cut(s, err);
        if (st)
            free(*out);
    }
    return st;
}

/* Remove the upload of this process: the plan names a different upload. */
static void abort_own(heft_s3_shares *s, const char *own)
{
    char chosen[sizeof s->upload.id];
    heft_error ignored;
    strcpy(chosen, s->upload.id);
    strcpy(s->upload.id, own);
    (void)(heft_s3_upload_abort(&s->upload, &ignored) == HEFT_OK);
    strcpy(s->upload.id, chosen);
}

/* A server that stores the plan a second time would let each process use a separate upload. */
static heft_status check_condition(const heft_s3_shares *s, heft_str body, heft_error *err)
{
    long code;
    heft_error ignored;
    heft_status st = heft_s3_shares_put(s, plan_name, body, "If-None-Match: *", &code, err);
    if (st)
        return code == 412 || code == 409 ? HEFT_OK : st;
    (void)(remove_object(s, plan_name, &ignored) == HEFT_OK);
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "the server ignores the header If-None-Match, which shares need to "
                            "agree on one upload; write the shares to a file that all processes "
                            "see, or convert without shares");
}

/* Store the plan with the id of the own upload, unless a plan is stored. */
static heft_status put_plan(const heft_s3_shares *s, const char *own, const char *text, size_t len,
                            heft_error *err)
{
    char body[sizeof s->upload.id + 256];
    long code;
    int n = snprintf(body, sizeof body, "%.*s%s%s\n", (int)len, text, upload_line, own);
    heft_str all = { body, (size_t)n };
    if ((size_t)n >= sizeof body)
        return heft_error_plain(err, HEFT_E_LIMIT, "the text of the plan is too long");
    heft_status st = heft_s3_shares_put(s, plan_name, all, "If-None-Match: *", &code, err);
    if (st)
        return code == 412 || code == 409 ? HEFT_OK : st; /* 409: a different request was faster */
    return check_condition(s, all, err);
}

static heft_status publish_plan(heft_share_store *store, const char *text, size_t len,
                                heft_error *err)
{
    enum { TRIES = 5 };
    heft_s3_shares *s = (heft_s3_shares *)store;
    char own[sizeof s->upload.id] = "", *found;
    size_t found_len;
    heft_status st = read_plan(store, &found, &found_len, err);
    for (int i = 0; i < TRIES && st == HEFT_E_NOTFOUND; i++) {
        st = *own ? HEFT_OK : heft_s3_upload_begin(&s->upload, err);
        if (!st && !*own)
            strcpy(own, s->upload.id);
        if (!st)
            st = put_plan(s, own, text, len, err);
        if (!st)
            st = read_plan(store, &found, &found_len, err);
    }
    if (!st)
        free(found);
    /* After an error without an answer the plan with this upload may be stored. */
    bool is_refused = st == HEFT_E_UNSUPPORTED || (st && err->os == EACCES);
    if (*own && (is_refused || (!st && strcmp(own, s->upload.id) != 0)))
        abort_own(s, own);
    return st;
}

/* ---- records ---- */

static heft_status read_record(heft_share_store *store, uint32_t number, char **out, size_t *len,
                               heft_error *err)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    char name[HEFT_SHARE_NAME_BYTES];
    heft_share_record_name(name, number, store->count);
    heft_status st = heft_s3_shares_read(out, len, s, name, HEFT_SHARE_MAX_RECORD, err);
    if (st == HEFT_E_NOTFOUND)
        return heft_error_plain(err, st, "%s is missing", name);
    if (st)
        return st;
    st = heft_s3_share_record_read(s, number, *out, len, err);
    if (st) {
        free(*out);
        *out = NULL;
    }
    return st;
}

/* Refuse if the shares were given up, or began again, while the share was written. */
static heft_status check_upload(heft_s3_shares *s, heft_error *err)
{
    char own[sizeof s->upload.id], *found;
    size_t len;
    strcpy(own, s->upload.id);
    heft_status st = read_plan(&s->base, &found, &len, err);
    if (!st)
        free(found);
    if (!st && strcmp(own, s->upload.id) != 0)
        st = heft_error_plain(err, HEFT_E_ARGUMENT,
                              "other processes have given up these shares and begun again; run the "
                              "share again");
    return st;
}

static heft_status publish_record(heft_share_store *store, uint32_t number, heft_str record,
                                  heft_error *err)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    char name[HEFT_SHARE_NAME_BYTES];
    size_t len = 0;
    long code;
    heft_status st = check_upload(s, err);
    char *text = st ? NULL : heft_s3_share_record(&len, s, number, record);
    if (!st && !text)
        st = heft_error_no_memory(err, "for the record of a share");
    heft_share_record_name(name, number, store->count);
    if (!st)
        st = heft_s3_shares_put(s, name, (heft_str){ text, len }, NULL, &code, err);
    free(text);
    return st;
}

static void remove_record(heft_share_store *store, uint32_t number)
{
    char name[HEFT_SHARE_NAME_BYTES];
    heft_error ignored;
    heft_share_record_name(name, number, store->count);
    (void)(remove_object((heft_s3_shares *)store, name, &ignored) == HEFT_OK);
}

typedef struct found_records {
    const heft_share_store *s;
    uint8_t *seen; /* by share */
    uint32_t count;
} found_records;

static void on_record(void *ctx, const char *name)
{
    found_records *f = ctx;
    char expected[HEFT_SHARE_NAME_BYTES];
    unsigned number;
    if (sscanf(name, "share-%9u-of-", &number) != 1 || number - 1 >= f->s->count)
        return;
    heft_share_record_name(expected, number, f->s->count);
    if (strcmp(name, expected) != 0 || f->seen[number - 1])
        return;
    f->seen[number - 1] = 1;
    f->count++;
}

static heft_status count_missing(uint32_t *out, heft_share_store *store, heft_error *err)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    size_t size = strlen(s->prefix) + sizeof "share-";
    char *prefix = malloc(size);
    found_records found = { .s = store, .seen = calloc(store->count, 1) };
    heft_status st = prefix && found.seen ? HEFT_OK : heft_error_no_memory(err, "for a list");
    if (!st) {
        snprintf(prefix, size, "%sshare-", s->prefix);
        st = heft_s3_list(s->upload.session, &s->bucket, prefix, on_record, &found, err);
    }
    *out = store->count - found.count;
    free(found.seen);
    free(prefix);
    return st;
}

/* ---- the end ---- */

static bool has_data(heft_share_store *store, uint32_t number)
{
    heft_error ignored;
    return heft_s3_share_data_check((heft_s3_shares *)store, number, &ignored) == HEFT_OK;
}

/* Return true if `done` announces an object of this size and ETag.  The process that
 * completed the output may have removed `done`; then the object must differ from the old object. */
static bool is_announced(const heft_s3_shares *s, const heft_answer *object)
{
    char *text, *rest;
    size_t len;
    heft_error ignored;
    if (object->total != heft_share_size(s->base.plan))
        return false;
    if (heft_s3_shares_read(&text, &len, s, heft_s3_done, HEFT_SHARE_MAX_RECORD, &ignored))
        return !s->exists || strcmp(object->etag, s->old.etag) != 0;
    text[strcspn(text, "\n")] = '\0';
    uint64_t size = strtoull(text, &rest, 10);
    const char *etag = *rest == ' ' ? rest + 1 : rest;
    bool is_same = size == object->total && (!*etag || !strcmp(etag, object->etag));
    free(text);
    return is_same;
}

static bool is_completed(heft_share_store *store)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    heft_s3_stored_part none;
    heft_answer object;
    heft_error why;
    if (*s->upload.id &&
        (heft_s3_upload_list(&none, 0, &s->upload, &why) != HEFT_E_IO || why.os != ENOENT))
        return false;
    return !heft_s3_look(&object, s->upload.session, &s->upload.target, &why) && object.has_total &&
           is_announced(s, &object);
}

typedef struct name_list {
    heft_memory mem;
    heft_vec names; /* heft_s3_name */
    bool has_failed, has_plan, has_done;
} name_list;

/* Remember the names of records and pieces; other objects are not removed. */
static void on_name(void *ctx, const char *name)
{
    name_list *l = ctx;
    l->has_plan = l->has_plan || !strcmp(name, plan_name);
    l->has_done = l->has_done || !strcmp(name, heft_s3_done);
    bool is_own = !strncmp(name, "share-", 6) || !strncmp(name, "piece-", 6);
    if (!is_own || strlen(name) >= sizeof(heft_s3_name))
        return;
    heft_s3_name *to = heft_vec_push(&l->mem, &l->names, sizeof *to);
    if (to)
        strcpy(*to, name);
    l->has_failed = l->has_failed || !to;
}

/* Remove all objects, the plan behind the records. */
static heft_status remove_objects(heft_s3_shares *s, bool *found, heft_error *err)
{
    name_list l = { .mem = { &heft_libc_allocator, UINT64_MAX, 0 } };
    heft_session *session = s->upload.session;
    heft_status st = heft_s3_list(session, &s->bucket, s->prefix, on_name, &l, err);
    *found = l.names.len || l.has_plan || l.has_done;
    if (!st && l.has_failed)
        st = heft_error_no_memory(err, "for a list of objects");
    if (!st)
        st = heft_s3_remove(session, &s->folder, l.names.ptr, l.names.len, err);
    if (!st && l.has_plan)
        st = remove_object(s, plan_name, err);
    if (!st && l.has_done)
        st = remove_object(s, heft_s3_done, err);
    heft_vec_free(&l.mem, &l.names, sizeof(heft_s3_name));
    return st;
}

static heft_status remove_all(heft_share_store *store, bool with_data, heft_error *err)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    bool found;
    heft_error why;
    heft_status st = with_data ? heft_s3_upload_abort(&s->upload, &why) : check_upload(s, &why);
    if (st == HEFT_E_ARGUMENT) /* the objects belong to shares that have begun since */
        return HEFT_OK;
    if (st == HEFT_E_NOTFOUND) /* the plan is removed; this process may have stored objects since */
        st = HEFT_OK;
    if (st && why.os != ENOENT)
        return heft_error_plain(err, st, "%s", why.message);
    st = remove_objects(s, &found, err);
    if (!st && with_data && !found)
        st = heft_error_plain(err, HEFT_E_NOTFOUND, "there are no shares: no object '%s...' exists",
                              s->prefix);
    return st;
}

static heft_status open_store(heft_share_store *store, bool creates, heft_error *err)
{
    (void)store;
    (void)creates;
    (void)err;
    return HEFT_OK;
}

static void close_store(heft_share_store *store)
{
    heft_s3_shares *s = (heft_s3_shares *)store;
    heft_s3_count_writer(false);
    heft_session_release(s->upload.session);
    free(s->prefix);
    free(s->etags);
    free(s->hashes);
    free(s);
}

static const heft_share_store_ops ops = {
    .open = open_store,
    .publish_plan = publish_plan,
    .read_plan = read_plan,
    .read_record = read_record,
    .publish_record = publish_record,
    .remove_record = remove_record,
    .count_missing = count_missing,
    .has_data = has_data,
    .data_open = heft_s3_share_data_open,
    .is_completed = is_completed,
    .remove_all = remove_all,
    .close = close_store,
};

/* Set the addresses of the output, of the objects beside the output, and of the bucket. */
static heft_status find_addresses(heft_s3_shares *s, const char *url, heft_error *err)
{
    const char *bucket = url + strlen("s3://"), *key = strchr(bucket, '/');
    char *any = NULL;
    heft_status st = heft_address_of(&s->upload.target, url, err); /* checks the form */
    if (st)
        return st;
    s->folder = s->upload.target;
    if (!heft_url_append(s->folder.url, sizeof s->folder.url, HEFT_STR(".shares/"), "/"))
        return heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
    size_t size = strlen(url) + sizeof ".shares/";
    s->prefix = malloc(size);
    any = malloc(size);
    if (!s->prefix || !any)
        st = heft_error_no_memory(err, "for an address");
    if (!st) {
        snprintf(s->prefix, size, "%s.shares/", key + 1);
        snprintf(any, size, "s3://%.*s/x", (int)(key - bucket), bucket);
        st = heft_address_of(&s->bucket, any, err);
    }
    free(any);
    if (!st)
        s->bucket.url[strlen(s->bucket.url) - strlen("/x")] = '\0';
    return st;
}

static heft_status find_output(heft_s3_shares *s, heft_error *err)
{
    heft_status st = heft_s3_look(&s->old, s->upload.session, &s->upload.target, err);
    s->exists = !st;
    if (!st && !(s->base.flags & HEFT_SINK_REPLACE))
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    return st == HEFT_E_NOTFOUND ? HEFT_OK : st;
}

heft_status heft_s3_shares_new(heft_share_store **out, const char *url, uint32_t flags,
                               const heft_url_options *opt, heft_error *err)
{
    *out = NULL;
    heft_status st = heft_s3_check_address(url, err);
    heft_s3_shares *s = st ? NULL : calloc(1, sizeof *s);
    if (!s)
        return st ? st : heft_error_no_memory(err, "for shares");
    s->base = (heft_share_store){ .ops = &ops, .flags = flags };
    heft_s3_count_writer(true);
    st = find_addresses(s, url, err);
    if (!st)
        st = heft_session_new(&s->upload.session, opt, err);
    if (!st)
        st = find_output(s, err);
    if (st)
        close_store(&s->base);
    else
        *out = &s->base;
    return st;
}
