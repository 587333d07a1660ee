/* cmd_formats.c - `heft formats`: list the formats of this build. */
#include <heft/split.h>
#include <string.h>
#include <unistd.h>

#include "options/command.h"
#include "process/cmd.h"
#include "process/columns.h"
#include "text/jsonout.h"

enum { NAME, READ, WRITE, SUFFIXES, VERSIONS, TITLE };

/* Say whether a model can be written, as one file or as a folder of files only. */
static const char *writes(const heft_format *f)
{
    return heft_format_caps(f) & HEFT_CAN_WRITE ? "yes"
           : heft_format_can_split(f)           ? "folder"
                                                : "no";
}

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const heft_format *f = heft_format_at(row->id);
    uint32_t caps = heft_format_caps(f);
    const char *text = field == NAME       ? heft_format_name(f)
                       : field == READ     ? (caps & HEFT_CAN_READ ? "yes" : "no")
                       : field == WRITE    ? writes(f)
                       : field == SUFFIXES ? heft_format_suffixes(f)
                       : field == VERSIONS ? heft_format_versions(f)
                                           : heft_format_title(f);
    out_text(o, text && *text ? text : "-");
}

static const column columns[] = {
    { "NAME", false, NAME },         { "READ", false, READ },         { "WRITE", false, WRITE },
    { "SUFFIXES", false, SUFFIXES }, { "VERSIONS", false, VERSIONS }, { "TITLE", false, TITLE },
};

/* The order in which columns are hidden on a narrow terminal. */
static const uint8_t hides[] = { 0, 0, 0, 1, 2, 3 };
/* ---- element types ---- */

enum { TYPE, KIND, BITS, CAST };

static const char *kind_of(const heft_dtype_info *d)
{
    static const char *const kinds[] = {
        [HEFT_DTYPE_NONE] = "-",
        [HEFT_DTYPE_BOOL] = "boolean",
        [HEFT_DTYPE_UINT] = "unsigned integer",
        [HEFT_DTYPE_INT] = "integer",
        [HEFT_DTYPE_FLOAT] = "floating-point",
        [HEFT_DTYPE_COMPLEX] = "complex",
        [HEFT_DTYPE_BLOCK] = "quantised blocks",
    };
    return d->kind < sizeof kinds / sizeof *kinds ? kinds[d->kind] : "-";
}

/* Say whether --cast converts to this type, only from it, or not at all. */
static const char *casts_of(heft_dtype t)
{
    bool is_complex = heft_dtype_get(t)->kind == HEFT_DTYPE_COMPLEX;
    heft_dtype other = is_complex ? HEFT_C64 : HEFT_F32;
    return heft_dtype_can_cast(t, other)   ? "to and from"
           : heft_dtype_can_cast(other, t) ? "from"
                                           : "no";
}

static void put_type(outbuf *o, const table_row *row, int field)
{
    heft_dtype t = (heft_dtype)(row->id + 1);
    const heft_dtype_info *d = heft_dtype_get(t);
    if (field == BITS)
        out_format(o, "%.4g", 8.0 * d->block_bytes / d->block_elems);
    else
        out_text(o, field == TYPE ? d->name : field == KIND ? kind_of(d) : casts_of(t));
}

static const column type_columns[] = {
    { "TYPE", false, TYPE },
    { "KIND", false, KIND },
    { "BITS", true, BITS },
    { "CAST", false, CAST },
};

static void json_types(outbuf *o)
{
    const heft_dtype_info *d;
    json j = json_open(o);
    json_member_begin(&j, "types", '[');
    for (heft_dtype t = 1; (d = heft_dtype_get(t)) != NULL; t++) {
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", str_of(d->name));
        json_member_str(&j, "kind", str_of(kind_of(d)));
        json_member_u64(&j, "block_elements", d->block_elems);
        json_member_u64(&j, "block_bytes", d->block_bytes);
        json_member_str(&j, "cast", str_of(casts_of(t)));
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_close(&j);
}

/* ---- JSON ---- */

/* Write words separated by spaces as a JSON list. */
static void json_words(json *j, const char *key, const char *words)
{
    json_member_begin(j, key, '[');
    for (const char *p = words ? words : ""; *p;) {
        size_t len = strcspn(p, " ");
        if (len)
            json_str(j, (heft_str){ p, len });
        p += len + (p[len] == ' ');
    }
    json_end(j, ']');
}

static void print_json(outbuf *o)
{
    json j = json_open(o);
    json_member_begin(&j, "formats", '[');
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *f = heft_format_at(i);
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", str_of(heft_format_name(f)));
        json_member_str(&j, "title", str_of(heft_format_title(f)));
        json_member_bool(&j, "read", heft_format_caps(f) & HEFT_CAN_READ);
        json_member_bool(&j, "write", heft_format_caps(f) & HEFT_CAN_WRITE);
        json_member_bool(&j, "split", heft_format_can_split(f));
        json_words(&j, "suffixes", heft_format_suffixes(f));
        json_words(&j, "versions", heft_format_versions(f));
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_close(&j);
}

typedef struct request {
    bool as_json, raw, types;
} request;

static const opt options[] = {
    { "types", 0, OPT_FLAG, AT(request, types), NULL,
      "list the element types instead, as --cast names them" },
    { "raw", 0, OPT_FLAG, AT(request, raw), NULL, "print tab-separated rows, no titles" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    const request *r = ctx;
    outbuf o;
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .count = heft_format_count(),
                .threads = s->threads,
                .raw = r->raw,
                .hides = hides };
    if (r->types) {
        t.columns = type_columns;
        t.width = sizeof type_columns / sizeof *type_columns;
        t.cell = put_type;
        t.count = HEFT_DTYPES - 1;
        t.hides = NULL;
    }
    out_open(&o, STDOUT_FILENO);
    if (r->as_json && r->types)
        json_types(&o);
    else if (r->as_json)
        print_json(&o);
    else
        table_print(&o, &t);
    return out_end(&o, CODE_DONE);
}

const command command_formats = {
    .name = "formats",
    .args = "",
    .summary = "list the formats that this build reads and writes",
    .description =
        "Lists the formats that this build reads and writes, with their suffixes and the\n"
        "versions that can be written, the default first.",
    .example = "heft formats --json",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED,
    .without = WITHOUT(VIEW) | WITHOUT(ACCESS) | WITHOUT(THREADS) | WITHOUT(QUIET) |
               WITHOUT(NO_VERIFY) | WITHOUT(OFFLINE) | WITHOUT(FOLLOW_LINKS),
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
