/* crc_tables.h - written by tools/gen_crc_tables.py; included by crc.c only. */
#ifndef HEFT_CRC_TABLES_H
#define HEFT_CRC_TABLES_H
#include <stdint.h>

enum { CRC_SLICES = 8 };

/* clang-format off */

/* Entries of a table, given the entries of the bits of a byte, bit 0 first. */
#define CRC_1(i, a, b, c, d, e, f, g, h) \
    (((i) & 1 ? (a) : 0) ^ ((i) & 2 ? (b) : 0) ^ ((i) & 4 ? (c) : 0) ^ \
     ((i) & 8 ? (d) : 0) ^ ((i) & 16 ? (e) : 0) ^ ((i) & 32 ? (f) : 0) ^ \
     ((i) & 64 ? (g) : 0) ^ ((i) & 128 ? (h) : 0))
#define CRC_4(i, ...)  CRC_1(i, __VA_ARGS__), CRC_1((i) + 1, __VA_ARGS__), \
                       CRC_1((i) + 2, __VA_ARGS__), CRC_1((i) + 3, __VA_ARGS__)
#define CRC_16(i, ...) CRC_4(i, __VA_ARGS__), CRC_4((i) + 4, __VA_ARGS__), \
                       CRC_4((i) + 8, __VA_ARGS__), CRC_4((i) + 12, __VA_ARGS__)
#define CRC_64(i, ...) CRC_16(i, __VA_ARGS__), CRC_16((i) + 16, __VA_ARGS__), \
                       CRC_16((i) + 32, __VA_ARGS__), CRC_16((i) + 48, __VA_ARGS__)
#define CRC_TABLE(...) { CRC_64(0, __VA_ARGS__), CRC_64(64, __VA_ARGS__), \
                         CRC_64(128, __VA_ARGS__), CRC_64(192, __VA_ARGS__) }

static const uint32_t ieee_halves[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};
static const uint32_t ieee_tables[CRC_SLICES][256] = {
    CRC_TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832,
              0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
    CRC_TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08,
              0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
    CRC_TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8,
              0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
    CRC_TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef,
              0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
    CRC_TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1,
              0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
    CRC_TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d,
              0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
    CRC_TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67,
              0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
    CRC_TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5,
              0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
};
static const uint32_t castagnoli_halves[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};
static const uint32_t castagnoli_tables[CRC_SLICES][256] = {
    CRC_TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf,
              0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    CRC_TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8,
              0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    CRC_TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5,
              0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    CRC_TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6,
              0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    CRC_TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91,
              0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    CRC_TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f,
              0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    CRC_TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53,
              0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    CRC_TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da,
              0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};
/* clang-format on */

#endif
