/* target.c - addresses of the Hugging Face hub and of S3 as URLs with the credentials of the user.
 *
 * The hub: $HF_ENDPOINT/[datasets/]OWNER/NAME/resolve/REVISION/FILE, and the list of the files of a
 * repository at $HF_ENDPOINT/api/models/OWNER/NAME/revision/REVISION. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/session.h"

static const char *setting(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* Read the first line of a file up to a space; the text is empty if the file does not exist, or if
 * the line does not fit. */
static void read_line(char *out, size_t size, const char *path)
{
    FILE *f = fopen(path, "re");
    size_t len = f && fgets(out, (int)size, f) ? strcspn(out, "\r\n \t") : 0;
    out[len + 1 < size ? len : 0] = '\0';
    if (f)
        fclose(f);
}

/* Join a folder and a name; the path is empty without a folder, or if the path does not fit. */
static void join_path(char path[PATH_MAX], const char *folder, const char *name)
{
    if (!folder || snprintf(path, PATH_MAX, "%s%s", folder, name) >= PATH_MAX)
        *path = '\0';
}

/* ---- the hub ---- */

/* Find the token in HF_TOKEN, or in the file of `hf auth login`. */
static void find_token(char *out, size_t size)
{
    char path[PATH_MAX];
    const char *token = setting("HF_TOKEN"), *named = setting("HF_TOKEN_PATH"),
               *home = setting("HF_HOME");
    if (token && strlen(token) < size)
        strcpy(out, token);
    if (token)
        return;
    if (named || home)
        join_path(path, named ? named : home, named ? "" : "/token");
    else
        join_path(path, setting("HOME"), "/.cache/huggingface/token");
    read_line(out, size, path);
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
    const char *endpoint = setting("HF_ENDPOINT"), *kind = "", *p = name;
    heft_str revision = { "main", 4 };
    size_t len = endpoint ? strlen(endpoint) : 0;
    if (!strncmp(p, "datasets/", 9) || !strncmp(p, "spaces/", 7))
        kind = *p == 'd' ? "datasets/" : "spaces/";
    p += strlen(kind);
    while (len && endpoint[len - 1] == '/')
        len--;
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
    snprintf(t->url, sizeof t->url, "%.*s/%s%s", len ? (int)len : 22,
             len ? endpoint : "https://huggingface.co", file ? "" : "api/",
             *kind || file ? kind : "models/");
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
    find_token(t->bearer, sizeof t->bearer);
    return fits ? HEFT_OK : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

/* ---- S3 ---- */

/* Look up a key in a section of an INI file: "[default]", "[profile NAME]". */
static bool find_in_file(char *out, size_t size, const char *path, const char *section,
                         const char *key)
{
    char line[4096];
    bool is_section = false, found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = '\0';
        char *p = line + strspn(line, " \t");
        size_t name = strcspn(p, " \t=");
        char *value = p + name + strspn(p + name, " \t");
        if (*p == '[') {
            p[strcspn(p, "]")] = '\0';
            is_section = !strcmp(p + 1, section);
        } else if (is_section && *value == '=') {
            value += 1 + strspn(value + 1, " \t");
            for (size_t n = strlen(value); n && (value[n - 1] == ' ' || value[n - 1] == '\t');)
                value[--n] = '\0';
            found = name == strlen(key) && !memcmp(p, key, name) && strlen(value) < size;
            if (found)
                strcpy(out, value);
        }
    }
    if (f)
        fclose(f);
    return found;
}

/* Look for a setting in variables, of which NULL is the last, then in the files of the profile. */
static bool find_s3(char *out, size_t size, const char *const *variables, const char *key)
{
    static const struct {
        const char *variable, *name, *prefix;
    } files[] = {
        { "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", "" }, /* secrets */
        { "AWS_CONFIG_FILE", "/.aws/config", "profile " },          /* other settings */
    };
    char path[PATH_MAX], section[300];
    const char *profile = setting("AWS_PROFILE");
    *out = '\0';
    for (; *variables; variables++) {
        const char *value = setting(*variables);
        if (value && strlen(value) < size) {
            strcpy(out, value);
            return true;
        }
    }
    profile = profile ? profile : "default";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *named = setting(files[i].variable);
        join_path(path, named ? named : setting("HOME"), named ? "" : files[i].name);
        snprintf(section, sizeof section, "%s%s",
                 strcmp(profile, "default") != 0 ? files[i].prefix : "", profile);
        if (find_in_file(out, size, path, section, key))
            return true;
    }
    return false;
}

heft_status heft_s3_target(heft_address *t, const char *bucket_and_key, heft_error *err)
{
    static const char *const keys[] = { "AWS_ACCESS_KEY_ID", NULL },
                             *const secrets[] = { "AWS_SECRET_ACCESS_KEY", NULL },
                             *const sessions[] = { "AWS_SESSION_TOKEN", NULL },
                             *const regions[] = { "AWS_REGION", "AWS_DEFAULT_REGION", NULL },
                             *const endpoints[] = { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
                                                    NULL };
    char key[256], secret[512], region[64], endpoint[1024];
    const char *p = bucket_and_key;
    heft_str bucket = take_until(&p, "/");
    if (!is_component(bucket) || *p != '/' || !p[1])
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "is not an address of the form "
                                "s3://BUCKET/KEY");
    if (!find_s3(region, sizeof region, regions, "region"))
        strcpy(region, "us-east-1");
    bool has_key = find_s3(key, sizeof key, keys, "aws_access_key_id") &&
                   find_s3(secret, sizeof secret, secrets, "aws_secret_access_key");
    find_s3(t->session, sizeof t->session, sessions, "aws_session_token");
    bool has_endpoint = find_s3(endpoint, sizeof endpoint, endpoints, "endpoint_url");
    /* A host named like the bucket would not match the certificate if the bucket has dots. */
    if (!has_endpoint)
        snprintf(endpoint, sizeof endpoint, "https://s3.%s.amazonaws.com", region);
    for (size_t n = strlen(endpoint); n && endpoint[n - 1] == '/';)
        endpoint[--n] = '\0';
    snprintf(t->url, sizeof t->url, "%s/", endpoint);
    if (has_key) {
        snprintf(t->user, sizeof t->user, "%s:%s", key, secret);
        snprintf(t->signature, sizeof t->signature, "aws:amz:%s:s3", region);
    } else
        *t->session = '\0';
    bool fits = heft_url_append(t->url, sizeof t->url, bucket, "");
    fits &= heft_url_append(t->url, sizeof t->url, heft_str_from(p), "/");
    return fits ? HEFT_OK : heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
}

heft_status heft_address_of(heft_address *out, const char *url, heft_error *err)
{
    *out = (heft_address){ .is_repository = false };
    if (!strncmp(url, "hf://", 5))
        return hub_target(out, url + 5, err);
    if (!strncmp(url, "s3://", 5))
        return heft_s3_target(out, url + 5, err);
    if (strlen(url) >= sizeof out->url)
        return heft_error_plain(err, HEFT_E_LIMIT, "the address is too long");
    strcpy(out->url, url);
    return HEFT_OK;
}
