/* test_boxes.c - assembled tensors: whether random boxes tile a tensor, counted element by element,
 * and reads of random tilings, compared with elements that a loop has gathered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/shards/assembly.h"
#include "random_file.h"

enum { MAX_RANK = 4, MAX_BOXES = 64, TENSORS = 3 };

/* ---- tilings ---- */

typedef struct tiling {
    uint64_t dims[MAX_RANK], elements;
    uint64_t offsets[MAX_BOXES][MAX_RANK], sizes[MAX_BOXES][MAX_RANK];
    uint32_t rank, count;
} tiling;

/* Cut random boxes along random dimensions. */
static void make_tiling(tiling *t, uint32_t rank, uint32_t cuts, uint32_t most)
{
    *t = (tiling){ .rank = rank, .count = 1, .elements = 1 };
    for (uint32_t i = 0; i < rank; i++) {
        t->sizes[0][i] = t->dims[i] = 1 + random_below(most);
        t->elements *= t->dims[i];
    }
    for (uint32_t i = 0; i < cuts && rank && t->count < MAX_BOXES; i++) {
        uint32_t box = random_below(t->count), axis = random_below(rank), next = t->count;
        if (t->sizes[box][axis] < 2)
            continue;
        uint64_t kept = 1 + random_below((uint32_t)t->sizes[box][axis] - 1);
        memcpy(t->offsets[next], t->offsets[box], sizeof t->offsets[box]);
        memcpy(t->sizes[next], t->sizes[box], sizeof t->sizes[box]);
        t->offsets[next][axis] += kept;
        t->sizes[next][axis] -= kept;
        t->sizes[box][axis] = kept;
        t->count++;
    }
}

/* Return the indices of an element as one number for each dimension. */
static void indices_of(const tiling *t, uint64_t element, uint64_t *indices)
{
    for (uint32_t i = t->rank; i--; element /= t->dims[i])
        indices[i] = element % t->dims[i];
}

/* Return how many boxes have the element; *number: its number in the last of them. */
static uint32_t boxes_with(const tiling *t, uint64_t element, uint32_t *box, uint64_t *number)
{
    uint64_t indices[MAX_RANK] = { 0 };
    uint32_t found = 0;
    indices_of(t, element, indices);
    for (uint32_t b = 0; b < t->count; b++) {
        bool has = true;
        uint64_t at = 0;
        for (uint32_t i = 0; i < t->rank; i++) {
            has = has && indices[i] >= t->offsets[b][i] &&
                  indices[i] < t->offsets[b][i] + t->sizes[b][i];
            at = at * t->sizes[b][i] + indices[i] - t->offsets[b][i];
        }
        if (has) {
            *box = b;
            *number = at;
        }
        found += has;
    }
    return found;
}

/* ---- whether boxes tile ---- */

static heft_boxes boxes_of(const tiling *t, uint64_t *numbers)
{
    for (uint32_t b = 0; b < t->count; b++)
        for (uint32_t i = 0; i < t->rank; i++) {
            numbers[2 * t->rank * b + i] = t->offsets[b][i];
            numbers[2 * t->rank * b + t->rank + i] = t->sizes[b][i];
        }
    return (heft_boxes){ .dims = t->dims, .rank = t->rank, .count = t->count, .numbers = numbers };
}

/* Move one box or change its size, within the tensor. */
static void disturb(tiling *t)
{
    uint32_t box = random_below(t->count), axis = random_below(t->rank);
    t->offsets[box][axis] = random_below((uint32_t)t->dims[axis] + 1);
    t->sizes[box][axis] = random_below((uint32_t)(t->dims[axis] - t->offsets[box][axis]) + 1);
}

static void finds_the_first_element_that_is_not_in_one_box(void **state)
{
    heft_memory m = { heft_host_default()->allocator, UINT64_MAX, 0 };
    (void)state;
    for (uint32_t round = 0; round < 4000; round++) {
        tiling t;
        heft_box_fault fault;
        uint64_t numbers[2 * MAX_RANK * MAX_BOXES], at = 0, ignored;
        uint32_t count = 1, box;
        make_tiling(&t, 1 + round % MAX_RANK, random_below(12), 6);
        for (uint32_t i = 0; i < round % 3; i++)
            disturb(&t);
        heft_boxes b = boxes_of(&t, numbers);
        assert_int_equal(heft_boxes_check(&fault, &b, &m), HEFT_OK);
        while (at < t.elements && (count = boxes_with(&t, at, &box, &ignored)) == 1)
            at++;
        if (at == t.elements) {
            assert_int_equal(fault.kind, HEFT_BOXES_TILE);
            continue;
        }
        assert_int_equal(fault.kind, count ? HEFT_BOXES_OVERLAP : HEFT_BOXES_GAP);
        assert_int_equal(fault.element, at);
        if (count)
            assert_int_not_equal(fault.first, fault.second);
    }
    assert_int_equal(m.used, 0);
}

static void many_boxes_take_no_quadratic_time(void **state)
{
    enum { SIDE = 512 }; /* 262,144 boxes: a comparison of each pair takes minutes */
    heft_memory m = { heft_host_default()->allocator, UINT64_MAX, 0 };
    uint64_t *numbers = malloc(4 * SIDE * SIDE * sizeof *numbers), dims[2] = { SIDE, 2 * SIDE };
    heft_box_fault fault;
    (void)state;
    assert_non_null(numbers);
    for (uint64_t i = 0; i < SIDE * SIDE; i++) {
        uint64_t row = i / SIDE, column = i % SIDE * 2;
        memcpy(numbers + 4 * i, (uint64_t[4]){ row, column, 1, 2 }, 4 * sizeof *numbers);
    }
    heft_boxes b = { .dims = dims, .rank = 2, .count = SIDE * SIDE, .numbers = numbers };
    assert_int_equal(heft_boxes_check(&fault, &b, &m), HEFT_OK);
    assert_int_equal(fault.kind, HEFT_BOXES_TILE);
    numbers[4 * 70000 + 3] = 1;
    assert_int_equal(heft_boxes_check(&fault, &b, &m), HEFT_OK);
    assert_int_equal(fault.kind, HEFT_BOXES_GAP);
    assert_int_equal(fault.element, 2 * 70000 + 1);
    free(numbers);
}

static void dimensions_that_are_not_cut_cost_little(void **state)
{
    enum { RANK = 60000, BOXES = 8, CUT = 17 }; /* the square of RANK takes seconds for each box */
    heft_memory m = { heft_host_default()->allocator, UINT64_MAX, 0 };
    uint64_t *dims = malloc(RANK * sizeof *dims);
    uint64_t *numbers = calloc((size_t)2 * RANK * BOXES, sizeof *numbers);
    heft_box_fault fault;
    (void)state;
    assert_true(dims && numbers);
    for (uint32_t i = 0; i < RANK; i++)
        dims[i] = i == RANK / 2 ? BOXES : 1;
    for (uint32_t box = 0; box < BOXES; box++) {
        uint64_t *offsets = numbers + (size_t)2 * RANK * box, *sizes = offsets + RANK;
        for (uint32_t i = 0; i < RANK; i++)
            sizes[i] = 1;
        offsets[RANK / 2] = box;
    }
    heft_boxes b = { .dims = dims, .rank = RANK, .count = BOXES, .numbers = numbers };
    assert_int_equal(heft_boxes_check(&fault, &b, &m), HEFT_OK);
    assert_int_equal(fault.kind, HEFT_BOXES_TILE);
    numbers[RANK / 2] = 1;
    assert_int_equal(heft_boxes_check(&fault, &b, &m), HEFT_OK);
    assert_int_equal(fault.kind, HEFT_BOXES_GAP);
    assert_int_equal(fault.element, 0);
    for (uint32_t i = 0; i < CUT; i++)
        dims[7 * i] = 2;
    assert_int_equal(heft_boxes_check(&fault, &b, &m), HEFT_E_LIMIT);
    free(dims);
    free(numbers);
}

static void writes_indices(void **state)
{
    static const uint64_t dims[] = { 3, 4, 5, 2, 2, 2, 2, 2 };
    char buf[HEFT_INDICES_TEXT];
    (void)state;
    heft_str s = heft_element_indices(buf, dims, 3, 59);
    assert_true(s.len == 9 && !memcmp(s.ptr, "[2, 3, 4]", 9));
    s = heft_element_indices(buf, dims, 0, 0);
    assert_true(s.len == 2 && !memcmp(s.ptr, "[]", 2));
    s = heft_element_indices(buf, dims, 8, 0);
    assert_true(s.len < sizeof buf && s.ptr[s.len - 1] == ']');
}

/* ---- reading ---- */

/* Add an assembled tensor whose boxes are stored at random offsets, and gather its bytes. */
static void add_tensor(random_file *t, const char *name, const tiling *shape, bool is_flat,
                       const tiling *boxes, uint32_t size, uint8_t *expected)
{
    static const heft_dtype types[] = { 0, HEFT_U8, HEFT_F16, 0, HEFT_F32, 0, 0, 0, HEFT_F64 };
    heft_index *x = &t->f.x;
    uint64_t *dims, at[MAX_BOXES];
    uint32_t id, box = 0;
    uint64_t number = 0;
    assert_int_equal(
        heft_ix_tensor(x, (heft_str){ name, strlen(name) }, types[size], shape->rank, &dims, &id),
        HEFT_OK);
    for (uint32_t i = 0; i < shape->rank; i++)
        dims[i] = shape->dims[i];
    assert_int_equal(heft_ix_assembled_begin(x, id, is_flat), HEFT_OK);
    for (uint32_t b = 0; b < boxes->count; b++) {
        heft_ix_box row = { .length = size };
        for (uint32_t i = 0; i < boxes->rank; i++)
            row.length *= boxes->sizes[b][i];
        row.offset = at[b] = random_below((uint32_t)(STORAGE - row.length) + 1);
        assert_int_equal(heft_ix_box_add(x, 0, row, boxes->offsets[b], boxes->sizes[b]), HEFT_OK);
    }
    assert_int_equal(heft_ix_assembled_end(x, 0), HEFT_OK);
    for (uint64_t i = 0; i < boxes->elements; i++) {
        assert_int_equal(boxes_with(boxes, i, &box, &number), 1);
        memcpy(expected + i * size, t->bytes + at[box] + number * size, size);
    }
}

static void read_ranges(random_file *t, uint32_t tensor, const uint8_t *expected, uint64_t bytes)
{
    uint8_t *buf = malloc(bytes);
    assert_non_null(buf);
    for (uint32_t i = 0; i < 24; i++) {
        uint64_t from = i ? random_below((uint32_t)bytes) : 0;
        uint64_t len = i ? random_below((uint32_t)(bytes - from) + 1) : bytes;
        t->bytes_read = 0;
        heft_status st = heft_part_read(buf, &t->f, tensor, from, (size_t)len, &t->err);
        assert_int_equal(st, HEFT_OK);
        assert_memory_equal(buf, expected + from, len);
        assert_int_equal(t->bytes_read, len); /* no box is read that has no element */
    }
    free(buf);
}

static void reads_random_tilings(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 4, 8 };
    (void)state;
    for (uint32_t round = 0; round < 120; round++) {
        random_file *t = open_random_file(false);
        uint8_t *expected[TENSORS];
        uint64_t bytes[TENSORS];
        for (uint32_t i = 0; i < TENSORS; i++) {
            tiling shape;
            uint32_t size = sizes[random_below(4)], rank = (round + i) % (MAX_RANK + 1);
            make_tiling(&shape, rank, random_below(20), rank == 2 ? 120 : 9);
            bytes[i] = shape.elements * size;
            expected[i] = malloc(bytes[i]);
            assert_non_null(expected[i]);
            add_tensor(t, i ? i > 1 ? "c" : "b" : "a", &shape, false, &shape, size, expected[i]);
        }
        assert_int_equal(heft_assembly_add(&t->f, &t->err), HEFT_OK);
        for (uint32_t i = 0; i < TENSORS; i++) {
            read_ranges(t, i, expected[i], bytes[i]);
            free(expected[i]);
        }
        close_random_file(t);
    }
}

static void reads_ranges_of_a_flat_tensor(void **state)
{
    random_file *t = open_random_file(false);
    tiling shape = { .dims = { 30, 40, 5 }, .rank = 3, .elements = 6000, .count = 1 }, flat;
    uint8_t expected[4 * 6000];
    (void)state;
    do
        make_tiling(&flat, 1, 10, 6000);
    while (flat.count < 4);
    flat.sizes[0][0] += 6000 - flat.dims[0]; /* the first box stays the first */
    for (uint32_t b = 1; b < flat.count; b++)
        flat.offsets[b][0] += 6000 - flat.dims[0];
    flat.dims[0] = flat.elements = 6000;
    add_tensor(t, "a", &shape, true, &flat, 4, expected);
    assert_int_equal(heft_assembly_add(&t->f, &t->err), HEFT_OK);
    read_ranges(t, 0, expected, sizeof expected);
    close_random_file(t);
}

/* ---- refusals ---- */

static void refuses_boxes(void **state)
{
    static const struct {
        uint64_t boxes[3][4], lengths[3]; /* row, column, rows, columns; bytes */
        heft_status at_box, at_end;
        const char *words;
    } rows[] = {
        { { { 0, 0, 2, 3 }, { 2, 0, 2, 3 } }, { 24, 24 }, HEFT_OK, HEFT_OK, "" },
        { { { 0, 0, 2, 3 } },
          { 24 },
          HEFT_OK,
          HEFT_E_FORMAT,
          "none of its 1 pieces has element "
          "[2, 0]" },
        { { { 0, 0, 3, 3 }, { 2, 0, 2, 3 } },
          { 36, 24 },
          HEFT_OK,
          HEFT_E_FORMAT,
          "two pieces have element [2, 0], one in 'this file' at offset 0 and one in 'this file' "
          "at offset 100" },
        { { { 3, 0, 2, 3 } },
          { 24 },
          HEFT_E_FORMAT,
          HEFT_OK,
          "2 elements from 3 on of dimension 0, "
          "whose size is 4" },
        { { { UINT64_MAX, 0, 2, 3 } }, { 24 }, HEFT_E_FORMAT, HEFT_OK, "of dimension 0" },
        { { { 0, 0, 4, 3 } }, { 47 }, HEFT_E_FORMAT, HEFT_OK, "has 47 bytes, its shape as f32" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        random_file *t = open_random_file(false);
        uint64_t *dims;
        uint32_t id;
        heft_status st = heft_ix_tensor(&t->f.x, (heft_str){ "t", 1 }, HEFT_F32, 2, &dims, &id);
        assert_int_equal(st, HEFT_OK);
        dims[0] = 4;
        dims[1] = 3;
        assert_int_equal(heft_ix_assembled_begin(&t->f.x, id, false), HEFT_OK);
        for (uint32_t b = 0; b < 3 && rows[i].lengths[b] && !st; b++) {
            heft_ix_box box = { .offset = b * 100, .length = rows[i].lengths[b] };
            st = heft_ix_box_add(&t->f.x, 7, box, rows[i].boxes[b], rows[i].boxes[b] + 2);
        }
        assert_int_equal(st, rows[i].at_box);
        if (!st)
            st = heft_ix_assembled_end(&t->f.x, 7);
        assert_int_equal(st, rows[i].at_box ? rows[i].at_box : rows[i].at_end);
        if (st && !strstr(t->err.message, rows[i].words))
            fail_msg("\"%s\" without \"%s\"", t->err.message, rows[i].words);
        close_random_file(t);
    }
}

static void refuses_a_box_past_the_end_of_the_file(void **state)
{
    random_file *t = open_random_file(false);
    uint64_t *dims, offset = 0, size = 4;
    uint32_t id;
    (void)state;
    assert_int_equal(heft_ix_tensor(&t->f.x, (heft_str){ "t", 1 }, HEFT_F32, 1, &dims, &id),
                     HEFT_OK);
    dims[0] = 4;
    assert_int_equal(heft_ix_assembled_begin(&t->f.x, id, true), HEFT_OK);
    heft_ix_box box = { .offset = STORAGE - 8, .length = 16 };
    assert_int_equal(heft_ix_box_add(&t->f.x, 7, box, &offset, &size), HEFT_E_FORMAT);
    assert_non_null(strstr(t->err.message, "pass the end of the file"));
    close_random_file(t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_element_that_is_not_in_one_box),
        cmocka_unit_test(many_boxes_take_no_quadratic_time),
        cmocka_unit_test(dimensions_that_are_not_cut_cost_little),
        cmocka_unit_test(writes_indices),
        cmocka_unit_test(reads_random_tilings),
        cmocka_unit_test(reads_ranges_of_a_flat_tensor),
        cmocka_unit_test(refuses_boxes),
        cmocka_unit_test(refuses_a_box_past_the_end_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
