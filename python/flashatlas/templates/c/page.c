/*
 * Page mapping as firmware in C: an L2P table in DRAM, a frontier for the host and one for
 * collection in each lane, greedy collection, and a mount that reads every spare area.
 *
 *     cc -O2 -shared -fPIC -I "$(flashatlas plugin-header)" -o page.so page.c
 *     flashatlas run -d tiny --plugin ./page.so --set ftl.scheme=page-c -w uniform:requests=20k
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include <flashatlas_plugin.h>
#include <stddef.h>

#define NONE 0xFFFFFFFFu

/* Number of blocks of a lane without data: two frontiers and two free blocks. Collection may fill
 * one free block before it frees a victim, and a power failure may tear a page of the other. */
#define RESERVE 4u


enum { HOST, COLLECTION, FRONTIERS };

typedef struct {
    uint32_t block; /* NONE: no block is open */
    uint32_t next;  /* next page of the block */
} frontier;

typedef struct {
    frontier open[FRONTIERS];
    uint32_t free_count;
    uint32_t *free;  /* a stack */
    uint32_t *heads; /* closed blocks by valid pages: the first of each list */
    uint32_t least;  /* no list below this one has a block */
} lane;

typedef struct {
    fa_shape shape;
    uint32_t lanes, low_water, cursor;
    uint32_t *l2p, *p2l; /* physical page of each logical page, and the reverse */
    uint32_t *valid;     /* valid pages of each block */
    uint32_t *next, *prev; /* the lists of `heads` */
    uint8_t *closed;
    lane *lane;
} page_ftl;

static lane *lane_of(page_ftl *ftl, uint32_t block) {
    return &ftl->lane[block / ftl->shape.blocks_per_lane];
}

static void list(page_ftl *ftl, uint32_t block) {
    lane *in = lane_of(ftl, block);
    uint32_t valid = ftl->valid[block], first = in->heads[valid];
    ftl->prev[block] = NONE;
    ftl->next[block] = first;
    if (first != NONE) ftl->prev[first] = block;
    in->heads[valid] = block;
    if (valid < in->least) in->least = valid;
}

static void unlist(page_ftl *ftl, uint32_t block, uint32_t valid) {
    uint32_t next = ftl->next[block], prev = ftl->prev[block];
    if (next != NONE) ftl->prev[next] = prev;
    if (prev != NONE) ftl->next[prev] = next;
    else lane_of(ftl, block)->heads[valid] = next;
}

static void close_block(page_ftl *ftl, uint32_t block) {
    ftl->closed[block] = 1;
    list(ftl, block);
}

/* Records that a logical page is now in `page`, or that it is unmapped (NONE). */
static void map(page_ftl *ftl, uint32_t lpn, uint32_t page) {
    uint32_t old = ftl->l2p[lpn];
    if (old != NONE) {
        uint32_t block = old / ftl->shape.pages, valid = ftl->valid[block]--;
        ftl->p2l[old] = NONE;
        if (ftl->closed[block]) {
            unlist(ftl, block, valid);
            list(ftl, block);
        }
    }
    ftl->l2p[lpn] = page;
    if (page != NONE) {
        ftl->p2l[page] = lpn;
        ftl->valid[page / ftl->shape.pages]++;
    }
}

/* Returns the next page of a frontier, or NONE if the lane has no free block. */
static uint32_t next_page(page_ftl *ftl, lane *in, int kind) {
    frontier *at = &in->open[kind];
    if (at->block == NONE) {
        if (in->free_count == 0) return NONE;
        at->block = in->free[--in->free_count];
        at->next = 0;
    }
    return at->block * ftl->shape.pages + at->next;
}

/* Records that a page of a frontier was programmed; after a failure, closes the block. */
static void advance(page_ftl *ftl, frontier *at, int failed) {
    if (failed || ++at->next == ftl->shape.pages) {
        close_block(ftl, at->block);
        at->block = NONE;
    }
}

/* Moves a page to the frontier of collection. */
static uint32_t move(page_ftl *ftl, const fa_host *host, lane *in, uint32_t from) {
    for (;;) {
        uint32_t to = next_page(ftl, in, COLLECTION);
        if (to == NONE) return FA_NO_SPACE;
        host->after(host, NULL, 0); /* a copy waits only for its own read */
        uint32_t done = host->copy(host, from, to);
        if (done == FA_OK) map(ftl, ftl->p2l[from], to);
        else if (done != FA_PROGRAM_FAILED) return done;
        advance(ftl, &in->open[COLLECTION], done != FA_OK);
        if (done == FA_OK) return FA_OK;
    }
}

/* Empties the closed block with the fewest valid pages; if all are full, `*victim` is NONE. */
static uint32_t collect(page_ftl *ftl, const fa_host *host, lane *in, uint32_t *victim) {
    while (in->least < ftl->shape.pages && in->heads[in->least] == NONE) in->least++;
    *victim = in->least < ftl->shape.pages ? in->heads[in->least] : NONE;
    if (*victim == NONE) return FA_OK;
    unlist(ftl, *victim, in->least);
    ftl->closed[*victim] = 0;
    uint32_t first = *victim * ftl->shape.pages;
    for (uint32_t page = first; ftl->valid[*victim] > 0; page++) {
        if (ftl->p2l[page] == NONE) continue;
        uint32_t done = move(ftl, host, in, page);
        if (done != FA_OK) return done;
    }
    host->after(host, NULL, 0); /* the erase waits for the copies of its pages */
    uint32_t done = host->erase(host, *victim);
    if (done == FA_OK) in->free[in->free_count++] = *victim;
    return done == FA_ERASE_FAILED ? FA_OK : done; /* a bad block is in no list */
}

/* Makes room for one page of the host; `*page` is NONE if the lane has no room. */
static uint32_t room(page_ftl *ftl, const fa_host *host, lane *in, uint32_t *page) {
    /* a collection frees at least one page, so this number of collections frees a block */
    for (uint32_t i = 0; i <= ftl->shape.pages && in->open[HOST].block == NONE; i++) {
        if (in->free_count >= ftl->low_water) break;
        uint32_t victim, done = collect(ftl, host, in, &victim);
        if (done != FA_OK) return done;
        if (victim == NONE) break;
    }
    int may_open = in->open[HOST].block != NONE || in->free_count > 2;
    *page = may_open ? next_page(ftl, in, HOST) : NONE;
    return FA_OK;
}

static uint32_t page_write(void *of, const fa_host *host, uint32_t lpn, const void *data) {
    page_ftl *ftl = of;
    for (uint32_t tried = 0; tried < ftl->lanes;) {
        lane *in = &ftl->lane[ftl->cursor];
        uint32_t page, done = room(ftl, host, in, &page);
        if (done != FA_OK) return done;
        if (page != NONE) {
            host->after(host, NULL, 0); /* the program waits only for its data */
            done = host->program(host, page, data);
            if (done != FA_OK && done != FA_PROGRAM_FAILED) return done;
            if (done == FA_OK) {
                map(ftl, lpn, page);
                host->access(host, FA_DRAM, 1, 4, true);
            }
            advance(ftl, &in->open[HOST], done != FA_OK);
            if (done != FA_OK) continue; /* try again in another block of this lane */
        }
        ftl->cursor = (ftl->cursor + 1) % ftl->lanes;
        if (page != NONE) return FA_OK;
        tried++;
    }
    return FA_NO_SPACE;
}

static uint32_t page_locate(void *of, const fa_host *host, uint32_t lpn, uint32_t *page) {
    page_ftl *ftl = of;
    host->access(host, FA_DRAM, 1, 4, false);
    *page = ftl->l2p[lpn];
    return FA_OK;
}

static uint32_t page_trim(void *of, const fa_host *host, uint32_t lpn) {
    (void)host;
    map(of, lpn, NONE);
    return FA_OK;
}

static void page_destroy(void *of, const fa_host *host) {
    page_ftl *ftl = of;
    for (uint32_t i = 0; i < ftl->lanes; i++) {
        host->release(host, ftl->lane[i].free);
        host->release(host, ftl->lane[i].heads);
    }
    void *tables[] = {ftl->l2p, ftl->p2l, ftl->valid, ftl->next, ftl->prev, ftl->closed, ftl->lane, ftl};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) host->release(host, tables[i]);
}

static uint32_t *words(const fa_host *host, uint32_t count) {
    uint32_t *table = host->allocate(host, 4 * (uint64_t)count);
    for (uint32_t i = 0; table && i < count; i++) table[i] = NONE;
    return table;
}

/* Finds the newest version of each page by the sequence numbers in the spare areas. */
static uint32_t scan(page_ftl *ftl, const fa_host *host, uint64_t *newest) {
    for (uint32_t block = 0; block < ftl->shape.blocks; block++) {
        if (host->is_bad(host, block)) continue;
        lane *in = lane_of(ftl, block);
        uint32_t written = 0;
        for (uint32_t i = 0; i < ftl->shape.pages; i++) {
            uint32_t page = block * ftl->shape.pages + i;
            fa_spare spare;
            uint32_t done = host->spare(host, page, &spare);
            if (done != FA_OK) return done;
            if (spare.state != FA_ERASED) written = i + 1;
            if (spare.state == FA_DATA && spare.lpn < ftl->shape.logical_pages
                && spare.sequence > newest[spare.lpn]) {
                newest[spare.lpn] = spare.sequence;
                map(ftl, spare.lpn, page);
            }
        }
        if (written == 0) {
            in->free[in->free_count++] = block;
            continue;
        }
        /* continue to fill a half-full block: there may be no other block */
        int kind = in->open[COLLECTION].block == NONE ? COLLECTION : HOST;
        if (written < ftl->shape.pages && in->open[kind].block == NONE)
            in->open[kind] = (frontier){block, written};
        else close_block(ftl, block);
    }
    return FA_OK;
}

static void *page_mount(const fa_host *host, const fa_shape *shape, const fa_value *values) {
    page_ftl *ftl = host->allocate(host, sizeof *ftl);
    if (!ftl) return NULL;
    uint32_t per_lane = shape->blocks_per_lane;
    ftl->shape = *shape;
    ftl->lanes = shape->blocks / per_lane;
    ftl->low_water = (uint32_t)values[0].whole;
    ftl->l2p = words(host, shape->logical_pages);
    ftl->p2l = words(host, shape->blocks * shape->pages);
    ftl->valid = host->allocate(host, 4 * (uint64_t)shape->blocks);
    ftl->next = words(host, shape->blocks);
    ftl->prev = words(host, shape->blocks);
    ftl->closed = host->allocate(host, shape->blocks);
    ftl->lane = host->allocate(host, ftl->lanes * sizeof(lane));
    uint64_t *newest = host->allocate(host, 8 * (uint64_t)shape->logical_pages);
    int there = ftl->l2p && ftl->p2l && ftl->valid && ftl->next && ftl->prev && ftl->closed
        && ftl->lane && newest;
    for (uint32_t i = 0; there && i < ftl->lanes; i++) {
        lane *in = &ftl->lane[i];
        for (int kind = 0; kind < FRONTIERS; kind++) in->open[kind].block = NONE;
        in->free = words(host, per_lane);
        in->heads = words(host, shape->pages + 1);
        there = in->free && in->heads;
    }
    if (!there) {
        host->fail(host, "out of memory");
        return NULL;
    }
    uint32_t done = scan(ftl, host, newest);
    host->release(host, newest);
    if (done == FA_OK) return ftl;
    page_destroy(ftl, host);
    return NULL;
}

static int32_t page_fits(const fa_shape *shape, const fa_value *values, char *why, uint32_t bytes) {
    (void)values;
    uint64_t lanes = shape->blocks / shape->blocks_per_lane, per_lane = shape->blocks_per_lane;
    uint64_t room = per_lane > RESERVE ? lanes * (per_lane - RESERVE) * shape->pages : 0;
    if (shape->logical_pages <= room) return 0;
    static const char text[] = "of each lane 4 blocks hold no data: lower drive.logical_pages, or "
                               "raise drive.blocks or drive.over_provisioning";
    for (uint32_t i = 0; i < bytes && i < sizeof text; i++) why[i] = text[i];
    return 1;
}

static uint32_t page_tables(void *of, fa_table *tables, uint32_t count) {
    page_ftl *ftl = of;
    uint64_t pages = (uint64_t)ftl->shape.blocks * ftl->shape.pages;
    if (count > 0) tables[0] = (fa_table){"map (L2P)", FA_DRAM, 4 * (uint64_t)ftl->shape.logical_pages};
    if (count > 1) tables[1] = (fa_table){"reverse map", FA_DRAM, 4 * pages};
    return 2;
}

static const fa_param params[] = {
    {"ftl.page_c_low_water", FA_WHOLE, 3, 1000, "3",
     "free blocks of a lane below which it is collected before the host gets another"},
};

static const fa_ftl page = {
    .forgets_trims = true, /* trims are not written to flash */
    .recovers_from_spare_areas = true,
    .fits = page_fits, .mount = page_mount, .destroy = page_destroy, .locate = page_locate,
    .write = page_write, .trim = page_trim, .tables = page_tables,
};

static const fa_part parts[] = {
    {FA_FTL, "page-c", "page mapping in C: greedy, two frontiers a lane", "the example of FlashAtlas",
     params, 1, &page},
};

const fa_plugin *flashatlas_plugin(void) {
    static const fa_plugin plugin = {FA_ABI_VERSION, "page", "1.0", parts, 1};
    return &plugin;
}
