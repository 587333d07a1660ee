/* layers.h - a model of equal layers in a file, and a parameter store over it. */
#ifndef HEFT_LAYERS_H
#define HEFT_LAYERS_H
#include "heft_test.h"

#include <heft/params.h>

enum { LAYER_SIDE = 300, LAYERS = 24 }; /* 360,000 bytes each: mapped where it lies aligned */
enum { LAYER_BYTES = LAYER_SIDE * LAYER_SIDE * 4 };

uint8_t layers_byte(size_t layer, size_t at);
/* layers.0.weight and so on, f32. */
void layers_write(const char *path, const char *format, size_t count);
void layers_compress(const char *path, const char *from); /* into a zTensor file */
heft_file *layers_file(const char *path);

typedef struct layers {
    heft_params *p;
    heft_id128 model;
    heft_id128 keys[LAYERS];
} layers;

layers layers_open(const char *path, heft_params_options opt);
layers layers_open_file(heft_file *take, heft_params_options opt);
void layers_assert(const heft_param *w, size_t layer);

#endif
