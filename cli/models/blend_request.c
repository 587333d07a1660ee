#include "models/blend_request.h"

#include <string.h>

#include "process/message.h"
#include "process/textfile.h"
#include "text/jsonout.h"
#include "text/outbuf.h"

/* ---- a file ---- */

/* A document in JSON begins with a brace. */
static bool is_json(heft_str text)
{
    size_t i = 0;
    while (i < text.len && strchr(" \t\r\n", text.ptr[i]))
        i++;
    return i < text.len && text.ptr[i] == '{';
}

static int read_text(heft_blend_settings **out, const session *s, const char *path, heft_str text)
{
    heft_blob made = { .size = 0 };
    heft_error err;
    heft_status st = HEFT_OK;
    if (!is_json(text)) {
        st = heft_yaml_to_json(&made, text, &s->host, &err);
        text = (heft_str){ made.data, made.size };
    }
    if (!st)
        st = heft_blend_settings_read(out, text, &s->host, &err);
    heft_blob_free(&made);
    return st ? say_error(path, &err) : CODE_DONE;
}

static int read_file(heft_blend_settings **out, const session *s, const char *path)
{
    heft_str text;
    int code = text_read(&text, path, TEXT_NAMED);
    if (!code)
        code = read_text(out, s, path, text);
    text_free(text);
    return code;
}

/* ---- options, as the text of settings ---- */

/* A number, or anything else as text, which the settings refuse. */
static void put_number(json *j, heft_str text)
{
    json_str(j, text);
}

static heft_str cut(const char **at)
{
    const char *end = strchr(*at, ',');
    heft_str s = { *at, end ? (size_t)(end - *at) : strlen(*at) };
    *at = end ? end + 1 : *at + s.len;
    return s;
}

/* Write the rules of [FILTER=]V,V,... for model i; an argument with one value is for all. */
static void put_rules(json *j, const char *key, const opt_list *args, uint32_t i)
{
    if (!args->count)
        return;
    json_member_begin(j, key, '[');
    for (size_t k = 0; k < args->count; k++) {
        const char *equals = strrchr(args->item[k], '='), *at = equals ? equals + 1 : args->item[k];
        heft_str value = cut(&at);
        for (uint32_t n = 0; n < i && *at; n++)
            value = cut(&at);
        json_begin(j, '{');
        if (equals)
            json_member_str(j, "filter",
                            (heft_str){ args->item[k], (size_t)(equals - args->item[k]) });
        json_key(j, "value");
        put_number(j, value);
        json_end(j, '}');
    }
    json_end(j, ']');
}

/* Refuse a list with another number of values than models. */
static int check_count(const session *s, const char *option, const opt_list *args, uint32_t count)
{
    for (size_t k = 0; k < args->count; k++) {
        const char *equals = strrchr(args->item[k], '='), *at = equals ? equals + 1 : args->item[k];
        uint32_t values = 0;
        size_t len = strlen(at);
        if (len && at[len - 1] == ',')
            return say_usage(s->name, "--%s %s ends with a comma: a value is missing", option,
                             args->item[k]);
        do
            (void)cut(&at);
        while (++values && *at);
        if (values != 1 && values != count)
            return say_usage(s->name, "--%s %s has %u values, and there are %u models", option,
                             args->item[k], values, count);
    }
    return CODE_DONE;
}

static void put_models(json *j, const blend_request *r, char *const *paths, uint32_t count)
{
    json_member_begin(j, "models", '[');
    for (uint32_t i = 0; i < count; i++) {
        json_begin(j, '{');
        json_member_str(j, "model", str_of(paths[i]));
        json_member_begin(j, "parameters", '{');
        put_rules(j, "weight", &r->weights, i);
        put_rules(j, "density", &r->densities, i);
        json_end(j, '}');
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void put_common(json *j, const blend_request *r)
{
    json_member_begin(j, "parameters", '{');
    put_rules(j, "t", &r->shares, 0);
    if (r->lambda) {
        json_key(j, "lambda");
        put_number(j, str_of(r->lambda));
    }
    if (r->normalize)
        json_member_bool(j, "normalize", !strcmp(r->normalize, "true"));
    json_end(j, '}');
}

static void put_text(json *j, const char *key, const char *text)
{
    if (text)
        json_member_str(j, key, str_of(text));
}

static void put_tied(json *j, const opt_list *args)
{
    if (!args->count)
        return;
    json_member_begin(j, "tied", '{');
    for (size_t k = 0; k < args->count; k++) {
        outbuf name;
        const char *equals = strchr(args->item[k], '=');
        out_open(&name, -1);
        out_format(&name, "%.*s", (int)(equals - args->item[k]), args->item[k]);
        json_member_str(j, out_cstr(&name), str_of(equals + 1));
        out_free(&name);
    }
    json_end(j, '}');
}

static int check_options(const session *s, const blend_request *r, uint32_t count)
{
    int code = r->method ? CODE_DONE : say_usage(s->name, "--method or --settings is needed");
    if (!code)
        code = check_count(s, "weight", &r->weights, count);
    if (!code)
        code = check_count(s, "density", &r->densities, count);
    if (!code)
        code = check_count(s, "t", &r->shares, 1);
    for (size_t k = 0; !code && k < r->tied.count; k++)
        if (!strchr(r->tied.item[k], '='))
            code = say_usage(s->name, "--tied takes NAME=OTHER, not '%s'", r->tied.item[k]);
    if (!code && r->seed && (!*r->seed || r->seed[strspn(r->seed, "0123456789")]))
        code = say_usage(s->name, "--seed takes a number, not '%s'", r->seed);
    return code;
}

static int make(heft_blend_settings **out, const session *s, const blend_request *r,
                char *const *paths, uint32_t count)
{
    outbuf o;
    heft_error err;
    out_open(&o, -1);
    json j = json_open(&o);
    put_text(&j, "method", r->method);
    put_text(&j, "base_model", r->base);
    put_models(&j, r, paths, count);
    put_common(&j, r);
    put_text(&j, "dtype", r->dtype);
    put_text(&j, "missing", r->missing);
    if (r->seed) {
        json_key(&j, "seed");
        out_text(&o, r->seed);
    }
    put_tied(&j, &r->tied);
    if (r->unties)
        json_member_bool(&j, "untie", true);
    json_close(&j);
    heft_status st = o.os ? HEFT_E_NOMEM : HEFT_OK;
    if (st)
        st = say_status(st, NULL, "no memory for the options");
    else if (heft_blend_settings_read(out, str_of(out_cstr(&o)), &s->host, &err))
        st = err.status == HEFT_E_FORMAT ? HEFT_E_ARGUMENT : err.status;
    out_free(&o);
    return st ? say_status(st, NULL, "%s", err.message) : CODE_DONE;
}

static bool has_options(const blend_request *r)
{
    return r->method || r->base || r->lambda || r->normalize || r->seed || r->missing || r->dtype ||
           r->weights.count || r->densities.count || r->shares.count || r->tied.count || r->unties;
}

int blend_settings(heft_blend_settings **out, const session *s, const blend_request *r,
                   char *const *paths, uint32_t count)
{
    *out = NULL;
    if (r->settings && has_options(r))
        return say_usage(s->name, "--settings says how models are blended: give it alone, with the "
                                  "models and OUT");
    if (r->settings)
        return read_file(out, s, r->settings);
    int code = check_options(s, r, count);
    return code ? code : make(out, s, r, paths, count);
}

/* ---- models ---- */

/* Return the last component of a path, without slashes behind. */
static heft_str last_component(heft_str path)
{
    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        path.len--;
    size_t from = path.len;
    while (from && path.ptr[from - 1] != '/')
        from--;
    return (heft_str){ path.ptr + from, path.len - from };
}

static bool has_name(const char *path, heft_str name)
{
    heft_str file = last_component(str_of(path)), wanted = last_component(name);
    size_t stem = file.len;
    while (stem && file.ptr[stem - 1] != '.')
        stem--;
    return str_same(file, wanted) ||
           (stem > 1 && str_same((heft_str){ file.ptr, stem - 1 }, wanted));
}

const char *blend_model_path(const heft_blend_settings *settings, uint32_t i, const session *s,
                             const blend_request *r, char *const *paths, uint32_t count)
{
    heft_str name = heft_blend_settings_model(settings, i);
    const char *found = NULL;
    uint32_t candidates = 0;
    for (uint32_t k = 0; k < count; k++)
        if (str_same(str_of(paths[k]), name))
            return paths[k];
    if (!r->settings)
        return r->base;
    for (uint32_t k = 0; k < count; k++)
        if (has_name(paths[k], name)) {
            found = paths[k];
            candidates++;
        }
    if (candidates == 1)
        return found;
    say_usage(s->name,
              "the settings name the model '%.*s': %s MODEL has this name, as its path or "
              "the last part of it",
              (int)name.len, name.ptr, candidates ? "more than one" : "no");
    return NULL;
}
