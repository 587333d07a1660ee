/* layers.h - a test model with layers of equal size, and a parameter store for the model. */
#ifndef HEFT_LAYERS_H
#define HEFT_LAYERS_H
#include "heft_test.h"

#include <heft/params.h>

enum { LAYER_SIDE = 300, LAYERS = 24 }; /* 360,000 bytes each; memory-mapped if aligned */
enum { LAYER_BYTES = LAYER_SIDE * LAYER_SIDE * 4 };

/* Expected byte `at` of a layer. */
uint8_t layers_byte(size_t layer, size_t at);
/* Write `count` f32 tensors "layers.0.weight", "layers.1.weight", ... */
void layers_write(const char *path, const char *format, size_t count);
/* Convert the file `from` to a zTensor file with Zstandard. */
void layers_compress(const char *path, const char *from);
heft_file *layers_file(const char *path);

typedef struct layers {
    heft_params *p;
    heft_id128 model;
    heft_id128 keys[LAYERS];
} layers;

layers layers_open(const char *path, heft_params_options opt);
layers layers_open_file(heft_file *take, heft_params_options opt);
/* Assert that `w` has the shape and bytes of the layer. */
void layers_assert(const heft_param *w, size_t layer);

#endif
