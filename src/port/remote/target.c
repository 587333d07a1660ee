/* target.c - addresses of the Hugging Face hub and of S3 as URLs with the credentials of the user.
 *
 * The hub: $HF_ENDPOINT/[datasets/]OWNER/NAME/resolve/REVISION/FILE, and the list of the files of a
 * repository at $HF_ENDPOINT/api/models/OWNER/NAME/revision/REVISION. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/port.h"
#include "port/remote/session.h"

/* ---- settings of the user for requests ---- */

/* ---- texts ---- */

static heft_str trim(heft_str s)
{
    static const char blank[] = " \t\r\n";
    while (s.len && memchr(blank, *s.ptr, sizeof blank - 1)) {
        s.ptr++;
        s.len--;
    }
    while (s.len && memchr(blank, s.ptr[s.len - 1], sizeof blank - 1))
        s.len--;
    return s;
}

static heft_status setting_copy(char *out, size_t size, heft_str value, const char *origin,
                                heft_error *err)
{
    value = trim(value);
    *out = '\0';
    if (value.len >= size)
        return heft_error_plain(err, HEFT_E_LIMIT, "%s has %U bytes, and at most %U are allowed",
                                origin, (uint64_t)value.len, (uint64_t)size - 1);
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] <= ' ' || value.ptr[i] > '~')
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "%s has a space, a control character or a letter that is not "
                                    "ASCII as byte %U, and is not sent: set it again without",
                                    origin, (uint64_t)i);
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return HEFT_OK;
}

/* Copy a setting to `out`, terminated and without spaces and line feeds at both ends.  The text is
 * empty if there is no such setting.  origin: the name of the setting in messages.
 *   HEFT_E_ARGUMENT  a space, a control character, or a character that is not ASCII within
 *   HEFT_E_LIMIT     the setting has `size` bytes or more */
static heft_status setting_of_variable(char *out, size_t size, const char *name, heft_error *err)
{
    const char *value = secure_getenv(name);
    return setting_copy(out, size, heft_str_from(value ? value : ""), name, err);
}

/* ---- files ---- */

/* The whole file is the setting. */
static heft_status setting_of_file(char *out, size_t size, const char *path, heft_error *err)
{
    enum { MORE = 256 }; /* blanks around the setting */
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(size + MORE) : NULL;
    size_t len = text ? fread(text, 1, size + MORE, f) : 0;
    heft_status st = f && !text
                         ? heft_error_no_memory(err, "for a setting")
                         : setting_copy(out, size, (heft_str){ text ? text : "", len }, path, err);
    free(text);
    if (f)
        fclose(f);
    return st;
}

/* Return true if the line sets the key, which is before the first '='. */
static bool sets_key(heft_str *value, char *line, const char *key)
{
    size_t name = strcspn(line, " \t=");
    char *equals = line + name + strspn(line + name, " \t");
    bool is_key = *equals == '=' && name == strlen(key) && !memcmp(line, key, name);
    if (is_key)
        *value = trim(heft_str_from(equals + 1));
    return is_key;
}

/* Look up a key in a section of a file of AWS: "default", "profile NAME". */
static heft_status setting_of_profile(char *out, size_t size, const char *path, const char *section,
                                      const char *key, heft_error *err)
{
    char *line = NULL, origin[512];
    size_t capacity = 0;
    bool is_section = false;
    heft_str value = { "", 0 };
    FILE *f = fopen(path, "re");
    while (f && !value.len && getline(&line, &capacity, f) >= 0) {
        char *p = line + strspn(line, " \t");
        if (*p == '[') {
            p[strcspn(p, "]")] = '\0';
            is_section = !strcmp(p + 1, section);
        } else if (is_section)
            (void)sets_key(&value, p, key);
    }
    snprintf(origin, sizeof origin, "%s in %s", key, path);
    heft_status st = setting_copy(out, size, value, origin, err);
    free(line);
    if (f)
        fclose(f);
    return st;
}

enum { ENDPOINT_BYTES = 1024 };

static const char *setting(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* Join a folder and a name; the path is empty without a folder, or if the path does not fit. */
static void join_path(char path[PATH_MAX], const char *folder, const char *name)
{
    if (!folder || snprintf(path, PATH_MAX, "%s%s", folder, name) >= PATH_MAX)
        *path = '\0';
}

/* Remove slashes at the end of the address of a server, and check its form. */
static heft_status check_endpoint(char *endpoint, const char *origin, heft_error *err)
{
    for (size_t n = strlen(endpoint); n && endpoint[n - 1] == '/';)
        endpoint[--n] = '\0';
    bool is_http = !strncmp(endpoint, "http://", 7) || !strncmp(endpoint, "https://", 8);
    if (!*endpoint || (is_http && !strpbrk(endpoint, "?#")))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "%s is not an address of the form https://HOST[:PORT][/PATH]", origin);
}

/* ---- the hub ---- */

/* Find the token in HF_TOKEN, or in the file of `hf auth login`. */
static heft_status find_token(char *out, size_t size, heft_error *err)
{
    char path[PATH_MAX];
    const char *named = setting("HF_TOKEN_PATH"), *home = setting("HF_HOME");
    heft_status st = setting_of_variable(out, size, "HF_TOKEN", err);
    if (st || *out)
        return st;
    if (named || home)
        join_path(path, named ? named : home, named ? "" : "/token");
    else
        join_path(path, setting("HOME"), "/.cache/huggingface/token");
    return setting_of_file(out, size, path, err);
}

/* Read the address of a server, without slashes at the end; empty: not set. */
static heft_status find_endpoint(char out[ENDPOINT_BYTES], const char *variable, heft_error *err)
{
    HEFT_TRY(setting_of_variable(out, ENDPOINT_BYTES, variable, err));
    return check_endpoint(out, variable, err);
}

static heft_str take_until(const char **p, const char *stops)
{
    heft_str taken = { *p, strcspn(*p, stops) };
    *p += taken.len;
    return taken;
}

/* An empty component, "." and ".." would change the meaning of the address. */
static bool is_component(heft_str s)
{
    return s.len && !heft_str_is(s, ".") && !heft_str_is(s, "..");
}

static bool is_path(const char *p)
{
    for (;; p++) {
        if (!is_component(take_until(&p, "/")))
            return false;
        if (!*p)
            return true;
    }
}

static heft_status hub_target(heft_address *t, const char *name, heft_error *err)
{
    static const char form[] = "hf://[datasets/]OWNER/NAME[@REVISION][/FILE]";
    const char *kind = "", *p = name;
    char endpoint[ENDPOINT_BYTES];
    heft_str revision = { "main", 4 };
    if (!strncmp(p, "datasets/", 9) || !strncmp(p, "spaces/", 7))
        kind = *p == 'd' ? "datasets/" : "spaces/";
    p += strlen(kind);
    heft_str owner = take_until(&p, "/@");
    p += *p == '/';
    heft_str repository = take_until(&p, "/@");
    if (*p == '@') {
        p++;
        revision = take_until(&p, "/");
    }
    bool is_valid = is_component(owner) && is_component(repository) && is_component(revision);
    const char *file = *p == '/' && p[1] ? p + 1 : NULL;
    if (!is_valid || (file && !is_path(file)))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "is not an address of the form %s", form);
    t->is_repository = !file;
    t->is_hub_file = file;
    HEFT_TRY(find_endpoint(endpoint, "HF_ENDPOINT", err));
    HEFT_TRY(find_token(t->bearer, sizeof t->bearer, err));
    snprintf(t->url, sizeof t->url, "%s/%s%s", *endpoint ? endpoint : "https://huggingface.co",
             file ? "" : "api/", *kind || file ? kind : "models/");
    const struct {
        heft_str text;
        const char *kept;
    } parts[] = {
        { owner, "" },
        { HEFT_STR("/"), "/" },
        { repository, "" },
        { file ? HEFT_STR("/resolve/") : HEFT_STR("/revision/"), "/" },
        { revision, "%" },
        { HEFT_STR("/"), "/" },
        { file ? heft_str_from(file) : HEFT_STR(""), "/" },
    };
    bool fits = true;
    for (size_t i = 0, count = file ? 7 : 5; i < count; i++)
        fits &= heft_url_append(t->url, sizeof t->url, parts[i].text, parts[i].kept);
    return fits ? HEFT_OK : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

/* ---- S3 ---- */

typedef struct s3_setting {
    const char *variables[3]; /* the last is NULL */
    const char *key;          /* in the files of the profile */
} s3_setting;

/* Look for a setting in the variables, then in the files of the profile. */
static heft_status find_s3(char *out, size_t size, const s3_setting *what, heft_error *err)
{
    static const struct {
        const char *variable, *name, *prefix;
    } files[] = {
        { "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", "" }, /* secrets */
        { "AWS_CONFIG_FILE", "/.aws/config", "profile " },          /* other settings */
    };
    char path[PATH_MAX], profile[256], section[300];
    heft_status st = HEFT_OK;
    *out = '\0';
    for (size_t i = 0; what->variables[i] && !st && !*out; i++)
        st = setting_of_variable(out, size, what->variables[i], err);
    if (!st && !*out)
        st = setting_of_variable(profile, sizeof profile, "AWS_PROFILE", err);
    if (st || *out)
        return st;
    bool is_default = !*profile || !strcmp(profile, "default");
    for (size_t i = 0; i < sizeof files / sizeof *files && !st && !*out; i++) {
        const char *named = setting(files[i].variable);
        join_path(path, named ? named : setting("HOME"), named ? "" : files[i].name);
        snprintf(section, sizeof section, "%s%s", is_default ? "" : files[i].prefix,
                 is_default ? "default" : profile);
        st = setting_of_profile(out, size, path, section, what->key, err);
    }
    return st;
}

/* Find the address of the server.  Without a setting it is that of AWS in the region: a host named
 * like the bucket would not match the certificate if the bucket has dots. */
static heft_status find_s3_server(char endpoint[ENDPOINT_BYTES], const char *region,
                                  heft_error *err)
{
    static const s3_setting endpoints = { { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL" },
                                          "endpoint_url" };
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    if (region[strspn(region, allowed)])
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "AWS_REGION, or the region of the profile, is not the name of a "
                                "region: %s",
                                region);
    HEFT_TRY(find_s3(endpoint, ENDPOINT_BYTES, &endpoints, err));
    if (!*endpoint)
        snprintf(endpoint, ENDPOINT_BYTES, "https://s3.%s.amazonaws.com", region);
    return check_endpoint(endpoint, "AWS_ENDPOINT_URL", err);
}

/* Find the keys; requests are signed only with both. */
static heft_status find_s3_keys(heft_address *t, const char *region, heft_error *err)
{
    static const s3_setting keys = { { "AWS_ACCESS_KEY_ID" }, "aws_access_key_id" },
                            secrets = { { "AWS_SECRET_ACCESS_KEY" }, "aws_secret_access_key" },
                            sessions = { { "AWS_SESSION_TOKEN" }, "aws_session_token" };
    char key[256] = "", secret[512] = "";
    heft_status st = find_s3(key, sizeof key, &keys, err);
    if (!st)
        st = find_s3(secret, sizeof secret, &secrets, err);
    if (st || !*key || !*secret)
        return st;
    snprintf(t->user, sizeof t->user, "%s:%s", key, secret);
    snprintf(t->signature, sizeof t->signature, "aws:amz:%s:s3", region);
    return find_s3(t->session, sizeof t->session, &sessions, err);
}

heft_status heft_s3_target(heft_address *t, const char *bucket_and_key, heft_error *err)
{
    static const s3_setting regions = { { "AWS_REGION", "AWS_DEFAULT_REGION" }, "region" };
    char region[64], endpoint[ENDPOINT_BYTES];
    const char *p = bucket_and_key;
    heft_str bucket = take_until(&p, "/");
    if (!is_component(bucket) || *p != '/' || !p[1])
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "is not an address of the form "
                                "s3://BUCKET/KEY");

    HEFT_TRY(find_s3(region, sizeof region, &regions, err));
    if (!*region)
        strcpy(region, "us-east-1");
    HEFT_TRY(find_s3_server(endpoint, region, err));
    HEFT_TRY(find_s3_keys(t, region, err));

    snprintf(t->url, sizeof t->url, "%s/", endpoint);
    bool fits = heft_url_append(t->url, sizeof t->url, bucket, "");
    fits &= heft_url_append(t->url, sizeof t->url, heft_str_from(p), "/");
    return fits ? HEFT_OK : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

/* ---- other servers ---- */

/* Copy the address.  Spaces and letters that are not ASCII are percent-encoded, as browsers do;
 * a line feed would end the line of the request, and is refused. */
static heft_status plain_target(heft_address *t, const char *url, heft_error *err)
{
    static const char kept[] = "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}"; /* all of ASCII */
    for (const char *p = url; *p; p++)
        if ((*p > 0 && *p < ' ') || *p == 0x7F)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "the address has a control character as byte %U",
                                    (uint64_t)(p - url));
    size_t host = (size_t)(strstr(url, "://") - url) + 3; /* names may be international */
    host += strcspn(url + host, "/?#");
    bool fits = host < sizeof t->url;
    if (fits)
        memcpy(t->url, url, host);
    fits = fits && heft_url_append(t->url, sizeof t->url, heft_str_from(url + host), kept);
    return fits ? HEFT_OK : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

heft_status heft_address_of(heft_address *out, const char *url, heft_error *err)
{
    *out = (heft_address){ .is_repository = false };
    if (!strncmp(url, "hf://", 5))
        return hub_target(out, url + 5, err);
    if (!strncmp(url, "s3://", 5))
        return heft_s3_target(out, url + 5, err);
    return plain_target(out, url, err);
}
