/* map_rules.h - rules from the names and layouts of one framework to those of another.
 *
 * map_text.c reads the text of a map into struct heft_map.  A rule has patterns of names on two
 * sides, and operations that lead from the left side to the right one; the other direction follows
 * from them (map_operations.c).  map_file.c finds the tensors of each rule, map_value.c computes
 * where the elements of the results are in the inputs, and map_source.c gathers them when they are
 * read. */
#ifndef HEFT_MAP_RULES_H
#define HEFT_MAP_RULES_H
#include <heft/map.h>

#include "core/read/file.h"

enum { HEFT_MAP_CAPTURES = 6, HEFT_MAP_RULES = 4096, HEFT_MAP_ARGS = 8 };

/* ---- rules ---- */

typedef enum heft_map_token_kind {
    HEFT_MAP_LITERAL,
    HEFT_MAP_NUMBER, /* {i}: a decimal number */
    HEFT_MAP_REST    /* {name*}: any text, at most once in a pattern */
} heft_map_token_kind;

typedef struct heft_map_token {
    heft_str text; /* the literal, or the name of the capture */
    uint8_t kind;
    uint8_t slot; /* number of the capture */
} heft_map_token;

typedef struct heft_map_pattern {
    heft_str text;
    uint32_t first_token, tokens;
    uint8_t slots; /* a bit for each capture */
} heft_map_pattern;

typedef struct heft_map_op {
    uint8_t kind; /* row of heft_map_op_rows */
    uint8_t only; /* the value that it applies to, or HEFT_MAP_ALL */
    uint8_t slot; /* the capture of stack and unstack */
    uint8_t args;
    uint32_t first_arg;
} heft_map_op;
enum { HEFT_MAP_ALL = 255 };

typedef struct heft_map_rule {
    uint32_t line;
    uint32_t first_pattern[2]; /* left and right */
    uint8_t patterns[2];
    uint8_t slots[2];
    uint8_t depth; /* 0: of the map itself, more: of a map that it uses */
    bool is_replaced;
    bool is_forward_only; /* "=>": not a rule of the inverse */
    bool is_negated;      /* "unless" */
    heft_str condition;   /* an expression; the rule exists if it is known and not 0 */
    uint32_t first_op, ops;
} heft_map_rule;

typedef struct heft_map_let { /* a number, by alternatives: "hidden_size / heads | 64" */
    heft_str name, text;
    uint32_t line;
} heft_map_let;

typedef struct heft_map_condition {
    heft_str expression; /* empty: it always holds */
    bool is_negated;
} heft_map_condition;

typedef enum heft_map_mention_kind {
    HEFT_MAP_DROP,    /* the map leaves such tensors out */
    HEFT_MAP_REQUIRE, /* an input without one is refused */
    HEFT_MAP_EXPECT   /* an input without one is reported */
} heft_map_mention_kind;

typedef struct heft_map_mention {
    uint32_t pattern, line;
    heft_map_mention_kind kind;
    heft_map_condition condition; /* of HEFT_MAP_EXPECT */
    uint8_t side;                 /* of the input: 0 left, 1 right */
} heft_map_mention;

/* "tie A B": a result that has both with the same content has A alone.  "untie A B": an input
 * without B has A in its place, too. */
typedef struct heft_map_tie {
    heft_str first, second;
    heft_map_condition condition;
    uint32_t line;
    uint8_t side; /* 0: both names are of the left side, 1: of the right */
    bool is_untie;
} heft_map_tie;
enum { HEFT_MAP_TIES = 16 };

struct heft_map {
    const heft_host *host;
    heft_memory mem;
    heft_arena arena;
    heft_map_info info;
    heft_vec tokens, patterns, ops, args, rules, lets, mentions, ties;
    bool has_f32_vectors; /* 16-bit vectors of the left side become f32 */
    bool keeps_others;    /* tensors that no rule matches keep their names */
};

#define HEFT_MAP_AT(m, column, type, i) ((const type *)(m)->column.ptr + (i))

/* ---- names, map_names.c ---- */

typedef struct heft_map_captures {
    uint32_t number[HEFT_MAP_CAPTURES];
    heft_str rest;
} heft_map_captures;

/* Return true if the name matches, and set the captures of the pattern. */
bool heft_map_matches(const heft_map *m, uint32_t pattern, heft_str name, heft_map_captures *c);
/* Return the name that the pattern gives; ptr NULL: out of memory. */
heft_str heft_map_name(const heft_map *m, uint32_t pattern, const heft_map_captures *c,
                       heft_arena *a);

/* ---- numbers, map_numbers.c ---- */

/* The numbers that the rules of a map have for a model. */
typedef struct heft_map_numbers {
    const heft_map *m;
    const heft_settings *config;
    const heft_index *x;
    heft_str architecture;
    heft_vec lets; /* heft_map_number */
    heft_memory mem;
    heft_error *err;
} heft_map_numbers;

typedef struct heft_map_number {
    uint64_t value;
    bool is_known;
} heft_map_number;

heft_status heft_map_numbers_begin(heft_map_numbers *n);
void heft_map_numbers_end(heft_map_numbers *n);
/* Evaluate alternatives "A | B" of sums and products of numbers and names. */
heft_map_number heft_map_evaluate(const heft_map_numbers *n, heft_str text);
/* Return true if the condition of a statement holds for the model. */
bool heft_map_holds(const heft_map_numbers *n, const heft_map_condition *c);

/* ---- operations, map_operations.c ---- */

typedef enum heft_map_kind {
    HEFT_MAP_FOLD,         /* dimension D becomes two: N times the rest, or the rest times N */
    HEFT_MAP_MERGE,        /* dimensions D and D + 1 become one */
    HEFT_MAP_SWAP,         /* exchange two dimensions */
    HEFT_MAP_SWAP_NUMBERS, /* exchange them, except of tensors in blocks */
    HEFT_MAP_STACK,        /* values by a captured number become one, along a new dimension */
    HEFT_MAP_UNSTACK,      /* the reverse */
    HEFT_MAP_JOIN,         /* all values become one, along a new dimension */
    HEFT_MAP_TAKE,         /* the reverse */
    HEFT_MAP_CONCAT,       /* all values become one, along dimension D */
    HEFT_MAP_SPLIT,        /* the reverse */
    HEFT_MAP_RESIZE,       /* dimension D has another size: rows are cut off, or are 0 */
    HEFT_MAP_ADD,          /* add a constant */
    HEFT_MAP_F32,          /* store as f32 */
    HEFT_MAP_KINDS
} heft_map_kind;

typedef struct heft_map_op_row {
    const char *name;
    uint8_t inverse;         /* the kind of the inverse */
    uint8_t fewest, most;    /* arguments, without the capture */
    bool has_capture;        /* the first argument names a capture */
    bool makes_one, is_many; /* the operation joins all values, or makes several of one */
} heft_map_op_row;
extern const heft_map_op_row heft_map_op_rows[HEFT_MAP_KINDS];

/* Several operations under one name; # is an argument, # + 1 the dimension after it. */
typedef struct heft_map_macro {
    const char *name, *text;
} heft_map_macro;
extern const heft_map_macro heft_map_macros[];

/* ---- values, map_value.c ---- */

enum { HEFT_MAP_RANK = 6, HEFT_MAP_AXES = 8 };

typedef struct heft_map_axis {
    uint64_t count;  /* steps */
    uint64_t step;   /* in the value, along dimension dim; later in its elements */
    uint64_t stride; /* in the input, in elements */
    uint8_t dim;
} heft_map_axis;

/* A box of a value, whose elements are in an input. */
typedef struct heft_map_piece {
    uint64_t start[HEFT_MAP_RANK];
    uint64_t first; /* element of the input */
    uint32_t part;
    uint32_t axes;
    heft_map_axis axis[HEFT_MAP_AXES];
} heft_map_piece;

typedef struct heft_map_value {
    uint64_t dims[HEFT_MAP_RANK];
    uint32_t rank;
    uint32_t first, pieces; /* in heft_map_work.pieces */
    heft_dtype dtype;
    heft_dtype as;  /* element type of the result */
    int64_t added;  /* constant that is added to each element */
    uint32_t index; /* the captured number of an unstacked value */
} heft_map_value;

/* The values of a rule, while its operations are applied. */
typedef struct heft_map_work {
    heft_memory *mem;
    heft_vec pieces, values, next; /* values: heft_map_value */
    heft_str name;                 /* name of an input, for errors */
    uint32_t line;
    heft_error *err;
} heft_map_work;

/* Append the value of a tensor. */
heft_status heft_map_add_input(heft_map_work *w, const heft_file *f, uint32_t tensor);
/* Apply an operation to all values; `args` are its numbers, HEFT_NOWHERE for "_".  `count` is the
 * number of values that a split or a take gives, 0 if its arguments say it. */
heft_status heft_map_operate(heft_map_work *w, heft_map_kind kind, uint32_t only,
                             const uint64_t *args, uint32_t arg_count, uint32_t count);
/* Add the values [from, from + count) along a new dimension. */
heft_status heft_map_stack(heft_map_work *w, uint64_t dim, uint32_t from, uint32_t count,
                           heft_map_value *out);

/* ---- the source, map_source.c ---- */

/* A tensor that is gathered; its numbers are in heft_map_gather.numbers. */
typedef struct heft_map_box { /* part of the result */
    uint64_t begin, end;      /* its span in the result, in units */
    uint64_t reach;           /* highest end of this box and those before it */
    uint64_t first;           /* unit of the input */
    uint32_t part;
    uint32_t numbers;    /* for each axis its count, then its stride, then its step in the result */
    uint8_t axes, inner; /* the last `inner` axes fill consecutive units */
} heft_map_box;

typedef struct heft_map_result {
    uint64_t start, bytes; /* in the source */
    uint32_t first_box, boxes;
    heft_dtype dtype, as;
    bool has_gaps; /* elements in no box are 0 */
    uint8_t unit;  /* bytes that are gathered together */
    int32_t added;
    const float *memory; /* all numbers, in place of boxes; or NULL */
} heft_map_result;

typedef struct heft_map_gather {
    const heft_file *f;
    heft_memory mem;
    heft_vec results, boxes, numbers;
} heft_map_gather;

/* Append a result with the elements of a value. */
heft_status heft_map_add_result(heft_map_gather *g, const heft_map_work *w, const heft_map_value *v,
                                heft_error *err);
/* Append a vector of f32 in memory, which must outlive the source. */
heft_status heft_map_add_vector(heft_map_gather *g, const float *values, uint32_t count,
                                heft_error *err);
void heft_map_gather_free(heft_map_gather *g);
/* Make a source of all results, one after the other, which takes the columns of g. */
heft_status heft_map_source(heft_source **out, heft_map_gather *g, heft_error *err);

/* The text that Meson has made of share/heft/maps; each ends with a NUL. */
extern const char *const heft_map_texts[];

#endif
