/* open_url.c - open a model by a URL, with shards next to the first file.
 *
 * The address of a repository opens like a folder with the files of the repository. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/companion.h>

#include "base/text.h"
#include "local/pipeline_folder.h"
#include "port/remote/partial_file.h"
#include "port/remote/source_url.h"

enum { NAME_BYTES = 256, MAX_LIST = 16 << 20 /* bytes of the list of a repository */ };

typedef struct url_folder { /* ctx of a heft_shard_folder */
    heft_session *session;
    char url[HEFT_URL_MAX]; /* first file */
    char name[NAME_BYTES];
    struct expected_shard *expected;
} url_folder;

typedef struct expected_shard { /* has been requested, and is not yet open */
    struct expected_shard *next;
    char name[NAME_BYTES];
    heft_source *source;
} expected_shard;

/* Write the URL of the file `name` in the folder of the first file. */
static heft_status address_of(char *out, const url_folder *f, const char *name, heft_error *err)
{
    const char *query = f->url + heft_url_before_query(f->url), *slash = query;
    while (slash > f->url && slash[-1] != '/')
        slash--;
    bool is_encoded = !strncmp(f->url, "http", 4);
    memcpy(out, f->url, (size_t)(slash - f->url));
    out[slash - f->url] = '\0';
    bool fits = is_encoded ? heft_url_append(out, HEFT_URL_MAX, heft_str_from(name), "/")
                           : strlen(out) + strlen(name) < HEFT_URL_MAX && strcat(out, name);
    if (is_encoded)
        fits = fits && strlen(out) + strlen(query) < HEFT_URL_MAX && strcat(out, query);
    return fits ? HEFT_OK : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

/* Send the first request for a file, without waiting for the answer. */
static heft_status begin_source(heft_source **out, heft_session *s, const char *url,
                                heft_error *err)
{
    heft_address *t = malloc(sizeof *t);
    *out = NULL;
    if (!t)
        return heft_error_no_memory(err, "for an address");
    heft_status st = heft_address_of(t, url, err);
    if (!st && t->is_repository)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "names a repository: name a file of it");
    if (!st)
        st = heft_url_source_begin(out, s, t, err);
    free(t);
    return st;
}

/* Wait for the first answer; close the source after an error. */
static heft_status finish_source(heft_source **out, const heft_session *s, heft_error *err)
{
    const heft_url_options *o = heft_session_options(s);
    heft_status st = heft_url_source_finish(*out, err);
    if (!st && o->resume)
        st = heft_resumed_source(out, o, err);
    if (!st)
        return HEFT_OK;
    heft_source_close(*out);
    *out = NULL;
    return st;
}

static heft_status open_source_in(heft_source **out, heft_session *s, const char *url,
                                  heft_error *err)
{
    HEFT_TRY(begin_source(out, s, url, err));
    return finish_source(out, s, err);
}

/* ---- shards ---- */

static heft_status begin_shard(heft_source **out, url_folder *f, const char *name, heft_error *err)
{
    char *url = malloc(HEFT_URL_MAX);
    *out = NULL;
    heft_status st = url ? address_of(url, f, name, err)
                         : heft_error_no_memory(err, "for an address");
    if (!st)
        st = begin_source(out, f->session, url, err);
    free(url);
    return st;
}

/* A shard that cannot be requested now is requested by open_shard(), which reports the error. */
static void expect_shard(void *ctx, const char *name)
{
    url_folder *f = ctx;
    heft_error ignored;
    expected_shard *e = strlen(name) < NAME_BYTES ? calloc(1, sizeof *e) : NULL;
    if (!e || begin_shard(&e->source, f, name, &ignored)) {
        free(e);
        return;
    }
    strcpy(e->name, name);
    e->next = f->expected;
    f->expected = e;
}

/* Take the source of an expected shard; NULL: the shard is not expected. */
static heft_source *take_expected(url_folder *f, const char *name)
{
    for (expected_shard **at = &f->expected; *at; at = &(*at)->next) {
        expected_shard *e = *at;
        heft_source *source = e->source;
        if (strcmp(e->name, name) != 0)
            continue;
        *at = e->next;
        free(e);
        return source;
    }
    return NULL;
}

static heft_status open_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    url_folder *f = ctx;
    *out = take_expected(f, name);
    heft_status st = *out ? HEFT_OK : begin_shard(out, f, name, err);
    if (!st)
        st = finish_source(out, f->session, err);
    if (st == HEFT_E_IO && err->os == ENOENT)
        err->status = st = HEFT_E_NOTFOUND;
    return st;
}

static void close_folder(url_folder *f)
{
    while (f && f->expected) {
        expected_shard *e = f->expected;
        f->expected = e->next;
        heft_source_close(e->source);
        free(e);
    }
    if (f)
        heft_session_release(f->session);
    free(f);
}

/* ---- opening ---- */

/* Set the name of the file; names of shards begin with this name. */
static void set_name(url_folder *f)
{
    const char *end = f->url + heft_url_before_query(f->url), *from = end;
    while (from > f->url && from[-1] != '/')
        from--;
    snprintf(f->name, sizeof f->name, "%.*s", (int)(end - from), from);
}

/* Open the file of an address, with shards next to the file.  opt is complete. */
static heft_status open_address(heft_file **out, heft_session *s, const char *url,
                                const heft_open_options *opt, heft_error *err)
{
    heft_open_options o = *opt;
    heft_source *source;
    url_folder *f = calloc(1, sizeof *f);
    if (!f)
        return heft_error_no_memory(err, "for an address");
    f->session = heft_session_share(s);
    strcpy(f->url, url);
    heft_status st = open_source_in(&source, s, url, err);
    if (!st) {
        set_name(f);
        heft_shard_folder shards = { sizeof shards, f->name, open_shard, f, NULL, expect_shard };
        o.shards = o.shards ? o.shards : &shards;
        st = heft_file_open_source(out, source, &o, err);
    }
    close_folder(f);
    return st;
}

static void say_opened(const heft_session *s, const char *url)
{
    char *to = heft_session_options(s)->opened;
    if (to)
        strcpy(to, url);
}

/* ---- repositories ---- */

typedef struct repository {
    heft_session *session;
    const char *url;
    heft_settings *answer;   /* the list of the files */
    char file[HEFT_URL_MAX]; /* address of a file */
} repository;

/* Open the model of a folder of the repository: "" or "unet/". */
static heft_status open_folder(heft_file **out, repository *r, const char *folder,
                               const heft_open_options *opt, heft_error *err)
{
    heft_open_options o = *opt;
    heft_folder_choice c;
    heft_folder_listing l;
    heft_hub_list_folder(&l, r->answer, folder);
    heft_status st = heft_folder_choose(&c, &l, NULL, err);
    if (!st)
        st = heft_hub_address(r->file, r->url, r->answer, folder, c.main, err);
    if (!st) {
        c.folder.prefix = *folder ? folder : NULL;
        o.folder = &c.folder;
        st = open_address(out, r->session, r->file, &o, err);
    }
    heft_folder_listing_free(&l);
    return st;
}

static heft_status open_component(heft_file **out, void *ctx, const char *name,
                                  const heft_open_options *opt, heft_error *err)
{
    char folder[NAME_BYTES];
    snprintf(folder, sizeof folder, "%s/", name);
    *out = NULL;
    return open_folder(out, ctx, folder, opt, err);
}

static heft_status list_repository(heft_folder_listing *l, void *ctx, heft_error *err)
{
    const repository *r = ctx;
    (void)err;
    heft_hub_list_folder(l, r->answer, "");
    return HEFT_OK;
}

static heft_status open_index(heft_source **out, void *ctx, heft_error *err)
{
    repository *r = ctx;
    heft_folder_listing l;
    *out = NULL;
    heft_hub_list_folder(&l, r->answer, "");
    heft_status st = HEFT_OK;
    if (l.is_pipeline)
        st = heft_hub_address(r->file, r->url, r->answer, "", HEFT_PIPELINE_INDEX, err);
    if (!st && l.is_pipeline)
        st = open_source_in(out, r->session, r->file, err);
    heft_folder_listing_free(&l);
    return st;
}

static heft_status open_repository(heft_file **out, heft_session *s, const char *url,
                                   const heft_address *t, const heft_open_options *opt,
                                   heft_error *err)
{
    size_t length;
    char *text = NULL;
    repository *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return heft_error_no_memory(err, "for an address");
    r->session = s;
    r->url = url;
    heft_pipeline_store store = { open_index, open_component, list_repository, r };
    heft_status st = heft_url_read_whole(&text, &length, s, t, MAX_LIST, err);
    if (!st)
        st = heft_settings_parse_json(&r->answer, (heft_str){ text, length }, NULL, err);
    if (!st)
        st = heft_pipeline_open(out, &store, opt, err);
    if (!st && !*out) {
        st = open_folder(out, r, "", opt, err);
        if (!st)
            say_opened(s, r->file);
    }
    heft_settings_close(r->answer);
    free(text);
    free(r);
    return st;
}

static heft_status open_file(heft_file **out, const char *url, const heft_open_options *opt,
                             const heft_url_options *url_opt, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_session *s = NULL;
    heft_error own;
    err = err ? err : &own;
    *out = NULL;
    heft_address *t = malloc(sizeof *t);
    heft_status st = t ? heft_sized_copy(&o, offsetof(heft_open_options, reserved), opt, err)
                       : heft_error_no_memory(err, "for an address");
    if (!st && strlen(url) >= HEFT_URL_MAX)
        st = heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
    if (!st)
        st = heft_session_new(&s, url_opt, err);
    if (!st)
        st = heft_address_of(t, url, err);
    if (!st)
        say_opened(s, "");
    if (!st && t->is_repository)
        st = open_repository(out, s, url, t, &o, err);
    else if (!st) {
        st = open_address(out, s, url, &o, err);
        if (!st)
            say_opened(s, url);
    }
    if (s)
        heft_session_release(s);
    free(t);
    return st;
}

static heft_status open_source(heft_source **out, const char *url, const heft_url_options *opt,
                               heft_error *err)
{
    heft_session *s;
    heft_error own;
    err = err ? err : &own;
    heft_status st = heft_session_new(&s, opt, err);
    *out = NULL;
    if (st)
        return st;
    st = open_source_in(out, s, url, err);
    heft_session_release(s);
    return st;
}

const heft_remote heft_curl_remote = { open_source, open_file, heft_s3_sink_open,
                                       heft_partial_remove_all };
