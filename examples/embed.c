/* embed.c - compute sentence embeddings: WordPiece tokens, a BERT encoder, mean over the tokens,
 * normalised to length 1.
 *
 *     cc -std=c11 embed.c -o embed $(pkg-config --cflags --libs heft) -lm
 *     ./embed [--vocab FILE] [--heads N] MODEL TEXT...
 *
 * MODEL is a file of any format with the tensors of an encoder such as all-MiniLM-L6-v2; linear
 * layers have the shape [out, in].  --vocab is needed if the file has no vocabulary, --heads if its
 * metadata have no num_attention_heads.  Only ASCII letters are converted to lower case.  Prints
 * one vector per line for each text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>
#include <heft/vocabulary.h>

enum { MAX_TOKENS = 512, MAX_WORD = 100 };
static const float epsilon = 1e-12f; /* for LayerNorm */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "embed: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        die("memory", "out of memory");
    return p;
}

/* ---- weights ---- */

typedef struct linear { /* y = W x + b */
    float *weight, *bias;
    size_t out, in;
} linear;

typedef struct norm {
    float *weight, *bias;
} norm;

typedef struct layer {
    linear query, key, value, attention, intermediate, output;
    norm attention_norm, output_norm;
} layer;

typedef struct encoder {
    float *words, *positions, *types;
    size_t hidden, max_positions, layers, heads;
    norm norm;
    layer *layer;
} encoder;

/* Find a tensor by name, with or without the prefix "bert."; HEFT_NONE if there is none. */
static uint32_t find(const heft_file *f, const char *name)
{
    char prefixed[256];
    uint32_t id = heft_tensor_find(f, heft_str_from(name));
    if (id != HEFT_NONE)
        return id;
    int len = snprintf(prefixed, sizeof prefixed, "bert.%s", name);
    return heft_tensor_find(f, (heft_str){ prefixed, (size_t)len });
}

/* Read a vector or matrix of any element type as f32; a vector has one row.  Free the result. */
static float *load(const heft_file *f, const char *name, size_t *rows, size_t *columns)
{
    heft_error err;
    uint32_t id = find(f, name);
    if (id == HEFT_NONE)
        die(name, "there is no such tensor");
    heft_tensor t = heft_tensor_at(f, id);
    heft_part data = heft_part_at(f, t.first_part);
    if (!t.rank || t.rank > 2 || t.layout != HEFT_DENSE || !heft_dtype_can_cast(HEFT_F32, t.dtype))
        die(name, "is not a vector or matrix of numbers");
    *rows = t.rank == 2 ? (size_t)t.dims[0] : 1;
    *columns = (size_t)t.dims[t.rank - 1];
    void *stored = allocate((size_t)data.length, 1);
    float *values = allocate(*rows * *columns, sizeof *values);
    if (heft_part_read(stored, f, t.first_part, 0, (size_t)data.length, &err))
        die(name, err.message);
    heft_dtype_cast(values, HEFT_F32, stored, t.dtype, *rows * *columns);
    free(stored);
    return values;
}

static float *load_vector(const heft_file *f, const char *name, size_t length)
{
    size_t rows, columns;
    float *v = load(f, name, &rows, &columns);
    if (rows != 1 || columns != length)
        die(name, "has an unexpected length");
    return v;
}

static linear load_linear(const heft_file *f, const char *name, size_t in)
{
    char full[200];
    linear l;
    snprintf(full, sizeof full, "%s.weight", name);
    l.weight = load(f, full, &l.out, &l.in);
    if (l.in != in)
        die(full, "has an unexpected shape");
    snprintf(full, sizeof full, "%s.bias", name);
    l.bias = load_vector(f, full, l.out);
    return l;
}

static norm load_norm(const heft_file *f, const char *name, size_t length)
{
    char weight[200], bias[200];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return (norm){ load_vector(f, weight, length), load_vector(f, bias, length) };
}

static layer load_layer(const heft_file *f, size_t number, size_t hidden)
{
    static const char *const names[] = { "attention.self.query", "attention.self.key",
                                         "attention.self.value", "attention.output.dense",
                                         "intermediate.dense",   "output.dense" };
    char name[128];
    layer l;
    linear *const layers[] = {
        &l.query, &l.key, &l.value, &l.attention, &l.intermediate, &l.output
    };
    for (size_t i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "encoder.layer.%zu.%s", number, names[i]);
        *layers[i] = load_linear(f, name, i < 5 ? hidden : l.intermediate.out);
        if (i != 4 && layers[i]->out != hidden)
            die(name, "has an unexpected shape");
    }
    snprintf(name, sizeof name, "encoder.layer.%zu.attention.output.LayerNorm", number);
    l.attention_norm = load_norm(f, name, hidden);
    snprintf(name, sizeof name, "encoder.layer.%zu.output.LayerNorm", number);
    l.output_norm = load_norm(f, name, hidden);
    return l;
}

static size_t count_layers(const heft_file *f)
{
    char name[128];
    size_t n = 0;
    do
        snprintf(name, sizeof name, "encoder.layer.%zu.output.dense.weight", n);
    while (find(f, name) != HEFT_NONE && ++n);
    return n;
}

/* Get the number of attention heads from the metadata; 0 if missing. */
static size_t read_heads(const heft_file *f)
{
    heft_value v;
    char text[16];
    if (!heft_meta_find(&v, f, HEFT_STR("num_attention_heads")))
        return 0;
    if (v.kind != HEFT_KIND_STR || v.as.s.len >= sizeof text)
        return v.kind == HEFT_KIND_INT && v.as.i > 0 ? (size_t)v.as.i : 0;
    memcpy(text, v.as.s.ptr, v.as.s.len);
    text[v.as.s.len] = 0;
    return strtoul(text, NULL, 10);
}

static encoder load_encoder(const heft_file *f, size_t heads, size_t tokens)
{
    encoder e = { .layers = count_layers(f), .heads = heads ? heads : read_heads(f) };
    size_t rows, columns, type_columns;
    e.words = load(f, "embeddings.word_embeddings.weight", &rows, &e.hidden);
    if (rows < tokens)
        die("embeddings.word_embeddings.weight", "has fewer rows than the vocabulary has tokens");
    e.positions = load(f, "embeddings.position_embeddings.weight", &e.max_positions, &columns);
    e.types = load(f, "embeddings.token_type_embeddings.weight", &rows, &type_columns);
    if (columns != e.hidden || type_columns != e.hidden)
        die("embeddings", "have different widths");
    e.norm = load_norm(f, "embeddings.LayerNorm", e.hidden);
    if (!e.heads || e.hidden % e.heads)
        die("attention heads", "number is missing or does not divide the width; use --heads");
    e.layer = allocate(e.layers, sizeof *e.layer);
    for (size_t i = 0; i < e.layers; i++)
        e.layer[i] = load_layer(f, i, e.hidden);
    return e;
}

static void free_encoder(encoder *e)
{
    for (size_t i = 0; i < e->layers; i++) {
        layer *l = &e->layer[i];
        linear *const all[] = { &l->query,     &l->key,          &l->value,
                                &l->attention, &l->intermediate, &l->output };
        for (size_t k = 0; k < 6; k++) {
            free(all[k]->weight);
            free(all[k]->bias);
        }
        free(l->attention_norm.weight);
        free(l->attention_norm.bias);
        free(l->output_norm.weight);
        free(l->output_norm.bias);
    }
    free(e->layer);
    free(e->norm.weight);
    free(e->norm.bias);
    free(e->words);
    free(e->positions);
    free(e->types);
}

/* ---- the forward pass ---- */

static void apply(const linear *l, const float *x, float *y, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t o = 0; o < l->out; o++) {
            const float *row = l->weight + o * l->in, *in = x + t * l->in;
            double sum = l->bias[o];
            for (size_t i = 0; i < l->in; i++)
                sum += (double)row[i] * (double)in[i];
            y[t * l->out + o] = (float)sum;
        }
}

static void normalise(const norm *n, float *x, size_t tokens, size_t width)
{
    for (size_t t = 0; t < tokens; t++, x += width) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < width; i++)
            mean += (double)x[i] / (double)width;
        for (size_t i = 0; i < width; i++)
            square += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)width;
        double scale = 1 / sqrt(square + (double)epsilon);
        for (size_t i = 0; i < width; i++)
            x[i] =
                (float)(((double)x[i] - mean) * scale * (double)n->weight[i] + (double)n->bias[i]);
    }
}

static void softmax(double *x, size_t n)
{
    double max = x[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (size_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* Attention of one head for one token: the values v weighted by softmax(q k). */
static void attend(const encoder *e, const float *q, const float *k, const float *v, float *out,
                   size_t tokens)
{
    size_t width = e->hidden / e->heads;
    double score[MAX_TOKENS];
    for (size_t t = 0; t < tokens; t++) {
        score[t] = 0;
        for (size_t i = 0; i < width; i++)
            score[t] += (double)q[i] * (double)k[t * e->hidden + i];
        score[t] /= sqrt((double)width);
    }
    softmax(score, tokens);
    for (size_t i = 0; i < width; i++) {
        double sum = 0;
        for (size_t t = 0; t < tokens; t++)
            sum += score[t] * (double)v[t * e->hidden + i];
        out[i] = (float)sum;
    }
}

/* x = norm(x + change) */
static void add_and_normalise(const norm *n, float *x, const float *change, size_t tokens,
                              size_t width)
{
    for (size_t i = 0; i < tokens * width; i++)
        x[i] += change[i];
    normalise(n, x, tokens, width);
}

static void run_layer(const encoder *e, const layer *l, float *x, size_t tokens)
{
    size_t size = tokens * e->hidden, width = e->hidden / e->heads;
    float *q = allocate(5 * size, sizeof *q), *k = q + size, *v = k + size, *mixed = v + size;
    float *y = mixed + size, *inner = allocate(tokens * l->intermediate.out, sizeof *inner);
    apply(&l->query, x, q, tokens);
    apply(&l->key, x, k, tokens);
    apply(&l->value, x, v, tokens);
    for (size_t t = 0; t < tokens; t++)
        for (size_t at = 0; at < e->hidden; at += width)
            attend(e, q + t * e->hidden + at, k + at, v + at, mixed + t * e->hidden + at, tokens);
    apply(&l->attention, mixed, y, tokens);
    add_and_normalise(&l->attention_norm, x, y, tokens, e->hidden);
    apply(&l->intermediate, x, inner, tokens);
    for (size_t i = 0; i < tokens * l->intermediate.out; i++) /* GELU */
        inner[i] = (float)(0.5 * (double)inner[i] * (1 + erf((double)inner[i] / sqrt(2.0))));
    apply(&l->output, inner, y, tokens);
    add_and_normalise(&l->output_norm, x, y, tokens, e->hidden);
    free(q);
    free(inner);
}

static void embed(const encoder *e, const uint32_t *ids, size_t tokens, double *vector)
{
    float *x = allocate(tokens * e->hidden, sizeof *x);
    double length = 0;
    for (size_t i = 0; i < tokens * e->hidden; i++) {
        size_t column = i % e->hidden;
        x[i] = e->words[ids[i / e->hidden] * e->hidden + column] + e->positions[i] +
               e->types[column];
    }
    normalise(&e->norm, x, tokens, e->hidden);
    for (size_t i = 0; i < e->layers; i++)
        run_layer(e, &e->layer[i], x, tokens);
    for (size_t i = 0; i < e->hidden; i++) {
        vector[i] = 0;
        for (size_t t = 0; t < tokens; t++)
            vector[i] += (double)x[t * e->hidden + i] / (double)tokens;
        length += vector[i] * vector[i];
    }
    for (size_t i = 0; i < e->hidden; i++)
        vector[i] /= sqrt(length);
    free(x);
}

/* ---- WordPiece ---- */

typedef struct sentence {
    const heft_vocab *vocab;
    uint32_t ids[MAX_TOKENS];
    size_t count, max;
} sentence;

static void push(sentence *s, uint32_t id)
{
    if (s->count < s->max)
        s->ids[s->count++] = id;
}

/* Find the longest token that matches the word at offset `at`; return the length, 0 if none. */
static size_t match_longest(const sentence *s, const char *word, size_t at, size_t len,
                            uint32_t *id)
{
    char piece[MAX_WORD + 2] = "##";
    size_t prefix = at ? 2 : 0; /* pieces inside a word begin with ## */
    for (size_t n = len - at; n; n--) {
        memcpy(piece + prefix, word + at, n);
        *id = heft_vocab_find(s->vocab, (heft_str){ piece, prefix + n });
        if (*id != HEFT_NONE)
            return n;
    }
    return 0;
}

static void push_word(sentence *s, const char *word, size_t len)
{
    uint32_t pieces[MAX_WORD];
    size_t count = 0, at = 0, n = 1;
    while (at < len && len <= MAX_WORD && n) {
        n = match_longest(s, word, at, len, &pieces[count]);
        at += n;
        count += n > 0;
    }
    if (at < len)
        push(s, heft_vocab_special(s->vocab, HEFT_UNK));
    for (size_t i = 0; at == len && i < count; i++)
        push(s, pieces[i]);
}

static int is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

/* Split text at white space; each punctuation mark is a word.  Changes text to lower case. */
static void tokenise(sentence *s, char *text)
{
    s->count = 0;
    push(s, heft_vocab_special(s->vocab, HEFT_CLS));
    for (char *end = text; *text; text = end) {
        for (; *end && !strchr(" \t\n\r", *end) && !is_punctuation(*end); end++)
            if (*end >= 'A' && *end <= 'Z')
                *end = (char)(*end - 'A' + 'a');
        if (end > text)
            push_word(s, text, (size_t)(end - text));
        if (is_punctuation(*end))
            push_word(s, end, 1);
        end += *end != 0;
    }
    s->count -= s->count == s->max;
    push(s, heft_vocab_special(s->vocab, HEFT_SEP));
}

/* ---- the command ---- */

static heft_vocab *read_vocab(const char *path)
{
    heft_error err;
    heft_vocab *v;
    FILE *in = fopen(path, "rb");
    if (!in || fseek(in, 0, SEEK_END))
        die(path, "cannot be read");
    long size = ftell(in);
    rewind(in);
    char *text = allocate(size > 0 ? (size_t)size : 0, 1);
    heft_str whole = { text, fread(text, 1, size > 0 ? (size_t)size : 0, in) };
    fclose(in);
    if (heft_vocab_parse_lines(&v, whole, NULL, &err))
        die(path, err.message);
    free(text);
    return v;
}

static heft_vocab *vocab_for(const heft_file *f, const char *path)
{
    heft_error err;
    heft_vocab *v;
    if (path)
        v = read_vocab(path);
    else if (heft_vocab_open(&v, f, &err))
        die("vocabulary", err.message);
    for (int i = HEFT_UNK; i <= HEFT_SEP; i++)
        if (heft_vocab_special(v, (heft_special)i) >= heft_vocab_count(v))
            die("vocabulary", "has no [UNK], [CLS] or [SEP]");
    return v;
}

int main(int argc, char **argv)
{
    heft_file *f;
    heft_error err;
    const char *vocab_path = NULL;
    size_t heads = 0;
    int at = 1;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        if (!strcmp(argv[at], "--vocab"))
            vocab_path = argv[at + 1];
        else if (!strcmp(argv[at], "--heads"))
            heads = strtoul(argv[at + 1], NULL, 10);
    }
    if (at >= argc) {
        fputs("usage: embed [--vocab FILE] [--heads N] MODEL TEXT...\n", stderr);
        return 2;
    }
    if (heft_file_open(&f, argv[at], NULL, &err))
        die(argv[at], err.message);
    heft_vocab *vocab = vocab_for(f, vocab_path);
    encoder e = load_encoder(f, heads, heft_vocab_count(vocab));
    sentence s = { .vocab = vocab, .max = MAX_TOKENS };
    s.max = e.max_positions < s.max ? e.max_positions : s.max;
    double *vector = allocate(e.hidden, sizeof *vector);
    for (at++; at < argc; at++) {
        tokenise(&s, argv[at]);
        embed(&e, s.ids, s.count, vector);
        for (size_t i = 0; i < e.hidden; i++)
            printf("%s%.9g", i ? " " : "", vector[i]);
        putchar('\n');
    }
    free(vector);
    free_encoder(&e);
    heft_vocab_close(vocab);
    heft_file_close(f);
    return 0;
}
