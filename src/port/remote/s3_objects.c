/* s3_objects.c - small objects of S3: read, stored, listed and removed.
 *
 *     GET BUCKET?list-type=2&prefix=TEXT   lists the objects, at most 1000 in an answer */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/remote/s3.h"

heft_status heft_s3_read(char **out, size_t *len, heft_session *s, const heft_address *target,
                         uint64_t most, heft_error *err)
{
    heft_status st = heft_url_read_whole(out, len, s, target, most, err);
    if (!st) {
        (*out)[*len] = '\0';
        return HEFT_OK;
    }
    free(*out);
    *out = NULL;
    if (st == HEFT_E_IO && err->os == ENOENT)
        return heft_error_plain(err, HEFT_E_NOTFOUND, "does not exist on the server");
    return st;
}

heft_status heft_s3_put(heft_session *s, const heft_address *target, heft_str body,
                        const char *header, long *code, heft_error *err)
{
    heft_exchange x = {
        .method = "PUT", .query = "", .header = header, .body = body.ptr, .body_bytes = body.len
    };
    heft_status st = heft_s3_ask(s, target, &x, err);
    *code = x.code;
    return st;
}

/* ---- lists ---- */

heft_status heft_s3_read_names(char *xml, char *token, size_t size, heft_s3_name_fn *fn, void *ctx,
                               heft_error *err)
{
    char truncated[8] = "";
    bool is_whole = strstr(xml, "</ListBucketResult>");
    *token = '\0';
    heft_s3_find_element(truncated, sizeof truncated, xml, "IsTruncated");
    if (!strcmp(truncated, "true"))
        is_whole = is_whole && heft_s3_find_element(token, size, xml, "NextContinuationToken");
    if (!is_whole)
        return heft_error_plain(err, HEFT_E_IO, "the server's list of objects is damaged");
    for (char *key; (key = heft_s3_next_element(&xml, "Key")) != NULL;) {
        const char *slash = strrchr(key, '/');
        fn(ctx, slash ? slash + 1 : key);
    }
    return HEFT_OK;
}

static bool make_query(char *out, size_t size, const char *token, const char *prefix)
{
    snprintf(out, size, "?%s", *token ? "continuation-token=" : "");
    return heft_url_append(out, size, heft_str_from(token), "") &&
           heft_url_append(
               out, size,
               *token ? HEFT_STR("&list-type=2&prefix=") : HEFT_STR("list-type=2&prefix="), "&=") &&
           heft_url_append(out, size, heft_str_from(prefix), "");
}

heft_status heft_s3_list(heft_session *s, const heft_address *bucket, const char *prefix,
                         heft_s3_name_fn *fn, void *ctx, heft_error *err)
{
    enum { PAGE = 4 << 20, MOST_PAGES = 1000, QUERY = 4096 };
    char token[1024] = "", query[QUERY], *text = malloc(PAGE);
    heft_status st = text ? HEFT_OK : heft_error_no_memory(err, "for a list of objects");
    for (int i = 0; !st && (!i || *token); i++) {
        heft_exchange x = { .method = "GET", .query = query, .text = text, .text_size = PAGE };
        *text = '\0';
        if (i == MOST_PAGES || !make_query(query, sizeof query, token, prefix))
            st = heft_error_plain(err, HEFT_E_LIMIT, "the list of objects is too long");
        if (!st)
            st = heft_s3_ask(s, bucket, &x, err);
        if (!st)
            st = heft_s3_read_names(text, token, sizeof token, fn, ctx, err);
    }
    free(text);
    return st;
}

/* ---- removal ---- */

typedef struct removal {
    heft_address target;
    heft_exchange exchange;
    heft_request request;
    bool is_sent;
} removal;

/* Send a request for each name. */
static heft_status send_all(removal *all, size_t count, heft_session *s, const heft_address *folder,
                            heft_s3_name *names, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < count && !st; i++) {
        removal *r = &all[i];
        r->target = *folder;
        r->exchange = (heft_exchange){ .method = "DELETE", .query = "" };
        r->request = (heft_request){ .target = &r->target, .exchange = &r->exchange };
        if (!heft_url_append(r->target.url, sizeof r->target.url, heft_str_from(names[i]), ""))
            return heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
        st = heft_session_send(s, &r->request, false, err);
        r->is_sent = !st;
    }
    return st;
}

heft_status heft_s3_remove(heft_session *s, const heft_address *folder, heft_s3_name *names,
                           size_t count, heft_error *err)
{
    enum { AT_ONCE = 16 };
    heft_status st = HEFT_OK;
    for (size_t at = 0; at < count && !st; at += AT_ONCE) {
        size_t n = count - at < AT_ONCE ? count - at : AT_ONCE;
        removal *all = calloc(n, sizeof *all);
        if (!all)
            return heft_error_no_memory(err, "for requests");
        heft_session_lock(s);
        st = send_all(all, n, s, folder, names + at, err);
        for (size_t i = 0; i < n; i++) {
            const heft_request *r = &all[i].request;
            while (all[i].is_sent && r->state != HEFT_REQUEST_DONE)
                heft_session_wait(s);
            if (!st && r->status && r->error.os != ENOENT)
                st = heft_error_plain(err, r->status, "%s", r->error.message);
        }
        heft_session_unlock(s);
        free(all);
    }
    return st;
}
