/* folder_choice.h - choose the files of a model from the names of the files in a folder.
 *
 * Give every name to heft_folder_listing_add(), then call heft_folder_choose(). The order of the
 * names does not matter. */
#ifndef HEFT_FOLDER_CHOICE_H
#define HEFT_FOLDER_CHOICE_H
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/rank_name.h"
#include "folder/weight_names.h"

/* The file of DeepSpeed with the whole model, unless there are parts beside it. */
#define HEFT_DEEPSPEED_MODEL "mp_rank_00_model_states.pt"

enum { HEFT_MAX_MODULES = 64 }; /* further modules are not looked for */

typedef struct heft_folder_listing {
    heft_memory mem;
    heft_arena arena;
    heft_vec weights; /* heft_weight_name: files that may hold weights */
    heft_vec modules; /* const char *: "2_Dense/model.safetensors" */
    heft_vec files;   /* heft_folder_file: the result */
    heft_vec ranks;   /* heft_rank_row: files of ranks of DeepSpeed */
    heft_vec zero;    /* const char *: "zero/w/fp32.pt", files of a universal checkpoint */
    /* Names of files or folders that were found, or NULL. */
    const char *distributed;       /* "__0_0.distcp", "pytorch_model_fsdp_0" */
    const char *megatron;          /* "mp_rank_00", "iter_0000500" */
    const char *deepspeed;         /* "zero_pp_rank_0_mp_rank_00_model_states.pt" */
    const char *parallel;          /* a part of tensor parallelism, "mp_rank_01_model_states.pt" */
    const char *deepspeed_folder;  /* "global_step500" */
    heft_weight_name foreign;      /* a file of weights that this build does not read */
    uint32_t module_folders;       /* number of folders like "2_Dense/" */
    bool has_modules;              /* modules.json of sentence-transformers */
    bool has_common, has_metadata; /* common.pt and metadata.json of Megatron */
    bool has_piece_files;          /* "__0_0.distcp" */
    const char *zero_gap;          /* a folder without such a file, "zero/w/" */
    bool has_zero;                 /* the folder "zero" of a universal checkpoint of DeepSpeed */
    bool has_experts;              /* "expp_rank_0_mp_rank_00_optim_states.pt" of DeepSpeed */
    bool is_pipeline;              /* model_index.json */
    bool has_no_memory;
} heft_folder_listing;

typedef struct heft_folder_choice {
    const char *main;   /* the file to open */
    heft_folder folder; /* the other files */
} heft_folder_choice;

void heft_folder_listing_init(heft_folder_listing *l, const heft_allocator *al);
void heft_folder_listing_free(heft_folder_listing *l);
/* Add a name: "model.safetensors", a folder "2_Dense/", or a file of a folder whose name
 * heft_folder_is_module() accepts, "2_Dense/model.safetensors".  Names may be added twice. */
void heft_folder_listing_add(heft_folder_listing *l, const char *text);
/* Return true for the folder of a module of sentence-transformers, "2_Dense", or
 * "query_0_Transformer" of a router, of which the files are of interest. */
bool heft_folder_is_module(heft_str name);
/* Return true for a folder with pieces of the tensors of a distributed checkpoint, "mp_rank_00". */
bool heft_folder_has_pieces(heft_str name);
/* Return true for the folder "zero" of a universal checkpoint of DeepSpeed, which has a folder for
 * each tensor with its file "fp32.pt", of interest as "zero/w/fp32.pt". */
bool heft_folder_is_zero(heft_str name);
/* Choose.  named: the file that the caller has named, of which only the other files are sought; or
 * NULL.  *out is borrowed from the listing.
 *   HEFT_E_IO           there is no weight file, or several are equally good: the message lists
 *                       them
 *   HEFT_E_UNSUPPORTED  this build reads no file of the folder */
heft_status heft_folder_choose(heft_folder_choice *out, heft_folder_listing *l, const char *named,
                               heft_error *err);
/* List all files that may hold weights, as other forms of a model that another file describes.
 * *out is borrowed from the listing. */
heft_status heft_folder_list_forms(heft_folder *out, heft_folder_listing *l, heft_error *err);

#endif
