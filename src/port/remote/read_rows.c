/* read_rows.c - which reads of a file on a server follow one another.
 *
 * Threads that read a file together read a part each, so that their reads form several rows.  The
 * bytes after a row are requested ahead, up to the beginning of another row. */
#include "port/remote/source_url.h"

enum { GAP = 1 << 20 };   /* reads so far from the end of a row still continue the row */
enum { NEAR = 64 << 10 }; /* bytes between reads that cost less than another request */
enum { SHORTEST = 512 << 10, LONG = 16 << 20 }; /* bytes of a request, and of a long row */
enum { RECENT = 1024 }; /* a row has ended if so many reads do not continue it */

static bool is_active(const url_source *u, const url_row *r)
{
    return r->used && u->clock - r->used <= RECENT;
}

url_row *heft_url_row_near(url_source *u, uint64_t offset)
{
    url_row *nearest = NULL;
    uint64_t least = UINT64_MAX;
    for (url_row *r = u->rows; r < u->rows + URL_ROWS; r++) {
        uint64_t distance = offset > r->expected ? offset - r->expected : r->expected - offset;
        if (!r->used || distance > GAP + r->ahead || distance >= least)
            continue;
        nearest = r;
        least = distance;
    }
    return nearest;
}

/* Return where the first row at or after the offset begins, leaving out one row. */
static uint64_t next_row_but(const url_source *u, uint64_t offset, const url_row *left_out)
{
    uint64_t begin = u->base.size;
    for (size_t i = 0; i < URL_ROWS; i++) {
        const url_row *r = &u->rows[i];
        if (r != left_out && is_active(u, r) && r->first >= offset && r->first < begin)
            begin = r->first;
    }
    return begin;
}

uint64_t heft_url_next_row(const url_source *u, uint64_t offset)
{
    return next_row_but(u, offset, NULL);
}

uint64_t heft_url_row_end(const url_source *u, const url_row *row)
{
    uint64_t end = row->expected + row->ahead, next = next_row_but(u, row->expected, row);
    return next < end ? next : end;
}

/* Return true if the request is for bytes near the end of the row. */
static bool is_in_row(const url_source *u, const url_row *r, const heft_request *b)
{
    return b->offset < heft_url_row_end(u, r) && b->offset + b->length + r->ahead > r->expected;
}

/* Return true if the request is for bytes of a row, leaving out one row. */
static bool is_in_rows_but(const url_source *u, const heft_request *b, const url_row *left_out)
{
    for (size_t i = 0; i < URL_ROWS; i++) {
        const url_row *r = &u->rows[i];
        if (r != left_out && is_active(u, r) && is_in_row(u, r, b))
            return true;
    }
    return false;
}

bool heft_url_is_in_rows(const url_source *u, const heft_request *b)
{
    return is_in_rows_but(u, b, NULL);
}

uint64_t heft_url_rows_end(const url_source *u)
{
    uint64_t end = 0;
    for (const url_row *r = u->rows; r < u->rows + URL_ROWS; r++)
        end = r->used && r->expected > end ? r->expected : end;
    return end;
}

/* End a row: cancel its requests that no thread waits for and no other row needs. */
static void end_row(url_source *u, url_row *row)
{
    for (block *b = u->blocks; b; b = b->next)
        if (b->request.state != HEFT_REQUEST_DONE && !b->readers &&
            is_in_row(u, row, &b->request) && !is_in_rows_but(u, &b->request, row))
            heft_session_cancel(u->session, &b->request);
    row->ahead = 0;
}

static url_row *new_row(url_source *u, uint64_t offset)
{
    url_row *oldest = u->rows;
    for (url_row *r = u->rows; r < u->rows + URL_ROWS; r++)
        oldest = r->used < oldest->used ? r : oldest;
    *oldest = (url_row){
        .thread = pthread_self(), .first = offset, .expected = offset, .used = ++u->clock
    };
    return oldest;
}

url_row *heft_url_begin_row(url_source *u, uint64_t offset)
{
    for (url_row *r = u->rows; r < u->rows + URL_ROWS; r++)
        if (r->ahead && !r->until && pthread_equal(r->thread, pthread_self()))
            end_row(u, r);
    return new_row(u, offset);
}

/* Return how many bytes to request ahead of a row: what was announced; otherwise more with each
 * byte that was read, at most `most` for all rows together. */
static uint64_t bytes_ahead(const url_source *u, const url_row *row, uint64_t most)
{
    uint64_t others = 0, grown = row->bytes * 2;
    for (const url_row *r = u->rows; r < u->rows + URL_ROWS; r++)
        others += r != row && r->ahead && is_active(u, r);
    most /= others + 1;
    grown = grown > HEFT_URL_BLOCK ? grown : HEFT_URL_BLOCK;
    uint64_t ahead = row->until > row->expected   ? row->until - row->expected
                     : row->bytes > HEFT_URL_HEAD ? grown
                                                  : 0;
    return ahead < most ? ahead : most;
}

/* Return the row that is announced up to the offset, or whose last read was in the range or just
 * before it; or NULL. */
static url_row *row_to_continue(url_source *u, uint64_t offset, uint64_t end)
{
    for (url_row *r = u->rows; r < u->rows + URL_ROWS; r++) {
        uint64_t at = r->until > r->expected ? r->until : r->expected;
        if (r->used && at + NEAR >= offset && at < end)
            return r;
    }
    return NULL;
}

url_row *heft_url_announce(url_source *u, uint64_t offset, uint64_t end, uint64_t most)
{
    url_row *row = row_to_continue(u, offset, end);
    row = row ? row : new_row(u, offset);
    row->used = ++u->clock;
    row->until = end;
    row->ahead = bytes_ahead(u, row, most);
    return row;
}

bool heft_url_is_in_long_row(const url_source *u, uint64_t offset)
{
    for (const url_row *r = u->rows; r < u->rows + URL_ROWS; r++)
        if (r->used && r->expected <= offset && offset < r->until && r->until - r->expected > LONG)
            return true;
    return false;
}

uint64_t heft_url_next_length(const url_source *u, uint64_t offset)
{
    uint64_t all = heft_session_options(u->session)->connections,
             pending = heft_session_pending(u->session) + 1;
    if (!heft_url_is_in_long_row(u, offset) || pending >= all)
        return HEFT_URL_BLOCK;
    uint64_t length = HEFT_URL_BLOCK / all * pending;
    return length > SHORTEST ? length : SHORTEST;
}

void heft_url_lead(url_source *u, uint64_t offset, uint64_t ahead)
{
    url_row *row = heft_url_row_near(u, offset);
    row = row ? row : heft_url_begin_row(u, offset);
    row->used = ++u->clock;
    row->expected = offset;
    row->ahead = ahead;
}

void heft_url_follow(url_source *u, uint64_t offset, size_t len, uint64_t most)
{
    url_row *row = heft_url_row_near(u, offset);
    uint64_t end = offset + len;
    if (!row) {
        heft_url_begin_row(u, offset)->expected = end;
        return;
    }
    row->thread = pthread_self();
    row->used = ++u->clock;
    if (end <= row->expected)
        return;
    if (offset > row->expected + GAP) /* the bytes between the reads are not of this row */
        row->first = offset;
    uint64_t skipped = offset > row->expected + NEAR ? offset - row->expected : 0;
    row->bytes -= skipped < row->bytes ? skipped : row->bytes;
    row->bytes += skipped ? len : end - row->expected;
    row->expected = end;
    if (row->until && row->until <= end) { /* the bytes after it were not announced */
        row->until = 0;
        row->bytes = 0;
    }
    row->ahead = bytes_ahead(u, row, most);
}
