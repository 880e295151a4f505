/* config_parse.c: strict, pure parsers of option values. See config.h.
 *
 * Nothing is skipped and nothing is guessed: no blanks, no signs, no fractions, no overflow, no
 * rest behind the unit. strtoull accepts all of these, and recent headers turn it into a symbol
 * that older libcs do not have. Any thread; a failed parse leaves *out untouched.
 */
#include "options/config_internal.h"

#include <stdio.h>
#include <string.h>

static bool digits(const char **at, uint64_t *out)
{
    const char *s = *at;
    uint64_t n = 0;
    if (*s < '0' || *s > '9')
        return false;
    for (; *s >= '0' && *s <= '9'; s++) {
        unsigned digit = (unsigned)(*s - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *at = s;
    *out = n;
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Does the word of `length` bytes at `word` equal `text`, whatever its case (ASCII)? */
static bool same_word(const char *word, size_t length, const char *text)
{
    for (size_t i = 0; i < length; i++)
        if (lower(word[i]) != lower(text[i]) || text[i] == 0)
            return false;
    return text[length] == 0;
}

static bool is_word(const char *text, const char *word)
{
    return same_word(word, strlen(word), text);
}

static bool multiply(uint64_t n, uint64_t unit, uint64_t *out)
{
    if (n > UINT64_MAX / unit)
        return false;
    *out = n * unit;
    return true;
}

bool gb_config_parse_size(const char *text, uint64_t *out_bytes)
{
    static const char units[] = "kmgt";
    uint64_t n;
    if (!digits(&text, &n))
        return false;
    if (!*text || is_word(text, "b"))
        return multiply(n, 1, out_bytes);
    const char *unit = strchr(units, lower(*text));
    if (!unit || (text[1] && !is_word(text + 1, "ib")))
        return false;
    return multiply(n, UINT64_C(1) << (10 * (unit - units + 1)), out_bytes);
}

bool gb_config_parse_time(const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    uint64_t n;
    if (!digits(&text, &n))
        return false;
    for (size_t i = 0; i < GB_ARRAY_LEN(units); i++)
        if (is_word(text, units[i].name))
            return multiply(n, units[i].ns, out_ns);
    return false;
}

bool gb_config_parse_share(const char *text, uint64_t *out_every)
{
    uint64_t n;
    bool on;
    if (strncmp(text, "1/", 2) != 0) {
        if (!gb_config_parse_bool(text, &on))
            return false;
        *out_every = on;
        return true;
    }
    text += 2;
    if (!digits(&text, &n) || *text || n == 0)
        return false;
    *out_every = n;
    return true;
}

void gb_config_format_share(uint64_t every, char *out, size_t size)
{
    if (every)
        snprintf(out, size, "1/%llu", (unsigned long long)every);
    else
        snprintf(out, size, "off");
}

bool gb_config_parse_bool(const char *text, bool *out)
{
    static const char *const words[2][4] = {{"0", "off", "no", "false"},
                                            {"1", "on", "yes", "true"}};
    for (int value = 0; value < 2; value++)
        for (size_t i = 0; i < GB_ARRAY_LEN(words[0]); i++)
            if (is_word(text, words[value][i])) {
                *out = value != 0;
                return true;
            }
    return false;
}

static bool choose(const char *choices, const char *text, int *out)
{
    for (int index = 0;; index++) {
        size_t length = strcspn(choices, ",");
        if (same_word(choices, length, text)) {
            *out = index;
            return true;
        }
        if (!choices[length])
            return false;
        choices += length + 1;
    }
}

/* A choice that has "on" and "off" takes 1, 0, yes, no, true, false as well. */
bool gb_config_parse_choice(const char *choices, const char *text, int *out)
{
    bool on;
    if (choose(choices, text, out))
        return true;
    return gb_config_parse_bool(text, &on) && choose(choices, on ? "on" : "off", out);
}

void gb_config_format_size(uint64_t bytes, char *out, size_t size)
{
    static const char units[] = "TGMK";
    for (int i = 0; i < 4; i++) {
        uint64_t unit = UINT64_C(1) << (40 - 10 * i);
        if (bytes && bytes % unit == 0) {
            snprintf(out, size, "%llu%c", (unsigned long long)(bytes / unit), units[i]);
            return;
        }
    }
    snprintf(out, size, "%llu", (unsigned long long)bytes);
}

void gb_config_format_time(uint64_t ns, char *out, size_t size)
{
    static const char *const units[] = {"s", "ms", "us", "ns"};
    uint64_t unit = 1000000000;
    int i = 0;
    while (i < 3 && (ns == 0 || ns % unit != 0)) {
        unit /= 1000;
        i++;
    }
    snprintf(out, size, "%llu%s", (unsigned long long)(ns / unit), units[i]);
}

/* Levenshtein distance of two short names, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[64];
    size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; a[i]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < n; j++) {
            unsigned replace = diagonal + (a[i] != b[j]);
            unsigned edit = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replace < edit ? replace : edit;
        }
    }
    return row[n];
}

const char *gb_config_nearest(const char *name)
{
    const char *best = NULL;
    size_t length = strlen(name);
    if (length >= 64 || length < 9)
        return NULL;
    /* Two edits for a short name ("LGO"), three for a longer one; further is another word. */
    unsigned least = length - 9 >= 4 ? 4 : 3;
    for (size_t i = 0; i < GB_OPTION_COUNT; i++) {
        unsigned d = distance(name, gb_options[i].name);
        if (d < least) {
            least = d;
            best = gb_options[i].name;
        }
    }
    return best;
}
