/*
 * A closed loop over a drive. DEPTH commands are in flight until COUNT are complete. Half of them
 * are writes of 4 KiB and half are reads, at random places. The data of every read is checked.
 *
 *     cc event_loop.c $(pkg-config --cflags --libs flashatlas) -o event_loop
 *     ./event_loop [DEPTH [COUNT [SEED]]]
 */

#include <flashatlas.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTORS = 8, BYTES = SECTORS * FA_SECTOR_BYTES };

/* A slot of the queue. Its number is the tag of its command. */
struct slot {
  int reads;
  uint64_t place;
  uint32_t version; /* version of the place when the command was submitted */
  unsigned char data[BYTES];
};

static fa_drive *drive;
static uint32_t *versions;
static uint64_t state;

static void must(int code, const char *what) {
  if (code != FA_SUCCESS) {
    fprintf(stderr, "%s: code %d: %s\n", what, code, fa_drive_error(drive));
    exit(1);
  }
}

/* xorshift64*, which gives the same numbers on every machine. */
static uint64_t below(uint64_t bound) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (state * 0x2545F4914F6CDD1DULL >> 32) % bound;
}

/* Fills `data` with the content of a place at `version`. Version 0 is zeros. */
static void pattern(unsigned char *data, uint64_t place, uint32_t version) {
  memset(data, 0, BYTES);
  if (version == 0) return;
  for (size_t i = 0; i < BYTES; i++) {
    data[i] = (unsigned char)(place * 31 + version * 17 + i * 7 + (i >> 8));
  }
}

static void submit(struct slot *slot, uint64_t tag, uint64_t now, uint64_t places) {
  fa_command command;
  fa_reply reply;
  memset(&command, 0, sizeof command);
  memset(&reply, 0, sizeof reply);
  slot->place = below(places);
  slot->reads = (int)below(2);
  command.lba = slot->place * SECTORS;
  command.sectors = SECTORS;
  if (slot->reads) {
    command.op = FA_OP_READ;
    reply.data = slot->data;
    reply.data_room = BYTES;
  } else {
    pattern(slot->data, slot->place, ++versions[slot->place]);
    command.op = FA_OP_WRITE;
    command.data = slot->data;
    command.data_bytes = BYTES;
  }
  /* Commands take effect in the order of submission, so a read returns this version. */
  slot->version = versions[slot->place];
  must(fa_submit(drive, now, tag, &command, &reply), "fa_submit");
}

int main(int argc, char **argv) {
  const uint64_t depth = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
  const uint64_t total = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
  state = argc > 3 ? strtoull(argv[3], NULL, 10) | 1 : 1;

  const char *settings[] = {"nand.data=ram"};
  char why[512];
  drive = fa_drive_create("tiny", NULL, settings, 1, state, why, sizeof why);
  if (!drive) {
    fprintf(stderr, "fa_drive_create: %s\n", why);
    return 1;
  }
  fa_geometry geometry;
  must(fa_drive_geometry(drive, &geometry), "fa_drive_geometry");
  if (depth == 0 || depth > geometry.queue_depth) {
    fprintf(stderr, "depth: 1 to %" PRIu32 "\n", geometry.queue_depth);
    return 2;
  }
  const uint64_t places = geometry.sectors / SECTORS;
  versions = calloc(places, sizeof *versions);
  struct slot *slots = calloc(depth, sizeof *slots);
  fa_done *done = calloc(depth, sizeof *done);
  unsigned char expected[BYTES];

  uint64_t now = 0, submitted = 0, completed = 0, wrong = 0;
  while (submitted < depth && submitted < total) {
    submit(&slots[submitted], submitted, now, places);
    submitted++;
  }
  while (completed < total) {
    uint64_t at;
    size_t count;
    must(fa_next_event(drive, &at), "fa_next_event");
    if (at == FA_NEVER) {
      fprintf(stderr, "commands are in flight, and nothing happens\n");
      return 1;
    }
    must(fa_advance(drive, at, done, depth, &count), "fa_advance");
    now = at;
    for (size_t i = 0; i < count; i++) {
      struct slot *slot = &slots[done[i].tag];
      completed++;
      if (slot->reads) {
        pattern(expected, slot->place, slot->version);
        wrong += memcmp(expected, slot->data, BYTES) != 0;
      }
      if (submitted < total) {
        submit(slot, done[i].tag, now, places);
        submitted++;
      }
    }
  }
  must(fa_check(drive), "fa_check");
  char *record;
  must(fa_record_json(drive, &record), "fa_record_json");

  printf("commands %" PRIu64 "\n", completed);
  printf("wrong %" PRIu64 "\n", wrong);
  printf("time_ps %" PRIu64 "\n", now);
  printf("iops %.0f\n", (double)completed / ((double)now / 1e12));
  printf("record %s\n", record);
  fa_string_free(record);
  fa_drive_free(drive);
  free(versions);
  free(slots);
  free(done);
  return wrong != 0;
}
