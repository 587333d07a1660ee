/* url.c - the text of URLs, and calls of the functions for URLs that the build has. */
#include "port/port.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "local/hub_cache.h"

static atomic_bool is_interrupted;

void heft_url_interrupt(bool interrupts)
{
    atomic_store(&is_interrupted, interrupts);
}

bool heft_url_is_interrupted(void)
{
    return atomic_load(&is_interrupted);
}

static const char *const schemes[] = { "https://", "http://", "hf://", "s3://" };

bool heft_is_url(const char *path)
{
    for (size_t i = 0; path && i < sizeof schemes / sizeof *schemes; i++)
        if (!strncmp(path, schemes[i], strlen(schemes[i])))
            return true;
    return false;
}

size_t heft_url_before_query(const char *url)
{
    return strncmp(url, "http", 4) ? strlen(url) : strcspn(url, "?#");
}

void heft_url_redact(char *out, size_t size, const char *url)
{
    if (!size)
        return;
    if (!heft_is_url(url)) {
        snprintf(out, size, "%s", url);
        return;
    }
    const char *host = strstr(url, "://") + 3;
    size_t authority = strcspn(host, "/?#"), skipped = 0;
    for (size_t i = 0; i < authority; i++)
        skipped = host[i] == '@' ? i + 1 : skipped;
    bool is_hub = !strncmp(url, "hf:", 3); /* '@' precedes the revision */
    const char *from = host + (is_hub ? 0 : skipped);
    size_t len = heft_url_before_query(url) - (size_t)(from - url);
    snprintf(out, size, "%.*s%.*s%s", (int)(host - url), url, (int)len, from,
             from[len] == '?' ? "?..." : "");
}

bool heft_url_append(char *buf, size_t size, heft_str text, const char *kept)
{
    size_t at = strlen(buf);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr("-_.~", c)) ||
                        (c && strchr(kept, c));
        if (at + (is_plain ? 2 : 4) > size)
            return false;
        if (is_plain) {
            buf[at++] = (char)c;
        } else {
            buf[at++] = '%';
            heft_hex_capitals(buf + at, &c, 1);
            at += 2;
        }
    }
    buf[at] = '\0';
    return true;
}

/* Read a number from a variable, if *value is 0. */
static heft_status default_number(uint32_t *value, const char *variable, heft_error *err)
{
    enum { MOST = 1000000000 };
    const char *text = *value ? NULL : secure_getenv(variable);
    unsigned long n = 0;
    char *end;
    if (!text || !*text)
        return HEFT_OK;
    n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || !n || n > MOST)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%s is not a number from 1 to %U", variable,
                                (uint64_t)MOST);
    *value = (uint32_t)n;
    return HEFT_OK;
}

static heft_status find_remote(const heft_remote **out, heft_url_options *o, const char *url,
                               const heft_url_options *opt, heft_error *err)
{
    const char *offline = getenv("HF_HUB_OFFLINE");
    heft_status st = heft_sized_copy(o, sizeof *o, opt, err);
    *out = heft_host_remote();
    if (st)
        return st;
    if (!heft_is_url(url))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "the address has none of the schemes "
                                "https, http, hf and s3");
    if (!*out)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build reads no URLs: it %s",
                                heft_no_remote);
    bool is_set = offline &&
                  (!strcmp(offline, "1") || !strcmp(offline, "true") || !strcmp(offline, "TRUE") ||
                   !strcmp(offline, "ON") || !strcmp(offline, "YES"));
    if (o->offline || is_set)
        return heft_error_plain(err, HEFT_E_IO,
                                "is on a server, and %s forbids the use of the network",
                                o->offline ? "the option 'offline'" : "HF_HUB_OFFLINE");
    HEFT_TRY(default_number(&o->connections, "HEFT_CONNECTIONS", err));
    HEFT_TRY(default_number(&o->timeout, "HEFT_TIMEOUT", err));
    return default_number(&o->slowest, "HEFT_SLOWEST", err);
}

heft_status heft_source_url(heft_source **out, const char *url, const heft_url_options *opt,
                            heft_error *err)
{
    const heft_remote *remote;
    heft_url_options o = HEFT_URL_OPTIONS_INIT;
    *out = NULL;
    HEFT_TRY(find_remote(&remote, &o, url, opt, err));
    return remote->open_source(out, url, &o, err);
}

heft_status heft_file_open_url(heft_file **out, const char *url, const heft_open_options *opt,
                               const heft_url_options *url_opt, heft_error *err)
{
    const heft_remote *remote;
    heft_url_options o = HEFT_URL_OPTIONS_INIT;
    *out = NULL;
    if (!url)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the address to open is missing");
    HEFT_TRY(find_remote(&remote, &o, url, url_opt, err));
    return remote->open_file(out, url, opt, &o, err);
}

heft_status heft_url_remove_kept(const char *resume, heft_error *err)
{
    const heft_remote *remote = heft_host_remote();
    return remote ? remote->remove_kept(resume, err) : HEFT_OK;
}

heft_status heft_sink_open_url(heft_sink **out, const char *url, uint32_t flags,
                               const heft_url_options *url_opt, heft_error *err)
{
    const heft_remote *remote;
    heft_url_options o = HEFT_URL_OPTIONS_INIT;
    *out = NULL;
    HEFT_TRY(find_remote(&remote, &o, url, url_opt, err));
    return remote->open_sink(out, url, flags, &o, err);
}
