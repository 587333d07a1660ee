/* cmd_ids.c - `heft ids`: list the parameter identities of gpt-rs and Burn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/params.h>

#include "models/burn.h"
#include "models/model.h"
#include "options/command.h"
#include "process/textfile.h"

typedef struct identity {
    heft_str name;
    bool has_base, has_burn, is_stored, matches, is_field;
    heft_id128 base;
    uint64_t burn;
    /* in an optimizer record; parameter.ptr is NULL if the name is unknown */
    heft_str field, parameter;
} identity;

typedef struct request {
    const session *session;
    const char *path, *model_path;
    bool as_json;
    const heft_file *f;
    heft_file *model;
    burn_names parameters; /* names by Burn id */
} request;

static identity identify(const request *r, uint32_t tensor)
{
    identity id = { .name = heft_tensor_at(r->f, tensor).name };
    heft_value v;
    id.has_base = heft_param_base_id(&id.base, id.name);
    for (uint32_t i = 0, n = heft_attribute_count(r->f, tensor); i < n; i++) {
        v = heft_attribute_at(r->f, tensor, i);
        if (str_same(v.key, str_of("gptrs.base_id")) && v.kind == HEFT_KIND_ID128) {
            id.is_stored = true;
            id.matches = id.has_base && !memcmp(v.as.s.ptr, id.base.bytes, sizeof id.base.bytes);
        }
    }
    id.has_burn = burn_id_of(&id.burn, r->f, tensor);
    id.is_field = id.has_burn && burn_field_of(&id.field, id.name, id.burn);
    if (id.is_field)
        id.parameter = burn_name_find(&r->parameters, id.burn);
    return id;
}

/* Names that are not ASCII have no base id; "-" marks an absent id. */
static void print_text(outbuf *o, const request *r)
{
    out_text(o, "BASE ID                          STORED BURN ID              NAME\n");
    for (uint32_t i = 0; i < heft_tensor_count(r->f); i++) {
        identity id = identify(r, i);
        char hex[33] = "-", burn[24] = "-";
        if (id.has_base)
            heft_id128_text(hex, id.base);
        if (id.has_burn)
            snprintf(burn, sizeof burn, "%llu", (unsigned long long)id.burn);
        out_format(o, "%-32s %-6s %-20s ", hex,
                   !id.is_stored ? "no"
                   : id.matches  ? "yes"
                                 : "wrong",
                   burn);
        out_name(o, id.name);
        /* Optimizer record: name the state and the parameter. */
        if (id.is_field) {
            out_text(o, "  (");
            out_name(o, id.field);
            out_text(o, id.parameter.ptr ? " of " : " of an unknown parameter");
            if (id.parameter.ptr)
                out_name(o, id.parameter);
            out_char(o, ')');
        }
        out_char(o, '\n');
    }
}

static void print_json_burn(json *j, const identity *id)
{
    char text[HEFT_PARAM_ID_TEXT];
    if (!id->has_burn) {
        json_member_null(j, "burn_id");
        return;
    }
    json_member_u64(j, "burn_id", id->burn);
    heft_param_id_text(text, id->burn);
    json_member_str(j, "burn_text", str_of(text));
    if (!id->is_field)
        return;
    json_member_str(j, "field", id->field);
    if (id->parameter.ptr)
        json_member_str(j, "parameter", id->parameter);
    else
        json_member_null(j, "parameter");
}

static void print_json_id(json *j, const identity *id)
{
    char hex[33] = "";
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "name", id->name);
    if (id->has_base)
        heft_id128_text(hex, id->base);
    json_member_text(j, "base_id", str_of(hex));
    json_member_bool(j, "stored", id->is_stored);
    if (id->is_stored)
        json_member_bool(j, "matches", id->matches);
    print_json_burn(j, id);
    json_end(j, '}');
}

static void print_json(outbuf *o, const request *r)
{
    json j = json_open(o);
    json_member_str(&j, "file", str_of(stdin_name(r->path)));
    json_member_str(&j, "format", str_of(heft_format_name(heft_file_format(r->f))));
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < heft_tensor_count(r->f); i++) {
        identity id = identify(r, i);
        print_json_id(&j, &id);
    }
    json_end(&j, ']');
    json_close(&j);
}

static int print_ids(request *r)
{
    outbuf o;
    int code = r->model_path ? model_open_whole(r->session, &r->model, r->model_path) : CODE_DONE;
    if (code)
        return code;
    if (r->model ? !burn_names_of_model(&r->parameters, r->model)
                 : !burn_names_of_record(&r->parameters, r->f))
        return say_status(HEFT_E_NOMEM, r->path, "no memory for a list of parameters");
    out_open(&o, STDOUT_FILENO);
    if (r->as_json)
        print_json(&o, r);
    else
        print_text(&o, r);
    code = model_check_unchanged(r->f, r->path);
    if (!code && r->model)
        code = model_check_unchanged(r->model, r->model_path);
    return out_end(&o, code);
}

static const opt options[] = {
    { "model", 'm', OPT_MODEL, AT(request, model_path), "MODEL",
      "model whose parameters an optimizer record names" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    heft_file *f = NULL;
    int code;
    r->session = s;
    r->path = s->args.item[0];
    code = model_open(s, &f, r->path);
    r->f = f;
    if (!code)
        code = print_ids(r);
    free(r->parameters.items);
    heft_file_close(r->model);
    heft_file_close(f);
    return code;
}

const command command_ids = {
    .name = "ids",
    .args = "FILE",
    .summary = "list parameter ids of gpt-rs and Burn",
    .description =
        "Lists the ids of every tensor: the base id that gpt-rs derives from its name,\n"
        "whether the file stores it (and whether that is right), and Burn's parameter id.\n"
        "For an optimizer record of Burn, each tensor is shown with its parameter, as named\n"
        "in the record or in MODEL.",
    .example = "heft ids model.gptrs",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED,
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
