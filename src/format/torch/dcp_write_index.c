/* dcp_write_index.c - emits .metadata, the index of a distributed checkpoint: a pickle of Metadata
 * in protocol 2, as dcp.c describes it.
 *
 * TensorProperties is the class of sharded tensors, which every PyTorch 2 reads: early versions do
 * not have the later class of the checkpoint. */
#include "format/torch/dcp_write.h"
#include "grammar/pickle_write.h"

static const char metadata[] = "torch.distributed.checkpoint.metadata";
static const char sharded_tensor[] = "torch.distributed._shard.sharded_tensor.metadata";
static const char index_class[] = "MetadataIndex", info_class[] = "_StorageInfo";
static const char tensor_class[] = "TensorStorageMetadata", chunk_class[] = "ChunkStorageMetadata";
static const char properties_class[] = "TensorProperties", encoding[] = "MEM_FORMAT_ENCODING";
static const char size_class[] = "Size", get_layout[] = "_get_layout", strided[] = "torch.strided";

/* Names of fields: the address identifies the text in the memo of the pickle. */
static const char properties[] = "properties", size[] = "size", chunks[] = "chunks";
static const char offsets[] = "offsets", sizes[] = "sizes", fqn[] = "fqn", offset[] = "offset";
static const char number[] = "index", relative_path[] = "relative_path", length[] = "length";

typedef struct writer {
    heft_pickle_writer w;
    const heft_shard_set *set;
} writer;

void heft_dcp_put_file_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    char digits[20];
    (void)stem; /* PyTorch looks for .metadata, which names the files */
    if (i == count) {
        heft_out_str(o, heft_lit(".metadata"));
        return;
    }
    heft_out_str(o, heft_lit("__"));
    heft_out_str(o, (heft_str){ digits, heft_u64_text(digits, i) });
    heft_out_str(o, heft_lit("_0.distcp"));
}

/* ---- values ---- */

static void begin_fields(const writer *w)
{
    heft_pickle_op(&w->w, HEFT_OP_EMPTY_DICT);
    heft_pickle_op(&w->w, HEFT_OP_MARK);
}

/* Give the object the fields since begin_fields(). */
static void end_fields(const writer *w)
{
    heft_pickle_op(&w->w, HEFT_OP_SET_ITEMS);
    heft_pickle_op(&w->w, HEFT_OP_BUILD);
}

/* Emit a torch.Size; dims NULL: zeros. */
static void put_size(writer *w, const uint64_t *dims, uint32_t rank)
{
    heft_pickle_write_global(&w->w, "torch", size_class);
    heft_pickle_tuple_mark(&w->w, rank);
    for (uint32_t i = 0; i < rank; i++)
        heft_pickle_write_u64(&w->w, dims ? dims[i] : 0);
    heft_pickle_tuple(&w->w, rank);
    heft_pickle_tuple(&w->w, 1);
    heft_pickle_op(&w->w, HEFT_OP_CALL);
}

/* The state is a tuple: type, layout, requires_grad, memory format, pin_memory. */
static void put_properties(writer *w, heft_dtype type)
{
    enum { FIELDS = 5 };
    heft_pickle_write_object(&w->w, sharded_tensor, properties_class);
    heft_pickle_tuple_mark(&w->w, FIELDS);
    heft_pickle_write_global(&w->w, "torch", heft_torch_type_stored_as(type)->dtype);
    heft_pickle_write_global(&w->w, "torch.serialization", get_layout);
    heft_pickle_write_shared(&w->w, strided);
    heft_pickle_tuple(&w->w, 1);
    heft_pickle_op(&w->w, HEFT_OP_CALL);
    heft_pickle_write_bool(&w->w, false);
    heft_pickle_write_global(&w->w, sharded_tensor, encoding);
    heft_pickle_write_u64(&w->w, 0); /* TORCH_CONTIGUOUS_FORMAT */
    heft_pickle_tuple(&w->w, 1);
    heft_pickle_op(&w->w, HEFT_OP_CALL);
    heft_pickle_write_bool(&w->w, false);
    heft_pickle_tuple(&w->w, FIELDS);
    heft_pickle_op(&w->w, HEFT_OP_BUILD);
}

/* ---- the three dictionaries ---- */

/* Emit NAME: TensorStorageMetadata, with one chunk. */
static void put_tensor(writer *w, uint32_t t)
{
    const heft_index *x = w->set->x;
    const uint64_t *dims = heft_ix_dims(x, t);
    uint32_t rank = heft_ix_row(x, t)->rank;
    heft_pickle_write_text(&w->w, heft_ix_name(x, t));
    heft_pickle_write_object(&w->w, metadata, tensor_class);
    begin_fields(w);
    heft_pickle_write_shared(&w->w, properties);
    put_properties(w, heft_ix_row(x, t)->dtype);
    heft_pickle_write_shared(&w->w, size);
    put_size(w, dims, rank);
    heft_pickle_write_shared(&w->w, chunks);
    heft_pickle_op(&w->w, HEFT_OP_EMPTY_LIST);
    heft_pickle_op(&w->w, HEFT_OP_MARK);
    heft_pickle_write_object(&w->w, metadata, chunk_class);
    begin_fields(w);
    heft_pickle_write_shared(&w->w, offsets);
    put_size(w, NULL, rank);
    heft_pickle_write_shared(&w->w, sizes);
    put_size(w, dims, rank);
    end_fields(w);
    heft_pickle_op(&w->w, HEFT_OP_APPENDS);
    end_fields(w);
}

/* Emit NAME: (NAME,), the path in the dictionary that was saved. */
static void put_path(writer *w, uint32_t t)
{
    heft_str name = heft_ix_name(w->set->x, t);
    heft_pickle_write_text(&w->w, name);
    heft_pickle_write_text(&w->w, name);
    heft_pickle_tuple(&w->w, 1);
}

/* Emit MetadataIndex: _StorageInfo. */
static void put_place(writer *w, uint32_t t, uint64_t at, uint64_t bytes)
{
    const heft_index *x = w->set->x;
    char text[40]; /* "__0_0.distcp" */
    heft_out name = { .buf = (uint8_t *)text, .cap = sizeof text };
    heft_dcp_put_file_name(&name, w->set->stem, w->set->file[t], w->set->count);
    heft_pickle_write_object(&w->w, metadata, index_class);
    begin_fields(w);
    heft_pickle_write_shared(&w->w, fqn);
    heft_pickle_write_text(&w->w, heft_ix_name(x, t));
    heft_pickle_write_shared(&w->w, number);
    heft_pickle_write_u64(&w->w, 0);
    heft_pickle_write_shared(&w->w, offset);
    put_size(w, NULL, heft_ix_row(x, t)->rank);
    end_fields(w);
    heft_pickle_write_object(&w->w, "torch.distributed.checkpoint.filesystem", info_class);
    begin_fields(w);
    heft_pickle_write_shared(&w->w, relative_path);
    heft_pickle_write_text(&w->w, (heft_str){ text, name.len });
    heft_pickle_write_shared(&w->w, offset);
    heft_pickle_write_u64(&w->w, at);
    heft_pickle_write_shared(&w->w, length);
    heft_pickle_write_u64(&w->w, bytes);
    end_fields(w);
}

static void begin_dictionary(const writer *w, const char *name)
{
    heft_pickle_write_text(&w->w, heft_lit(name));
    begin_fields(w);
}

/* Let a reader's stack stay small. */
static void step(const writer *w, uint32_t t)
{
    if (t && t % HEFT_PICKLE_BATCH == 0) {
        heft_pickle_op(&w->w, HEFT_OP_SET_ITEMS);
        heft_pickle_op(&w->w, HEFT_OP_MARK);
    }
}

/* Items follow each other in the order of the tensors, and the tensors of a file each other. */
static void put_places(writer *w)
{
    const heft_shard_set *s = w->set;
    uint64_t end = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(s->x); t++) {
        heft_dcp_record r;
        heft_dcp_lay_out(&r, s->x, t);
        end = t && s->file[t] == s->file[t - 1] ? end : 0;
        step(w, t);
        put_place(w, t, end, r.bytes);
        end += r.bytes;
    }
}

void heft_dcp_put_index(heft_out *o, const heft_shard_set *s)
{
    writer w = { .w = { .o = o }, .set = s };
    uint32_t count = heft_ix_tensors(s->x);
    heft_pickle_write_begin(&w.w);
    heft_pickle_write_object(&w.w, metadata, "Metadata");
    begin_fields(&w);
    begin_dictionary(&w, "state_dict_metadata");
    for (uint32_t t = 0; t < count; t++) {
        step(&w, t);
        put_tensor(&w, t);
    }
    heft_pickle_op(&w.w, HEFT_OP_SET_ITEMS);
    begin_dictionary(&w, "planner_data");
    for (uint32_t t = 0; t < count; t++) {
        step(&w, t);
        put_path(&w, t);
    }
    heft_pickle_op(&w.w, HEFT_OP_SET_ITEMS);
    begin_dictionary(&w, "storage_data");
    put_places(&w);
    heft_pickle_op(&w.w, HEFT_OP_SET_ITEMS);
    end_fields(&w);
    heft_pickle_op(&w.w, HEFT_OP_STOP);
}
