#include "models/pipeline.h"

#include <stdlib.h>

#include "process/textfile.h"

static const char index_name[] = "model_index.json";

bool pipeline_is(const heft_file *f)
{
    return str_same(heft_file_name(f), str_of(index_name));
}

static int parse(pipeline *out, const char *path)
{
    heft_error err;
    heft_str text;
    heft_value v;
    int code = text_read(&text, path, TEXT_FOUND);
    if (code)
        return code;
    heft_status st = heft_settings_parse_json(&out->settings, text, NULL, &err);
    text_free(text);
    if (!st)
        st = heft_settings_pipeline(out->component, &out->count, out->settings, &err);
    if (!st && heft_settings_find(&v, out->settings, str_of("_class_name")) &&
        v.kind == HEFT_KIND_STR)
        out->class_name = v.as.s;
    return st ? say_error(path, &err) : CODE_DONE;
}

int pipeline_read(pipeline *out, const heft_file *f, const char *path)
{
    *out = (pipeline){ .settings = NULL };
    if (!pipeline_is(f))
        return CODE_DONE;
    char *index;
    int code = model_find_beside(&index, path, index_name);
    if (!code)
        code = parse(out, index);
    free(index);
    return code;
}

void pipeline_free(pipeline *p)
{
    heft_settings_close(p->settings);
    p->settings = NULL;
}

/* ---- output ---- */

/* A component that could not be opened is a shard with the name of the folder. */
static bool is_missing(const heft_file *f, heft_str name)
{
    for (uint32_t i = 0; i < heft_shard_file_count(f); i++) {
        heft_shard_file s = heft_shard_file_at(f, i);
        if (s.status && str_same(s.name, name))
            return true;
    }
    return false;
}

static const char *state_of(const heft_pipeline_component *c, const heft_file *f)
{
    if (!c->is_present)
        return "none";
    return !c->has_weights ? "no weights" : is_missing(f, c->name) ? "missing" : "present";
}

void pipeline_print(outbuf *o, const pipeline *p, const heft_file *f)
{
    for (uint32_t i = 0; p->settings && i < p->count; i++) {
        const heft_pipeline_component *c = &p->component[i];
        out_format(o, "%-11s ", i ? "" : "Components");
        out_name(o, c->name);
        out_text(o, ": ");
        if (c->is_present) {
            out_name(o, c->class_name);
            out_text(o, ", ");
        }
        out_text(o, state_of(c, f));
        out_char(o, '\n');
    }
}

void pipeline_json(json *j, const pipeline *p, const heft_file *f)
{
    if (!p->settings)
        return;
    json_member_begin(j, "pipeline", '{');
    json_member_str(j, "class", p->class_name);
    json_member_begin(j, "components", '[');
    for (uint32_t i = 0; i < p->count; i++) {
        const heft_pipeline_component *c = &p->component[i];
        json_begin(j, '{');
        json_member_str(j, "name", c->name);
        json_member_text(j, "class", c->class_name);
        json_member_text(j, "library", c->library);
        json_member_str(j, "state", str_of(state_of(c, f)));
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}
