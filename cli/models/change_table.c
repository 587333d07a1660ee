#include "models/change_table.h"

#include "process/columns.h"

enum { FIELD_NAME, FIELD_FROM, FIELD_TO, FIELD_SIZE, FIELD_NEW_SIZE, FIELD_NOTE };

typedef struct changes {
    change (*at)(void *ctx, uint32_t i);
    void *ctx;
} changes;

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const changes *all = row->ctx;
    change c = all->at(all->ctx, row->id);
    if (field == FIELD_NAME)
        out_escaped(o, c.name);
    else if (field == FIELD_FROM || field == FIELD_TO)
        out_text(o, field == FIELD_FROM ? c.from : c.to);
    else if (field == FIELD_NOTE && c.instead_of)
        out_format(o, "instead of %s", c.instead_of);
    else if (field == FIELD_NOTE)
        out_text(o, c.note ? c.note : "-");
    else
        out_size(o, field == FIELD_SIZE ? c.bytes : c.new_bytes);
}

void change_table_print(outbuf *o, const session *s, uint32_t count,
                        change (*at)(void *ctx, uint32_t i), void *ctx)
{
    static const column columns[] = {
        { "NAME", false, FIELD_NAME },       { "FROM", false, FIELD_FROM },
        { "TO", false, FIELD_TO },           { "SIZE", true, FIELD_SIZE },
        { "BECOMES", true, FIELD_NEW_SIZE }, { "NOTE", false, FIELD_NOTE },
    };
    changes all = { at, ctx };
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .ctx = &all,
                .count = count,
                .threads = s->threads };
    table_print(o, &t);
}
