/* cmd_maps.c - `heft maps`: list maps, show one, and check that its inverse gives a model back. */
#include <string.h>
#include <unistd.h>

#include "models/mapped.h"
#include "models/model.h"
#include "options/command.h"
#include "process/columns.h"
#include "values/comparison.h"

typedef struct request {
    bool as_json, raw;
} request;

/* ---- the list ---- */

enum { MOST = 128, NAME, FROM, TO, ARCHITECTURE, TITLE };

typedef struct map_list {
    heft_map *maps[MOST];
    uint32_t count;
} map_list;

static heft_str field_of(const heft_map *m, int field)
{
    heft_map_info i = heft_map_describe(m);
    return field == NAME           ? i.name
           : field == FROM         ? i.from
           : field == TO           ? i.to
           : field == ARCHITECTURE ? i.architecture
                                   : i.title;
}

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const map_list *l = row->ctx;
    heft_str text = field_of(l->maps[row->id], field);
    out_escaped(o, text.len ? text : str_of("-"));
}

static const column columns[] = {
    { "NAME", false, NAME },   { "FROM", false, FROM },
    { "TO", false, TO },       { "ARCHITECTURE", false, ARCHITECTURE },
    { "TITLE", false, TITLE },
};

static void print_json(outbuf *o, const map_list *l)
{
    static const char *const keys[] = { "name", "from", "to", "architecture", "title" };
    json j = json_open(o);
    json_member_begin(&j, "maps", '[');
    for (uint32_t i = 0; i < l->count; i++) {
        json_line(&j);
        json_begin(&j, '{');
        for (int k = 0; k < 5; k++)
            json_member_str(&j, keys[k], field_of(l->maps[i], NAME + k));
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_close(&j);
}

static int list(const session *s, const request *r)
{
    map_list l = { .count = 0 };
    heft_error err;
    outbuf o;
    int code = CODE_DONE;
    for (uint32_t i = 0; i < MOST && heft_map_shipped(i).ptr && !code; i++) {
        if (heft_map_parse(&l.maps[l.count], heft_map_shipped(i), NULL, &err))
            code = say_error("a shipped map", &err);
        else
            l.count++;
    }
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .ctx = &l,
                .count = l.count,
                .threads = s->threads,
                .raw = r->raw };
    out_open(&o, STDOUT_FILENO);
    if (!code && r->as_json)
        print_json(&o, &l);
    else if (!code)
        table_print(&o, &t);
    for (uint32_t i = 0; i < l.count; i++)
        heft_map_close(l.maps[i]);
    return out_end(&o, code);
}

static int show(const char *name)
{
    for (uint32_t i = 0; heft_map_shipped(i).ptr; i++) {
        heft_map *m;
        heft_error err;
        outbuf o;
        if (heft_map_parse(&m, heft_map_shipped(i), NULL, &err))
            return say_error(name, &err);
        bool is_it = str_same(heft_map_describe(m).name, str_of(name));
        heft_map_close(m);
        if (!is_it)
            continue;
        out_open(&o, STDOUT_FILENO);
        out_bytes(&o, heft_map_shipped(i).ptr, heft_map_shipped(i).len);
        return out_end(&o, CODE_DONE);
    }
    return say_status(HEFT_E_NOTFOUND, name, "no such map is shipped: `heft maps` lists all");
}

/* ---- the check ---- */

/* Say which tensors the inverse does not give back. Those of `drop` rules are a note. */
static int say_result(const comparison *c, heft_map_info map)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i].changes) {
            out_escaped(&o, heft_tensor_at(c->a, c->pairs[i].a).name);
            out_text(&o, ": differs after the map and its inverse\n");
        }
    for (uint32_t i = 0; i < heft_tensor_count(c->b); i++)
        if (c->partner_b[i] == HEFT_NONE) {
            out_escaped(&o, heft_tensor_at(c->b, i).name);
            out_text(&o, ": is not in the model\n");
        }
    out_format(&o, "%.*s: %zu of %u tensors are given back", (int)map.name.len, map.name.ptr,
               c->equal_count, heft_tensor_count(c->a));
    if (c->only_a)
        out_format(&o, ", %zu dropped", c->only_a);
    out_text(&o, "\n");
    bool is_proved = c->equal_count == c->count && !c->only_b && !c->renamed_count && c->count;
    return out_end(&o, is_proved ? CODE_DONE : CODE_FOUND);
}

static int compare(const session *s, const heft_file *f, const heft_file *back, const char *path,
                   heft_map_info map)
{
    model_view a = model_view_of_stored(f), b = model_view_of_stored(back);
    comparison c = { .session = s,
                     .view_a = &a,
                     .view_b = &b,
                     .path_a = path,
                     .path_b = path,
                     .ignore_dtype = true };
    int code = comparison_run(&c);
    if (!code)
        code = say_result(&c, map);
    comparison_release(&c);
    return code;
}

/* Apply the map and its inverse to a model, and compare the result with the model. */
static int check(session *s, const char *name, const char *path)
{
    heft_error err;
    heft_file *f = NULL, *back = NULL;
    mapped m = { .model = NULL };
    heft_map_options inverse = HEFT_MAP_OPTIONS_INIT;
    s->map = name;
    int code = model_open_whole(s, &f, path);
    if (!code)
        code = mapped_open(&m, s, f, path, MAPPED_OTHER);
    if (!code) {
        inverse.config = m.config;
        inverse.direction = m.direction == HEFT_MAP_FORWARD ? HEFT_MAP_INVERSE : HEFT_MAP_FORWARD;
        inverse.allow_unmatched = s->allow_unmatched;
        if (heft_map_apply(&back, m.map, m.model, &inverse, &err))
            code = say_error(path, &err);
    }
    if (!code)
        code = compare(s, f, back, path, heft_map_describe(m.map));
    if (!code)
        code = model_check_unchanged(f, path);
    heft_file_close(back);
    mapped_release(&m);
    heft_file_close(f);
    return code;
}

/* ---- the command ---- */

static const opt options[] = {
    { "allow-unmatched", 0, OPT_FLAG, SETTING(allow_unmatched), NULL,
      "check: keep tensors that no rule of the map matches" },
    { "raw", 0, OPT_FLAG, AT(request, raw), NULL, "print tab-separated rows, no titles" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    char *const *word = s->args.item;
    session own = *s; /* whose map is an argument */
    if (!s->args.count)
        return list(s, ctx);
    if (!strcmp(word[0], "show") && s->args.count == 2)
        return show(word[1]);
    if (!strcmp(word[0], "check") && s->args.count == 3)
        return check(&own, word[1], word[2]);
    return say_usage("maps", "takes no argument, or `show MAP`, or `check MAP MODEL`");
}

const command command_maps = {
    .name = "maps",
    .args = "[show|check] [MAP] [MODEL]",
    .summary = "list the maps between frameworks, show or check one",
    .description =
        "Lists the maps between the names and layouts of frameworks that --map knows.\n"
        "`heft maps show MAP` prints the rules of one. `heft maps check MAP MODEL` applies a\n"
        "map, or with auto the one for the model, and its inverse, and compares the result\n"
        "with the model: exit status 1 if a tensor is not given back.",
    .example = "heft maps check auto model/",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED,
    .operands = { 1, 2, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
