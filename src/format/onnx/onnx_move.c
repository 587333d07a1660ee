/* onnx_move.c - moves elements of an ONNX model to a file of external data, and back.
 *
 * A TensorProto whose elements move loses the fields that have or name them, and gets others at its
 * end.  Its length changes, and so do those of the messages around it, up to the graph.  Everything
 * else is copied byte for byte.
 *
 *   in the model    9 raw_data
 *   external        13 {1 "location" 2 FILE}  13 {"offset"}  13 {"length"}  14 data_location: 1
 *
 * Only initializers go to a file, as with onnx.external_data_helper: runtimes expect values of
 * Constants, and sparse tensors, in the model.
 *
 * Reference: docs/ExternalData.md of ONNX 1.20.
 */
#include "format/onnx/onnx.h"

#include "base/checked_math.h"
#include "base/sort.h"

enum { WIRE_VARINT = HEFT_WIRE_VARINT, WIRE_BYTES = HEFT_WIRE_BYTES };
enum { RAW = 9, EXTERNAL = 13, LOCATION = 14 }; /* fields of TensorProto */

static const char what[] = "the model";

typedef struct message { /* its length changes */
    uint64_t at;         /* offset of the tag */
    uint32_t tag, around;
    heft_range bytes; /* its content in the present file */
    uint64_t length;  /* its length in the written file */
    uint32_t moved;   /* the tensor that it is; HEFT_NONE: it is around others */
} message;

typedef struct moved { /* a tensor whose elements move */
    heft_range message;
    uint32_t part;
    bool goes_out;       /* to the other file */
    uint64_t at, length; /* offset in the other file, and length, of its elements */
} moved;

typedef struct open_message {
    heft_cur c;
    heft_protobuf_field field;
    uint32_t listed; /* number of the message; HEFT_NONE: not yet */
} open_message;

typedef struct mover {
    heft_data_move *m;
    heft_memory *mem;
    heft_error *err;
    heft_vec found;    /* heft_onnx_message */
    heft_vec moved;    /* moved, by offset */
    heft_vec messages; /* message, by offset: those around a tensor precede it */
    heft_vec open;     /* open_message */
    bool counts;       /* pieces are only counted */
    uint64_t counted;
} mover;

static moved *moved_at(const mover *v, uint32_t i)
{
    return (moved *)v->moved.ptr + i;
}

static message *message_at(const mover *v, uint32_t i)
{
    return (message *)v->messages.ptr + i;
}

static heft_status no_memory(const mover *v)
{
    return heft_error_no_memory(v->err, "to move the data of an ONNX model");
}

/* ---- which elements move ---- */

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_onnx_message *found = ctx;
    return found[a].where.offset < found[b].where.offset;
}

/* Say that elements cannot be moved, because their type is not known. */
static heft_status refuse_left_out(const mover *v, const heft_onnx_message *f)
{
    return heft_error_set(v->err, HEFT_E_UNSUPPORTED, f->where.offset,
                          "a tensor of a type that Heft does not know has external data, which "
                          "cannot be moved");
}

/* Decide about one tensor: initializers of a kibibyte and more go to the file. */
static heft_status choose(mover *v, const heft_onnx_message *f)
{
    enum { LEAST = 1024 };
    if (f->part == HEFT_NONE)
        return f->is_external ? refuse_left_out(v, f) : HEFT_OK;
    moved t = { .message = f->where, .part = f->part };
    t.length = heft_ix_part_row_at(v->m->x, f->part)->length;
    t.goes_out = v->m->location.len && f->is_initializer && t.length >= LEAST;
    if (!t.goes_out && !f->is_external)
        return HEFT_OK;
    return heft_vec_add(v->mem, &v->moved, &t, sizeof t) ? HEFT_OK : no_memory(v);
}

static heft_status choose_all(mover *v)
{
    uint32_t n = v->found.len;
    uint32_t *order = heft_arena_alloc(&v->m->x->arena, (2 * (size_t)n + 1) * sizeof *order, 8);
    if (!order)
        return no_memory(v);
    heft_sort_numbers(order, n, is_before, v->found.ptr);
    for (uint32_t i = 0; i < n; i++)
        HEFT_TRY(choose(v, (const heft_onnx_message *)v->found.ptr + order[i]));
    v->m->count = v->moved.len;
    return HEFT_OK;
}

/* ---- offsets in the other file ---- */

static const heft_ix_part_row *row_of(const mover *v, uint32_t i)
{
    return heft_ix_part_row_at(v->m->x, moved_at(v, i)->part);
}

/* Tensors of the same stored bytes follow one another, the first one of the file first. */
static bool is_source_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *x = row_of(ctx, a), *y = row_of(ctx, b);
    return x->offset != y->offset   ? x->offset < y->offset
           : x->length != y->length ? x->length < y->length
                                    : a < b;
}

static bool is_same_source(const heft_ix_part_row *x, const heft_ix_part_row *y)
{
    return x->offset == y->offset && x->length == y->length && !x->encoding && !y->encoding;
}

/* Large elements begin at multiples of 64 KiB, so that programs can map them on every system; small
 * ones at multiples of 64 bytes. */
static uint64_t align_for(const heft_data_move *m, uint64_t length)
{
    enum { LARGE = 1 << 20, PAGE = 1 << 16, SMALL = 64 };
    return m->align ? m->align : length >= LARGE ? PAGE : SMALL;
}

/* Give the elements of tensor i their offset in the other file. */
static heft_status place(mover *v, uint32_t i)
{
    heft_data_move *m = v->m;
    moved *t = moved_at(v, i);
    uint64_t mask = align_for(m, t->length) - 1, end;
    bool fits = heft_add(&t->at, m->other_bytes, mask);
    t->at &= ~mask;
    if (!fits || !heft_add(&end, t->at, t->length) || end > INT64_MAX)
        return heft_error_plain(v->err, HEFT_E_LIMIT, "the external data exceed 2^63 bytes");
    m->other_bytes = end;
    heft_moved_part part = { t->part, t->at };
    return heft_vec_add(v->mem, &m->parts, &part, sizeof part) ? HEFT_OK : no_memory(v);
}

/* Place what goes to the other file, in the order of the model; tensors that share their stored
 * bytes share them there. */
static heft_status place_all(mover *v)
{
    uint32_t n = v->moved.len;
    uint32_t *order = heft_arena_alloc(&v->m->x->arena, (3 * (size_t)n + 1) * sizeof *order, 8);
    if (!order)
        return no_memory(v);
    uint32_t *first = order + 2 * (size_t)n; /* by tensor: the first with its bytes */
    heft_sort_numbers(order, n, is_source_before, v);
    for (uint32_t i = 0; i < n; i++) {
        bool is_same = i && moved_at(v, order[i - 1])->goes_out &&
                       is_same_source(row_of(v, order[i - 1]), row_of(v, order[i]));
        first[order[i]] = is_same ? first[order[i - 1]] : order[i];
    }
    for (uint32_t i = 0; i < n; i++)
        if (moved_at(v, i)->goes_out && first[i] == i)
            HEFT_TRY(place(v, i));
        else if (moved_at(v, i)->goes_out)
            moved_at(v, i)->at = moved_at(v, first[i])->at;
    return HEFT_OK;
}

/* ---- the messages around the tensors ---- */

/* List the open messages, and the tensor that `field` is. */
static heft_status list_tensor(mover *v, const heft_protobuf_field *field, uint32_t tensor)
{
    open_message *open = v->open.ptr;
    uint32_t around = HEFT_NONE;
    for (uint32_t i = 1; i <= v->open.len; i++) { /* the first is the file, without a tag */
        bool is_tensor = i == v->open.len;
        const heft_protobuf_field *f = is_tensor ? field : &open[i].field;
        if (!is_tensor && open[i].listed != HEFT_NONE) {
            around = open[i].listed;
            continue;
        }
        message m = { .at = f->at,
                      .tag = f->number << 3 | WIRE_BYTES,
                      .around = around,
                      .bytes = f->bytes,
                      .length = f->bytes.length,
                      .moved = is_tensor ? tensor : HEFT_NONE };
        around = v->messages.len;
        if (!heft_vec_add(v->mem, &v->messages, &m, sizeof m))
            return no_memory(v);
        if (!is_tensor)
            open[i].listed = around;
    }
    return HEFT_OK;
}

static heft_status open_field(mover *v, const heft_protobuf_field *field)
{
    open_message o = { .c = heft_protobuf_open(v->m->in, field->bytes, what),
                       .field = *field,
                       .listed = HEFT_NONE };
    return heft_vec_add(v->mem, &v->open, &o, sizeof o) ? HEFT_OK : no_memory(v);
}

/* Find the messages around each tensor: those whose content has the tensor's. */
static heft_status find_messages(mover *v)
{
    uint32_t next = 0;
    heft_protobuf_field field = { .bytes = { 0, v->m->in->size } };
    HEFT_TRY(open_field(v, &field));
    while (next < v->moved.len && v->open.len) {
        heft_range wanted = moved_at(v, next)->message;
        open_message *o = (open_message *)v->open.ptr + (v->open.len - 1);
        if (!heft_protobuf_next(&o->c, &field)) {
            HEFT_TRY(o->c.st);
            v->open.len--;
            continue;
        }
        bool holds = field.wire == HEFT_WIRE_BYTES && wanted.offset >= field.bytes.offset &&
                     wanted.offset - field.bytes.offset < field.bytes.length;
        if (holds && wanted.offset == field.bytes.offset && wanted.length == field.bytes.length)
            HEFT_TRY(list_tensor(v, &field, next++));
        else if (holds)
            HEFT_TRY(open_field(v, &field));
    }
    return next == v->moved.len
               ? HEFT_OK
               : heft_error_plain(v->err, HEFT_E_FORMAT, "a tensor is in no message");
}

/* ---- pieces of the written file ---- */

static heft_status add_piece(mover *v, heft_move_piece piece)
{
    heft_vec *pieces = &v->m->pieces;
    v->counted += piece.from.length;
    if (v->counts || !piece.from.length)
        return HEFT_OK;
    heft_move_piece *last = pieces->len ? (heft_move_piece *)pieces->ptr + (pieces->len - 1) : NULL;
    bool is_copy = !piece.bytes && piece.part == HEFT_NONE;
    if (is_copy && last && !last->bytes && last->part == HEFT_NONE &&
        last->from.offset + last->from.length == piece.from.offset) {
        last->from.length += piece.from.length;
        return HEFT_OK;
    }
    return heft_vec_add(v->mem, pieces, &piece, sizeof piece) ? HEFT_OK : no_memory(v);
}

static heft_status add_copy(mover *v, uint64_t from, uint64_t end)
{
    return add_piece(v, (heft_move_piece){ .from = { from, end - from }, .part = HEFT_NONE });
}

static heft_status add_bytes(mover *v, const heft_out *o)
{
    heft_str kept = { NULL, 0 };
    if (!v->counts)
        kept = heft_arena_copy(&v->m->x->arena, (heft_str){ (const char *)o->buf, o->len });
    if (o->st || (!v->counts && !kept.ptr))
        return o->st ? o->st : no_memory(v);
    return add_piece(
        v, (heft_move_piece){ .bytes = kept.ptr, .from = { 0, o->total }, .part = HEFT_NONE });
}

static void put_varint(heft_out *o, uint64_t n)
{
    for (; n > 127; n >>= 7)
        heft_out_u8(o, (uint8_t)(n & 127) | 128);
    heft_out_u8(o, (uint8_t)n);
}

static uint32_t varint_bytes(uint64_t n)
{
    uint32_t bytes = 1;
    while (n >>= 7)
        bytes++;
    return bytes;
}

static void put_text(heft_out *o, uint32_t field, heft_str text)
{
    put_varint(o, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(o, text.len);
    heft_out_str(o, text);
}

static uint64_t text_bytes(heft_str text)
{
    return 1 + varint_bytes(text.len) + text.len;
}

/* Emit an entry of external_data. */
static void put_entry(heft_out *o, heft_str key, heft_str value)
{
    put_varint(o, EXTERNAL << 3 | WIRE_BYTES);
    put_varint(o, text_bytes(key) + text_bytes(value));
    put_text(o, 1, key);
    put_text(o, 2, value);
}

static void put_number_entry(heft_out *o, heft_str key, uint64_t n)
{
    char digits[20];
    put_entry(o, key, (heft_str){ digits, heft_u64_text(digits, n) });
}

/* Add the fields that have or name the elements. */
static heft_status add_data(mover *v, const moved *t)
{
    enum { ENTRIES = 512 }; /* the file's name has at most 255 bytes */
    uint8_t buf[ENTRIES];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    if (!t->goes_out) {
        put_varint(&o, RAW << 3 | WIRE_BYTES);
        put_varint(&o, t->length);
        HEFT_TRY(add_bytes(v, &o));
        return add_piece(v, (heft_move_piece){ .from = { 0, t->length }, .part = t->part });
    }
    put_entry(&o, heft_lit("location"), v->m->location);
    put_number_entry(&o, heft_lit("offset"), t->at);
    put_number_entry(&o, heft_lit("length"), t->length);
    put_varint(&o, LOCATION << 3 | WIRE_VARINT);
    put_varint(&o, 1);
    return add_bytes(v, &o);
}

/* Return true if the field has or names the elements of a TensorProto. */
static bool is_data(uint32_t field)
{
    static const uint32_t data = 1U << 4 | 1U << 5 | 1U << 7 | 1U << RAW | 1U << 10 | 1U << 11 |
                                 1U << EXTERNAL | 1U << LOCATION;
    return field < 32 && data >> field & 1;
}

/* Add the content of a TensorProto. */
static heft_status add_tensor(mover *v, const moved *t)
{
    uint64_t from = t->message.offset;
    heft_cur c = heft_protobuf_open(v->m->in, t->message, what);
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);)
        if (is_data(f.number)) {
            HEFT_TRY(add_copy(v, from, f.at));
            from = heft_cur_pos(&c);
        }
    HEFT_TRY(c.st);
    HEFT_TRY(add_copy(v, from, t->message.offset + t->message.length));
    return add_data(v, t);
}

/* Compute the new lengths: those of inner messages first. */
static heft_status measure(mover *v)
{
    v->counts = true;
    for (uint32_t i = v->messages.len; i--;) {
        message *m = message_at(v, i);
        if (m->moved != HEFT_NONE) {
            v->counted = 0;
            HEFT_TRY(add_tensor(v, moved_at(v, m->moved)));
            m->length = v->counted;
        }
        uint64_t head = varint_bytes(m->tag) + varint_bytes(m->length);
        if (m->around != HEFT_NONE) /* the sum is not negative, its parts may be: modulo 2^64 */
            message_at(v, m->around)->length += head + m->length - (m->bytes.offset - m->at) -
                                                m->bytes.length;
    }
    v->counts = false;
    v->counted = 0;
    return HEFT_OK;
}

static heft_status add_head(mover *v, const message *m)
{
    uint8_t buf[20];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    put_varint(&o, m->tag);
    put_varint(&o, m->length);
    return add_bytes(v, &o);
}

static heft_status add_pieces(mover *v)
{
    uint64_t from = 0;
    for (uint32_t i = 0; i < v->messages.len; i++) {
        const message *m = message_at(v, i);
        HEFT_TRY(add_copy(v, from, m->at));
        HEFT_TRY(add_head(v, m));
        from = m->bytes.offset;
        if (m->moved == HEFT_NONE)
            continue;
        HEFT_TRY(add_tensor(v, moved_at(v, m->moved)));
        from += m->bytes.length;
    }
    HEFT_TRY(add_copy(v, from, v->m->in->size));
    v->m->bytes = v->counted;
    return HEFT_OK;
}

/* ---- the plan ---- */

static heft_status check_size(const mover *v)
{
    return v->m->bytes <= INT32_MAX
               ? HEFT_OK
               : heft_error_plain(v->err, HEFT_E_UNSUPPORTED,
                                  "the model would have %U bytes, and programs read messages of "
                                  "protobuf below 2 GiB only: keep its data in a file",
                                  v->m->bytes);
}

static heft_status plan(mover *v)
{
    HEFT_TRY(heft_onnx_parse(v->m->in, v->m->x, &v->found));
    HEFT_TRY(choose_all(v));
    HEFT_TRY(place_all(v));
    HEFT_TRY(find_messages(v));
    HEFT_TRY(measure(v));
    HEFT_TRY(add_pieces(v));
    return check_size(v);
}

static heft_status move(heft_data_move *m)
{
    mover v = { .m = m, .mem = &m->x->mem, .err = m->x->err };
    heft_status st = plan(&v);
    heft_vec_free(v.mem, &v.found, sizeof(heft_onnx_message));
    heft_vec_free(v.mem, &v.moved, sizeof(moved));
    heft_vec_free(v.mem, &v.messages, sizeof(message));
    heft_vec_free(v.mem, &v.open, sizeof(open_message));
    return st;
}

const heft_format_writer heft_format_writer_onnx = { .move = move };
