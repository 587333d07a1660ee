/* zero.h - shared by the files that join checkpoints of DeepSpeed ZeRO.
 *
 *   *_model_states.pt   names and shapes of the parameters in groups, in the order in which they
 *                       were laid out; buffers; frozen parameters, which have no optimizer
 *   *_optim_states.pt   of each rank: for each group, one flat tensor with its part of the elements
 *
 * ZeRO-1 and 2 cut the elements of all parameters of a group, one after the other, into a part for
 * each rank: a parameter may lie in two parts.  ZeRO-3 cuts each parameter: N elements of W ranks
 * are ceil(N / W) for each, and the last ones may lack elements, in whose place is padding.
 *
 * Reference: deepspeed/utils/zero_to_fp32.py and deepspeed/runtime/zero of DeepSpeed 0.18. */
#ifndef HEFT_ZERO_H
#define HEFT_ZERO_H
#include "format/torch/torch.h"
#include "model/names.h"

typedef struct heft_zero_shape { /* a parameter */
    heft_str name;
    const uint64_t *dims;
    uint64_t elements;
    uint32_t rank, group;
} heft_zero_shape;

typedef struct heft_zero_tie { /* a parameter with two names */
    heft_str name, of;
} heft_zero_tie;

/* Facts of a file of a rank; heft_index.rank_facts. */
typedef struct heft_zero_facts {
    const char *fault; /* why the file cannot be joined; or NULL */
    uint64_t at;       /* offset of the first opcode of the root */
    uint32_t groups;   /* groups of parameters, or flat tensors */
    bool is_states;    /* *_model_states.pt: the next members are set; else the last ones */

    heft_zero_shape *params, *frozen;
    heft_zero_tie *ties;
    heft_str *buffers; /* names */
    uint32_t param_count, frozen_count, tie_count, buffer_count;

    const char *flats; /* prefix of the names of the flat tensors, without their numbers */
    uint64_t parallel; /* mp_world_size of *_model_states.pt: ranks of tensor parallelism; or 0 */
    uint64_t stage, ranks; /* stage of ZeRO; number of ranks that have a part */
} heft_zero_facts;

/* Set x->rank_facts if the root of the pickle is that of such a file; zero_facts.c. */
heft_status heft_zero_read_facts(heft_torch *t);

/* ---- the files of all ranks: zero_files.c ---- */

typedef struct heft_zero_flat { /* a flat tensor of a rank */
    uint64_t offset;            /* global offset of element 0 */
    uint64_t elements;
} heft_zero_flat;

typedef struct heft_zero_files {
    heft_index *x; /* the model */
    heft_rank_file *files;
    uint32_t *states, *optims; /* numbers of files by rank */
    uint32_t *tensors;         /* numbers of files of a universal checkpoint, each with a tensor */
    uint32_t tensor_count;
    uint32_t state_count, ranks;
    const heft_zero_facts *facts; /* facts of the first states */
    uint64_t stage;
    uint32_t groups;
    heft_dtype type;       /* element type of the flat tensors */
    heft_zero_flat *flats; /* by rank, then by group */
    /* Why the parts of ZeRO-1 and 2 cannot be joined, which store whole copies, too; or ptr
     * NULL. */
    heft_str missing;
} heft_zero_files;

/* Find the files by their names, and the flat tensors in them.  On HEFT_OK `missing` may be set. */
heft_status heft_zero_find_files(heft_zero_files *z, heft_index *x, heft_rank_file *files,
                                 uint32_t count);
/* Return the tensor PREFIX.NAME of a file; *id is HEFT_NONE if there is none. */
heft_status heft_zero_find(const heft_zero_files *z, uint32_t file, const char *prefix,
                           heft_str name, uint32_t *id);
/* Set an error, whose message names the file, unless it is HEFT_NONE; fmt as for
 * heft_error_set(). */
heft_status heft_zero_fail(const heft_zero_files *z, uint32_t file, heft_status st, const char *fmt,
                           ...);

/* ---- tensors of the model: zero_tensors.c ---- */

enum { HEFT_ZERO_BOXES = 1 << 24 }; /* names may share a tensor of many boxes */

typedef struct heft_zero_model {
    heft_zero_files z;
    heft_index *x;
    heft_names known; /* by name: numbers in the next two */
    heft_str *names;
    uint32_t *ids; /* the tensor with the name */
    uint32_t name_count;
} heft_zero_model;

/* Reserve memory for the names that the first file states, or has. */
heft_status heft_zero_begin_names(heft_zero_model *j);
/* Return the number of the name in j->names, or HEFT_NONE. */
uint32_t heft_zero_find_name(const heft_zero_model *j, heft_str name);
/* Add a tensor without boxes, whose name is new. */
heft_status heft_zero_begin(heft_zero_model *j, const heft_zero_shape *s, heft_dtype type,
                            bool is_flat, uint32_t *id);
/* Add elements [at, at + n) of the flat tensor added last, which are in a file from the global
 * offset on. */
heft_status heft_zero_add_range(heft_zero_model *j, uint64_t offset, uint64_t at, uint64_t n,
                                heft_dtype type);
/* Return the shape of a tensor of a file, with another name. */
heft_zero_shape heft_zero_shape_of(const heft_index *x, uint32_t id, heft_str name);
bool heft_zero_has_shape(const heft_index *x, uint32_t id, const heft_zero_shape *s);
/* Add a tensor of a file to the tensor added last, as a box with all elements. */
heft_status heft_zero_add_whole(heft_zero_model *j, uint32_t file, uint32_t from,
                                const heft_zero_shape *s, bool is_replica);
/* End the tensor added last, which is tensor `from` of a file. */
heft_status heft_zero_end_whole(heft_zero_model *j, const heft_index *x, uint32_t from,
                                uint32_t id);

/* ---- the parameters of the model: zero_layout.c ---- */

/* Return the elements of a parameter that each rank of ZeRO-3 has, padding included, and how many
 * of them a rank has without padding. */
uint64_t heft_zero_cut_of(uint64_t elements, uint64_t ranks);
uint64_t heft_zero_own_of(uint64_t elements, uint64_t each, uint32_t rank);
/* Add the parameters of ZeRO-1 and 2, or of ZeRO-3. */
heft_status heft_zero_add_groups(heft_zero_model *j);
heft_status heft_zero_add_cuts(heft_zero_model *j);

/* Add the parameters of a universal checkpoint; zero_universal.c. */
heft_status heft_zero_add_universal(heft_zero_model *j);

/* ---- the model: zero_join.c ---- */

/* Implements heft_format.join_ranks. */
heft_status heft_zero_join(heft_index *x, heft_rank_file *files, uint32_t count);

#endif
