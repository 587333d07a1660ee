/* web_crc_tables.c - the tables of src/base/crc.c, computed when a model is opened: as constants
 * they would be a tenth of the compressed module. */
#include "heft_web.h"

enum { SLICES = 8, ENTRIES = 256 };

uint32_t ieee_tables[SLICES][ENTRIES], castagnoli_tables[SLICES][ENTRIES];

static void fill_table(uint32_t tables[SLICES][ENTRIES], uint32_t polynomial)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint32_t crc = i;
        for (uint32_t bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        tables[0][i] = crc;
    }
    for (uint32_t s = 1; s < SLICES; s++)
        for (uint32_t i = 0; i < ENTRIES; i++)
            tables[s][i] = tables[s - 1][i] >> 8 ^ tables[0][tables[s - 1][i] & 0xFF];
}

void web_crc_tables(void)
{
    if (ieee_tables[0][1])
        return;
    fill_table(ieee_tables, 0xEDB88320);
    fill_table(castagnoli_tables, 0x82F63B78);
}
