/* rank_name.h - names of the files of a rank in a checkpoint of DeepSpeed, such as
 * "zero_pp_rank_3_mp_rank_00_model_states.pt". */
#ifndef HEFT_RANK_NAME_H
#define HEFT_RANK_NAME_H
#include <heft/heft.h>

typedef struct heft_rank_name {
    uint32_t rank;     /* number in data parallelism, which ZeRO cuts by; or 0 */
    uint32_t parallel; /* number in tensor and pipeline parallelism */
    bool is_cut;       /* the name has a rank of data parallelism */
    bool is_states;    /* model_states: names, shapes, buffers; else optim_states: elements */
} heft_rank_name;

/* Parse "[bf16_]zero_pp_rank_RANK_mp_rank_PARALLEL_optim_states.pt", the same with "model_states",
 * or "mp_rank_PARALLEL_model_states.pt".  False: another name. */
bool heft_rank_name_read(heft_rank_name *out, heft_str name);
/* Parse "zero/w/fp32.pt", a file of a universal checkpoint with the tensor `w`. */
bool heft_rank_name_read_tensor(heft_str *tensor, heft_str name);

#endif
