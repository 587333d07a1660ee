/* run_network.c - finds the layers of a network in a file, and runs the layers. */
#include "run_network.h"

#include "board.h"

enum { MAX_WIDTH = 16 }; /* inputs or outputs of a layer */

typedef struct dense_layer {
    const float *weight, *bias; /* in the file */
    uint32_t inputs, outputs;
} dense_layer;

/* Return the elements of a dense f32 tensor in the file; NULL if the tensor is missing, has another
 * type or rank, or is not aligned in the file. */
static const float *find_floats(const heft_file *f, heft_str name, uint32_t rank,
                                const uint64_t **dims)
{
    uint32_t id = heft_tensor_find(f, name);
    if (id == HEFT_NONE)
        return NULL;
    heft_tensor t = heft_tensor_at(f, id);
    if (t.dtype != HEFT_F32 || t.layout != HEFT_DENSE || t.rank != rank)
        return NULL;
    const void *data = heft_part_view(f, t.first_part);
    *dims = t.dims;
    return (uintptr_t)data % _Alignof(float) ? NULL : data;
}

static bool find_layer(dense_layer *out, const heft_file *f, heft_str weight, heft_str bias)
{
    const uint64_t *dims, *bias_dims;
    out->weight = find_floats(f, weight, 2, &dims);
    out->bias = find_floats(f, bias, 1, &bias_dims);
    if (!out->weight || !out->bias || dims[0] != bias_dims[0] || dims[0] > MAX_WIDTH ||
        dims[1] > MAX_WIDTH)
        return false;
    out->outputs = (uint32_t)dims[0];
    out->inputs = (uint32_t)dims[1];
    return true;
}

static void run_layer(const dense_layer *l, const float *in, float *out, bool is_rectified)
{
    for (uint32_t i = 0; i < l->outputs; i++) {
        float sum = l->bias[i];
        for (uint32_t k = 0; k < l->inputs; k++)
            sum += l->weight[i * l->inputs + k] * in[k];
        out[i] = is_rectified && sum < 0 ? 0 : sum;
    }
}

static void print_bits(float v)
{
    union {
        float v;
        uint32_t bits;
    } u = { v };
    char digits[8];
    for (uint32_t i = 0; i < sizeof digits; i++)
        digits[i] = "0123456789abcdef"[u.bits >> (28 - 4 * i) & 15];
    board_print(digits, sizeof digits);
}

int run_network(const heft_file *f)
{
    float in[MAX_WIDTH], hidden[MAX_WIDTH], out[MAX_WIDTH];
    dense_layer first, second;
    if (!find_layer(&first, f, HEFT_STR("dense.1.weight"), HEFT_STR("dense.1.bias")) ||
        !find_layer(&second, f, HEFT_STR("dense.2.weight"), HEFT_STR("dense.2.bias")) ||
        second.inputs != first.outputs) {
        print("error: the model does not have the layers of this network\n");
        return 1;
    }
    for (uint32_t i = 0; i < first.inputs; i++)
        in[i] = (float)i / 4 - 1; /* stands for values of a sensor */
    run_layer(&first, in, hidden, true);
    run_layer(&second, hidden, out, false);
    print("outputs");
    for (uint32_t i = 0; i < second.outputs; i++) {
        print(" ");
        print_bits(out[i]);
    }
    print("\n");
    return 0;
}
