/* extraction.h - an adapter that is made of two models. */
#ifndef HEFT_EXTRACTION_H
#define HEFT_EXTRACTION_H
#include <heft/lora.h>

#include "combine/combine.h"

typedef struct heft_extracted_row {
    heft_extracted item;
    heft_combine_input base, tuned; /* f NULL: the model lacks the tensor */
    uint64_t rows, columns;
    bool is_embedding;
    uint32_t weight;  /* number among those of the adapter */
    size_t is_known;  /* atomic: the numbers of the item are set */
    uint32_t is_told; /* atomic: a thread sets them */
} heft_extracted_row;

struct heft_extraction {
    const heft_file *base, *tuned;
    heft_extract_options opt;
    heft_memory mem;
    heft_arena arena;
    heft_vec rows;     /* heft_extracted_row, by tensor of the tuned model */
    uint32_t *weights; /* numbers of the rows in the adapter */
    uint32_t weight_count;
    heft_file *out;
    heft_error *err;
};

static inline heft_extracted_row *heft_extracted_row_at(const heft_extraction *x, uint32_t i)
{
    return (heft_extracted_row *)x->rows.ptr + i;
}
/* Return the name of the module of a weight. */
heft_str heft_extracted_module(const heft_extracted_row *row);

/* The matrices of a weight, for one thread; zeroed at first. */
typedef struct heft_factors {
    const heft_extracted_row *of; /* NULL: none */
    float *up, *down;             /* rows x rank, rank x columns */
    double difference, remainder;
    heft_combine_reader base, tuned;
    const heft_allocator *al;
    void *memory;
    size_t bytes;
} heft_factors;
/* Find the matrices of a weight, unless they are there; lora_factors.c. */
heft_status heft_factors_find(heft_factors *f, const heft_extracted_row *row, uint64_t seed,
                              heft_error *err);
void heft_factors_free(heft_factors *f);

#endif
