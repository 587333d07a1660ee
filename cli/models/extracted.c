#include "models/extracted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "process/columns.h"
#include "process/sinkwatch.h"
#include "process/textfile.h"

/* ---- opening ---- */

/* Say which tensors that differ are not in the adapter: an error with --strict. Return an exit
 * code. */
static int say_left(const extracted *x, const session *s, const char *path)
{
    heft_extracted first = { .reason = NULL };
    uint32_t left = 0;
    for (uint32_t i = 0; i < heft_extraction_count(x->plan); i++) {
        heft_extracted item = heft_extraction_at(x->plan, i);
        first = item.reason && !left++ ? item : first;
    }
    if (!left)
        return CODE_DONE;
    outbuf name;
    out_open(&name, -1);
    out_escaped(&name, first.name);
    say_lost(s->strict, path, "%u tensor%s: '%s' (%s)%s", left,
             left == 1 ? " that differs is not in the adapter"
                       : "s that differ are not in the "
                         "adapter",
             out_cstr(&name), first.reason, left == 1 ? "" : " ...; --json lists all");
    out_free(&name);
    return s->strict ? CODE_CANNOT : CODE_DONE;
}

int extracted_open(extracted *x, const extract_options *o, const session *s, const heft_file *f,
                   const char *path)
{
    heft_error err;
    heft_extract_options opt = HEFT_EXTRACT_OPTIONS_INIT;
    *x = (extracted){ .paths = { o->base, path } };
    if (!o->rank)
        return CODE_DONE;
    int code = model_open_whole(s, &x->base, o->base);
    if (code)
        return code;
    opt.rank = o->rank;
    opt.verify = !s->no_verify;
    opt.base_name = str_of(o->base);
    if (heft_extraction_open(&x->plan, x->base, f, &opt, &err))
        return say_error(x->paths[err.input == 1 ? 0 : 1], &err);
    return say_left(x, s, path);
}

const heft_file *extracted_file(const extracted *x)
{
    return heft_extraction_file(x->plan);
}

void extracted_release(extracted *x)
{
    heft_extraction_close(x->plan);
    heft_file_close(x->base);
    *x = (extracted){ .plan = NULL };
}

int extracted_end(const extracted *x, const session *s, const char *folder, bool force,
                  bool no_sync)
{
    heft_error err;
    heft_sink *sink;
    heft_blob text = { .data = NULL };
    char *file = path_in(folder, "adapter_config.json");
    if (!file)
        return CODE_SYSTEM;
    heft_status st = heft_extraction_config(&text, x->plan, &err);
    if (!st)
        st = sink_open(&sink, file, force, no_sync, NULL, &err);
    if (!st)
        st = sink_write_whole(sink, text.data, text.size, &err);
    int code = st ? say_error(file, &err) : CODE_DONE;
    if (!code && !s->quiet)
        say(MESSAGE_INFO, file, "%llu bytes", (unsigned long long)text.size);
    heft_blob_free(&text);
    free(file);
    return code;
}

/* ---- what was found ---- */

typedef struct sums {
    double difference, remainder; /* squares */
    bool is_known;
} sums;

static double part(double remainder, double difference)
{
    return difference > 0 ? remainder / difference : 0;
}

static sums sums_of(const extracted *x)
{
    sums all = { .is_known = true };
    for (uint32_t i = 0; i < heft_extraction_count(x->plan); i++) {
        heft_extracted item = heft_extraction_at(x->plan, i);
        all.difference += item.difference * item.difference;
        all.remainder += item.remainder * item.remainder;
        all.is_known = all.is_known && (item.is_known || item.reason);
    }
    return all;
}

enum { FIELD_NAME, FIELD_RANK, FIELD_DIFFERENCE, FIELD_LEFT, FIELD_NOTE };

static void put_cell(outbuf *o, const table_row *row, int field)
{
    heft_extracted i = heft_extraction_at(((const extracted *)row->ctx)->plan, row->id);
    bool is_number = field == FIELD_DIFFERENCE || field == FIELD_LEFT;
    if (field == FIELD_NAME)
        out_name(o, i.name);
    else if (field == FIELD_NOTE)
        out_text(o, i.reason ? i.reason : "-");
    else if (i.reason || (is_number && !i.is_known))
        out_char(o, '-');
    else if (field == FIELD_RANK)
        out_format(o, "%u", i.rank);
    else if (field == FIELD_DIFFERENCE)
        out_format(o, "%.4g", i.difference);
    else
        out_format(o, "%.3f%%", 100 * part(i.remainder, i.difference));
}

static void print_json(outbuf *o, const extracted *x, const sums *all)
{
    json j = json_open(o);
    json_member_begin(&j, "extracted", '[');
    for (uint32_t i = 0; i < heft_extraction_count(x->plan); i++) {
        heft_extracted item = heft_extraction_at(x->plan, i);
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", item.name);
        if (item.reason)
            json_member_str(&j, "reason", str_of(item.reason));
        else
            json_member_u64(&j, "rank", item.rank);
        if (item.is_known) {
            json_member_f64(&j, "difference", item.difference);
            json_member_f64(&j, "remainder", item.remainder);
            json_member_f64(&j, "relative", part(item.remainder, item.difference));
        }
        json_end(&j, '}');
    }
    json_end(&j, ']');
    if (all->is_known) {
        json_line(&j);
        json_member_begin(&j, "total", '{');
        json_member_f64(&j, "difference", sqrt(all->difference));
        json_member_f64(&j, "remainder", sqrt(all->remainder));
        json_member_f64(&j, "relative", sqrt(part(all->remainder, all->difference)));
        json_end(&j, '}');
    }
    json_close(&j);
}

void extracted_print(outbuf *o, const extracted *x, const session *s, bool as_json)
{
    static const column columns[] = {
        { "NAME", false, FIELD_NAME },
        { "RANK", true, FIELD_RANK },
        { "DIFFERENCE", true, FIELD_DIFFERENCE },
        { "LEFT", true, FIELD_LEFT },
        { "NOTE", false, FIELD_NOTE },
    };
    sums all = sums_of(x);
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .ctx = (void *)(uintptr_t)x,
                .count = heft_extraction_count(x->plan),
                .threads = s->threads };
    if (as_json) {
        print_json(o, x, &all);
        return;
    }
    table_print(o, &t);
    if (all.is_known)
        out_format(o, "the adapter leaves %.3f%% of the difference (Frobenius norm)\n",
                   100 * sqrt(part(all.remainder, all.difference)));
}
