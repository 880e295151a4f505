/* record_run.h: one run of the record in a forked child, and what it left behind.
 *
 * The record lives once per process. The child says on stderr what the parent finds in `said`; its
 * files are read into `record` and `stalls`. Each test includes this once.
 */
#ifndef RECORD_RUN_H
#define RECORD_RUN_H

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options/config.h"
#include "record_fakes.h"

#define MS              1000000ull
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

static char root[64], out_dir[128];
static char record[4 << 20], stalls[4 << 20], said[1 << 16];

/* ---- a JSON reader that only says yes or no ---- */

static inline const char *skip_value(const char *s);

static inline const char *skip_string(const char *s)
{
    if (*s++ != '"')
        return NULL;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return NULL;
        s += *s == '\\';
    }
    return s + 1;
}

static inline const char *skip_members(const char *s, char close, bool keys)
{
    if (*s == close)
        return s + 1;
    for (;; s++) {
        if (keys && (!(s = skip_string(s)) || *s++ != ':'))
            return NULL;
        if (!(s = skip_value(s)) || *s == close)
            return s ? s + 1 : NULL;
        if (*s != ',')
            return NULL;
    }
}

static inline const char *skip_value(const char *s)
{
    if (*s == '{' || *s == '[')
        return skip_members(s + 1, *s == '{' ? '}' : ']', *s == '{');
    if (*s == '"')
        return skip_string(s);
    if (strncmp(s, "null", 4) == 0)
        return s + 4;
    size_t n = strspn(s + (*s == '-'), "0123456789");
    return n ? s + (*s == '-') + n : NULL;
}

/* Counts the whole lines; each must be one JSON object. */
static inline int assert_lines_are_json(const char *text)
{
    int lines = 0;
    for (const char *newline; (newline = strchr(text, '\n')) != NULL; text = newline + 1, lines++) {
        assert_int_equal(*text, '{');
        assert_ptr_equal(skip_value(text), newline);
    }
    return lines;
}

/* ---- one run in a child ---- */

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/test_record.XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(out_dir, sizeof out_dir, "%s/run", root);
    return 0;
}

static inline int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void read_text(const char *name, char *buf, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", out_dir, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : 0;
    buf[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static inline void read_files(void)
{
    read_text("record.jsonl", record, sizeof record);
    read_text("stalls.log", stalls, sizeof stalls);
}

static inline pid_t start(void (*body)(void), int *stderr_fd)
{
    int p[2];
    assert_int_equal(pipe(p), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        dup2(p[1], 2);
        close(p[0]);
        close(p[1]);
        gb_config_load();
        gb_config.out = out_dir;
        fake_reset();
        body();
        _exit(0);
    }
    close(p[1]);
    *stderr_fd = p[0];
    return child;
}

/* Its wait status; reads all it said and the files it left. */
static inline int finish(pid_t child, int stderr_fd)
{
    size_t used = 0;
    int status;
    for (ssize_t n; (n = read(stderr_fd, said + used, sizeof said - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = 0;
    close(stderr_fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    read_files();
    return status;
}

static inline int run(void (*body)(void))
{
    int fd;
    pid_t child = start(body, &fd);
    return finish(child, fd);
}

static inline void push(uint64_t blocked_ns, uint64_t idle_ns, uint32_t site)
{
    struct gb_stall_event e = {gb_now_ns(), blocked_ns, 2 * MS, UINT64_MAX, idle_ns, 4096, site, 7};
    gb_record_stall(&e);
}

static inline void use_gpu(void)
{
    fake_totals.first_enqueue_ns = gb_now_ns();
    fake_totals.launches++;
}

#endif
